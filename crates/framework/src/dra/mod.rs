//! Dynamic resource allocation, as far as the scheduler itself tracks it: the resource claims with
//! allocations that are decided but not written yet ([`tracker`]), the allocated devices
//! ([`allocated`]), and the slices with the taints that rules add ([`taint_rules`]). The search for
//! devices belongs to the plugin DynamicResources.

pub mod allocated;
pub mod taint_rules;
pub mod tracker;

use std::fmt;

use crate::objects::shards::ShardKey;
use kubestep_api::Name;
use kubestep_api::intern::Symbol;
use kubestep_config::{Feature, FeatureGates};

pub use allocated::{AllocatedDevices, PoolDevices};

/// The identity of a pool.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PoolId {
    /// The DRA driver, by name.
    pub driver: Symbol,
    /// The name, unique for the driver.
    pub name: Name,
}

impl fmt::Display for PoolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.driver, self.name)
    }
}

impl ShardKey for PoolId {
    fn number(self) -> u32 {
        self.name.number() ^ self.driver.number().rotate_left(16)
    }
}

/// A device of the cluster.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DeviceId {
    /// The DRA driver, by name.
    pub driver: Symbol,
    /// The pool of the driver, by name.
    pub pool: Name,
    /// The device's name in the pool.
    pub device: Symbol,
}

impl DeviceId {
    /// The pool it is in.
    pub fn of_pool(&self) -> PoolId {
        PoolId { driver: self.driver, name: self.pool }
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.driver, self.pool, self.device)
    }
}

/// Whether shares of a device are tracked separately (gate DRAConsumableCapacity).
pub fn counts_shares(gates: &FeatureGates) -> bool {
    gates.enabled(Feature::DRAConsumableCapacity)
}
