//! Problems that keep the pod from every node: an unknown scheduler, a gate, a group that is too
//! small or finds too few nodes, a missing class.

use serde_json::json;

use super::{Remedies, missing, set};
use crate::edit::{Edit, PodEdit};
use crate::why::group::{GroupSimulation, GroupSize, joint_pods};
use crate::why::{self, NodeWhy, ProblemKind, Why};
use kubestep_api::{Name, Pod};
use kubestep_cluster::World;
use kubestep_config::suggest;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::pod_groups::{PodGroupState, pod_group_of};

/// For each blocking problem of the pod, and each object it concerns, the remedies.
pub(in crate::fix) fn problems(world: &World, why: &Why) -> Vec<Remedies> {
    let Some(pod) = world.api().objects().pod(why.pod) else { return Vec::new() };
    let blocking = why.problems.iter().filter(|problem| problem.blocking);
    let mut kinds: Vec<ProblemKind> = blocking.map(|problem| problem.kind).collect();
    kinds.dedup();
    kinds.into_iter().flat_map(|kind| remedies(world, why.pod, pod, kind)).collect()
}

fn remedies(world: &World, key: NamespacedName, pod: &Pod, kind: ProblemKind) -> Vec<Remedies> {
    match kind {
        ProblemKind::NoProfile => vec![other_scheduler(world, key, pod)],
        // A plugin that gates the pod because something is missing ungates it when that exists.
        ProblemKind::Gate if pod.spec.scheduling_gates.is_empty() => Vec::new(),
        ProblemKind::Gate => vec![ungate(key, pod)],
        ProblemKind::Quorum => vec![group(world, pod)],
        ProblemKind::MissingNode => vec![other_node(world, key, pod)],
        ProblemKind::MissingObject => missing::objects(world, key),
        ProblemKind::UnboundClaim => missing::unbound(world, key),
        // New nodes are tried for every pod.
        ProblemKind::NoNodes => Vec::new(),
        _ => vec![Remedies::new()],
    }
}

/// The scheduler that was probably meant, otherwise every one that exists.
fn other_scheduler(world: &World, key: NamespacedName, pod: &Pod) -> Remedies {
    let profiles = world.scheduler().frameworks();
    let names: Vec<&str> = profiles.keys().map(|name| name.as_str()).collect();
    let near = suggest::closest(&pod.spec.scheduler_name, names.iter().copied());
    let chosen = near.map_or(names.clone(), |near| vec![near]);
    let set = |name: &str| vec![set(key, "spec.schedulerName".into(), Some(json!(name)))];
    chosen.into_iter().map(set).collect()
}

/// The node that was probably meant, if the pod fits there; otherwise any that the scheduler
/// selects.
fn other_node(world: &World, key: NamespacedName, pod: &Pod) -> Remedies {
    let names = world.api().nodes().map(|node| node.metadata.name);
    let near = suggest::closest_name(pod.spec.node_name, names);
    let path = || "spec.nodeName".to_owned();
    // A kubelet rejects a pod that does not fit.
    let fits = |name: &Name| {
        let why = why::why(world, key);
        why.is_some_and(|why| why.node(*name).is_some_and(NodeWhy::fits))
    };
    let correct = near.filter(fits).map(|near| vec![set(key, path(), Some(json!(near)))]);
    correct.into_iter().chain([vec![set(key, path(), None)]]).collect()
}

fn ungate(key: NamespacedName, pod: &Pod) -> Remedies {
    let gates = pod.spec.scheduling_gates.iter();
    let edits: Vec<Edit> = gates.map(|gate| Edit::Pod(key, PodEdit::Ungate(gate.name))).collect();
    if edits.is_empty() { Vec::new() } else { vec![edits] }
}

/// Lowers the size of the group to its number of pods, or to those that find a node; or adds a
/// node.
fn group(world: &World, pod: &Pod) -> Remedies {
    let tried = GroupSimulation::in_vain(world, pod);
    let native = || world.scheduler().pod_group(pod_group_of(pod)?).map(PodGroupState::all);
    let joint = || joint_pods(world, pod).map(|joint| joint.placed + joint.pending.len());
    let there = || native().or_else(joint);
    let count = tried.as_ref().map_or_else(there, |tried| Some(tried.found));
    let smaller = count.filter(|count| *count > 0);
    let smaller = smaller.and_then(|count| smaller_group(world, pod, count));
    let mut remedies: Remedies = smaller.into_iter().map(|edit| vec![edit]).collect();
    if let Some(GroupSimulation { needed, found, node: Some(like), .. }) = tried {
        let missing = u32::try_from(needed.saturating_sub(found)).unwrap_or(u32::MAX);
        remedies.push(vec![Edit::AddNodes { count: missing.max(1), like }]);
    }
    remedies
}

/// Lowers the size of the pod's group.
pub(in crate::fix) fn smaller_group(world: &World, pod: &Pod, count: usize) -> Option<Edit> {
    let GroupSize { group: object, field } = GroupSize::of(world, pod)?;
    Some(Edit::Set { object, path: field.to_owned(), value: Some(json!(count)) })
}
