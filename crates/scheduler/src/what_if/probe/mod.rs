//! A probe: what the plugins would answer for a pod. Nothing is popped, assumed or recorded, and
//! the scheduler stays as it is.
//!
//! A cycle ends at the first rejection; a probe asks every plugin about every node, so that
//! all obstacles are seen at once. It works on copies that share everything.

mod preemption;

use std::sync::Arc;

use rayon::prelude::*;

use crate::Scheduler;
use kubestep_api::Time;
use kubestep_api::intern::Symbol;
use kubestep_config::{ExtensionPoint, FeatureGates, ProfileArgs};
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::node::{NodeId, NodeInfo};
use kubestep_framework::objects::Objects;
use kubestep_framework::plugin::{CycleContext, Plugin};
use kubestep_framework::pod::PodInfo;
use kubestep_framework::pod::nominated::NominatedPods;
use kubestep_framework::record::nodes::NodeList;
use kubestep_framework::record::{PluginStatus, ScoreRecord};
use kubestep_framework::runtime::Framework;
use kubestep_framework::runtime::filter::run_one_filter;
use kubestep_framework::runtime::scoring::CachedScores;
use kubestep_framework::shared::PluginStore;
use kubestep_framework::snapshot::Snapshot;
use kubestep_framework::status::Status;

pub use preemption::PreemptionProbe;

/// Number of nodes that one thread processes at a time.
const CHUNK: usize = 128;

/// The plugins of a profile after PreFilter for one pod.
#[derive(Clone)]
pub struct Probe {
    framework: Arc<Framework>,
    pod: Arc<PodInfo>,
    snapshot: Snapshot,
    objects: Objects,
    features: FeatureGates,
    nominated: NominatedPods,
    shared: PluginStore,
    now: Time,
    state: CycleState,
    answers: Vec<PluginStatus>,
}

/// A rejection of a node by a plugin.
#[derive(Clone, PartialEq, Debug)]
pub struct FilterRejection {
    /// The index of the plugin among the profile's filters.
    pub filter: usize,
    /// The status with which it rejects.
    pub status: Status,
    /// Whether it rejects the node only when the nominated pods are added.
    pub by_nominated: bool,
}

/// A node with the pods nominated to it added, and the matching cycle state.
pub struct Filled {
    /// The cycle state after AddPod of the nominated pods.
    pub state: CycleState,
    pub node: NodeInfo,
}

/// The scores of nodes, with the state from which they were computed.
pub struct Scored {
    /// The state after PreScore.
    pub state: CycleState,
    /// The scores of each plugin, and the totals.
    pub record: ScoreRecord,
}

impl Probe {
    /// Asks PreFilter about the pod as the cluster is now. `None` if no profile serves it. If
    /// the pod is on a node, it is asked as if it were not there.
    pub fn new(scheduler: &Scheduler, pod: &Arc<PodInfo>, now: Time) -> Option<Probe> {
        let profiles = &scheduler.profiles.frameworks;
        let framework = profiles.get(&pod.pod.spec.scheduler_name)?.clone();
        let cluster = &scheduler.cluster;
        let (mut cache, mut snapshot) = (scheduler.cache.clone(), cluster.snapshot.clone());
        if let Some(placed) = cache.pod(pod.uid()).cloned() {
            // Cannot fail: the pod is in the cache.
            let _removed = cache.remove_pod(&placed.pod);
        }
        cache.update_snapshot(&mut snapshot);
        let mut probe = Probe {
            framework,
            pod: pod.clone(),
            snapshot,
            objects: cluster.objects.clone(),
            features: cluster.features,
            nominated: scheduler.queue.nominated_pods(),
            shared: cluster.shared.clone(),
            now,
            state: CycleState::default(),
            answers: Vec::new(),
        };
        probe.pre_filter();
        Some(probe)
    }

    /// The framework of the pod's profile.
    pub fn framework(&self) -> &Arc<Framework> {
        &self.framework
    }

    /// The arguments of the profile's plugins.
    pub fn args(&self) -> &ProfileArgs {
        &self.framework.profile().args
    }

    /// The pod that is tried.
    pub fn pod(&self) -> &Arc<PodInfo> {
        &self.pod
    }

    /// The nodes and the pods on them.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The version and its feature gates.
    pub fn features(&self) -> &FeatureGates {
        &self.features
    }

    /// The cycle state after PreFilter.
    pub fn state(&self) -> &CycleState {
        &self.state
    }

    /// The PreFilter status of each plugin. Unlike in a cycle, the other plugins run even after a
    /// rejection.
    pub fn answers(&self) -> &[PluginStatus] {
        &self.answers
    }

    /// The context that plugins get.
    pub fn cx(&self) -> CycleContext<'_> {
        CycleContext {
            pod: &self.pod,
            snapshot: &self.snapshot,
            objects: &self.objects,
            features: &self.features,
            nominated: &self.nominated,
            shared: &self.shared,
            now: self.now,
            random: 0,
        }
    }

    /// Whether a plugin's Filter runs: its PreFilter neither skipped nor rejected.
    pub fn filters(&self, plugin: Symbol) -> bool {
        let answer = self.answers.iter().find(|answer| answer.plugin == plugin);
        answer.is_none_or(|answer| answer.status.is_success())
    }

    /// For every node, in node order, the rejections by filters, in the order of the filters.
    pub fn rejections(&self) -> Vec<Vec<FilterRejection>> {
        let nodes: Vec<&Arc<NodeInfo>> = self.snapshot.iter().collect();
        let filters = self.framework.at(ExtensionPoint::Filter);
        match filters.iter().any(|plugin| plugin.filters_in_order()) {
            true => nodes.iter().map(|node| self.rejections_of(node)).collect(),
            false => {
                nodes.par_iter().with_min_len(CHUNK).map(|node| self.rejections_of(node)).collect()
            }
        }
    }

    /// The rejections of one node.
    pub fn rejections_of(&self, node: &NodeInfo) -> Vec<FilterRejection> {
        let filters = self.framework.at(ExtensionPoint::Filter);
        let asked = (0..filters.len()).filter(|at| self.filters(filters[*at].name()));
        let filled = self.filled(node);
        asked.filter_map(|at| self.ask(at, node, filled.as_ref())).collect()
    }

    fn ask(
        &self,
        filter: usize,
        node: &NodeInfo,
        filled: Option<&Filled>,
    ) -> Option<FilterRejection> {
        let plugin = &self.framework.at(ExtensionPoint::Filter)[filter];
        let alone = self.filter(plugin, &self.state, node);
        if !alone.is_success() {
            return Some(FilterRejection { filter, status: alone, by_nominated: false });
        }
        let status = self.filter(plugin, &filled?.state, &filled?.node);
        (!status.is_success()).then_some(FilterRejection { filter, status, by_nominated: true })
    }

    fn filter(&self, plugin: &Arc<dyn Plugin>, state: &CycleState, node: &NodeInfo) -> Status {
        run_one_filter(plugin, &self.cx(), state, node)
    }

    /// The node with the relevant pods nominated to it added; `None` if there are none.
    pub fn filled(&self, node: &NodeInfo) -> Option<Filled> {
        if self.nominated.for_node(node.name).is_empty() {
            return None;
        }
        let filled = self.framework.with_nominated(&self.cx(), &self.state, node);
        filled.ok().flatten().map(|(state, node)| Filled { state, node })
    }

    fn pre_filter(&mut self) {
        let framework = self.framework.clone();
        let mut state = CycleState::default();
        for plugin in framework.at(ExtensionPoint::PreFilter) {
            let name = plugin.name();
            let answer = plugin.pre_filter(&self.cx(), &mut state);
            let status = answer.status.by(name);
            if !status.is_success() {
                // Also after a rejection, so that no nominated pods are added for this plugin.
                state.skip_filter.push(name);
            }
            self.answers
                .push(PluginStatus { nodes: answer.nodes, ..PluginStatus::new(name, status) });
        }
        self.state = state;
    }
}

impl Probe {
    /// Scores the nodes as they are given, without extenders. What a filter leaves in the state for Score, such as
    /// DynamicResources, is there only after [`Probe::rejections`].
    ///
    /// # Errors
    /// The status of the plugin that failed.
    pub fn score(&self, nodes: &[Arc<NodeInfo>]) -> Result<Scored, Status> {
        let (cx, mut state) = (self.cx(), self.state.clone());
        let ids: Vec<NodeId> = nodes.iter().map(|node| node.id).collect();
        let ids = NodeList::from(ids);
        let (pre_score, status) = self.framework.run_pre_score(&cx, &mut state, &ids);
        let mut record = ScoreRecord { pre_score: pre_score.into(), ..ScoreRecord::default() };
        if !status.is_success() {
            return Err(status);
        }
        let raw = |plugin: &dyn Plugin| {
            nodes.iter().map(|node| plugin.score(&cx, &state, node)).collect()
        };
        let status = self.framework.run_score(
            &cx,
            &state,
            &ids,
            CachedScores::none(nodes.len()),
            raw,
            &mut record,
        );
        match status.is_success() {
            true => Ok(Scored { state, record }),
            false => Err(status),
        }
    }
}
