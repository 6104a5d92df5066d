//! What a scheduler plugin is: one trait with all extension points, each with a default.
//!
//! Lifecycle of a pod: [`Plugin::pre_enqueue`] before it may enter the active queue;
//! [`Plugin::less`] orders that queue; then, in one scheduling cycle, [`Plugin::pre_filter`] once,
//! [`Plugin::filter`] per node (with [`Plugin::add_pod`]/[`Plugin::remove_pod`] on copies of the
//! state for nominated pods and preemption), [`Plugin::post_filter`] if no node is feasible,
//! [`Plugin::pre_score`] once, [`Plugin::score`] per feasible node, [`Plugin::normalize`] once,
//! [`Plugin::reserve`], [`Plugin::permit`]; in the binding cycle [`Plugin::pre_bind_pre_flight`],
//! [`Plugin::pre_bind`], [`Plugin::bind`], [`Plugin::post_bind`], and [`Plugin::unreserve`] if
//! anything failed after Reserve. For a pod group as a whole, [`Plugin::generate_placements`] runs
//! before the cycles of its pods and [`Plugin::score_placement`] after them.
//!
//! Plugins are pure: they see only what the context contains, and store nothing in themselves
//! except their arguments. What must outlive a cycle is in [`PluginStore`]. A plugin's descriptor in the
//! registry lists the points at which it runs.
//!
//! Upstream: `staging/src/k8s.io/kube-scheduler/framework/interface.go`.

use std::sync::Arc;

use crate::cycle_state::CycleState;
use crate::effects::Effects;
use crate::events::{EventObjects, OlderRegistration, Registration};
pub use crate::explanation::{Explanation, JointPods, LowerRequest};
use crate::host::Host;
use crate::node::{NodeId, NodeInfo};
use crate::objects::Objects;
use crate::pod::nominated::NominatedPods;
use crate::pod::{NamespacedName, PodInfo, QueuedPodInfo};
use crate::pod_groups::{Placement, Proposal};
pub use crate::preemption::Preemption;
use crate::preemption::PreemptionRules;
use crate::preemption::kept::KeptDryRuns;
use crate::record::Candidate;
use crate::record::nodes::NodeList;
pub use crate::record::scores::ScoreBasis;
use crate::shared::PluginStore;
use crate::snapshot::Snapshot;
use crate::status::node_statuses::NodeStatuses;
use crate::status::{DistinctStatuses, Status};
use kubestep_api::intern::Symbol;
use kubestep_api::{Duration, Name, NodeAllocatableResourceClaimStatus, Pod, Time};
use kubestep_config::FeatureGates;
use kubestep_config::types::Extender;

/// What a plugin sees during a scheduling cycle. It does not change within the cycle.
#[derive(Clone, Copy)]
pub struct CycleContext<'a> {
    /// The pod to schedule.
    pub pod: &'a Arc<PodInfo>,
    /// The cluster at the start of the cycle.
    pub snapshot: &'a Snapshot,
    /// All objects except nodes.
    pub objects: &'a Objects,
    /// Which feature gates are on, and what the version of kube-scheduler changed.
    pub features: &'a FeatureGates,
    /// Pods nominated to nodes.
    pub nominated: &'a NominatedPods,
    /// What plugins store between cycles.
    pub shared: &'a PluginStore,
    /// The current time; virtual in a simulation.
    pub now: Time,
    /// The number that plugins use where upstream's draw a random one; 0 unless a seed is set.
    pub random: u64,
}

impl<'a> CycleContext<'a> {
    /// The part of the context that the queue sees too.
    pub fn queue(&self) -> QueueContext<'a> {
        QueueContext {
            objects: self.objects,
            features: self.features,
            shared: self.shared,
            now: self.now,
        }
    }
}

/// What a plugin sees from Reserve to PostBind. It may change `shared`, and write through the host.
pub struct BindContext<'a> {
    /// The pod, with its node set.
    pub pod: &'a Arc<PodInfo>,
    /// The chosen node, by name.
    pub node: Name,
    /// The cluster at the start of the cycle that chose the node.
    pub snapshot: &'a Snapshot,
    /// All objects except nodes.
    pub objects: &'a Objects,
    /// Which feature gates are on, and what the version of kube-scheduler changed.
    pub features: &'a FeatureGates,
    /// What plugins store between cycles.
    pub shared: &'a mut PluginStore,
    /// The interface to the outside.
    pub host: &'a mut dyn Host,
    /// The current time; virtual in a simulation.
    pub now: Time,
}

/// What a plugin sees when it decides whether a pod may enter the active queue, or whether an event
/// requeues it.
#[derive(Clone, Copy)]
pub struct QueueContext<'a> {
    /// All objects except nodes.
    pub objects: &'a Objects,
    /// Which feature gates are on, and what the version of kube-scheduler changed.
    pub features: &'a FeatureGates,
    /// What plugins store between cycles.
    pub shared: &'a PluginStore,
    /// The current time; virtual in a simulation.
    pub now: Time,
}

/// What a plugin sees when it generates or scores placements.
#[derive(Clone, Copy)]
pub struct GroupContext<'a> {
    /// The pod group, by namespace and name.
    pub group: NamespacedName,
    /// The cluster at the start of the cycle.
    pub snapshot: &'a Snapshot,
    /// All objects except nodes.
    pub objects: &'a Objects,
    /// Which feature gates are on, and what the version of kube-scheduler changed.
    pub features: &'a FeatureGates,
    /// What plugins store between cycles, including the pods of each group.
    pub shared: &'a PluginStore,
    /// The current time; virtual in a simulation.
    pub now: Time,
}

/// What a PostFilter plugin can run of its profile, to try changed copies of nodes. Upstream:
/// `Handle` in `staging/src/k8s.io/kube-scheduler/framework/interface.go`.
pub trait Handle {
    /// Runs the filters on a node, with and without the pods nominated to it; both must succeed.
    fn run_filter_with_nominated(
        &self,
        cx: &CycleContext<'_>,
        state: &CycleState,
        node: &NodeInfo,
    ) -> Status;

    /// Runs AddPod: updates the state for `added` on `node`.
    fn run_add_pod(
        &self,
        cx: &CycleContext<'_>,
        state: &mut CycleState,
        added: &PodInfo,
        node: &NodeInfo,
    ) -> Status;

    /// Runs RemovePod: updates the state for `removed`, no longer on `node`.
    fn run_remove_pod(
        &self,
        cx: &CycleContext<'_>,
        state: &mut CycleState,
        removed: &PodInfo,
        node: &NodeInfo,
    ) -> Status;

    /// The extenders, in their effective order, by whose index [`Host::call_extender`] identifies
    /// them.
    fn extenders(&self) -> &[Extender];
}

/// What PostFilter sees in addition to the cycle's context.
pub struct PostFilterContext<'a> {
    /// What the plugin sees at all points of the cycle.
    pub cycle: CycleContext<'a>,
    /// The profile, to run filters on changed nodes.
    pub framework: &'a dyn Handle,
    /// Why each node was rejected.
    pub statuses: &'a NodeStatuses,
    /// The interface to the outside, for extenders.
    pub host: &'a mut dyn Host,
    /// What the dry run found in earlier cycles of pods that are alike; `None`: nothing is kept.
    pub kept: Option<&'a mut KeptDryRuns>,
}

/// PreFilter's answer: a status and, if the plugin can narrow the search, the only nodes that can
/// fit.
#[derive(Clone, Default, Debug)]
pub struct PreFilterAnswer {
    /// Success, Skip or a failure.
    pub status: Status,
    /// Names of the only nodes that can fit, sorted; `None` for all.
    pub nodes: Option<Vec<Name>>,
}

impl From<Status> for PreFilterAnswer {
    fn from(status: Status) -> PreFilterAnswer {
        PreFilterAnswer { status, nodes: None }
    }
}

/// The fragments of a pod's signature that one plugin contributes, as (key, text); or why the pod
/// cannot be signed.
pub type Fragments = Result<Vec<(&'static str, String)>, Symbol>;

/// PostFilter's answer: a status, and what else was found on the way to it.
#[derive(Clone, Default, Debug)]
pub struct PostFilterAnswer {
    /// Success if the pod may fit once the decision is carried out.
    pub status: Status,
    /// The node to nominate; empty clears the nomination; `None` leaves it unchanged.
    pub nominate: Option<Name>,
    /// The candidates that were considered, in upstream's order.
    pub candidates: Vec<Candidate>,
    /// What the dry run found on the nodes that are no candidates.
    pub dry_run: Option<Arc<NodeStatuses>>,
    /// Which pods the plugin may evict for the pod and why, if that is not their priority alone.
    pub victim_rule: Option<Arc<str>>,
    /// The victims to evict.
    pub preemption: Option<Preemption>,
    /// What else the scheduler does.
    pub effects: Effects,
}

/// The order of the active queue at some time.
pub trait QueueOrder: Send + Sync {
    /// Whether `a` comes before `b`.
    fn less(&self, a: &QueuedPodInfo, b: &QueuedPodInfo) -> bool;
}

/// What a plugin sees when an object changed. The change is not yet in `objects`.
pub struct HandlerContext<'a> {
    /// All objects except nodes.
    pub objects: &'a Objects,
    /// Which feature gates are on, and what the version of kube-scheduler changed.
    pub features: &'a FeatureGates,
    /// What plugins store between cycles.
    pub shared: &'a mut PluginStore,
    /// The scheduler names of the profiles that have the plugin.
    pub profiles: &'a [Symbol],
    /// The current time; virtual in a simulation.
    pub now: Time,
}

/// Permit's answer: Success, Wait with a timeout, or a failure.
#[derive(Clone, Default, Debug)]
pub struct PermitAnswer {
    /// Success, Wait, or why the pod is rejected.
    pub status: Status,
    /// With Wait: the maximum wait.
    pub timeout: Duration,
}

impl From<Status> for PostFilterAnswer {
    fn from(status: Status) -> PostFilterAnswer {
        PostFilterAnswer { status, ..PostFilterAnswer::default() }
    }
}

impl From<Status> for PermitAnswer {
    fn from(status: Status) -> PermitAnswer {
        PermitAnswer { status, timeout: Duration::ZERO }
    }
}

/// A scheduler plugin: what it does at each extension point. Every method has a default.
pub trait Plugin: Send + Sync {
    /// The name, as configurations spell it.
    fn name(&self) -> Symbol;

    /// The events that could make a pod schedulable that this plugin rejected, each with the hint
    /// that judges it. `None`: every event counts. Called once, when a profile is built.
    fn events(&self) -> Option<Vec<Registration>> {
        None
    }

    /// How the plugin registers each of its [`Plugin::events`] by older rules.
    fn older_registration(&self) -> OlderRegistration {
        |_, newest| Some(newest)
    }

    /// Whether its rejections depend on the other pods of the pod's namespace. Without queueing
    /// hints, a pod with a node requeues the pods of its namespace that such a plugin rejected.
    fn counts_pods_of_namespace(&self) -> bool {
        false
    }

    /// Whether [`Plugin::pre_enqueue`] depends on nothing but the pod. Up to 1.33, no event of
    /// another object ungates the pods that such a plugin gates.
    fn gates_by_spec(&self) -> bool {
        false
    }

    /// Whether `node` with its pods could take `pod`, as far as this plugin can decide without a
    /// cycle. Without queueing hints it is asked before an event of the node requeues the pod.
    fn admits(&self, _cx: &QueueContext<'_>, _pod: &PodInfo, _node: &NodeInfo) -> bool {
        true
    }

    /// Whether [`Plugin::handle_event`] is called.
    fn handles_events(&self) -> bool {
        false
    }

    /// Called for each change of an object, before the queue: a place to keep a state up to date.
    /// Like upstream's informers, it sees no pods that succeeded or failed. All objects that exist
    /// when the plugin starts are reported as added.
    fn handle_event(&self, _cx: &mut HandlerContext<'_>, _objects: &EventObjects) {}

    /// Called for a plugin that handles events after [`Plugin::filter`] rejected a pod on `nodes`:
    /// upstream's plugins can keep that while they filter.
    fn nodes_rejected(&self, _cx: &mut HandlerContext<'_>, _nodes: &[Name]) {}

    /// Why [`Plugin::pre_filter`] rejected the pod, from what it computed; empty if its reasons say
    /// it all.
    fn explain_pre_filter(&self, _cx: &CycleContext<'_>, _state: &CycleState) -> Vec<Explanation> {
        Vec::new()
    }

    /// Why [`Plugin::filter`] rejected `node`, likewise.
    fn explain(
        &self,
        _cx: &CycleContext<'_>,
        _state: &CycleState,
        _node: &NodeInfo,
    ) -> Vec<Explanation> {
        Vec::new()
    }

    /// The pods that this plugin places together with `pod` or not at all.
    fn joint_pods(&self, _cx: &QueueContext<'_>, _pod: &Pod) -> Option<JointPods> {
        None
    }

    /// PreEnqueue: whether the pod may enter the active queue.
    fn pre_enqueue(&self, _cx: &QueueContext<'_>, _pod: &PodInfo) -> Status {
        Status::SUCCESS
    }

    /// QueueSort: whether `a` comes before `b`.
    fn less(&self, _a: &QueuedPodInfo, _b: &QueuedPodInfo) -> bool {
        false
    }

    /// QueueSort, where the order depends on more than the two pods: the order as of now, which
    /// takes the place of [`Plugin::less`]. Must be cheap, as it is called for each change of the
    /// queue.
    fn queue_order(&self, _cx: &QueueContext<'_>) -> Option<Arc<dyn QueueOrder>> {
        None
    }

    /// Everything in `pod` that [`Plugin::filter`] looks at, as a text, if its answer about a node
    /// depends on nothing else but the node with its pods.
    ///
    /// Pods with the same text share the answers, and the plugin runs again only for nodes that
    /// changed. So a field that Filter reads and the text omits gives a pod the answer for another
    /// one, and an answer that depends on other nodes, other objects or the time becomes stale. The
    /// same holds with nominated pods: what [`Plugin::add_pod`] changes for Filter may depend on the
    /// added pod, the node and this text alone. Other plugins return `None`, as by default: then
    /// Filter runs for each pod on each node.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use kubestep_framework::prelude::*;
    ///
    /// /// Keeps pods of a team apart, unless their priority is high.
    /// struct OnePerTeam;
    ///
    /// fn team(pod: &PodInfo) -> Option<Name> {
    ///     pod.pod.metadata.labels.get_str("team").copied()
    /// }
    ///
    /// impl Plugin for OnePerTeam {
    ///     fn name(&self) -> Symbol {
    ///         "OnePerTeam".into()
    ///     }
    ///
    ///     fn filter(&self, cx: &CycleContext<'_>, _: &CycleState, node: &NodeInfo) -> Status {
    ///         let own = team(cx.pod);
    ///         match cx.pod.priority() < 1000 && node.pods.iter().any(|pod| team(pod) == own) {
    ///             true => Status::unschedulable("node(s) had a pod of the team"),
    ///             false => Status::SUCCESS,
    ///         }
    ///     }
    ///
    ///     // Filter reads the label and whether the priority is high: both are in the key. Without
    ///     // the second, a pod of high priority would get the rejections of the others.
    ///     fn filter_key(&self, pod: &PodInfo) -> Option<String> {
    ///         Some(format!("{:?} {}", team(pod), pod.priority() < 1000))
    ///     }
    /// }
    ///
    /// let key = |team: &str, priority| {
    ///     let mut pod = Pod::default();
    ///     pod.metadata.labels.insert("team".into(), team.into());
    ///     pod.spec.priority = Some(priority);
    ///     OnePerTeam.filter_key(&PodInfo::new(Arc::new(pod)))
    /// };
    /// assert_eq!(key("web", 1), key("web", 2), "they share their answers");
    /// assert_ne!(key("web", 1), key("web", 2000));
    /// assert_ne!(key("web", 1), key("db", 1));
    /// ```
    fn filter_key(&self, _pod: &PodInfo) -> Option<String> {
        None
    }

    /// The same for [`Plugin::score`] before normalizing. [`Plugin::score_basis`] says whether also
    /// the normalized scores can be shared.
    fn score_key(&self, _pod: &PodInfo) -> Option<String> {
        None
    }

    /// Whether the scores depend, in addition to [`Plugin::score_key`], on the number of nodes.
    fn counts_nodes(&self) -> bool {
        false
    }

    /// PreFilter: precomputes, narrows the nodes, or rejects the pod.
    fn pre_filter(&self, _cx: &CycleContext<'_>, _state: &mut CycleState) -> PreFilterAnswer {
        PreFilterAnswer::default()
    }

    /// PreFilter extension AddPod: updates the state for `added` on `node`.
    fn add_pod(
        &self,
        _cx: &CycleContext<'_>,
        _state: &mut CycleState,
        _added: &PodInfo,
        _node: &NodeInfo,
    ) -> Status {
        Status::SUCCESS
    }

    /// PreFilter extension RemovePod: updates the state for `removed`, no longer on `node`.
    fn remove_pod(
        &self,
        _cx: &CycleContext<'_>,
        _state: &mut CycleState,
        _removed: &PodInfo,
        _node: &NodeInfo,
    ) -> Status {
        Status::SUCCESS
    }

    /// Filter: whether the pod can run on `node`.
    fn filter(&self, _cx: &CycleContext<'_>, _state: &CycleState, _node: &NodeInfo) -> Status {
        Status::SUCCESS
    }

    /// The answers of [`Plugin::filter`] about all nodes, for plugins that can compute them from
    /// the slots alone and never return an error. `None`: Filter runs on every node.
    fn filters(&self, _cx: &CycleContext<'_>, _state: &CycleState) -> Option<DistinctStatuses> {
        None
    }

    /// Whether [`Plugin::filter`] must be asked about one node after the other, in node order,
    /// because its answers could depend on which it was asked before.
    fn filters_in_order(&self) -> bool {
        false
    }

    /// Whether nothing of the pod concerns the plugin, as its PreFilter found: Filter passes every
    /// node, and every node scores 0, also after normalizing.
    fn is_idle(&self, _state: &CycleState) -> bool {
        false
    }

    /// PostFilter: what could make the pod schedulable when no node is feasible.
    fn post_filter(
        &self,
        _cx: &mut PostFilterContext<'_>,
        _state: &CycleState,
    ) -> PostFilterAnswer {
        PostFilterAnswer::default()
    }

    /// The rules of a plugin that preempts at PostFilter. `None`: it does not preempt.
    fn preemption(&self) -> Option<&dyn PreemptionRules> {
        None
    }

    /// PreScore: prepare for scoring `nodes`, or Skip.
    fn pre_score(
        &self,
        _cx: &CycleContext<'_>,
        _state: &mut CycleState,
        _nodes: &NodeList,
    ) -> Status {
        Status::SUCCESS
    }

    /// Score: how good `node` is. Any number if the plugin normalizes, otherwise 0 to 100.
    fn score(
        &self,
        _cx: &CycleContext<'_>,
        _state: &CycleState,
        _node: &NodeInfo,
    ) -> Result<i64, Status> {
        Ok(0)
    }

    /// The scores by [`Plugin::score`] of each of `nodes`, for plugins that can compute them from
    /// the slots alone and never return an error. `None`: Score runs on every node.
    fn scores(
        &self,
        _cx: &CycleContext<'_>,
        _state: &CycleState,
        _nodes: &[NodeId],
    ) -> Option<Vec<i64>> {
        None
    }

    /// What the normalized score of a node depends on, besides the pod and the node.
    fn score_basis(&self) -> ScoreBasis {
        ScoreBasis::default()
    }

    /// Normalize: brings all scores into 0 to 100. `nodes` is parallel to `scores`.
    fn normalize(
        &self,
        _cx: &CycleContext<'_>,
        _state: &CycleState,
        _nodes: &[NodeId],
        _scores: &mut [i64],
    ) -> Status {
        Status::SUCCESS
    }

    /// Reserve: reserves what the pod needs on the chosen node.
    fn reserve(&self, _cx: &mut BindContext<'_>, _state: &mut CycleState) -> Status {
        Status::SUCCESS
    }

    /// Unreserve: undoes [`Plugin::reserve`]. Also called if Reserve did not run.
    fn unreserve(&self, _cx: &mut BindContext<'_>, _state: &mut CycleState) {}

    /// Permit: allows the pod, rejects it, or makes it wait.
    fn permit(&self, _cx: &mut BindContext<'_>, _state: &mut CycleState) -> PermitAnswer {
        PermitAnswer::default()
    }

    /// The amounts that the pod's resource claims use of the resources of `node` itself, as Filter
    /// computed them. The scheduler writes them into the status of the pod that it assumes (gate
    /// DRANodeAllocatableResources).
    fn node_resource_claims(
        &self,
        _state: &CycleState,
        _node: Name,
    ) -> Vec<NodeAllocatableResourceClaimStatus> {
        Vec::new()
    }

    /// PreBindPreFlight: Success if PreBind will do something for this pod, Skip if not.
    fn pre_bind_pre_flight(&self, _cx: &BindContext<'_>, _state: &CycleState) -> Status {
        Status::skip()
    }

    /// Whether PreBind may run in parallel with that of adjacent plugins (upstream's
    /// `AllowParallel` in the result of PreBindPreFlight).
    fn pre_binds_in_parallel(&self) -> bool {
        false
    }

    /// PreBind: what must be done before the binding. Wait: run it again in five seconds.
    fn pre_bind(&self, _cx: &mut BindContext<'_>, _state: &mut CycleState) -> Status {
        Status::SUCCESS
    }

    /// Bind: binds the pod, or Skip to leave it to the next plugin.
    fn bind(&self, _cx: &mut BindContext<'_>, _state: &mut CycleState) -> Status {
        Status::skip()
    }

    /// PostBind: called after the pod was bound.
    fn post_bind(&self, _cx: &mut BindContext<'_>, _state: &mut CycleState) {}

    /// PlacementGenerate: the placements to try for a pod group, within `parent`.
    fn generate_placements(
        &self,
        _cx: &GroupContext<'_>,
        parent: &Placement,
    ) -> Result<Vec<Placement>, Status> {
        Ok(vec![parent.clone()])
    }

    /// PlacementScore: how good a placement is for the group, like [`Plugin::score`].
    fn score_placement(
        &self,
        _cx: &GroupContext<'_>,
        _proposal: &Proposal<'_>,
    ) -> Result<i64, Status> {
        Ok(0)
    }

    /// Normalize for PlacementScore: brings all scores into 0 to 100.
    fn normalize_placements(&self, _cx: &GroupContext<'_>, _scores: &mut [i64]) -> Status {
        Status::SUCCESS
    }

    /// Sign: the fields of the pod that this plugin's answers depend on, for batching. `Err` says
    /// why the pod cannot be signed.
    fn sign(&self, _cx: &QueueContext<'_>, _pod: &PodInfo) -> Fragments {
        Err(Symbol::EMPTY)
    }
}
