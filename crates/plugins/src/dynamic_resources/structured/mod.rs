//! Structured allocation of devices: which devices of which pools satisfy the claims of a pod
//! on one node.
//!
//! The framework's claim tracker says which devices are taken, [`pools`] which can be reached from
//! a node, [`Allocator`] searches. The plugin decides what to search for and keeps the result.
//! Upstream: `staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating`, the
//! variant that the default gates select (DRA-016).

mod allocator;
mod capacity;
mod constraint;
mod counters;
mod device;
mod node_selector;
mod outcome;
pub mod pools;
mod request;
mod search;
mod shortage;
#[cfg(test)]
mod tests;

use kubestep_config::{Feature, FeatureGates};
use kubestep_framework::dra::counts_shares;

pub use allocator::{AllocationError, Allocator};
pub use shortage::{Constrained, Devices, Shortage};

/// The most devices that one claim can get.
pub const MAX_DEVICES_PER_CLAIM: usize = 32;

/// Which optional parts of the allocation are on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(clippy::struct_excessive_bools)]
pub struct Features {
    /// Devices may be shared by capacity.
    pub consumable_capacity: bool,
    /// Devices may have conditions to be met before binding.
    pub binding_conditions: bool,
    /// Taints keep devices from claims.
    pub taints: bool,
    /// Attributes of devices may be lists.
    pub lists: bool,
    /// Taints also come from rules.
    pub taint_rules: bool,
    /// Devices may draw on shared counters.
    pub partitionable: bool,
    /// Requests may have alternatives.
    pub prioritized_list: bool,
}

impl Features {
    /// As the feature gates say.
    pub fn of(gates: &FeatureGates) -> Features {
        Features {
            consumable_capacity: counts_shares(gates),
            binding_conditions: binding_conditions(gates),
            taints: gates.enabled(Feature::DRADeviceTaints),
            lists: gates.enabled(Feature::DRAListTypeAttributes),
            taint_rules: gates.enabled(Feature::DRADeviceTaintRules),
            partitionable: gates.enabled(Feature::DRAPartitionableDevices),
            prioritized_list: gates.enabled(Feature::DRAPrioritizedList),
        }
    }

    /// Whether upstream takes its stable allocator, which ignores what it does not know
    /// (DRA-016).
    pub fn is_stable(&self) -> bool {
        !(self.consumable_capacity || self.binding_conditions)
    }

    /// What expressions see of devices.
    pub fn cel(&self) -> kubestep_cel::Options {
        kubestep_cel::Options { lists: self.lists, sharing: !self.is_stable() }
    }
}

/// Whether devices may have conditions to be met before binding.
pub fn binding_conditions(gates: &FeatureGates) -> bool {
    gates.enabled(Feature::DRADeviceBindingConditions)
        && gates.enabled(Feature::DRAResourceClaimDeviceStatus)
}
