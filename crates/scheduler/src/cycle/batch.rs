//! Opportunistic batching: a pod that is like the one before it, and no longer fits where
//! that one went, tries the next best node of that one's ranking first (FW-220…229).
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

/// How long a ranking is good for, in microseconds.
const MAX_AGE: i64 = 500_000;

/// What a profile remembers of its last successful cycle.
#[derive(Clone, Default)]
pub(crate) struct Batch {
    ranking: Option<Ranking>,
    /// The count of the last successful cycle.
    cycle: u64,
    /// The node chosen in it.
    chosen: Symbol,
}

/// The nodes that were neither chosen nor proposed yet, best first.
#[derive(Clone)]
struct Ranking {
    signature: Arc<String>,
    nodes: Others,
    made: Time,
}

/// Why a ranking cannot be used, as upstream's metrics name it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unusable {
    /// There is none.
    Absent,
    /// There is one, but it does not apply.
    Flushed(&'static str),
}

impl Scheduler {
    /// The node that the last ranking proposes for the pod, taken out of it (FW-226).
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

    /// Whether the last ranking is one for this pod.
    fn usable_ranking(&self, cycle: &Cycle) -> Result<(), Unusable> {
        let batch = self.batches.get(&cycle.framework.name()).ok_or(Unusable::Absent)?;
        let ranking = batch.ranking.as_ref().filter(|ranking| !ranking.nodes.is_empty());
        let ranking = ranking.ok_or(Unusable::Absent)?;
        let require = |is: bool, or: &'static str| is.then_some(()).ok_or(Unusable::Flushed(or));
        require(self.queue.scheduling_cycle() == batch.cycle + 1, "pod_skipped")?;
        require(cycle.signature.as_ref() == Some(&ranking.signature), "pod_incompatible")?;
        require(cycle.now.0 - ranking.made.0 <= MAX_AGE, "expired")?;
        // Only if the last choice is full now is the next best node the best one left.
        let last = self.snapshot.by_name(batch.chosen).ok_or(Unusable::Flushed("node_missing"))?;
        let status = cycle.framework.run_filter(&self.cycle_context(cycle), &cycle.state, last);
        require(status.is_rejected(), "node_not_full")
    }

    /// Remembers what a successful cycle chose, and which nodes it would have taken next
    /// (FW-228).
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
