//! Whom a pod group evicts so that it can start anywhere in the cluster: take everything less
//! important off all nodes, see whether the group then fits, and put back as much as possible,
//! the most important first (PR-070…073; alpha, behind WorkloadAwarePreemption).
//!
//! Pods of a group that may only be disrupted as a whole go or stay together. Upstream:
//! `pkg/scheduler/framework/preemption/{podgrouppreemption,types}.go`; units that are equally
//! important come in node order, where upstream leaves it to chance.

use std::sync::Arc;

use indexmap::IndexMap;

use crate::go_sort;
use crate::objects::Objects;
use crate::pod::PodInfo;
use crate::pod_groups::group_of;
use crate::preemption::budgets::Budgets;
use crate::preemption::victims::start_time;
use crate::snapshot::Snapshot;
use crate::status::Status;
use kubestep_api::intern::Symbol;
use kubestep_api::{DisruptionMode, PodGroup, PreemptionPolicy, Time};

/// The group that wants a place.
#[derive(Clone, Copy, Debug)]
pub struct GroupPreemptor<'a> {
    /// Its object.
    pub group: &'a PodGroup,
    /// Its pods that have no place.
    pub pods: &'a [Arc<PodInfo>],
}

/// Pods that are evicted together or not at all.
#[derive(Clone, PartialEq, Debug)]
pub struct Unit {
    /// The pods, in node order.
    pub pods: Vec<Arc<PodInfo>>,
    /// The priority of the group, or of the one pod.
    priority: i32,
    /// When the first pod started, whenever the others did. Upstream reads the clock once for
    /// each that has not, so of those the one looked at earlier is the older: the number says.
    started: (Time, usize),
}

/// The nodes of the cluster, to take units off and put them back, and to see whether the group
/// fits.
pub trait Trial {
    /// Takes a unit's pods off their nodes.
    fn remove(&mut self, unit: &Unit);
    /// Puts them back.
    fn add(&mut self, unit: &Unit);
    /// Whether the whole group finds a place now.
    fn schedule(&mut self) -> Status;
}

/// The priority of a group; 0 where none is set.
pub fn group_priority(group: &PodGroup) -> i32 {
    group.spec.priority.unwrap_or_default()
}

impl GroupPreemptor<'_> {
    /// Never, if one of the pods says so (PR-070).
    fn never_preempts(&self) -> bool {
        let never =
            |pod: &Arc<PodInfo>| pod.pod.spec.preemption_policy == Some(PreemptionPolicy::Never);
        self.pods.iter().any(never)
    }

    /// The smallest set of victims that this greedy search finds, the most important first.
    ///
    /// # Errors
    /// Why evicting pods does not help.
    pub fn select_victims(
        &self,
        units: Vec<Unit>,
        budgets: &Budgets,
        trial: &mut dyn Trial,
    ) -> Result<Vec<Arc<PodInfo>>, Status> {
        if self.never_preempts() {
            return Err(Status::unschedulable("not eligible due to preemptionPolicy=Never."));
        }
        let priority = group_priority(self.group);
        let mut potential: Vec<Unit> =
            units.into_iter().filter(|unit| unit.priority < priority).collect();
        if potential.is_empty() {
            let text = "No preemption victims found for incoming preemptor";
            return Err(Status::unresolvable(text)); // PR-072
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

/// Puts units back one by one and gives back those that cannot stay.
fn reprieve(units: Vec<Unit>, trial: &mut dyn Trial) -> Vec<Unit> {
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

    /// Any pod that names a group counts as one, also where it stands alone.
    fn is_group(&self) -> bool {
        self.pods.first().is_some_and(|pod| pod.pod.spec.scheduling_group.is_some())
    }

    /// The order in which units are put back: higher priority, then groups before pods, then
    /// larger groups, then the older ones (PR-072).
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

/// All pods on nodes as units (PR-071).
pub fn units(snapshot: &Snapshot, objects: &Objects, now: Time) -> Vec<Unit> {
    let mut units: IndexMap<Symbol, Unit> = IndexMap::new();
    for (turn, pod) in snapshot.iter().flat_map(|node| &node.pods).enumerate() {
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

/// The group of the pod, if its pods may only be disrupted together.
fn disrupted_as_a_whole<'a>(objects: &'a Objects, pod: &PodInfo) -> Option<&'a PodGroup> {
    let group = objects.pod_groups.get(&group_of(&pod.pod)?)?;
    (group.spec.disruption_mode == Some(DisruptionMode::PodGroup)).then_some(group)
}

#[cfg(test)]
mod tests;
