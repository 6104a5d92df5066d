//! One scheduling cycle, from the pop to Permit, and the handling of its failure.
//!
//! Upstream: `ScheduleOne`, `schedulingCycle` and `handleSchedulingFailure` in
//! `pkg/scheduler/schedule_one.go`.

use std::mem::take;
use std::sync::Arc;

use super::group::PodGroupCycle;
use super::schedule_pod::{SchedulePod, SchedulePodError};
use super::{Cycle, Failure};
use crate::Scheduler;
use crate::answers::matrix::FilterCycle;
use crate::cache::CacheError;
use crate::host::{Milestone, SchedulerHost};
use crate::interventions;
use kubestep_api::intern::Symbol;
use kubestep_api::{Condition, ConditionStatus, Name, Pod, Time};
use kubestep_config::versions::Switch;
use kubestep_config::{ExtensionPoint, Feature};
use kubestep_framework::effects::StateUpdate;
use kubestep_framework::host::{ApiEvent, PodStatusPatch};
use kubestep_framework::pod::{NamespacedName, PodInfo, QueuedPodInfo, conditions};
use kubestep_framework::preemption::executor::Preemptor;
use kubestep_framework::record::{CycleRecord, Outcome, PluginStatus};
use kubestep_framework::runtime::binding::PermitOutcome;
use kubestep_framework::status::node_statuses::Diagnosis;
use kubestep_framework::status::{Code, Status};

/// The longest note of an API event, in bytes.
const NOTE_LIMIT: usize = 1024;

impl Scheduler {
    /// Pops a pod and runs its scheduling cycle and, unless it has to wait at Permit, its
    /// binding cycle. `None` when no pod can be popped.
    pub fn schedule_one(&mut self, now: Time, host: &mut dyn SchedulerHost) -> Option<CycleRecord> {
        let queued = self.queue.pop(&self.cluster.queue_context(now))?;
        Some(self.schedule(queued, now, host))
    }

    /// Runs the cycle of a pod that was popped, or that of its group.
    pub(crate) fn schedule(
        &mut self,
        queued: QueuedPodInfo,
        now: Time,
        host: &mut dyn SchedulerHost,
    ) -> CycleRecord {
        if self.cluster.features.has(Switch::PodGroupCycles)
            && let Some(group) = self.cluster.group(&queued.info.pod)
        {
            return PodGroupCycle { scheduler: self, group, now, host }.run(queued);
        }
        match self.begin(queued, now, host) {
            Ok(cycle) => self.run(cycle, host),
            Err(dropped) => *dropped,
        }
    }

    /// Runs a cycle of one pod that has begun.
    pub(crate) fn run(&mut self, mut cycle: Cycle, host: &mut dyn SchedulerHost) -> CycleRecord {
        match self.select_node(&mut cycle, host) {
            Ok(node) => {
                cycle.record.node = Some(node);
                self.assume_and_bind(cycle, node, host)
            }
            Err(failure) => {
                self.fail(&mut cycle, failure, host);
                cycle.record
            }
        }
    }

    /// Updates the snapshot for the cycle of a pod. The error is the record of a pod that is
    /// skipped.
    pub(crate) fn begin(
        &mut self,
        queued: QueuedPodInfo,
        now: Time,
        host: &mut dyn SchedulerHost,
    ) -> Result<Cycle, Box<CycleRecord>> {
        self.cycles += 1;
        let mut record = self.new_record(&queued, now);
        host.reached(self, record.cycle, Milestone::Popped);
        let framework = self.profiles.frameworks.get(&record.profile).cloned();
        let Some(framework) = framework.filter(|_| !self.skips(&queued, host)) else {
            self.queue.done(record.uid);
            return Err(Box::new(record));
        };
        self.update_snapshot();
        record.nodes = self.algorithm.answers.records.names();
        record.start_index = self.algorithm.next_start_node_index;
        record.opaque = framework.opaque().cloned();
        if record.opaque.as_ref().is_some_and(|it| it.runs_at(ExtensionPoint::QueueSort)) {
            record.others_active = self.queue.others_in_order(&queued);
        }
        record.interventions = self.interventions.take(&queued.info);
        // As upstream, pods of a profile with a plugin that does not sign are not batched.
        let is_signed = record.opaque.as_ref().is_none_or(|opaque| opaque.lets_sign());
        let signs = is_signed && !interventions::decide(&record.interventions);
        let signature = self.signature(&queued, now).filter(|_| signs);
        let nominated = self.queue.update_nominated_pods();
        let is_nominated = self.queue.is_nominated(record.uid);
        let cycle = Cycle::new(framework, queued, record, nominated);
        Ok(Cycle { is_nominated, signature, ..cycle })
    }

    /// The pod's signature, as the queue computed it. It stays that of the pod before an update
    /// during an attempt. 1.35 computes it in each cycle.
    fn signature(&self, queued: &QueuedPodInfo, now: Time) -> Option<Arc<String>> {
        if self.cluster.features.has(Switch::PodsSignedWhenQueued) {
            return queued.signature.clone();
        }
        self.queue.signature(&self.cluster.queue_context(now), &queued.info)
    }

    /// The record of a cycle that ends before it begins.
    fn new_record(&self, queued: &QueuedPodInfo, now: Time) -> CycleRecord {
        CycleRecord {
            cycle: self.cycles,
            pod: queued.key(),
            uid: queued.uid(),
            info: Some(queued.info.clone()),
            attempt: queued.attempts,
            profile: queued.info.pod.spec.scheduler_name,
            time: now,
            outcome: Outcome::Dropped,
            tie_break: self.tie_break,
            ..CycleRecord::default()
        }
    }

    /// Whether the pod is skipped: it is being deleted, or assumed already.
    fn skips(&self, queued: &QueuedPodInfo, host: &mut dyn SchedulerHost) -> bool {
        let key = queued.key();
        if queued.info.pod.is_terminating() {
            host.event(ApiEvent {
                regarding: key,
                uid: queued.uid(),
                related: None,
                reporter: queued.info.pod.spec.scheduler_name,
                kind: "Warning",
                reason: "FailedScheduling",
                action: "Scheduling",
                note: format!("skip schedule deleting pod: {key}"),
            });
            return true;
        }
        self.cache.is_assumed(queued.uid())
    }

    /// Brings the snapshot up to date, and with it the answers that depend on its nodes.
    fn update_snapshot(&mut self) {
        let snapshot = &mut self.cluster.snapshot;
        let changed = self.cache.update_snapshot(snapshot);
        let answers = &mut self.algorithm.answers;
        answers.snapshot_changed(&changed, snapshot, &self.profiles.frameworks);
    }

    /// Filter and Score, or PostFilter when no node fits.
    pub(crate) fn select_node(
        &mut self,
        cycle: &mut Cycle,
        host: &mut dyn SchedulerHost,
    ) -> Result<Name, Failure> {
        let found = self.schedule_pod(cycle, host).run();
        self.apply_updates(&take(&mut cycle.state.updates));
        let selected = match found {
            Ok(node) => Ok(node),
            Err(SchedulePodError::Failed(status)) => Err(Failure::plain(status)),
            Err(SchedulePodError::Fit(diagnosis)) => Err(self.post_filter(cycle, *diagnosis, host)),
        };
        self.report_rejections(&mut cycle.record, cycle.now);
        selected
    }

    /// Reports to each plugin of the pod's profile that handles events which nodes it rejected: Filter
    /// cannot store that.
    pub(crate) fn report_rejections(&mut self, record: &mut CycleRecord, now: Time) {
        let handlers = self.profiles.handlers.clone();
        let own = handlers.iter().filter(|handler| handler.profiles.contains(&record.profile));
        for handler in own {
            let nodes = rejected_by(handler.plugin.name(), record);
            if !nodes.is_empty() {
                record.keeps_rejections = true;
                let cx = &mut self.handler_context(handler, now);
                handler.plugin.nodes_rejected(cx, &nodes);
            }
        }
    }

    /// Applies the changes of their states that plugins requested.
    pub(crate) fn apply_updates(&mut self, updates: &[StateUpdate]) {
        updates.iter().for_each(|update| update.apply(&mut self.cluster.shared.plugins));
    }

    /// The search for a node for the pod of this cycle.
    pub(crate) fn schedule_pod<'a>(
        &'a mut self,
        cycle: &'a mut Cycle,
        host: &'a mut dyn SchedulerHost,
    ) -> SchedulePod<'a> {
        SchedulePod {
            cluster: &self.cluster,
            profiles: &self.profiles,
            algorithm: &mut self.algorithm,
            popped: self.queue.scheduling_cycle(),
            cycle,
            host,
        }
    }

    /// Runs PostFilter on the verdicts of Filter.
    fn post_filter(
        &mut self,
        cycle: &mut Cycle,
        mut diagnosis: Diagnosis,
        host: &mut dyn SchedulerHost,
    ) -> Failure {
        let nodes = self.cluster.snapshot.placement().len();
        if cycle.framework.at(ExtensionPoint::PostFilter).is_empty() {
            return Failure::fit(Code::Unschedulable, diagnosis, nodes, Some(Name::EMPTY));
        }
        let (cx, framework) = (cycle.context(&self.cluster), &cycle.framework);
        let (state, answers) = (&cycle.state, &mut self.algorithm.answers);
        // The own nomination of a pod does not count on its node: what others find is not its result.
        let is_kept = diagnosis.statuses.has_code(Code::Unschedulable)
            && !self.queue.is_nominated(cx.pod.uid());
        let cycle_of_filter = FilterCycle { framework, cx, state };
        let mut known = is_kept.then(|| answers.take_dry_runs(cycle_of_filter)).flatten();
        let kept = known.as_mut().map(|(_, kept)| kept);
        let outcome = framework.run_post_filter(cx, state, &diagnosis.statuses, host, kept);
        if let Some((key, kept)) = known {
            answers.put_dry_runs(key, kept);
        }
        self.apply_updates(&outcome.effects.updates);
        self.reject_all_waiting(outcome.effects.reject_waiting, cycle.now, host);
        diagnosis.post_filter_message = outcome.status.message();
        let mut nominate = outcome.answer.nominate;
        cycle.record.post_filter = outcome.answers;
        cycle.record.candidates = outcome.answer.candidates;
        cycle.record.dry_run = outcome.answer.dry_run;
        cycle.record.victim_rule = outcome.answer.victim_rule;
        if let Some(preemption) = outcome.answer.preemption {
            cycle.record.preemption = Some(preemption.candidate.clone());
            let prefix = preemption.message_prefix;
            let preemptor = Preemptor::pod(&cycle.queued.info);
            if let Err(text) = self.start_preemption(preemptor, preemption, cycle.now, host) {
                let status = Status::error(format!("{prefix}{text}"));
                diagnosis.post_filter_message = status.message();
                nominate = None;
                // The plugin that preempts is the last one that was asked.
                if let Some(answer) = cycle.record.post_filter.last_mut() {
                    *answer = PluginStatus::new(answer.plugin, status.by(answer.plugin));
                }
            }
        }
        host.reached(self, cycle.record.cycle, Milestone::Ran(ExtensionPoint::PostFilter));
        Failure::fit(Code::Unschedulable, diagnosis, nodes, nominate)
    }

    /// Assumes the pod on `node`, reserves, and asks Permit.
    pub(crate) fn assume_and_permit(
        &mut self,
        cycle: &mut Cycle,
        node: Name,
        host: &mut dyn SchedulerHost,
    ) -> Result<PermitOutcome, Failure> {
        self.assume(cycle, node).map_err(Failure::plain)?;
        let pod = &cycle.queued.info;
        let mut cx = self.cluster.bind_context(pod, node, cycle.now, host);
        let (answers, status) = cycle.framework.run_reserve(&mut cx, &mut cycle.state);
        let records = &mut self.algorithm.answers.records;
        cycle.record.reserve = records.answers(ExtensionPoint::Reserve, answers);
        host.reached(self, cycle.record.cycle, Milestone::Ran(ExtensionPoint::Reserve));
        if !status.is_success() {
            return Err(self.undo_assume(cycle, node, status, host));
        }
        let mut outcome = self.permit(cycle, node, host);
        // Permit also runs in the trials of a group; only a pod that is really assumed is held.
        interventions::hold_at_permit(&cycle.record.interventions, &mut outcome);
        let records = &mut self.algorithm.answers.records;
        let answers = take(&mut outcome.answers);
        cycle.record.permit = records.answers(ExtensionPoint::Permit, answers);
        if !outcome.status.is_success() && !outcome.status.is_wait() {
            return Err(self.undo_assume(cycle, node, outcome.status, host));
        }
        self.activate_requested(cycle);
        host.reached(self, cycle.record.cycle, Milestone::Ran(ExtensionPoint::Permit));
        Ok(outcome)
    }

    /// Puts the pod on its node in the cache.
    fn assume(&mut self, cycle: &mut Cycle, node: Name) -> Result<(), Status> {
        let assumed = cycle.pod_on(node, &self.cluster.features);
        self.cache.assume_pod(assumed.clone()).map_err(Status::error)?;
        self.cluster.shared.pod_groups.assume(&assumed.pod);
        self.queue.delete_nominated_pod_if_exists(assumed.uid());
        cycle.queued.info = assumed;
        Ok(())
    }

    /// Runs Permit, and does at once what its plugins request for other pods.
    pub(crate) fn permit(
        &mut self,
        cycle: &mut Cycle,
        node: Name,
        host: &mut dyn SchedulerHost,
    ) -> PermitOutcome {
        let pod = &cycle.queued.info;
        let mut cx = self.cluster.bind_context(pod, node, cycle.now, host);
        let outcome = cycle.framework.run_permit(&mut cx, &mut cycle.state);
        let requested = take(&mut cycle.state.activate_at_once);
        if !requested.is_empty() {
            self.queue.activate(&self.cluster.queue_context(cycle.now), &requested);
        }
        for (uid, plugin) in take(&mut cycle.state.allow_at_once) {
            self.allow_waiting(uid, Some(plugin), cycle.now, host);
        }
        outcome
    }

    /// Unreserves and forgets the pod; a rejection becomes a FitError about that node.
    fn undo_assume(
        &mut self,
        cycle: &mut Cycle,
        node: Name,
        status: Status,
        host: &mut dyn SchedulerHost,
    ) -> Failure {
        // Upstream only logs that a pod cannot be forgotten.
        let _forgotten = self.unreserve_and_forget(cycle, node, host);
        Failure::after_selection(&self.cluster.snapshot, cycle.record.node, status)
    }

    /// Runs Unreserve and removes the pod from the cache.
    pub(crate) fn unreserve_and_forget(
        &mut self,
        cycle: &mut Cycle,
        node: Name,
        host: &mut dyn SchedulerHost,
    ) -> Result<(), CacheError> {
        let pod = &cycle.queued.info;
        let mut cx = self.cluster.bind_context(pod, node, cycle.now, host);
        cycle.framework.run_unreserve(&mut cx, &mut cycle.state);
        self.cache.forget_pod(pod)?;
        self.cluster.shared.pod_groups.forget(&pod.pod);
        let rejections = take(&mut cycle.state.reject_at_once);
        self.reject_all_waiting(rejections, cycle.now, host);
        Ok(())
    }

    /// Moves the pods that plugins requested into the active queue.
    pub(crate) fn activate_requested(&mut self, cycle: &mut Cycle) {
        let requested = take(&mut cycle.state.pods_to_activate);
        if requested.is_empty() {
            return;
        }
        let keys: Vec<_> = requested
            .into_iter()
            .map(|(namespace, name)| NamespacedName::new(namespace, name))
            .collect();
        self.queue.activate(&self.cluster.queue_context(cycle.now), &keys);
    }

    /// Handles a failed cycle: the pod goes back to the queue, its status and an event say why.
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
        let nominate = self.nomination(cycle, &failure);
        cycle.record.nominated_node = nominate.filter(|node| !node.is_empty());
        let diagnosis = failure.diagnosis.unwrap_or_default();
        cycle.queued.unschedulable_plugins = diagnosis.unschedulable_plugins;
        cycle.queued.pending_plugins = diagnosis.pending_plugins;
        cycle.queued.gating_plugin = None;
        cycle.queued.gating_message = None;
        // Up to 1.35, a nomination that was written while the pod waited at Permit stays.
        let is_current = self.cluster.features.has(Switch::FailureOfCurrentPod);
        let tried = (!is_current).then(|| cycle.queued.info.pod.clone());
        let is_same = self.requeue(cycle);
        host.reached(self, cycle.record.cycle, Milestone::Requeued);
        if !is_same {
            return;
        }
        let objects = &self.cluster.objects;
        self.queue.add_nominated_pod(&cycle.queued.info, nominate, objects);
        if !failure.status.is_success() {
            let pod = tried.unwrap_or_else(|| cycle.queued.info.pod.clone());
            // The informer has what was written before PreBind, even if no event came here yet.
            let written = cycle.announced.filter(|_| is_current);
            let nominated = written.unwrap_or(pod.status.nominated_node_name);
            let nominate = nominate.filter(|node| *node != nominated);
            report_failure(cycle, &pod, &message, nominate, host);
        }
    }

    /// The node that a failed pod is nominated to: empty clears, `None` leaves the nomination. Up to
    /// 1.34 a failure leaves it if no PostFilter plugin exists, and with the gate
    /// NominatedNodeNameForExpectation unless PostFilter ran.
    fn nomination(&self, cycle: &Cycle, failure: &Failure) -> Option<Name> {
        let features = &self.cluster.features;
        let ran = !cycle.record.post_filter.is_empty();
        if ran || features.has(Switch::NominationClearedOnFailure) {
            return failure.nominate;
        }
        let not_fitting = cycle.record.node.is_none() && failure.diagnosis.is_some();
        let kept = features.enabled(Feature::NominatedNodeNameForExpectation) || not_fitting;
        failure.nominate.filter(|_| !kept)
    }

    /// Returns the pod to the queue, unless it is bound or deleted. `false` when it was created
    /// again under the same name: then nothing more is reported about the old one. Older patch
    /// releases go on with the new one, which the queue has already.
    fn requeue(&mut self, cycle: &mut Cycle) -> bool {
        let (key, uid) = (cycle.queued.key(), cycle.queued.uid());
        let current = self.cluster.objects.pod(key).cloned();
        let is_dropped = self.cluster.features.has(Switch::RecreatedPodDropped);
        match current {
            Some(pod) if is_dropped && pod.spec.node_name.is_empty() && pod.metadata.uid != uid => {
                self.queue.done(uid);
                return false;
            }
            Some(pod) if pod.spec.node_name.is_empty() => {
                let info = PodInfo::with_features(pod, &self.cluster.features);
                cycle.queued.info = Arc::new(info);
                let (cx, queued) = (self.cluster.queue_context(cycle.now), cycle.queued.clone());
                if self.queue.add_unschedulable_if_not_present(&cx, queued).is_err() {
                    self.queue.done(uid);
                }
            }
            _ => self.queue.done(uid),
        }
        true
    }
}

/// Writes the event and, if anything changes, the condition and the new nomination.
fn report_failure(
    cycle: &Cycle,
    pod: &Pod,
    message: &str,
    nominate: Option<Name>,
    host: &mut dyn SchedulerHost,
) {
    host.event(ApiEvent {
        regarding: cycle.queued.key(),
        uid: pod.metadata.uid,
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
    let condition = conditions::updated(pod, condition, cycle.now);
    if condition.is_some() || nominate.is_some() {
        // Upstream only logs a failed write: the next attempt writes again.
        let patch = PodStatusPatch { condition, nominated_node: nominate };
        let _patched = host.patch_pod_status(cycle.queued.key(), patch);
    }
}

/// The nodes that a plugin rejected, also in a dry run of preemption.
fn rejected_by(plugin: Symbol, record: &CycleRecord) -> Vec<Name> {
    let is_own = |status: Option<&Status>| status.is_some_and(|status| status.plugin() == plugin);
    let rejected = record.nodes.order.iter().filter(|id| {
        let verdict = record.filter.verdicts.get(**id);
        let filtered = verdict.and_then(|verdict| record.verdicts.get(verdict));
        is_own(filtered) || is_own(record.dry_run.as_ref().and_then(|tried| tried.own(**id)))
    });
    rejected.map(|id| record.nodes.name(*id)).collect()
}

/// The message cut to the limit of an event note.
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
