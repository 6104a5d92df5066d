//! What a scheduler plugin is: one trait, all extension points, each with a default.
//!
//! Lifecycle of a pod: [`Plugin::pre_enqueue`] before it may enter the active queue;
//! [`Plugin::less`] orders that queue; then, in one scheduling cycle,
//! [`Plugin::pre_filter`] once, [`Plugin::filter`] per node (with
//! [`Plugin::add_pod`]/[`Plugin::remove_pod`] on copies of the state for nominated pods and
//! preemption), [`Plugin::post_filter`] if no node was left, [`Plugin::pre_score`] once,
//! [`Plugin::score`] per feasible node, [`Plugin::normalize`] once, [`Plugin::reserve`],
//! [`Plugin::permit`]; in the binding cycle [`Plugin::pre_bind_pre_flight`],
//! [`Plugin::pre_bind`], [`Plugin::bind`], [`Plugin::post_bind`], and
//! [`Plugin::unreserve`] if anything failed after Reserve. For a pod group as a whole,
//! [`Plugin::generate_placements`] and [`Plugin::score_placement`] stand around the cycles of
//! its pods.
//!
//! Plugins are pure: they see only what the context hands them, and keep nothing in
//! themselves but their arguments. What must outlive a cycle is in [`Shared`].
//! At which points a plugin runs is said by its descriptor in the registry.
//!
//! Upstream: `staging/src/k8s.io/kube-scheduler/framework/interface.go`.

use std::sync::Arc;

use crate::cycle_state::CycleState;
use crate::events::{ClusterEvent, EventObjects, Hint, Registration};
use crate::host::Host;
use crate::node::{NodeId, NodeInfo};
use crate::objects::Objects;
use crate::pod::nominated::NominatedPods;
use crate::pod::{PodInfo, QueuedPod};
use crate::pod_groups::placement::{GroupContext, Placement, Proposal};
use crate::record::Candidate;
use crate::runtime::Framework;
use crate::shared::Shared;
use crate::snapshot::Snapshot;
use crate::status::Status;
use crate::status::node_statuses::NodeStatuses;
use kubestep_api::intern::Symbol;
use kubestep_api::{NodeAllocatableResourceClaimStatus, Time};
use kubestep_config::FeatureGates;

/// What a plugin sees during a scheduling cycle. All of it stays the same within the cycle.
#[derive(Clone, Copy)]
pub struct CycleContext<'a> {
    /// The pod to place.
    pub pod: &'a Arc<PodInfo>,
    /// The cluster at the start of the cycle.
    pub snapshot: &'a Snapshot,
    /// All other objects.
    pub objects: &'a Objects,
    /// The feature gates.
    pub features: &'a FeatureGates,
    /// Pods nominated to nodes.
    pub nominated: &'a NominatedPods,
    /// What plugins keep between cycles.
    pub shared: &'a Shared,
    /// The time.
    pub now: Time,
    /// What plugins use where upstream's take chance; 0 unless a seed is set.
    pub chance: u64,
}

impl<'a> CycleContext<'a> {
    /// The part of it that the queue sees too.
    pub fn queue(&self) -> QueueContext<'a> {
        QueueContext {
            objects: self.objects,
            features: self.features,
            shared: self.shared,
            now: self.now,
        }
    }
}

/// What a plugin sees from Reserve to PostBind. It may change what is shared, and the world.
pub struct BindContext<'a> {
    /// The pod, with its node set.
    pub pod: &'a Arc<PodInfo>,
    /// The chosen node.
    pub node: Symbol,
    /// The cluster at the start of the cycle that chose the node.
    pub snapshot: &'a Snapshot,
    /// All other objects.
    pub objects: &'a Objects,
    /// The feature gates.
    pub features: &'a FeatureGates,
    /// What plugins keep between cycles.
    pub shared: &'a mut Shared,
    /// The world outside.
    pub host: &'a mut dyn Host,
    /// The time.
    pub now: Time,
}

/// What a plugin sees when it judges whether a pod may enter the active queue, or whether an
/// event is worth a retry.
#[derive(Clone, Copy)]
pub struct QueueContext<'a> {
    /// All objects but nodes.
    pub objects: &'a Objects,
    /// The feature gates.
    pub features: &'a FeatureGates,
    /// What plugins keep between cycles.
    pub shared: &'a Shared,
    /// The time.
    pub now: Time,
}

/// What PostFilter works with, beside the cycle's context.
pub struct PostFilterContext<'a> {
    /// The cycle.
    pub cycle: CycleContext<'a>,
    /// The profile, to run filters on changed nodes.
    pub framework: &'a Framework,
    /// Why each node was refused.
    pub statuses: &'a NodeStatuses,
    /// The world outside, for extenders.
    pub host: &'a mut dyn Host,
}

/// PreFilter's answer: a status and, if the plugin can narrow the search, the only nodes
/// worth a look.
#[derive(Clone, Default, Debug)]
pub struct PreFilterAnswer {
    /// Success, Skip or a failure.
    pub status: Status,
    /// Names of the only nodes that can fit, sorted; `None` for all.
    pub nodes: Option<Vec<Symbol>>,
}

impl From<Status> for PreFilterAnswer {
    fn from(status: Status) -> PreFilterAnswer {
        PreFilterAnswer { status, nodes: None }
    }
}

/// Victims to be evicted for a pod.
#[derive(Clone, PartialEq, Debug)]
pub struct Preemption {
    /// The plugin that decided.
    pub plugin: Symbol,
    /// The node.
    pub node: Symbol,
    /// The victims, in the order decided.
    pub victims: Vec<Arc<PodInfo>>,
    /// How the choice is recorded.
    pub candidate: Candidate,
}

/// PostFilter's answer.
#[derive(Clone, Default, Debug)]
pub struct PostFilterAnswer {
    /// Success when the pod may fit after what was decided.
    pub status: Status,
    /// Nominates a node; empty clears the nomination; `None` leaves it (FW-006).
    pub nominate: Option<Symbol>,
    /// The candidates that were considered, in upstream's order.
    pub candidates: Vec<Candidate>,
    /// What the dry run found on the nodes that are no candidates.
    pub dry_run: Option<Arc<NodeStatuses>>,
    /// What is to be evicted.
    pub preemption: Option<Preemption>,
}

/// Permit's answer: Success, Wait with the longest wait in microseconds, or a failure.
#[derive(Clone, Default, Debug)]
pub struct PermitAnswer {
    /// The status.
    pub status: Status,
    /// With Wait: how long at most, in microseconds.
    pub timeout: i64,
}

impl From<Status> for PermitAnswer {
    fn from(status: Status) -> PermitAnswer {
        PermitAnswer { status, timeout: 0 }
    }
}

/// A scheduler plugin.
pub trait Plugin: Send + Sync {
    /// The name, as configurations spell it.
    fn name(&self) -> Symbol;

    /// The events that could make a pod schedulable which this plugin rejected. `None`: the
    /// plugin does not say, so every event counts (FW-200).
    fn events(&self) -> Option<Vec<Registration>> {
        None
    }

    /// Whether an event could make `pod` schedulable. Asked for events registered with
    /// [`Registration::hinted`]. An error counts as [`Hint::Queue`].
    fn hint(
        &self,
        _cx: &QueueContext<'_>,
        _pod: &PodInfo,
        _event: &ClusterEvent,
        _objects: &EventObjects,
    ) -> Result<Hint, String> {
        Ok(Hint::Queue)
    }

    /// PreEnqueue: may the pod enter the active queue?
    fn pre_enqueue(&self, _cx: &QueueContext<'_>, _pod: &PodInfo) -> Status {
        Status::SUCCESS
    }

    /// QueueSort: whether `a` comes before `b`.
    fn less(&self, _a: &QueuedPod, _b: &QueuedPod) -> bool {
        false
    }

    /// What of `pod` [`Plugin::filter`] looks at, if its answer about a node depends on that, on
    /// the node with its pods, and on nothing else. Such answers are shared by all pods with
    /// the same text, and asked again only for nodes that change. `None`: it depends on more.
    fn filter_key(&self, _pod: &PodInfo) -> Option<String> {
        None
    }

    /// The same for [`Plugin::score`] before normalizing.
    fn score_key(&self, _pod: &PodInfo) -> Option<String> {
        None
    }

    /// Whether the scores depend, beside what [`Plugin::score_key`] says, on how many nodes there
    /// are.
    fn counts_nodes(&self) -> bool {
        false
    }

    /// PreFilter: prepare, narrow, or refuse at once.
    fn pre_filter(&self, _cx: &CycleContext<'_>, _state: &mut CycleState) -> PreFilterAnswer {
        PreFilterAnswer::default()
    }

    /// PreFilter extension: `added` is now on `node`; adjust the state.
    fn add_pod(
        &self,
        _cx: &CycleContext<'_>,
        _state: &mut CycleState,
        _added: &PodInfo,
        _node: &NodeInfo,
    ) -> Status {
        Status::SUCCESS
    }

    /// PreFilter extension: `removed` is no longer on `node`; adjust the state.
    fn remove_pod(
        &self,
        _cx: &CycleContext<'_>,
        _state: &mut CycleState,
        _removed: &PodInfo,
        _node: &NodeInfo,
    ) -> Status {
        Status::SUCCESS
    }

    /// Filter: can the pod run on `node`?
    fn filter(&self, _cx: &CycleContext<'_>, _state: &CycleState, _node: &NodeInfo) -> Status {
        Status::SUCCESS
    }

    /// What [`Plugin::filter`] would say of each of `nodes`, for plugins that know it by the slots
    /// alone and none of whose answers is an error. `None`: ask about every node.
    fn filters(
        &self,
        _cx: &CycleContext<'_>,
        _state: &CycleState,
        _nodes: &[NodeId],
    ) -> Option<Vec<Status>> {
        None
    }

    /// PostFilter: no node was left; what could be done?
    fn post_filter(
        &self,
        _cx: &mut PostFilterContext<'_>,
        _state: &CycleState,
    ) -> PostFilterAnswer {
        PostFilterAnswer::default()
    }

    /// PreScore: prepare for scoring `nodes`, or Skip.
    fn pre_score(
        &self,
        _cx: &CycleContext<'_>,
        _state: &mut CycleState,
        _nodes: &[NodeId],
    ) -> Status {
        Status::SUCCESS
    }

    /// Score: how good is `node`? Any number if the plugin normalizes, else 0 to 100.
    fn score(
        &self,
        _cx: &CycleContext<'_>,
        _state: &CycleState,
        _node: &NodeInfo,
    ) -> Result<i64, Status> {
        Ok(0)
    }

    /// What [`Plugin::score`] would say of each of `nodes`, for plugins that know it by the slots
    /// alone and none of whose scores is an error. `None`: ask about every node.
    fn scores(
        &self,
        _cx: &CycleContext<'_>,
        _state: &CycleState,
        _nodes: &[NodeId],
    ) -> Option<Vec<i64>> {
        None
    }

    /// Normalize: bring all scores into 0 to 100. `nodes` runs parallel to `scores`.
    fn normalize(
        &self,
        _cx: &CycleContext<'_>,
        _state: &CycleState,
        _nodes: &[NodeId],
        _scores: &mut [i64],
    ) -> Status {
        Status::SUCCESS
    }

    /// Reserve: claim what the pod needs on the chosen node.
    fn reserve(&self, _cx: &mut BindContext<'_>, _state: &mut CycleState) -> Status {
        Status::SUCCESS
    }

    /// Give back what [`Plugin::reserve`] claimed. Called also if it never ran.
    fn unreserve(&self, _cx: &mut BindContext<'_>, _state: &mut CycleState) {}

    /// Permit: let the pod go on, refuse it, or hold it.
    fn permit(&self, _cx: &mut BindContext<'_>, _state: &mut CycleState) -> PermitAnswer {
        PermitAnswer::default()
    }

    /// What the pod's resource claims take of the resources that `node` itself has, as the plugin
    /// found it in Filter. The scheduler writes it into the status of the pod that it assumes
    /// (behind DRANodeAllocatableResources).
    fn node_resource_claims(
        &self,
        _state: &CycleState,
        _node: Symbol,
    ) -> Vec<NodeAllocatableResourceClaimStatus> {
        Vec::new()
    }

    /// PreBindPreFlight: Success if PreBind will do something for this pod, Skip if not.
    fn pre_bind_pre_flight(&self, _cx: &BindContext<'_>, _state: &CycleState) -> Status {
        Status::skip()
    }

    /// Whether PreBind may run while that of its neighbours does (upstream's `AllowParallel` in
    /// the answer of PreBindPreFlight).
    fn pre_binds_in_parallel(&self) -> bool {
        false
    }

    /// PreBind: what must be done before the binding. Wait: ask again in five seconds.
    fn pre_bind(&self, _cx: &mut BindContext<'_>, _state: &mut CycleState) -> Status {
        Status::SUCCESS
    }

    /// Bind: bind the pod, or Skip to leave it to the next plugin.
    fn bind(&self, _cx: &mut BindContext<'_>, _state: &mut CycleState) -> Status {
        Status::skip()
    }

    /// PostBind: the pod is bound.
    fn post_bind(&self, _cx: &mut BindContext<'_>, _state: &mut CycleState) {}

    /// PlacementGenerate: the placements to try for a pod group, within `parent`.
    fn generate_placements(
        &self,
        _cx: &GroupContext<'_>,
        parent: &Placement,
    ) -> Result<Vec<Placement>, Status> {
        Ok(vec![parent.clone()])
    }

    /// PlacementScore: how good is it for the group? As [`Plugin::score`].
    fn score_placement(
        &self,
        _cx: &GroupContext<'_>,
        _proposal: &Proposal<'_>,
    ) -> Result<i64, Status> {
        Ok(0)
    }

    /// Normalize for PlacementScore: bring all scores into 0 to 100.
    fn normalize_placements(&self, _cx: &GroupContext<'_>, _scores: &mut [i64]) -> Status {
        Status::SUCCESS
    }

    /// Sign: what of the pod this plugin's answers depend on, for batching (FW-221). `Err`
    /// carries why a pod cannot be signed.
    fn sign(
        &self,
        _cx: &QueueContext<'_>,
        _pod: &PodInfo,
    ) -> Result<Vec<(&'static str, String)>, Symbol> {
        Err(Symbol::EMPTY)
    }
}
