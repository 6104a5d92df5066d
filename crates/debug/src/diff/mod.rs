//! The difference of two histories: which pods end up in another state, which attempts had another
//! outcome, down to the verdicts and scores that differ.
//!
//! It does not matter how the two came to differ: they may be branches of one session, or two
//! clusters loaded from different files. Nodes and pods are matched by name, and the attempts of a
//! pod by number.

mod decision;
mod end;
mod score;

use std::collections::BTreeSet;
use std::fmt;

use crate::Session;
use crate::certainty;
use crate::trace::History;
use kubestep_api::words::count;
use kubestep_cluster::World;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::CycleRecord;

pub use decision::{ComparedVerdict, DecisionDifference, VerdictDifference};
pub use end::FinalState;
pub use score::{PluginScore, ScoreDifference, ScoreSource};

/// A value on both sides.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pair<T> {
    /// On the first side.
    pub a: T,
    /// On the second side.
    pub b: T,
}

impl<T: PartialEq> Pair<T> {
    /// Whether the sides differ.
    pub fn differs(&self) -> bool {
        self.a != self.b
    }
}

/// One side: its history, and the cluster at its end.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    /// The side's cycles, moves and events.
    pub history: &'a History,
    /// The cluster at its end.
    pub world: &'a World,
}

impl Side<'_> {
    /// A session at its end.
    pub fn of(session: &Session) -> Side<'_> {
        Side { history: session.history(), world: session.world() }
    }
}

/// The kind of a pod's difference; the first that applies counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PodChange {
    /// It exists on one side only.
    Presence,
    /// It has a node on the second side only.
    Placed,
    /// It has a node on the first side only.
    Lost,
    /// It is on different nodes.
    Moved,
    /// It is pending in different states.
    Waits,
    /// Same result, different reasons.
    Reasons,
}

/// A pod that differs between the sides.
#[derive(Clone, PartialEq, Debug)]
pub struct PodDifference {
    /// Namespace and name of the pod.
    pub pod: NamespacedName,
    /// The kind of difference.
    pub change: PodChange,
    /// Its state at the end.
    pub end: Pair<FinalState>,
    /// The number of attempts.
    pub attempts: Pair<usize>,
    /// The attempts with different outcomes, by number from 1.
    pub decisions: Vec<DecisionDifference>,
}

impl PodDifference {
    /// The last attempt that differs: it led to the pod's state at the end.
    pub fn last(&self) -> Option<&DecisionDifference> {
        self.decisions.last()
    }
}

/// The result of [`compare`]: the pods that differ, and how many do not.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Difference {
    /// The pods that differ, sorted by kind of difference and name.
    pub pods: Vec<PodDifference>,
    /// How many pods are the same.
    pub same: usize,
    /// How many decisions of each side opaque plugins could have changed.
    pub uncertain: Pair<usize>,
}

impl Difference {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }

    /// How many pods have that kind of difference.
    pub fn count(&self, change: PodChange) -> usize {
        self.pods.iter().filter(|pod| pod.change == change).count()
    }
}

/// Compares where the pods of two sides end and how their attempts went.
pub fn compare(a: Side<'_>, b: Side<'_>) -> Difference {
    let keys: BTreeSet<NamespacedName> = pods(a).chain(pods(b)).collect();
    let all = keys.len();
    let mut pods: Vec<PodDifference> =
        keys.into_iter().filter_map(|key| compare_pod(a, b, key)).collect();
    // Names are unique, so an unstable sort is deterministic.
    pods.sort_unstable_by_key(|pod| (pod.change, pod.pod));
    let uncertain = |side: Side<'_>| {
        side.history.cycles().filter(|record| certainty::is_uncertain(record)).count()
    };
    let uncertain = Pair { a: uncertain(a), b: uncertain(b) };
    Difference { same: all - pods.len(), pods, uncertain }
}

/// The pods that exist or had an attempt.
fn pods(side: Side<'_>) -> impl Iterator<Item = NamespacedName> {
    let there = side.world.api().objects().pods.keys().copied();
    there.chain(side.history.cycles().map(|record| record.pod))
}

/// The difference of one pod; `None` if there is none.
pub(crate) fn compare_pod(a: Side<'_>, b: Side<'_>, pod: NamespacedName) -> Option<PodDifference> {
    let end = Pair { a: FinalState::of(a, pod), b: FinalState::of(b, pod) };
    let tries = |side: Side<'_>| side.history.cycles_of(pod).cloned().collect::<Vec<_>>();
    let tries = Pair { a: tries(a), b: tries(b) };
    let attempts = Pair { a: tries.a.len(), b: tries.b.len() };
    let mut decisions = Vec::new();
    for at in 0..attempts.a.max(attempts.b) {
        let pair = Pair { a: tries.a.get(at), b: tries.b.get(at) };
        let same = pair.a.zip(pair.b).is_some_and(|(a, b)| std::sync::Arc::ptr_eq(a, b));
        if !same {
            let pair = Pair { a: pair.a.map(AsRef::as_ref), b: pair.b.map(AsRef::as_ref) };
            decisions.extend(DecisionDifference::of(at + 1, pair));
        }
    }
    if !end.differs() && decisions.is_empty() {
        return None;
    }
    Some(PodDifference { pod, change: PodChange::of(&end), end, attempts, decisions })
}

impl PodChange {
    /// In the order of the summary.
    pub const ALL: [PodChange; 6] = [
        PodChange::Placed,
        PodChange::Lost,
        PodChange::Moved,
        PodChange::Waits,
        PodChange::Presence,
        PodChange::Reasons,
    ];

    fn of(end: &Pair<FinalState>) -> PodChange {
        let queue = |end: &FinalState| match end {
            FinalState::Queue(queue, _) => Some(*queue),
            _ => None,
        };
        let same_queue = queue(&end.a).is_some() && queue(&end.a) == queue(&end.b);
        match (end.a.node(), end.b.node()) {
            _ if same_queue || !end.differs() => PodChange::Reasons,
            _ if end.a == FinalState::Absent || end.b == FinalState::Absent => PodChange::Presence,
            (None, Some(_)) => PodChange::Placed,
            (Some(_), None) => PodChange::Lost,
            (Some(a), Some(b)) if a != b => PodChange::Moved,
            _ => PodChange::Waits,
        }
    }

    /// The identifier in JSON: `moved`.
    pub fn as_str(self) -> &'static str {
        match self {
            PodChange::Presence => "presence",
            PodChange::Placed => "placed",
            PodChange::Lost => "lost",
            PodChange::Moved => "moved",
            PodChange::Waits => "waits",
            PodChange::Reasons => "reasons",
        }
    }

    /// What one pod does, and what several do.
    fn verbs(self) -> [&'static str; 2] {
        match self {
            PodChange::Presence => ["exists on one side only", "exist on one side only"],
            PodChange::Placed => ["gets a node", "get a node"],
            PodChange::Lost => ["loses its node", "lose their nodes"],
            PodChange::Moved => ["moves to another node", "move to other nodes"],
            PodChange::Waits => ["ends in another state", "end in another state"],
            PodChange::Reasons => [
                "has the same result for different reasons",
                "have the same result for different reasons",
            ],
        }
    }
}

/// The summary in one line: `1 pod gets a node, 2 move to other nodes; 12 pods are the same`.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = PodChange::ALL.map(|kind| (kind, self.count(kind)));
        let there = counted.iter().filter(|(_, number)| *number > 0).enumerate();
        let describe = |(at, (kind, number)): (usize, &(PodChange, usize))| {
            let [one, several] = kind.verbs();
            let verb = if *number == 1 { one } else { several };
            // What is counted is said once.
            let pods = if at == 0 { count(*number, "pod") } else { number.to_string() };
            format!("{pods} {verb}")
        };
        let words: Vec<String> = there.map(describe).collect();
        let verb = if self.same == 1 { "pod is" } else { "pods are" };
        match words.as_slice() {
            [] => write!(f, "nothing differs: {} {verb} the same", self.same),
            words => write!(f, "{}; {} {verb} the same", words.join(", "), self.same),
        }
    }
}

/// Whether the per-node lists of a record are there.
fn is_whole(record: &CycleRecord) -> bool {
    record.omitted.is_none()
}

#[cfg(test)]
mod tests;
