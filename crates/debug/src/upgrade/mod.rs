//! What an upgrade changes for the pods of a cluster, and which changes of Kubernetes cause it.
//!
//! The same input runs to its end under two versions. Then the changes between the versions are
//! applied to the first one, in part: a part that leads to the result of the second version explains
//! it. First the changes that matter at all are found, by leaving out as many as possible while
//! every result stays that of the second version. Among these, the smallest set is searched for each
//! difference. One run answers for all pods, so the number of runs depends on how many changes
//! matter, and not on the number of pods.

mod branches;
mod outcome;
mod search;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use crate::Session;
use crate::diff::{self, FinalState, Pair, Side};
use kubestep_config::FeatureGates;
use kubestep_config::versions::{Switch, VersionChange, differences};
use kubestep_framework::pod::NamespacedName;

pub use branches::{between_branches, cycles_as_far_as, gates, of_branch};
pub use outcome::{AttemptOutcome, PodOutcome};
use outcome::{Outcomes, of_pod, outcomes};
use search::CauseSearch;

/// Why the input does not run under a version.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RunError {
    /// It cannot be opened, or a step cannot be repeated under the version; the reason.
    #[error("{0}")]
    Rejected(String),
    /// The caller ended the search.
    #[error("stopped")]
    Stopped,
}

/// Opens the input under a version and runs it to its end. The input, the configuration's text and
/// the clock are the same in every call.
pub type RunVersion<'a> = dyn Fn(FeatureGates) -> Result<Session, RunError> + 'a;

/// In which respect a pod differs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Aspect {
    /// Where it ends: on which node, in which queue, or with which nomination.
    End,
    /// The message of its last attempt.
    Message,
    /// Its attempts before, or the plugins that reject it; end and last message are the same.
    Attempts,
}

/// What changes for a pod.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PodEffect {
    /// It gets a node, and had none before.
    Schedulable,
    /// It gets no node, and had one before.
    Pending,
    /// It gets another node.
    Moved,
    /// It exists only before or only after the upgrade: it is preempted or not.
    Presence,
    /// It is pending on both sides, in another queue or with another nomination.
    Waits,
    /// Its last message differs.
    Message,
    /// Its attempts differ; the end is the same.
    Attempts,
}

/// The changes that cause a difference: applied together to the first version, they lead to the
/// result of the second. All changes if the search found no part that does.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct CausingChanges {
    /// The changes, in the order of the table.
    pub changes: Vec<VersionChange>,
    /// Whether no smaller set of the changes that matter was left untried.
    pub smallest: bool,
}

/// A difference of one pod. A pod that ends pending in another state and with another message has
/// two.
#[derive(Clone, PartialEq, Debug)]
pub struct OutcomeDifference {
    /// Namespace and name of the pod.
    pub pod: NamespacedName,
    /// In which respect it differs.
    pub aspect: Aspect,
    /// What changes for it.
    pub effect: PodEffect,
    /// Where it ends under each version.
    pub end: Pair<FinalState>,
    /// The message of its last attempt; empty if there is none.
    pub message: Pair<String>,
    /// The number of attempts.
    pub attempts: Pair<usize>,
    /// The changes between the versions that lead to it.
    pub cause: CausingChanges,
}

/// What an upgrade changes for the pods.
#[derive(Clone, PartialEq, Debug)]
pub struct Upgrade {
    /// All changes between the versions that kubestep decides by, in the order of the table.
    pub changes: Vec<VersionChange>,
    /// The differences, by effect and pod.
    pub pods: Vec<OutcomeDifference>,
    /// The pods with the same results and messages.
    pub same: Vec<NamespacedName>,
    /// How many of these have other verdicts or scores.
    pub other_reasons: usize,
    /// How many pods had several nodes with the same total score on a side of which upstream draws
    /// one of them at random.
    pub drawn: usize,
    /// How many runs were needed.
    pub runs: usize,
}

impl Upgrade {
    /// Whether the upgrade changes nothing but verdicts and scores.
    pub fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }

    /// How many pods have that effect.
    pub fn count(&self, effect: PodEffect) -> usize {
        self.pods.iter().filter(|pod| pod.effect == effect).count()
    }

    /// The causes with their differences, the one with the most differences first.
    pub fn by_cause(&self) -> Vec<(&CausingChanges, Vec<&OutcomeDifference>)> {
        let mut groups: BTreeMap<&CausingChanges, Vec<&OutcomeDifference>> = BTreeMap::new();
        for pod in &self.pods {
            groups.entry(&pod.cause).or_default().push(pod);
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|(_, pods)| std::cmp::Reverse(pods.len()));
        groups
    }
}

/// Runs the input under both versions, and finds the causes of what differs, in at most `limit`
/// runs or a few more.
///
/// # Errors
/// The input cannot be opened under one of the versions.
pub fn compare(
    from: FeatureGates,
    to: FeatureGates,
    run: &RunVersion<'_>,
    limit: usize,
) -> Result<Upgrade, RunError> {
    let (a, b) = (run(from)?, run(to)?);
    let outcomes = Pair { a: outcomes(&a), b: outcomes(&b) };
    let changes: Vec<VersionChange> =
        differences(from, to).into_iter().filter(|change| change.is_decided()).collect();
    let mut pods = different(&outcomes);
    let differing: BTreeSet<NamespacedName> = pods.iter().map(|pod| pod.pod).collect();
    let same = names(&outcomes).difference(&differing).copied().collect();
    let other_reasons = with_other_reasons(&a, &b, &differing);
    let drawn = drawn(&a, from).union(&drawn(&b, to)).count();
    drop((a, b));
    let mut search = CauseSearch::new((from, to), run, limit, outcomes.b, &pods);
    for (pod, cause) in pods.iter_mut().zip(search.causes(&changes)) {
        pod.cause = cause;
    }
    Ok(Upgrade { changes, pods, same, other_reasons, drawn, runs: search.runs() + 1 })
}

/// The pods for which upstream draws one of several nodes with the same total score.
fn drawn(session: &Session, gates: FeatureGates) -> BTreeSet<NamespacedName> {
    let draws = !gates.has(Switch::FirstOfEqualTotals);
    let cycles = session.history().cycles().filter(|record| draws && record.tied > 0);
    cycles.map(|record| record.pod).collect()
}

/// The pods of both sides.
fn names(outcomes: &Pair<Outcomes>) -> BTreeSet<NamespacedName> {
    outcomes.a.keys().chain(outcomes.b.keys()).copied().collect()
}

/// What differs, still without causes.
fn different(outcomes: &Pair<Outcomes>) -> Vec<OutcomeDifference> {
    let mut found = Vec::new();
    for pod in names(outcomes) {
        let pair = Pair { a: of_pod(&outcomes.a, pod), b: of_pod(&outcomes.b, pod) };
        found.extend(aspects(&pair).into_iter().map(|aspect| difference(pod, aspect, &pair)));
    }
    found.sort_by_key(|one| (one.effect, one.pod));
    found
}

/// The respects in which a pod differs. Where the end differs, the message counts only if the pod
/// is pending on both sides.
fn aspects(pair: &Pair<&PodOutcome>) -> Vec<Aspect> {
    let differs = |aspect| !pair.a.is_same(pair.b, aspect);
    let pending =
        [pair.a, pair.b].into_iter().all(|side| matches!(side.end, FinalState::Queue(..)));
    let mut aspects = Vec::new();
    if differs(Aspect::End) {
        aspects.push(Aspect::End);
    }
    if differs(Aspect::Message) && (pending || aspects.is_empty()) {
        aspects.push(Aspect::Message);
    }
    if aspects.is_empty() && differs(Aspect::Attempts) {
        aspects.push(Aspect::Attempts);
    }
    aspects
}

fn difference(pod: NamespacedName, aspect: Aspect, pair: &Pair<&PodOutcome>) -> OutcomeDifference {
    let message = |side: &PodOutcome| side.message().to_owned();
    OutcomeDifference {
        pod,
        aspect,
        effect: PodEffect::of(aspect, pair),
        end: Pair { a: pair.a.end.clone(), b: pair.b.end.clone() },
        message: Pair { a: message(pair.a), b: message(pair.b) },
        attempts: Pair { a: pair.a.attempts.len(), b: pair.b.attempts.len() },
        cause: CausingChanges { changes: Vec::new(), smallest: false },
    }
}

impl PodEffect {
    /// All effects, in order.
    pub const ALL: [PodEffect; 7] = [
        PodEffect::Schedulable,
        PodEffect::Pending,
        PodEffect::Moved,
        PodEffect::Presence,
        PodEffect::Waits,
        PodEffect::Message,
        PodEffect::Attempts,
    ];

    fn of(aspect: Aspect, pair: &Pair<&PodOutcome>) -> PodEffect {
        let (a, b) = (&pair.a.end, &pair.b.end);
        match (aspect, a.node(), b.node()) {
            (Aspect::Message, ..) => PodEffect::Message,
            (Aspect::Attempts, ..) => PodEffect::Attempts,
            (Aspect::End, ..) if *a == FinalState::Absent || *b == FinalState::Absent => {
                PodEffect::Presence
            }
            (Aspect::End, None, Some(_)) => PodEffect::Schedulable,
            (Aspect::End, Some(_), None) => PodEffect::Pending,
            (Aspect::End, Some(_), Some(_)) => PodEffect::Moved,
            (Aspect::End, None, None) => PodEffect::Waits,
        }
    }

    /// The identifier in JSON: `moved`.
    pub const fn as_str(self) -> &'static str {
        match self {
            PodEffect::Schedulable => "schedulable",
            PodEffect::Pending => "pending",
            PodEffect::Moved => "moved",
            PodEffect::Presence => "presence",
            PodEffect::Waits => "waits",
            PodEffect::Message => "message",
            PodEffect::Attempts => "attempts",
        }
    }
}

/// How many pods that are not in `listed` have other verdicts or scores.
fn with_other_reasons(a: &Session, b: &Session, listed: &BTreeSet<NamespacedName>) -> usize {
    let all = diff::compare(Side::of(a), Side::of(b)).pods;
    all.iter().filter(|one| !listed.contains(&one.pod)).count()
}
