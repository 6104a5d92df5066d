//! Plans: sets of edits that lift everything that is in the way of a pod on one node.

use hashbrown::{HashMap, HashSet};
use std::sync::Arc;

use crate::api::{Pod, PreemptionPolicy};
use crate::debug::edit::{Edit, PodEdit};
use crate::debug::fix::remedy::{self, Need, Remedies};
use crate::debug::fix::size;
use crate::debug::why::cause::{Detail, DeviceCause};
use crate::debug::why::{self, Blocker, NodeWhy, Why};
use crate::engine::node::NodeInfo;
use crate::engine::pod::NamespacedName;
use crate::engine::status::Code;
use crate::intern::Symbol;
use crate::sim::World;
use crate::trace::History;

/// Nodes of each group of like nodes that are planned for.
const NODES_A_GROUP: usize = 3;
/// Groups of like nodes that are planned for, the nearest first.
const GROUPS: usize = 60;
/// Ways to combine the remedies for one node.
const COMBINATIONS: usize = 96;
/// Priorities that are tried for preemption on one node.
const PRIORITIES: usize = 2;

/// Edits that may make the pod fit.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Plan {
    pub edits: Vec<Edit>,
    pub size: f64,
}

/// All plans, the smallest first; of equal size those for nearer nodes first.
pub(super) fn plans(world: &World, why: &Why) -> Vec<Plan> {
    let mut edits: Vec<Vec<Edit>> = Vec::new();
    for first in combine(&remedy::problems(world, why)) {
        edits.extend(after(world, why.pod, first));
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

/// Plans that begin with `first`: these edits alone, if that does, or what the nodes need then.
fn after(world: &World, pod: NamespacedName, first: Vec<Edit>) -> Vec<Vec<Edit>> {
    let mut world = world.clone();
    if first.iter().any(|edit| edit.apply(&mut world).is_err()) {
        return Vec::new();
    }
    let Some(why) = why::why(&world, &History::default(), pod) else { return Vec::new() };
    if why.fitting().next().is_some() {
        return vec![first];
    }
    let Some(object) = world.api().objects().pod(pod) else { return Vec::new() };
    let planner = Planner { world: &world, key: pod, pod: object, why: &why };
    let with_first = |rest: Vec<Edit>| first.iter().cloned().chain(rest).collect();
    planner.for_nodes().into_iter().map(with_first).collect()
}

struct Planner<'a> {
    world: &'a World,
    key: NamespacedName,
    pod: &'a Arc<Pod>,
    why: &'a Why,
}

impl Planner<'_> {
    fn for_nodes(&self) -> Vec<Vec<Edit>> {
        let cache = self.world.scheduler().cache();
        let infos: HashMap<Symbol, &Arc<NodeInfo>> =
            cache.nodes().map(|node| (node.name, node)).collect();
        let groups = self.why.groups.iter().take(GROUPS);
        let names = groups.flat_map(|group| group.nodes.iter().take(NODES_A_GROUP));
        let both = names.filter_map(|name| Some((self.why.node(*name)?, *infos.get(name)?)));
        both.flat_map(|(node, info)| self.for_node(node, info)).collect()
    }

    fn for_node(&self, node: &NodeWhy, info: &NodeInfo) -> Vec<Vec<Edit>> {
        let mut plans = combine(&self.needs(node, info, |_, _| true));
        if node.causes().any(|(_, cause)| is_occupied(&cause.detail)) {
            let others = self.needs(node, info, |_, detail| !is_occupied(detail));
            let add = Edit::AddNodes { count: 1, like: node.node };
            plans.extend(with(combine(&others), &add));
        }
        if node.blockers.iter().any(|blocker| blocker.code == Code::Unschedulable) {
            let firm = self.needs(node, info, |blocker, _| blocker.code != Code::Unschedulable);
            let firm = combine(&firm);
            plans.extend(self.evicting(info).iter().flat_map(|edit| with(firm.clone(), edit)));
        }
        plans
    }

    /// For each cause that `counts`, the ways to lift it.
    fn needs(
        &self,
        node: &NodeWhy,
        info: &NodeInfo,
        counts: impl Fn(&Blocker, &Detail) -> bool,
    ) -> Vec<Remedies> {
        let mut needs = Vec::new();
        for blocker in &node.blockers {
            for cause in blocker.causes.iter().filter(|cause| counts(blocker, &cause.detail)) {
                let (key, pod, world) = (self.key, self.pod, self.world);
                needs.push(remedy::of(&Need { world, key, pod, node: info, cause }));
            }
        }
        needs
    }

    /// Edits that let the pod evict others from the node.
    fn evicting(&self, node: &NodeInfo) -> Vec<Edit> {
        let own = self.pod.spec.priority.unwrap_or(0);
        if self.pod.spec.preemption_policy == Some(PreemptionPolicy::Never) {
            let lower = node.pods.iter().any(|pod| pod.priority() < own);
            return lower.then(|| remedy::may_preempt(self.key)).into_iter().collect();
        }
        let mut priorities: Vec<i32> = node.pods.iter().map(|pod| pod.priority()).collect();
        priorities.retain(|priority| *priority >= own);
        priorities.sort_unstable();
        priorities.dedup();
        let above = priorities.iter().filter_map(|priority| priority.checked_add(1));
        above.take(PRIORITIES).map(|above| Edit::Pod(self.key, PodEdit::Priority(above))).collect()
    }
}

/// Whether the cause is what other pods take, so that an empty node of that kind would do.
fn is_occupied(detail: &Detail) -> bool {
    match detail {
        Detail::Shortage(shortage) => shortage.needed <= shortage.allocatable,
        Detail::PortTaken(_) | Detail::PodInTheWay(_) => true,
        Detail::VolumeLimit(limit) => limit.count.is_some_and(|count| count.new <= count.limit),
        Detail::Devices(DeviceCause::TooFew { request }) => {
            request.suitable + request.taken >= request.wanted.max(1)
        }
        _ => false,
    }
}

fn with(plans: Vec<Vec<Edit>>, edit: &Edit) -> Vec<Vec<Edit>> {
    let add = |mut edits: Vec<Edit>| {
        edits.push(edit.clone());
        edits
    };
    plans.into_iter().map(add).collect()
}

/// Every way to take one remedy for each need. None if a need has no remedy.
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
