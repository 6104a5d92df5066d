//! The scheduler: profiles, cache, queue and listers, and the cycle that ties them together.
//!
//! One call of [`Scheduler::schedule_one`] runs one scheduling cycle with its binding cycle.
//! Changes of the cluster come in through [`Scheduler::handle`]; timers through
//! [`Scheduler::flush`]. Upstream: `pkg/scheduler/{scheduler,schedule_one,eventhandlers}.go`.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use indexmap::IndexMap;

use crate::WaitingPod;
use crate::cache::Cache;
use crate::cycle::batch::Batch;
use crate::cycle::kept::Kept;
use crate::cycle::recorded::Recorded;
use crate::host::SchedulerHost;
use crate::interventions::Interventions;
use crate::queue::SchedulingQueue;
use crate::reconfigure;
use kubestep_api::Time;
use kubestep_api::intern::Symbol;
use kubestep_config::types::Extender;
use kubestep_config::{FeatureGates, ResolvedConfig};
use kubestep_framework::node::NodeId;
use kubestep_framework::objects::Objects;
use kubestep_framework::plugin::QueueContext;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::pod_groups::PodGroupState;
use kubestep_framework::preemption::executor::Eviction;
use kubestep_framework::record::{CycleRecord, NodeNames, VerdictTable};
use kubestep_framework::registry::Registry;
use kubestep_framework::runtime::Framework;
use kubestep_framework::runtime::stopwatch::{Stopwatch, Timer};
use kubestep_framework::shared::Shared;
use kubestep_framework::snapshot::Snapshot;
use kubestep_framework::tie_break::TieBreak;

/// Microseconds.
pub(crate) const SECOND: i64 = 1_000_000;

/// The profiles by scheduler name, in the configuration's order.
pub type Frameworks = IndexMap<Symbol, Arc<Framework>>;

/// The whole state of the scheduler. A copy goes on exactly as the original would.
#[derive(Clone)]
pub struct Scheduler {
    pub(crate) features: FeatureGates,
    pub(crate) frameworks: Arc<Frameworks>,
    pub(crate) extenders: Arc<[Extender]>,
    pub(crate) percentage_of_nodes_to_score: i32,
    pub(crate) tie_break: TieBreak,
    pub(crate) objects: Objects,
    pub(crate) cache: Cache,
    pub(crate) snapshot: Snapshot,
    pub(crate) queue: SchedulingQueue,
    pub(crate) shared: Shared,
    pub(crate) waiting: Vec<WaitingPod>,
    /// What batching remembers, by profile.
    pub(crate) batches: BTreeMap<Symbol, Batch>,
    pub(crate) preemptions: VecDeque<Eviction>,
    pub(crate) next_start_node_index: usize,
    pub(crate) cycles: u64,
    pub(crate) verdicts: Arc<VerdictTable>,
    pub(crate) node_names: Arc<NodeNames>,
    /// The order for which `node_names` was made.
    pub(crate) named_order: Arc<Vec<NodeId>>,
    pub(crate) kept: Kept,
    pub(crate) recorded: Recorded,
    pub(crate) finished: Vec<CycleRecord>,
    pub(crate) interventions: Interventions,
}

impl Scheduler {
    /// Builds the scheduler that a configuration describes.
    ///
    /// # Errors
    /// A plugin refuses its arguments, in upstream's words.
    pub fn new(
        config: &ResolvedConfig,
        features: FeatureGates,
        registry: &Registry,
    ) -> Result<Scheduler, String> {
        let (frameworks, extenders) = reconfigure::frameworks(config, &features, registry)?;
        let settings = reconfigure::queue_settings(config, &features);
        Ok(Scheduler {
            queue: SchedulingQueue::new(settings, &frameworks),
            features,
            frameworks: Arc::new(frameworks),
            extenders,
            percentage_of_nodes_to_score: config.percentage_of_nodes_to_score,
            tie_break: TieBreak::default(),
            objects: Objects::default(),
            cache: Cache::default(),
            snapshot: Snapshot::default(),
            shared: Shared::default(),
            waiting: Vec::new(),
            batches: BTreeMap::new(),
            preemptions: VecDeque::new(),
            next_start_node_index: 0,
            cycles: 0,
            verdicts: Arc::default(),
            node_names: Arc::default(),
            named_order: Arc::default(),
            kept: Kept::default(),
            recorded: Recorded::default(),
            finished: Vec::new(),
            interventions: Interventions::default(),
        })
    }

    /// Says how ties are broken from now on.
    pub fn set_tie_break(&mut self, tie_break: TieBreak) {
        self.tie_break = tie_break;
        self.queue.set_tie_break(tie_break);
    }

    /// From now on plugins are measured with a stopwatch, or not at all.
    pub fn measure(&mut self, stopwatch: Option<Arc<Stopwatch>>) {
        self.shared.timer = Timer::new(stopwatch);
    }

    /// The profiles.
    pub fn frameworks(&self) -> &Frameworks {
        &self.frameworks
    }

    /// The feature gates.
    pub fn features(&self) -> &FeatureGates {
        &self.features
    }

    /// The queue.
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
        &self.snapshot
    }

    /// All objects but nodes.
    pub fn objects(&self) -> &Objects {
        &self.objects
    }

    /// The pods that wait at Permit, in the order they came.
    pub fn waiting(&self) -> &[WaitingPod] {
        &self.waiting
    }

    /// The pods of a group; `None` while groups are no feature, or if it has none.
    pub fn pod_group(&self, group: NamespacedName) -> Option<&PodGroupState> {
        self.shared.pod_groups.get(group).ok()
    }

    /// Scheduling cycles so far.
    pub fn cycles(&self) -> u64 {
        self.cycles
    }

    /// Cycles whose pod had waited at Permit and is decided since the last call.
    pub fn take_finished(&mut self) -> Vec<CycleRecord> {
        std::mem::take(&mut self.finished)
    }

    /// Forgets the answers of plugins that are kept from cycle to cycle. Nothing but the time of
    /// the next cycle depends on them; this is there to prove it.
    pub fn forget_kept_answers(&mut self) {
        self.kept.clear();
    }

    /// Moves what is due at `now`: completed backoffs, leftovers of five minutes, timeouts of
    /// waiting pods, and looks again whether devices are ready.
    pub fn flush(&mut self, now: Time, host: &mut dyn SchedulerHost) {
        let (queue, cx) = self.queue_context(now);
        queue.flush_backoff_completed(&cx);
        queue.flush_unschedulable_leftover(&cx);
        self.expire_waiting(now, host);
        self.poll_pre_bind(now, host);
    }

    /// The queue together with what it needs to see.
    pub(crate) fn queue_context(&mut self, now: Time) -> (&mut SchedulingQueue, QueueContext<'_>) {
        let cx = QueueContext {
            objects: &self.objects,
            features: &self.features,
            shared: &self.shared,
            now,
        };
        (&mut self.queue, cx)
    }
}
