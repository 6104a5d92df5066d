//! Pods that wait for an event: unschedulable ones and gated ones.
//!
//! Upstream: `pkg/scheduler/backend/queue/unschedulable_pods.go`. Upstream walks its
//! map in random order; here pods are walked in the order in which they came.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::engine::pod::{NamespacedName, QueuedPod};

/// The pods by key, in the order in which they came.
#[derive(Clone, Default)]
pub(super) struct UnschedulablePods {
    pods: BTreeMap<u64, Arc<QueuedPod>>,
    index: HashMap<NamespacedName, u64>,
    next: u64,
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

    /// Adds a pod, or replaces the one of the same key, which keeps its place.
    pub(super) fn add_or_update(&mut self, pod: Arc<QueuedPod>) {
        let place = *self.index.entry(pod.key()).or_insert(self.next);
        if place == self.next {
            self.next += 1;
        }
        self.pods.insert(place, pod);
    }

    /// Takes the pod of that key out.
    pub(super) fn remove(&mut self, key: NamespacedName) -> Option<Arc<QueuedPod>> {
        self.pods.remove(&self.index.remove(&key)?)
    }

    /// All pods, in the order in which they came.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<QueuedPod>> {
        self.pods.values()
    }
}
