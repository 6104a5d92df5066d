//! The cluster events of a pod update.
//!
//! Upstream: `PodSchedulingPropertiesChange` in `pkg/scheduler/framework/events.go`.

use kubestep_api::Pod;
use kubestep_config::versions::Switch;
use kubestep_config::{Feature, FeatureGates};
use kubestep_framework::events::{Action, ClusterEvent, EventResource};
use kubestep_framework::pod::requests::{RequestOptions, pod_requests};

/// A pod with a node was added.
pub(crate) const ASSIGNED_POD_ADD: ClusterEvent =
    ClusterEvent::new(EventResource::AssignedPod, Action::ADD);
/// A pod with a node was deleted.
pub(crate) const ASSIGNED_POD_DELETE: ClusterEvent =
    ClusterEvent::new(EventResource::AssignedPod, Action::DELETE);
/// A pod without a node was added.
pub(crate) const UNSCHEDULED_POD_ADD: ClusterEvent =
    ClusterEvent::new(EventResource::UnschedulablePod, Action::ADD);
/// A pod without a node was updated.
pub(crate) const UNSCHEDULED_POD_UPDATE: ClusterEvent =
    ClusterEvent::new(EventResource::UnschedulablePod, Action::UPDATE);
/// A pod without a node was deleted.
pub(crate) const UNSCHEDULED_POD_DELETE: ClusterEvent =
    ClusterEvent::new(EventResource::UnschedulablePod, Action::DELETE);

/// The events of the update, in upstream's order; at least one.
pub(crate) fn pod_update_events(
    old: &Pod,
    new: &Pod,
    features: &FeatureGates,
) -> Vec<ClusterEvent> {
    let resource = match new.spec.node_name.is_empty() {
        true => EventResource::UnschedulablePod,
        false => EventResource::AssignedPod,
    };
    // In 1.31 with hints, the plugins compare the pods: their answers are those of these events.
    let by_change =
        features.has(Switch::EventsByChange) || features.enabled(Feature::SchedulerQueueingHints);
    let changes = [
        (old.metadata.labels != new.metadata.labels, Action::UPDATE_POD_LABEL),
        (is_scaled_down(old, new, features), Action::UPDATE_POD_SCALE_DOWN),
        (by_change && are_gates_gone(old, new), Action::UPDATE_POD_SCHEDULING_GATES_ELIMINATED),
        // The API only allows adding tolerations, so comparing their number is enough.
        (
            by_change && old.spec.tolerations.len() != new.spec.tolerations.len(),
            Action::UPDATE_POD_TOLERATION,
        ),
        (by_change && is_claim_generated(old, new), Action::UPDATE_POD_GENERATED_RESOURCE_CLAIM),
    ];
    let happened = changes.into_iter().filter(|(changed, _)| *changed);
    let events: Vec<ClusterEvent> =
        happened.map(|(_, action)| ClusterEvent::new(resource, action)).collect();
    if events.is_empty() {
        return vec![ClusterEvent::new(resource, Action::UPDATE)];
    }
    events
}

fn is_scaled_down(old: &Pod, new: &Pod, features: &FeatureGates) -> bool {
    let options = RequestOptions::with_status(features);
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use kubestep_api::{
        Container, ContainerStatus, PodExtendedResourceClaimStatus, PodResourceClaimStatus,
        PodSchedulingGate, Quantity, Toleration,
    };
    use kubestep_config::Feature;

    fn labels(old: &Pod, new: &Pod) -> Vec<String> {
        pod_update_events(old, new, &FeatureGates::default())
            .iter()
            .map(ClusterEvent::label)
            .collect()
    }

    fn changed(change: impl FnOnce(&mut Pod)) -> Pod {
        let mut pod = Pod::default();
        change(&mut pod);
        pod
    }

    fn labelled(value: &str) -> Pod {
        changed(|pod| {
            pod.metadata.labels.insert("foo".into(), value.into());
        })
    }

    /// A pod with the request in the spec and in the status, as the kubelet reports it.
    fn requesting(cpu: &str) -> Pod {
        let mut requests = kubestep_api::ResourceList::default();
        requests.insert("cpu".into(), Quantity::parse(cpu).unwrap());
        let mut container = Container { name: "app".into(), ..Default::default() };
        container.resources.requests = Some(requests.clone());
        let status = ContainerStatus {
            name: "app".into(),
            allocated_resources: Some(requests),
            ..Default::default()
        };
        changed(|pod| {
            pod.spec.containers = vec![container].into();
            pod.status.container_statuses = vec![status].into();
        })
    }

    fn gated(gates: &[&str]) -> Pod {
        let gates = gates.iter().map(|gate| PodSchedulingGate { name: (*gate).into() });
        changed(|pod| pod.spec.scheduling_gates = gates.collect())
    }

    fn claiming(names: &[&str]) -> Pod {
        let claim = |name: &&str| PodResourceClaimStatus {
            name: (*name).into(),
            resource_claim_name: Some((*name).into()),
        };
        changed(|pod| pod.status.resource_claim_statuses = names.iter().map(claim).collect())
    }

    fn extended(name: &str) -> Pod {
        let claim = PodExtendedResourceClaimStatus {
            resource_claim_name: name.into(),
            ..Default::default()
        };
        changed(|pod| pod.status.extended_resource_claim_status = Some(claim.into()))
    }

    /// The cases of upstream's Test_podSchedulingPropertiesChange.
    #[test]
    fn updates() {
        let mut small_and_labelled = requesting("100m");
        small_and_labelled.metadata.labels.insert("foo".into(), "bar".into());
        let annotated = changed(|pod| {
            pod.metadata.annotations.insert("foo".into(), "bar".into());
        });
        let tolerating = changed(|pod| pod.spec.tolerations = vec![Toleration::default()].into());
        let plain = Pod::default();
        let generic = "UnschedulablePodUpdate";
        let claim = "UnschedulablePodUpdatePodGeneratedResourceClaim";
        let cases = [
            (labelled("bar2"), labelled("bar"), "UnschedulablePodUpdatePodLabel"),
            (requesting("101m"), requesting("100m"), "UnschedulablePodUpdatePodScaleDown"),
            (requesting("101m"), plain.clone(), "UnschedulablePodUpdatePodScaleDown"),
            (requesting("100m"), requesting("101m"), generic),
            (plain.clone(), annotated, generic),
            (gated(&["foo"]), gated(&[]), "UnschedulablePodUpdatePodSchedulingGatesEliminated"),
            (gated(&["foo", "bar"]), gated(&["foo"]), generic),
            (plain.clone(), tolerating, "UnschedulablePodUpdatePodToleration"),
            (plain.clone(), claiming(&["a"]), claim),
            (claiming(&["a", "b"]), claiming(&["b", "a"]), claim),
            (plain.clone(), extended("a"), claim),
            (extended("a"), extended("b"), claim),
            (extended("a"), extended("a"), generic),
        ];
        for (old, new, label) in cases {
            assert_eq!(labels(&old, &new), [label]);
        }
        assert_eq!(
            labels(&requesting("101m"), &small_and_labelled),
            ["UnschedulablePodUpdatePodLabel", "UnschedulablePodUpdatePodScaleDown"]
        );
    }

    /// extractPodScaleDown also considers the pod-level resources that the kubelet reports.
    #[test]
    fn a_resize_of_the_pod_as_a_whole_is_over_when_its_status_says_so() {
        let reported = |cpu: &str| {
            let json = json!({"spec": {"nodeName": "n", "resources": {"requests": {"cpu": "2"}}},
                "status": {"resources": {"requests": {"cpu": cpu}}}});
            serde_json::from_value::<Pod>(json).unwrap()
        };
        let (old, new) = (reported("4"), reported("2"));
        assert_eq!(labels(&old, &new), ["AssignedPodUpdatePodScaleDown"]);
        let gate = Feature::InPlacePodLevelResourcesVerticalScaling;
        let events = pod_update_events(&old, &new, &FeatureGates::default().with(gate, false));
        assert_eq!(events[0].label(), "AssignedPodUpdate");
    }

    #[test]
    fn the_new_pod_decides_the_resource() {
        let bound = changed(|pod| pod.spec.node_name = "node".into());
        assert_eq!(labels(&Pod::default(), &bound), ["AssignedPodUpdate"]);
        assert_eq!(labels(&bound, &Pod::default()), ["UnschedulablePodUpdate"]);
    }
}
