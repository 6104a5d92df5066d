//! Repeating a cycle that was recorded: going back to an earlier state of the cluster needs what
//! the cycle changed, not the answers of every plugin about every node again.
//!
//! The pod is popped, PreFilter and the selected node's filters run, and from Reserve on the
//! cycle takes its usual course. Skipped are the other nodes' verdicts and all scores, which are
//! most of the work and change only two things: where the next search starts, which the record
//! shows, and the ranking that batching remembers, which it does not. So a cycle after several
//! repeated ones may miss that ranking: run the last one with [`Scheduler::schedule_one`], and
//! each one before a cycle that batching proposed a node to.

use crate::Scheduler;
use crate::cycle::Cycle;
use crate::cycle::schedule_pod::PreFilterNodes;
use crate::host::SchedulerHost;
use crate::interventions;
use kubestep_api::{Name, Time, Uid};
use kubestep_framework::pod::QueuedPodInfo;
use kubestep_framework::record::{CycleRecord, OmittedLists, Outcome};
use kubestep_framework::status::node_statuses::Diagnosis;

/// What is known of a cycle: enough to repeat it without its matrices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReplayHint {
    uid: Uid,
    node: Name,
    /// How many nodes the search processed, which moves the start of the next one.
    processed: usize,
}

impl ReplayHint {
    /// The hint that a cycle's record gives. `None` if only the whole cycle can repeat it: the
    /// pod was not bound, or more than the search decided about its node.
    pub fn of(record: &CycleRecord) -> Option<ReplayHint> {
        let by_search = record.node_hint.is_none()
            && record.nominated_first.is_none()
            && record.interventions.is_empty()
            && record.placements.is_empty()
            && !record.keeps_rejections
            && record.extender_bind.is_none();
        let node = record.node.filter(|_| by_search && record.outcome == Outcome::Scheduled)?;
        Some(ReplayHint { uid: record.uid, node, processed: record.evaluated_nodes })
    }

    /// Pops a pod and repeats its cycle. Its record has no matrices. A pod that does not pass on
    /// its node, or another pod than the recorded one, gets a whole cycle. `None` when no pod
    /// can be popped.
    pub fn schedule_one(
        &self,
        scheduler: &mut Scheduler,
        now: Time,
        host: &mut dyn SchedulerHost,
    ) -> Option<CycleRecord> {
        let queued = scheduler.queue.pop(&scheduler.cluster.queue_context(now))?;
        let is_it = queued.uid() == self.uid && scheduler.profiles.extenders.is_empty();
        match is_it && scheduler.cluster.group(&queued.info.pod).is_none() {
            true => Some(self.repeat(scheduler, queued, now, host)),
            false => Some(scheduler.schedule(queued, now, host)),
        }
    }

    fn repeat(
        &self,
        scheduler: &mut Scheduler,
        queued: QueuedPodInfo,
        now: Time,
        host: &mut dyn SchedulerHost,
    ) -> CycleRecord {
        let mut cycle = match scheduler.begin(queued, now, host) {
            Ok(cycle) => cycle,
            Err(dropped) => return *dropped,
        };
        if !self.passes(scheduler, &mut cycle, host) {
            cycle.state = interventions::initial_state(&cycle.record.interventions);
            return scheduler.run(cycle, host);
        }
        scheduler.apply_updates(&std::mem::take(&mut cycle.state.updates));
        let mut search = scheduler.schedule_pod(&mut cycle, host);
        search.advance_start(self.processed);
        search.remember(self.node, || None);
        cycle.record.omitted = Some(OmittedLists { feasible: self.processed });
        cycle.record.node = Some(self.node);
        scheduler.assume_and_bind(cycle, self.node, host)
    }

    /// Runs PreFilter, and the filters on the recorded node alone.
    fn passes(
        &self,
        scheduler: &mut Scheduler,
        cycle: &mut Cycle,
        host: &mut dyn SchedulerHost,
    ) -> bool {
        if scheduler.cluster.snapshot.by_name(self.node).is_none() {
            return false;
        }
        let allowed = scheduler.schedule_pod(cycle, host).pre_filter(&mut Diagnosis::default());
        let Some(node) = scheduler.cluster.snapshot.by_name(self.node) else { return false };
        let cx = cycle.context(&scheduler.cluster);
        matches!(allowed, Ok(PreFilterNodes::All | PreFilterNodes::Only(_)))
            && cycle.framework.run_filter_with_nominated(&cx, &cycle.state, node).is_success()
    }
}
