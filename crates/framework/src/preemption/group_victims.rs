//! Which pods a pod group evicts so that it can start anywhere in the cluster: remove everything
//! less important from all nodes, check whether the group fits, and put back as much as possible,
//! the most important first (alpha, gate WorkloadAwarePreemption).
//!
//! Pods of a group that may only be disrupted as a whole are evicted together or not at all.
//! Upstream: `pkg/scheduler/framework/preemption/{podgrouppreemption,types}.go`. Units of equal
//! importance are in node order; upstream's order is random.

use std::sync::Arc;

use indexmap::IndexMap;

use crate::go_sort;
use crate::objects::Objects;
use crate::pod::PodInfo;
use crate::pod_groups::pod_group_of;
use crate::preemption::budgets::DisruptionBudgets;
use crate::preemption::victims::start_time;
use crate::snapshot::Snapshot;
use crate::status::Status;
use kubestep_api::{DisruptionMode, PodGroup, PreemptionPolicy, Time, Uid};

/// The pod group that preempts.
#[derive(Clone, Copy, Debug)]
pub struct GroupPreemptor<'a> {
    /// The object of the pod group.
    pub group: &'a PodGroup,
    /// Its pods that are not scheduled.
    pub pods: &'a [Arc<PodInfo>],
}

/// Pods that are evicted together or not at all.
#[derive(Clone, PartialEq, Debug)]
pub struct Unit {
    /// The pods, in node order.
    pub pods: Vec<Arc<PodInfo>>,
    /// The priority of the group, or of the single pod.
    priority: i32,
    /// The start time of the first pod; as upstream, the other pods do not matter. Upstream reads
    /// the clock once for each pod that has not started, so the one that it reads earlier is older:
    /// the number is that order.
    started: (Time, usize),
}

/// The nodes of the cluster during the search: units are removed and put back, and the group is
/// tried.
pub trait PlacementTrial {
    /// Removes a unit's pods from their nodes.
    fn remove(&mut self, unit: &Unit);
    /// Puts the pods of a unit back on their nodes.
    fn add(&mut self, unit: &Unit);
    /// Whether the whole group can be scheduled now.
    fn schedule(&mut self) -> Status;
}

/// The priority of a group; 0 if none is set.
pub(crate) fn group_priority(group: &PodGroup) -> i32 {
    group.spec.priority.unwrap_or_default()
}

impl GroupPreemptor<'_> {
    /// Whether one of the pods has the preemption policy Never, which applies to the whole group.
    fn never_preempts(&self) -> bool {
        let never =
            |pod: &Arc<PodInfo>| pod.pod.spec.preemption_policy == Some(PreemptionPolicy::Never);
        self.pods.iter().any(never)
    }

    /// The smallest set of victims that this greedy search finds, the most important first.
    ///
    /// # Errors
    /// Why preemption does not help.
    pub fn select_victims(
        &self,
        units: Vec<Unit>,
        budgets: &DisruptionBudgets,
        trial: &mut dyn PlacementTrial,
    ) -> Result<Vec<Arc<PodInfo>>, Status> {
        if self.never_preempts() {
            return Err(Status::unschedulable("not eligible due to preemptionPolicy=Never."));
        }
        let priority = group_priority(self.group);
        let mut potential: Vec<Unit> =
            units.into_iter().filter(|unit| unit.priority < priority).collect();
        if potential.is_empty() {
            let text = "No preemption victims found for incoming preemptor";
            return Err(Status::unresolvable(text));
        }
        potential.iter().for_each(|unit| trial.remove(unit));
        let status = trial.schedule();
        if !status.is_success() {
            return Err(status);
        }
        go_sort::sort(&mut potential, Unit::is_more_important);
        let (violating, others) = budgets.split_units(potential);
        let mut victims = reprieve(violating, trial);
        victims.extend(reprieve(others, trial));
        go_sort::sort(&mut victims, Unit::is_more_important);
        Ok(victims.into_iter().flat_map(|unit| unit.pods).collect())
    }
}

/// Puts units back one by one and returns those that cannot stay.
fn reprieve(units: Vec<Unit>, trial: &mut dyn PlacementTrial) -> Vec<Unit> {
    let mut victims = Vec::new();
    for unit in units {
        trial.add(&unit);
        if !trial.schedule().is_success() {
            trial.remove(&unit);
            victims.push(unit);
        }
    }
    victims
}

impl Unit {
    fn new(pod: &Arc<PodInfo>, priority: i32, (now, turn): (Time, usize)) -> Unit {
        let turn = if pod.pod.status.start_time.is_some() { 0 } else { turn };
        Unit { pods: vec![pod.clone()], priority, started: (start_time(pod, now), turn) }
    }

    /// Whether the pods name a group. As upstream, a single such pod counts as a group too.
    fn is_group(&self) -> bool {
        self.pods.first().is_some_and(|pod| pod.pod.spec.scheduling_group.is_some())
    }

    /// The order in which units are put back: higher priority, then groups before pods, then larger
    /// groups, then the older unit.
    pub fn is_more_important(&self, other: &Unit) -> bool {
        if self.priority != other.priority {
            return self.priority > other.priority;
        }
        if self.is_group() != other.is_group() {
            return self.is_group();
        }
        if self.is_group() && self.pods.len() != other.pods.len() {
            return self.pods.len() > other.pods.len();
        }
        self.started < other.started
    }
}

/// All pods on nodes as units.
pub fn units(snapshot: &Snapshot, objects: &Objects, now: Time) -> Vec<Unit> {
    let mut units: IndexMap<Uid, Unit> = IndexMap::new();
    for (turn, pod) in snapshot.iter().flat_map(|node| node.pods.iter()).enumerate() {
        let clock = (now, turn);
        match disrupted_as_a_whole(objects, pod) {
            None => {
                units.insert(pod.uid(), Unit::new(pod, pod.priority(), clock));
            }
            Some(group) => {
                let whole = units.entry(group.metadata.uid);
                whole
                    .and_modify(|unit| unit.pods.push(pod.clone()))
                    .or_insert_with(|| Unit::new(pod, group_priority(group), clock));
            }
        }
    }
    units.into_values().collect()
}

/// The group of the pod, if its pods may only be disrupted as a whole.
fn disrupted_as_a_whole<'a>(objects: &'a Objects, pod: &PodInfo) -> Option<&'a PodGroup> {
    let group = objects.pod_groups.get(&pod_group_of(&pod.pod)?)?;
    (group.spec.disruption_mode == Some(DisruptionMode::PodGroup)).then_some(group)
}

#[cfg(test)]
mod tests;
