//! The backoff queue: pods that are retried after their backoff.
//!
//! Upstream: `pkg/scheduler/backend/queue/backoff_queue.go`.

use std::sync::Arc;

use crate::queue::QueueSettings;
use crate::queue::heap::{Heap, Less};
use kubestep_api::{Duration, Time};
use kubestep_config::versions::Switch;
use kubestep_framework::pod::{NamespacedName, QueuedPodInfo};

impl QueueSettings {
    /// The backoff after the `count`th failure: the initial backoff, doubled with each failure up
    /// to the maximum.
    pub(crate) fn backoff_duration(&self, count: u32) -> Duration {
        let Some(shift) = count.checked_sub(1) else { return Duration::ZERO };
        let (initial, max) = (self.initial_backoff.nanos, self.max_backoff.nanos);
        let is_over = initial > max.checked_shr(shift).unwrap_or(0);
        Duration { nanos: if is_over { max } else { initial.checked_shl(shift).unwrap_or(0) } }
    }

    /// When a pod that has been unschedulable since that time is retried without an event: after
    /// strictly more than the longest time.
    pub fn flush_time(&self, since: Time) -> Time {
        since + self.max_unschedulable_duration + Duration::MICROSECOND
    }

    /// When the pod's backoff ends; `None` if it has none. Errors and rejections are counted
    /// separately.
    pub fn backoff_expiration(&self, pod: &QueuedPodInfo) -> Option<Time> {
        let count = match pod.consecutive_errors {
            _ if !self.behaviour.has(Switch::BackoffCountsFailures) => pod.attempts,
            0 => pod.unschedulable_count,
            errors => errors,
        };
        let is_off = self.max_backoff == Duration::ZERO && self.behaviour.has(Switch::ZeroBackoff);
        if count == 0 || is_off {
            return None;
        }
        Some(self.align(pod.timestamp + self.backoff_duration(count)))
    }

    /// Whether the pod is still backing off. Up to 1.31, a gated one does not.
    pub(crate) fn is_backing_off(&self, pod: &QueuedPodInfo, now: Time) -> bool {
        let can = !pod.is_gated() || self.behaviour.has(Switch::GatedPodsBackOff);
        let Some(end) = pod.backoff_expiration.filter(|_| can) else { return false };
        match self.behaviour.has(Switch::BackoffIncludesEnd) {
            true => end >= self.align(now),
            false => end > now,
        }
    }

    /// The first instant at which a pod with this expiration is no longer backing off. As upstream,
    /// it still is throughout the second of the expiration itself, without that second at the
    /// instant itself, and up to 1.32 only before.
    pub fn backoff_release(&self, expiration: Time) -> Time {
        expiration
            + match (self.pop_from_backoff, self.behaviour.has(Switch::BackoffIncludesEnd)) {
                (true, _) => Duration::SECOND,
                (false, true) => Duration::MICROSECOND,
                (false, false) => Duration::ZERO,
            }
    }

    /// Expirations and flushes are aligned to whole seconds, so that pods of the same second can be
    /// ordered by the queue sort plugin.
    fn align(&self, time: Time) -> Time {
        if self.pop_from_backoff { time.truncated_to_seconds() } else { time }
    }
}

/// Two heaps: pods that plugins rejected, and pods whose attempt failed with an error. Up to 1.32
/// all are in the first.
#[derive(Clone, Default)]
pub(super) struct BackoffQueue {
    rejected: Arc<Heap>,
    failed: Arc<Heap>,
}

/// The orders of both heaps: by expiration. If pods may be popped from backoff, the queue sort
/// plugin orders rejected pods of the same second.
#[derive(Clone, Copy)]
pub(super) struct BackoffOrder<'a> {
    /// The order of the active queue, if pods may be popped from backoff.
    pub(super) tie: Option<Less<'a>>,
    /// Whether pods that failed with an error are apart.
    pub(super) errors_apart: bool,
}

impl BackoffOrder<'_> {
    fn rejected(&self, a: &QueuedPodInfo, b: &QueuedPodInfo) -> bool {
        match self.tie {
            Some(less) if a.backoff_expiration == b.backoff_expiration => less(a, b),
            _ => by_expiration(a, b),
        }
    }
}

fn by_expiration(a: &QueuedPodInfo, b: &QueuedPodInfo) -> bool {
    a.backoff_expiration < b.backoff_expiration
}

impl BackoffQueue {
    /// The number of pods in both heaps.
    pub(super) fn len(&self) -> usize {
        self.rejected.len() + self.failed.len()
    }

    /// Number of rejected pods whose backoff ends when that of `pod` does.
    pub(super) fn rejected_until(&self, pod: &QueuedPodInfo) -> usize {
        let end = pod.backoff_expiration;
        let same = self.rejected.iter().filter(|other| other.backoff_expiration == end);
        if end.is_some() { same.count() } else { 0 }
    }

    /// Whether there is a pod that may be popped before its backoff ends.
    pub(super) fn has_early(&self) -> bool {
        self.rejected.len() > 0
    }

    /// The pod with that key.
    pub(super) fn get(&self, key: NamespacedName) -> Option<&Arc<QueuedPodInfo>> {
        self.rejected.get(key).or_else(|| self.failed.get(key))
    }

    /// Whether there is a pod with that key.
    pub(super) fn contains(&self, key: NamespacedName) -> bool {
        self.rejected.contains(key) || self.failed.contains(key)
    }

    /// Adds a pod to its heap and removes its key from the other.
    pub(super) fn add(&mut self, pod: Arc<QueuedPodInfo>, order: BackoffOrder<'_>) {
        let key = pod.key();
        let has_rejectors =
            !pod.unschedulable_plugins.is_empty() || !pod.pending_plugins.is_empty();
        let failed = order.errors_apart && !has_rejectors;
        let rejected_less = |a: &QueuedPodInfo, b: &QueuedPodInfo| order.rejected(a, b);
        if failed {
            Arc::make_mut(&mut self.failed).add_or_update(pod, &by_expiration);
            if self.rejected.contains(key) {
                Arc::make_mut(&mut self.rejected).remove(key, &rejected_less);
            }
            return;
        }
        Arc::make_mut(&mut self.rejected).add_or_update(pod, &rejected_less);
        if self.failed.contains(key) {
            Arc::make_mut(&mut self.failed).remove(key, &by_expiration);
        }
    }

    /// Replaces the pod with the same key.
    pub(super) fn replace(&mut self, pod: QueuedPodInfo, order: BackoffOrder<'_>) {
        let rejected_less = |a: &QueuedPodInfo, b: &QueuedPodInfo| order.rejected(a, b);
        let (heap, less): (_, Less<'_>) = match self.rejected.contains(pod.key()) {
            true => (&mut self.rejected, &rejected_less),
            false => (&mut self.failed, &by_expiration),
        };
        Arc::make_mut(heap).add_or_update(Arc::new(pod), less);
    }

    /// Removes the pod with that key.
    pub(super) fn remove(
        &mut self,
        key: NamespacedName,
        order: BackoffOrder<'_>,
    ) -> Option<Arc<QueuedPodInfo>> {
        if self.rejected.contains(key) {
            let less = |a: &QueuedPodInfo, b: &QueuedPodInfo| order.rejected(a, b);
            return Arc::make_mut(&mut self.rejected).remove(key, &less);
        }
        if self.failed.contains(key) {
            return Arc::make_mut(&mut self.failed).remove(key, &by_expiration);
        }
        None
    }

    /// Pops the first rejected pod, whether or not its backoff is over. Pods that failed with an
    /// error are never popped early.
    pub(super) fn pop_early(&mut self, order: BackoffOrder<'_>) -> Option<Arc<QueuedPodInfo>> {
        if self.rejected.len() == 0 {
            return None;
        }
        Arc::make_mut(&mut self.rejected).pop(&|a, b| order.rejected(a, b))
    }

    /// Removes all pods whose backoff is over: first the rejected ones, then those that failed with
    /// an error.
    pub(super) fn pop_completed(
        &mut self,
        settings: &QueueSettings,
        order: BackoffOrder<'_>,
        now: Time,
    ) -> Vec<Arc<QueuedPodInfo>> {
        let mut done = Vec::new();
        drain(&mut self.rejected, settings, now, &|a, b| order.rejected(a, b), &mut done);
        drain(&mut self.failed, settings, now, &by_expiration, &mut done);
        done
    }

    /// The earliest end of a backoff; `None` without pods.
    pub(super) fn next_expiration(&self) -> Option<Time> {
        let heaps = [&self.rejected, &self.failed];
        heaps.iter().filter_map(|heap| heap.peek()?.backoff_expiration).min()
    }

    /// All pods in heap order: first the rejected ones, then those that failed with an error.
    pub(super) fn in_order(&self, order: BackoffOrder<'_>) -> Vec<&QueuedPodInfo> {
        let mut pods: Vec<_> = self.rejected.in_order(&|a, b| order.rejected(a, b)).collect();
        pods.extend(self.failed.in_order(&by_expiration));
        pods
    }
}

fn drain(
    heap: &mut Arc<Heap>,
    settings: &QueueSettings,
    now: Time,
    less: Less<'_>,
    done: &mut Vec<Arc<QueuedPodInfo>>,
) {
    while heap.peek().is_some_and(|pod| !settings.is_backing_off(pod, now)) {
        done.extend(Arc::make_mut(heap).pop(less));
    }
}

#[cfg(test)]
mod tests {
    use kubestep_api::Name;

    use super::*;
    use kubestep_api::Pod;
    use kubestep_framework::plugin::Plugin;
    use kubestep_framework::pod::PodInfo;
    use kubestep_plugins::priority_sort;

    const START: Time = Time(1_696_118_400_000_000);

    fn settings(initial: i64, max: i64) -> QueueSettings {
        let [initial_backoff, max_backoff] = [initial, max].map(|nanos| Duration { nanos });
        QueueSettings { initial_backoff, max_backoff, ..QueueSettings::default() }
    }

    fn queued(name: &str, priority: i32, timestamp: i64, counts: (u32, u32)) -> QueuedPodInfo {
        let mut pod = Pod::default();
        pod.metadata.name = name.into();
        pod.spec.priority = Some(priority);
        let info = Arc::new(PodInfo::new(Arc::new(pod)));
        let mut queued = QueuedPodInfo::new(info, Time(START.0 + timestamp));
        (queued.unschedulable_count, queued.consecutive_errors) = counts;
        if counts.0 > 0 {
            queued.unschedulable_plugins.push("plugin".into());
        }
        queued
    }

    /// The cases of upstream's TestBackoffQueue_calculateBackoffDuration.
    #[test]
    fn durations() {
        let cases = [
            (1, 32, 0, 0),
            (3, 1000, 5, 48),
            (1, 32, 16, 32),
            (1, i64::from(i32::MAX), 32, i64::from(i32::MAX)),
            (1, i64::MAX, 64, i64::MAX),
            (1, i64::MAX, 200, i64::MAX),
            (5, 3, 1, 3),
            (0, 10, 70, 0),
        ];
        for (initial, max, count, expected) in cases {
            assert_eq!(settings(initial, max).backoff_duration(count).nanos, expected);
        }
        let durations = [1, 2, 3, 4, 5, 6].map(|n| QueueSettings::default().backoff_duration(n));
        assert_eq!(durations, [1, 2, 4, 8, 10, 10].map(Duration::from_secs));
    }

    /// Upstream's TestBackoffQueue_getBackoffTime; expirations are truncated to the second.
    #[test]
    fn expirations() {
        let second = 1_000_000;
        let common = settings(1_000 * second, 32_000 * second);
        let after = |micros| Some(Time(START.0 + micros));
        let cases = [
            (&common, 0, (0, 0), None),
            (&common, 0, (16, 0), after(32 * second)),
            (&common, 0, (5, 16), after(32 * second)),
            (&common, 0, (5, 1), after(second)),
            (&common, 999_999, (1, 0), after(second)),
            (&settings(0, 0), 0, (16, 0), None),
        ];
        for (settings, timestamp, counts, expected) in cases {
            let pod = queued("a", 0, timestamp, counts);
            assert_eq!(settings.backoff_expiration(&pod), expected);
        }
        let exact = QueueSettings { pop_from_backoff: false, ..common };
        let pod = queued("a", 0, 999_999, (1, 0));
        assert_eq!(exact.backoff_expiration(&pod), after(1_999_999));
    }

    fn completed(pop_from_backoff: bool, pods: &[(&str, i32, i64, (u32, u32))]) -> Vec<Name> {
        let settings = QueueSettings { pop_from_backoff, ..QueueSettings::default() };
        let sort = priority_sort::build(&Default::default(), &Default::default()).unwrap();
        let less = |a: &QueuedPodInfo, b: &QueuedPodInfo| Plugin::less(&*sort, a, b);
        let tie: Option<Less<'_>> = if pop_from_backoff { Some(&less) } else { None };
        let order = BackoffOrder { tie, errors_apart: true };
        let mut queue = BackoffQueue::default();
        for (name, priority, timestamp, counts) in pods {
            let mut pod = queued(name, *priority, *timestamp, *counts);
            pod.backoff_expiration = QueueSettings::default().backoff_expiration(&pod);
            queue.add(Arc::new(pod), order);
        }
        let done = queue.pop_completed(&settings, order, START);
        assert_eq!(queue.len(), pods.len() - done.len());
        done.iter().map(|pod| pod.key().name).collect()
    }

    /// The cases of upstream's TestBackoffQueue_popAllBackoffCompleted.
    #[test]
    fn both_heaps_give_up_what_is_over() {
        let second = 1_000_000;
        let pods = [
            ("pod0", 0, -2 * second, (1, 0)),
            ("pod1", 0, second, (1, 0)),
            ("pod2", 0, -2 * second, (0, 1)),
            ("pod3", 0, second, (0, 1)),
        ];
        for gate in [true, false] {
            assert_eq!(completed(gate, &pods), ["pod0", "pod2"].map(Name::new));
            assert_eq!(completed(gate, &pods[..2]), ["pod0"].map(Name::new));
            assert_eq!(completed(gate, &pods[2..]), ["pod2"].map(Name::new));
            assert!(completed(gate, &pods[1..2]).is_empty());
        }
    }

    /// Upstream's TestBackoffQueueOrdering. Its second half runs on the aligned expirations that
    /// the first half leaves behind.
    #[test]
    fn priority_orders_pods_of_one_second() {
        let second = 1_000_000;
        let pods = [
            ("pod0", 1, 0, (1, 0)),
            ("pod1", 1, -second, (1, 0)),
            ("pod2", 2, -2 * second + 1000, (1, 0)),
            ("pod3", 1, -2 * second, (1, 0)),
            ("pod4", 2, -2 * second, (1, 0)),
            ("pod5", 1, -3 * second, (1, 0)),
        ];
        let expected = ["pod5", "pod4", "pod2", "pod3"].map(Name::new);
        assert_eq!(completed(true, &pods), expected);
        let expected = ["pod5", "pod3", "pod4", "pod2"].map(Name::new);
        assert_eq!(completed(false, &pods), expected);
    }

    /// Adding to one heap removes the pod from the other.
    #[test]
    fn a_pod_is_in_one_heap_only() {
        let order = BackoffOrder { tie: None, errors_apart: true };
        let mut queue = BackoffQueue::default();
        queue.add(Arc::new(queued("a", 0, 0, (1, 0))), order);
        queue.add(Arc::new(queued("a", 0, 0, (0, 1))), order);
        assert_eq!((queue.rejected.len(), queue.failed.len()), (0, 1));
        queue.add(Arc::new(queued("a", 0, 0, (1, 0))), order);
        assert_eq!((queue.rejected.len(), queue.failed.len()), (1, 0));
    }
}
