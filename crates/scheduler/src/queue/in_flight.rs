//! Pods in a scheduling or binding cycle, and the events that happened meanwhile.
//!
//! One list in order of arrival holds both. A failed pod is checked against the events after its
//! own entry. Upstream: `inFlightEvents` in `pkg/scheduler/backend/queue/active_queue.go`.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;

use kubestep_api::Uid;
use kubestep_framework::events::{ClusterEvent, EventObjects};
use kubestep_framework::pod::{NamespacedName, QueuedPodInfo};

/// An event with its objects.
#[derive(Clone, Debug)]
pub(super) struct InFlightEvent {
    pub(super) event: ClusterEvent,
    /// The old and new object.
    pub(super) objects: EventObjects,
}

#[derive(Clone)]
enum InFlightEntry {
    Pod(Arc<QueuedPodInfo>),
    Event(Arc<InFlightEvent>),
}

/// The list, and the position of each pod in it.
#[derive(Clone, Default)]
pub(super) struct InFlight {
    list: BTreeMap<u64, InFlightEntry>,
    pods: HashMap<Uid, u64>,
    next: u64,
}

impl InFlight {
    /// Whether no pod is in flight.
    pub(super) fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }

    /// Number of pods in flight.
    pub(super) fn len(&self) -> usize {
        self.pods.len()
    }

    /// Whether the pod with that UID is in flight.
    pub(super) fn contains(&self, uid: Uid) -> bool {
        self.pods.contains_key(&uid)
    }

    /// The pods, in the order in which they were popped.
    pub(super) fn pods(&self) -> impl Iterator<Item = &Arc<QueuedPodInfo>> {
        self.list.values().filter_map(|entry| match entry {
            InFlightEntry::Pod(pod) => Some(pod),
            InFlightEntry::Event(_) => None,
        })
    }

    /// The events, in the order in which they happened.
    pub(super) fn events(&self) -> impl Iterator<Item = ClusterEvent> {
        self.list.values().filter_map(|entry| match entry {
            InFlightEntry::Pod(_) => None,
            InFlightEntry::Event(event) => Some(event.event),
        })
    }

    /// The pod with that key.
    pub(super) fn by_key(&self, key: NamespacedName) -> Option<&Arc<QueuedPodInfo>> {
        self.pods().find(|pod| pod.key() == key)
    }

    /// Appends a popped pod. `false` if a pod with its UID is already in flight.
    pub(super) fn push_pod(&mut self, pod: Arc<QueuedPodInfo>) -> bool {
        if self.contains(pod.uid()) {
            return false;
        }
        self.pods.insert(pod.uid(), self.next);
        self.push(InFlightEntry::Pod(pod));
        true
    }

    /// Appends an event, for the pods that are in flight now.
    pub(super) fn push_event(&mut self, event: ClusterEvent, objects: EventObjects) {
        self.push(InFlightEntry::Event(Arc::new(InFlightEvent { event, objects })));
    }

    fn push(&mut self, entry: InFlightEntry) {
        self.list.insert(self.next, entry);
        self.next += 1;
    }

    /// The events since the pod was popped, in order; `None` if it is not in flight.
    pub(super) fn events_since(&self, uid: Uid) -> Option<Vec<Arc<InFlightEvent>>> {
        let after = self.pods.get(&uid)? + 1;
        let events = self.list.range(after..).filter_map(|(_, entry)| match entry {
            InFlightEntry::Event(event) => Some(event.clone()),
            InFlightEntry::Pod(_) => None,
        });
        Some(events.collect())
    }

    /// Removes the pod, and drops the events before the first pod that remains.
    pub(super) fn done(&mut self, uid: Uid) -> Option<Arc<QueuedPodInfo>> {
        let place = self.pods.remove(&uid)?;
        let pod = self.list.remove(&place);
        while let Some(first) = self.list.first_entry()
            && matches!(first.get(), InFlightEntry::Event(_))
        {
            first.remove();
        }
        match pod? {
            InFlightEntry::Pod(pod) => Some(pod),
            InFlightEntry::Event(_) => None,
        }
    }
}

#[cfg(test)]
impl InFlight {
    /// The whole list as texts: keys of pods and labels of events.
    pub(super) fn describe(&self) -> Vec<String> {
        let text = |entry: &InFlightEntry| match entry {
            InFlightEntry::Pod(pod) => pod.key().to_string(),
            InFlightEntry::Event(event) => event.event.label(),
        };
        self.list.values().map(text).collect()
    }
}
