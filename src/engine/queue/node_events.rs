//! Which cluster events an update of a node means.
//!
//! Upstream: `NodeSchedulingPropertiesChange` in `pkg/scheduler/framework/events.go` (FW-265).

use std::collections::BTreeMap;

use crate::api::{Condition, ConditionStatus, Node};
use crate::config::{Feature, FeatureGates};
use crate::engine::framework::events::{Action, ClusterEvent, EventResource};
use crate::intern::Symbol;

/// The events that the update means, in upstream's order; none if nothing changed that
/// matters. A node that is uncordoned and loses a taint gives the taint event twice.
pub fn node_update_events(old: &Node, new: &Node, features: &FeatureGates) -> Vec<ClusterEvent> {
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

/// Whether both report the same allocatable amounts; none and an empty list are the same.
fn same_amounts(old: &Node, new: &Node) -> bool {
    old.allocatable().eq(new.allocatable())
}

fn statuses(conditions: &[Condition]) -> BTreeMap<Symbol, ConditionStatus> {
    conditions.iter().map(|condition| (condition.type_, condition.status)).collect()
}
