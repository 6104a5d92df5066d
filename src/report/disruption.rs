//! Drained and lost nodes, and rollouts: which pods left, what replaced them, and which budgets
//! blocked evictions or were violated. One type, with its text and its JSON.

use std::collections::HashMap;
use std::fmt::Write;

use serde_json::{Value, json};

use crate::report::outcome::{self, Pending};
use crate::report::rollout::{self, RolloutReport};
use kubestep_api::words::{count, span};
use kubestep_api::{Name, Time};
use kubestep_cluster::disruption::{
    Blocked, BudgetViolation, Drained, RemovalCause, RemovedPod, Replacement, SkippedPod,
};
use kubestep_debug::Session;
use kubestep_framework::pod::NamespacedName;

/// The disruptions of a session.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DisruptionReport {
    /// The lost nodes, in order.
    pub lost_nodes: Vec<Name>,
    /// The drained nodes, in order.
    pub drained: Vec<Drained>,
    /// The pods that left their nodes, in order.
    pub left: Vec<EvictedPod>,
    /// The pods that stay on drained nodes.
    pub kept: Vec<SkippedPod>,
    /// The pods that could not be evicted.
    pub blocked: Vec<Blocked>,
    /// The budgets that had too few healthy pods.
    pub violations: Vec<BudgetViolation>,
    /// The rollouts, in order.
    pub rollouts: Vec<RolloutReport>,
    /// When the first pod left.
    pub since: Time,
}

/// A pod that left its node, and what became of it.
#[derive(Clone, PartialEq, Debug)]
pub struct EvictedPod {
    /// The pod, its node, and what replaced it.
    pub removed: RemovedPod,
    /// Where its replacement is.
    pub end: ReplacementState,
}

/// Where the replacement of a pod is in the end.
#[derive(Clone, PartialEq, Debug)]
pub enum ReplacementState {
    /// It is on this node.
    On(Name),
    /// It has no node, for this reason.
    Pending(Pending),
    /// It left its node, too.
    LeftAgain,
    /// There is none, and why.
    Nothing(&'static str),
}

impl DisruptionReport {
    /// The report of a session; `None` if nothing was disrupted.
    pub fn new(session: &Session) -> Option<DisruptionReport> {
        let disruptions = session.world().disruptions()?;
        let pending = outcome::pending(session);
        let removed_pods = disruptions.removed();
        let last: HashMap<NamespacedName, usize> =
            removed_pods.iter().enumerate().map(|(at, removed)| (removed.pod, at)).collect();
        let left = removed_pods.iter().enumerate().map(|(at, removed)| {
            let left_later = |pod: &NamespacedName| last.get(pod).is_some_and(|last| *last > at);
            let end = end(session, removed, left_later, &pending);
            EvictedPod { removed: removed.clone(), end }
        });
        let since = disruptions.removed().first().map(|removed| removed.at);
        Some(DisruptionReport {
            lost_nodes: disruptions.lost_nodes().to_vec(),
            drained: disruptions.drained().to_vec(),
            left: left.collect(),
            kept: disruptions.skipped().to_vec(),
            blocked: disruptions.blocked().to_vec(),
            violations: disruptions.violations(),
            rollouts: disruptions
                .rollouts()
                .iter()
                .map(|rollout| RolloutReport::new(session.world(), rollout, &pending))
                .collect(),
            since: since.unwrap_or(session.world().now()),
        })
    }

    /// Whether each drain emptied its nodes and each rollout is complete.
    pub fn is_complete(&self) -> bool {
        self.drained.iter().all(|drained| drained.done.is_some())
            && !self.rollouts.iter().any(RolloutReport::is_open)
    }

    /// Seconds since the first pod left.
    fn seconds(&self, at: Time) -> i64 {
        (at.0 - self.since.0) / 1_000_000
    }
}

fn end(
    session: &Session,
    removed: &RemovedPod,
    left_later: impl Fn(&NamespacedName) -> bool,
    pending: &[Pending],
) -> ReplacementState {
    let replacement = match removed.replacement {
        Replacement::Pod(pod) => pod,
        Replacement::Nothing(why) => return ReplacementState::Nothing(why),
        Replacement::Due => return ReplacementState::Nothing("its controller has not reacted"),
    };
    if left_later(&replacement) {
        return ReplacementState::LeftAgain;
    }
    let found = pending.binary_search_by_key(&replacement, |pending| pending.pod);
    if let Some(pending) = found.ok().and_then(|at| pending.get(at)) {
        return ReplacementState::Pending(pending.clone());
    }
    match session.world().api().objects().pod(replacement) {
        Some(pod) => ReplacementState::On(pod.spec.node_name),
        None => ReplacementState::Nothing("its replacement was deleted"),
    }
}

/// For people: the nodes, then each pod in the order in which they left.
pub fn text(report: &DisruptionReport) -> String {
    let mut text = heading(report);
    // Writing into a String cannot fail.
    for (number, left) in report.left.iter().enumerate() {
        let removed = &left.removed;
        let rejections = match removed.rejections {
            0 => String::new(),
            n => format!(" after {}", count(n, "rejected eviction")),
        };
        let (cause, end) = (removed.cause.as_str(), end_text(left));
        let _ = writeln!(
            text,
            "{:>4}. {} {cause} from {}{rejections}: {end}",
            number + 1,
            removed.pod,
            removed.node
        );
    }
    for kept in &report.kept {
        let _ = writeln!(text, "      {} stays on {}: {}", kept.pod, kept.node, kept.why);
    }
    for blocked in &report.blocked {
        let _ = writeln!(text, "      {}", describe_blocked(blocked));
    }
    for violation in &report.violations {
        let _ = writeln!(text, "{}", describe_violation(violation));
    }
    text.extend(report.rollouts.iter().map(rollout::text));
    text
}

/// `shop/web-0 is not evicted from a, 2 rejected evictions: …`.
pub fn describe_blocked(blocked: &Blocked) -> String {
    let why = blocked.rejection.as_ref().map(ToString::to_string);
    format!(
        "{} is not evicted from {}, {}: {}",
        blocked.pod,
        blocked.node,
        count(blocked.rejections, "rejected eviction"),
        why.unwrap_or_else(|| "not tried yet".into())
    )
}

/// `budget shop/web violated: …`.
pub fn describe_violation(violation: &BudgetViolation) -> String {
    let BudgetViolation { budget, needed, lowest, healthy, .. } = violation;
    let needed = count(*needed, "healthy pod");
    format!("budget {budget} violated: needs {needed}, fell to {lowest}, has {healthy} in the end")
}

fn heading(report: &DisruptionReport) -> String {
    let mut text = String::new();
    let causes = |cause: RemovalCause| {
        let left = report.left.iter().filter(|left| left.removed.cause == cause);
        count(left.count(), "pod")
    };
    let _ = match report.lost_nodes.as_slice() {
        [] => Ok(()),
        [only] => writeln!(text, "node {only} lost with {}", causes(RemovalCause::Lost)),
        several => {
            writeln!(text, "{} nodes lost with {}", several.len(), causes(RemovalCause::Lost))
        }
    };
    for drained in &report.drained {
        let of_node = report.left.iter().filter(|left| {
            left.removed.node == drained.node && left.removed.cause == RemovalCause::Drained
        });
        let evicted = count(of_node.count(), "pod");
        let _ = match drained.done {
            Some(at) => writeln!(
                text,
                "node {} drained after {}: {evicted} evicted",
                drained.node,
                span(report.seconds(at).max(0) * 1_000_000)
            ),
            None => writeln!(text, "node {} is not drained: {evicted} evicted", drained.node),
        };
    }
    text
}

fn end_text(left: &EvictedPod) -> String {
    let replacement = match &left.removed.replacement {
        Replacement::Pod(pod) if *pod != left.removed.pod => format!("{pod} "),
        _ => String::new(),
    };
    match &left.end {
        ReplacementState::On(node) => format!("{replacement}on {node}"),
        ReplacementState::Pending(pending) => format!("{replacement}pending: {}", pending.reason),
        ReplacementState::LeftAgain => format!("{replacement}left its node again"),
        ReplacementState::Nothing(why) => format!("not recreated: {why}"),
    }
}

/// As part of `schema/run.v1.json` and `schema/survive.v1.json`.
pub fn json(report: &DisruptionReport) -> Value {
    let drained = report.drained.iter().map(|drained| {
        let after = drained.done.map(|at| report.seconds(at).max(0));
        json!({"node": drained.node, "afterSeconds": after})
    });
    let kept = report
        .kept
        .iter()
        .map(|kept| json!({"pod": kept.pod.to_string(), "node": kept.node, "reason": kept.why}));
    let blocked = report.blocked.iter().map(|blocked| {
        json!({
            "pod": blocked.pod.to_string(),
            "node": blocked.node,
            "rejections": blocked.rejections,
            "reason": blocked.rejection.as_ref().map(ToString::to_string),
        })
    });
    json!({
        "lostNodes": report.lost_nodes,
        "drained": drained.collect::<Vec<_>>(),
        "left": report.left.iter().map(|left| left_json(report, left)).collect::<Vec<_>>(),
        "kept": kept.collect::<Vec<_>>(),
        "blocked": blocked.collect::<Vec<_>>(),
        "violatedBudgets": report.violations.iter().map(violation_json).collect::<Vec<_>>(),
        "rollouts": report.rollouts.iter().map(rollout::json).collect::<Vec<_>>(),
    })
}

/// A violation in the JSON of `run` and `survive`.
pub fn violation_json(violation: &BudgetViolation) -> Value {
    json!({
        "budget": violation.budget.to_string(),
        "needed": violation.needed,
        "lowest": violation.lowest,
        "healthy": violation.healthy,
    })
}

fn left_json(report: &DisruptionReport, left: &EvictedPod) -> Value {
    let removed = &left.removed;
    let replacement: Option<NamespacedName> = match removed.replacement {
        Replacement::Pod(pod) => Some(pod),
        _ => None,
    };
    let mut value = json!({
        "pod": removed.pod.to_string(),
        "node": removed.node,
        "cause": removed.cause.name(),
        "afterSeconds": report.seconds(removed.at),
        "rejections": removed.rejections,
        "replacement": replacement.map(|pod| pod.to_string()),
    });
    match &left.end {
        ReplacementState::On(node) => value["placedOn"] = json!(node),
        ReplacementState::Pending(pending) => value["pending"] = pending.reason.as_str().into(),
        ReplacementState::LeftAgain => value["leftAgain"] = true.into(),
        ReplacementState::Nothing(why) => value["notRecreated"] = (*why).into(),
    }
    value
}
