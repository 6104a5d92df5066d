//! Compares the decisions of the cluster's own scheduler with those of the embedded one.

use std::sync::Arc;

use kubestep_api::{ConditionStatus, Name, Pod, Time};
use kubestep_debug::learned::known::KnownVerdicts;
use kubestep_debug::learned::{Learned, learn};
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::{CycleRecord, Outcome, VerdictId};

const POD_SCHEDULED: &str = "PodScheduled";
/// The reason of the PodScheduled condition while a gate holds the pod: no scheduler has tried it.
const GATED: &str = "SchedulingGated";

/// What the cluster's scheduler did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterDecision {
    /// It bound the pod to this node.
    Bound(Name),
    /// It could not schedule it.
    Rejected {
        /// The message of its condition `PodScheduled`.
        message: String,
        /// The node it was nominated to; empty for none.
        nominated: Name,
    },
}

/// How the two decisions compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// The same node, or both reject.
    Same,
    /// A different node with the same score.
    Tie,
    /// Another node with another score, or only one of the two schedules the pod.
    Different,
    /// Different decisions, and an opaque plugin of the profile can be the cause.
    Opaque,
    /// The embedded scheduler has not tried the pod: it is gated, or waits for something.
    Untried,
    /// Not comparable: the two looked at other nodes, or at another state of the cluster.
    Incomparable,
}

/// A decision of the cluster's scheduler, compared with that of the embedded one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparedDecision {
    /// When it was received.
    pub time: Time,
    /// The pod that was scheduled or rejected.
    pub pod: NamespacedName,
    /// The embedded scheduler's cycle, if there was one.
    pub cycle: Option<u64>,
    /// What the embedded scheduler decided, for people.
    pub ours: String,
    /// What the cluster's scheduler decided, for people.
    pub theirs: String,
    /// Whether the two agree.
    pub verdict: Agreement,
    /// Where the difference lies, in terms of the embedded scheduler; empty if there is none.
    pub reason: String,
    /// What opaque plugins must have said in the cluster's scheduler, if it rejected the pod.
    pub learned: Option<Arc<Learned>>,
}

impl Agreement {
    /// In a word or two, for a column.
    pub fn as_str(self) -> &'static str {
        match self {
            Agreement::Same => "same",
            Agreement::Tie => "tie, other node",
            Agreement::Different => "different",
            Agreement::Opaque => "opaque plugin",
            Agreement::Untried => "not tried here",
            Agreement::Incomparable => "not comparable",
        }
    }
}

impl ClusterDecision {
    /// The decision that led from one version of a pod to the next, if there is one; `old` is
    /// `None` for a pod that was not known before.
    pub fn between(old: Option<&Pod>, new: &Pod) -> Option<ClusterDecision> {
        let old = old.filter(|old| old.metadata.uid == new.metadata.uid);
        if !new.spec.node_name.is_empty() {
            let waited = old.is_some_and(|old| old.spec.node_name.is_empty());
            return waited.then_some(ClusterDecision::Bound(new.spec.node_name));
        }
        let said = |pod: &Pod| {
            let mut conditions = pod.status.conditions.iter();
            let condition = conditions.find(|condition| condition.type_ == POD_SCHEDULED)?;
            let refused = condition.status == ConditionStatus::False && condition.reason != GATED;
            let nominated = pod.status.nominated_node_name;
            refused.then(|| ClusterDecision::Rejected {
                message: condition.message.clone(),
                nominated,
            })
        };
        let now = said(new);
        let before = old.and_then(said);
        if now == before { None } else { now }
    }

    /// In a few words.
    pub fn describe(&self) -> String {
        match self {
            ClusterDecision::Bound(node) => format!("bound to {node}"),
            ClusterDecision::Rejected { message, nominated } if nominated.is_empty() => {
                message.clone()
            }
            ClusterDecision::Rejected { message, nominated } => {
                format!("nominated {nominated}: {message}")
            }
        }
    }
}

/// The embedded scheduler's decision, worded like [`ClusterDecision::describe`].
pub fn describe_cycle(ours: &CycleRecord) -> String {
    match (ours.outcome, ours.node, ours.nominated_node) {
        (Outcome::Scheduled, Some(node), _) => format!("bound to {node}"),
        (Outcome::Waiting, Some(node), _) => format!("would wait at Permit for {node}"),
        (_, _, Some(node)) => format!("nominated {node}: {}", ours.message),
        (outcome, ..) if ours.message.is_empty() => outcome.as_str().to_owned(),
        _ => ours.message.clone(),
    }
}

/// Compares two decisions. Returns the verdict and a sentence about the difference.
pub fn compare(ours: Option<&CycleRecord>, theirs: &ClusterDecision) -> (Agreement, String) {
    let Some(ours) = ours else {
        return (Agreement::Untried, "not tried here yet".into());
    };
    let found = match theirs {
        ClusterDecision::Bound(node) => compare_binding(ours, *node),
        ClusterDecision::Rejected { message, nominated } => {
            compare_rejection(ours, message, *nominated)
        }
    };
    let differs = matches!(found.0, Agreement::Different | Agreement::Incomparable);
    let cause = if differs { opaque_cause(ours, theirs) } else { None };
    cause.map_or(found, |words| (Agreement::Opaque, words))
}

/// What opaque plugins must have said if the cluster's scheduler rejected the pod. `None` if the
/// profile has none, or its message is another one.
pub fn learned(ours: &CycleRecord, theirs: &ClusterDecision) -> Option<Learned> {
    let ClusterDecision::Rejected { message, .. } = theirs else { return None };
    learn(&KnownVerdicts::of_record(ours)?, message)
}

/// How an opaque plugin can have caused a difference. `None` if none can.
fn opaque_cause(ours: &CycleRecord, theirs: &ClusterDecision) -> Option<String> {
    if let Some(learned) = learned(ours, theirs) {
        let explains = learned.is_spoken() && !learned.contradicts();
        return explains.then(|| learned.lines().join("; "));
    }
    let certainty = ours.certainty().filter(|certainty| !certainty.is_certain())?;
    if let ClusterDecision::Bound(node) = theirs {
        // An opaque plugin rejects nodes and scores them; it lets no node in.
        let mut feasible = ours.feasible.iter().map(|slot| ours.nodes.name(*slot));
        let passed = feasible.any(|name| name == *node) || passed_over(ours);
        passed.then_some(())?;
    }
    let conditions: Vec<String> = certainty.conditions().collect();
    Some(format!("ours stands {}", conditions.join("; ")))
}

fn compare_binding(ours: &CycleRecord, node: Name) -> (Agreement, String) {
    let placed = matches!(ours.outcome, Outcome::Scheduled | Outcome::Waiting);
    if placed && ours.node == Some(node) {
        return (Agreement::Same, String::new());
    }
    if placed && ours.tied_nodes().iter().any(|id| ours.nodes.name(*id) == node) {
        let tied = ours.tied;
        return (
            Agreement::Tie,
            format!("{tied} nodes have the best total; upstream picks one at random"),
        );
    }
    about_node(ours, node)
}

/// What the embedded scheduler found about the node that the other one took.
fn about_node(ours: &CycleRecord, node: Name) -> (Agreement, String) {
    let slot = ours.nodes.order.iter().find(|slot| ours.nodes.name(**slot) == node);
    let Some(slot) = slot else {
        return (Agreement::Different, format!("node {node} is unknown here"));
    };
    let final_verdict = ours.filter.verdicts.get(*slot);
    if let Some(status) = final_verdict.and_then(|id| ours.verdicts.get(id)) {
        let (plugin, message) = (status.plugin(), status.message());
        let reason = format!("Filter: {plugin} rejects {node} here: {message}");
        return (Agreement::Different, reason);
    }
    let at = ours.feasible.iter().position(|feasible| feasible == slot);
    let total = |at: usize| ours.score.totals.get(at);
    let best = ours.score.totals.iter().max();
    match (at.and_then(total), best) {
        (Some(total), Some(best)) if passed_over(ours) => (
            Agreement::Incomparable,
            format!(
                "{node} has {total} here and the best node {best}, but the two \
                 schedulers may evaluate different nodes"
            ),
        ),
        (Some(total), Some(best)) => {
            (Agreement::Different, format!("Score: {node} has {total} here, the best node {best}"))
        }
        _ if final_verdict == Some(VerdictId::ENOUGH_FOUND) => (
            Agreement::Incomparable,
            format!("{node} was not evaluated here: enough nodes were found before it"),
        ),
        _ => (Agreement::Different, format!("{node} was not evaluated here")),
    }
}

/// Whether some nodes were not evaluated because enough feasible ones were found. The other
/// scheduler's start index is unknown.
fn passed_over(ours: &CycleRecord) -> bool {
    let passed_over = |slot| ours.filter.verdicts.get(slot) == Some(VerdictId::ENOUGH_FOUND);
    ours.nodes.order.iter().any(|slot| passed_over(*slot))
}

fn compare_rejection(ours: &CycleRecord, message: &str, nominated: Name) -> (Agreement, String) {
    if matches!(ours.outcome, Outcome::Scheduled | Outcome::Waiting) {
        let node = ours.node.unwrap_or_default();
        return (Agreement::Different, format!("{node} passes every filter here"));
    }
    let ours_nominated = ours.nominated_node.unwrap_or_default();
    if ours_nominated != nominated {
        let named = |node: Name| if node.is_empty() { "none".into() } else { node.to_string() };
        let (here, there) = (named(ours_nominated), named(nominated));
        return (
            Agreement::Different,
            format!("PostFilter: nominated node {here} here, {there} there"),
        );
    }
    match ours.message == message {
        true => (Agreement::Same, String::new()),
        false => (Agreement::Different, "both reject it, for different reasons".into()),
    }
}
