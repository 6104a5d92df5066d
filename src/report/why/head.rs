//! The verdict: where the pod is, whether it fits somewhere, and what no node can help.

use super::{decisive, names, placement, preemption};
use kubestep_api::words::count;
use kubestep_debug::why::{
    Basis, EarlierRejection, NodeWhy, PodLocation, PodProblem, PreFilterRejection, ProblemKind, Why,
};
use kubestep_framework::record::QueueName;

/// The head of the answer.
pub(super) fn lines(why: &Why) -> Vec<String> {
    let absence = |problem: &&PodProblem| problem.kind == ProblemKind::NoScheduler;
    let mut lines: Vec<String> = why.problems.iter().filter(absence).map(first).collect();
    let decisive = decisive::cause(why);
    lines.push(match &decisive {
        Some(cause) => format!("{} is pending: {cause}", why.pod),
        None => format!("{} {}{}", why.pod, place(why), outcome(why).unwrap_or_default()),
    });
    let mut repeated = decisive.as_deref();
    for problem in why.problems.iter().filter(|problem| problem.blocking && !absence(problem)) {
        // The first one is the decisive cause.
        let text = Some(problem.text.as_str()).filter(|_| repeated.take().is_none());
        lines.extend(text.map(|text| format!("  {text}")));
        let indent = if text.is_some() { "    " } else { "  " };
        lines.push(format!("{indent}{}", problem.advice));
    }
    for ahead in &why.ahead {
        // So is the first rejection by PreFilter, if there are no problems.
        let is_repeated = ahead.rejects() && repeated.take().is_some();
        lines.extend(Some(self::ahead(ahead)).filter(|_| !is_repeated).into_iter().flatten());
    }
    let state = decisive.and_then(|_| state(why)).map(|state| state + " ").unwrap_or_default();
    lines.push(format!("{state}{}", verdict(why)).trim_end().to_owned());
    lines.retain(|line| !line.is_empty());
    lines.extend(why.rejected_before.iter().flat_map(rejected_before));
    lines.extend(certainty(why));
    for problem in why.problems.iter().filter(|problem| !problem.blocking) {
        lines.push(format!("  note: {}: {}", problem.text, problem.advice));
    }
    lines
}

/// What decided where the pod is: by how much its node won in its cycle, or which pods
/// it preempted.
fn outcome(why: &Why) -> Option<String> {
    margin(why, false).or_else(|| preemption::of_placed(why).map(|words| format!(": {words}")))
}

/// What rejected the pod before any node was evaluated, in an attempt before it was placed.
fn rejected_before(rejection: &EarlierRejection) -> Vec<String> {
    let EarlierRejection { cycle, attempt, reasons } = rejection;
    let reasons = reasons.iter().map(|reason| format!("  {}: {}", reason.plugin, reason.text));
    let heading =
        format!("Attempt {attempt} (cycle {cycle}) was rejected before any node was evaluated:");
    std::iter::once(heading).chain(reasons).collect()
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
    let placed = matches!(why.place, PodLocation::Bound { .. });
    let on_that_basis = placed && (why.basis == Basis::Now) == now;
    let placement = why.placement.as_ref().filter(|_| on_that_basis)?;
    placement::margin(placement, now).map(|margin| format!(": {margin}"))
}

/// Where the pod is, if no cause is known that keeps it there.
fn place(why: &Why) -> String {
    match &why.place {
        PodLocation::Bound { node } => match why.attempts.last() {
            Some(attempt) => format!("is on {node} (attempt {})", attempt.attempt),
            None => format!("is on {node} (bound when loaded)"),
        },
        PodLocation::Ended { phase } => format!("has ended: {phase}"),
        PodLocation::Queue { queue } => match queue.0 {
            QueueName::Gated => "is pending: gated".to_owned(),
            QueueName::InFlight => format!("is pending: in flight, {}", tried(why)),
            queue => format!("is pending: in the {} queue, {}", queue.as_str(), tried(why)),
        },
        PodLocation::Waiting { .. } | PodLocation::Unserved { .. } | PodLocation::Nowhere => {
            "is pending: it is in no queue".to_owned()
        }
    }
}

/// Where a pending pod is, as a sentence; `None` if the cause tells.
fn state(why: &Why) -> Option<String> {
    match &why.place {
        PodLocation::Queue { queue } => match queue.0 {
            QueueName::Gated => None,
            QueueName::InFlight => Some(format!("In flight, {}.", tried(why))),
            queue => Some(format!("In the {} queue, {}.", queue.as_str(), tried(why))),
        },
        PodLocation::Nowhere => Some("It is in no queue.".to_owned()),
        _ => None,
    }
}

fn tried(why: &Why) -> String {
    match why.attempts.len() {
        0 => "not tried yet".to_owned(),
        1 => "1 attempt".to_owned(),
        number => format!("{number} attempts"),
    }
}

fn ahead(ahead: &PreFilterRejection) -> Vec<String> {
    if ahead.rejects() {
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
    let mut blocking = why.problems.iter().filter(|problem| problem.blocking).peekable();
    let blocked = blocking.peek().is_some();
    let of_group = blocking.all(|problem| problem.kind == ProblemKind::Quorum);
    let rejected = why.ahead.iter().any(PreFilterRejection::rejects);
    match (&why.place, why.basis) {
        (PodLocation::Waiting { node, .. }, Basis::Cycle { cycle }) => {
            let margin = why.placement.as_ref().and_then(|it| placement::margin(it, false));
            let selected = margin.unwrap_or_else(|| format!("{node} was selected"));
            format!("In cycle {cycle} it fit {}; {selected}.", of_evaluated(why))
        }
        (PodLocation::Bound { node }, Basis::Cycle { cycle }) => {
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
        _ if rejected => "No node is evaluated until that changes.".to_owned(),
        _ if blocked && fits > 0 && of_group => format!("Alone it would fit {}.", of(fits, all)),
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
