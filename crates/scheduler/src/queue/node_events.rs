//! The cluster events of a node update.
//!
//! Upstream: `NodeSchedulingPropertiesChange` in `pkg/scheduler/framework/events.go`.

use std::collections::BTreeMap;

use kubestep_api::intern::Symbol;
use kubestep_api::{Condition, ConditionStatus, Node};
use kubestep_config::{Feature, FeatureGates};
use kubestep_framework::events::{Action, ClusterEvent, EventResource};

/// The events of the update, in upstream's order; none if nothing relevant changed. A node that is
/// uncordoned and loses a taint yields the taint event twice.
pub(crate) fn node_update_events(
    old: &Node,
    new: &Node,
    features: &FeatureGates,
) -> Vec<ClusterEvent> {
    let (before, after) = (&old.status, &new.status);
    let declares = features.enabled(Feature::NodeDeclaredFeatures);
    let changes = [
        (old.spec.unschedulable && !new.spec.unschedulable, Action::UPDATE_NODE_TAINT),
        (!same_amounts(old, new), Action::UPDATE_NODE_ALLOCATABLE),
        (old.metadata.labels != new.metadata.labels, Action::UPDATE_NODE_LABEL),
        (old.spec.taints != new.spec.taints, Action::UPDATE_NODE_TAINT),
        (
            statuses(&before.conditions) != statuses(&after.conditions),
            Action::UPDATE_NODE_CONDITION,
        ),
        (old.metadata.annotations != new.metadata.annotations, Action::UPDATE_NODE_ANNOTATION),
        (
            declares && before.declared_features != after.declared_features,
            Action::UPDATE_NODE_DECLARED_FEATURE,
        ),
    ];
    let happened = changes.into_iter().filter(|(changed, _)| *changed);
    happened.map(|(_, action)| ClusterEvent::new(EventResource::Node, action)).collect()
}

/// Whether both have the same allocatable amounts; a missing and an empty list are equal.
fn same_amounts(old: &Node, new: &Node) -> bool {
    old.allocatable().eq(new.allocatable())
}

fn statuses(conditions: &[Condition]) -> BTreeMap<Symbol, ConditionStatus> {
    conditions.iter().map(|condition| (condition.type_, condition.status)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubestep_api::{Quantity, ResourceList, Taint, Time};

    fn changed(change: impl FnOnce(&mut Node)) -> Node {
        let mut node = Node::default();
        change(&mut node);
        node
    }

    fn labels(old: &Node, new: &Node) -> Vec<String> {
        let events = node_update_events(old, new, &FeatureGates::default());
        events.iter().map(ClusterEvent::label).collect()
    }

    fn allocatable(amounts: &[(&str, &str)]) -> Node {
        let mut list = ResourceList::default();
        for (name, amount) in amounts {
            list.insert((*name).into(), Quantity::parse(amount).unwrap());
        }
        changed(|node| node.status.allocatable = Some(list))
    }

    fn tainted(value: &str) -> Node {
        let taint = Taint { key: "key".into(), value: value.into(), ..Default::default() };
        changed(|node| node.spec.taints = vec![taint])
    }

    fn ready(status: ConditionStatus, heartbeat: i64) -> Node {
        let last_probe_time = Some(Time(heartbeat));
        let ready =
            Condition { type_: "Ready".into(), status, last_probe_time, ..Default::default() };
        changed(|node| node.status.conditions = vec![ready])
    }

    fn declaring(features: &[&str]) -> Node {
        let features = features.iter().map(|name| (*name).into()).collect();
        changed(|node| node.status.declared_features = features)
    }

    /// Upstream's events_test.go, the tests on nodes.
    #[test]
    fn updates() {
        let plain = Node::default;
        let cordoned = || changed(|node| node.spec.unschedulable = true);
        let labelled = changed(|node| {
            node.metadata.labels.insert("foo".into(), "bar".into());
        });
        let annotated = changed(|node| {
            node.metadata.annotations.insert("foo".into(), "bar".into());
        });
        let (yes, no) = (ConditionStatus::True, ConditionStatus::False);
        let taint = "NodeUpdateNodeTaint";
        let features = "NodeUpdateNodeDeclaredFeature";
        let amounts = "NodeUpdateNodeAllocatable";
        let cases: [(Node, Node, &[&str]); 17] = [
            (plain(), plain(), &[]),
            (cordoned(), plain(), &[taint]),
            (plain(), cordoned(), &[]),
            (allocatable(&[("cpu", "1")]), allocatable(&[("cpu", "1000m")]), &[]),
            (allocatable(&[("cpu", "1")]), allocatable(&[("cpu", "2")]), &[amounts]),
            (allocatable(&[("a", "1")]), allocatable(&[("a", "1"), ("b", "1")]), &[amounts]),
            (plain(), allocatable(&[]), &[]),
            (plain(), labelled, &["NodeUpdateNodeLabel"]),
            (tainted("1"), tainted("1"), &[]),
            (tainted("1"), tainted("2"), &[taint]),
            (ready(yes, 1), ready(yes, 2), &[]),
            (ready(no, 1), ready(yes, 1), &["NodeUpdateNodeCondition"]),
            (ready(yes, 1), plain(), &["NodeUpdateNodeCondition"]),
            (plain(), annotated, &["NodeUpdateNodeAnnotation"]),
            (declaring(&["a"]), declaring(&["a", "b"]), &[features]),
            (declaring(&["a"]), plain(), &[features]),
            (declaring(&["a", "b"]), declaring(&["a", "b"]), &[]),
        ];
        for (case, (old, new, expected)) in cases.iter().enumerate() {
            assert_eq!(labels(old, new), *expected, "case {case}");
        }
    }

    #[test]
    fn several_changes_come_in_upstreams_order() {
        let mut old = tainted("1");
        old.spec.unschedulable = true;
        let mut new = allocatable(&[("cpu", "1")]);
        new.metadata.labels.insert("foo".into(), "bar".into());
        let expected = [
            "NodeUpdateNodeTaint",
            "NodeUpdateNodeAllocatable",
            "NodeUpdateNodeLabel",
            "NodeUpdateNodeTaint",
        ];
        assert_eq!(labels(&old, &new), expected);
    }

    #[test]
    fn declared_features_count_only_with_their_gate() {
        let gates = FeatureGates::default().with(Feature::NodeDeclaredFeatures, false);
        assert!(node_update_events(&declaring(&["a"]), &declaring(&[]), &gates).is_empty());
    }
}
