//! Opportunistic batching: a pod that is like the one before it, and no longer fits where
//! that one went, tries the next best node of that one's ranking first (FW-220…229).
//!
//! Upstream: `pkg/scheduler/framework/runtime/batch.go`.

use std::sync::Arc;

use crate::api::Time;
use crate::config::Feature;
use crate::engine::scheduler::Scheduler;
use crate::engine::scheduler::cycle::Cycle;
use crate::engine::scheduler::select::Others;
use crate::intern::Symbol;

/// How long a ranking is good for, in microseconds.
const MAX_AGE: i64 = 500_000;

/// What a profile remembers of its last successful cycle.
#[derive(Clone, Default)]
pub(super) struct Batch {
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

impl Scheduler {
    /// The node that the last ranking proposes for the pod, taken out of it (FW-226).
    pub(super) fn node_hint(&mut self, cycle: &Cycle) -> Option<Symbol> {
        let signature = cycle.signature.as_ref()?;
        let batch = self.batches.get(&cycle.framework.name())?;
        let ranking = batch.ranking.as_ref()?;
        let fresh = cycle.now.0 - ranking.made.0 <= MAX_AGE;
        let follows = self.queue.scheduling_cycle() == batch.cycle + 1;
        if !follows || !fresh || *signature != ranking.signature {
            return None;
        }
        // Only if the last choice is full now is the next best node the best one left.
        let last = self.snapshot.by_name(batch.chosen)?;
        let status = cycle.framework.run_filter(&self.cycle_context(cycle), &cycle.state, last);
        if !status.is_rejected() {
            return None;
        }
        let batch = self.batches.get_mut(&cycle.framework.name())?;
        let ranking = batch.ranking.as_mut()?;
        ranking.nodes.next()
    }

    /// Remembers what a successful cycle chose, and which nodes it would have taken next
    /// (FW-228). `others` is asked only if the pod has a signature.
    pub(super) fn remember_choice(
        &mut self,
        cycle: &Cycle,
        chosen: Symbol,
        others: impl FnOnce() -> Option<Others>,
    ) {
        if !self.features.enabled(Feature::OpportunisticBatching) {
            return;
        }
        let batch = self.batches.entry(cycle.framework.name()).or_default();
        batch.cycle = self.queue.scheduling_cycle();
        batch.chosen = chosen;
        if cycle.record.node_hint == Some(chosen) {
            return;
        }
        batch.ranking = cycle.signature.clone().and_then(|signature| {
            others().map(|nodes| Ranking { signature, nodes, made: cycle.now })
        });
    }
}
