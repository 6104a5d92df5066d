//! Cache keys from the parts of a pod that plugins read: pods with the same key get the same
//! answer for a node and share it (`Plugin::filter_key`, `Plugin::score_key`).

use serde::Serialize;

use kubestep_api::{Condition, Pod};
use kubestep_framework::pod::PodInfo;

/// The parts as text; `None` if they cannot be serialized, and answers are then not shared.
pub fn key_of(parts: &impl Serialize) -> Option<String> {
    serde_json::to_string(parts).ok()
}

/// The node selector and node affinity.
pub fn node_affinity(pod: &PodInfo) -> Option<String> {
    let spec = &pod.pod.spec;
    let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    key_of(&(&spec.node_selector, affinity))
}

/// All tolerations of the pod, with their effects and values.
pub fn tolerations(pod: &PodInfo) -> Option<String> {
    key_of(&pod.pod.spec.tolerations)
}

/// Everything that the pod's requests are computed from, whatever the options.
pub fn requests(pod: &PodInfo) -> Option<String> {
    pod.requests_key(|Pod { spec, status, .. }| {
        let containers: Vec<_> = spec
            .containers
            .iter()
            .chain(&spec.init_containers)
            .map(|container| (container.name, &container.resources, container.restart_policy))
            .collect();
        let is_resize = |condition: &&Condition| condition.type_ == "PodResizePending";
        let resize: Vec<_> = status.conditions.iter().filter(is_resize).collect();
        let resized = (
            &status.resources,
            &status.allocated_resources,
            &status.container_statuses,
            &status.init_container_statuses,
            &status.node_allocatable_resource_claim_statuses,
            resize,
        );
        key_of(&(spec.containers.len(), containers, &spec.overhead, &spec.resources, resized))
    })
}
