//! The simulated cluster: scheduler, API server and clock, moved on step by step.

use std::sync::Arc;

use crate::api_server::ApiServer;
use kubestep_api::intern::Symbol;
use kubestep_api::{Kind, Object, Time, defaults};
use kubestep_config::{FeatureGates, ResolvedConfig};
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::CycleRecord;
use kubestep_framework::registry::Registry;
use kubestep_scheduler::interventions::holds::PodSelection;
use kubestep_scheduler::{Known, Scheduler};

/// 2026-01-01T00:00:00Z, where every simulation starts, in microseconds since 1970.
pub const START: Time = Time(1_767_225_600_000_000);
/// How far apart pending pods are created: one millisecond, so that their order is one of time.
const PENDING_POD_STEP: i64 = 1_000;

/// Bytes that a copy has for itself at once: by node, by pod in the active queue, and whatever
/// the size of the cluster.
const COPY_BYTES: [usize; 3] = [100, 36, 100_000];
/// Bytes that each step makes two copies differ further.
const STEP_BYTES: usize = 1_700;
/// Bytes by which two copies differ at most, by node and by pod.
const MOST_BYTES: [usize; 2] = [2_500, 200];

/// A cluster in memory. A copy goes on exactly as the original would.
#[derive(Clone)]
pub struct World {
    pub(super) scheduler: Scheduler,
    pub(super) api: ApiServer,
    pub(super) now: Time,
    pub(super) config: Arc<ResolvedConfig>,
    pub(super) registry: Arc<Registry>,
    /// Whether an eviction may go on: one was begun, or a victim's end was answered.
    pub(super) evictions_due: bool,
}

impl World {
    /// An empty cluster with the scheduler that `config` describes.
    ///
    /// # Errors
    /// A plugin refuses its arguments, in upstream's words.
    pub fn new(
        config: &ResolvedConfig,
        features: FeatureGates,
        registry: &Registry,
    ) -> Result<World, String> {
        let mut world = World {
            scheduler: Scheduler::new(config, features, registry)?,
            api: ApiServer::default(),
            now: START,
            config: Arc::new(config.clone()),
            registry: Arc::new(registry.clone()),
            evictions_due: false,
        };
        world.api.set_now(START);
        Ok(world)
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// About how much memory a copy takes that was made so many steps after another one, in
    /// bytes. Measured with the bench `time`.
    pub fn copy_bytes(&self, steps: usize) -> usize {
        let [nodes, pods] = [self.scheduler.snapshot().len(), self.api.objects().pods.len()];
        let [active, ..] = self.scheduler.queue().lengths();
        let [node, queued, fixed] = COPY_BYTES;
        let [most_of_node, most_of_pod] = MOST_BYTES;
        let most = nodes * most_of_node + pods * most_of_pod;
        fixed + nodes * node + active * queued + (steps * STEP_BYTES).min(most)
    }

    /// The scheduler.
    pub fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// The scheduler, to drain what it recorded.
    pub fn scheduler_mut(&mut self) -> &mut Scheduler {
        &mut self.scheduler
    }

    /// The API server.
    pub fn api(&self) -> &ApiServer {
        &self.api
    }

    /// The API server, to drain what it recorded or to say who answers for extenders.
    pub fn api_mut(&mut self) -> &mut ApiServer {
        &mut self.api
    }

    /// Creates an object, with the API's defaults. The clock moves one millisecond before
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

    /// Replaces an object, with the API's defaults.
    pub fn update(&mut self, mut object: Object) {
        defaults::apply(&mut object);
        self.api.put(object);
        self.settle();
    }

    /// Deletes an object; `false` if it is not there.
    pub fn delete(&mut self, kind: Kind, key: NamespacedName) -> bool {
        let there = self.api.remove(kind, key);
        self.settle();
        there
    }

    /// Moves the clock by `micros` microseconds and flushes what is due then.
    pub fn advance(&mut self, micros: i64) {
        self.set_now(Time(self.now.0.saturating_add(micros)));
        self.scheduler.flush(self.now, &mut self.api);
        self.settle();
    }

    /// When something is due by itself: the end of a backoff, the flush of leftovers, a
    /// timeout at Permit. `None` if nothing is.
    pub fn next_timer(&self) -> Option<Time> {
        let queue = self.scheduler.queue().next_timer(self.now);
        queue.into_iter().chain(self.scheduler.next_permit_timeout()).min()
    }

    /// Runs up to `cycles` scheduling cycles, each to its end; fewer when no pod can be popped.
    pub fn run(&mut self, cycles: usize) -> Vec<Arc<CycleRecord>> {
        (0..cycles).map_while(|_| self.step()).collect()
    }

    /// Runs one scheduling cycle to its end; `None` when no pod can be popped.
    pub fn step(&mut self) -> Option<Arc<CycleRecord>> {
        let record = self.scheduler.schedule_one(self.now, &mut self.api)?;
        self.evictions_due = true;
        self.settle();
        Some(Arc::new(record))
    }

    /// Runs a cycle again that is known, without its matrices; see [`Scheduler::schedule_again`].
    /// `false` when no pod can be popped.
    pub fn step_again(&mut self, known: &Known) -> bool {
        if self.scheduler.schedule_again(known, self.now, &mut self.api).is_none() {
            return false;
        }
        self.evictions_due = true;
        self.settle();
        true
    }

    /// Runs the cycle of one pod ahead of all others; `None` if it is in no queue, or gated.
    pub fn step_ahead(&mut self, pod: NamespacedName) -> Option<Arc<CycleRecord>> {
        let record = self.scheduler.schedule_ahead(pod, self.now, &mut self.api)?;
        self.evictions_due = true;
        self.settle();
        Some(Arc::new(record))
    }

    /// Allows a waiting pod for one plugin, or for all with `None`.
    pub fn allow(&mut self, uid: Symbol, plugin: Option<Symbol>) -> bool {
        let done = self.scheduler.allow_waiting(uid, plugin, self.now, &mut self.api);
        self.settle();
        done
    }

    /// Rejects a waiting pod in the name of `plugin`.
    pub fn reject(&mut self, uid: Symbol, plugin: Symbol, message: &str) -> bool {
        let done = self.scheduler.reject_waiting(uid, plugin, message, self.now, &mut self.api);
        self.settle();
        done
    }

    /// Holds pods at Permit no more; see [`Scheduler::release`].
    pub fn release(&mut self, pods: Option<&PodSelection>) -> (bool, usize) {
        let done = self.scheduler.release(pods, self.now, &mut self.api);
        self.settle();
        done
    }

    /// Lets everything finish that runs beside the cycles.
    pub(super) fn settle(&mut self) {
        self.note();
        self.deliver();
        // Elsewhere an answer takes its time, and there is no use in asking before.
        if !self.api.is_here() && !std::mem::take(&mut self.evictions_due) {
            return;
        }
        while self.scheduler.evict_next(self.now, &mut self.api) {
            self.note();
            self.deliver();
        }
    }

    /// Delivers every change to the scheduler.
    fn deliver(&mut self) {
        while let Some(change) = self.api.next_change() {
            self.scheduler.handle(change, self.now, &mut self.api);
            self.note();
        }
    }

    /// Moves the clock on before a pending pod.
    fn stamp(&mut self, object: &Object) {
        if let Object::Pod(pod) = object
            && pod.spec.node_name.is_empty()
        {
            self.set_now(Time(self.now.0 + PENDING_POD_STEP));
        }
    }

    fn set_now(&mut self, now: Time) {
        self.now = now;
        self.api.set_now(now);
    }
}
