//! Taints, cordons and labels of nodes.
//!
//! Labels for a node's identity and topology are set by the kubelet and the cloud controller, which
//! would overwrite an edit. Upstream: `updateDefaultLabels` in `pkg/kubelet/kubelet_node_status.go`.

use super::{Obstacle, Remedies};
use crate::edit::{Edit, NodeEdit, PodEdit};
use crate::why::cause::{UntoleratedTaint, is_kept_by_controller};
use kubestep_api::intern::Symbol;
use kubestep_api::{Name, TaintEffect, Toleration, TolerationOperator};

/// Tolerates a taint, or removes it from the node.
pub(super) fn taint(need: &Obstacle<'_>, taint: &UntoleratedTaint) -> Remedies {
    let untaint = NodeEdit::Untaint(taint.key, Some(taint.effect));
    let untaint = vec![Edit::Node(need.node.name, untaint)];
    if is_kept_by_controller(taint.key) {
        return vec![untaint];
    }
    let operator = match taint.value.is_empty() {
        true => TolerationOperator::Exists,
        false => TolerationOperator::Equal,
    };
    vec![vec![tolerate(need, taint.key, operator, taint.value, taint.effect)], untaint]
}

/// No toleration: a cordoned node is usually about to be drained.
pub(super) fn cordoned(need: &Obstacle<'_>) -> Remedies {
    vec![vec![Edit::Node(need.node.name, NodeEdit::Uncordon)]]
}

fn tolerate(
    need: &Obstacle<'_>,
    key: Symbol,
    operator: TolerationOperator,
    value: Symbol,
    effect: TaintEffect,
) -> Edit {
    let toleration = Toleration { key, operator, value, effect, ..Toleration::default() };
    need.pod(PodEdit::Tolerate(toleration))
}

/// Labels that every kubelet sets.
const OF_KUBELET: [&str; 5] = [
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
];
/// Labels that a cloud provider sets; without one, a person does.
const OF_CLOUD: [&str; 6] = [
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type",
];

/// Sets a label of the node. `None` if it would be overwritten, or would be wrong for the node.
pub(super) fn set_label(need: &Obstacle<'_>, key: Symbol, value: Name) -> Option<Edit> {
    let is_free = !OF_KUBELET.contains(&key.as_str())
        && (!OF_CLOUD.contains(&key.as_str()) || need.node.label(key).is_none());
    is_free.then_some(Edit::Node(need.node.name, NodeEdit::Label(key, value)))
}

/// Removes a label of the node. `None` if the kubelet or a controller would add it again.
pub(super) fn remove_label(need: &Obstacle<'_>, key: Symbol) -> Option<Edit> {
    let is_fixed = OF_KUBELET.contains(&key.as_str()) || OF_CLOUD.contains(&key.as_str());
    (!is_fixed).then_some(Edit::Node(need.node.name, NodeEdit::Unlabel(key)))
}
