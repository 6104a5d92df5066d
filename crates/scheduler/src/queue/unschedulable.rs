//! Pods that wait for an event: unschedulable ones and gated ones.
//!
//! Upstream: `pkg/scheduler/backend/queue/unschedulable_pods.go`. Upstream walks a Go
//! map, so that the order is left to chance, but not evenly: up to eight entries lie in slots,
//! a new one takes the first that is free, and a walk goes from a random one of the eight
//! slots round to it. The likeliest order by far is that of the slots, so it is the one here.
//!
//! The recorded scenarios bear that out. Of those in which the order shows, all agree with a walk
//! from the first slot but two, of which one (events-11-0034) needs a walk from the second and
//! the other (volumes-11-0031) one from the third: two draws that came out alike in both
//! recording runs, and nothing that could be computed. Who wants such an order names a seed
//! ([`TieBreak::Seed`]): every walk then begins at a slot of its own draw, and under seed 66 those
//! two agree as well.
//!
//! [`TieBreak::Seed`]: kubestep_framework::tie_break::TieBreak::Seed

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::HashMap;

use kubestep_framework::pod::{NamespacedName, QueuedPod};
use kubestep_framework::tie_break::place;

/// Slots of the smallest map.
const SLOTS: usize = 8;

/// The pods by key, each in a slot.
#[derive(Clone, Default)]
pub(super) struct UnschedulablePods {
    pods: BTreeMap<usize, Arc<QueuedPod>>,
    index: HashMap<NamespacedName, usize>,
    /// Slots below the highest one in use that are free.
    free: BTreeSet<usize>,
}

impl UnschedulablePods {
    /// How many pods there are.
    pub(super) fn len(&self) -> usize {
        self.pods.len()
    }

    /// The pod of that key.
    pub(super) fn get(&self, key: NamespacedName) -> Option<&Arc<QueuedPod>> {
        self.pods.get(self.index.get(&key)?)
    }

    /// Adds a pod in the first free slot, or replaces the one of the same key in its slot.
    pub(super) fn add_or_update(&mut self, pod: Arc<QueuedPod>) {
        let slot = match self.index.get(&pod.key()) {
            Some(slot) => *slot,
            None => self.free.pop_first().unwrap_or(self.pods.len()),
        };
        self.index.insert(pod.key(), slot);
        self.pods.insert(slot, pod);
    }

    /// Takes the pod of that key out.
    pub(super) fn remove(&mut self, key: NamespacedName) -> Option<Arc<QueuedPod>> {
        let slot = self.index.remove(&key)?;
        self.free.insert(slot);
        if self.pods.len() == 1 {
            self.free.clear();
        }
        self.pods.remove(&slot)
    }

    /// All pods, in the order of a walk that chance lets begin at a slot; at the first for 0.
    pub(super) fn walk(&self, chance: u64) -> impl Iterator<Item = &Arc<QueuedPod>> {
        let slots = self.pods.last_key_value().map_or(0, |(last, _)| last + 1);
        let start = place(chance, slots.max(SLOTS));
        self.pods.range(start..).chain(self.pods.range(..start)).map(|(_, pod)| pod)
    }

    /// All pods, in the order of their slots.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<QueuedPod>> {
        self.pods.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubestep_api::{Pod, Time};
    use kubestep_framework::pod::PodInfo;

    fn queued(name: &str) -> Arc<QueuedPod> {
        let mut pod = Pod::default();
        pod.metadata.name = name.into();
        Arc::new(QueuedPod::new(Arc::new(PodInfo::new(Arc::new(pod))), Time(0)))
    }

    fn names(pods: &UnschedulablePods) -> Vec<&'static str> {
        pods.iter().map(|pod| pod.key().name.as_str()).collect()
    }

    #[test]
    fn a_walk_goes_round_from_the_slot_that_chance_says() {
        let mut pods = UnschedulablePods::default();
        ["a", "b", "c"].into_iter().for_each(|name| pods.add_or_update(queued(name)));
        let walk =
            |chance| -> String { pods.walk(chance).map(|pod| pod.key().name.as_str()).collect() };
        assert_eq!(
            [0, 1, 2, 3, 7, 8, 9].map(walk),
            ["abc", "bca", "cab", "abc", "abc", "abc", "bca"]
        );
    }

    #[test]
    fn a_new_pod_takes_the_first_free_slot() {
        let mut pods = UnschedulablePods::default();
        let add = |pods: &mut UnschedulablePods, name| pods.add_or_update(queued(name));
        for name in ["a", "b", "c", "d"] {
            add(&mut pods, name);
        }
        pods.remove(queued("c").key());
        pods.remove(queued("a").key());
        assert_eq!(names(&pods), ["b", "d"]);
        add(&mut pods, "e");
        add(&mut pods, "b");
        assert_eq!(names(&pods), ["e", "b", "d"]);
        add(&mut pods, "f");
        add(&mut pods, "g");
        assert_eq!(names(&pods), ["e", "b", "f", "d", "g"]);
        assert_eq!(pods.len(), 5);
        for name in ["b", "d", "e", "f", "g"] {
            assert!(pods.remove(queued(name).key()).is_some());
        }
        assert!(pods.remove(queued("b").key()).is_none());
        add(&mut pods, "h");
        add(&mut pods, "i");
        assert_eq!(names(&pods), ["h", "i"]);
    }
}
