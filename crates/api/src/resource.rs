//! Dynamic resource allocation (`resource.k8s.io/v1`): claims, templates, slices, classes. `decode`
//! converts older versions to this one.

use std::collections::BTreeMap;

use crate::intern::Symbol;
use crate::macros::{api_structs, open_enum};
use crate::{Condition, Name, NodeSelector, ObjectMeta, Quantity, Time, Uid};

api_structs! {
    /// A slice of a driver's devices.
    pub struct ResourceSlice {
        pub metadata: ObjectMeta,
        pub spec: ResourceSliceSpec,
    }

    /// The devices of a slice, and the nodes that can use them.
    pub struct ResourceSliceSpec {
        pub driver: Symbol,
        pub pool: ResourcePool,
        pub node_name: Option<Name>,
        pub node_selector: Option<NodeSelector>,
        pub all_nodes: Option<bool>,
        pub devices: Vec<Device>,
        pub per_device_node_selection: Option<bool>,
        pub shared_counters: Vec<CounterSet>,
    }

    /// The pool a slice belongs to; only the highest generation counts.
    pub struct ResourcePool {
        pub name: Name,
        pub generation: i64,
        pub resource_slice_count: i64,
    }

    /// Counters that devices share.
    pub struct CounterSet {
        pub name: Symbol,
        pub counters: BTreeMap<Symbol, Counter>,
    }

    /// An amount of a counter.
    pub struct Counter {
        pub value: Quantity,
    }

    /// `resource.k8s.io` Device: attributes, capacity, and the nodes that reach it.
    pub struct Device {
        pub name: Symbol,
        pub attributes: BTreeMap<Symbol, DeviceAttribute>,
        pub capacity: BTreeMap<Symbol, DeviceCapacity>,
        pub consumes_counters: Vec<DeviceCounterConsumption>,
        pub node_name: Option<Name>,
        pub node_selector: Option<NodeSelector>,
        pub all_nodes: Option<bool>,
        pub taints: Vec<DeviceTaint>,
        pub binds_to_node: Option<bool>,
        pub binding_conditions: Vec<Symbol>,
        pub binding_failure_conditions: Vec<Symbol>,
        pub allow_multiple_allocations: Option<bool>,
        pub node_allocatable_resource_mappings: BTreeMap<Symbol, NodeAllocatableResourceMapping>,
    }

    /// How a device uses a node's own resources.
    pub struct NodeAllocatableResourceMapping {
        pub capacity_key: Option<Symbol>,
        pub allocation_multiplier: Option<Quantity>,
    }

    /// What a device consumes of a counter set.
    pub struct DeviceCounterConsumption {
        pub counter_set: Symbol,
        pub counters: BTreeMap<Symbol, Counter>,
    }

    /// An attribute: exactly one of the fields is set.
    pub struct DeviceAttribute {
        #[serde(rename = "int")]
        pub int_value: Option<i64>,
        #[serde(rename = "bool")]
        pub bool_value: Option<bool>,
        #[serde(rename = "string")]
        pub string_value: Option<Symbol>,
        #[serde(rename = "version")]
        pub version_value: Option<Symbol>,
        #[serde(rename = "ints")]
        pub int_values: Vec<i64>,
        #[serde(rename = "bools")]
        pub bool_values: Vec<bool>,
        #[serde(rename = "strings")]
        pub string_values: Vec<Symbol>,
        #[serde(rename = "versions")]
        pub version_values: Vec<Symbol>,
    }

    /// An amount that a device has, and how it may be shared.
    pub struct DeviceCapacity {
        pub value: Quantity,
        pub request_policy: Option<CapacityRequestPolicy>,
    }

    /// Which amounts may be requested.
    pub struct CapacityRequestPolicy {
        pub default: Option<Quantity>,
        pub valid_values: Vec<Quantity>,
        pub valid_range: Option<CapacityRequestPolicyRange>,
    }

    /// A range of amounts in steps.
    pub struct CapacityRequestPolicyRange {
        pub min: Option<Quantity>,
        pub max: Option<Quantity>,
        pub step: Option<Quantity>,
    }

    /// A taint of a device.
    pub struct DeviceTaint {
        pub key: Symbol,
        pub value: Symbol,
        pub effect: DeviceTaintEffect,
        pub time_added: Option<Time>,
    }

    /// `resource.k8s.io/v1` ResourceClaim: what a pod asks for, and what was allocated.
    pub struct ResourceClaim {
        pub metadata: ObjectMeta,
        pub spec: ResourceClaimSpec,
        pub status: ResourceClaimStatus,
    }

    /// The specification of a claim.
    pub struct ResourceClaimSpec {
        pub devices: DeviceClaim,
    }

    /// Requests for devices, and constraints across them.
    pub struct DeviceClaim {
        pub requests: Vec<DeviceRequest>,
        pub constraints: Vec<DeviceConstraint>,
        pub config: Vec<DeviceClaimConfiguration>,
    }

    /// A request: either `exactly` or `first_available` is set.
    pub struct DeviceRequest {
        pub name: Symbol,
        pub exactly: Option<ExactDeviceRequest>,
        pub first_available: Vec<DeviceSubRequest>,
    }

    /// One kind of device.
    pub struct ExactDeviceRequest {
        pub device_class_name: Name,
        pub selectors: Vec<DeviceSelector>,
        pub allocation_mode: DeviceAllocationMode,
        pub count: i64,
        pub admin_access: Option<bool>,
        pub tolerations: Vec<DeviceToleration>,
        pub capacity: Option<CapacityRequirements>,
    }

    /// One alternative of a prioritized list.
    pub struct DeviceSubRequest {
        pub name: Symbol,
        pub device_class_name: Name,
        pub selectors: Vec<DeviceSelector>,
        pub allocation_mode: DeviceAllocationMode,
        pub count: i64,
        pub tolerations: Vec<DeviceToleration>,
        pub capacity: Option<CapacityRequirements>,
    }

    /// Requested amounts of a device that can be shared.
    pub struct CapacityRequirements {
        pub requests: BTreeMap<Symbol, Quantity>,
    }

    /// A condition on devices.
    pub struct DeviceSelector {
        pub cel: Option<CelDeviceSelector>,
    }

    /// A CEL expression on `device`.
    pub struct CelDeviceSelector {
        pub expression: Symbol,
    }

    /// A constraint that the devices of some requests share an attribute, or differ in it.
    pub struct DeviceConstraint {
        pub requests: Vec<Symbol>,
        pub match_attribute: Option<Symbol>,
        pub distinct_attribute: Option<Symbol>,
    }

    /// Configuration for the drivers of some requests.
    pub struct DeviceClaimConfiguration {
        pub requests: Vec<Symbol>,
        pub opaque: Option<OpaqueDeviceConfiguration>,
    }

    /// Configuration that is opaque except to a driver.
    pub struct OpaqueDeviceConfiguration {
        pub driver: Symbol,
        pub parameters: Option<serde_json::Value>,
    }

    /// A toleration of device taints.
    pub struct DeviceToleration {
        pub key: Symbol,
        pub operator: DeviceTolerationOperator,
        pub value: Symbol,
        pub effect: DeviceTaintEffect,
        pub toleration_seconds: Option<i64>,
    }

    /// The allocation of a claim, and its users.
    pub struct ResourceClaimStatus {
        pub allocation: Option<AllocationResult>,
        pub reserved_for: Vec<ResourceClaimConsumerReference>,
        pub devices: Vec<AllocatedDeviceStatus>,
    }

    /// A user of a claim.
    pub struct ResourceClaimConsumerReference {
        pub api_group: Symbol,
        pub resource: Symbol,
        pub name: Name,
        pub uid: Uid,
    }

    /// The allocated devices and the nodes that can use them (absent: all nodes).
    pub struct AllocationResult {
        pub devices: DeviceAllocationResult,
        pub node_selector: Option<NodeSelector>,
        pub allocation_timestamp: Option<Time>,
    }

    /// The allocated devices, and the configuration of each.
    pub struct DeviceAllocationResult {
        pub results: Vec<DeviceRequestAllocationResult>,
        pub config: Vec<DeviceAllocationConfiguration>,
    }

    /// One device allocated for one request.
    pub struct DeviceRequestAllocationResult {
        pub request: Symbol,
        pub driver: Symbol,
        pub pool: Name,
        pub device: Symbol,
        pub admin_access: Option<bool>,
        pub tolerations: Vec<DeviceToleration>,
        pub binding_conditions: Vec<Symbol>,
        pub binding_failure_conditions: Vec<Symbol>,
        #[serde(rename = "shareID")]
        pub share_id: Option<Name>,
        pub consumed_capacity: BTreeMap<Symbol, Quantity>,
    }

    /// Configuration of the allocation.
    pub struct DeviceAllocationConfiguration {
        pub source: AllocationConfigSource,
        pub requests: Vec<Symbol>,
        pub opaque: Option<OpaqueDeviceConfiguration>,
    }

    /// A driver's report on an allocated device.
    pub struct AllocatedDeviceStatus {
        pub driver: Symbol,
        pub pool: Name,
        pub device: Symbol,
        #[serde(rename = "shareID")]
        pub share_id: Option<Name>,
        pub conditions: Vec<Condition>,
    }

    /// `resource.k8s.io/v1` DeviceClass: selectors that requests share.
    pub struct DeviceClass {
        pub metadata: ObjectMeta,
        pub spec: DeviceClassSpec,
    }

    /// The devices of a class.
    pub struct DeviceClassSpec {
        pub selectors: Vec<DeviceSelector>,
        pub config: Vec<DeviceClassConfiguration>,
        pub extended_resource_name: Option<Symbol>,
    }

    /// Configuration for all devices of a class.
    pub struct DeviceClassConfiguration {
        pub opaque: Option<OpaqueDeviceConfiguration>,
    }

    /// A rule that taints devices in addition to the taints in their slices.
    pub struct DeviceTaintRule {
        pub metadata: ObjectMeta,
        pub spec: DeviceTaintRuleSpec,
    }

    /// Which devices a rule taints, and how. Without a selector it taints all.
    pub struct DeviceTaintRuleSpec {
        pub device_selector: Option<DeviceTaintSelector>,
        pub taint: DeviceTaint,
    }

    /// Selects devices by their names; an absent name matches all.
    pub struct DeviceTaintSelector {
        pub driver: Option<Symbol>,
        pub pool: Option<Name>,
        pub device: Option<Symbol>,
    }

    /// A template of resource claims.
    pub struct ResourceClaimTemplate {
        pub metadata: ObjectMeta,
        pub spec: ResourceClaimTemplateSpec,
    }

    /// The claims created from a template.
    pub struct ResourceClaimTemplateSpec {
        pub metadata: ObjectMeta,
        pub spec: ResourceClaimSpec,
    }
}

open_enum! {
    /// A device taint's effect; unset in a toleration means all effects.
    pub enum DeviceTaintEffect {
        None = "None", NoSchedule = "NoSchedule", NoExecute = "NoExecute",
    }
}

open_enum! {
    /// A device toleration's operator; the API's default is Equal.
    pub enum DeviceTolerationOperator { Equal = "Equal", Exists = "Exists" }
}

open_enum! {
    /// How many devices a request is for; the API's default is ExactCount.
    pub enum DeviceAllocationMode { ExactCount = "ExactCount", All = "All" }
}

open_enum! {
    /// The source of a configuration.
    pub enum AllocationConfigSource { FromClass = "FromClass", FromClaim = "FromClaim" }
}
