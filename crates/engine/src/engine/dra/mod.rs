//! Structured allocation of devices: which devices of which pools satisfy the claims of a pod
//! on one node.
//!
//! [`allocated`] says which devices are taken, [`pools`] which can be reached from a node,
//! [`Allocator`] searches. The plugin DynamicResources decides what to search for and keeps
//! the result. Upstream:
//! `staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating`, the
//! variant that the default gates select (DRA-016).

pub mod allocated;
mod allocator;
mod capacity;
pub mod cel;
mod constraint;
mod counters;
mod device;
mod node_selector;
mod outcome;
pub mod pools;
mod request;
mod search;
mod shortage;
pub mod taint_rules;
#[cfg(test)]
mod tests;
pub mod tracker;

use std::fmt;

use crate::config::{Feature, FeatureGates};
use crate::intern::Symbol;

pub use allocated::AllocatedDevices;
pub use allocator::{AllocationError, Allocator};
pub use shortage::{Constrained, Devices, Shortage};

/// The most devices that one claim can get.
pub const MAX_DEVICES_PER_CLAIM: usize = 32;

/// A device of the cluster.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DeviceId {
    /// The driver.
    pub driver: Symbol,
    /// The driver's pool.
    pub pool: Symbol,
    /// The device's name in the pool.
    pub device: Symbol,
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.driver, self.pool, self.device)
    }
}

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
    pub fn cel(&self) -> cel::Options {
        cel::Options { lists: self.lists, sharing: !self.is_stable() }
    }
}

/// Whether devices may have conditions to be met before binding.
pub fn binding_conditions(gates: &FeatureGates) -> bool {
    gates.enabled(Feature::DRADeviceBindingConditions)
        && gates.enabled(Feature::DRAResourceClaimDeviceStatus)
}

/// Whether shares of a device count one by one.
pub fn counts_shares(gates: &FeatureGates) -> bool {
    gates.enabled(Feature::DRAConsumableCapacity)
}
