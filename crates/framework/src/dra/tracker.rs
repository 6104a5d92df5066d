//! The resource claims as the scheduler sees them: the listed ones, those that it has just written,
//! and the allocations that are decided but not written yet.
//!
//! Upstream: `claimTracker` in `pkg/scheduler/framework/plugins/dynamicresources/dra_manager.go`
//! and the assume cache.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::dra::AllocatedDevices;
use crate::objects::Objects;
use crate::objects::shards::Shards;
use crate::pod::NamespacedName;
use kubestep_api::{AllocationResult, ResourceClaim, Uid};

/// Information about claims beyond the listed objects.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct ClaimTracker {
    /// Claims as written by the scheduler, until the list has caught up.
    assumed: BTreeMap<NamespacedName, Arc<ResourceClaim>>,
    /// Allocations that are decided but not written, by the claim's UID.
    in_flight: BTreeMap<Uid, PendingAllocation>,
    /// The claims as last observed.
    seen: Shards<NamespacedName, Arc<ResourceClaim>>,
    /// What is allocated, according to the observed changes.
    allocated: Arc<AllocatedDevices>,
}

/// An allocation that is decided but not written.
#[derive(Clone, PartialEq, Debug)]
struct PendingAllocation {
    claim: Arc<ResourceClaim>,
    /// Number of pods of a group that rely on it.
    sharers: usize,
}

impl ClaimTracker {
    /// The claim of that name.
    pub fn get(&self, objects: &Objects, key: NamespacedName) -> Option<Arc<ResourceClaim>> {
        objects.resource_claims.get(&key).map(|listed| self.newest(key, listed).clone())
    }

    /// All claims, in no particular order.
    pub fn all<'a>(&'a self, objects: &'a Objects) -> impl Iterator<Item = &'a Arc<ResourceClaim>> {
        objects.resource_claims.iter().map(|(key, listed)| self.newest(*key, listed))
    }

    fn newest<'a>(
        &'a self,
        key: NamespacedName,
        listed: &'a Arc<ResourceClaim>,
    ) -> &'a Arc<ResourceClaim> {
        let assumed = self.assumed.get(&key);
        assumed.filter(|assumed| version(assumed) > version(listed)).unwrap_or(listed)
    }

    /// All devices that are allocated, written or not. Without `shares` a shared device counts as
    /// dedicated. The result shares the pools in which nothing changed with earlier ones.
    pub fn allocated(&self, objects: &Objects, shares: bool) -> Arc<AllocatedDevices> {
        let mut allocated = self.allocated.clone();
        for claim in self.unseen(objects) {
            Arc::make_mut(&mut allocated).add(claim, shares);
        }
        for in_flight in self.in_flight.values() {
            Arc::make_mut(&mut allocated).add(&in_flight.claim, shares);
        }
        allocated
    }

    /// The listed claims that were not observed: none in a scheduler, which observes every change
    /// of the list.
    fn unseen<'a>(&'a self, objects: &'a Objects) -> Vec<&'a Arc<ResourceClaim>> {
        let claims = &objects.resource_claims;
        if self.seen.len() == claims.len() {
            debug_assert!(claims.keys().all(|key| self.seen.contains_key(key)));
            return Vec::new();
        }
        let listed = claims.sorted().into_iter();
        let unseen = listed.filter(|(key, _)| !self.seen.contains_key(key));
        unseen.map(|(key, listed)| self.newest(*key, listed)).collect()
    }

    /// Notes that the list has another version of the claim, or no longer has it.
    pub fn observe(&mut self, objects: &Objects, key: NamespacedName, shares: bool) {
        let listed = objects.resource_claims.get(&key).map(|listed| version(listed));
        let is_newer =
            |assumed: &Arc<ResourceClaim>| listed.is_some_and(|listed| version(assumed) > listed);
        if self.assumed.get(&key).is_some_and(|assumed| !is_newer(assumed)) {
            self.assumed.remove(&key);
        }
        self.track(objects, key, shares);
    }

    /// Tracks whether the claim gained or lost an allocation. As upstream, only these two changes
    /// matter: an allocation is immutable until it is removed.
    fn track(&mut self, objects: &Objects, key: NamespacedName, shares: bool) {
        let new = self.get(objects, key);
        let old = match &new {
            Some(new) => self.seen.insert(key, new.clone()),
            None => self.seen.remove(&key),
        };
        let has_devices = |claim: &Arc<ResourceClaim>| claim.status.allocation.is_some();
        match (old.filter(has_devices), new.filter(has_devices)) {
            (None, Some(new)) => Arc::make_mut(&mut self.allocated).add(&new, shares),
            (Some(old), None) => Arc::make_mut(&mut self.allocated).remove(&old, shares),
            _ => {}
        }
    }

    /// Drops all observations and observes all claims again, as after a start.
    pub fn observe_all(&mut self, objects: &Objects, shares: bool) {
        self.seen = Shards::default();
        self.allocated = Arc::default();
        for (key, _) in objects.resource_claims.sorted() {
            self.track(objects, *key, shares);
        }
    }

    /// The allocation that is decided for the claim but not written.
    pub fn pending(&self, uid: Uid) -> Option<&AllocationResult> {
        self.in_flight.get(&uid)?.claim.status.allocation.as_ref()
    }

    /// The claims whose allocation is decided but not written.
    pub fn unwritten(&self) -> impl Iterator<Item = NamespacedName> {
        let claims = self.in_flight.values().map(|in_flight| &in_flight.claim.metadata);
        claims.map(|claim| NamespacedName::new(claim.namespace, claim.name))
    }

    /// Records that an allocation was decided, or that another pod relies on it.
    pub fn signal_pending(&mut self, uid: Uid, claim: Arc<ResourceClaim>) {
        let known = self.in_flight.entry(uid).or_insert(PendingAllocation { claim, sharers: 0 });
        known.sharers += 1;
    }

    /// Records that a pod no longer relies on a decided allocation. `true` if it was the last one,
    /// or if `force` removed the allocation.
    pub fn remove_pending(&mut self, uid: Uid, force: bool) -> bool {
        let Some(known) = self.in_flight.get_mut(&uid) else { return false };
        if force || known.sharers <= 1 {
            self.in_flight.remove(&uid);
            return true;
        }
        known.sharers -= 1;
        false
    }

    /// Stores a claim as returned by the API server. `false` if the list has a newer version.
    pub fn assume(&mut self, objects: &Objects, claim: Arc<ResourceClaim>, shares: bool) -> bool {
        let key = NamespacedName::new(claim.metadata.namespace, claim.metadata.name);
        let listed = objects.resource_claims.get(&key).map(|listed| version(listed));
        if listed.is_some_and(|listed| version(&claim) < listed) {
            return false;
        }
        if listed.is_none_or(|listed| version(&claim) > listed) {
            self.assumed.insert(key, claim);
        }
        self.track(objects, key, shares);
        true
    }

    /// Drops the assumed version of a claim.
    pub fn restore(&mut self, objects: &Objects, key: NamespacedName, shares: bool) {
        if self.assumed.remove(&key).is_some() {
            self.track(objects, key, shares);
        }
    }
}

fn version(claim: &ResourceClaim) -> u64 {
    claim.metadata.resource_version.number().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use kubestep_api::Object;

    fn claim(version: &str, devices: &[&str]) -> Arc<ResourceClaim> {
        let results: Vec<_> = devices
            .iter()
            .map(|name| json!({"driver": "d", "pool": "p", "device": name}))
            .collect();
        let allocation = (!results.is_empty()).then(|| json!({"devices": {"results": results}}));
        let json = json!({
            "metadata": {"namespace": "n", "name": "c", "uid": "u", "resourceVersion": version},
            "status": {"allocation": allocation},
        });
        Arc::new(serde_json::from_value(json).unwrap())
    }

    fn key() -> NamespacedName {
        NamespacedName::new("n".into(), "c".into())
    }

    #[test]
    fn an_allocation_is_pending_until_the_last_sharer_gives_it_up() {
        let mut tracker = ClaimTracker::default();
        assert!(!tracker.remove_pending("u".into(), false));
        tracker.signal_pending("u".into(), claim("1", &["a"]));
        tracker.signal_pending("u".into(), claim("1", &["b"]));
        // The first allocation remains.
        let pending = tracker.pending("u".into()).unwrap();
        assert_eq!(pending.devices.results[0].device, "a");
        assert!(!tracker.remove_pending("u".into(), false));
        assert!(tracker.remove_pending("u".into(), false));
        assert_eq!(tracker.pending("u".into()), None);
        tracker.signal_pending("u".into(), claim("1", &["a"]));
        tracker.signal_pending("u".into(), claim("1", &["a"]));
        assert!(tracker.remove_pending("u".into(), true));
        assert_eq!(tracker.pending("u".into()), None);
    }

    #[test]
    fn what_was_written_counts_until_the_list_is_as_new() {
        let mut objects = Objects::default();
        objects.insert(Object::ResourceClaim(claim("5", &[])));
        let mut tracker = ClaimTracker::default();
        assert!(!tracker.assume(&objects, claim("4", &["old"]), true));
        assert!(tracker.assume(&objects, claim("6", &["a"]), true));
        assert_eq!(tracker.get(&objects, key()), Some(claim("6", &["a"])));
        assert_eq!(tracker.allocated(&objects, true).dedicated().count(), 1);
        objects.insert(Object::ResourceClaim(claim("7", &[])));
        assert_eq!(tracker.get(&objects, key()), Some(claim("7", &[])));
        tracker.assume(&objects, claim("8", &["a"]), true);
        tracker.restore(&objects, key(), true);
        assert_eq!(tracker.get(&objects, key()), Some(claim("7", &[])));
    }

    #[test]
    fn pending_allocations_count_as_allocated() {
        let mut tracker = ClaimTracker::default();
        tracker.signal_pending("u".into(), claim("1", &["a", "b"]));
        assert_eq!(tracker.allocated(&Objects::default(), true).dedicated().count(), 2);
    }

    /// Upstream: allocatedDevices.onUpdate and onDelete.
    #[test]
    fn only_getting_and_losing_an_allocation_counts() {
        let (mut objects, mut tracker) = (Objects::default(), ClaimTracker::default());
        let mut see = |claim: Arc<ResourceClaim>| {
            objects.insert(Object::ResourceClaim(claim));
            tracker.observe(&objects, key(), true);
            let allocated = tracker.allocated(&objects, true);
            let mut names: Vec<_> = allocated.dedicated().map(|id| id.device).collect();
            names.sort_unstable();
            names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(see(claim("1", &[])), "");
        assert_eq!(see(claim("2", &["a"])), "a");
        assert_eq!(see(claim("3", &["b"])), "a");
        assert_eq!(see(claim("4", &[])), "a");
        assert_eq!(see(claim("5", &["a"])), "a");
        assert_eq!(see(claim("6", &[])), "");
    }
}
