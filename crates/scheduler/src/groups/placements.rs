//! Trying a group in one placement after the other and keeping the best (PG-006; alpha, behind
//! TopologyAwareWorkloadScheduling).

use crate::Scheduler;
use crate::cycle::Cycle;
use crate::host::SchedulerHost;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::pod_groups::placement::{GroupContext, Placement, Proposal};
use kubestep_framework::record::PlacementRecord;
use kubestep_framework::status::Status;
use kubestep_framework::tie_break::place;

use super::Outcome;
use super::attempt::Attempt;

/// A placement that was tried.
struct Tried {
    placement: Placement,
    outcome: Outcome,
}

impl Tried {
    /// Whether the group can start there, now or after preemption.
    fn is_possible(&self) -> bool {
        self.outcome.verdict.status.is_success() || self.outcome.verdict.awaits_preemption
    }

    /// Where the pods of the group would go.
    fn proposal(&self) -> Proposal<'_> {
        let attempts = self.outcome.attempts.iter().flatten();
        let assignments = attempts.filter_map(|attempt| match attempt {
            Attempt::Placed(placed) => Some((placed.original.clone(), placed.node)),
            Attempt::Failed(_) => None,
        });
        Proposal { placement: &self.placement, assignments: assignments.collect() }
    }

    fn record(&self) -> PlacementRecord {
        PlacementRecord {
            name: self.placement.name,
            nodes: self.placement.nodes.len(),
            placed: self.proposal().assignments.len(),
            status: self.outcome.verdict.status.clone(),
            total: None,
        }
    }
}

impl Scheduler {
    /// Tries the group in every placement that its constraints allow.
    pub(super) fn try_placements(
        &mut self,
        group: NamespacedName,
        cycles: Vec<Cycle>,
        host: &mut dyn SchedulerHost,
    ) -> Outcome {
        let Some(framework) = cycles.first().map(|cycle| cycle.framework.clone()) else {
            return Outcome::untried(cycles, Status::SUCCESS);
        };
        let cx = self.group_context(group, &cycles);
        let placements = match framework.run_placement_generate(&cx) {
            Ok(placements) => placements,
            Err(status) => return Outcome::untried(cycles, status),
        };
        let mut tried = Vec::new();
        for placement in placements {
            if let Err(text) = self.snapshot.assume_placement(&placement) {
                let text = format!("failed to assume pod group placement: {text}");
                return Outcome::untried(cycles, Status::error(&text));
            }
            let outcome = self.try_pods(cycles.clone(), host);
            self.snapshot.forget_placement();
            if outcome.verdict.status.is_error() {
                return outcome;
            }
            tried.push(Tried { placement, outcome });
        }
        self.best_placement(group, cycles, tried)
    }

    /// The outcome that counts: that of the best placement, or of the first if none will do.
    fn best_placement(
        &self,
        group: NamespacedName,
        cycles: Vec<Cycle>,
        tried: Vec<Tried>,
    ) -> Outcome {
        let mut records: Vec<PlacementRecord> = tried.iter().map(Tried::record).collect();
        let possible: Vec<usize> = (0..tried.len()).filter(|at| tried[*at].is_possible()).collect();
        let best = match possible.as_slice() {
            [] => return none_possible(tried, records),
            [only] => *only,
            several => {
                let proposals: Vec<_> = several.iter().map(|at| tried[*at].proposal()).collect();
                let totals = match self.placement_totals(group, &cycles, &proposals) {
                    Ok(totals) => totals,
                    Err(status) => return Outcome::untried(cycles, status),
                };
                for (at, total) in several.iter().zip(&totals) {
                    records[*at].total = Some(*total);
                }
                several[first_of_best(&totals, self.chance(&cycles))]
            }
        };
        let outcome = tried.into_iter().nth(best).map(|tried| tried.outcome);
        let outcome = outcome.unwrap_or_else(|| Outcome::untried(cycles, Status::SUCCESS));
        recorded(outcome, records, Some(best))
    }

    fn placement_totals(
        &self,
        group: NamespacedName,
        cycles: &[Cycle],
        proposals: &[Proposal<'_>],
    ) -> Result<Vec<i64>, Status> {
        let cx = self.group_context(group, cycles);
        match cycles.first() {
            Some(cycle) => cycle.framework.run_placement_score(&cx, proposals),
            None => Ok(vec![0; proposals.len()]),
        }
    }

    fn group_context(&self, group: NamespacedName, cycles: &[Cycle]) -> GroupContext<'_> {
        GroupContext {
            group,
            snapshot: &self.snapshot,
            objects: &self.objects,
            features: &self.features,
            shared: &self.shared,
            now: cycles.first().map(|cycle| cycle.now).unwrap_or_default(),
        }
    }

    /// What stands for chance in the group's first cycle.
    fn chance(&self, cycles: &[Cycle]) -> u64 {
        cycles.first().map_or(0, |cycle| self.tie_break.chance(cycle.record.cycle))
    }
}

/// The position of the best total; among equals the first, or one picked by `chance`.
fn first_of_best(totals: &[i64], chance: u64) -> usize {
    let best = totals.iter().max();
    let tied: Vec<usize> = (0..totals.len()).filter(|at| totals.get(*at) == best).collect();
    tied.get(place(chance, tied.len())).copied().unwrap_or(0)
}

/// The group fits nowhere: the first outcome stands for all.
fn none_possible(tried: Vec<Tried>, records: Vec<PlacementRecord>) -> Outcome {
    let count = tried.len();
    let first = tried.into_iter().next().map(|tried| tried.outcome);
    let mut outcome = first.unwrap_or_else(|| Outcome::untried(Vec::new(), Status::SUCCESS));
    // Upstream shows the error of the status alone, which is its first reason.
    let reasons = outcome.verdict.status.reasons();
    let reason = reasons.first().copied().unwrap_or_default();
    outcome.verdict.status = Status::unschedulable(&format!(
        "0/{count} placements are available, first placement status: {reason}"
    ));
    recorded(outcome, records, None)
}

/// The outcome with the placements written into the record of every pod.
fn recorded(mut outcome: Outcome, records: Vec<PlacementRecord>, best: Option<usize>) -> Outcome {
    for cycle in &mut outcome.cycles {
        cycle.record.placements.clone_from(&records);
        cycle.record.placement = best;
    }
    outcome
}
