//! The verdict: where the pod is, whether it fits somewhere, and what no node can help.

use super::{names, placement};
use kubestep_api::words::count;
use kubestep_debug::why::{
    Basis, NodeWhy, PodLocation, PodProblem, PreFilterRejection, ProblemKind, Why,
};
use kubestep_framework::record::QueueName;

/// The head of the answer.
pub(super) fn lines(why: &Why) -> Vec<String> {
    let margin = margin(why, false).unwrap_or_default();
    let absence = |problem: &&PodProblem| problem.kind == ProblemKind::NoScheduler;
    let mut lines: Vec<String> = why.problems.iter().filter(absence).map(first).collect();
    lines.push(format!("{} {}{margin}", why.pod, place(why)));
    let blocking = why.problems.iter().filter(|problem| problem.blocking && !absence(problem));
    for problem in blocking {
        lines.push(format!("  {}", problem.text));
        lines.push(format!("    {}", problem.advice));
    }
    for ahead in &why.ahead {
        lines.extend(self::ahead(ahead));
    }
    lines.push(verdict(why));
    lines.retain(|line| !line.is_empty());
    lines.extend(certainty(why));
    for problem in why.problems.iter().filter(|problem| !problem.blocking) {
        lines.push(format!("  note: {}: {}", problem.text, problem.advice));
    }
    lines
}

/// How certain the decision is, and what it depends on.
fn certainty(why: &Why) -> Vec<String> {
    let Some(judgement) = &why.certainty else { return Vec::new() };
    let conditions = judgement.conditions().into_iter().map(|line| format!("  {line}"));
    std::iter::once(judgement.verdict()).chain(conditions).collect()
}

/// The cause that comes before all others.
fn first(problem: &PodProblem) -> String {
    format!("{}; {}", problem.text, problem.advice)
}

/// By how much the pod's node won in its cycle, or would win now if no cycle is recorded.
fn margin(why: &Why, now: bool) -> Option<String> {
    let placed = matches!(why.place, PodLocation::Bound { .. } | PodLocation::Waiting { .. });
    let on_that_basis = placed && (why.basis == Basis::Now) == now;
    let placement = why.placement.as_ref().filter(|_| on_that_basis)?;
    placement::margin(placement, now).map(|margin| format!(": {margin}"))
}

fn place(why: &Why) -> String {
    let tried = match why.attempts.len() {
        0 => "not tried yet".to_owned(),
        1 => "1 attempt".to_owned(),
        number => format!("{number} attempts"),
    };
    match &why.place {
        PodLocation::Bound { node } => match why.attempts.last() {
            Some(attempt) => format!("is on {node} (attempt {})", attempt.attempt),
            None => format!("is on {node} (bound when loaded)"),
        },
        PodLocation::Ended { phase } => format!("has ended: {phase}"),
        PodLocation::Waiting { node, in_pre_bind: false, .. } => {
            format!("is pending: it waits at Permit, reserved on {node}")
        }
        PodLocation::Waiting { node, .. } => {
            format!("is pending: it waits in PreBind, reserved on {node}")
        }
        PodLocation::Queue { queue } => match queue.0 {
            QueueName::Gated => "is pending: gated".to_owned(),
            QueueName::InFlight => format!("is pending: in flight, {tried}"),
            queue => format!("is pending: in the {} queue, {tried}", queue.as_str()),
        },
        PodLocation::Unserved { .. } | PodLocation::Nowhere => {
            "is pending: it is in no queue".to_owned()
        }
    }
}

fn ahead(ahead: &PreFilterRejection) -> Vec<String> {
    if ahead.refuses() {
        let causes: Vec<String> = ahead.causes.iter().map(|cause| cause.text()).collect();
        return vec![format!("  on every node: {}: {}", ahead.plugin, causes.join("; "))];
    }
    let Some(only) = &ahead.only else { return Vec::new() };
    let nodes = match only.len() {
        1..=3 => names(only, 3),
        many => count(many, "node"),
    };
    vec![format!("  {} narrows the search to {nodes}", ahead.plugin)]
}

/// On how many nodes it fit, of those that were evaluated; the others were looked at afterwards.
fn of_evaluated(why: &Why) -> String {
    let is_other = |node: &&NodeWhy| node.seen.why_not().is_some();
    let (fits, all) = (why.fitting().count(), why.nodes.len());
    let others = why.nodes.iter().filter(is_other).count();
    let other_fits = why.fitting().filter(is_other).count();
    match (others, other_fits) {
        (0, _) => of(fits, all),
        (_, 0) => format!("{} evaluated", of(fits, all - others)),
        _ => format!(
            "{} evaluated, and would fit {other_fits} of the others",
            of(fits - other_fits, all - others)
        ),
    }
}

fn verdict(why: &Why) -> String {
    let (fits, all) = (why.fitting().count(), why.nodes.len());
    if why.profile.is_none() {
        return "No profile serves the pod, so no node was evaluated.".to_owned();
    }
    let blocked = why.problems.iter().any(|problem| problem.blocking);
    let refused = why.ahead.iter().any(PreFilterRejection::refuses);
    match (&why.place, why.basis) {
        (
            PodLocation::Bound { node } | PodLocation::Waiting { node, .. },
            Basis::Cycle { cycle },
        ) => {
            format!("In cycle {cycle} it fit {}; {node} was selected.", of_evaluated(why))
        }
        (PodLocation::Bound { .. } | PodLocation::Ended { .. }, Basis::Now) => {
            let margin = margin(why, true);
            let margin = margin.unwrap_or_else(|| ".".to_owned());
            format!(
                "Rescheduled now, without spec.nodeName, it would fit {}{margin}",
                of(fits, all)
            )
        }
        _ if refused => "No node is evaluated until that changes.".to_owned(),
        _ if blocked && fits > 0 => format!("Otherwise it would fit {}.", of(fits, all)),
        _ if fits > 0 => format!("It fits {}: the next attempt places it.", of(fits, all)),
        _ if blocked && all == 0 => String::new(),
        _ if blocked => format!("It also fits none of the {}.", count(all, "node")),
        _ if all == 1 => "It does not fit the only node.".to_owned(),
        _ => format!("It fits none of the {}.", count(all, "node")),
    }
}

fn of(fits: usize, all: usize) -> String {
    format!("{fits} of {}", count(all, "node"))
}
