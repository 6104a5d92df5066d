//! Opportunistic batching: a pod with the same signature as the pod before it, when the node chosen
//! for that pod is now full, tries the next best node of the stored ranking first.
//!
//! Upstream: `pkg/scheduler/framework/runtime/batch.go`.

use std::sync::Arc;

use crate::Scheduler;
use crate::cycle::Cycle;
use crate::cycle::select::Others;
use kubestep_api::Time;
use kubestep_api::intern::Symbol;
use kubestep_config::Feature;
use kubestep_framework::runtime::stopwatch::Work;

/// The maximum age of a ranking, in microseconds.
const MAX_AGE: i64 = 500_000;

/// What a profile stores about its last successful cycle.
#[derive(Clone, Default)]
pub(crate) struct Batch {
    ranking: Option<Ranking>,
    /// The count of the last successful cycle.
    cycle: u64,
    /// The node chosen in it.
    chosen: Symbol,
}

/// The nodes that were neither chosen nor returned as a hint yet, best first.
#[derive(Clone)]
struct Ranking {
    signature: Arc<String>,
    nodes: Others,
    made: Time,
}

/// Why a ranking cannot be used, with the reasons of upstream's metrics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unusable {
    /// There is none.
    Absent,
    /// It does not apply, for this reason.
    Flushed(&'static str),
}

impl Scheduler {
    /// The node hint for the pod: the next node of the stored ranking, which is removed from it.
    /// Upstream: `GetNodeHint`.
    pub(crate) fn node_hint(&mut self, cycle: &Cycle) -> Option<Symbol> {
        if !self.features.enabled(Feature::OpportunisticBatching) {
            return None;
        }
        let (timer, profile) = (self.shared.timer.clone(), cycle.framework.name());
        let turn = || {
            let usable = self.usable_ranking(cycle);
            if let Err(Unusable::Flushed(reason)) = usable {
                timer.note(Work::BatchFlush { profile, reason });
            }
            if usable.is_err() {
                timer.note(Work::BatchAttempt { profile, result: "no_hint" });
                return None;
            }
            self.batches.get_mut(&profile)?.ranking.as_mut()?.nodes.next()
        };
        timer.work(turn, |hint| Work::NodeHint { profile, hinted: hint.is_some() })
    }

    /// The error says why the stored ranking cannot be used for this pod.
    fn usable_ranking(&self, cycle: &Cycle) -> Result<(), Unusable> {
        let batch = self.batches.get(&cycle.framework.name()).ok_or(Unusable::Absent)?;
        let ranking = batch.ranking.as_ref().filter(|ranking| !ranking.nodes.is_empty());
        let ranking = ranking.ok_or(Unusable::Absent)?;
        let require = |is: bool, or: &'static str| is.then_some(()).ok_or(Unusable::Flushed(or));
        require(self.queue.scheduling_cycle() == batch.cycle + 1, "pod_skipped")?;
        require(cycle.signature.as_ref() == Some(&ranking.signature), "pod_incompatible")?;
        require(cycle.now.0 - ranking.made.0 <= MAX_AGE, "expired")?;
        // The next best node is the best one left only if the last chosen node is full now.
        let last = self.snapshot.by_name(batch.chosen).ok_or(Unusable::Flushed("node_missing"))?;
        let status = cycle.framework.run_filter(&self.cycle_context(cycle), &cycle.state, last);
        require(status.is_rejected(), "node_not_full")
    }

    /// Stores what a successful cycle chose, and the ranking of the other nodes. If the hint was
    /// used, the rest of the old ranking is kept. Upstream: `StoreScheduleResults`.
    pub(crate) fn remember_choice(
        &mut self,
        cycle: &Cycle,
        chosen: Symbol,
        others: impl FnOnce() -> Option<Others>,
    ) {
        if !self.features.enabled(Feature::OpportunisticBatching) {
            return;
        }
        let (timer, profile) = (self.shared.timer.clone(), cycle.framework.name());
        let turn = || {
            let batch = self.batches.entry(profile).or_default();
            batch.cycle = self.queue.scheduling_cycle();
            batch.chosen = chosen;
            match cycle.record.node_hint {
                Some(hint) if hint == chosen => {
                    return timer.note(Work::BatchAttempt { profile, result: "hint_used" });
                }
                Some(_) => timer.note(Work::BatchAttempt { profile, result: "hint_not_used" }),
                None => {}
            }
            let nodes = others().filter(|nodes| !nodes.is_empty());
            let reason = match (&nodes, &cycle.signature) {
                (None, _) => Some("empty_list"),
                (Some(_), None) => Some("pod_not_batchable"),
                (Some(_), Some(_)) => None,
            };
            if let Some(reason) = reason {
                timer.note(Work::BatchFlush { profile, reason });
            }
            let ranking = |(signature, nodes)| Ranking { signature, nodes, made: cycle.now };
            batch.ranking = cycle.signature.clone().zip(nodes).map(ranking);
        };
        timer.work(turn, |()| Work::StoredResults { profile });
    }
}
