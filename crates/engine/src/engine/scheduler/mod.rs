//! The scheduler: profiles, cache, queue and listers, and the cycle that ties them together.
//!
//! One call of [`Scheduler::schedule_one`] runs one scheduling cycle with its binding cycle.
//! Changes of the cluster come in through [`Scheduler::handle`]; timers through
//! [`Scheduler::flush`]. Upstream: `pkg/scheduler/{scheduler,schedule_one,eventhandlers}.go`.

mod again;
mod aside;
mod assume;
mod batch;
mod bind;
mod by_hand;
mod cycle;
mod events;
mod extenders;
mod failure;
mod find;
mod groups;
mod kept;
mod matrix;
mod preempt;
mod prioritize;
mod probe;
mod reconfigure;
mod recorded;
mod select;
#[cfg(test)]
mod tests;
mod waiting;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use indexmap::IndexMap;

use crate::api::Time;
use crate::config::types::Extender;
use crate::config::{FeatureGates, ResolvedConfig};
use crate::engine::cache::Cache;
use crate::engine::framework::plugin::QueueContext;
use crate::engine::framework::registry::Registry;
use crate::engine::framework::runtime::Framework;
use crate::engine::framework::shared::Shared;
use crate::engine::host::Host;
use crate::engine::interventions::Interventions;
use crate::engine::node::NodeId;
use crate::engine::objects::Objects;
use crate::engine::pod::NamespacedName;
use crate::engine::pod_groups::PodGroupState;
use crate::engine::preemption::executor::Eviction;
use crate::engine::queue::SchedulingQueue;
use crate::engine::record::{CycleRecord, NodeNames, VerdictTable};
use crate::engine::scheduler::batch::Batch;
use crate::engine::scheduler::kept::Kept;
use crate::engine::scheduler::recorded::Recorded;
use crate::engine::snapshot::Snapshot;
use crate::engine::stopwatch::{Stopwatch, Timer};
use crate::engine::tie_break::TieBreak;
use crate::intern::Symbol;

pub use again::Known;
pub use events::Change;
pub use probe::{PreemptionProbe, Probe, Refusal, Scored};
pub use waiting::{Hold, Stage, WaitingPod};

/// Microseconds.
const SECOND: i64 = 1_000_000;

/// The profiles by scheduler name, in the configuration's order.
pub type Frameworks = IndexMap<Symbol, Arc<Framework>>;

/// The whole state of the scheduler. A copy goes on exactly as the original would.
#[derive(Clone)]
pub struct Scheduler {
    features: FeatureGates,
    frameworks: Arc<Frameworks>,
    extenders: Arc<[Extender]>,
    percentage_of_nodes_to_score: i32,
    tie_break: TieBreak,
    objects: Objects,
    cache: Cache,
    snapshot: Snapshot,
    queue: SchedulingQueue,
    shared: Shared,
    waiting: Vec<WaitingPod>,
    /// What batching remembers, by profile.
    batches: BTreeMap<Symbol, Batch>,
    preemptions: VecDeque<Eviction>,
    next_start_node_index: usize,
    cycles: u64,
    verdicts: Arc<VerdictTable>,
    node_names: Arc<NodeNames>,
    /// The order for which `node_names` was made.
    named_order: Arc<Vec<NodeId>>,
    kept: Kept,
    recorded: Recorded,
    finished: Vec<CycleRecord>,
    interventions: Interventions,
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
    pub fn flush(&mut self, now: Time, host: &mut dyn Host) {
        let (queue, cx) = self.queue_context(now);
        queue.flush_backoff_completed(&cx);
        queue.flush_unschedulable_leftover(&cx);
        self.expire_waiting(now, host);
        self.poll_pre_bind(now, host);
    }

    /// The queue together with what it needs to see.
    fn queue_context(&mut self, now: Time) -> (&mut SchedulingQueue, QueueContext<'_>) {
        let cx = QueueContext {
            objects: &self.objects,
            features: &self.features,
            shared: &self.shared,
            now,
        };
        (&mut self.queue, cx)
    }
}
