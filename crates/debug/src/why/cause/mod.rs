//! The cause behind a refusal: which taint, which expression, how much of what is missing,
//! which pod is in the way. As data, with its words.
//!
//! `EXPLAINERS` is the table: one file a plugin. An explainer is handed the very state and
//! node that the plugin judged, and asks the plugin's own computations; none decides anew
//! whether the pod fits. A plugin without an explainer is quoted.

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

pub use culprits::{Culprit, Culprits};
pub use dynamic_resources::{AttributeValue, DeviceCause, Devices, Holder, UnmetConstraint};
pub use inter_pod_affinity::{LabelTypo, NoPodNear, PodInTheWay, Term, Whose};
pub use node_affinity::{AffinityMismatch, AffinityOf};
pub use node_condition::NodeCondition;
pub use node_declared_features::UndeclaredFeatures;
pub use node_name::OtherNode;
pub use node_ports::PortTaken;
pub use node_resources_fit::Shortage;
pub use node_terms::{Hint, Unmet};
pub use node_unschedulable::Cordoned;
pub use node_volume_limits::{VolumeCount, VolumeLimit};
pub use pod_topology_spread::{Skew, SpreadCause};
pub use taint_toleration::{Tried, UntoleratedTaint};
pub use volume_binding::{RejectedVolume, VolumeCause, VolumeProblem};
pub use volume_restrictions::VolumeTaken;
pub use volume_zone::OtherZone;

pub(crate) use memo::Memo;
pub(crate) use node_condition::is_kept_by_controller;
pub(crate) use node_resources_fit::Placed;

use kubestep_api::intern::Symbol;
use kubestep_api::words::count;
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::node::NodeInfo;
use kubestep_framework::status::Status;
use kubestep_scheduler::what_if::Probe;

/// Who can make a cause go away.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Outlook {
    /// The course of things in the cluster: pods that end or come, taints that controllers lift.
    Cluster,
    /// A change of the node's state, another object or the pod.
    ByHand,
    /// Node and pod do not match as they are: no eviction helps, one of the two has to change.
    Mismatch,
}

/// Why a plugin refuses a pod on a node.
#[derive(Clone, PartialEq, Debug)]
pub struct Cause {
    /// What is in the way.
    pub detail: Detail,
    /// How much is missing: near 0 for almost nothing, 1 for one thing as a whole.
    pub missing: f64,
    /// Who can make it go away.
    pub outlook: Outlook,
}

impl Cause {
    fn new(detail: impl Into<Detail>, missing: f64, outlook: Outlook) -> Cause {
        Cause { detail: detail.into(), missing, outlook }
    }

    /// The cause in a few words, the same for all nodes that are refused for the same reason.
    pub fn gist(&self) -> String {
        self.detail.words().gist()
    }

    /// The cause in full, with what is particular to the node.
    pub fn words(&self) -> String {
        self.detail.words().words()
    }

    /// Whether the plugin is only quoted, as it is not known how it decides.
    pub fn is_quoted(&self) -> bool {
        matches!(self.detail, Detail::Said(_))
    }
}

/// The words for a kind of cause.
trait Words {
    /// In a few words, without what differs from node to node.
    fn gist(&self) -> String;
    /// In full.
    fn words(&self) -> String {
        self.gist()
    }
}

/// Declares [`Detail`] and how each kind of cause gets into it.
macro_rules! details {
    ($($(#[$doc:meta])* $kind:ident($type:ty),)*) => {
        /// What is in the way, by kind.
        #[derive(Clone, PartialEq, Debug, Serialize)]
        #[serde(tag = "kind", rename_all = "camelCase")]
        pub enum Detail {
            $($(#[$doc])* $kind($type),)*
        }

        impl Detail {
            fn words(&self) -> &dyn Words {
                match self { $(Detail::$kind(cause) => cause,)* }
            }
        }

        $(impl From<$type> for Detail {
            fn from(cause: $type) -> Detail {
                Detail::$kind(cause)
            }
        })*
    };
}

details! {
    /// The node is cordoned.
    Cordoned(Cordoned),
    /// A condition of the node, for which the node controller keeps a taint.
    NodeCondition(NodeCondition),
    /// A taint that the pod does not tolerate.
    Taint(UntoleratedTaint),
    /// The node's labels or name are not what the pod or the profile asks for.
    Affinity(AffinityMismatch),
    /// The pod names another node.
    OtherNode(OtherNode),
    /// A host port that another pod holds.
    PortTaken(PortTaken),
    /// A kubelet feature that the node does not declare.
    UndeclaredFeatures(UndeclaredFeatures),
    /// No pod is near that the pod wants to be near to.
    NoPodNear(NoPodNear),
    /// A pod is near that keeps this one away, or that it wants to stay away from.
    PodInTheWay(PodInTheWay),
    /// The pods would be spread too unevenly.
    Spread(SpreadCause),
    /// Too little is left of a resource.
    Shortage(Shortage),
    /// A claim that cannot have its volume on the node.
    Volume(VolumeCause),
    /// A volume in another zone.
    OtherZone(OtherZone),
    /// A CSI driver with no room for more volumes.
    VolumeLimit(VolumeLimit),
    /// A volume that another pod has.
    VolumeTaken(VolumeTaken),
    /// Devices that cannot be had.
    Devices(DeviceCause),
    /// No filter refuses the node, but PreFilter left it out.
    LeftOut(LeftOut),
    /// What the plugin said.
    Said(Said),
}

/// PreFilter narrowed the search to other nodes.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LeftOut {
    /// How many nodes it left.
    pub left: usize,
}

impl Words for LeftOut {
    fn gist(&self) -> String {
        format!("PreFilter left {} only", count(self.left, "other node"))
    }
}

/// The words of a plugin whose ways are not known, or of an error.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Said {
    /// Its reasons.
    pub reasons: Vec<Symbol>,
}

impl Words for Said {
    fn gist(&self) -> String {
        let reasons: Vec<&str> = self.reasons.iter().map(|reason| reason.as_str()).collect();
        reasons.join(", ")
    }
}

/// As the cause itself, with its words beside the data.
impl Serialize for Cause {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Written<'a> {
            text: String,
            outlook: Outlook,
            missing: f64,
            #[serde(flatten)]
            detail: &'a Detail,
        }
        let Cause { detail, missing, outlook } = self;
        Written { text: self.words(), outlook: *outlook, missing: *missing, detail }
            .serialize(serializer)
    }
}

/// A refusal to be explained.
pub(crate) struct Case<'a> {
    /// The plugins and what they see.
    pub probe: &'a Probe,
    /// What explainers remember from node to node.
    pub memo: &'a Memo,
    /// The state that the plugin read.
    pub state: &'a CycleState,
    /// The node that it judged: with nominated pods counted in, if only then it refuses.
    pub node: &'a NodeInfo,
    /// The node without them.
    pub plain: &'a NodeInfo,
    /// What the plugin said.
    pub status: &'a Status,
}

/// Gives the causes of a plugin's refusal; none if it cannot tell.
type Explainer = fn(&Case<'_>) -> Vec<Cause>;

/// Who explains which plugin.
const EXPLAINERS: &[(&str, Explainer)] = &[
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

/// Whether it is known how a plugin decides; others are quoted.
pub fn is_explained(plugin: Symbol) -> bool {
    EXPLAINERS.iter().any(|(name, _)| plugin == *name)
}

/// The causes of a refusal; at least one.
pub(crate) fn of(plugin: Symbol, status: &Status, case: &Case<'_>) -> Vec<Cause> {
    let explainer = EXPLAINERS.iter().find(|(name, _)| plugin == *name);
    let causes = match explainer {
        Some((_, explain)) if !status.is_error() => explain(case),
        _ => Vec::new(),
    };
    if causes.is_empty() { vec![said(status)] } else { causes }
}

/// A node that PreFilter left out.
pub(crate) fn left_out(left: usize) -> Cause {
    Cause::new(LeftOut { left }, 1.0, Outlook::Mismatch)
}

/// A quoted status.
pub(crate) fn said(status: &Status) -> Cause {
    Cause::new(Said { reasons: status.reasons().to_vec() }, 1.0, Outlook::ByHand)
}
