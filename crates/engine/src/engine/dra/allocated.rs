//! The devices that claims have got already (DRA-003).
//!
//! Upstream: `pkg/scheduler/framework/plugins/dynamicresources/allocateddevices.go` and
//! `…/structured/schedulerapi/types.go`.

use std::collections::BTreeMap;

use hashbrown::{HashMap, HashSet};

use crate::api::{Quantity, ResourceClaim};
use crate::engine::dra::DeviceId;
use crate::intern::Symbol;

/// Amounts by the capacity's name.
pub type Capacities = BTreeMap<Symbol, Quantity>;

/// What is allocated in the cluster.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct AllocatedDevices {
    /// Devices that belong to one claim.
    pub dedicated: HashSet<DeviceId>,
    /// Devices of which claims have shares.
    pub shared: HashSet<DeviceId>,
    /// What is taken of shared devices.
    pub consumed: HashMap<DeviceId, Capacities>,
}

impl AllocatedDevices {
    /// Adds what a claim has got. Admin access takes nothing away. Without `shares`
    /// (DRAConsumableCapacity off) a shared device counts as dedicated.
    pub fn add(&mut self, claim: &ResourceClaim, shares: bool) {
        let Some(allocation) = &claim.status.allocation else { return };
        let results = allocation.devices.results.iter();
        for result in results.filter(|result| result.admin_access != Some(true)) {
            let id = DeviceId { driver: result.driver, pool: result.pool, device: result.device };
            if !shares || result.share_id.is_none() {
                self.dedicated.insert(id);
                continue;
            }
            self.shared.insert(id);
            if !result.consumed_capacity.is_empty() {
                add(self.consumed.entry(id).or_default(), &result.consumed_capacity);
            }
        }
    }

    /// Whether any claim has the device or a share of it.
    pub fn contains(&self, id: &DeviceId) -> bool {
        self.dedicated.contains(id) || self.shared.contains(id) || self.consumed.contains_key(id)
    }
}

/// Adds amounts.
pub fn add(to: &mut Capacities, amounts: &Capacities) {
    for (name, amount) in amounts {
        match to.get_mut(name) {
            Some(sum) => sum.add(amount),
            None => {
                to.insert(*name, amount.clone());
            }
        }
    }
}

/// Subtracts amounts of which something is there.
pub fn subtract(from: &mut Capacities, amounts: &Capacities) {
    for (name, amount) in amounts {
        if let Some(sum) = from.get_mut(name) {
            sum.sub(amount);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claim() -> ResourceClaim {
        serde_json::from_value(json!({"status": {"allocation": {"devices": {"results": [
            {"driver": "d", "pool": "p", "device": "whole"},
            {"driver": "d", "pool": "p", "device": "watched", "adminAccess": true},
            {"driver": "d", "pool": "p", "device": "part", "shareID": "1",
             "consumedCapacity": {"memory": "3Gi"}},
            {"driver": "d", "pool": "p", "device": "part", "shareID": "2",
             "consumedCapacity": {"memory": "1Gi", "cores": "2"}},
        ]}}}}))
        .unwrap()
    }

    fn id(device: &str) -> DeviceId {
        DeviceId { driver: "d".into(), pool: "p".into(), device: device.into() }
    }

    #[test]
    fn shares_of_a_device_add_up_and_admin_access_takes_nothing() {
        let mut allocated = AllocatedDevices::default();
        allocated.add(&claim(), true);
        assert!(allocated.dedicated.contains(&id("whole")));
        assert!(!allocated.contains(&id("watched")));
        assert!(allocated.contains(&id("part")) && !allocated.dedicated.contains(&id("part")));
        let consumed = &allocated.consumed[&id("part")];
        assert_eq!(consumed[&Symbol::new("memory")].to_string(), "4Gi");
        assert_eq!(consumed[&Symbol::new("cores")].to_string(), "2");
    }

    #[test]
    fn without_shares_a_shared_device_is_taken_whole() {
        let mut allocated = AllocatedDevices::default();
        allocated.add(&claim(), false);
        assert!(allocated.dedicated.contains(&id("part")));
        assert!(allocated.consumed.is_empty());
    }
}
