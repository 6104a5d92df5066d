//! Adding pods to the active queue, the backoff queue and the unschedulable pods.
//!
//! Upstream: `Add`, `moveToActiveQ`, `moveToBackoffQ`, `runPreEnqueuePlugins` and the flushes in
//! `pkg/scheduler/backend/queue/scheduling_queue.go`.

use std::sync::Arc;

use super::{MoveCause, SchedulingQueue, with_orders};
use kubestep_api::intern::Symbol;
use kubestep_config::ExtensionPoint;
use kubestep_config::versions::Switch;
use kubestep_framework::plugin::{Plugin, QueueContext};
use kubestep_framework::pod::{NamespacedName, PodInfo, QueuedPodInfo};
use kubestep_framework::record::QueueName;
use kubestep_framework::status::node_statuses::add_once;

/// Event labels with which a new pod enters the active queue. Its own nomination is recorded then.
const NEW_POD_LABELS: [&str; 2] = ["UnschedulablePodAdd", "UnschedulablePodUpdate"];

/// The event label with which a pod leaves the backoff queue at the end of its backoff.
const BACKOFF_COMPLETE: &str = "BackoffComplete";

impl SchedulingQueue {
    /// Adds a new pod.
    pub fn add(&mut self, cx: &QueueContext<'_>, pod: Arc<PodInfo>) {
        self.begin(cx);
        self.add_new(cx, pod, MoveCause::event("UnschedulablePodAdd"));
    }

    pub(super) fn add_new(&mut self, cx: &QueueContext<'_>, pod: Arc<PodInfo>, cause: MoveCause) {
        let from = self.queue_of(pod.key());
        let mut pod = QueuedPodInfo::new(pod, cx.now);
        self.sign(cx, &mut pod);
        self.move_to_active(cx, pod, from, cause);
    }

    /// Moves all pods whose backoff is over into the active queue.
    pub(crate) fn flush_backoff_completed(&mut self, cx: &QueueContext<'_>) {
        self.begin(cx);
        let completed = with_orders!(self, |_less, order| {
            self.backoff.pop_completed(&self.settings, order, cx.now)
        });
        for pod in completed {
            let pod = Arc::unwrap_or_clone(pod);
            self.move_to_active(cx, pod, QueueName::Backoff, MoveCause::event(BACKOFF_COMPLETE));
        }
    }

    /// Moves the pod into the active queue or, if a PreEnqueue plugin gates it, to the
    /// unschedulable pods. Returns the queue that it is in now.
    pub(super) fn move_to_active(
        &mut self,
        cx: &QueueContext<'_>,
        mut pod: QueuedPodInfo,
        from: QueueName,
        cause: MoveCause,
    ) -> QueueName {
        // If pods may be popped from backoff, they passed PreEnqueue on the way in. A new pod of
        // the same name did not.
        let is_new = NEW_POD_LABELS.contains(&cause.event.as_str());
        let passed = match self.settings.behaviour.has(Switch::PreEnqueueOnceForBackoff) {
            true => from == QueueName::Backoff && !is_new,
            false => cause.event == BACKOFF_COMPLETE,
        };
        if !passed || !self.settings.pop_from_backoff {
            self.run_pre_enqueue(cx, &mut pod);
        }
        let key = pod.key();
        if pod.is_gated() {
            if self.active.contains(key) || self.backoff.contains(key) {
                return self.queue_of(key);
            }
            return self.put_unschedulable(pod, from, cause);
        }
        pod.initial_attempt.get_or_insert(cx.now);
        self.leave_unschedulable(key);
        let info = pod.info.clone();
        with_orders!(self, |less, order| {
            self.backoff.remove(key, order);
            Arc::make_mut(&mut self.active).add_or_update(Arc::new(pod), less);
        });
        if is_new {
            self.add_nominated_pod(&info, None, cx.objects);
        }
        self.record(key, from, QueueName::Active, cause);
        QueueName::Active
    }

    /// Moves the pod into the backoff queue or, if a PreEnqueue plugin gates it, to the
    /// unschedulable pods. Returns the queue that it is in now.
    pub(super) fn move_to_backoff(
        &mut self,
        cx: &QueueContext<'_>,
        mut pod: QueuedPodInfo,
        from: QueueName,
        cause: MoveCause,
    ) -> QueueName {
        if self.settings.pop_from_backoff {
            self.run_pre_enqueue(cx, &mut pod);
            if pod.is_gated() {
                return self.put_unschedulable(pod, from, cause);
            }
        }
        let key = pod.key();
        self.leave_unschedulable(key);
        with_orders!(self, |_less, order| self.backoff.add(Arc::new(pod), order));
        self.record(key, from, QueueName::Backoff, cause);
        QueueName::Backoff
    }

    /// Adds the pod to the unschedulable pods; it counts as gated if a plugin gates it.
    pub(super) fn put_unschedulable(
        &mut self,
        pod: QueuedPodInfo,
        from: QueueName,
        cause: MoveCause,
    ) -> QueueName {
        let key = pod.key();
        let (to, plugin) = match pod.gating_plugin {
            Some(plugin) => (QueueName::Gated, Some(plugin)),
            None => (QueueName::Unschedulable, cause.plugin),
        };
        Arc::make_mut(&mut self.unschedulable).add_or_update(Arc::new(pod));
        self.record(key, from, to, MoveCause { plugin, ..cause });
        to
    }

    pub(super) fn leave_unschedulable(&mut self, key: NamespacedName) {
        if self.unschedulable.get(key).is_some() {
            Arc::make_mut(&mut self.unschedulable).remove(key);
        }
    }

    /// Runs the PreEnqueue plugins of the pod's profile, starting with the one that gates it so
    /// far (since 1.34), up to the first that does not succeed.
    fn run_pre_enqueue(&self, cx: &QueueContext<'_>, pod: &mut QueuedPodInfo) {
        let Some(plugins) = self.plugins.gates.get(&pod.info.pod.spec.scheduler_name) else {
            pod.gating_plugin = None;
            pod.gating_message = None;
            return;
        };
        let decides = self.settings.behaviour.has(Switch::GatingPluginDecides);
        let held_by = pod.gating_plugin.filter(|_| decides);
        let is_holder = |plugin: &&Arc<dyn Plugin>| Some(plugin.name()) == held_by;
        let first = plugins.iter().filter(is_holder);
        let others = plugins.iter().filter(|plugin| !is_holder(plugin));
        for plugin in first.chain(others) {
            let turn = || plugin.pre_enqueue(cx, &pod.info);
            let status = cx.shared.timer.time(ExtensionPoint::PreEnqueue, plugin.name(), turn);
            if !status.is_success() {
                let name = plugin.name();
                add_once(&mut pod.unschedulable_plugins, name);
                pod.gating_plugin = Some(name);
                pod.gating_message = Some(Symbol::new(&status.message()));
                return;
            }
        }
        pod.gating_plugin = None;
        pod.gating_message = None;
    }
}
