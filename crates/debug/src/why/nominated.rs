//! The room that nodes keep for nominated pods: those that made it by preemption and are to be
//! scheduled there once their victims are gone.
//!
//! A nominated pod counts against a pod of the same or a lower priority and for no other (FW-121),
//! so whether its room is free depends on who asks.

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
    // Whose nomination was taken back is nominated to no node.
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
