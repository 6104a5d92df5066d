//! What is in the queue, for display, tests and the cycle.
//!
//! Upstream: `PendingPods`, `NominatedPodsForNode` in
//! `pkg/scheduler/backend/queue/scheduling_queue.go`.

use std::mem::take;
use std::sync::Arc;

use super::{QueueSettings, SchedulingQueue, queue_sort, requeueing, with_orders};
use kubestep_api::{Time, Uid};
use kubestep_framework::events::ClusterEvent;
use kubestep_framework::pod::nominated::NominatedPods;
use kubestep_framework::pod::{NamespacedName, PodInfo, QueuedPodInfo};
use kubestep_framework::record::{HintRecord, QueueMove, QueueName};

impl SchedulingQueue {
    /// The pods of the active queue, in the order in which they would be popped.
    pub fn active(&self) -> Vec<&QueuedPodInfo> {
        self.active.in_order(&queue_sort(&self.plugins, self.order.as_deref())).collect()
    }

    /// The number of pods that would be popped before a pod of the active queue; `None` if it is
    /// not there.
    pub fn ahead_of(&self, pod: NamespacedName) -> Option<usize> {
        self.active.get(pod)?;
        let sort = queue_sort(&self.plugins, self.order.as_deref());
        self.active.in_order(&sort).position(|other| other.key() == pod)
    }

    /// The pods in backoff: first those that plugins rejected, then those that failed with an
    /// error, each in the order in which they leave.
    pub fn backoff(&self) -> Vec<&QueuedPodInfo> {
        with_orders!(self, |_less, order| self.backoff.in_order(order))
    }

    /// The pods that wait for an event and are not gated, in the order of their slots.
    pub fn unschedulable(&self) -> Vec<&QueuedPodInfo> {
        let waiting = self.unschedulable.walk(0, |pod| !pod.is_gated());
        waiting.into_iter().map(Arc::as_ref).collect()
    }

    /// The pods that a PreEnqueue plugin gates, in the order of their slots.
    pub fn gated(&self) -> Vec<&QueuedPodInfo> {
        let gated = self.unschedulable.walk(0, QueuedPodInfo::is_gated);
        gated.into_iter().map(Arc::as_ref).collect()
    }

    /// The pods in flight, in the order in which they were popped.
    pub fn in_flight(&self) -> Vec<&QueuedPodInfo> {
        self.in_flight.pods().map(Arc::as_ref).collect()
    }

    /// Number of pods that are active, in backoff, unschedulable or gated, and in flight.
    pub fn lengths(&self) -> [usize; 4] {
        [self.active.len(), self.backoff.len(), self.unschedulable.len(), self.in_flight.len()]
    }

    /// Number of pods that the queue sort plugin could have put before one that was popped: the
    /// active ones, or if there are none, those in backoff until the same second.
    pub fn others_in_order(&self, popped: &QueuedPodInfo) -> usize {
        match self.active.len() {
            0 if self.settings.pop_from_backoff => self.backoff.rejected_until(popped),
            active => active,
        }
    }

    /// Whether no pod can be popped now. When nothing is active, rejected pods may be popped from
    /// backoff (if `pop_from_backoff` is set), but not those that failed with an error.
    pub fn is_idle(&self) -> bool {
        let early = self.settings.pop_from_backoff && self.backoff.has_early();
        self.active.len() == 0 && !early
    }

    /// The pod with that key, in any queue or in flight.
    pub fn get(&self, key: NamespacedName) -> Option<&QueuedPodInfo> {
        let queued = self.active.get(key).or_else(|| self.backoff.get(key));
        let waiting = queued.or_else(|| self.unschedulable.get(key));
        waiting.or_else(|| self.in_flight.by_key(key)).map(Arc::as_ref)
    }

    /// The queue that the pod with that key is in.
    pub fn queue_of(&self, key: NamespacedName) -> QueueName {
        match self.queue_except_in_flight(key) {
            QueueName::None if self.in_flight.by_key(key).is_some() => QueueName::InFlight,
            place => place,
        }
    }

    /// The events that are stored for pods in flight.
    pub fn in_flight_events(&self) -> impl Iterator<Item = ClusterEvent> {
        self.in_flight.events()
    }

    /// The queue that the pod with that key is in, except in flight.
    pub(super) fn queue_except_in_flight(&self, key: NamespacedName) -> QueueName {
        if self.active.contains(key) {
            return QueueName::Active;
        }
        if self.backoff.contains(key) {
            return QueueName::Backoff;
        }
        let waiting = self.unschedulable.get(key);
        waiting.map_or(QueueName::None, |pod| requeueing::unschedulable_queue(pod))
    }

    /// Backoffs, limits and switches that the queue was built with.
    pub fn settings(&self) -> &QueueSettings {
        &self.settings
    }

    /// When the next backoff ends, or the next pod has been unschedulable for too long; `now` if
    /// that time has passed. `None` if no pod waits for a time.
    pub fn next_timer(&self, now: Time) -> Option<Time> {
        let release = self.backoff.next_expiration().map(|end| self.settings.backoff_release(end));
        let oldest = self.unschedulable.oldest(|pod| !pod.is_gated());
        let flush = oldest.map(|since| self.settings.flush_time(since));
        release.into_iter().chain(flush).min().map(|due| due.max(now))
    }

    /// All nominations. A pod in a queue is complete; any other, such as one in flight, is a stub
    /// of name, namespace and UID, as upstream.
    pub fn nominated_pods(&self) -> NominatedPods {
        self.nominator.current(|key| self.queued(key))
    }

    /// The nominations for one cycle; the update is kept for the next one.
    pub(crate) fn update_nominated_pods(&mut self) -> NominatedPods {
        if self.nominator.is_up_to_date() {
            return self.nominated_pods();
        }
        let mut nominator = take(&mut self.nominator);
        let pods = Arc::make_mut(&mut nominator).update_pods(|key| self.queued(key));
        debug_assert!(nominator.is_as_queued(|key| self.queued(key)));
        self.nominator = nominator;
        pods
    }

    /// Whether the pod with that UID is nominated.
    pub(crate) fn is_nominated(&self, uid: Uid) -> bool {
        self.nominator.contains(uid)
    }

    fn queued(&self, key: NamespacedName) -> Option<Arc<PodInfo>> {
        let queued = self.active.get(key).or_else(|| self.unschedulable.get(key));
        queued.or_else(|| self.backoff.get(key)).map(|pod| pod.info.clone())
    }

    /// How many moves and how many answers of hints were recorded since they were drained.
    pub fn recorded(&self) -> (usize, usize) {
        (self.moves.len(), self.hint_log.len())
    }

    /// The moves since the last call, in order.
    pub fn drain_moves(&mut self) -> Vec<QueueMove> {
        std::mem::take(&mut self.moves)
    }

    /// The hints since the last call, in order. An answer that does not requeue the pod is logged
    /// once between two moves of the pod.
    pub fn drain_hints(&mut self) -> Vec<HintRecord> {
        self.hint_log.drain()
    }
}
