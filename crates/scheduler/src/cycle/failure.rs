//! The failure handler: the pod goes back to the queue, and everybody is told (S-060…S-067).

use std::sync::Arc;

use crate::Scheduler;
use crate::cycle::{Cycle, Failure};
use crate::host::{Milestone, SchedulerHost};
use kubestep_api::intern::Symbol;
use kubestep_api::{Condition, ConditionStatus};
use kubestep_framework::host::{ApiEvent, PodStatusPatch};
use kubestep_framework::pod::PodInfo;
use kubestep_framework::pod::conditions;
use kubestep_framework::record::Outcome;

/// The longest note of an API event, in bytes (S-066).
const NOTE_LIMIT: usize = 1024;

impl Scheduler {
    /// Handles a failed cycle.
    pub(crate) fn fail(
        &mut self,
        cycle: &mut Cycle,
        failure: Failure,
        host: &mut dyn SchedulerHost,
    ) {
        let message = failure.status.message();
        cycle.record.outcome = match failure.status.is_rejected() {
            true => Outcome::Unschedulable,
            false => Outcome::SchedulerError,
        };
        cycle.record.message.clone_from(&message);
        cycle.record.nominated_node = failure.nominate.filter(|node| !node.is_empty());
        let diagnosis = failure.diagnosis.unwrap_or_default();
        cycle.queued.unschedulable_plugins = diagnosis.unschedulable_plugins;
        cycle.queued.pending_plugins = diagnosis.pending_plugins;
        cycle.queued.gating_plugin = None;
        cycle.queued.gating_message = None;
        let is_same = self.requeue(cycle);
        host.reached(self, cycle.record.cycle, Milestone::Requeued);
        if !is_same {
            return;
        }
        self.queue.add_nominated_pod(&cycle.queued.info, failure.nominate, &self.objects);
        if failure.status.is_success() {
            return; // S-065: nothing to say
        }
        self.tell(cycle, &message, failure.nominate, host);
    }

    /// Gives the pod back to the queue, unless it is bound or gone. `false` when it was made
    /// anew under the same name: then nothing more is said about the old one (S-062).
    fn requeue(&mut self, cycle: &mut Cycle) -> bool {
        let (key, uid) = (cycle.queued.key(), cycle.queued.uid());
        let current = self.objects.pod(key).cloned();
        match current {
            Some(pod) if pod.spec.node_name.is_empty() && pod.metadata.uid != uid => {
                self.queue.done(uid);
                return false;
            }
            Some(pod) if pod.spec.node_name.is_empty() => {
                cycle.queued.info = Arc::new(PodInfo::with_features(pod, &self.features));
                let queued = cycle.queued.clone();
                let (queue, cx) = self.queue_context(cycle.now);
                if queue.add_unschedulable_if_not_present(&cx, queued).is_err() {
                    queue.done(uid);
                }
            }
            _ => self.queue.done(uid),
        }
        true
    }

    /// Writes the event and, if anything changes, the condition and the nomination.
    fn tell(
        &self,
        cycle: &Cycle,
        message: &str,
        nominate: Option<Symbol>,
        host: &mut dyn SchedulerHost,
    ) {
        let pod = &cycle.queued.info.pod;
        host.event(ApiEvent {
            regarding: cycle.queued.key(),
            uid: cycle.queued.uid(),
            related: None,
            reporter: cycle.record.profile,
            kind: "Warning",
            reason: "FailedScheduling",
            action: "Scheduling",
            note: truncated(message),
        });
        let condition = Condition {
            type_: Symbol::new("PodScheduled"),
            status: ConditionStatus::False,
            reason: Symbol::new(cycle.record.outcome.as_str()),
            message: message.into(),
            ..Condition::default()
        };
        let nominated_node = nominate.filter(|node| *node != pod.status.nominated_node_name);
        let condition = conditions::updated(pod, condition, cycle.now); // S-067
        if condition.is_some() || nominated_node.is_some() {
            // A failed write is only logged upstream: the next attempt writes again.
            let patch = PodStatusPatch { condition, nominated_node };
            let _patched = host.patch_pod_status(cycle.queued.key(), patch);
        }
    }
}

/// The message cut to what an event can hold.
fn truncated(message: &str) -> String {
    if message.len() <= NOTE_LIMIT {
        return message.to_owned();
    }
    let suffix = " ...";
    let mut end = NOTE_LIMIT - suffix.len();
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{suffix}", &message[..end])
}

#[cfg(test)]
mod tests {
    use super::truncated;

    #[test]
    fn long_messages_are_cut_to_the_limit() {
        assert_eq!(truncated("short"), "short");
        let cut = truncated(&"x".repeat(2000));
        assert_eq!(cut.len(), 1024);
        assert!(cut.ends_with("x ..."));
    }
}
