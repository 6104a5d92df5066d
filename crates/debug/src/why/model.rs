//! What an answer to "why?" is made of. Plain data with words, for the screen, the report and
//! programs alike.

use serde::Serialize;

use super::cause::{Cause, Outlook};
use super::nominated::Nomination;
use super::preemption::PreemptionWhy;
use super::queue::{Asked, Moved, QueueWhy};
use super::score::Placement;
use super::spread::Ledger;
use kubestep_api::Time;
use kubestep_api::intern::Symbol;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::QueueName;
use kubestep_framework::status::Code;

/// Where a pod is.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind")]
pub enum Place {
    /// On a node.
    Bound {
        /// The node.
        node: Symbol,
    },
    /// It has run to its end.
    Ended {
        /// `Succeeded` or `Failed`.
        phase: &'static str,
    },
    /// Its place on a node is taken, and a plugin holds it at Permit or in PreBind.
    Waiting {
        /// The node.
        node: Symbol,
        /// Who holds it, and until when at most.
        holds: Vec<Held>,
        /// Whether it waits in PreBind; else at Permit.
        in_pre_bind: bool,
        /// Since when.
        since: Time,
    },
    /// In a queue, gated or in flight.
    Queue {
        /// Which.
        queue: QueuePlace,
    },
    /// In no queue: no profile has its scheduler name.
    Unserved {
        /// The scheduler name.
        scheduler_name: Symbol,
    },
    /// In no queue, for another reason: it is being deleted, say.
    Nowhere,
}

/// A queue, as its name is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueuePlace(pub QueueName);

impl Serialize for QueuePlace {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.as_str())
    }
}

/// A plugin that holds a pod.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Held {
    /// The plugin.
    pub plugin: Symbol,
    /// When it gives up at the latest.
    pub deadline: Time,
}

/// What the last cycle of the pod did about a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Seen {
    /// There was no cycle.
    NoCycle,
    /// The node was evaluated.
    Evaluated,
    /// Not evaluated: enough feasible nodes were found before.
    EnoughFound,
    /// Not evaluated: PreFilter narrowed the search to other nodes.
    Narrowed,
    /// Not evaluated: the nominated node was taken.
    NominatedTaken,
    /// Not evaluated: the cycle ended before its turn.
    CycleEnded,
    /// The node came later.
    NewNode,
}

impl Seen {
    /// Why the node was not evaluated; `None` if it was, or there was no cycle.
    pub fn why_not(self) -> Option<&'static str> {
        match self {
            Seen::NoCycle | Seen::Evaluated => None,
            Seen::EnoughFound => Some("enough feasible nodes were found before its turn"),
            Seen::Narrowed => Some("PreFilter narrowed the search to other nodes"),
            Seen::NominatedTaken => Some("the nominated node was taken"),
            Seen::CycleEnded => Some("the cycle ended before its turn"),
            Seen::NewNode => Some("the node was not there yet"),
        }
    }
}

/// A plugin that refuses a node.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Blocker {
    /// The plugin; `Extender` for extenders.
    pub plugin: Symbol,
    /// The code: whether evicting pods could help.
    #[serde(serialize_with = "code")]
    pub code: Code,
    /// The scheduler's own words, to be found again in events and conditions.
    pub reasons: Vec<Symbol>,
    /// Whether it refuses only because of pods nominated to the node.
    pub by_nominated: bool,
    /// What is behind it; at least one.
    pub causes: Vec<Cause>,
}

/// Writes a code as its name.
pub(super) fn code<S: serde::Serializer>(code: &Code, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(code.as_str())
}

/// What a node lacks for the pod.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeWhy {
    /// The node.
    pub node: Symbol,
    /// Every plugin that refuses it, in the order run. None: the pod fits there.
    pub blockers: Vec<Blocker>,
    /// What the last cycle did about it. What is said here is so whether it was evaluated or not.
    pub seen: Seen,
    /// How much is missing in all; nodes are ranked by it.
    pub missing: f64,
    /// The worst outlook of all causes.
    pub outlook: Outlook,
}

impl NodeWhy {
    /// Whether the pod fits.
    pub fn fits(&self) -> bool {
        self.blockers.is_empty()
    }

    /// Whether node and pod do not match as they are.
    pub fn mismatches(&self) -> bool {
        self.outlook == Outlook::Mismatch
    }

    /// Whether every refusal is one that evicting pods could lift.
    pub fn eviction_could_help(&self) -> bool {
        !self.fits() && self.blockers.iter().all(|blocker| blocker.code == Code::Unschedulable)
    }

    /// All causes, with their plugins. What several plugins reject the node for is one cause, of
    /// the first of them.
    pub fn causes(&self) -> impl Iterator<Item = (Symbol, &Cause)> {
        distinct_causes(&self.blockers)
    }
}

/// The causes of some refusals; one that several plugins have stands with the first of them.
pub(super) fn distinct_causes(blockers: &[Blocker]) -> impl Iterator<Item = (Symbol, &Cause)> {
    let before = |at: usize| blockers.iter().take(at).flat_map(|blocker| &blocker.causes);
    blockers.iter().enumerate().flat_map(move |(at, blocker)| {
        let new = move |cause: &&Cause| !before(at).any(|other| other.detail == cause.detail);
        blocker.causes.iter().filter(new).map(|cause| (blocker.plugin, cause))
    })
}

/// Nodes that are refused for the same reasons.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// The reasons in a few words, each with its plugin.
    pub reasons: Vec<Reason>,
    /// The nodes, the nearest first.
    pub nodes: Vec<Symbol>,
    /// Whether these nodes do not match as they are.
    pub mismatch: bool,
    /// How much is missing on the nearest.
    pub missing: f64,
}

/// A reason in a few words.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reason {
    /// The plugin.
    pub plugin: Symbol,
    /// The words, the same for all nodes with that reason.
    pub text: String,
}

/// What a plugin said at PreFilter, where it refused or narrowed the search.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ahead {
    /// The plugin.
    pub plugin: Symbol,
    /// The code of its answer.
    #[serde(serialize_with = "code")]
    pub code: Code,
    /// Its words; empty if it only narrowed.
    pub reasons: Vec<Symbol>,
    /// The only nodes it leaves, if it narrowed.
    pub only: Option<Vec<Symbol>>,
    /// What is behind a refusal.
    pub causes: Vec<Cause>,
}

impl Ahead {
    /// Whether it refuses the pod on every node.
    pub fn refuses(&self) -> bool {
        self.code != Code::Success
    }
}

/// Something that keeps the pod from being scheduled on any node, however much room there is.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// What kind, for programs: `noProfile`, `gate`, `quorum`, `missingObject`, …
    pub kind: ProblemKind,
    /// Whether it keeps the pod from being scheduled; else it is only odd.
    pub blocking: bool,
    /// What is wrong.
    pub text: String,
    /// What to do about it.
    pub advice: String,
}

/// The kinds of problems.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ProblemKind {
    /// No profile has the pod's scheduler name.
    NoProfile,
    /// A scheduling gate.
    Gate,
    /// A pod group that is not there or short of its quorum.
    Quorum,
    /// The pod names an object that does not exist.
    MissingObject,
    /// The pod is bound to a node that does not exist.
    MissingNode,
    /// A kubelet runs the pod from a file.
    StaticPod,
    /// A claim that has to be bound before the pod is tried, and is not.
    UnboundClaim,
    /// A plugin holds the pod at Permit or in PreBind.
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
    /// The cycle's number.
    pub cycle: u64,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// When.
    pub time: Time,
    /// What became of it: `Scheduled`, `Unschedulable`, ….
    pub outcome: &'static str,
    /// The node chosen, if one was.
    pub node: Option<Symbol>,
    /// The node nominated, if one was.
    pub nominated: Option<Symbol>,
    /// The scheduler's own message, never cut.
    pub message: String,
}

/// The state of the cluster that nodes, scores and preemption are told of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Basis {
    /// The state as it is. A pod that has a node is taken off it for the question.
    Now,
    /// The state at the start of a cycle.
    Cycle {
        /// The cycle's number.
        cycle: u64,
    },
}

/// Everything there is to say about why a pod is where it is.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Why {
    /// The pod.
    pub pod: NamespacedName,
    /// The time of the state that this is about.
    pub at: Time,
    /// Which state of the cluster it is about.
    pub basis: Basis,
    /// Where the pod is.
    pub place: Place,
    /// The profile that serves it; absent if none does.
    pub profile: Option<Symbol>,
    /// What keeps it from every node.
    pub problems: Vec<Problem>,
    /// What PreFilter says: refusals and narrowing.
    pub ahead: Vec<Ahead>,
    /// The hard spread constraints and what they count.
    pub spread: Vec<Ledger>,
    /// Every node: those that fit first, then by how little is missing, those that do not match
    /// as they are last.
    pub nodes: Vec<NodeWhy>,
    /// Reasons that every node that does not fit has, if others come on top on some.
    pub everywhere: Vec<Reason>,
    /// The nodes that do not fit, by their reasons, the nearest first.
    pub groups: Vec<Group>,
    /// The room that nodes keep for nominated pods, this one among them.
    pub nominations: Vec<Nomination>,
    /// Why the pod has its node, or how the nodes that fit would be ranked.
    pub placement: Option<Placement>,
    /// What evicting others would do for a pod that fits nowhere.
    pub preemption: Option<PreemptionWhy>,
    /// Where it waits, and for what.
    pub queue: Option<QueueWhy>,
    /// Its moves between queues.
    pub moves: Vec<Moved>,
    /// The events that plugins were asked about for it.
    pub asked: Vec<Asked>,
    /// All attempts so far.
    pub attempts: Vec<Attempt>,
}

impl Why {
    /// The nodes that fit.
    pub fn fitting(&self) -> impl Iterator<Item = &NodeWhy> {
        self.nodes.iter().take_while(|node| node.fits())
    }

    /// Whether it would get a node as far as PreFilter and the filters go.
    pub fn fits_somewhere(&self) -> bool {
        !self.ahead.iter().any(Ahead::refuses) && self.fitting().next().is_some()
    }

    /// Whether the pod has its node, or would get one if it were tried now.
    pub fn is_schedulable(&self) -> bool {
        match self.place {
            Place::Bound { .. } => !self.problems.iter().any(|problem| problem.blocking),
            Place::Ended { .. } => true,
            _ => !self.problems.iter().any(|problem| problem.blocking) && self.fits_somewhere(),
        }
    }

    /// What is said of a node.
    pub fn node(&self, name: Symbol) -> Option<&NodeWhy> {
        self.nodes.iter().find(|node| node.node == name)
    }
}
