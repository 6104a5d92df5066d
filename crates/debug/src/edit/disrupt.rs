//! Drains and losses of nodes.

use std::collections::BTreeSet;

use crate::edit::node_set::NodeSet;
use crate::edit::{Applied, EditError};
use kubestep_api::Name;
use kubestep_api::words::count;
use kubestep_cluster::World;
use kubestep_cluster::disruption::{DrainRejection, RemovedPod, Replacement};

/// Deletes the nodes with their pods.
pub(super) fn lose(world: &mut World, nodes: NodeSet) -> Result<Applied, EditError> {
    let names = nodes.nodes(world)?;
    let before = removed_pods(world).len();
    world.lose_nodes(&names);
    let lost = &removed_pods(world)[before..];
    let mut notes =
        vec![format!("{} deleted with {}", count(lost.len(), "pod"), them(names.len()))];
    notes.extend(replaced(lost));
    Ok(Applied { notes })
}

/// Begins to drain the nodes.
pub(super) fn drain(world: &mut World, nodes: NodeSet, force: bool) -> Result<Applied, EditError> {
    let names = nodes.nodes(world)?;
    let before = removed_pods(world).len();
    let storage = with_empty_dir(world, &names);
    world.drain(&names, force).map_err(|rejected| rejection(nodes, &rejected))?;
    let evicted = &removed_pods(world)[before..];
    let mut notes = vec![format!("{} evicted", count(evicted.len(), "pod"))];
    notes.extend(replaced(evicted));
    let Some(disruptions) = world.disruptions() else { return Ok(Applied { notes }) };
    let blocked = disruptions.blocked().iter();
    let blocked =
        blocked.filter(|blocked| blocked.rejection.is_some() && names.contains(&blocked.node));
    notes.extend(blocked.filter_map(|blocked| {
        Some(format!("{} is not evicted: {}", blocked.pod, blocked.rejection.as_ref()?))
    }));
    let kept = disruptions.skipped().iter().filter(|kept| names.contains(&kept.node)).count();
    notes.extend(
        (kept > 0).then(|| format!("left in place (--ignore-daemonsets): {}", count(kept, "pod"))),
    );
    notes.extend((storage > 0).then(|| {
        format!("kubectl drain needs --delete-emptydir-data for {}", count(storage, "pod"))
    }));
    Ok(Applied { notes })
}

fn removed_pods(world: &World) -> &[RemovedPod] {
    world.disruptions().map_or(&[], |disruptions| disruptions.removed())
}

fn them(nodes: usize) -> String {
    if nodes == 1 { "it".into() } else { format!("{nodes} nodes") }
}

/// How many of the pods were recreated, if any.
fn replaced(removed_pods: &[RemovedPod]) -> Option<String> {
    let is_replaced = |removed: &&RemovedPod| matches!(removed.replacement, Replacement::Pod(_));
    let replaced = removed_pods.iter().filter(is_replaced).count();
    match (replaced, removed_pods.len()) {
        (0, _) => None,
        (all, of) if all == of => Some("controllers recreated all of them".into()),
        (some, _) => Some(format!("controllers recreated {}", count(some, "pod"))),
    }
}

fn rejection(nodes: NodeSet, rejected: &DrainRejection) -> EditError {
    let pods: Vec<String> = rejected.0.iter().map(ToString::to_string).collect();
    EditError(format!(
        "no controller recreates {}: kubectl drain needs --force, write drain {nodes} force",
        pods.join(", ")
    ))
}

/// How many pods of the nodes lose the data of an emptyDir volume.
fn with_empty_dir(world: &World, nodes: &[Name]) -> usize {
    let nodes: BTreeSet<Name> = nodes.iter().copied().collect();
    let pods = world.api().objects().pods.values();
    let on_them = pods.filter(|pod| nodes.contains(&pod.spec.node_name) && !pod.is_terminal());
    on_them.filter(|pod| pod.spec.volumes.iter().any(|volume| volume.empty_dir.is_some())).count()
}
