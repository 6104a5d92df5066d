//! Acting on what became of a group: its pods are bound or go back to the queue, and the group
//! is told (PG-008, PG-009).

use crate::Scheduler;
use crate::cycle::{Cycle, Failure};
use crate::host::SchedulerHost;
use kubestep_api::{Condition, ConditionStatus, Time, find_condition};
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::CycleRecord;
use kubestep_framework::status::Status;

use super::Verdict;
use super::attempt::{Attempt, Placed, group_refusal};

impl Scheduler {
    /// Binds the pod, or gives it back to the queue (PG-008).
    pub(super) fn submit(
        &mut self,
        mut cycle: Cycle,
        attempt: Option<Attempt>,
        verdict: &Verdict,
        host: &mut dyn SchedulerHost,
    ) -> CycleRecord {
        let group_failed = || Failure::plain(verdict.status.clone());
        let failure = match attempt {
            // A group that is refused as such says nothing of nominations.
            None if verdict.status.is_rejected() => Failure { nominate: None, ..group_failed() },
            None => group_failed(),
            Some(Attempt::Failed(failure)) => match verdict.status.is_error() {
                true if failure.status.is_rejected() => group_failed(),
                _ => failure,
            },
            Some(Attempt::Placed(_)) if verdict.status.is_error() => group_failed(),
            Some(Attempt::Placed(placed))
                if verdict.status.is_success() && placed.preempting.is_none() =>
            {
                cycle.record.node = Some(placed.node);
                return self.start_binding(cycle, placed.node, host);
            }
            Some(Attempt::Placed(placed)) => failure_of_placed(placed, verdict),
        };
        self.fail(&mut cycle, failure, host);
        cycle.record
    }

    /// Writes the group's condition, which never goes back from True (PG-009).
    pub(super) fn tell_group(
        &self,
        group: NamespacedName,
        verdict: &Verdict,
        now: Time,
        host: &mut dyn SchedulerHost,
    ) {
        let Some(object) = self.objects.pod_groups.get(&group) else { return };
        let (status, reason) = outcome_of(&verdict.status);
        let mut condition = Condition {
            type_: "PodGroupScheduled".into(),
            status,
            reason: reason.into(),
            message: verdict.status.message(),
            observed_generation: object.metadata.generation,
            last_transition_time: Some(now),
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
        // A write that fails is only logged upstream.
        let _sent = host.set_group_condition(group, condition);
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

/// Why a pod that has a place goes back to the queue with its group.
fn failure_of_placed(placed: Placed, verdict: &Verdict) -> Failure {
    match (placed.preempting, verdict.awaits_preemption) {
        (Some(own), true) => own,
        (None, true) => {
            Failure { nominate: Some(placed.node), ..Failure::plain(verdict.status.clone()) }
        }
        (_, false) => Failure::plain(group_refusal(&placed.permit.message())),
    }
}
