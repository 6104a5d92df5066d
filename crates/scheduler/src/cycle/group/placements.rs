//! Trying a group in one placement after the other and keeping the best (alpha, behind
//! TopologyAwareWorkloadScheduling).

use super::attempt::PodAttempt;
use super::{GroupOutcome, PodGroupCycle};
use crate::cycle::Cycle;
use kubestep_framework::plugin::GroupContext;
use kubestep_framework::pod_groups::{Placement, Proposal};
use kubestep_framework::record::PlacementRecord;
use kubestep_framework::status::Status;
use kubestep_framework::tie_break::pick_index;

/// A placement that was tried.
struct TriedPlacement {
    placement: Placement,
    outcome: GroupOutcome,
}

impl TriedPlacement {
    /// Whether the group can start there, now or after preemption.
    fn is_possible(&self) -> bool {
        self.outcome.verdict.status.is_success() || self.outcome.verdict.awaits_preemption
    }

    /// Where the pods of the group would go.
    fn proposal(&self) -> Proposal<'_> {
        let attempts = self.outcome.attempts.iter().flatten();
        let assignments = attempts.filter_map(|attempt| match attempt {
            PodAttempt::Placed(placed) => Some((placed.original.clone(), placed.node)),
            PodAttempt::Failed(_) => None,
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

impl PodGroupCycle<'_> {
    /// Tries the group in every placement that its constraints allow.
    pub(super) fn try_placements(&mut self, cycles: Vec<Cycle>) -> GroupOutcome {
        let Some(framework) = cycles.first().map(|cycle| cycle.framework.clone()) else {
            return GroupOutcome::untried(cycles, Status::SUCCESS);
        };
        let placements = match framework.run_placement_generate(&self.context()) {
            Ok(placements) => placements,
            Err(status) => return GroupOutcome::untried(cycles, status),
        };
        let mut tried = Vec::new();
        for placement in placements {
            if let Err(text) = self.scheduler.cluster.snapshot.assume_placement(&placement) {
                let text = format!("failed to assume pod group placement: {text}");
                return GroupOutcome::untried(cycles, Status::error(&text));
            }
            let outcome = self.try_pods(cycles.clone());
            self.scheduler.cluster.snapshot.forget_placement();
            if outcome.verdict.status.is_error() {
                return outcome;
            }
            tried.push(TriedPlacement { placement, outcome });
        }
        self.best_placement(cycles, tried)
    }

    /// The outcome of the best placement, or of the first if none is possible.
    fn best_placement(&self, cycles: Vec<Cycle>, tried: Vec<TriedPlacement>) -> GroupOutcome {
        let mut records: Vec<PlacementRecord> = tried.iter().map(TriedPlacement::record).collect();
        let possible: Vec<usize> = (0..tried.len()).filter(|at| tried[*at].is_possible()).collect();
        let best = match possible.as_slice() {
            [] => return none_possible(tried, records),
            [only] => *only,
            several => {
                let proposals: Vec<_> = several.iter().map(|at| tried[*at].proposal()).collect();
                let totals = match self.placement_totals(&cycles, &proposals) {
                    Ok(totals) => totals,
                    Err(status) => return GroupOutcome::untried(cycles, status),
                };
                for (at, total) in several.iter().zip(&totals) {
                    records[*at].total = Some(*total);
                }
                several[first_of_best(&totals, cycles.first().map_or(0, Cycle::random))]
            }
        };
        let outcome = tried.into_iter().nth(best).map(|tried| tried.outcome);
        let outcome = outcome.unwrap_or_else(|| GroupOutcome::untried(cycles, Status::SUCCESS));
        recorded(outcome, records, Some(best))
    }

    fn placement_totals(
        &self,
        cycles: &[Cycle],
        proposals: &[Proposal<'_>],
    ) -> Result<Vec<i64>, Status> {
        match cycles.first() {
            Some(cycle) => cycle.framework.run_placement_score(&self.context(), proposals),
            None => Ok(vec![0; proposals.len()]),
        }
    }

    /// What plugins see of the group.
    fn context(&self) -> GroupContext<'_> {
        let cluster = &self.scheduler.cluster;
        GroupContext {
            group: self.group,
            snapshot: &cluster.snapshot,
            objects: &cluster.objects,
            features: &cluster.features,
            shared: &cluster.shared,
            now: self.now,
        }
    }
}

/// The position of the best total; among equals the first, or one picked by `random`.
fn first_of_best(totals: &[i64], random: u64) -> usize {
    let best = totals.iter().max();
    let tied: Vec<usize> = (0..totals.len()).filter(|at| totals.get(*at) == best).collect();
    tied.get(pick_index(random, tied.len())).copied().unwrap_or(0)
}

/// The group fits in no placement: the first outcome stands for all.
fn none_possible(tried: Vec<TriedPlacement>, records: Vec<PlacementRecord>) -> GroupOutcome {
    let count = tried.len();
    let first = tried.into_iter().next().map(|tried| tried.outcome);
    let mut outcome = first.unwrap_or_else(|| GroupOutcome::untried(Vec::new(), Status::SUCCESS));
    // Upstream shows the error of the status alone, which is its first reason.
    let reasons = outcome.verdict.status.reasons();
    let reason = reasons.first().copied().unwrap_or_default();
    outcome.verdict.status = Status::unschedulable(&format!(
        "0/{count} placements are available, first placement status: {reason}"
    ));
    recorded(outcome, records, None)
}

/// The outcome with the placements written into the record of every pod.
fn recorded(
    mut outcome: GroupOutcome,
    records: Vec<PlacementRecord>,
    best: Option<usize>,
) -> GroupOutcome {
    for cycle in &mut outcome.cycles {
        cycle.record.placements.clone_from(&records);
        cycle.record.placement = best;
    }
    outcome
}
