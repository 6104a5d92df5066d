//! The size of a change: the order in which proposals are tried and listed. Each change has a base
//! size; those of several add up. The smallest changes least: a typo or this pod alone; a request that
//! is less than half of what it was and a larger machine are the largest.

use std::sync::Arc;

use serde_json::Value;

use crate::edit::{self, Edit, NodeEdit, PodEdit};
use crate::fix::remedy::priority;
use kubestep_api::intern::Symbol;
use kubestep_api::{Kind, Node, Object, Quantity};
use kubestep_cluster::World;
use kubestep_config::suggest::is_typo_of;
use kubestep_framework::pod::NamespacedName;

// The order, smallest first.

/// A typo that is corrected: what was meant all along.
const CORRECTED: f64 = 0.5;
/// A change of this pod in place, such as a toleration: it affects nothing else.
const IN_PLACE: f64 = 1.0;
/// A request that is lowered, in addition to [`IN_PLACE`] and by the part that is lowered.
const LOWERED: f64 = 0.4;
/// A change of a node or another object, such as an uncordon: it affects other pods too.
const OF_OTHERS: f64 = 1.25;
/// A node that an autoscaler creates.
const NEW_NODE: f64 = 1.4;
/// A pod that is created again, as the field is immutable.
const RECREATED: f64 = 1.45;
/// A pod that is evicted or deleted: its work is interrupted.
pub(super) const EVICTED: f64 = 1.5;
/// A pod that is created: it has a purpose of its own.
const CREATED_POD: f64 = 1.75;
/// A node that is added: it disturbs nothing, but needs hardware. Two smaller changes come before it.
const NODE: f64 = 3.0;
/// A request that is lowered by more than [`DRASTIC_PART`]: the workload hardly works as intended.
const DRASTIC: f64 = 3.1;
/// A node that is made larger: it is replaced by another machine.
const LARGER_NODE: f64 = 3.5;

/// Lowering a request by more than this part of it is drastic.
const DRASTIC_PART: f64 = 0.5;

/// The size of the edits for the pod.
pub(super) fn of(edits: &[Edit], world: &World, pod: NamespacedName) -> f64 {
    edits.iter().map(|edit| of_one(edit, world, pod)).sum()
}

/// The size of one edit.
pub(super) fn of_one(edit: &Edit, world: &World, pod: NamespacedName) -> f64 {
    match edit {
        Edit::Delete(_) => EVICTED,
        Edit::AddNodes { count, .. } => NODE * f64::from(*count),
        Edit::AddNew { count, .. } => NEW_NODE * f64::from(*count),
        Edit::Node(node, NodeEdit::Resize(resource, amount)) => {
            let node = world.api().node(*node);
            let old = node.and_then(|node| node.status.allocatable.as_ref()?.get(*resource));
            LARGER_NODE + old.map_or(1.0, |old| part(old, amount))
        }
        Edit::Node(..) => OF_OTHERS,
        Edit::Pod(key, PodEdit::Resize { container, resource, amount }) => {
            let old = edit::request(world, *key, *container, *resource);
            lowered(old.map_or(1.0, |old| part(&old, amount)).min(1.0))
        }
        Edit::Pod(key, PodEdit::PriorityClass(class)) => RECREATED + raised(world, *key, *class),
        edit if corrects_typo(edit, world) => CORRECTED,
        edit if recreates_pod(edit) => RECREATED,
        Edit::Pod(key, _) if *key == pod => IN_PLACE,
        Edit::Set { object, .. } if object.kind == Kind::Pod => IN_PLACE,
        Edit::Put(Object::Pod(_)) => CREATED_POD,
        Edit::Put(Object::PriorityClass(class)) => {
            OF_OTHERS + f64::from(class.value.max(0)) / f64::from(priority::HIGHEST)
        }
        Edit::Pod(..) | Edit::Put(_) | Edit::Set { .. } => OF_OTHERS,
        // The search does not propose these.
        _ => IN_PLACE,
    }
}

/// Whether the edit changes an immutable field of a pod, or a label, by which others select the pod.
/// The gates, the requests and further tolerations of a pod can change in place.
fn recreates_pod(edit: &Edit) -> bool {
    match edit {
        Edit::Pod(_, edit) => !matches!(
            edit,
            PodEdit::Resize { .. } | PodEdit::Tolerate(_) | PodEdit::Gate(_) | PodEdit::Ungate(_)
        ),
        Edit::Set { object, path, .. } => object.kind == Kind::Pod && path.starts_with("spec."),
        _ => false,
    }
}

/// Whether the edit only replaces a name that does not exist with a similar one.
fn corrects_typo(edit: &Edit, world: &World) -> bool {
    match edit {
        Edit::Pod(pod, PodEdit::Select(key, new)) => {
            let pod = world.api().objects().pod(*pod);
            let old = pod.and_then(|pod| pod.spec.node_selector.as_ref()?.get(*key).copied());
            let has_old = |node: &Arc<Node>| node.metadata.labels.get(*key).copied() == old;
            old.is_some_and(|old| is_typo_of(&old.text(), &new.text()))
                && !world.api().nodes().any(has_old)
        }
        Edit::Set { object, path, value: Some(new) } => {
            let old = edit::value(world, *object, path);
            let both = old.as_ref().and_then(only_text).zip(only_text(new));
            let is_profile = |name: &str| {
                let profiles = world.scheduler().frameworks();
                path == "spec.schedulerName" && profiles.contains_key(&Symbol::new(name))
            };
            both.is_some_and(|(old, new)| is_typo_of(old, new) && !is_profile(old))
        }
        _ => false,
    }
}

/// A text, or the only element of a list.
fn only_text(value: &Value) -> Option<&str> {
    match value {
        Value::Array(items) if items.len() == 1 => items.first()?.as_str(),
        value => value.as_str(),
    }
}

fn part(old: &Quantity, new: &Quantity) -> f64 {
    let (old, new) = (old.as_approximate_f64(), new.as_approximate_f64());
    if old > 0.0 { (new - old).abs() / old } else { 1.0 }
}

/// A request that is lowered by this part of it.
fn lowered(part: f64) -> f64 {
    let base = if part > DRASTIC_PART { DRASTIC } else { IN_PLACE };
    base + LOWERED * part
}

/// How far the class raises the pod in the range of priorities. A class that is yet to be created
/// has exactly the priority needed and counts as an edit of its own.
fn raised(world: &World, pod: NamespacedName, class: Symbol) -> f64 {
    let objects = world.api().objects();
    let old = objects.pod(pod).and_then(|pod| pod.spec.priority).unwrap_or(0);
    let class = objects.priority_classes.get(&NamespacedName::new(Symbol::EMPTY, class.into()));
    let by = class.map_or(0, |class| i64::from(class.value) - i64::from(old));
    by.max(0) as f64 / f64::from(priority::HIGHEST)
}

/// The kind of the edits, without the nodes, pods and amounts in them.
pub(super) fn kind(edits: &[Edit]) -> Vec<String> {
    edits.iter().map(kind_of_one).collect()
}

fn kind_of_one(edit: &Edit) -> String {
    let any = Symbol::new("*");
    match edit {
        Edit::Delete(key) => format!("delete {}", key.kind),
        Edit::AddNodes { .. } => "add nodes".into(),
        Edit::AddNew { .. } => "add new nodes".into(),
        Edit::Node(_, NodeEdit::Resize(resource, _)) => format!("resize node {resource}"),
        Edit::Node(_, edit) => Edit::Node(any.into(), edit.clone()).to_string(),
        Edit::Pod(_, PodEdit::Resize { resource, .. }) => format!("resize pod {resource}"),
        Edit::Pod(_, PodEdit::PriorityClass(_)) => "priority class".into(),
        Edit::Put(Object::PriorityClass(_)) => "put priority class".into(),
        Edit::Put(Object::Pod(_)) => "put pod".into(),
        edit => edit.to_string(),
    }
}
