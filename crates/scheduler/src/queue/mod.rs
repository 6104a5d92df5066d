//! The scheduling queue: which pod is tried next, and when a failed one is retried.
//!
//! A pod is in one of four parts: the active queue (`heap`), the backoff queue (`backoff`), the
//! unschedulable pods, which include the gated ones (`unschedulable`), or the pods in flight
//! (`in_flight`). The nominations are separate (`nominator`). `entering` adds pods to queues,
//! `requeueing` decides whether an event requeues a pod, `updating` handles changes of the pods
//! themselves, `views` reads the queue for display and tests.
//!
//! A queue is a value: a clone shares everything until one side changes. The time comes with the
//! context. Where upstream's order is random, it is fixed here: unschedulable pods in the order of
//! their slots (see `unschedulable`), plugins in the order of their profile.
//!
//! Upstream: `pkg/scheduler/backend/queue/scheduling_queue.go`.

use std::sync::Arc;

use indexmap::IndexMap;

use crate::queue::backoff::BackoffQueue;
use crate::queue::heap::Heap;
use crate::queue::hint_log::HintLog;
use crate::queue::hints::QueuePlugins;
use crate::queue::in_flight::InFlight;
use crate::queue::nominator::Nominator;
use crate::queue::unschedulable::UnschedulablePods;
use kubestep_api::intern::Symbol;
use kubestep_api::{Duration, Name, Time, Uid};
use kubestep_config::versions::{Behaviour, Switch};
use kubestep_framework::events::EventResource;
use kubestep_framework::objects::Objects;
use kubestep_framework::plugin::{QueueContext, QueueOrder};
use kubestep_framework::pod::{NamespacedName, PodInfo, QueuedPodInfo};
use kubestep_framework::record::{QueueMove, QueueName};
use kubestep_framework::runtime::Framework;
use kubestep_framework::tie_break::TieBreak;

mod backoff;
mod entering;
mod heap;
mod hint_log;
mod hints;
mod in_flight;
pub mod node_events;
mod nominator;
pub mod pod_events;
mod reconfigure;
mod requeueing;
mod signing;
#[cfg(test)]
mod tests;
mod unschedulable;
mod updating;
mod views;
mod without_hints;

pub use requeueing::AlreadyQueued;

/// The queue's settings, from the configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueSettings {
    /// The backoff after the first failure (`podInitialBackoffSeconds`).
    pub initial_backoff: Duration,
    /// The longest backoff (`podMaxBackoffSeconds`); 0 turns backoff off.
    pub max_backoff: Duration,
    /// How long a pod may stay unschedulable before it is retried without an event.
    pub max_unschedulable_duration: Duration,
    /// Whether pods are popped from backoff when no pod is active (gate SchedulerPopFromBackoffQ).
    pub pop_from_backoff: bool,
    /// Whether extenders are configured; they take part in requeueing then.
    pub has_extenders: bool,
    /// The kind that says how the groups of pods are scheduled; `None` without groups. Pods of a
    /// PodGroup are retried by backoff alone.
    pub group_resource: Option<EventResource>,
    /// Whether hints decide which events requeue a pod (gate SchedulerQueueingHints).
    pub hints: bool,
    /// What the version of kube-scheduler changed.
    pub behaviour: Behaviour,
    /// Whether pods are signed (gate OpportunisticBatching; not with extenders, which cannot sign).
    pub signs: bool,
}

impl Default for QueueSettings {
    fn default() -> QueueSettings {
        QueueSettings {
            initial_backoff: Duration::SECOND,
            max_backoff: Duration::from_secs(10),
            max_unschedulable_duration: Duration::from_secs(300),
            pop_from_backoff: true,
            has_extenders: false,
            group_resource: None,
            hints: true,
            behaviour: Behaviour::default(),
            signs: false,
        }
    }
}

/// The scheduling queue: active, backoff, unschedulable, gated and in-flight pods.
#[derive(Clone)]
pub struct SchedulingQueue {
    settings: QueueSettings,
    plugins: Arc<QueuePlugins>,
    /// The order as of the last change, if it depends on more than the pods.
    order: Option<Arc<dyn QueueOrder>>,
    active: Arc<Heap>,
    backoff: BackoffQueue,
    unschedulable: Arc<UnschedulablePods>,
    in_flight: Arc<InFlight>,
    nominator: Arc<Nominator>,
    cycle: u64,
    /// The number of pods popped when an event last moved pods.
    moved_in_cycle: Option<u64>,
    now: Time,
    moves: Vec<QueueMove>,
    hint_log: HintLog,
    tie_break: TieBreak,
    /// Number of walks over the unschedulable pods; each may have an order of its own.
    walks: u64,
}

/// Why a pod moves.
#[derive(Clone, Copy)]
struct MoveCause {
    event: Symbol,
    plugin: Option<Symbol>,
}

impl MoveCause {
    fn event(label: &str) -> MoveCause {
        MoveCause { event: label.into(), plugin: None }
    }
}

/// The order of the active queue, from the QueueSort plugin of the first profile.
fn queue_sort<'a>(
    plugins: &'a QueuePlugins,
    order: Option<&'a dyn QueueOrder>,
) -> impl Fn(&QueuedPodInfo, &QueuedPodInfo) -> bool + use<'a> {
    move |a, b| match order {
        Some(order) => order.less(a, b),
        None => plugins.sort.as_ref().is_some_and(|plugin| plugin.less(a, b)),
    }
}

/// Calls `$do` with the orders of the active and the backoff queue.
macro_rules! with_orders {
    ($queue:expr, |$less:ident, $order:ident| $do:expr) => {{
        let (plugins, queue_order) = ($queue.plugins.clone(), $queue.order.clone());
        let sort = $crate::queue::queue_sort(&plugins, queue_order.as_deref());
        let $less: $crate::queue::heap::Less<'_> = &sort;
        let tie = $queue.settings.pop_from_backoff.then_some($less);
        let switch = kubestep_config::versions::Switch::ErrorBackoffQueue;
        let errors_apart = $queue.settings.behaviour.has(switch);
        let $order = $crate::queue::backoff::BackoffOrder { tie, errors_apart };
        $do
    }};
}
use with_orders;

impl SchedulingQueue {
    /// An empty queue for the given profiles, of which the first defines the order.
    pub fn new(
        settings: QueueSettings,
        frameworks: &IndexMap<Symbol, Arc<Framework>>,
    ) -> SchedulingQueue {
        let plugins = QueuePlugins::new(&settings, frameworks);
        SchedulingQueue::with_plugins(settings, plugins)
    }

    fn with_plugins(settings: QueueSettings, plugins: QueuePlugins) -> SchedulingQueue {
        SchedulingQueue {
            settings,
            plugins: Arc::new(plugins),
            order: None,
            active: Arc::default(),
            backoff: BackoffQueue::default(),
            unschedulable: Arc::default(),
            in_flight: Arc::default(),
            nominator: Arc::default(),
            cycle: 0,
            moved_in_cycle: None,
            now: Time::default(),
            moves: Vec::new(),
            hint_log: HintLog::default(),
            tie_break: TieBreak::default(),
            walks: 0,
        }
    }

    /// Begins a change: takes on the time, and the order of the active queue.
    fn begin(&mut self, cx: &QueueContext<'_>) {
        self.now = cx.now;
        self.order = self.plugins.sort.as_ref().and_then(|plugin| plugin.queue_order(cx));
    }

    /// Sets how long a pod may stay unschedulable before it is retried without an event.
    pub fn set_max_unschedulable_duration(&mut self, longest: Duration) {
        self.settings.max_unschedulable_duration = longest;
    }

    /// Sets how the order is chosen in which one event moves several pods; upstream's is random.
    pub fn set_tie_break(&mut self, tie_break: TieBreak) {
        self.tie_break = tie_break;
    }

    /// Pops the next pod and puts it in flight: the first of the active queue or, if that is empty
    /// and `pop_from_backoff` is set, the first of the backoff queue before its backoff ends.
    pub fn pop(&mut self, cx: &QueueContext<'_>) -> Option<QueuedPodInfo> {
        self.begin(cx);
        loop {
            let (pod, from, label) = self.take_next()?;
            if let Some(pod) = self.move_to_flight(pod, from, MoveCause::event(label)) {
                return Some(pod);
            }
        }
    }

    /// `None` if a pod with this UID is already in flight: this one is discarded then.
    fn move_to_flight(
        &mut self,
        pod: Arc<QueuedPodInfo>,
        from: QueueName,
        cause: MoveCause,
    ) -> Option<QueuedPodInfo> {
        let mut pod = Arc::unwrap_or_clone(pod);
        pod.attempts += 1;
        if !self.settings.behaviour.has(Switch::RejectorsKeptWhilePopped) {
            pod.unschedulable_plugins.clear();
            pod.pending_plugins.clear();
        }
        if !Arc::make_mut(&mut self.in_flight).push_pod(Arc::new(pod.clone())) {
            self.record(pod.key(), from, QueueName::None, cause);
            return None;
        }
        self.cycle += 1;
        self.record(pod.key(), from, QueueName::InFlight, cause);
        Some(pod)
    }

    /// Pops the pod with that key from any queue and puts it in flight, for a pod group's cycle.
    /// `None` if it is in no queue, or gated.
    pub(crate) fn pop_specific(
        &mut self,
        cx: &QueueContext<'_>,
        key: NamespacedName,
    ) -> Option<QueuedPodInfo> {
        self.begin(cx);
        self.activate_one(cx, key);
        if !self.active.contains(key) {
            return None;
        }
        let pod = with_orders!(self, |less, _order| {
            Arc::make_mut(&mut self.active).remove(key, less)
        })?;
        self.move_to_flight(pod, QueueName::Active, MoveCause::event("PodPopped"))
    }

    fn take_next(&mut self) -> Option<(Arc<QueuedPodInfo>, QueueName, &'static str)> {
        with_orders!(self, |less, order| {
            if self.active.len() > 0 {
                let pod = Arc::make_mut(&mut self.active).pop(less)?;
                return Some((pod, QueueName::Active, "PodPopped"));
            }
            order.tie?;
            let pod = self.backoff.pop_early(order)?;
            Some((pod, QueueName::Backoff, "PopFromBackoffQ"))
        })
    }

    /// Ends the pod's time in flight when it is not requeued.
    pub fn done(&mut self, uid: Uid) {
        if !self.in_flight.contains(uid) {
            return;
        }
        if let Some(pod) = Arc::make_mut(&mut self.in_flight).done(uid) {
            self.record(pod.key(), QueueName::InFlight, QueueName::None, MoveCause::event("Done"));
        }
    }

    /// Whether the pod with that UID is in flight.
    pub fn is_in_flight(&self, uid: Uid) -> bool {
        self.in_flight.contains(uid)
    }

    /// Number of pods popped so far.
    pub fn scheduling_cycle(&self) -> u64 {
        self.cycle
    }

    /// Nominates the pod to `node` (upstream's mode Override; an empty name ends its nomination), or
    /// with `None` to the node of its own status (mode Noop).
    pub(crate) fn add_nominated_pod(
        &mut self,
        pod: &Arc<PodInfo>,
        node: Option<Name>,
        objects: &Objects,
    ) {
        let to = node.unwrap_or(pod.pod.status.nominated_node_name);
        if !to.is_empty() || self.nominator.contains(pod.uid()) {
            Arc::make_mut(&mut self.nominator).add(&pod.pod, node, objects);
        }
    }

    /// Deletes the pod's nomination.
    pub(crate) fn delete_nominated_pod_if_exists(&mut self, uid: Uid) {
        if self.nominator.contains(uid) {
            Arc::make_mut(&mut self.nominator).remove(uid);
        }
    }

    /// Computes the signature of a new or updated pod; up to 1.35, its cycle does.
    fn sign(&self, cx: &QueueContext<'_>, pod: &mut QueuedPodInfo) {
        let signs = self.settings.behaviour.has(Switch::PodsSignedWhenQueued);
        pod.signature = signs.then(|| self.signature(cx, &pod.info)).flatten();
    }

    /// The signature of a pod as it is; `None` if it cannot be signed, or batching is off.
    pub(crate) fn signature(&self, cx: &QueueContext<'_>, pod: &PodInfo) -> Option<Arc<String>> {
        let signers = self.plugins.signers.get(&pod.pod.spec.scheduler_name)?;
        signing::sign(signers, cx, pod)
    }

    fn record(&mut self, pod: NamespacedName, from: QueueName, to: QueueName, cause: MoveCause) {
        if self.nominator.concerns(pod) {
            Arc::make_mut(&mut self.nominator).touch(pod);
        }
        if from == to {
            return;
        }
        self.hint_log.forget(pod);
        let MoveCause { event, plugin } = cause;
        let (time, order) = (self.now, None);
        self.moves.push(QueueMove { time, pod, from, to, event, plugin, order });
    }
}
