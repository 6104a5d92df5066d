//! A cycle that is known already, done again: whoever goes back to an earlier state of the
//! cluster needs what the cycle changed, not once more what every plugin said of every node.
//!
//! The pod is popped, PreFilter and the chosen node's filters run, and from Reserve on all goes
//! its usual way. Left out are the other nodes' verdicts and all scores, which are most of the
//! work and change nothing but two things: where the next search starts, which is known, and
//! the ranking that batching remembers, which is not. So after the last of several cycles that
//! are done again like this, a cycle that follows might miss that ranking; run the last one as
//! [`Scheduler::schedule_one`] does, and each one before a cycle that was proposed a node.

use crate::Scheduler;
use crate::cycle::Cycle;
use crate::host::SchedulerHost;
use crate::interventions::by_hand;
use kubestep_api::Time;
use kubestep_api::intern::Symbol;
use kubestep_framework::pod::QueuedPod;
use kubestep_framework::record::{CycleRecord, LeftOut, Outcome};
use kubestep_framework::status::node_statuses::Diagnosis;

/// What is known of a cycle: enough to do it again without its matrices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Known {
    uid: Symbol,
    node: Symbol,
    /// Nodes that the search looked at, as the next search's start counts them (S-013).
    processed: usize,
}

impl Known {
    /// What is known by a cycle's record. `None` if it takes the whole cycle to do it again:
    /// only pods that were bound, by the search alone, can do without.
    pub fn of(record: &CycleRecord) -> Option<Known> {
        let by_search = record.node_hint.is_none()
            && record.nominated_first.is_none()
            && record.interventions.is_empty()
            && record.placements.is_empty()
            && record.extender_bind.is_none();
        let node = record.node.filter(|_| by_search && record.outcome == Outcome::Scheduled)?;
        Some(Known { uid: record.uid, node, processed: record.evaluated_nodes })
    }
}

impl Scheduler {
    /// Runs a cycle that is known. The record of it has no matrices. A pod that does not pass
    /// on its node, or another one than is known, gets a whole cycle. `None` when no pod can be
    /// popped.
    pub fn schedule_again(
        &mut self,
        known: &Known,
        now: Time,
        host: &mut dyn SchedulerHost,
    ) -> Option<CycleRecord> {
        let (queue, cx) = self.queue_context(now);
        let queued = queue.pop(&cx)?;
        let is_it = queued.uid() == known.uid && self.extenders.is_empty();
        match is_it && self.group(&queued.info.pod).is_none() {
            true => Some(self.schedule_known(queued, known, now, host)),
            false => Some(self.schedule(queued, now, host)),
        }
    }

    fn schedule_known(
        &mut self,
        queued: QueuedPod,
        known: &Known,
        now: Time,
        host: &mut dyn SchedulerHost,
    ) -> CycleRecord {
        let mut cycle = match self.begin(queued, now, host) {
            Ok(cycle) => cycle,
            Err(dropped) => return *dropped,
        };
        if !self.passes_on(&mut cycle, known.node) {
            cycle.state = by_hand::state(&cycle.record.interventions);
            return self.schedule_begun(cycle, host);
        }
        let nodes = self.snapshot.placement().len();
        self.next_start_node_index = (self.next_start_node_index + known.processed) % nodes;
        self.remember_choice(&cycle, known.node, || None);
        cycle.record.left_out = Some(LeftOut { feasible: known.processed, tied: false });
        cycle.record.node = Some(known.node);
        self.start_binding(cycle, known.node, host)
    }

    /// Runs PreFilter, and the filters on that node alone.
    fn passes_on(&self, cycle: &mut Cycle, node: Symbol) -> bool {
        let Some(node) = self.snapshot.by_name(node) else { return false };
        let allowed = self.pre_filter(cycle, &mut Diagnosis::default());
        let framework = cycle.framework.clone();
        let cx = self.cycle_context(cycle);
        matches!(allowed, Ok(Some(_)))
            && framework.run_filter_with_nominated(&cx, &cycle.state, node).is_success()
    }
}
