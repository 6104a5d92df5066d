//! When the pod is retried, and its history in the queue.

use indexmap::IndexMap;

use super::WhyDetail;
use crate::report::lines_shown;
use kubestep_api::Time;
use kubestep_api::words::{self, count};
use kubestep_debug::message::brief;
use kubestep_debug::why::{QueueWhy, Why};
use kubestep_framework::record::{QueueMove, QueueName};

/// Events that are listed in the short form.
const EVENTS: usize = 4;
/// Earlier attempts with other results that are listed.
const EARLIER: usize = 3;

/// What it waits for; in the wide form its whole history.
pub(super) fn lines(why: &Why, detail: &WhyDetail) -> Vec<String> {
    summary(why, detail, if detail.wide { usize::MAX } else { EVENTS })
}

/// The short form with all events.
pub(super) fn all_events(why: &Why) -> Vec<String> {
    summary(why, &WhyDetail::default(), usize::MAX)
}

fn summary(why: &Why, detail: &WhyDetail, events: usize) -> Vec<String> {
    let mut lines: Vec<String> = why.queue.iter().flat_map(|queue| waits(queue, why.at)).collect();
    lines.extend(why.queue.iter().flat_map(|queue| requeueing_events(queue, detail, events)));
    lines.extend(passed_over(why, detail.wide));
    if detail.wide {
        lines.extend(story(why));
    }
    if let Some(last) = why.attempts.last().filter(|last| !last.message.is_empty()) {
        lines.push(format!("kube-scheduler reports: {}", last.message));
        lines.extend(earlier_results(why, &last.message));
    }
    lines
}

/// What attempts with another result found, the last first.
fn earlier_results(why: &Why, last: &str) -> Vec<String> {
    let mut known = vec![brief(last)];
    let mut lines = Vec::new();
    for attempt in why.attempts.iter().rev().filter(|attempt| !attempt.message.is_empty()) {
        let said = brief(&attempt.message);
        if !known.contains(&said) && lines.len() < EARLIER {
            lines.push(format!("  attempt {}, cycle {}: {said}", attempt.attempt, attempt.cycle));
            known.push(said);
        }
    }
    lines
}

fn waits(queue: &QueueWhy, now: Time) -> Option<String> {
    // Pods of a file have been in the queue for no time.
    let since = Some(span(queue.since, now)).filter(|since| since != "0s");
    let lasting = since.as_ref().map(|since| format!(" for {since}")).unwrap_or_default();
    let until = queue.until.map(|until| span(now, until));
    let position = queue.position.map(|at| format!(", as number {at}")).unwrap_or_default();
    match queue.queue.0 {
        QueueName::Active => Some(format!("In the active queue{lasting}{position}.")),
        QueueName::Backoff => {
            let and = if since.is_some() { ", and" } else { "" };
            let until = until.map(|until| format!("{and} for {until} more")).unwrap_or_default();
            Some(format!("In backoff{lasting}{until}{position}."))
        }
        QueueName::Unschedulable => {
            let until =
                until.map(|until| format!(" in {until} at the latest, or")).unwrap_or_default();
            let since = since.map(|since| format!("Waiting for {since}. ")).unwrap_or_default();
            Some(format!("{since}Retried{until} after:"))
        }
        QueueName::Gated => {
            let by = queue.gated_by.map(|by| format!(" by {by}")).unwrap_or_default();
            Some(format!("Gated{by}{lasting}; requeued by:"))
        }
        _ => None,
    }
}

/// The events that requeue it, by plugin, at most `most`.
fn requeueing_events(queue: &QueueWhy, detail: &WhyDetail, most: usize) -> Vec<String> {
    let shown = lines_shown(queue.requeueing_events.len(), most);
    let mut by_plugin: IndexMap<&str, Vec<&str>> = IndexMap::new();
    for event in queue.requeueing_events.iter().take(shown) {
        by_plugin.entry(event.plugin.as_str()).or_default().push(&event.event);
    }
    let line = |(plugin, events): (&&str, &Vec<&str>)| format!("  {plugin}: {}", events.join(", "));
    let mut lines: Vec<String> = by_plugin.iter().map(line).collect();
    let more = queue.requeueing_events.len() - shown;
    let hint = detail.hint("");
    lines.extend((more > 0).then(|| format!("  and {}{hint}", count(more, "more event"))));
    lines
}

fn span(from: Time, to: Time) -> String {
    words::span((to.0 - from.0).max(0))
}

/// A relative time: `1.9s ago`, `now`.
fn ago(time: Time, now: Time) -> String {
    match span(time, now).as_str() {
        "0s" => "now".to_owned(),
        span => format!("{span} ago"),
    }
}

/// Events since the pod waits for which no plugin's queueing hint requeued it.
fn passed_over(why: &Why, wide: bool) -> Vec<String> {
    let Some(queue) = &why.queue else { return Vec::new() };
    let since = why.moves.last().map_or(queue.since, |moved| moved.time);
    let skipped = why.hints.iter().filter(|call| call.answer == "QueueSkip" && call.time >= since);
    let mut events: IndexMap<&str, Vec<&str>> = IndexMap::new();
    for call in skipped {
        let plugins = events.entry(&call.event).or_default();
        if !plugins.contains(&call.plugin.as_str()) {
            plugins.push(call.plugin.as_str());
        }
    }
    let most = if wide { usize::MAX } else { 5 };
    let line = |(event, plugins): (&&str, &Vec<&str>)| {
        format!("Ignored: {event} ({} skipped it)", plugins.join(", "))
    };
    events.iter().take(most).map(line).collect()
}

fn story(why: &Why) -> Vec<String> {
    let moves = why.moves.iter().map(|moved| {
        let by = moved.plugin.map(|plugin| format!(" ({plugin})")).unwrap_or_default();
        let words = QueueMove::between(moved.from.0, moved.to.0, moved.event);
        (moved.time, format!("{words}: {}{by}", moved.event))
    });
    let attempts = why.attempts.iter().map(|attempt| {
        let node = attempt.node.map(|node| format!(" on {node}")).unwrap_or_default();
        let number = attempt.attempt;
        (attempt.time, format!("attempt {number}: {}{node}", attempt.outcome))
    });
    let hints = why.hints.iter().map(|call| {
        (call.time, format!("{}: {} returns {}", call.event, call.plugin, call.answer))
    });
    let mut all: Vec<_> = moves.chain(hints).chain(attempts).collect();
    all.sort_by_key(|(time, _)| *time);
    let mut lines = vec!["History:".to_owned()];
    let line = |(time, text)| format!("  {:>11}  {text}", ago(time, why.at));
    lines.extend(all.into_iter().map(line));
    lines
}
