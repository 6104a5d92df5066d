//! The devices that are allocated to claims.
//!
//! Upstream: `pkg/scheduler/framework/plugins/dynamicresources/allocateddevices.go` and
//! `…/structured/schedulerapi/types.go`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use crate::dra::{DeviceId, PoolId};
use crate::objects::shards::Shards;
use kubestep_api::intern::Symbol;
use kubestep_api::{DeviceRequestAllocationResult, Name, Quantity, ResourceClaim};

/// Amounts by the capacity's name.
pub type Capacities = BTreeMap<Symbol, Quantity>;

/// The devices and capacities that are allocated in the cluster, by pool. A pool without any has no
/// entry. A clone shares the pools, each until one of the two changes it: what was computed from
/// one is valid while it is the same.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct AllocatedDevices {
    pools: Shards<PoolId, Arc<PoolDevices>>,
}

/// The devices of a pool that are allocated, by their names.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct PoolDevices {
    /// Devices that are allocated to one claim.
    pub dedicated: HashSet<Symbol>,
    /// Devices of which claims have shares, with the share ids.
    pub shared: HashMap<Symbol, BTreeSet<Name>>,
    /// Consumed capacity of shared devices.
    pub consumed: HashMap<Symbol, Capacities>,
}

impl AllocatedDevices {
    /// Adds the allocation of a claim. Admin access does not count. Without `shares`
    /// (DRAConsumableCapacity off) a shared device counts as dedicated.
    pub fn add(&mut self, claim: &ResourceClaim, shares: bool) {
        for (id, result) in taken(claim) {
            self.change(id.of_pool(), |pool| pool.add(result, shares));
        }
    }

    /// Removes the allocation of a claim. As upstream, a device is free then even if another claim
    /// is allocated it too.
    pub fn remove(&mut self, claim: &ResourceClaim, shares: bool) {
        for (id, result) in taken(claim) {
            self.change(id.of_pool(), |pool| pool.remove(result, shares));
        }
    }

    /// Changes what is allocated of a pool.
    pub fn change(&mut self, id: PoolId, change: impl FnOnce(&mut PoolDevices)) {
        let pool = Arc::make_mut(self.pools.get_or_default(id));
        change(pool);
        if pool.is_empty() {
            self.pools.remove(&id);
        }
    }

    /// The allocated devices of a pool; `None` if there are none.
    pub fn pool(&self, id: PoolId) -> Option<&Arc<PoolDevices>> {
        self.pools.get(&id)
    }

    /// The pools of which something else may be allocated than of those of `other`.
    pub fn changed_pools(&self, other: &AllocatedDevices) -> Vec<PoolId> {
        self.pools.differences(&other.pools, Arc::ptr_eq)
    }

    /// Whether any claim is allocated the device or a share of it.
    pub fn contains(&self, id: &DeviceId) -> bool {
        self.pool(id.of_pool()).is_some_and(|pool| pool.contains(id.device))
    }

    /// The devices that are allocated to one claim each, in no particular order.
    pub fn dedicated(&self) -> impl Iterator<Item = DeviceId> {
        self.pools.iter().flat_map(|(PoolId { driver, name }, pool)| {
            let id = |device: &Symbol| DeviceId { driver: *driver, pool: *name, device: *device };
            pool.dedicated.iter().map(id)
        })
    }
}

impl PoolDevices {
    /// Adds the device, or the share of it, that a claim got.
    fn add(&mut self, result: &DeviceRequestAllocationResult, shares: bool) {
        let device = result.device;
        let Some(share) = result.share_id.filter(|_| shares) else {
            self.dedicated.insert(device);
            return;
        };
        self.shared.entry(device).or_default().insert(share);
        if !result.consumed_capacity.is_empty() {
            add(self.consumed.entry(device).or_default(), &result.consumed_capacity);
        }
    }

    /// Removes the device, or the share of it, that a claim had.
    fn remove(&mut self, result: &DeviceRequestAllocationResult, shares: bool) {
        let device = result.device;
        let Some(share) = result.share_id.filter(|_| shares) else {
            self.dedicated.remove(&device);
            return;
        };
        if let Some(known) = self.shared.get_mut(&device) {
            known.remove(&share);
            if known.is_empty() {
                self.shared.remove(&device);
            }
        }
        if let Some(consumed) = self.consumed.get_mut(&device) {
            subtract(consumed, &result.consumed_capacity);
            if consumed.values().all(Quantity::is_zero) {
                self.consumed.remove(&device);
            }
        }
    }

    /// Whether any claim is allocated the device or a share of it.
    pub fn contains(&self, device: Symbol) -> bool {
        self.dedicated.contains(&device)
            || self.shared.contains_key(&device)
            || self.consumed.contains_key(&device)
    }

    fn is_empty(&self) -> bool {
        self.dedicated.is_empty() && self.shared.is_empty() && self.consumed.is_empty()
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

    /// The pool of all devices here.
    fn pool(allocated: &AllocatedDevices) -> &PoolDevices {
        allocated.pool(id("whole").of_pool()).unwrap()
    }

    #[test]
    fn shares_of_a_device_add_up_and_admin_access_takes_nothing() {
        let mut allocated = AllocatedDevices::default();
        allocated.add(&claim(), true);
        assert!(pool(&allocated).dedicated.contains(&Symbol::new("whole")));
        assert!(!allocated.contains(&id("watched")));
        assert!(
            allocated.contains(&id("part"))
                && !pool(&allocated).dedicated.contains(&Symbol::new("part"))
        );
        let consumed = &pool(&allocated).consumed[&Symbol::new("part")];
        assert_eq!(consumed[&Symbol::new("memory")].to_string(), "4Gi");
        assert_eq!(consumed[&Symbol::new("cores")].to_string(), "2");
    }

    #[test]
    fn without_shares_a_shared_device_is_taken_whole() {
        let mut allocated = AllocatedDevices::default();
        allocated.add(&claim(), false);
        assert!(pool(&allocated).dedicated.contains(&Symbol::new("part")));
        assert!(pool(&allocated).consumed.is_empty());
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
        assert_eq!(
            pool(&allocated).consumed[&Symbol::new("part")][&Symbol::new("memory")].to_string(),
            "3Gi"
        );
        allocated.remove(&other, true);
        assert_eq!(allocated, AllocatedDevices::default());
    }
}
