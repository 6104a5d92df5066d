//! The cause of a rejection as data with its text: which taint, which expression, how much of a
//! resource is missing, which pod blocks.
//!
//! `EXPLAINERS` is the table: one file per in-tree plugin; other plugins may explain themselves. An explainer gets the state and the node that
//! the plugin evaluated, and uses the plugin's own computations; none decides again whether the pod
//! fits. For a plugin without an explainer its message is quoted.

mod culprits;
mod dynamic_resources;
mod inter_pod_affinity;
mod memo;
mod node_affinity;
mod node_condition;
mod node_declared_features;
mod node_name;
mod node_ports;
mod node_resources_fit;
mod node_terms;
mod node_unschedulable;
mod node_volume_limits;
pub(super) mod pod_topology_spread;
mod taint_toleration;
mod volume_binding;
mod volume_restrictions;
mod volume_zone;

use serde::Serialize;

pub use culprits::{BlockingPod, BlockingPods};
pub use dynamic_resources::{AttributeValue, DeviceCause, Devices, Holder, UnmetConstraint};
pub use inter_pod_affinity::{
    AffinityTermText, BlockingAntiAffinity, LabelTypo, NoPodNear, TermOwner,
};
pub use node_affinity::{AffinityMismatch, AffinityOf};
pub use node_condition::NodeCondition;
pub use node_declared_features::UndeclaredFeatures;
pub use node_name::OtherNode;
pub use node_ports::PortTaken;
pub use node_resources_fit::Shortage;
pub(crate) use node_terms::notation;
pub use node_terms::{Hint, UnmetExpression};
pub use node_unschedulable::Cordoned;
pub use node_volume_limits::{VolumeCount, VolumeLimit};
pub use pod_topology_spread::{Skew, SpreadCause};
pub use taint_toleration::{UnmatchedToleration, UntoleratedTaint};
pub use volume_binding::{RejectedVolume, VolumeCause, VolumeProblem};
pub use volume_restrictions::VolumeTaken;
pub use volume_zone::OtherZone;

pub(crate) use memo::Memo;
pub(crate) use node_condition::is_kept_by_controller;

use kubestep_api::intern::Symbol;
use kubestep_api::words::count;
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::node::NodeInfo;
use kubestep_framework::plugin::{CycleContext, Explanation, LowerRequest, Plugin};
use kubestep_framework::status::Status;
use kubestep_scheduler::what_if::Probe;

/// What can remove a cause.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Outlook {
    /// Normal activity in the cluster: pods that end or are created, taints that controllers
    /// remove.
    Cluster,
    /// A manual change of the node's state, of another object or of the pod.
    Manual,
    /// A change of the pod or the node: they do not match, and preemption won't help.
    Mismatch,
}

/// A cause of a plugin's rejection of a pod on a node.
#[derive(Clone, PartialEq, Debug)]
pub struct Cause {
    /// The kind of cause, with its data.
    pub detail: CauseDetail,
    /// How much is missing: from near 0 for a small amount to 1 for a whole requirement.
    pub missing: f64,
    /// What can remove it.
    pub outlook: Outlook,
}

impl Cause {
    fn new(detail: impl Into<CauseDetail>, missing: f64, outlook: Outlook) -> Cause {
        Cause { detail: detail.into(), missing, outlook }
    }

    /// A short text, the same for all nodes that are rejected for the same reason.
    pub fn gist(&self) -> String {
        self.detail.texts().gist()
    }

    /// The full text, with the details of the node.
    pub fn text(&self) -> String {
        self.detail.texts().text()
    }

    /// Whether its text says that no node has what is asked for.
    pub fn names_no_node(&self) -> bool {
        self.detail.texts().unmet().iter().any(UnmetExpression::names_no_node)
    }

    /// Whether it only quotes the plugin's message, because the plugin has no explainer.
    pub fn is_quoted(&self) -> bool {
        matches!(self.detail, CauseDetail::Message(_))
    }
}

/// The texts of a kind of cause.
trait CauseText {
    /// The short text, without what differs between nodes.
    fn gist(&self) -> String;
    /// The text for details; the gist where there is no more to say.
    fn text(&self) -> String {
        self.gist()
    }
    /// The unmet expressions that the gist names.
    fn unmet(&self) -> &[UnmetExpression] {
        &[]
    }
}

/// Declares [`CauseDetail`] and the conversions into it.
macro_rules! details {
    ($($(#[$doc:meta])* $kind:ident($type:ty),)*) => {
        /// The kinds of causes.
        #[derive(Clone, PartialEq, Debug, Serialize)]
        #[serde(tag = "kind", rename_all = "camelCase")]
        pub enum CauseDetail {
            $($(#[$doc])* $kind($type),)*
        }

        impl CauseDetail {
            fn texts(&self) -> &dyn CauseText {
                match self { $(CauseDetail::$kind(cause) => cause,)* }
            }
        }

        $(impl From<$type> for CauseDetail {
            fn from(cause: $type) -> CauseDetail {
                CauseDetail::$kind(cause)
            }
        })*
    };
}

details! {
    /// The node is cordoned.
    Cordoned(Cordoned),
    /// A condition of the node for which the node controller adds a taint.
    NodeCondition(NodeCondition),
    /// A taint that the pod does not tolerate.
    Taint(UntoleratedTaint),
    /// The node's labels or name do not match what the pod or the profile requires.
    Affinity(AffinityMismatch),
    /// The pod names another node in `spec.nodeName`.
    OtherNode(OtherNode),
    /// A host port that another pod holds.
    PortTaken(PortTaken),
    /// A kubelet feature that the node does not declare.
    UndeclaredFeatures(UndeclaredFeatures),
    /// No pod that the pod's affinity requires is in the node's domain.
    NoPodNear(NoPodNear),
    /// A pod in the node's domain conflicts with an anti-affinity term, of either pod.
    BlockedByPod(BlockingAntiAffinity),
    /// The skew would exceed `maxSkew`.
    Spread(SpreadCause),
    /// Less of a resource is free than the pod requests.
    Shortage(Shortage),
    /// A claim that cannot have its volume on this node.
    Volume(VolumeCause),
    /// A volume in another zone.
    OtherZone(OtherZone),
    /// A CSI driver whose volume limit is reached.
    VolumeLimit(VolumeLimit),
    /// A volume that another pod uses.
    VolumeTaken(VolumeTaken),
    /// Devices of a resource claim that are taken, tainted or do not match.
    Devices(DeviceCause),
    /// No filter rejects the node, but PreFilter excluded it.
    LeftOut(OutsidePreFilter),
    /// An explanation by the plugin itself.
    Plugin(PluginCause),
    /// The plugin's own message, where no explainer knows more.
    Message(PluginMessage),
}

/// PreFilter restricted the search to other nodes.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OutsidePreFilter {
    /// The number of nodes it kept.
    pub left: usize,
}

impl CauseText for OutsidePreFilter {
    fn gist(&self) -> String {
        format!("PreFilter restricted the search to {}", count(self.left, "other node"))
    }
}

/// An explanation by the plugin itself.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PluginCause {
    /// One line, as the plugin wrote it.
    pub gist: String,
    #[serde(skip)]
    words: String,
    /// What the pod could request instead, each a way by itself.
    #[serde(skip)]
    pub(crate) lower_requests: Vec<Vec<LowerRequest>>,
}

impl CauseText for PluginCause {
    fn gist(&self) -> String {
        self.gist.clone()
    }

    fn text(&self) -> String {
        self.words.clone()
    }
}

impl From<Explanation> for Cause {
    fn from(said: Explanation) -> Cause {
        let Explanation { gist, words, missing, lower_requests } = said;
        Cause::new(PluginCause { gist, words, lower_requests }, missing, Outlook::Cluster)
    }
}

/// The message of a plugin without an explainer, or of an error.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PluginMessage {
    /// The reasons of its status, in its order.
    pub reasons: Vec<Symbol>,
}

impl CauseText for PluginMessage {
    fn gist(&self) -> String {
        let reasons: Vec<&str> = self.reasons.iter().map(|reason| reason.as_str()).collect();
        reasons.join(", ")
    }
}

/// Serialized like its detail, with its texts added.
impl Serialize for Cause {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct SerializedCause<'a> {
            text: String,
            outlook: Outlook,
            missing: f64,
            #[serde(flatten)]
            detail: &'a CauseDetail,
        }
        let Cause { detail, missing, outlook } = self;
        SerializedCause { text: self.text(), outlook: *outlook, missing: *missing, detail }
            .serialize(serializer)
    }
}

/// A rejection to be explained.
pub(crate) struct RejectedCase<'a> {
    /// The plugins and their state.
    pub probe: &'a Probe,
    /// What explainers share.
    pub memo: &'a Memo<'a>,
    /// The cycle state that the plugin read.
    pub state: &'a CycleState,
    /// The node that it evaluated: including nominated pods if it rejects the node only because of
    /// them.
    pub node: &'a NodeInfo,
    /// The node without nominated pods.
    pub plain: &'a NodeInfo,
    /// The status with which the plugin rejected.
    pub status: &'a Status,
}

/// Returns the causes of a plugin's rejection; empty if unknown.
type ExplainFn = fn(&RejectedCase<'_>) -> Vec<Cause>;

/// The explainer of each plugin.
const EXPLAINERS: &[(&str, ExplainFn)] = &[
    ("NodeUnschedulable", node_unschedulable::explain),
    ("TaintToleration", taint_toleration::explain),
    ("NodeAffinity", node_affinity::explain),
    ("NodeName", node_name::explain),
    ("NodePorts", node_ports::explain),
    ("NodeResourcesFit", node_resources_fit::explain),
    ("NodeDeclaredFeatures", node_declared_features::explain),
    ("InterPodAffinity", inter_pod_affinity::explain),
    ("PodTopologySpread", pod_topology_spread::explain),
    ("VolumeRestrictions", volume_restrictions::explain),
    ("NodeVolumeLimits", node_volume_limits::explain),
    ("VolumeBinding", volume_binding::explain),
    ("VolumeZone", volume_zone::explain),
    ("DynamicResources", dynamic_resources::explain),
];

/// Whether the plugin has an explainer; other plugins are quoted.
pub fn is_explained(plugin: Symbol) -> bool {
    EXPLAINERS.iter().any(|(name, _)| plugin == *name)
}

/// The causes of a rejection; at least one.
pub(crate) fn of(plugin: Symbol, status: &Status, case: &RejectedCase<'_>) -> Vec<Cause> {
    let explainer = EXPLAINERS.iter().find(|(name, _)| plugin == *name);
    let causes = match explainer {
        _ if status.is_error() => Vec::new(),
        Some((_, explain)) => explain(case),
        None => by_plugin(plugin, case.probe, |it, cx| it.explain(cx, case.state, case.node)),
    };
    if causes.is_empty() { vec![plugin_message(status)] } else { causes }
}

/// The causes of a rejection by PreFilter; at least one.
pub(crate) fn of_pre_filter(plugin: Symbol, status: &Status, probe: &Probe) -> Vec<Cause> {
    let explain = |it: &dyn Plugin, cx: &CycleContext<'_>| it.explain_pre_filter(cx, probe.state());
    let causes = match status.is_error() {
        true => Vec::new(),
        false => by_plugin(plugin, probe, explain),
    };
    if causes.is_empty() { vec![plugin_message(status)] } else { causes }
}

/// What the plugin itself says.
fn by_plugin(
    plugin: Symbol,
    probe: &Probe,
    explain: impl Fn(&dyn Plugin, &CycleContext<'_>) -> Vec<Explanation>,
) -> Vec<Cause> {
    let plugins = probe.framework().instances();
    let found = plugins.iter().find(|other| other.name() == plugin);
    let said = found.map(|found| explain(found.as_ref(), &probe.cx()));
    said.into_iter().flatten().map(Cause::from).collect()
}

/// The cause for a node that PreFilter excluded.
pub(crate) fn left_out(left: usize) -> Cause {
    Cause::new(OutsidePreFilter { left }, 1.0, Outlook::Mismatch)
}

/// The cause that quotes a status.
pub(crate) fn plugin_message(status: &Status) -> Cause {
    Cause::new(PluginMessage { reasons: status.reasons().to_vec() }, 1.0, Outlook::Manual)
}
