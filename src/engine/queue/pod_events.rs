//! Which cluster events an update of a pod means.
//!
//! Upstream: `PodSchedulingPropertiesChange` in `pkg/scheduler/framework/events.go` (FW-264).

use crate::api::Pod;
use crate::engine::framework::events::{Action, ClusterEvent, EventResource};
use crate::engine::requests::{RequestOptions, pod_requests};

/// A pod that has a node appeared.
pub const ASSIGNED_POD_ADD: ClusterEvent =
    ClusterEvent::new(EventResource::AssignedPod, Action::ADD);
/// A pod that has a node is gone.
pub const ASSIGNED_POD_DELETE: ClusterEvent =
    ClusterEvent::new(EventResource::AssignedPod, Action::DELETE);
/// A pod without a node appeared.
pub const UNSCHEDULED_POD_ADD: ClusterEvent =
    ClusterEvent::new(EventResource::UnschedulablePod, Action::ADD);
/// A pod without a node changed.
pub const UNSCHEDULED_POD_UPDATE: ClusterEvent =
    ClusterEvent::new(EventResource::UnschedulablePod, Action::UPDATE);
/// A pod without a node is gone.
pub const UNSCHEDULED_POD_DELETE: ClusterEvent =
    ClusterEvent::new(EventResource::UnschedulablePod, Action::DELETE);

/// The events that the update means, in upstream's order; at least one.
pub fn pod_update_events(old: &Pod, new: &Pod) -> Vec<ClusterEvent> {
    let resource = match new.spec.node_name.is_empty() {
        true => EventResource::UnschedulablePod,
        false => EventResource::AssignedPod,
    };
    let changes = [
        (old.metadata.labels != new.metadata.labels, Action::UPDATE_POD_LABEL),
        (is_scaled_down(old, new), Action::UPDATE_POD_SCALE_DOWN),
        (are_gates_gone(old, new), Action::UPDATE_POD_SCHEDULING_GATES_ELIMINATED),
        // The API lets users only add tolerations, so their number tells.
        (old.spec.tolerations.len() != new.spec.tolerations.len(), Action::UPDATE_POD_TOLERATION),
        (is_claim_generated(old, new), Action::UPDATE_POD_GENERATED_RESOURCE_CLAIM),
    ];
    let happened = changes.into_iter().filter(|(changed, _)| *changed);
    let events: Vec<ClusterEvent> =
        happened.map(|(_, action)| ClusterEvent::new(resource, action)).collect();
    if events.is_empty() {
        return vec![ClusterEvent::new(resource, Action::UPDATE)];
    }
    events
}

fn is_scaled_down(old: &Pod, new: &Pod) -> bool {
    let options = RequestOptions { use_status: true, ..RequestOptions::default() };
    let wanted = pod_requests(new, &options);
    pod_requests(old, &options).iter().any(|(name, before)| {
        wanted.get(name).is_none_or(|now| before.milli_value() > now.milli_value())
    })
}

fn are_gates_gone(old: &Pod, new: &Pod) -> bool {
    new.spec.scheduling_gates.is_empty() && !old.spec.scheduling_gates.is_empty()
}

fn is_claim_generated(old: &Pod, new: &Pod) -> bool {
    old.status.resource_claim_statuses != new.status.resource_claim_statuses
        || old.status.extended_resource_claim_status != new.status.extended_resource_claim_status
}
