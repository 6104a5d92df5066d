//! The devices that are allocated to claims.
//!
//! Upstream: `pkg/scheduler/framework/plugins/dynamicresources/allocateddevices.go` and
//! `…/structured/schedulerapi/types.go`.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::{HashMap, HashSet};

use crate::dra::DeviceId;
use kubestep_api::intern::Symbol;
use kubestep_api::{DeviceRequestAllocationResult, Name, Quantity, ResourceClaim};

/// Amounts by the capacity's name.
pub type Capacities = BTreeMap<Symbol, Quantity>;

/// The devices and capacities that are allocated in the cluster.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct AllocatedDevices {
    /// Devices that are allocated to one claim.
    pub dedicated: HashSet<DeviceId>,
    /// Devices of which claims have shares, with the share ids.
    pub shared: HashMap<DeviceId, BTreeSet<Name>>,
    /// Consumed capacity of shared devices.
    pub consumed: HashMap<DeviceId, Capacities>,
}

impl AllocatedDevices {
    /// Adds the allocation of a claim. Admin access does not count. Without `shares`
    /// (DRAConsumableCapacity off) a shared device counts as dedicated.
    pub fn add(&mut self, claim: &ResourceClaim, shares: bool) {
        for (id, result) in taken(claim) {
            let Some(share) = result.share_id.filter(|_| shares) else {
                self.dedicated.insert(id);
                continue;
            };
            self.shared.entry(id).or_default().insert(share);
            if !result.consumed_capacity.is_empty() {
                add(self.consumed.entry(id).or_default(), &result.consumed_capacity);
            }
        }
    }

    /// Removes the allocation of a claim. As upstream, a device is free then even if another claim
    /// is allocated it too.
    pub fn remove(&mut self, claim: &ResourceClaim, shares: bool) {
        for (id, result) in taken(claim) {
            let Some(share) = result.share_id.filter(|_| shares) else {
                self.dedicated.remove(&id);
                continue;
            };
            if let Some(known) = self.shared.get_mut(&id) {
                known.remove(&share);
                if known.is_empty() {
                    self.shared.remove(&id);
                }
            }
            if let Some(consumed) = self.consumed.get_mut(&id) {
                subtract(consumed, &result.consumed_capacity);
                if consumed.values().all(Quantity::is_zero) {
                    self.consumed.remove(&id);
                }
            }
        }
    }

    /// Whether any claim is allocated the device or a share of it.
    pub fn contains(&self, id: &DeviceId) -> bool {
        self.dedicated.contains(id)
            || self.shared.contains_key(id)
            || self.consumed.contains_key(id)
    }
}

/// The dedicated devices and the shares that a claim is allocated.
fn taken(
    claim: &ResourceClaim,
) -> impl Iterator<Item = (DeviceId, &DeviceRequestAllocationResult)> {
    let results = claim.status.allocation.iter().flat_map(|of| &of.devices.results);
    results.filter(|result| result.admin_access != Some(true)).map(|result| {
        let id = DeviceId { driver: result.driver, pool: result.pool, device: result.device };
        (id, result)
    })
}

/// Adds amounts to what a device already gave.
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

/// Subtracts the amounts of those capacities that have an entry.
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

    #[test]
    fn what_goes_leaves_the_shares_of_others() {
        let mut other = claim();
        let results = &mut other.status.allocation.as_mut().unwrap().devices.results;
        results[2].share_id = Some("3".into());
        results.remove(3);
        let mut allocated = AllocatedDevices::default();
        allocated.add(&claim(), true);
        allocated.add(&other, true);
        allocated.remove(&claim(), true);
        // A set of devices does not count the claims.
        assert!(!allocated.contains(&id("whole")));
        assert_eq!(allocated.consumed[&id("part")][&Symbol::new("memory")].to_string(), "3Gi");
        allocated.remove(&other, true);
        assert_eq!(allocated, AllocatedDevices::default());
    }
}
