//! Queueing hints: which events can make a pod schedulable that PodTopologySpread rejected.

use kubestep_api::{Node, Object, Pod};
use kubestep_config::FeatureGates;
use kubestep_config::versions::Switch;
use kubestep_framework::events::EventObjects;

use super::constraint::Constraints;
use crate::placed::is_placed;

/// Whether the event can make `pod` schedulable; `constraints` returns its hard constraints.
///
/// # Errors
/// The event carries neither pods nor nodes, or a constraint is invalid.
pub fn helps(
    features: &FeatureGates,
    pod: &Pod,
    event: &EventObjects,
    constraints: impl Fn() -> Result<Constraints, String>,
) -> Result<bool, String> {
    match (&event.old, &event.new) {
        (None | Some(Object::Pod(_)), Some(Object::Pod(_))) | (Some(Object::Pod(_)), None) => {
            let (old, new) = (as_pod(&event.old), as_pod(&event.new));
            let involved =
                [old, new].into_iter().flatten().all(|other| is_involved(features, other, pod));
            Ok(involved && pod_helps(pod, old, new, &constraints()?))
        }
        (None | Some(Object::Node(_)), Some(Object::Node(_))) | (Some(Object::Node(_)), None) => {
            Ok(node_helps(as_node(&event.old), as_node(&event.new), &constraints()?))
        }
        _ => Err("unexpected objects".to_owned()),
    }
}

fn as_pod(object: &Option<Object>) -> Option<&Pod> {
    match object {
        Some(Object::Pod(pod)) => Some(pod),
        _ => None,
    }
}

fn as_node(object: &Option<Object>) -> Option<&Node> {
    match object {
        Some(Object::Node(node)) => Some(node),
        _ => None,
    }
}

/// Whether `other` is the pod itself, or a pod in its namespace with a node or nominated node.
fn is_involved(features: &FeatureGates, other: &Pod, pod: &Pod) -> bool {
    let placed = is_placed(other, features, Switch::SpreadHintCountsNominated);
    other.metadata.uid == pod.metadata.uid
        || (placed && other.metadata.namespace == pod.metadata.namespace)
}

fn pod_helps(pod: &Pod, old: Option<&Pod>, new: Option<&Pod>, constraints: &Constraints) -> bool {
    let mut list = constraints.list.iter();
    let (Some(old), Some(new)) = (old, new) else {
        let one = old.or(new);
        return one.is_some_and(|one| list.any(|c| c.selector.matches(&one.metadata.labels)));
    };
    let tolerates_more = new.metadata.uid == pod.metadata.uid
        && new.spec.tolerations != old.spec.tolerations
        && constraints.list.iter().any(|constraint| constraint.honors_taints);
    let (old, new) = (&old.metadata.labels, &new.metadata.labels);
    tolerates_more
        || (old != new && list.any(|c| c.selector.matches(old) != c.selector.matches(new)))
}

fn node_helps(old: Option<&Node>, new: Option<&Node>, constraints: &Constraints) -> bool {
    let matches = |node: &Node| constraints.has_all_keys(&node.metadata.labels);
    let (Some(old), Some(new)) = (old, new) else {
        return old.or(new).is_some_and(matches);
    };
    if matches(old) != matches(new) {
        return true;
    }
    let value = |node: &Node, key| node.metadata.labels.get(key).copied().unwrap_or_default();
    let moved = constraints.list.iter().any(|c| value(old, c.key) != value(new, c.key));
    matches(new) && (moved || old.spec.taints != new.spec.taints)
}
