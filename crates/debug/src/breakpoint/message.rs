//! Hits as text: which breakpoint, when, where, and the message there.

use crate::breakpoint::definition::BreakpointKind;
use crate::breakpoint::list::{Breakpoints, Hit, ListedBreakpoint};
use crate::breakpoint::recording::RecordedRun;
use crate::frames::Position;
use crate::trace::Entry;
use kubestep_config::ExtensionPoint;
use kubestep_framework::record::{CycleRecord, VerdictId};

/// A hit in a sentence: `breakpoint 2 (Filter/TaintToleration), hit 3: cycle 12 of shop/web: …`.
pub fn of_hit(recording: &RecordedRun<'_>, breakpoints: &Breakpoints, hit: &Hit) -> String {
    let Some(item) = breakpoints.get(hit.id) else { return place(recording, hit) };
    let kind = if item.definition.is_watch() { "watch" } else { "breakpoint" };
    let place = place(recording, hit);
    // What a watch saw comes first: the rest may be cut.
    let change = change(item, hit).map(|change| format!("{change}, ")).unwrap_or_default();
    format!("{change}{kind} {} ({}), hit {}: {place}", hit.id, item.definition, hit.number)
}

/// When and where a hit is, and the message there.
pub fn place(recording: &RecordedRun<'_>, hit: &Hit) -> String {
    match recording.history.get(hit.entry()) {
        Some(Entry::Cycle(record)) => frame(record, hit.frame),
        Some(Entry::Move(moved)) => {
            let by = moved.plugin.map(|plugin| format!(", by {plugin}")).unwrap_or_default();
            let (from, to) = (moved.from.as_str(), moved.to.as_str());
            let order = moved.order.map(|by| format!(", order by {by}")).unwrap_or_default();
            format!("{} moved from {from} to {to}: {}{by}{order}", moved.pod, moved.event)
        }
        Some(Entry::Hint(hint)) => {
            format!("{} judged {} for {}", hint.plugin, hint.event.label(), hint.pod)
        }
        Some(Entry::Event(_, event)) => format!("{} of {}", event.reason, event.regarding),
        None => "no longer recorded".into(),
    }
}

/// What a watched value changed from and to.
fn change(item: &ListedBreakpoint, hit: &Hit) -> Option<String> {
    let BreakpointKind::Watch(_) = item.definition.what else { return None };
    let (before, after) = item.change_at(hit.entry())?;
    Some(format!("{before} → {after}"))
}

fn frame(record: &CycleRecord, frame: Position) -> String {
    let mut words = format!("cycle {} of {}", record.cycle, record.pod);
    let node = frame.node.map(|node| record.nodes.name(node).to_string());
    let names = [
        frame.point.map(|point| point.name().to_owned()),
        frame.plugin.map(|p| p.to_string()),
        node,
    ];
    let path: Vec<String> = names.into_iter().flatten().collect();
    if !path.is_empty() {
        words = format!("{words}, {}", path.join(" ▸ "));
    }
    match message(record, frame) {
        Some(said) if !said.is_empty() => format!("{words}: {said}"),
        _ => words,
    }
}

/// The plugin's message, or the outcome of the cycle.
fn message(record: &CycleRecord, frame: Position) -> Option<String> {
    let Some(point) = frame.point else {
        return Some(record.outcome.as_str().to_owned());
    };
    let plugin = frame.plugin?;
    match (point, frame.node) {
        (ExtensionPoint::Filter, Some(node)) => {
            let mut columns = record.filter.plugins.iter();
            let id = columns.find(|column| column.plugin == plugin)?.verdicts.get(node)?;
            Some(match record.verdicts.get(id) {
                Some(status) if status.reasons().is_empty() => status.code().to_string(),
                Some(status) => status.message(),
                None if id == VerdictId::SKIPPED => "nothing to check for this pod".into(),
                None => "passes".into(),
            })
        }
        (ExtensionPoint::Score, Some(node)) => {
            let at = record.feasible.iter().position(|other| *other == node)?;
            let mut columns = record.score.plugins.iter();
            let column = columns.find(|column| column.plugin == plugin)?;
            let total = record.score.totals.get(at)?;
            Some(format!("score {}, total {total}", column.normalized.get(at)?))
        }
        _ => {
            let mut answers = record.answers(point).iter();
            let status = &answers.find(|answer| answer.plugin == plugin)?.status;
            Some(match status.reasons().is_empty() {
                true => status.code().to_string(),
                false => format!("{}: {}", status.code(), status.message()),
            })
        }
    }
}
