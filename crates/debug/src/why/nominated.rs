//! The resources reserved on nodes for nominated pods: those that preempted other pods and will be
//! scheduled there when their victims are deleted.
//!
//! A nominated pod counts only for pods of the same or a lower priority, so whether its resources
//! are free depends on the pod to be scheduled.

use kubestep_api::Name;
use kubestep_framework::pod::nominated::{NominatedPods, NominatedToNode};
use kubestep_framework::pod::{NamespacedName, PodInfo};
use kubestep_framework::resource::Resource;
use serde::Serialize;

/// A nominated pod, and the resources reserved for it.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Nomination {
    /// Name of the node.
    pub node: Name,
    /// Namespace and name of the pod.
    pub pod: NamespacedName,
    /// `spec.priority` of the nominated pod.
    pub priority: i32,
    /// Its requests, in words.
    pub kept: String,
    /// Whether it is the pod of the question.
    pub own: bool,
    /// Whether its reservation counts as used for the pod of the question.
    pub counts: bool,
}

/// All nominations, as they affect `pod`.
pub(super) fn of(pod: &PodInfo, nominated: &NominatedPods) -> Vec<Nomination> {
    let on_node = |(node, pods): (Name, &NominatedToNode)| {
        pods.iter().map(|kept| nomination(pod, node, kept)).collect::<Vec<_>>()
    };
    nominated.iter().flat_map(on_node).collect()
}

fn nomination(pod: &PodInfo, node: Name, kept: &PodInfo) -> Nomination {
    let own = kept.uid() == pod.uid();
    Nomination {
        node,
        pod: kept.key(),
        priority: kept.priority(),
        kept: resource_text(&kept.resource.resource),
        own,
        counts: !own && kept.priority() >= pod.priority(),
    }
}

fn resource_text(kept: &Resource) -> String {
    kubestep_framework::resource::amount::resources(kept)
}
