//! Replaying a known scheduling cycle without its matrices. Returning to an earlier state of the
//! cluster needs the effects of the cycle, not every plugin's verdict on every node.
//!
//! The pod is popped, PreFilter and the filters of the chosen node run, and from Reserve on the
//! cycle runs as usual. The verdicts on other nodes and all scores are skipped: they are most of
//! the work and affect only two things, the start of the next search, which is known, and the
//! ranking that batching stores, which is not. A cycle after a replayed one may therefore miss that
//! ranking. Run the last cycle of a replay, and each one before a cycle with a node hint, with
//! [`Scheduler::schedule_one`].

use crate::Scheduler;
use crate::cycle::Cycle;
use crate::interventions::by_hand;
use kubestep_api::Time;
use kubestep_api::intern::Symbol;
use kubestep_framework::host::Host;
use kubestep_framework::pod::QueuedPod;
use kubestep_framework::record::{CycleRecord, LeftOut, Outcome};
use kubestep_framework::status::node_statuses::Diagnosis;

/// What a record tells about a cycle: enough to replay it without its matrices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Known {
    uid: Symbol,
    node: Symbol,
    /// Number of nodes that the search evaluated, by which the start of the next search advances.
    processed: usize,
}

impl Known {
    /// Reads a cycle's record. `None` if only the whole cycle can be replayed: only a cycle that
    /// bound its pod, after an ordinary search, needs no matrices.
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
    /// Replays a known cycle. Its record has no matrices. If another pod is popped, or the pod does
    /// not pass the filters of its node, the whole cycle runs. `None` when no pod can be popped.
    pub fn schedule_again(
        &mut self,
        known: &Known,
        now: Time,
        host: &mut dyn Host,
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
        host: &mut dyn Host,
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
