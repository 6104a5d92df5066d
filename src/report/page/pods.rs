//! The pending pods with their causes and what would help; the pods that were placed.

use std::borrow::Cow;

use maud::{Markup, html};

use super::{ExplainedPod, ReportPage, describe_queue, queue_class};
use crate::report::outcome::Pending;
use crate::report::outline::{Outline, Tone};
use kubestep_debug::message::brief;

/// Sections that are folded, so that what would help stands near the causes.
const SIDE: [&str; 2] = ["queue", "attempts"];

/// Every pending pod: a line with the reasons, and below it the explanation.
pub(super) fn pending(page: &ReportPage) -> Markup {
    let explained = |pod: &Pending| page.pending.iter().find(|other| other.pod == pod.pod);
    html! {
        section id="pending" {
            h2 { "Pending pods (" (page.run.pending.len()) ")" }
            @if page.run.pending.is_empty() { p { "Every pod has a node." } }
            @for pod in &page.run.pending {
                details.entry open[page.run.pending.len() == 1] {
                    summary {
                        b { (pod.pod) } " "
                        span.tag.(queue_class(pod.place)) { (describe_queue(pod.place)) }
                        span.said { (cause(pod, explained(pod))) }
                    }
                    @match explained(pod) {
                        Some(explained) => (body(explained)),
                        None => p { (pod.reason) },
                    }
                }
            }
        }
    }
}

/// Why it is pending, in a few words; the scheduler's if it is not explained.
fn cause<'a>(pod: &'a Pending, explained: Option<&'a ExplainedPod>) -> Cow<'a, str> {
    let cause = explained.and_then(|explained| explained.cause.as_deref());
    cause.map_or_else(|| brief(&pod.reason), Cow::Borrowed)
}

fn body(explained: &ExplainedPod) -> Markup {
    html! {
        (outline(&explained.why))
        @if let Some(lines) = &explained.fixes { (fixes(lines)) }
    }
}

/// The lines of an outline; those with children fold.
fn outline(outline: &Outline) -> Markup {
    html! { div.outline { (level(outline, 0, outline.items.len())) } }
}

/// The lines from `from` up to `to`, which have the level of the first or are below such a line.
fn level(outline: &Outline, from: usize, to: usize) -> Markup {
    let Some(depth) = outline.items.get(from).map(|item| item.depth) else { return html! {} };
    let starts = (from..to).filter(|at| outline.items[*at].depth <= depth);
    let starts: Vec<usize> = starts.collect();
    let ends = starts.iter().skip(1).copied().chain([to]);
    html! {
        @for (at, end) in starts.iter().copied().zip(ends) {
            @let item = &outline.items[at];
            @if end > at + 1 {
                details open[!item.folded && !SIDE.contains(&item.id.as_str())] {
                    summary.(class(item.tone)) { (item.text) }
                    div { (level(outline, at + 1, end)) }
                }
            } @else {
                p.(class(item.tone)) { (item.text) }
            }
        }
    }
}

fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "plain",
        Tone::Heading => "heading",
        Tone::Bad => "bad",
        Tone::Queued(queue) => queue_class(queue),
        Tone::Waiting => "wait",
        Tone::Good => "good",
        Tone::Dim => "dim",
    }
}

/// What would help: each change with its lines.
fn fixes(lines: &[(Option<usize>, String)]) -> Markup {
    html! {
        div.fixes {
            @for lines in lines.chunk_by(|a, b| a.0 == b.0) {
                @match lines {
                    [(Some(_), change), more @ ..] => {
                        p.change { code { (change.trim_start()) } }
                        @for (_, line) in more { p.more { (line.trim_start()) } }
                    }
                    lines => @for (_, line) in lines { p.heading { (line.trim_start()) } },
                }
            }
        }
    }
}

/// The pods that were placed, and the pods that were preempted for them.
pub(super) fn placed(page: &ReportPage) -> Markup {
    let run = &page.run;
    html! {
        section id="placed" {
            h2 { "Placed pods (" (run.placed.len()) ")" }
            @if !run.placed.is_empty() {
                details open[run.placed.len() <= 20] {
                    summary { "Pods and nodes" }
                    div.scroll { table {
                        thead { tr { th { "pod" } th { "node" } th.num { "attempt" } } }
                        @for placed in &run.placed {
                            tr.entry {
                                td { (placed.pod) } td { (placed.node) } td.num { (placed.attempt) }
                            }
                        }
                    } }
                }
            }
            @for evicted in &run.evicted {
                p.entry { span.warn { "evicted " } (evicted.pod) " from " (evicted.node) " for " (evicted.by) }
            }
        }
    }
}
