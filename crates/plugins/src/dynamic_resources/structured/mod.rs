//! Structured allocation: finds devices that satisfy the claims of a pod on one node.
//!
//! The framework's claim tracker knows the allocated devices, [`pools`] finds those that a node can
//! use, and [`Allocator`] searches. The plugin chooses the claims and stores the result.
//! Upstream: `staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating`, the
//! allocator that the default feature gates select.

mod allocator;
mod capacity;
mod constraint;
mod counters;
mod device;
mod kept;
mod node_selector;
mod outcome;
pub mod pools;
mod request;
mod rules;
mod search;
mod shortage;
#[cfg(test)]
mod tests;

use kubestep_config::{Feature, FeatureGates};
use kubestep_framework::dra::counts_shares;

pub use allocator::{AllocationError, Allocator};
pub use kept::{Demand, KeptDevices};
pub use rules::SearchRules;
pub use shortage::{Constrained, DeviceCounts, DeviceShortage};

/// The maximum number of devices allocated to one claim.
pub(crate) const MAX_DEVICES_PER_CLAIM: usize = 32;

/// The optional features of the allocator that are on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(clippy::struct_excessive_bools)]
pub struct Features {
    /// DRAConsumableCapacity: several claims may share a device by capacity.
    pub consumable_capacity: bool,
    /// Devices may have binding conditions.
    pub binding_conditions: bool,
    /// DRADeviceTaints: taints exclude devices.
    pub taints: bool,
    /// DRAListTypeAttributes: attributes may be lists.
    pub lists: bool,
    /// DRADeviceTaintRules: DeviceTaintRules add taints.
    pub taint_rules: bool,
    /// DRAPartitionableDevices: devices may consume shared counters.
    pub partitionable: bool,
    /// DRAPrioritizedList: requests may have alternatives.
    pub prioritized_list: bool,
    /// How the version searches.
    pub rules: SearchRules,
}

impl Features {
    /// The features enabled by the feature gates.
    pub fn of(gates: &FeatureGates) -> Features {
        Features {
            consumable_capacity: counts_shares(gates),
            binding_conditions: binding_conditions(gates),
            taints: gates.enabled(Feature::DRADeviceTaints),
            lists: gates.enabled(Feature::DRAListTypeAttributes),
            taint_rules: gates.enabled(Feature::DRADeviceTaintRules),
            partitionable: gates.enabled(Feature::DRAPartitionableDevices),
            prioritized_list: gates.enabled(Feature::DRAPrioritizedList),
            rules: SearchRules::of(gates),
        }
    }

    /// Whether upstream uses its stable allocator, which ignores fields of features it lacks.
    pub(crate) fn is_stable(&self) -> bool {
        !(self.consumable_capacity || self.binding_conditions)
    }

    /// What CEL expressions can read of devices.
    pub fn cel(&self) -> kubestep_cel::Options {
        kubestep_cel::Options { lists: self.lists, sharing: !self.is_stable() }
    }
}

/// Whether devices may have binding conditions.
pub fn binding_conditions(gates: &FeatureGates) -> bool {
    gates.enabled(Feature::DRADeviceBindingConditions)
        && gates.enabled(Feature::DRAResourceClaimDeviceStatus)
}
