//! How large a change is. Everything that is changed counts about one: what touches the pod
//! alone a little less than what touches others, an amount by how much of it is changed.

use crate::api::{Kind, Quantity};
use crate::debug::edit::{Edit, NodeEdit, PodEdit};
use crate::engine::pod::NamespacedName;
use crate::engine::resource::Resource;
use crate::intern::Symbol;
use crate::sim::World;

/// A pod that is evicted.
pub(super) const EVICTED: f64 = 1.5;
/// A node that is added: hardware.
const NODE: f64 = 3.0;
/// A node that is made larger.
const LARGER_NODE: f64 = 2.0;
/// A typing mistake that is corrected.
const CORRECTED: f64 = 0.5;
/// A change of one thing of a node: others feel it too.
const OF_NODE: f64 = 1.25;

/// The size of the edits for the pod.
pub(super) fn of(edits: &[Edit], world: &World, pod: NamespacedName) -> f64 {
    edits.iter().map(|edit| of_one(edit, world, pod)).sum()
}

fn of_one(edit: &Edit, world: &World, pod: NamespacedName) -> f64 {
    match edit {
        Edit::Delete(_) => EVICTED,
        Edit::AddNodes { count, .. } => NODE * f64::from(*count),
        Edit::Node(node, NodeEdit::Resize(resource, amount)) => {
            let node = world.api().node(*node);
            let old = node.and_then(|node| node.status.allocatable.as_ref()?.get(*resource));
            LARGER_NODE + old.map_or(1.0, |old| part(old, amount))
        }
        Edit::Node(..) => OF_NODE,
        Edit::Pod(key, PodEdit::Resize { resource, amount, .. }) => {
            1.0 + part_of_request(world, *key, *resource, amount)
        }
        Edit::Pod(_, PodEdit::Select(..)) => CORRECTED,
        Edit::Pod(key, _) if *key == pod => 1.0,
        // Only a value that was probably mistyped is set as a list.
        Edit::Set { path, .. } if path.ends_with(".values") => CORRECTED,
        Edit::Set { object, .. } if object.kind == Kind::Pod => 1.0,
        Edit::Pod(..) | Edit::Put(_) | Edit::Set { .. } => OF_NODE,
        // Edits that the search does not make.
        _ => 1.0,
    }
}

fn part(old: &Quantity, new: &Quantity) -> f64 {
    let (old, new) = (old.as_approximate_f64(), new.as_approximate_f64());
    if old > 0.0 { (new - old).abs() / old } else { 1.0 }
}

fn part_of_request(world: &World, pod: NamespacedName, resource: Symbol, new: &Quantity) -> f64 {
    let Some(pod) = world.api().objects().pod(pod) else { return 1.0 };
    let sum = pod.spec.containers.iter().filter_map(|one| one.resources.request(resource));
    let old: f64 = sum.map(Quantity::as_approximate_f64).sum();
    if old > 0.0 { (old - new.as_approximate_f64()).abs() / old } else { 1.0 }
}

/// What kind of change the edits are, whatever node, pod or amount they are about.
pub(super) fn kind(edits: &[Edit]) -> Vec<String> {
    edits.iter().map(kind_of_one).collect()
}

fn kind_of_one(edit: &Edit) -> String {
    let any = Symbol::new("*");
    match edit {
        Edit::Delete(key) => format!("delete {}", key.kind),
        Edit::AddNodes { .. } => "add nodes".into(),
        Edit::Node(_, NodeEdit::Resize(resource, _)) => format!("resize node {resource}"),
        Edit::Node(_, edit) => Edit::Node(any, edit.clone()).to_string(),
        Edit::Pod(_, PodEdit::Resize { resource, .. }) => format!("resize pod {resource}"),
        Edit::Pod(_, PodEdit::Priority(_)) => "priority".into(),
        edit => edit.to_string(),
    }
}

/// The amounts of the pod's containers, in the smallest units.
pub(super) fn requested_by_containers(pod: &crate::api::Pod) -> Resource {
    let mut sum = Resource::default();
    for container in pod.spec.containers.iter() {
        if let Some(requests) = &container.resources.requests {
            sum.add_list(requests);
        }
    }
    sum
}
