//! Whether an event requeues a rejected pod, and into which queue.
//!
//! Upstream: `isPodWorthRequeuing`, `AddUnschedulableIfNotPresent`,
//! `movePodsToActiveOrBackoffQueue` and `flushUnschedulablePodsLeftover` in
//! `pkg/scheduler/backend/queue/scheduling_queue.go`.

use std::sync::Arc;

use super::{MoveCause, SchedulingQueue};
use crate::queue::hint_log;
use crate::queue::hints::{HintEntry, MatchingHints, QueuePlugins};
use kubestep_api::intern::Symbol;
use kubestep_api::{Object, Time};
use kubestep_config::versions::Switch;
use kubestep_framework::events::{ClusterEvent, EventObjects, EventResource, QueueingHint};
use kubestep_framework::plugin::QueueContext;
use kubestep_framework::pod::{NamespacedName, PodInfo, QueuedPodInfo};
use kubestep_framework::record::QueueName;
use kubestep_framework::stopwatch::Work;

/// How to requeue a rejected pod.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum QueueingStrategy {
    /// Not at all: it stays unschedulable.
    Skip,
    /// Into the backoff queue, or the active queue if its backoff is over.
    AfterBackoff,
    /// Into the active queue.
    Immediately,
}

/// How to requeue, and the plugin whose hint decided, if one did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RequeueDecision {
    pub(super) strategy: QueueingStrategy,
    pub(super) plugin: Option<Symbol>,
}

impl RequeueDecision {
    const SKIP: RequeueDecision =
        RequeueDecision { strategy: QueueingStrategy::Skip, plugin: None };
    pub(super) const AFTER_BACKOFF: RequeueDecision =
        RequeueDecision { strategy: QueueingStrategy::AfterBackoff, plugin: None };
}

/// An event with its objects and the registrations that match it.
#[derive(Clone, Copy)]
pub(super) struct JudgedEvent<'a> {
    pub(super) event: &'a ClusterEvent,
    pub(super) objects: &'a EventObjects,
    pub(super) hints: &'a MatchingHints<'a>,
}

impl JudgedEvent<'_> {
    /// `false` if no plugin that rejected the pod registered for the event: judging it would yield
    /// Skip. Depends on nothing else, so it is asked about one pod of each class.
    fn can_concern(&self, pod: &QueuedPodInfo) -> bool {
        let rejected_by = |plugin| {
            pod.unschedulable_plugins.contains(plugin) || pod.pending_plugins.contains(plugin)
        };
        let rejected = !pod.unschedulable_plugins.is_empty() || !pod.pending_plugins.is_empty();
        if !rejected || self.event.is_wildcard() {
            return true;
        }
        let entries = self.hints.of_profile(pod.info.pod.spec.scheduler_name);
        entries.is_none_or(|entries| entries.iter().any(|entry| rejected_by(&entry.plugin)))
    }
}

/// A pod that comes back from an attempt is already in a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("Pod {key} is already present in {}", name_in_error(*.queue))]
pub struct AlreadyQueued {
    /// Namespace and name of the pod.
    pub key: NamespacedName,
    /// The queue that has it.
    pub queue: QueueName,
}

fn name_in_error(queue: QueueName) -> &'static str {
    match queue {
        QueueName::Active => "the active queue",
        QueueName::Backoff => "the backoff queue",
        _ => "unschedulable queue",
    }
}

impl SchedulingQueue {
    /// Requeues a pod whose attempt failed. It must carry the plugins that rejected it. In every
    /// case it is no longer in flight afterwards.
    ///
    /// # Errors
    /// The pod is already in a queue.
    pub(crate) fn add_unschedulable_if_not_present(
        &mut self,
        cx: &QueueContext<'_>,
        pod: QueuedPodInfo,
    ) -> Result<(), AlreadyQueued> {
        self.begin(cx);
        let uid = pod.uid();
        let added = self.requeue_failed(cx, pod);
        if self.in_flight.contains(uid) {
            Arc::make_mut(&mut self.in_flight).done(uid);
        }
        added
    }

    fn requeue_failed(
        &mut self,
        cx: &QueueContext<'_>,
        mut pod: QueuedPodInfo,
    ) -> Result<(), AlreadyQueued> {
        let key = pod.key();
        match self.queue_except_in_flight(key) {
            QueueName::None | QueueName::InFlight => {}
            queue => return Err(AlreadyQueued { key, queue }),
        }
        if pod.unschedulable_plugins.is_empty() && pod.pending_plugins.is_empty() {
            pod.consecutive_errors += 1;
        } else {
            pod.unschedulable_count += 1;
            pod.consecutive_errors = 0;
        }
        pod.timestamp = cx.now;
        pod.backoff_expiration = self.settings.backoff_expiration(&pod);
        pod.flushed = false;
        if !self.settings.hints {
            self.requeue_failed_without_hints(cx, pod);
            return Ok(());
        }
        let verdict = self.judge_in_flight(cx, &pod);
        let label = Symbol::new("ScheduleAttemptFailure");
        self.requeue(cx, pod, QueueName::InFlight, verdict, label);
        Ok(())
    }

    /// Judges the events since the pod was popped.
    fn judge_in_flight(&mut self, cx: &QueueContext<'_>, pod: &QueuedPodInfo) -> RequeueDecision {
        let rejected = !pod.unschedulable_plugins.is_empty() || !pod.pending_plugins.is_empty();
        let grouped = self.settings.group_resource == Some(EventResource::PodGroup)
            && pod.info.pod.spec.scheduling_group.is_some();
        if !rejected || grouped {
            return RequeueDecision::AFTER_BACKOFF;
        }
        let Some(events) = self.in_flight.events_since(pod.uid()) else {
            return RequeueDecision::AFTER_BACKOFF;
        };
        let plugins = self.plugins.clone();
        let mut verdict = RequeueDecision::SKIP;
        for happened in events {
            let hints = plugins.matching(&happened.event);
            let (event, objects) = (&happened.event, &happened.objects);
            let judged = self.judge(cx, pod, JudgedEvent { event, objects, hints: &hints });
            match judged.strategy {
                QueueingStrategy::Skip => {}
                QueueingStrategy::Immediately => return judged,
                QueueingStrategy::AfterBackoff if pod.pending_plugins.is_empty() => return judged,
                QueueingStrategy::AfterBackoff => verdict = judged,
            }
        }
        verdict
    }

    /// Whether and how the event requeues the pod: by the hints of the plugins that rejected it.
    pub(super) fn judge(
        &mut self,
        cx: &QueueContext<'_>,
        pod: &QueuedPodInfo,
        judged: JudgedEvent<'_>,
    ) -> RequeueDecision {
        if pod.unschedulable_plugins.is_empty() && pod.pending_plugins.is_empty() {
            return RequeueDecision::AFTER_BACKOFF;
        }
        if judged.event.is_wildcard() {
            return match &judged.objects.new {
                Some(Object::Pod(only)) if only.metadata.uid == pod.uid() => {
                    RequeueDecision::AFTER_BACKOFF
                }
                Some(_) => RequeueDecision::SKIP,
                None => RequeueDecision::AFTER_BACKOFF,
            };
        }
        let profile = pod.info.pod.spec.scheduler_name;
        let Some(entries) = judged.hints.of_profile(profile) else {
            return RequeueDecision::AFTER_BACKOFF;
        };
        let mut verdict = RequeueDecision::SKIP;
        for entry in entries {
            let pending = pod.pending_plugins.contains(&entry.plugin);
            if !pending && !pod.unschedulable_plugins.contains(&entry.plugin) {
                continue;
            }
            if self.ask(cx, pod, entry, judged) == QueueingHint::Skip {
                continue;
            }
            let plugin = Some(entry.plugin);
            if pending {
                return RequeueDecision { strategy: QueueingStrategy::Immediately, plugin };
            }
            verdict = RequeueDecision { strategy: QueueingStrategy::AfterBackoff, plugin };
            if pod.pending_plugins.is_empty() {
                return verdict;
            }
        }
        verdict
    }

    /// Runs one plugin's hint and logs the answer. An error counts as Queue.
    fn ask(
        &mut self,
        cx: &QueueContext<'_>,
        pod: &QueuedPodInfo,
        entry: &HintEntry,
        judged: JudgedEvent<'_>,
    ) -> QueueingHint {
        let turn = || match &entry.hint {
            Some(hint) => hint(cx, &pod.info, judged.objects),
            None => Ok(QueueingHint::Queue),
        };
        let answer = cx.shared.timer.work(turn, |answer| Work::QueueingHint {
            plugin: entry.plugin,
            event: *judged.event,
            answer: hint_log::name(answer),
        });
        self.hint_log.note(cx.now, pod.key(), (entry.plugin, *judged.event), &answer);
        answer.unwrap_or(QueueingHint::Queue)
    }

    /// Puts the pod into the queue that the verdict names. Returns the queue that it is in now.
    pub(super) fn requeue(
        &mut self,
        cx: &QueueContext<'_>,
        pod: QueuedPodInfo,
        from: QueueName,
        verdict: RequeueDecision,
        event: Symbol,
    ) -> QueueName {
        let cause = MoveCause { event, plugin: verdict.plugin };
        match verdict.strategy {
            QueueingStrategy::Skip => self.put_unschedulable(pod, from, cause),
            QueueingStrategy::AfterBackoff if self.settings.is_backing_off(&pod, cx.now) => {
                self.move_to_backoff(cx, pod, from, cause)
            }
            _ => self.move_to_active(cx, pod, from, cause),
        }
    }

    /// Checks all unschedulable pods, or those that pass `check`, against an event and requeues
    /// those it helps. An event that no plugin registered for has no effect at all.
    pub(crate) fn move_all(
        &mut self,
        cx: &QueueContext<'_>,
        event: ClusterEvent,
        objects: &EventObjects,
        check: Option<&dyn Fn(&PodInfo) -> bool>,
    ) {
        self.begin(cx);
        if !self.plugins.is_of_interest(&event) {
            return;
        }
        let plugins = self.plugins.clone();
        // Without a pod to judge, the registrations are not looked through.
        let hints = match self.unschedulable.len() {
            0 => MatchingHints::default(),
            _ => plugins.matching(&event),
        };
        let judged = JudgedEvent { event: &event, objects, hints: &hints };
        self.walks += 1;
        let random = self.tie_break.random(self.walks);
        let concerned = |pod: &QueuedPodInfo| {
            judged.can_concern(pod) && !self.stays_gated(&plugins, pod, &event)
        };
        let walk = self.unschedulable.walk(random, concerned).into_iter();
        let passes = |pod: &&Arc<QueuedPodInfo>| check.is_none_or(|check| check(&pod.info));
        let candidates = walk.filter(passes).cloned().collect();
        self.move_pods(cx, candidates, judged);
    }

    /// Requeues those of the candidates that the event helps. None of them stays gated.
    pub(super) fn move_pods(
        &mut self,
        cx: &QueueContext<'_>,
        candidates: Vec<Arc<QueuedPodInfo>>,
        judged: JudgedEvent<'_>,
    ) {
        let first = self.moves.len();
        for pod in candidates {
            let verdict = self.judge(cx, &pod, judged);
            if verdict.strategy != QueueingStrategy::Skip {
                // Removed first, so that a pod that becomes gated frees its slot.
                self.leave_unschedulable(pod.key());
                let from = unschedulable_queue(&pod);
                let label = Symbol::new(&judged.event.label());
                self.requeue(cx, Arc::unwrap_or_clone(pod), from, verdict, label);
            }
        }
        if self.tie_break.is_chosen() && self.moves.len() > first + 1 {
            let order = Some(self.tie_break);
            self.moves[first..].iter_mut().for_each(|moved| moved.order = order);
        }
        self.moved_in_cycle = Some(self.cycle);
        if self.settings.hints && !self.in_flight.is_empty() {
            let (event, objects) = (*judged.event, judged.objects.clone());
            Arc::make_mut(&mut self.in_flight).push_event(event, objects);
        }
    }

    /// Whether the event leaves the pod gated: only one that the gating plugin registered for can
    /// ungate it. Up to 1.33, all can, except where scheduling gates hold the pod. The same for all
    /// pods of a class.
    pub(super) fn stays_gated(
        &self,
        plugins: &QueuePlugins,
        pod: &QueuedPodInfo,
        event: &ClusterEvent,
    ) -> bool {
        let Some(gate) = pod.gating_plugin else { return false };
        match self.settings.behaviour.has(Switch::GatingPluginDecides) {
            true => !plugins.concerns_gate(gate, event),
            false => plugins.any(&pod.unschedulable_plugins, |plugin| plugin.gates_by_spec()),
        }
    }

    /// Requeues pods that have been unschedulable for too long. Gated ones are marked as flushed
    /// but stay gated.
    pub(crate) fn flush_unschedulable_leftover(&mut self, cx: &QueueContext<'_>) {
        self.begin(cx);
        let limit = self.settings.max_unschedulable_duration;
        let is_left_over = |since: Time| cx.now - since > limit;
        self.walks += 1;
        if !self.unschedulable.oldest(|_| true).is_some_and(is_left_over) {
            return;
        }
        let walk = self.unschedulable.walk(self.tie_break.random(self.walks), |_| true).into_iter();
        let left_over: Vec<_> = walk.filter(|pod| is_left_over(pod.timestamp)).cloned().collect();
        let plugins = self.plugins.clone();
        let event = &ClusterEvent::UNSCHEDULABLE_TIMEOUT;
        let mut candidates = Vec::with_capacity(left_over.len());
        for mut pod in left_over {
            Arc::make_mut(&mut pod).flushed = true;
            Arc::make_mut(&mut self.unschedulable).add_or_update(pod.clone());
            if !self.stays_gated(&plugins, &pod, event) {
                candidates.push(pod);
            }
        }
        let (hints, objects) = (&plugins.matching(event), &EventObjects::default());
        self.move_pods(cx, candidates, JudgedEvent { event, objects, hints });
    }
}

/// The queue name of an unschedulable pod: gated or unschedulable.
pub(super) fn unschedulable_queue(pod: &QueuedPodInfo) -> QueueName {
    if pod.is_gated() { QueueName::Gated } else { QueueName::Unschedulable }
}
