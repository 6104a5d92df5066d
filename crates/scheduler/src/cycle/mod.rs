//! The cycle of a pod: the scheduling cycle finds a node, the binding cycle binds the pod to it.
//!
//! To be read in this order: [`schedule_one`] takes the pod from pop to Permit and handles
//! failures; [`schedule_pod`] finds the nodes that fit (with [`batch`], which proposes one) and
//! [`prioritize`] scores them and selects one; [`binding`] binds the pod, which [`waiting`] may
//! hold up; [`preemption`] evicts victims beside the cycles. [`group`] is the cycle of a pod
//! group. Upstream: `pkg/scheduler/schedule_one.go`.

pub(crate) mod batch;
pub(crate) mod binding;
mod group;
mod preemption;
mod prioritize;
mod schedule_one;
pub(crate) mod schedule_pod;
mod select;
pub(crate) mod waiting;

use std::sync::Arc;

use crate::answers::matrix::{SearchKeys, mark_outside_placement};
use crate::cluster_state::ClusterState;
use crate::interventions;
use kubestep_api::{Name, Time};
use kubestep_config::{Feature, FeatureGates};
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::node::{NodeId, NodeInfo};
use kubestep_framework::plugin::CycleContext;
use kubestep_framework::pod::nominated::NominatedPods;
use kubestep_framework::pod::{PodInfo, QueuedPodInfo};
use kubestep_framework::record::column::Column;
use kubestep_framework::record::{CycleRecord, VerdictId};
use kubestep_framework::runtime::Framework;
use kubestep_framework::snapshot::Snapshot;
use kubestep_framework::snapshot::positions::PositionSet;
use kubestep_framework::status::node_statuses::Diagnosis;
use kubestep_framework::status::{Code, Status};

/// Why a cycle failed, as the failure handler needs it.
#[derive(Clone)]
pub(crate) struct Failure {
    /// The final status; its message is the pod's.
    pub status: Status,
    /// Set for a FitError: which plugins rejected the pod.
    pub diagnosis: Option<Box<Diagnosis>>,
    /// Nominates a node; empty clears; `None` leaves the nomination.
    pub nominate: Option<Name>,
}

impl Failure {
    /// A failure that clears the nomination and names no plugin.
    pub fn plain(status: Status) -> Failure {
        Failure { status, diagnosis: None, nominate: Some(Name::EMPTY) }
    }

    /// A FitError about `nodes` nodes.
    pub fn fit(code: Code, diagnosis: Diagnosis, nodes: usize, nominate: Option<Name>) -> Failure {
        let status = Status::new(code, &diagnosis.message(nodes));
        Failure { status, diagnosis: Some(Box::new(diagnosis)), nominate }
    }

    /// A rejection after the node was chosen: a FitError about that node alone. Any other
    /// status stays as it is.
    pub fn after_selection(snapshot: &Snapshot, node: Option<Name>, status: Status) -> Failure {
        if !status.is_rejected() {
            return Failure::plain(status);
        }
        let mut diagnosis = Diagnosis::default();
        let code = status.code();
        diagnosis.add_plugin_status(&status);
        match node.and_then(|name| snapshot.by_name(name)) {
            Some(node) => diagnosis.statuses.set(node.id, status),
            None => diagnosis.statuses.set_absent(status),
        }
        Failure::fit(code, diagnosis, 1, Some(Name::EMPTY))
    }
}

/// A cycle in progress: the pod, its profile, its state, and the record of it.
#[derive(Clone)]
pub(crate) struct Cycle {
    pub framework: Arc<Framework>,
    pub queued: QueuedPodInfo,
    pub state: CycleState,
    pub nominated: NominatedPods,
    /// The nodes that passed filters and extenders, as the extenders returned them; empty
    /// without extenders.
    pub returned: Vec<Arc<NodeInfo>>,
    /// By slot: the verdict of the first filter plugin that rejects the node, each run alone. `None`
    /// if only some nodes are searched.
    pub first_rejections: Option<Column<VerdictId>>,
    /// The cache keys of the search for nodes.
    pub keys: SearchKeys,
    /// Whether the pod itself is nominated.
    pub is_nominated: bool,
    /// The node to which the pod was nominated, in its status, because its binding takes time.
    pub announced: Option<Name>,
    /// The positions in the node order of the nodes that pass, if a kept search found them.
    pub passing: Option<PositionSet>,
    /// By slot: the verdict, as far as it is known; empty while none is.
    pub verdicts: Vec<VerdictId>,
    /// The nodes evaluated so far, in order.
    pub evaluated: Vec<NodeId>,
    pub record: CycleRecord,
    /// What the placement depends on, for batching.
    pub signature: Option<Arc<String>>,
    pub now: Time,
}

/// A cycle taken apart, so that plugins can read one part of it while another one changes.
pub(crate) struct CycleParts<'a> {
    pub framework: &'a Framework,
    pub cx: CycleContext<'a>,
    pub state: &'a mut CycleState,
    pub returned: &'a [Arc<NodeInfo>],
    pub first_rejections: &'a mut Option<Column<VerdictId>>,
    pub keys: &'a mut SearchKeys,
    pub passing: &'a Option<PositionSet>,
    pub verdicts: &'a mut Vec<VerdictId>,
    pub evaluated: &'a mut Vec<NodeId>,
    pub record: &'a mut CycleRecord,
}

impl Cycle {
    /// A cycle of a pod that is not nominated and not signed, before its search.
    pub fn new(
        framework: Arc<Framework>,
        queued: QueuedPodInfo,
        record: CycleRecord,
        nominated: NominatedPods,
    ) -> Cycle {
        Cycle {
            framework,
            queued,
            state: interventions::initial_state(&record.interventions),
            nominated,
            returned: Vec::new(),
            first_rejections: None,
            keys: SearchKeys::default(),
            is_nominated: false,
            announced: None,
            passing: None,
            verdicts: Vec::new(),
            evaluated: Vec::new(),
            signature: None,
            now: record.time,
            record,
        }
    }

    /// What plugins see in this cycle.
    pub fn context<'a>(&'a self, cluster: &'a ClusterState) -> CycleContext<'a> {
        CycleContext {
            pod: &self.queued.info,
            snapshot: &cluster.snapshot,
            objects: &cluster.objects,
            features: &cluster.features,
            nominated: &self.nominated,
            shared: &cluster.shared,
            now: self.now,
            random: self.random(),
        }
    }

    /// What plugins see in this cycle, beside everything that the cycle changes.
    pub fn parts<'a>(&'a mut self, cluster: &'a ClusterState) -> CycleParts<'a> {
        let random = self.random();
        CycleParts {
            framework: &self.framework,
            cx: CycleContext {
                pod: &self.queued.info,
                snapshot: &cluster.snapshot,
                objects: &cluster.objects,
                features: &cluster.features,
                nominated: &self.nominated,
                shared: &cluster.shared,
                now: self.now,
                random,
            },
            state: &mut self.state,
            returned: &self.returned,
            first_rejections: &mut self.first_rejections,
            keys: &mut self.keys,
            passing: &self.passing,
            verdicts: &mut self.verdicts,
            evaluated: &mut self.evaluated,
            record: &mut self.record,
        }
    }

    /// Sets the verdict of every node to the one of a cycle that ended, if none is known yet.
    pub(crate) fn begin_verdicts(&mut self, snapshot: &Snapshot) {
        if self.verdicts.is_empty() {
            self.verdicts = vec![VerdictId::CYCLE_ENDED; snapshot.slots()];
            mark_outside_placement(snapshot, &mut self.verdicts);
        }
    }

    /// The number of this cycle where upstream draws a random one.
    pub fn random(&self) -> u64 {
        self.record.tie_break.random(self.record.cycle)
    }

    /// The pod as it will be on the node, with the resources that its claims use there.
    pub(crate) fn pod_on(&self, node: Name, features: &FeatureGates) -> Arc<PodInfo> {
        let info = self.queued.info.as_ref();
        let mut pod = info.pod.as_ref().clone();
        pod.spec.node_name = node;
        if !features.enabled(Feature::DRANodeAllocatableResources) {
            return Arc::new(info.with_object(Arc::new(pod)));
        }
        let plugins = self.framework.instances().iter();
        pod.status.node_allocatable_resource_claim_statuses =
            plugins.flat_map(|plugin| plugin.node_resource_claims(&self.state, node)).collect();
        Arc::new(PodInfo::with_features(Arc::new(pod), features))
    }
}
