//! The parts of an answer to "why?": plain data with texts, for the screen, reports and programs.

use serde::Serialize;

use super::cause::{Cause, Outlook};
use super::nominated::Nomination;
use super::preemption::PreemptionWhy;
use super::queue::{HintCall, QueueMoveText, QueueWhy};
use super::score::NodePlacement;
use super::spread::SpreadCounts;
use crate::certainty::SessionCertainty;
use kubestep_api::intern::Symbol;
use kubestep_api::{Name, Time};
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::QueueName;
use kubestep_framework::status::Code;

/// The state of a pod.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind")]
pub enum PodLocation {
    /// It has a node, in the cluster or after binding in the simulation.
    Bound {
        /// Name of the node.
        node: Name,
    },
    /// It succeeded or failed.
    Ended {
        /// `status.phase`: `Succeeded` or `Failed`.
        phase: &'static str,
    },
    /// Its resources are reserved on a node, and a plugin makes it wait at Permit or in PreBind.
    Waiting {
        /// Name of the node.
        node: Name,
        /// The plugins it waits for, and their timeouts.
        holds: Vec<WaitedPlugin>,
        /// Whether it waits in PreBind; otherwise at Permit.
        in_pre_bind: bool,
        /// The time at which it began to wait.
        since: Time,
    },
    /// In a queue, gated or in flight.
    Queue {
        /// The queue, with the place among gated and in-flight pods.
        queue: QueuePlace,
    },
    /// In no queue: no profile has its scheduler name.
    Unserved {
        /// `spec.schedulerName` of the pod.
        scheduler_name: Symbol,
    },
    /// In no queue, for another reason: for example, it is being deleted.
    Nowhere,
}

/// A queue; serialized as its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueuePlace(pub QueueName);

impl Serialize for QueuePlace {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.as_str())
    }
}

/// A plugin that a pod waits for.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitedPlugin {
    /// Name of the plugin.
    pub plugin: Symbol,
    /// When the wait times out.
    pub deadline: Time,
}

/// What the pod's last cycle did with a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum NodeCoverage {
    /// The pod had no cycle.
    NoCycle,
    /// The node was evaluated.
    Evaluated,
    /// Not evaluated: enough feasible nodes were found before.
    EnoughFound,
    /// Not evaluated: PreFilter restricted the search to other nodes.
    Narrowed,
    /// Not evaluated: the nominated node was used.
    NominatedTaken,
    /// Not evaluated: the cycle ended first.
    CycleEnded,
    /// The node was created after the cycle.
    NewNode,
}

impl NodeCoverage {
    /// Why the node was not evaluated; `None` if it was, or the pod had no cycle.
    pub fn why_not(self) -> Option<&'static str> {
        match self {
            NodeCoverage::NoCycle | NodeCoverage::Evaluated => None,
            NodeCoverage::EnoughFound => Some("enough feasible nodes were found first"),
            NodeCoverage::Narrowed => Some("PreFilter restricted the search to other nodes"),
            NodeCoverage::NominatedTaken => Some("the nominated node was selected"),
            NodeCoverage::CycleEnded => Some("the cycle ended first"),
            NodeCoverage::NewNode => Some("the node did not exist yet"),
        }
    }
}

/// A plugin that rejects a node.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Blocker {
    /// The plugin; `Extender` for extenders.
    pub plugin: Symbol,
    /// The status code: whether preemption could help.
    #[serde(serialize_with = "code")]
    pub code: Code,
    /// The reasons in the scheduler's words, as they appear in Events and conditions.
    pub reasons: Vec<Symbol>,
    /// Whether it rejects the node only because of nominated pods.
    pub by_nominated: bool,
    /// The causes; at least one.
    pub causes: Vec<Cause>,
}

/// Serializes a code as its name.
pub(super) fn code<S: serde::Serializer>(code: &Code, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(code.as_str())
}

/// Why a node does or does not fit the pod.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeWhy {
    /// Name of the node.
    pub node: Name,
    /// The plugins that reject it, in the order run. Empty: the pod fits there.
    pub blockers: Vec<Blocker>,
    /// What the last cycle did with it. All other fields apply whether it was evaluated or not.
    pub seen: NodeCoverage,
    /// How much is missing in total; nodes are ranked by it.
    pub missing: f64,
    /// The worst outlook of all causes.
    pub outlook: Outlook,
}

impl NodeWhy {
    /// Whether the pod fits.
    pub fn fits(&self) -> bool {
        self.blockers.is_empty()
    }

    /// Whether node and pod do not match, so that one of them must change.
    pub fn mismatches(&self) -> bool {
        self.outlook == Outlook::Mismatch
    }

    /// Whether preemption could resolve every rejection.
    pub fn eviction_could_help(&self) -> bool {
        !self.fits() && self.blockers.iter().all(|blocker| blocker.code == Code::Unschedulable)
    }

    /// All causes, with their plugins. A cause that several plugins share is listed once, with the
    /// first plugin.
    pub fn causes(&self) -> impl Iterator<Item = (Symbol, &Cause)> {
        distinct_causes(&self.blockers)
    }
}

/// The causes of some rejections; a shared cause is listed once, with the first plugin.
pub(super) fn distinct_causes(blockers: &[Blocker]) -> impl Iterator<Item = (Symbol, &Cause)> {
    let before = |at: usize| blockers.iter().take(at).flat_map(|blocker| &blocker.causes);
    blockers.iter().enumerate().flat_map(move |(at, blocker)| {
        let new = move |cause: &&Cause| !before(at).any(|other| other.detail == cause.detail);
        blocker.causes.iter().filter(new).map(|cause| (blocker.plugin, cause))
    })
}

/// Nodes that are rejected for the same reasons.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RejectedGroup {
    /// The reasons, each with its plugin.
    pub reasons: Vec<Reason>,
    /// The nodes; those that miss the least first.
    pub nodes: Vec<Name>,
    /// Whether these nodes do not match the pod.
    pub mismatch: bool,
    /// How much is missing on the first node.
    pub missing: f64,
}

/// One plugin's reason for rejecting a node, shorter than its [`Cause`].
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reason {
    /// Name of the plugin.
    pub plugin: Symbol,
    /// The text, the same for all nodes with that reason.
    pub text: String,
}

/// A plugin's PreFilter result, if it rejected the pod or restricted the nodes.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PreFilterRejection {
    /// Name of the plugin.
    pub plugin: Symbol,
    /// The code of its status.
    #[serde(serialize_with = "code")]
    pub code: Code,
    /// Its reasons; empty if it only restricted the nodes.
    pub reasons: Vec<Symbol>,
    /// The nodes that it kept, if it restricted them.
    pub only: Option<Vec<Name>>,
    /// The causes of a rejection.
    pub causes: Vec<Cause>,
}

impl PreFilterRejection {
    /// Whether it rejects the pod on every node.
    pub fn rejects(&self) -> bool {
        self.code != Code::Success
    }
}

/// A problem that keeps the pod from every node, whatever resources are free.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodProblem {
    /// The kind, for programs: `noProfile`, `gate`, `quorum`, `missingObject`, …
    pub kind: ProblemKind,
    /// Whether it keeps the pod from being scheduled; otherwise it is only a warning.
    pub blocking: bool,
    /// What it is, in one sentence.
    pub text: String,
    /// What to do about it.
    pub advice: String,
}

/// The kinds of problems.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ProblemKind {
    /// No scheduler of the followed cluster is running.
    NoScheduler,
    /// The replicas of the real scheduler have different versions.
    MixedVersions,
    /// No profile has the pod's scheduler name.
    NoProfile,
    /// A scheduling gate that nothing has removed.
    Gate,
    /// A pod group that does not exist or has fewer pods than its minimum.
    Quorum,
    /// The pod names an object that does not exist.
    MissingObject,
    /// The pod is bound to a node that does not exist.
    MissingNode,
    /// A static pod, which its kubelet runs from a file.
    StaticPod,
    /// A pod that was created with its `spec.nodeName`, so that no scheduler placed it.
    OwnNodeName,
    /// A claim that must be bound before the pod is scheduled, and is not.
    UnboundClaim,
    /// A plugin makes the pod wait at Permit or in PreBind.
    Held,
    /// The pod is being deleted.
    Terminating,
    /// There are no nodes.
    NoNodes,
}

/// An attempt to schedule the pod.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// Number of the scheduling cycle, from 1.
    pub cycle: u64,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// The start of the cycle.
    pub time: Time,
    /// The outcome: `Scheduled`, `Unschedulable`, ….
    pub outcome: &'static str,
    /// The selected node, if any.
    pub node: Option<Name>,
    /// The nominated node, if any.
    pub nominated: Option<Name>,
    /// The scheduler's own message, not shortened.
    pub message: String,
}

/// An attempt that a plugin rejected before any node was evaluated.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EarlierRejection {
    /// Number of the scheduling cycle, from 1.
    pub cycle: u64,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// The plugins that rejected the pod, each with all causes as that cycle found them.
    pub reasons: Vec<Reason>,
}

/// The state of the cluster to which nodes, scores and preemption refer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Basis {
    /// The current state. A pod that has a node is evaluated as if it were pending.
    Now,
    /// The state at the start of a cycle.
    Cycle {
        /// Number of the scheduling cycle, from 1.
        cycle: u64,
    },
}

/// The answer to why a pod is in its state.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Why {
    /// Namespace and name of the pod.
    pub pod: NamespacedName,
    /// The time of the state that it refers to.
    pub at: Time,
    /// Which state of the cluster it refers to.
    pub basis: Basis,
    /// The state of the pod.
    pub place: PodLocation,
    /// The pod's profile; `None` if none has its scheduler name.
    pub profile: Option<Symbol>,
    /// The problems that keep it from every node.
    pub problems: Vec<PodProblem>,
    /// PreFilter results: rejections and restrictions.
    pub ahead: Vec<PreFilterRejection>,
    /// The hard spread constraints and their counts.
    pub spread: Vec<SpreadCounts>,
    /// All nodes: those that fit first, then by how much is missing, and those that do not match
    /// last.
    pub nodes: Vec<NodeWhy>,
    /// Reasons shared by all nodes that do not fit, if some have further reasons.
    pub everywhere: Vec<Reason>,
    /// The nodes that do not fit, grouped by their reasons; those that miss the least first.
    pub groups: Vec<RejectedGroup>,
    /// The resources that nodes reserve for nominated pods, including this one.
    pub nominations: Vec<Nomination>,
    /// Why the pod has its node, or how the nodes that fit rank.
    pub placement: Option<NodePlacement>,
    /// How certain the decision is, if the profile has opaque plugins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certainty: Option<SessionCertainty>,
    /// Whether preemption would help, for a pod that fits nowhere.
    pub preemption: Option<PreemptionWhy>,
    /// Its queue, and what it waits for.
    pub queue: Option<QueueWhy>,
    /// Its moves between queues.
    pub moves: Vec<QueueMoveText>,
    /// The queueing hints for it.
    pub hints: Vec<HintCall>,
    /// All attempts so far.
    pub attempts: Vec<Attempt>,
    /// Of a pod that was placed after that: the last rejection before any node was evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected_before: Option<EarlierRejection>,
}

impl Why {
    /// The nodes that fit.
    pub fn fitting(&self) -> impl Iterator<Item = &NodeWhy> {
        self.nodes.iter().take_while(|node| node.fits())
    }

    /// Whether it passes PreFilter and Filter on some node.
    pub(crate) fn fits_somewhere(&self) -> bool {
        !self.ahead.iter().any(PreFilterRejection::rejects) && self.fitting().next().is_some()
    }

    /// Whether the pod has a node, or would get one at an attempt now.
    pub fn is_schedulable(&self) -> bool {
        match self.place {
            PodLocation::Bound { .. } => !self.problems.iter().any(|problem| problem.blocking),
            PodLocation::Ended { .. } => true,
            _ => !self.problems.iter().any(|problem| problem.blocking) && self.fits_somewhere(),
        }
    }

    /// The answer for a node.
    pub fn node(&self, name: Name) -> Option<&NodeWhy> {
        self.nodes.iter().find(|node| node.node == name)
    }

    /// The answers for the nodes of one of its groups: both are in the same order.
    pub fn nodes_of<'a>(&'a self, group: &'a RejectedGroup) -> impl Iterator<Item = &'a NodeWhy> {
        let mut names = group.nodes.iter().peekable();
        self.nodes.iter().filter(move |node| names.next_if(|name| **name == node.node).is_some())
    }
}
