//! The names under which `scheduler_event_handling_duration_seconds` counts a change of the
//! cluster.
//!
//! Upstream: the observations of `EventHandlingLatency` in `pkg/scheduler/eventhandlers.go`.

use crate::Scheduler;
use crate::events::resource_of;
use crate::queue::node_events::node_update_events;
use crate::queue::pod_events::{
    ASSIGNED_POD_ADD, ASSIGNED_POD_DELETE, UNSCHEDULED_POD_ADD, UNSCHEDULED_POD_DELETE,
    UNSCHEDULED_POD_UPDATE, pod_update_events,
};
use kubestep_api::{Object, Pod};
use kubestep_framework::events::{Action, ClusterEvent, EventResource};

impl Scheduler {
    /// The names for a change from `old` to `new`, each counted once; `None` is an object that does
    /// not exist. Empty if the scheduler handles no such event, as for another scheduler's pod.
    pub fn event_labels(&self, old: Option<&Object>, new: Option<&Object>) -> Vec<String> {
        let events = match (watched(old), watched(new)) {
            (Some(Object::Node(old)), Some(Object::Node(new))) => {
                node_update_events(old, new, &self.cluster.features)
            }
            (Some(Object::Pod(old)), Some(Object::Pod(new))) => self.pod_update_labels(old, new),
            (None, Some(Object::Pod(pod))) => {
                self.pod_labels(pod, ASSIGNED_POD_ADD, UNSCHEDULED_POD_ADD)
            }
            (Some(Object::Pod(pod)), None) => {
                self.pod_labels(pod, ASSIGNED_POD_DELETE, UNSCHEDULED_POD_DELETE)
            }
            (old, new) => other_labels(old, new).into_iter().collect(),
        };
        events.iter().map(ClusterEvent::label).collect()
    }

    fn pod_labels(
        &self,
        pod: &Pod,
        assigned: ClusterEvent,
        unassigned: ClusterEvent,
    ) -> Vec<ClusterEvent> {
        match (pod.spec.node_name.is_empty(), self.profiles.serve(pod)) {
            (false, _) => vec![assigned],
            (true, true) => vec![unassigned],
            (true, false) => Vec::new(),
        }
    }

    fn pod_update_labels(&self, old: &Pod, new: &Pod) -> Vec<ClusterEvent> {
        let changes = || pod_update_events(old, new, &self.cluster.features);
        if !old.spec.node_name.is_empty() {
            let whole = ClusterEvent::new(EventResource::AssignedPod, Action::UPDATE);
            return std::iter::once(whole).chain(changes()).collect();
        }
        let serves = self.profiles.serve(old);
        if !new.spec.node_name.is_empty() {
            let dequeued = serves.then_some(UNSCHEDULED_POD_DELETE);
            return std::iter::once(ASSIGNED_POD_ADD).chain(dequeued).collect();
        }
        if !serves || old.metadata.resource_version == new.metadata.resource_version {
            return Vec::new();
        }
        let special = changes().into_iter().filter(|event| *event != UNSCHEDULED_POD_UPDATE);
        std::iter::once(UNSCHEDULED_POD_UPDATE).chain(special).collect()
    }
}

/// Terminated pods are not watched.
fn watched(object: Option<&Object>) -> Option<&Object> {
    object.filter(|object| !matches!(object, Object::Pod(pod) if pod.is_terminal()))
}

/// The event of any kind but pods, and of nodes that are created or deleted.
fn other_labels(old: Option<&Object>, new: Option<&Object>) -> Option<ClusterEvent> {
    let action = match (old, new) {
        (None, Some(_)) => Action::ADD,
        (Some(_), Some(_)) => Action::UPDATE,
        (_, None) => Action::DELETE,
    };
    let resource = match new.or(old)? {
        Object::Node(_) => EventResource::Node,
        object => resource_of(object.kind())?,
    };
    Some(ClusterEvent::new(resource, action))
}
