//! The queue without queueing hints: up to 1.31, and with the gate SchedulerQueueingHints off.
//!
//! Every event that a plugin registered for requeues the pods that the plugin rejected. Events are
//! not kept for pods in flight: a pod that fails goes to the backoff queue if any event moved pods
//! since it was popped. Pods with a node concern only pods with affinity terms and spread
//! constraints.
//!
//! Upstream: `addUnschedulableWithoutQueueingHint`, `isPodUpdated` and
//! `getUnschedulablePodsWithCrossTopologyTerm` in `pkg/scheduler/internal/queue/scheduling_queue.go`
//! of 1.31.

use std::sync::Arc;

use super::{MoveCause, SchedulingQueue};
use crate::queue::requeueing::{JudgedEvent, RequeueDecision, unschedulable_queue};
use kubestep_api::intern::Symbol;
use kubestep_api::{Pod, PodStatus};
use kubestep_framework::events::{ClusterEvent, EventObjects};
use kubestep_framework::plugin::QueueContext;
use kubestep_framework::pod::{NamespacedName, QueuedPodInfo};
use kubestep_framework::record::QueueName;

/// Whether an update changes more than the status and the bookkeeping of the API server.
fn is_changed(old: &Pod, new: &Pod) -> bool {
    let stripped = |pod: &Pod| {
        let mut pod = pod.clone();
        pod.metadata.resource_version = Default::default();
        pod.metadata.generation = 0;
        pod.metadata.finalizers.clear();
        let resource_claim_statuses = std::mem::take(&mut pod.status.resource_claim_statuses);
        pod.status = PodStatus { resource_claim_statuses, ..PodStatus::default() };
        pod
    };
    stripped(old) != stripped(new)
}

impl SchedulingQueue {
    /// Requeues a pod whose attempt failed.
    pub(super) fn requeue_failed_without_hints(
        &mut self,
        cx: &QueueContext<'_>,
        pod: QueuedPodInfo,
    ) {
        let rejected = !pod.unschedulable_plugins.is_empty() || !pod.pending_plugins.is_empty();
        let moved = self.moved_in_cycle == Some(self.cycle);
        let cause = MoveCause::event("ScheduleAttemptFailure");
        match moved || !rejected {
            true => self.move_to_backoff(cx, pod, QueueName::InFlight, cause),
            false => self.put_unschedulable(pod, QueueName::InFlight, cause),
        };
    }

    /// Requeues an unschedulable pod after an update of its object.
    pub(super) fn retry_without_hints(
        &mut self,
        cx: &QueueContext<'_>,
        key: NamespacedName,
        old: &Pod,
        new: &Pod,
    ) {
        let Some(pod) = self.unschedulable.get(key).filter(|_| is_changed(old, new)) else {
            return;
        };
        let (pod, from) = (QueuedPodInfo::clone(pod), unschedulable_queue(pod));
        let label = Symbol::new("PodUpdate");
        self.requeue(cx, pod, from, RequeueDecision::AFTER_BACKOFF, label);
    }

    /// Requeues the pods that a pod with a node may help: those with a required affinity term that
    /// matches it, and those in its namespace that a plugin rejected whose verdict depends on the
    /// pods of the namespace.
    pub(crate) fn move_related(
        &mut self,
        cx: &QueueContext<'_>,
        event: ClusterEvent,
        objects: &EventObjects,
        pod: &Pod,
    ) {
        self.begin(cx);
        if !self.plugins.is_of_interest(&event) {
            return;
        }
        let (namespace, plugins) = (pod.metadata.namespace, self.plugins.clone());
        let labels = cx.objects.namespace_labels(namespace);
        let is_related = |waiting: &&Arc<QueuedPodInfo>| {
            let same_namespace = waiting.info.pod.metadata.namespace == namespace;
            let mut terms = waiting.info.own_terms().required_affinity.iter();
            (same_namespace
                && plugins.any(&waiting.unschedulable_plugins, |it| it.counts_pods_of_namespace()))
                || terms.any(|term| term.matches(pod, &labels))
        };
        self.walks += 1;
        let can_move = |pod: &QueuedPodInfo| !self.stays_gated(&plugins, pod, &event);
        let walk = self.unschedulable.walk(self.tie_break.random(self.walks), can_move);
        let candidates = walk.into_iter().filter(is_related).cloned().collect();
        let hints = plugins.matching(&event);
        self.move_pods(cx, candidates, JudgedEvent { event: &event, objects, hints: &hints });
    }
}
