//! The simulated cluster: scheduler, API server and clock, advanced step by step.

use std::fmt::Display;
use std::sync::Arc;

use crate::api_server::ApiServer;
use kubestep_api::intern::Symbol;
use kubestep_api::{ControllerReports, Duration, Kind, Object, Provisioning, Time, Uid, defaults};
use kubestep_config::{ConfigError, FeatureGates, ResolvedConfig};
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::CycleRecord;
use kubestep_framework::registry::Registry;
use kubestep_scheduler::Scheduler;
use kubestep_scheduler::what_if::{self, PodSelection, ReplayHint};

/// 2026-01-01T00:00:00Z, where every simulation starts, in microseconds since 1970.
pub const START: Time = Time(1_767_225_600_000_000);
/// Time between the creation of pending pods, so that creation time gives their order.
const PENDING_POD_STEP: Duration = Duration::from_millis(1);

/// Bytes that a copy allocates at once: per node, per pod in the active queue, and regardless of
/// the size of the cluster.
const COPY_BYTES: [usize; 3] = [100, 36, 100_000];
/// Bytes by which two copies diverge with each step.
const STEP_BYTES: usize = 1_700;
/// Bytes by which two copies differ at most, per node and per pod.
const MOST_BYTES: [usize; 2] = [2_500, 200];

/// Why a scheduler cannot be built, or cannot be given another configuration.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WorldError {
    /// The configuration is not valid.
    #[error(transparent)]
    Config(ConfigError),
    /// The scheduler rejects it, for example an argument of a plugin: upstream's message.
    #[error("{0}")]
    Scheduler(String),
}

impl WorldError {
    pub(crate) fn scheduler(error: impl Display) -> WorldError {
        WorldError::Scheduler(error.to_string())
    }
}

/// Called before each change of an object is delivered to the scheduler; returns whether to go on.
pub type DeliveryObserver = Arc<dyn Fn() -> bool + Send + Sync>;

/// A cluster in memory. A copy behaves exactly as the original would.
#[derive(Clone)]
pub struct World {
    pub(super) scheduler: Scheduler,
    pub(super) api: ApiServer,
    pub(super) now: Time,
    pub(super) config: Arc<ResolvedConfig>,
    pub(super) registry: Arc<Registry>,
    /// Whether evictions may make progress: one was started, or the eviction of a victim was
    /// answered.
    pub(super) evictions_due: bool,
    pub(super) observer: Option<DeliveryObserver>,
}

impl World {
    /// An empty cluster with the scheduler that `config` describes.
    ///
    /// # Errors
    /// A plugin rejects its arguments.
    pub fn new(
        config: &ResolvedConfig,
        features: FeatureGates,
        registry: &Registry,
    ) -> Result<World, WorldError> {
        let mut world = World {
            scheduler: Scheduler::new(config, features, registry).map_err(WorldError::scheduler)?,
            api: ApiServer::default(),
            now: START,
            config: Arc::new(config.clone()),
            registry: Arc::new(registry.clone()),
            evictions_due: false,
            observer: None,
        };
        world.api.set_now(START);
        Ok(world)
    }

    /// The present time of the cluster.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Approximate memory of a copy that was made `steps` steps after another one, in bytes.
    /// Measured with the bench `time`.
    pub fn copy_bytes(&self, steps: usize) -> usize {
        let [nodes, pods] = [self.scheduler.snapshot().len(), self.api.objects().pods.len()];
        let [active, ..] = self.scheduler.queue().lengths();
        let [node, queued, fixed] = COPY_BYTES;
        let [most_of_node, most_of_pod] = MOST_BYTES;
        let most = nodes * most_of_node + pods * most_of_pod;
        fixed + nodes * node + active * queued + (steps * STEP_BYTES).min(most)
    }

    /// The scheduler with its queue, cache and records.
    pub fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// The scheduler, for draining what it recorded.
    pub fn scheduler_mut(&mut self) -> &mut Scheduler {
        &mut self.scheduler
    }

    /// The simulated API server, which has all objects.
    pub fn api(&self) -> &ApiServer {
        &self.api
    }

    /// The API server, for draining what it recorded or setting the function that calls extenders.
    pub fn api_mut(&mut self) -> &mut ApiServer {
        &mut self.api
    }

    /// Where new nodes come from.
    pub fn provisioning(&self) -> &Arc<Provisioning> {
        &self.api.provisioning
    }

    /// Takes over what is known about where new nodes come from.
    pub fn set_provisioning(&mut self, provisioning: Provisioning) {
        self.api.provisioning = provisioning.into();
    }

    /// What controllers in front of the scheduler report.
    pub fn controllers(&self) -> &Arc<ControllerReports> {
        &self.api.controllers
    }

    /// Takes over what controllers in front of the scheduler report.
    pub fn set_controllers(&mut self, reports: ControllerReports) {
        self.api.controllers = reports.into();
    }

    /// Creates an object, with the API's defaults. The clock advances by one millisecond before
    /// each pending pod.
    pub fn create(&mut self, mut object: Object) {
        defaults::apply(&mut object);
        self.stamp(&object);
        self.api.put(object);
        self.settle();
    }

    /// Creates objects that have their defaults already.
    pub(super) fn create_all(&mut self, objects: impl Iterator<Item = Object>) {
        for object in objects {
            self.stamp(&object);
            self.api.put(object);
            self.deliver();
        }
        self.settle();
    }

    /// Creates objects that were admitted, in their order, with the API's defaults; one that exists
    /// is replaced. The clock advances by a microsecond before each, so that pods keep their order.
    pub fn receive(&mut self, objects: Vec<Object>) {
        for mut object in objects {
            defaults::apply(&mut object);
            self.step_clock();
            self.api.put(object);
            self.deliver();
        }
        self.settle();
    }

    /// Replaces an object, with the API's defaults.
    pub fn update(&mut self, mut object: Object) {
        defaults::apply(&mut object);
        self.api.put(object);
        self.settle();
    }

    /// Deletes an object; `false` if it does not exist.
    pub fn delete(&mut self, kind: Kind, key: NamespacedName) -> bool {
        let there = self.api.remove(kind, key);
        self.settle();
        there
    }

    /// Advances the clock by `micros` microseconds and flushes what is due. The clock reaches
    /// further than a [`Duration`].
    pub fn advance(&mut self, micros: i64) {
        self.set_now(Time(self.now.0.saturating_add(micros)));
        self.scheduler.flush(self.now, &mut self.api);
        self.wake_rollouts();
        self.settle();
        self.continue_drain();
    }

    /// When the next timer is due: the end of a backoff, the flush of pods that have waited too
    /// long, a timeout at Permit, an eviction that a drain tries again, a pod of a rollout that
    /// becomes available. `None` if there is none.
    pub fn next_timer(&self) -> Option<Time> {
        let queue = self.scheduler.queue().next_timer(self.now);
        let waiting = self.scheduler.next_permit_timeout();
        queue.into_iter().chain(waiting).chain(self.next_disruption()).min()
    }

    /// Runs up to `cycles` scheduling cycles to their end; fewer if no pod can be popped.
    pub fn run(&mut self, cycles: usize) -> Vec<Arc<CycleRecord>> {
        (0..cycles).map_while(|_| self.step()).collect()
    }

    /// Runs one scheduling cycle to its end; `None` if no pod can be popped.
    pub fn step(&mut self) -> Option<Arc<CycleRecord>> {
        let record = self.scheduler.schedule_one(self.now, &mut self.api)?;
        self.evictions_due = true;
        self.settle();
        Some(Arc::new(record))
    }

    /// Repeats a recorded cycle, without its matrices; see [`ReplayHint::schedule_one`].
    /// `false` when no pod can be popped.
    pub fn step_again(&mut self, known: &ReplayHint) -> bool {
        if known.schedule_one(&mut self.scheduler, self.now, &mut self.api).is_none() {
            return false;
        }
        self.evictions_due = true;
        self.settle();
        true
    }

    /// Runs the cycle of one pod before all others; `None` if it is in no queue, or gated.
    pub fn step_ahead(&mut self, pod: NamespacedName) -> Option<Arc<CycleRecord>> {
        let record = what_if::schedule_ahead(&mut self.scheduler, pod, self.now, &mut self.api)?;
        self.evictions_due = true;
        self.settle();
        Some(Arc::new(record))
    }

    /// Allows a waiting pod for one plugin; `None`: for all.
    pub fn allow(&mut self, uid: Uid, plugin: Option<Symbol>) -> bool {
        let done = self.scheduler.allow_waiting(uid, plugin, self.now, &mut self.api);
        self.settle();
        done
    }

    /// Rejects a waiting pod in the name of `plugin`.
    pub fn reject(&mut self, uid: Uid, plugin: Symbol, message: &str) -> bool {
        let done = self.scheduler.reject_waiting(uid, plugin, message, self.now, &mut self.api);
        self.settle();
        done
    }

    /// Holds pods at Permit no more; see [`what_if::release`].
    pub fn release(&mut self, pods: Option<&PodSelection>) -> (bool, usize) {
        let done = what_if::release(&mut self.scheduler, pods, self.now, &mut self.api);
        self.settle();
        done
    }

    /// Lets `observer` follow what is delivered, until `None`. If it stops that, the cluster is left
    /// in the middle of a change and must be dropped.
    pub fn observe(&mut self, observer: Option<DeliveryObserver>) {
        self.observer = observer;
    }

    /// Lets all background work finish.
    pub(super) fn settle(&mut self) {
        loop {
            self.note();
            if !self.deliver() {
                return;
            }
            // A remote API server takes time to answer, and asking before is useless.
            if !self.api.is_local() && !std::mem::take(&mut self.evictions_due) {
                return;
            }
            while self.scheduler.evict_next(self.now, &mut self.api) {
                self.note();
                self.deliver();
            }
            if !self.react_to_disruptions() {
                return;
            }
        }
    }

    /// Delivers every change to the scheduler. `false` if the observer stopped that.
    pub(super) fn deliver(&mut self) -> bool {
        while let Some(change) = self.api.next_change() {
            if self.observer.as_ref().is_some_and(|goes_on| !goes_on()) {
                return false;
            }
            self.api.observe(&change);
            self.scheduler.handle(change, self.now, &mut self.api);
            self.note();
        }
        true
    }

    /// Advances the clock before a pending pod is created.
    pub(super) fn stamp(&mut self, object: &Object) {
        if let Object::Pod(pod) = object
            && pod.spec.node_name.is_empty()
        {
            self.set_now(self.now + PENDING_POD_STEP);
        }
    }

    pub(super) fn set_now(&mut self, now: Time) {
        self.now = now;
        self.api.set_now(now);
    }
}
