//! The resources reserved on nodes for nominated pods: those that preempted other pods and will be
//! scheduled there when their victims are deleted.
//!
//! A nominated pod counts only for pods of the same or a lower priority, so whether its resources
//! are free depends on the pod to be scheduled.

use serde::Serialize;

use kubestep_api::intern::Symbol;
use kubestep_framework::pod::nominated::NominatedPods;
use kubestep_framework::pod::{NamespacedName, PodInfo};
use kubestep_framework::resource::Resource;

/// A nominated pod, and what its node keeps for it.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Nomination {
    /// The node.
    pub node: Symbol,
    /// The pod.
    pub pod: NamespacedName,
    /// Its priority.
    pub priority: i32,
    /// What it requests, in words.
    pub kept: String,
    /// Whether it is the pod that is asked about.
    pub own: bool,
    /// Whether its room counts as taken for the pod that is asked about.
    pub counts: bool,
}

/// All nominations, as they concern `pod`.
pub(super) fn of(pod: &PodInfo, nominated: &NominatedPods) -> Vec<Nomination> {
    let on_node = |(node, pods): (Symbol, &[std::sync::Arc<PodInfo>])| {
        pods.iter().map(|kept| nomination(pod, node, kept)).collect::<Vec<_>>()
    };
    // The nominator may hold pods under an empty node name: their nomination was cleared.
    nominated.iter().filter(|(node, _)| !node.is_empty()).flat_map(on_node).collect()
}

fn nomination(pod: &PodInfo, node: Symbol, kept: &PodInfo) -> Nomination {
    let own = kept.uid() == pod.uid();
    Nomination {
        node,
        pod: kept.key(),
        priority: kept.priority(),
        kept: words(&kept.resource.resource),
        own,
        counts: !own && kept.priority() >= pod.priority(),
    }
}

fn words(kept: &Resource) -> String {
    kubestep_framework::resource::amount::resources(kept)
}
