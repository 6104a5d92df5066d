//! Why is this pod where it is? Pending, and what blocks it, on how many nodes, and what of it
//! is near; or placed, and why there.
//!
//! [`why()`] looks at a cluster at one moment, with the history that led there; a [`WhyQuestion`]
//! can also be about the cycle that placed the pod. Either asks every plugin about every node on
//! a copy, so that it finds all that blocks it, also on nodes that the scheduler did not
//! evaluate, and also for a pod that was never tried. The pieces: [`model`] what an answer is
//! made of, [`cause`] what is behind a rejection, one file a plugin, `nodes` ranking and folding,
//! `place`, `problems`, `gate`, `references` and `group` what no node can help, [`spread`] the ledgers,
//! [`queue`], [`preemption`] and [`score`].

mod asking;
pub mod cause;
mod gate;
pub(super) mod group;
pub mod model;
mod nodes;
mod nominated;
pub mod preemption;
mod problems;
pub mod queue;
pub(super) mod references;
pub mod score;
pub mod spread;

use std::sync::Arc;

use crate::certainty::SessionCertainty;
use crate::trace::History;
use kubestep_api::{Name, Pod};
use kubestep_cluster::World;
use kubestep_framework::pod::{NamespacedName, PodInfo};
use kubestep_framework::record::{CycleRecord, Outcome, QueueName};
use kubestep_scheduler::what_if::Probe;

use cause::Memo;
pub(crate) use gate::{WorkloadGate, waiting};

pub use asking::{ask, ask_now, ask_of_cycle};
pub use model::*;
pub use nominated::Nomination;
pub use preemption::PreemptionWhy;
pub use queue::{HintCall, QueueMoveText, QueueWhy, RequeueingEvent};
pub use score::NodePlacement;
pub use spread::SpreadCounts;

/// What is asked about a pod.
#[derive(Clone, Copy)]
pub struct WhyQuestion<'a> {
    /// The cluster as it is.
    pub world: &'a World,
    /// What happened so far; what came after the state of `world` does not count.
    pub history: &'a History,
    /// Namespace and name of the pod.
    pub pod: NamespacedName,
    /// The cluster before the pod's cycle that is to be explained, where that is at hand: then
    /// nodes, scores and preemption are as that cycle found them.
    pub before: Option<(&'a World, &'a CycleRecord)>,
    /// The same for the cycle in which the pod preempted others.
    pub preempting: Option<(&'a World, &'a CycleRecord)>,
    /// Nodes whose scores are explained in any case.
    pub nodes: &'a [Name],
}

/// Why the pod is where it is, as the cluster is and without its past. `None` if there is no such
/// pod.
pub fn why(world: &World, pod: NamespacedName) -> Option<Why> {
    let history = &History::default();
    WhyQuestion { world, history, pod, before: None, preempting: None, nodes: &[] }.answer()
}

/// What PreFilter and the filters say of one node, for a pending pod. `None` if there is no such pod
/// or node, or no profile serves the pod.
pub(crate) fn of_one_node(
    world: &World,
    pod: NamespacedName,
    node: Name,
) -> Option<(Vec<PreFilterRejection>, NodeWhy)> {
    let object = unbound(world.api().objects().pod(pod)?);
    let probe = Probe::new(world.scheduler(), &info(world, pod, &object), world.now())?;
    nodes::examine_one(&probe, node, &memo(world, &|_| false))
}

/// What PreFilter says of a pending pod. `None` if there is no such pod, or no profile serves it.
fn before_any_node(world: &World, pod: NamespacedName) -> Option<Vec<PreFilterRejection>> {
    let object = unbound(world.api().objects().pod(pod)?);
    let probe = Probe::new(world.scheduler(), &info(world, pod, &object), world.now())?;
    Some(nodes::ahead(&probe))
}

impl WhyQuestion<'_> {
    /// The answer; `None` if there is no such pod.
    pub fn answer(&self) -> Option<Why> {
        let object = self.world.api().objects().pod(self.pod)?;
        let attempts = attempts(self.world, self.history, object);
        let (then, basis) = match self.before {
            Some((before, record)) => (before, Basis::Cycle { cycle: record.cycle }),
            None => (self.world, Basis::Now),
        };
        let asked = unbound(then.api().objects().pod(self.pod).unwrap_or(object));
        let probe = Probe::new(then.scheduler(), &info(then, self.pod, &asked), then.now());
        let record = self.before.map(|(_, record)| record);
        let last = record.or(attempts.last().map(Arc::as_ref));
        let placed = |pod| is_placed(then, self.history, pod);
        let memo = memo(then, &placed);
        let examined = probe.as_ref().map(|probe| nodes::examine(probe, last, &memo));
        let nodes::NodeResults { ahead, nodes, everywhere, groups } = examined.unwrap_or_default();
        let place = queue::place_of(self.world, object);
        let (moves, hints) = queue::story(self.world, self.history, self.pod);
        let mut why = Why {
            pod: self.pod,
            at: then.now(),
            basis,
            problems: problems::of(self.world, object, &place, !attempts.is_empty()),
            profile: probe.as_ref().map(|probe| probe.framework().name()),
            place,
            ahead,
            spread: probe.as_ref().map(spread::ledgers).unwrap_or_default(),
            nodes,
            everywhere,
            groups,
            nominations: probe
                .as_ref()
                .map(|probe| nominated::of(probe.pod(), probe.cx().nominated))
                .unwrap_or_default(),
            placement: None,
            certainty: None,
            preemption: None,
            queue: queue::of(self.world, self.pod),
            moves,
            hints,
            attempts: attempts.iter().map(attempt).collect(),
            rejected_before: None,
        };
        if let Some(probe) = &probe {
            why.placement = self.placement(&why, probe);
            why.preemption = self.preemption(&why, probe, &attempts);
            why.certainty = self.certainty(&why, probe, last);
        }
        Some(why)
    }

    /// Which pods it preempted, or could preempt.
    fn preemption(
        &self,
        why: &Why,
        probe: &Probe,
        attempts: &[Arc<CycleRecord>],
    ) -> Option<PreemptionWhy> {
        if let Some((before, record)) = self.preempting {
            let object = before.api().objects().pod(self.pod)?;
            let info = info(before, self.pod, object);
            let probe = Probe::new(before.scheduler(), &info, before.now())?;
            let found = preemption::of(&probe, before.now())?;
            return Some(preemption::as_decided(found, record));
        }
        let preempted = attempts.iter().rev().find_map(|record| preemption::recorded(record));
        let pending = !matches!(why.place, PodLocation::Bound { .. } | PodLocation::Ended { .. });
        match preempted {
            None if pending && !why.fits_somewhere() => preemption::of(probe, why.at),
            recorded => recorded,
        }
    }

    /// How certain the decision is: the recorded one, or the one that the next attempt would make.
    fn certainty(
        &self,
        why: &Why,
        probe: &Probe,
        last: Option<&CycleRecord>,
    ) -> Option<SessionCertainty> {
        let has_place = matches!(why.place, PodLocation::Bound { .. } | PodLocation::Ended { .. });
        if self.before.is_some() || has_place || !why.fits_somewhere() {
            return SessionCertainty::of(self.history, last?);
        }
        let mut fitting: Vec<Name> = why.fitting().map(|node| node.node).collect();
        fitting.sort_unstable();
        let nodes = probe.snapshot().iter();
        let fits = nodes.filter(|node| fitting.binary_search(&node.name).is_ok());
        let ids: Vec<_> = fits.map(|node| node.id).collect();
        let best = why.placement.as_ref().and_then(|placement| placement.ranking.first());
        SessionCertainty::supposed(self.history, probe, &ids, best.map(|row| row.node))
    }

    /// Why the pod has its node, or which one it would get.
    fn placement(&self, why: &Why, probe: &Probe) -> Option<NodePlacement> {
        match self.before {
            Some((_, record)) if record.node.is_some() => {
                Some(score::recorded(probe, record, self.nodes))
            }
            // A pod that is held back, such as by the size of its group, is not scored.
            _ if why.is_schedulable() && why.fits_somewhere() => {
                // As a cycle has them: in node order.
                let fitting: indexmap::IndexSet<Name> =
                    why.fitting().map(|node| node.node).collect();
                let order = probe.snapshot().iter().map(|node| node.name);
                let fitting: Vec<Name> = order.filter(|name| fitting.contains(name)).collect();
                score::supposed(probe, &fitting, self.nodes)
            }
            _ => None,
        }
    }
}

/// The pod without the node that it has: a binding wrote that into spec.nodeName, or the pod's
/// author did, and the API does not tell which. The question is about the other nodes.
fn unbound(pod: &Arc<Pod>) -> Arc<Pod> {
    let mut pod = pod.clone();
    if !pod.spec.node_name.is_empty() {
        Arc::make_mut(&mut pod).spec.node_name = Name::EMPTY;
    }
    pod
}

/// The pod as the queue parsed it, or parsed now.
pub(crate) fn info(world: &World, key: NamespacedName, pod: &Arc<Pod>) -> Arc<PodInfo> {
    let queued = world.scheduler().queue().get(key);
    let same = queued.filter(|queued| queued.uid() == pod.metadata.uid);
    let parsed = || Arc::new(PodInfo::with_features(pod.clone(), world.scheduler().features()));
    same.map_or_else(parsed, |queued| queued.info.clone())
}

/// The cycles of the pod up to the state of `world`.
fn attempts(world: &World, history: &History, pod: &Pod) -> Vec<Arc<CycleRecord>> {
    let key = NamespacedName::new(pod.metadata.namespace, pod.metadata.name);
    let so_far = world.scheduler().cycles();
    let own = |record: &&Arc<CycleRecord>| {
        let past = record.cycle <= so_far && !is_under_way(world, record);
        record.uid == pod.metadata.uid && past
    };
    history.cycles_of(key).filter(own).cloned().collect()
}

/// Whether the cycle is not over in this state: its pod is in flight and does not wait. What
/// became of it is not known yet.
fn is_under_way(world: &World, record: &CycleRecord) -> bool {
    let scheduler = world.scheduler();
    let waits = || scheduler.waiting().iter().any(|waiting| waiting.pod().uid() == record.uid);
    let in_flight = || scheduler.queue().queue_of(record.pod) == QueueName::InFlight;
    record.cycle == scheduler.cycles() && in_flight() && !waits()
}

/// What explainers have to know beside the plugins' state: which pods were placed, and where nodes
/// come from.
fn memo<'a>(world: &World, is_placed: &'a dyn Fn(NamespacedName) -> bool) -> Memo<'a> {
    let memo = Memo::new(is_placed);
    memo.one(|| world.provisioning().clone());
    memo
}

/// Whether a cycle placed the pod up to the state of `world`.
fn is_placed(world: &World, history: &History, pod: NamespacedName) -> bool {
    let so_far = world.scheduler().cycles();
    history.cycles_of(pod).any(|record| {
        let has_node = matches!(record.outcome, Outcome::Scheduled | Outcome::Waiting);
        has_node && record.cycle <= so_far
    })
}

fn attempt(record: &Arc<CycleRecord>) -> Attempt {
    Attempt {
        cycle: record.cycle,
        attempt: record.attempt,
        time: record.time,
        outcome: record.outcome.as_str(),
        node: record.node,
        nominated: record.nominated_node.filter(|node| !node.is_empty()),
        message: record.message.clone(),
    }
}
