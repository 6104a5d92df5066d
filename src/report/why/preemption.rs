//! Which pods the pod preempted, or would.

use super::names;
use super::outline::of_nodes;
use crate::report::lines_shown;
use crate::report::outline::{LinkTarget, OutlineItem, Tone};
use kubestep_api::Name;
use kubestep_api::words::count;
use kubestep_debug::why::preemption::{CandidateWhy, PreemptionWhy, Victim};
use kubestep_debug::why::{PodLocation, Why};

/// Candidates that are listed in the short form.
const CANDIDATES: usize = 3;
/// Victims that the first sentence names.
const VICTIMS: usize = 3;

/// Eligibility, candidates, the deciding criterion, and why other nodes are not candidates.
pub(super) fn lines(why: &Why, wide: bool) -> Vec<String> {
    let Some(found) = &why.preemption else { return Vec::new() };
    if let Some(rejection) = &found.rejection {
        return vec![format!("Preemption: {rejection}")];
    }
    let mut lines = vec![verdict(why, found)];
    lines.extend(found.rule.iter().map(|rule| format!("  {rule}")));
    let most = lines_shown(found.candidates.len(), if wide { usize::MAX } else { CANDIDATES });
    for one in found.candidates.iter().take(most) {
        lines.push(candidate(one, found.chosen));
        lines.extend(one.reasons.iter().map(|reason| format!("    {reason}")));
    }
    if found.candidates.len() > most {
        lines.push(format!("  and {}", count(found.candidates.len() - most, "more candidate")));
    }
    let chosen = found.candidates.iter().find(|one| Some(one.node) == found.chosen);
    if chosen.is_some_and(|one| one.budget_violations > 0) {
        lines
            .push("  budgets are respected as far as possible: no candidate violates fewer".into());
    }
    for other in &found.others {
        lines.push(format!(
            "  not on {} ({}): {}",
            count(other.nodes.len(), "node"),
            names(&other.nodes, if wide { usize::MAX } else { 3 }),
            other.reason
        ));
    }
    lines
}

/// Which pods a pod that has its node preempted there, and why there; `None` if none.
pub(super) fn of_placed(why: &Why) -> Option<String> {
    let PodLocation::Bound { node } = &why.place else { return None };
    let found = why.preemption.as_ref().filter(|found| found.chosen == Some(*node))?;
    let by = found.decided_by.map(|by| format!(" ({})", by.as_str())).unwrap_or_default();
    Some(format!("{} preempted {} there{by}", preemptor(found, "it"), victims(found)?))
}

/// What preemption does for a pending pod: why it may not preempt, or which pods it would.
pub(super) fn of_pending(why: &Why) -> Option<String> {
    let found = why.preemption.as_ref()?;
    if let Some(rejection) = &found.rejection {
        return Some(format!("preemption: {}", rejection.trim_end_matches('.')));
    }
    let (node, victims) = (found.chosen?, victims(found)?);
    let verb = if is_done(why, node) { "preempted" } else { "would preempt" };
    Some(format!("{} {verb} {victims} on {node}", preemptor(found, "it")))
}

/// Which pods a pending pod preempted, if it waits for their resources.
pub(super) fn awaited(why: &Why) -> Option<String> {
    let chosen = why.preemption.as_ref()?.chosen?;
    is_done(why, chosen).then(|| of_pending(why)).flatten()
}

/// The plugin that preempts, by name, or the pod where that is the default one.
fn preemptor<'a>(found: &PreemptionWhy, pod: &'a str) -> &'a str {
    match found.plugin.as_str() {
        "" | "DefaultPreemption" => pod,
        plugin => plugin,
    }
}

/// The pods that are preempted on the chosen node, the first few by name.
fn victims(found: &PreemptionWhy) -> Option<String> {
    let chosen = found.chosen?;
    let candidate = found.candidates.iter().find(|candidate| candidate.node == chosen)?;
    let pods: Vec<_> = candidate.victims.iter().map(|victim| victim.pod).collect();
    Some(names(&pods, VICTIMS))
}

/// Whether the pod preempted there already: its victims are being deleted, and it waits for their
/// resources.
fn is_done(why: &Why, node: Name) -> bool {
    why.attempts.last().is_some_and(|last| last.nominated == Some(node))
}

/// What follows are all candidates, not what was evicted.
const LISTED: &str = ". Candidates:";

fn verdict(why: &Why, found: &PreemptionWhy) -> String {
    let Some(chosen) = found.chosen else {
        return match found.rule {
            Some(_) => format!("Preemption: {} does not help on any node.", preemptor(found, "it")),
            None => "Preemption: evicting pods of lower priority does not help on any node.".into(),
        };
    };
    let by = found.decided_by.map(|by| format!(" ({})", by.as_str())).unwrap_or_default();
    match why.place {
        PodLocation::Bound { .. } => {
            format!("{} preempted on {chosen}{by}{LISTED}", preemptor(found, "It"))
        }
        _ if is_done(why, chosen) => {
            format!("Preemption: {} preempted on {chosen}{by}{LISTED}", preemptor(found, "it"))
        }
        _ => {
            let preemptor = preemptor(found, "it");
            format!("Preemption: {preemptor} would preempt on {chosen}{by}{LISTED}")
        }
    }
}

fn candidate(candidate: &CandidateWhy, chosen: Option<Name>) -> String {
    let victims: Vec<String> = candidate.victims.iter().map(victim).collect();
    let violates = match candidate.budget_violations {
        0 => String::new(),
        number => format!(", {} violating a budget", count(number, "eviction")),
    };
    let better = chosen.zip(candidate.loses_by);
    let loses = better.map(|(chosen, by)| format!("; {chosen} has {}", by.as_str()));
    let (node, loses) = (candidate.node, loses.unwrap_or_default());
    format!("  {node}: {}{violates}{loses}", victims.join(", "))
}

fn victim(victim: &Victim) -> String {
    let budgets: Vec<String> = victim
        .budgets
        .iter()
        .map(|budget| format!("{} allows {}", budget.name, budget.allowed))
        .collect();
    let budgets = match budgets.is_empty() {
        true => String::new(),
        false => format!(", budget {}", budgets.join(", ")),
    };
    format!("{} (priority {}{budgets})", victim.pod, victim.priority)
}

/// The id of the line of a candidate node.
pub fn candidate_id(node: Name) -> String {
    format!("candidate {node}")
}

/// Like [`lines`], as an outline: every candidate with its victims and budgets, the deciding
/// criterion, and every node that is not a candidate.
pub(super) fn items(why: &Why) -> Vec<OutlineItem> {
    let Some(found) = &why.preemption else { return Vec::new() };
    let heading = match &found.rejection {
        Some(rejection) => format!("Preemption: {rejection}"),
        None => verdict(why, found).trim_end_matches(LISTED).to_owned(),
    };
    let mut items = vec![OutlineItem::heading("preemption", heading)];
    items.extend(found.rule.iter().map(|rule| OutlineItem::new(1, rule.clone())));
    for candidate in &found.candidates {
        let better = found.chosen.zip(candidate.loses_by);
        let by = better.map(|(chosen, by)| format!("; {chosen} has {}", by.as_str()));
        let by = by.unwrap_or_else(|| "; chosen".to_owned());
        let victims = count(candidate.victims.len(), "victim");
        let violating = count(candidate.budget_violations, "eviction");
        let text = format!("{}: {victims}, {violating} violating a budget{by}", candidate.node);
        let tone = if candidate.loses_by.is_none() { Tone::Good } else { Tone::Plain };
        let line = OutlineItem::new(1, text).tone(tone).folded(candidate.loses_by.is_some());
        items.push(OutlineItem { id: candidate_id(candidate.node), ..line });
        let victims = candidate.victims.iter();
        items.extend(victims.map(|of| OutlineItem::new(2, victim(of)).to(LinkTarget::Pod(of.pod))));
        items.extend(candidate.reasons.iter().map(|reason| OutlineItem::new(2, reason.clone())));
    }
    for other in &found.others {
        let text = format!("no candidate: {}: {}", of_nodes(&other.nodes), other.reason);
        items.push(OutlineItem::new(1, text).tone(Tone::Dim).folded(true));
        let node = |name| {
            OutlineItem::new(2, format!("{name}")).to(LinkTarget::Verdict(why.pod, name, None))
        };
        items.extend(other.nodes.iter().map(|name| node(*name)));
    }
    items
}
