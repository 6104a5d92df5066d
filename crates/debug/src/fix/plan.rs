//! Plans: sets of edits that remove all causes of a rejection on one node.

use crate::edit::{Edit, owner};
use crate::fix::remedy::{Obstacle, Remedies, priority};
use crate::fix::{remedy, size};
use crate::new_node;
use crate::why;
use crate::why::cause::{Cause, CauseDetail, DeviceCause, Shortage};
use crate::why::group::{GroupSimulation, joint_pods};
use crate::why::{Blocker, NodeWhy, PodProblem, ProblemKind, RejectedGroup, Why};
use hashbrown::{HashMap, HashSet};
use indexmap::IndexMap;
use kubestep_api::{Kind, Name, Pod, PreemptionPolicy};
use kubestep_cluster::World;
use kubestep_framework::node::NodeInfo;
use kubestep_framework::pod::nominated::NominatedPods;
use kubestep_framework::pod::{NamespacedName, PodInfo};
use kubestep_framework::pod_groups::pod_group_of;
use kubestep_framework::status::Code;
use std::iter;
use std::sync::Arc;

/// Plans of one kind that are kept for a group of nodes with the same reasons.
const OF_A_KIND: usize = 3;
/// Groups of nodes with the same reasons that are planned for, the nearest first.
const GROUPS: usize = 60;
/// Ways to combine the remedies for one node.
const COMBINATIONS: usize = 96;
/// Priorities that are tried for preemption on one node, the lowest first.
const PRIORITIES: usize = 4;

/// A set of edits that may make the pod fit.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Plan {
    pub edits: Vec<Edit>,
    pub size: f64,
}

/// All plans, smallest first; at equal size those for nearer nodes first.
pub(super) fn plans(world: &World, why: &Why) -> Vec<Plan> {
    let mut edits: Vec<Vec<Edit>> = Vec::new();
    for first in combine(&remedy::problems(world, why)) {
        edits.extend(after(world, why.pod, first));
    }
    let is_of_group =
        |problem: &PodProblem| problem.blocking && problem.kind == ProblemKind::Quorum;
    if why.problems.iter().any(is_of_group) {
        // The other pods of its group may need free resources on nodes where this one does not fit.
        edits.extend(planned(world, why));
        edits.extend(beside_group(world, why.pod));
    }
    let mut seen = HashSet::new();
    let new = |edits: &Vec<Edit>| {
        let lines: Vec<String> = edits.iter().map(Edit::line).collect();
        !edits.is_empty() && seen.insert(lines)
    };
    let plan = |edits: Vec<Edit>| Plan { size: size::of(&edits, world, why.pod), edits };
    let mut plans: Vec<Plan> = edits.into_iter().filter(new).map(plan).collect();
    plans.sort_by(|a, b| a.size.total_cmp(&b.size));
    plans
}

/// Plans that begin with `first`: alone if that is enough, or with what the nodes need then.
fn after(world: &World, pod: NamespacedName, first: Vec<Edit>) -> Vec<Vec<Edit>> {
    let mut world = world.clone();
    if first.iter().any(|edit| edit.apply(&mut world).is_err()) {
        return Vec::new();
    }
    let Some(why) = why::why(&world, pod) else { return Vec::new() };
    if why.fitting().next().is_some() {
        return vec![first];
    }
    let with_first = |rest: Vec<Edit>| first.iter().cloned().chain(rest).collect();
    let new_nodes = new_node::edits(&world, pod).into_iter().map(|edit| vec![edit]);
    planned(&world, &why).into_iter().chain(new_nodes).map(with_first).collect()
}

/// The edits that the nodes need.
fn planned(world: &World, why: &Why) -> Vec<Vec<Edit>> {
    let Some(pod) = world.api().objects().pod(why.pod) else { return Vec::new() };
    let nominated = world.scheduler().queue().nominated_pods();
    Planner { world, key: why.pod, pod, why, nominated }.for_nodes()
}

/// What the pod needs when the other pods of its group are placed, and what the pod of the group
/// that then finds no node needs.
fn beside_group(world: &World, key: NamespacedName) -> Vec<Vec<Edit>> {
    let Some(pod) = world.api().objects().pod(key) else { return Vec::new() };
    let rejected = GroupSimulation::in_vain(world, pod).and_then(|tried| tried.rejected);
    let rejected = rejected.map(|(pod, _)| pod).filter(|pod| *pod != key);
    let plans = |last: NamespacedName| {
        let world = with_others_placed(world, last)?;
        let why = why::why(&world, last)?;
        Some(planned(&world, &why))
    };
    iter::once(key).chain(rejected).filter_map(plans).flatten().collect()
}

/// The cluster with the other pods of the group placed, as many as find a node.
fn with_others_placed(world: &World, last: NamespacedName) -> Option<World> {
    let mut world = world.clone();
    let pod = world.api().objects().pod(last)?.clone();
    remedy::smaller_group(&world, &pod, 1)?.apply(&mut world).ok()?;
    world.delete(Kind::Pod, last);
    match pod_group_of(&pod) {
        Some(group) => {
            let others: Vec<NamespacedName> =
                world.scheduler().pod_group(group)?.unscheduled().collect();
            // One cycle schedules the whole group.
            others.into_iter().find_map(|other| world.step_ahead(other))?;
        }
        None => {
            for other in joint_pods(&world, &pod)?.pending {
                world.step_ahead(other);
            }
        }
    }
    world.create(pod.into());
    Some(world)
}

struct Planner<'a> {
    world: &'a World,
    key: NamespacedName,
    pod: &'a Arc<Pod>,
    why: &'a Why,
    nominated: NominatedPods,
}

impl Planner<'_> {
    fn for_nodes(&self) -> Vec<Vec<Edit>> {
        let cache = self.world.scheduler().cache();
        let infos: HashMap<Name, &Arc<NodeInfo>> =
            cache.nodes().map(|node| (node.name, node)).collect();
        let groups = self.why.groups.iter().take(GROUPS);
        groups.flat_map(|group| self.for_group(group, &infos)).collect()
    }

    /// For each kind of change, the node of the group that needs the least.
    fn for_group(
        &self,
        group: &RejectedGroup,
        infos: &HashMap<Name, &Arc<NodeInfo>>,
    ) -> Vec<Vec<Edit>> {
        let mut seen: HashSet<Vec<String>> = HashSet::new();
        let mut sizes: HashMap<String, f64> = HashMap::new();
        let mut kinds: IndexMap<Vec<String>, Vec<(f64, Vec<Edit>)>> = IndexMap::new();
        let nodes: HashSet<Name> = group.nodes.iter().copied().collect();
        for node in self.why.nodes.iter().filter(|node| nodes.contains(&node.node)) {
            let Some(info) = infos.get(&node.node) else { continue };
            for edits in self.for_node(node, info) {
                let lines: Vec<String> = edits.iter().map(Edit::line).collect();
                let both = edits.iter().zip(&lines);
                let each = both.map(|(edit, line)| {
                    let size = || size::of_one(edit, self.world, self.key);
                    *sizes.entry_ref(line).or_insert_with(size)
                });
                let size: f64 = each.sum();
                if seen.insert(lines) {
                    kinds.entry(size::kind(&edits)).or_default().push((size, edits));
                }
            }
        }
        kinds.into_values().flat_map(smallest).collect()
    }

    fn for_node(&self, node: &NodeWhy, info: &NodeInfo) -> Vec<Vec<Edit>> {
        let mut plans = combine(&self.needs(node, info, |_, _| true));
        plans.extend(self.for_all_shortages(node, info));
        if node.causes().any(|(_, cause)| is_met_by_copy(&cause.detail)) {
            let others = self.needs(node, info, |_, detail| !is_met_by_copy(detail));
            let add = Edit::AddNodes { count: 1, like: node.node };
            plans.extend(with(combine(&others), &[add]));
        }
        if node.blockers.iter().any(|blocker| blocker.code == Code::Unschedulable) {
            let firm = self.needs(node, info, |blocker, _| blocker.code != Code::Unschedulable);
            let firm = combine(&firm);
            let evicting = self.evicting(info);
            plans.extend(evicting.iter().flat_map(|edits| with(firm.clone(), edits)));
        }
        plans
    }

    /// Where several resources are short: evicting pods that free enough of all of them.
    fn for_all_shortages(&self, node: &NodeWhy, info: &NodeInfo) -> Vec<Vec<Edit>> {
        let causes: Vec<&Cause> = node.causes().map(|(_, cause)| cause).collect();
        let is_shortage = |detail: &CauseDetail| matches!(detail, CauseDetail::Shortage(_));
        let shortages: Vec<&Shortage> = causes
            .iter()
            .filter_map(|cause| match &cause.detail {
                CauseDetail::Shortage(shortage) => Some(shortage),
                _ => None,
            })
            .collect();
        let [first, _, ..] = causes.as_slice() else { return Vec::new() };
        if shortages.len() < 2 {
            return Vec::new();
        }
        let holders = remedy::holders(&self.need(info, first));
        let Some(evict) = remedy::evict(&holders, &shortages) else { return Vec::new() };
        with(combine(&self.needs(node, info, |_, detail| !is_shortage(detail))), &evict)
    }

    fn need<'a>(&'a self, node: &'a NodeInfo, cause: &'a Cause) -> Obstacle<'a> {
        let nominated = self.nominated.for_node(node.name);
        Obstacle { world: self.world, key: self.key, pod: self.pod, node, nominated, cause }
    }

    /// The remedies for each cause that `counts`.
    fn needs(
        &self,
        node: &NodeWhy,
        info: &NodeInfo,
        counts: impl Fn(&Blocker, &CauseDetail) -> bool,
    ) -> Vec<Remedies> {
        let mut needs = Vec::new();
        for blocker in &node.blockers {
            for cause in blocker.causes.iter().filter(|cause| counts(blocker, &cause.detail)) {
                needs.push(remedy::of(&self.need(info, cause)));
            }
        }
        needs
    }

    /// Edits that let the pod preempt others on the node, or use resources reserved for nominated
    /// pods.
    fn evicting(&self, node: &NodeInfo) -> Vec<Vec<Edit>> {
        let own = self.pod.spec.priority.unwrap_or(0);
        let on_node = node.pods.iter().filter(|pod| !owner::is_of_node(&pod.pod));
        let pods = on_node.chain(self.nominated.for_node(node.name));
        let pods: Vec<&Arc<PodInfo>> = pods.filter(|pod| pod.key() != self.key).collect();
        let mut levels: Vec<i32> = Vec::new();
        if self.pod.spec.preemption_policy == Some(PreemptionPolicy::Never) {
            levels.extend(pods.iter().any(|pod| pod.priority() < own).then_some(own));
        }
        let higher = pods.iter().map(|pod| pod.priority()).filter(|priority| *priority >= own);
        levels.extend(higher.filter_map(|priority| priority.checked_add(1)));
        levels.sort_unstable();
        levels.dedup();
        let levels = levels.into_iter().take(PRIORITIES);
        levels.filter_map(|level| priority::at_least(self.world, self.key, level)).collect()
    }
}

/// The few smallest plans of one kind; at equal size those for nearer nodes.
fn smallest(mut plans: Vec<(f64, Vec<Edit>)>) -> Vec<Vec<Edit>> {
    plans.sort_by(|a, b| a.0.total_cmp(&b.0));
    plans.truncate(OF_A_KIND);
    plans.into_iter().map(|(_, edits)| edits).collect()
}

/// Whether an empty, schedulable copy of the node would not have the cause: it comes from other
/// pods or from the node's state.
fn is_met_by_copy(detail: &CauseDetail) -> bool {
    match detail {
        CauseDetail::Cordoned(_) | CauseDetail::NodeCondition(_) => true,
        CauseDetail::Shortage(shortage) => shortage.needed <= shortage.allocatable,
        CauseDetail::PortTaken(_) | CauseDetail::BlockedByPod(_) => true,
        CauseDetail::VolumeLimit(limit) => limit.count.is_none_or(|count| count.new <= count.limit),
        CauseDetail::Devices(DeviceCause::TooFew { request }) => {
            !request.all && request.suitable + request.taken >= request.wanted.max(1)
        }
        // A copy is a domain of its own if the domains are nodes, and adds room to a small one if
        // they are zones. What a plugin looks at is not known. Both are tried.
        CauseDetail::Spread(_) | CauseDetail::Plugin(_) => true,
        _ => false,
    }
}

/// The plans with more edits appended.
fn with(plans: Vec<Vec<Edit>>, more: &[Edit]) -> Vec<Vec<Edit>> {
    let add = |mut edits: Vec<Edit>| {
        let new: Vec<Edit> = more.iter().filter(|edit| !edits.contains(edit)).cloned().collect();
        edits.extend(new);
        edits
    };
    plans.into_iter().map(add).collect()
}

/// All combinations of one remedy per need. Empty if a need has no remedy.
fn combine(needs: &[Remedies]) -> Vec<Vec<Edit>> {
    let mut ways: Vec<Vec<Edit>> = vec![Vec::new()];
    for remedies in needs {
        let mut more = Vec::new();
        for way in &ways {
            for remedy in remedies {
                let mut way = way.clone();
                way.extend(
                    remedy.iter().filter(|edit| !way.contains(edit)).cloned().collect::<Vec<_>>(),
                );
                more.push(way);
            }
        }
        more.truncate(COMBINATIONS);
        ways = more;
    }
    ways
}
