//! Acting on the outcome of a group: its pods are bound or return to the queue, and the group's
//! condition is written.

use super::attempt::{Placed, PodAttempt, group_rejection};
use super::{GroupVerdict, PodGroupCycle};
use crate::cycle::{Cycle, Failure};
use kubestep_api::{Condition, ConditionStatus, find_condition};
use kubestep_framework::record::CycleRecord;
use kubestep_framework::status::Status;

impl PodGroupCycle<'_> {
    /// Binds the pod, or returns it to the queue.
    pub(super) fn submit(
        &mut self,
        mut cycle: Cycle,
        attempt: Option<PodAttempt>,
        verdict: &GroupVerdict,
    ) -> CycleRecord {
        let group_failed = || Failure::plain(verdict.status.clone());
        let failure = match attempt {
            // The rejection of the group leaves the nomination.
            None if verdict.status.is_rejected() => Failure { nominate: None, ..group_failed() },
            None => group_failed(),
            Some(PodAttempt::Failed(failure)) => match verdict.status.is_error() {
                true if failure.status.is_rejected() => group_failed(),
                _ => failure,
            },
            Some(PodAttempt::Placed(_)) if verdict.status.is_error() => group_failed(),
            Some(PodAttempt::Placed(placed))
                if verdict.status.is_success() && placed.preempting.is_none() =>
            {
                cycle.record.node = Some(placed.node);
                return self.scheduler.assume_and_bind(cycle, placed.node, self.host);
            }
            Some(PodAttempt::Placed(placed)) => failure_of_placed(placed, verdict),
        };
        self.scheduler.fail(&mut cycle, failure, self.host);
        cycle.record
    }

    /// Writes the group's condition, which never changes from True to False.
    pub(super) fn update_condition(&mut self, verdict: &GroupVerdict) {
        let groups = &self.scheduler.cluster.objects.pod_groups;
        let Some(object) = groups.get(&self.group) else { return };
        let (status, reason) = outcome_of(&verdict.status);
        let mut condition = Condition {
            type_: "PodGroupScheduled".into(),
            status,
            reason: reason.into(),
            message: verdict.status.message(),
            observed_generation: object.metadata.generation,
            last_transition_time: Some(self.now),
            last_probe_time: None,
        };
        if let Some(old) = find_condition(&object.status.conditions, condition.type_) {
            if old.status == ConditionStatus::True && status != ConditionStatus::True {
                return;
            }
            if old.status == status {
                condition.last_transition_time = old.last_transition_time;
            }
            if *old == condition {
                return;
            }
        }
        // Upstream only logs a failed write.
        let _sent = self.host.set_group_condition(self.group, condition);
    }
}

/// The condition's status and reason.
fn outcome_of(status: &Status) -> (ConditionStatus, &'static str) {
    match status.is_success() {
        true => (ConditionStatus::True, "Scheduled"),
        false if status.is_rejected() => (ConditionStatus::False, "Unschedulable"),
        false => (ConditionStatus::False, "SchedulerError"),
    }
}

/// Why a pod that was placed returns to the queue with its group.
fn failure_of_placed(placed: Placed, verdict: &GroupVerdict) -> Failure {
    match (placed.preempting, verdict.awaits_preemption) {
        (Some(own), true) => own,
        (None, true) => {
            Failure { nominate: Some(placed.node), ..Failure::plain(verdict.status.clone()) }
        }
        (_, false) => Failure::plain(group_rejection(&placed.permit.message())),
    }
}
