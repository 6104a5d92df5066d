//! Queueing hints: which events can make a pod schedulable that PodTopologySpread rejected.

use kubestep_api::{Node, Pod};
use kubestep_config::FeatureGates;
use kubestep_config::versions::Switch;
use kubestep_framework::events::{EventObjects, HintResult, QueueingHint};
use kubestep_framework::plugin::QueueContext;

use super::constraint::{Constraints, Defaults};
use crate::is_placed;

/// Another pod of the namespace helps if a constraint counts it, or no longer does.
pub(crate) fn after_pod_change(
    cx: &QueueContext<'_>,
    pod: &Pod,
    objects: &EventObjects,
    defaults: &Defaults,
) -> HintResult {
    let (old, new) = objects.pods()?;
    let is_involved = |other: &Pod| is_involved(cx.features, other, pod);
    if ![old, new].into_iter().flatten().all(is_involved) {
        return Ok(QueueingHint::Skip);
    }
    let constraints = Constraints::hard(pod, cx.objects, defaults)?;
    Ok(QueueingHint::queue_if(pod_helps(pod, old, new, &constraints)))
}

/// A node helps if it belongs to another domain than before.
pub(crate) fn after_node_change(
    cx: &QueueContext<'_>,
    pod: &Pod,
    objects: &EventObjects,
    defaults: &Defaults,
) -> HintResult {
    let (old, new) = objects.nodes()?;
    let constraints = Constraints::hard(pod, cx.objects, defaults)?;
    // Up to 1.31, an update counts as a new node.
    let old = old.filter(|_| new.is_none() || cx.features.has(Switch::SpreadHintComparesNode));
    Ok(QueueingHint::queue_if(node_helps(old, new, &constraints)))
}

/// Whether `other` is the pod itself (since 1.32), or a pod in its namespace with a node or
/// nominated node.
fn is_involved(features: &FeatureGates, other: &Pod, pod: &Pod) -> bool {
    let placed = is_placed(other, features, Switch::SpreadHintCountsNominated);
    let is_own = other.metadata.uid == pod.metadata.uid;
    (is_own && features.has(Switch::SpreadHintComparesNode))
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
