//! The scheduler and its parts.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use crate::cache::Cache;
use crate::cluster_state::ClusterState;
use crate::cycle::schedule_pod::Algorithm;
use crate::cycle::waiting::{WaitingPod, WaitingPods};
use crate::host::SchedulerHost;
use crate::interventions::Interventions;
use crate::profiles::{Frameworks, Profiles, UnusableProfile, queue_settings};
use crate::queue::SchedulingQueue;
use kubestep_api::intern::Symbol;
use kubestep_api::{ObjectKey, Time};
use kubestep_config::{FeatureGates, ResolvedConfig};
use kubestep_framework::effects::WaitingRejection;
use kubestep_framework::objects::Objects;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::pod_groups::PodGroupState;
use kubestep_framework::preemption::executor::Eviction;
use kubestep_framework::record::{CycleRecord, QueueName};
use kubestep_framework::registry::Registry;
use kubestep_framework::snapshot::Snapshot;
use kubestep_framework::stopwatch::{Stopwatch, Timer};
use kubestep_framework::tie_break::TieBreak;

/// The whole state of the scheduler. A copy goes on exactly as the original would.
#[derive(Clone)]
pub struct Scheduler {
    pub(crate) profiles: Profiles,
    pub(crate) tie_break: TieBreak,
    /// What plugins see: listers, snapshot, their own state, feature gates.
    pub(crate) cluster: ClusterState,
    pub(crate) cache: Cache,
    pub(crate) queue: SchedulingQueue,
    /// What the search for nodes keeps from cycle to cycle.
    pub(crate) algorithm: Algorithm,
    /// Scheduling cycles so far.
    pub(crate) cycles: u64,
    /// Pods in their binding cycle.
    pub(crate) waiting: WaitingPods,
    /// Cycles that ended after their pod had waited.
    pub(crate) finished: Vec<CycleRecord>,
    /// Preemptions whose victims are evicted in the background, in turn.
    pub(crate) preemptions: VecDeque<Eviction>,
    pub(crate) interventions: Interventions,
    /// Pods that wait at Permit and are still to be rejected, while that is going on.
    pub(crate) rejections: Option<VecDeque<WaitingRejection>>,
}

impl Scheduler {
    /// Builds the scheduler that a configuration describes.
    ///
    /// # Errors
    /// A plugin rejects its arguments.
    pub fn new(
        config: &ResolvedConfig,
        features: FeatureGates,
        registry: &Registry,
    ) -> Result<Scheduler, UnusableProfile> {
        let profiles = Profiles::new(config, &features, registry)?;
        let settings = queue_settings(config, &features);
        Ok(Scheduler {
            queue: SchedulingQueue::new(settings, &profiles.frameworks),
            profiles,
            tie_break: TieBreak::default(),
            cluster: ClusterState { features, ..ClusterState::default() },
            cache: Cache::default(),
            algorithm: Algorithm::default(),
            cycles: 0,
            waiting: WaitingPods::default(),
            finished: Vec::new(),
            preemptions: VecDeque::new(),
            interventions: Interventions::default(),
            rejections: None,
        })
    }

    /// Sets how ties are broken from now on.
    pub fn set_tie_break(&mut self, tie_break: TieBreak) {
        self.tie_break = tie_break;
        self.queue.set_tie_break(tie_break);
    }

    /// Measures plugins with a stopwatch from now on, or no longer with `None`.
    pub fn measure(&mut self, stopwatch: Option<Arc<Stopwatch>>) {
        self.cluster.shared.timer = Timer::new(stopwatch);
    }

    /// The profiles, ready to run, by scheduler name.
    pub fn frameworks(&self) -> &Frameworks {
        &self.profiles.frameworks
    }

    /// Which feature gates are on, and what the version of kube-scheduler changed.
    pub fn features(&self) -> &FeatureGates {
        &self.cluster.features
    }

    /// The scheduling queue, to read it.
    pub fn queue(&self) -> &SchedulingQueue {
        &self.queue
    }

    /// The queue, to drain what it recorded.
    pub fn queue_mut(&mut self) -> &mut SchedulingQueue {
        &mut self.queue
    }

    /// Nodes with their pods, assumed ones included.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// The snapshot that the last cycle worked on.
    pub fn snapshot(&self) -> &Snapshot {
        &self.cluster.snapshot
    }

    /// All objects except nodes.
    pub fn objects(&self) -> &Objects {
        &self.cluster.objects
    }

    /// The pods that wait in their binding cycle, in the order in which they began to wait.
    pub fn waiting(&self) -> &[WaitingPod] {
        self.waiting.pods()
    }

    /// The interventions for cycles to come.
    pub fn interventions(&self) -> &Interventions {
        &self.interventions
    }

    /// The interventions for cycles to come, to change them.
    pub fn interventions_mut(&mut self) -> &mut Interventions {
        &mut self.interventions
    }

    /// The pods of a group; `None` while the GenericWorkload gate is off, or if it has none.
    pub fn pod_group(&self, group: NamespacedName) -> Option<&PodGroupState> {
        self.cluster.shared.pod_groups.get(group).ok()
    }

    /// Volumes, volume claims and resource claims that Reserve decided in memory and that are
    /// not yet written.
    pub fn reserved_objects(&self) -> BTreeSet<ObjectKey> {
        self.cluster.reserved_objects()
    }

    /// Scheduling cycles so far.
    pub fn cycles(&self) -> u64 {
        self.cycles
    }

    /// Cycles whose pod had waited and that ended since the last call.
    pub fn take_finished(&mut self) -> Vec<CycleRecord> {
        std::mem::take(&mut self.finished)
    }

    /// Clears the cache of the plugins' answers. Only the duration of the next cycle depends on it,
    /// which tests check with this function.
    pub fn clear_answer_cache(&mut self) {
        self.algorithm.answers.clear();
    }

    /// Handles what is due at `now`: completed backoffs, pods that were unschedulable for five
    /// minutes, timeouts of waiting pods, and whether devices are ready.
    pub fn flush(&mut self, now: Time, host: &mut dyn SchedulerHost) {
        let cx = self.cluster.queue_context(now);
        self.queue.flush_backoff_completed(&cx);
        self.queue.flush_unschedulable_leftover(&cx);
        self.expire_waiting(now, host);
        self.poll_pre_bind(now, host);
    }

    /// Moves a pod into the active queue from any other; gates still apply. `false` if it is in
    /// no queue or does not get there.
    pub fn activate(&mut self, key: NamespacedName, now: Time) -> bool {
        self.queue.activate(&self.cluster.queue_context(now), &[key]);
        self.queue.queue_of(key) == QueueName::Active
    }

    /// Requeues a pod that waits for an event. `false` if it does not wait for one.
    pub fn retry(&mut self, key: NamespacedName, now: Time) -> bool {
        self.queue.retry(&self.cluster.queue_context(now), key)
    }

    /// Parks a queued pod in the name of `by`, which is not a plugin: no event requeues it, only
    /// a change of the pod, the flush of leftovers or [`Scheduler::activate`].
    pub fn park(&mut self, pod: NamespacedName, by: Symbol, now: Time) {
        let cx = self.cluster.queue_context(now);
        let Some(mut queued) = self.queue.pop_specific(&cx, pod) else { return };
        // This was not an attempt.
        queued.attempts -= 1;
        queued.unschedulable_plugins = vec![by];
        // Cannot fail: it was just popped, so it is in no queue.
        let _parked = self.queue.add_unschedulable_if_not_present(&cx, queued);
    }
}
