//! How [`NodeEdit`]s change a node.

use std::sync::Arc;

use crate::edit::{Applied, EditError, NodeEdit};
use crate::new_node::{self, NodeTemplate};
use kubestep_api::intern::Symbol;
use kubestep_api::{Kind, Name, Node, ObjectKey, Taint, TaintEffect};
use kubestep_cluster::World;

/// The taint of cordoned nodes.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
/// An upper bound: larger than any supported cluster.
const MOST_NODES: u32 = 100_000;

pub(super) fn apply(world: &mut World, name: Name, edit: &NodeEdit) -> Result<Applied, EditError> {
    let mut node = find(world, name)?.as_ref().clone();
    change(&mut node, edit)?;
    world.update(node.into());
    Ok(Applied::default())
}

fn change(node: &mut Node, edit: &NodeEdit) -> Result<(), EditError> {
    let name = node.metadata.name;
    match edit {
        NodeEdit::Cordon => cordon(node, true)?,
        NodeEdit::Uncordon => cordon(node, false)?,
        NodeEdit::Taint(taint) => add_taint(node, taint),
        NodeEdit::Untaint(key, effect) => {
            let before = node.spec.taints.len();
            let is_meant = |taint: &Taint| {
                taint.key == *key && effect.is_none_or(|effect| effect == taint.effect)
            };
            node.spec.taints.retain(|taint| !is_meant(taint));
            if node.spec.taints.len() == before {
                return Err(EditError(format!("node {name} has no such taint: {key}")));
            }
        }
        NodeEdit::Label(key, value) => {
            node.metadata.labels.insert(*key, *value);
        }
        NodeEdit::Unlabel(key) => {
            let had = node.metadata.labels.remove(*key);
            had.ok_or_else(|| EditError(format!("node {name} has no label {key}")))?;
        }
        NodeEdit::Resize(resource, amount) => {
            let capacity = node.status.capacity.get_or_insert_default();
            if capacity.get(*resource).is_none_or(|there| there < amount) {
                capacity.insert(*resource, amount.clone());
            }
            node.status.allocatable.get_or_insert_default().insert(*resource, amount.clone());
        }
    }
    Ok(())
}

/// Sets `unschedulable`, and the taint that the node controller adds for it.
fn cordon(node: &mut Node, unschedulable: bool) -> Result<(), EditError> {
    if node.spec.unschedulable == unschedulable {
        let state = if unschedulable { "already cordoned" } else { "not cordoned" };
        return Err(EditError(format!("node {} is {state}", node.metadata.name)));
    }
    node.spec.unschedulable = unschedulable;
    let (key, effect) = (Symbol::new(UNSCHEDULABLE), TaintEffect::NoSchedule);
    match unschedulable {
        true => add_taint(node, &Taint { key, effect, ..Taint::default() }),
        false => node.spec.taints.retain(|taint| (taint.key, taint.effect) != (key, effect)),
    }
    Ok(())
}

fn add_taint(node: &mut Node, taint: &Taint) {
    let same = |other: &&mut Taint| (other.key, other.effect) == (taint.key, taint.effect);
    match node.spec.taints.iter_mut().find(same) {
        Some(there) => there.value = taint.value,
        None => node.spec.taints.push(taint.clone()),
    }
}

/// Adds copies of a node.
pub(super) fn add_like(world: &mut World, like: Name, count: u32) -> Result<Applied, EditError> {
    let original = find(world, like)?.clone();
    let template = NodeTemplate::like(world.provisioning(), &original, Vec::new(), 1);
    add(world, &template, count)
}

/// Adds nodes of a template.
pub(super) fn add_new(world: &mut World, id: Symbol, count: u32) -> Result<Applied, EditError> {
    let template = new_node::find(world, &id).ok_or_else(|| {
        let ids = new_node::ids(world);
        let near = kubestep_config::suggest::closest(&id, ids.iter().map(|id| id.as_str()));
        let near = near.map(|near| format!(", did you mean {near:?}?")).unwrap_or_default();
        EditError(format!("no new node is known as {id:?}{near}"))
    })?;
    add(world, &template, count)
}

fn add(world: &mut World, template: &NodeTemplate, count: u32) -> Result<Applied, EditError> {
    if !(1..=MOST_NODES).contains(&count) {
        return Err(EditError(format!("{count} nodes cannot be added: the limit is {MOST_NODES}")));
    }
    let names = template.add(world, count);
    let shown = match names.as_slice() {
        [only] => only.to_string(),
        [first, .., last] => format!("{first} … {last}"),
        [] => String::new(),
    };
    let price = template.price.map(|price| format!(", {price:.4} an hour each"));
    let mut notes = vec![format!("added {shown}{}", price.unwrap_or_default())];
    notes.extend(
        template.closed.as_ref().map(|why| {
            format!("{} would not create it at present: {why}", template.origin.source())
        }),
    );
    Ok(Applied { notes })
}

fn find(world: &World, name: Name) -> Result<&Arc<Node>, EditError> {
    let key = ObjectKey { kind: Kind::Node, namespace: Symbol::EMPTY, name };
    world.api().node(name).ok_or_else(|| EditError::missing(key, world))
}
