//! The outcome of a run for each pod, as far as an upgrade's report compares it.

use std::collections::BTreeMap;

use super::Aspect;
use crate::Session;
use crate::diff::{FinalState, Side};
use kubestep_api::Name;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::{CycleRecord, Outcome};

/// The outcome of a run for one pod.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PodOutcome {
    /// Where the pod is after the run.
    pub end: FinalState,
    /// The node that it is nominated to; empty if it is not.
    pub nominated: Name,
    /// Its attempts, in order.
    pub attempts: Vec<AttemptOutcome>,
}

/// An attempt to schedule a pod.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttemptOutcome {
    /// The outcome of the cycle.
    pub outcome: Outcome,
    /// The node that the cycle selected; `None` if it found none.
    pub node: Option<Name>,
    /// The message; empty if it succeeded.
    pub message: String,
}

/// The outcome of a pod that does not exist.
static ABSENT: PodOutcome =
    PodOutcome { end: FinalState::Absent, nominated: Name::EMPTY, attempts: Vec::new() };

/// The outcome for each pod that exists or had an attempt.
pub(super) type Outcomes = BTreeMap<NamespacedName, PodOutcome>;

/// The outcomes at the end of a session.
pub(super) fn outcomes(session: &Session) -> Outcomes {
    let side = Side::of(session);
    let objects = session.world().api().objects();
    let existing = objects.pods.keys().map(|pod| (*pod, Vec::new()));
    let mut attempts: BTreeMap<NamespacedName, Vec<AttemptOutcome>> = existing.collect();
    for record in side.history.cycles() {
        attempts.entry(record.pod).or_default().push(AttemptOutcome::of(record));
    }
    let outcome = |(pod, attempts)| {
        let object = objects.pod(pod);
        let nominated = object.map(|object| object.status.nominated_node_name);
        let end = FinalState::of(side, pod);
        (pod, PodOutcome { end, nominated: nominated.unwrap_or_default(), attempts })
    };
    attempts.into_iter().map(outcome).collect()
}

/// The outcome of a pod in a run.
pub(super) fn of_pod(outcomes: &Outcomes, pod: NamespacedName) -> &PodOutcome {
    outcomes.get(&pod).unwrap_or(&ABSENT)
}

impl AttemptOutcome {
    fn of(record: &CycleRecord) -> AttemptOutcome {
        let (outcome, node) = (record.outcome, record.node);
        AttemptOutcome { outcome, node, message: record.message.clone() }
    }
}

impl PodOutcome {
    /// The message of the last attempt; empty if there is none.
    pub fn message(&self) -> &str {
        self.attempts.last().map_or("", |attempt| &attempt.message)
    }

    /// Whether another outcome is the same in this respect.
    pub fn is_same(&self, other: &PodOutcome, aspect: Aspect) -> bool {
        match aspect {
            Aspect::End => {
                is_same_place(&self.end, &other.end) && self.nominated == other.nominated
            }
            Aspect::Message => self.message() == other.message(),
            Aspect::Attempts => self.end == other.end && self.attempts == other.attempts,
        }
    }
}

/// Whether a pod is at the same place, whichever plugins rejected it.
fn is_same_place(a: &FinalState, b: &FinalState) -> bool {
    match (a, b) {
        (FinalState::Queue(a, _), FinalState::Queue(b, _)) => a == b,
        (a, b) => a == b,
    }
}
