//! DaemonSets: a pod for each eligible node, bound to it by node affinity.
//!
//! Upstream: `NodeShouldRunDaemonPod` and `AddOrUpdateDaemonPodTolerations` in
//! `pkg/controller/daemon`.

use std::sync::Arc;

use super::manifest::WorkloadManifest;
use super::{ExpandedWorkload, WorkloadInputs, named, owned_pod};
use kubestep_api::intern::Symbol;
use kubestep_api::selector::{RequiredNodeAffinity, find_untolerated_taint};
use kubestep_api::words::count;
use kubestep_api::{
    Affinity, DecodeError, Node, NodeSelector, NodeSelectorOperator, NodeSelectorRequirement,
    NodeSelectorTerm, Pod, Shared, TaintEffect, Toleration, TolerationOperator,
};

/// Taints that every daemon pod tolerates.
const TOLERATED: &[(&str, TaintEffect)] = &[
    ("node.kubernetes.io/not-ready", TaintEffect::NoExecute),
    ("node.kubernetes.io/unreachable", TaintEffect::NoExecute),
    ("node.kubernetes.io/disk-pressure", TaintEffect::NoSchedule),
    ("node.kubernetes.io/memory-pressure", TaintEffect::NoSchedule),
    ("node.kubernetes.io/pid-pressure", TaintEffect::NoSchedule),
    ("node.kubernetes.io/unschedulable", TaintEffect::NoSchedule),
];
/// The taint that a daemon pod with host network tolerates in addition.
const NETWORK_UNAVAILABLE: &str = "node.kubernetes.io/network-unavailable";

/// A DaemonSet's pods, in the order of the nodes.
pub(super) fn expand(
    manifest: &WorkloadManifest<'_>,
    surroundings: &WorkloadInputs<'_>,
) -> Result<ExpandedWorkload, DecodeError> {
    if surroundings.replicas.is_some() {
        let message = "a DaemonSet has one pod for each node: omit --replicas";
        return Err(manifest.error("", message));
    }
    let wanted = manifest.field("spec.template.spec.nodeName").as_str().unwrap_or_default();
    let mut pod = owned_pod(manifest)?;
    pod.metadata.labels.insert("controller-revision-hash".into(), manifest.hash().as_str().into());
    pod.metadata.labels.insert("pod-template-generation".into(), "1".into());
    tolerate(&mut pod);
    let suits = |node: &&Arc<Node>| {
        (wanted.is_empty() || node.metadata.name == wanted) && suits(&pod, node)
    };
    let nodes: Vec<Symbol> =
        surroundings.nodes.iter().filter(suits).map(|node| node.metadata.name).collect();
    let others = surroundings.nodes.len() - nodes.len();
    let notices = (others > 0)
        .then(|| format!("{}: is not for {}", manifest.title(), count(others, "other node")));
    let name = manifest.name.to_owned();
    Ok(ExpandedWorkload {
        name: manifest.title(),
        owners: Vec::new(),
        replicas: nodes.len(),
        can_grow: false,
        notices: notices.into_iter().collect(),
        make: Box::new(move |number| match nodes.get(number) {
            Some(node) => vec![for_node(named(&pod, &format!("{name}-{node}")), *node).into()],
            None => Vec::new(),
        }),
    })
}

fn tolerate(pod: &mut Pod) {
    let network = pod.spec.host_network.then_some((NETWORK_UNAVAILABLE, TaintEffect::NoSchedule));
    let added = TOLERATED.iter().copied().chain(network).map(|(key, effect)| Toleration {
        key: Symbol::new(key),
        operator: TolerationOperator::Exists,
        effect,
        ..Toleration::default()
    });
    pod.spec.tolerations.update(|tolerations| {
        for toleration in added {
            let same = |other: &Toleration| {
                let Toleration { key, operator, value, effect, .. } = other;
                (*key, *operator, *value, *effect)
                    == (toleration.key, toleration.operator, toleration.value, toleration.effect)
            };
            tolerations.retain(|other| !same(other));
            tolerations.push(toleration);
        }
    });
}

/// Whether the controller would create a pod like this one, which runs on another node, for the
/// node. The node affinity of the DaemonSet itself is not known from its pods.
pub fn suits_daemon(pod: &Pod, node: &Node) -> bool {
    let mut pod = pod.clone();
    pod.spec.affinity = None;
    suits(&pod, node)
}

/// Whether the controller creates a pod for the node. An invalid selector matches no node.
fn suits(pod: &Pod, node: &Node) -> bool {
    let affinity = RequiredNodeAffinity::of(pod);
    let matches = affinity.matches(&node.metadata.labels, node.metadata.name).unwrap_or(false);
    let keeps_out = |effect| matches!(effect, TaintEffect::NoExecute | TaintEffect::NoSchedule);
    let taints = &node.spec.taints;
    let untolerated = find_untolerated_taint(taints, &pod.spec.tolerations, false, |taint| {
        keeps_out(taint.effect)
    });
    matches && untolerated.is_none()
}

/// Replaces the required node affinity with one for the node's name.
pub(crate) fn for_node(mut pod: Pod, node: Symbol) -> Pod {
    let by_name = NodeSelectorRequirement {
        key: "metadata.name".into(),
        operator: NodeSelectorOperator::In,
        values: vec![node],
    };
    let term = NodeSelectorTerm { match_expressions: Vec::new(), match_fields: vec![by_name] };
    let mut affinity = pod.spec.affinity.as_deref().cloned().unwrap_or_else(Affinity::default);
    let mut of_nodes = affinity.node_affinity.take().unwrap_or_default();
    of_nodes.required_during_scheduling_ignored_during_execution =
        Some(NodeSelector { node_selector_terms: vec![term] });
    affinity.node_affinity = Some(of_nodes);
    pod.spec.affinity = Some(Shared::new(affinity));
    pod
}
