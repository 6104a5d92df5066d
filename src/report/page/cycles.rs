//! The cycles: a strip with a cell for each, then each cycle with its verdicts, scores and victims.

use std::sync::Arc;

use maud::{Markup, html};

use super::ReportPage;
use crate::report::lines_shown;
use crate::report::verdict::{explain, of_plugin};
use crate::report::verdict_groups::{VerdictGroup, groups_of};
use kubestep_api::words::{count, span};
use kubestep_debug::message::brief;
use kubestep_framework::node::NodeId;
use kubestep_framework::record::{CycleRecord, Outcome, VerdictId};
use kubestep_framework::status::Code;

/// Newest cycles that are listed.
const LISTED: usize = 5_000;
/// Newest cycles with their verdicts and scores.
const IN_DETAIL: usize = 300;
/// Groups of nodes in the table of a cycle's verdicts.
const GROUPS: usize = 40;
/// Nodes named for a group.
const NAMED: usize = 5;
/// Best nodes in the table of a cycle's scores.
const RANKED: usize = 20;

/// The strip and the cycles.
pub(super) fn section(page: &ReportPage) -> Markup {
    let cycles = page.cycles.len();
    let listed = &page.cycles[cycles.saturating_sub(LISTED)..];
    let in_detail = listed.len().saturating_sub(IN_DETAIL);
    html! {
        section id="cycles" {
            h2 { "Scheduling cycles (" (page.run.cycles) ")" }
            div.strip {
                @for cycle in listed {
                    a.(class(cycle)) href={ "#cycle-" (cycle.cycle) } title=(title(cycle)) {}
                }
            }
            @if listed.len() < usize::try_from(page.run.cycles).unwrap_or(usize::MAX) {
                p.dim { "The newest " (listed.len()) " are listed." }
            }
            @if in_detail > 0 {
                p.dim { "Verdicts and scores are shown of the newest " (IN_DETAIL) "." }
            }
            @for (at, cycle) in listed.iter().enumerate() { (entry(page, cycle, at >= in_detail)) }
        }
    }
}

fn title(cycle: &CycleRecord) -> String {
    let node = cycle.node.map(|node| format!(" on {node}")).unwrap_or_default();
    format!("cycle {}: {} {}{node}", cycle.cycle, cycle.pod, cycle.outcome.as_str())
}

/// The class of a cycle by its outcome.
fn class(cycle: &CycleRecord) -> &'static str {
    match cycle.outcome {
        Outcome::Scheduled => "good",
        Outcome::Waiting => "wait",
        _ if cycle.preemption.is_some() => "preempts",
        _ => "bad",
    }
}

fn entry(page: &ReportPage, cycle: &Arc<CycleRecord>, in_detail: bool) -> Markup {
    let time = span(cycle.time.0.saturating_sub(page.start.0));
    html! {
        details.entry.cycle id={ "cycle-" (cycle.cycle) } {
            summary {
                span.dim { (cycle.cycle) " +" (time) } " " b { (cycle.pod) } " "
                span.tag.(class(cycle)) { (cycle.outcome.as_str()) }
                @if let Some(node) = cycle.node { " " (node) }
                " " span.dim { (cycle.feasible_count()) "/" (cycle.nodes.order.len()) " pass" }
                @if let Some(chosen) = &cycle.preemption {
                    " " span.warn { "preempts " (count(chosen.victims.len(), "pod")) " on " (chosen.node) }
                }
                span.said { (brief(&cycle.message)) }
            }
            @if !cycle.message.is_empty() { p { (cycle.message) } }
            (uncertain(cycle))
            @if in_detail && cycle.is_whole() {
                (verdicts(cycle))
                (scores(cycle))
                (victims(cycle))
            }
        }
    }
}

/// What opaque plugins could have changed.
fn uncertain(cycle: &CycleRecord) -> Markup {
    let certainty = cycle.certainty();
    let uncertain = certainty.as_deref().filter(|certainty| !certainty.is_certain());
    html! {
        @if let Some(certainty) = uncertain {
            p.warn { "Uncertain. The decision stands" }
            ul { @for condition in certainty.conditions() { li { (condition) } } }
        }
    }
}

/// What the filter plugins said: a row for the nodes of which all said the same.
fn verdicts(cycle: &CycleRecord) -> Markup {
    let plugins = &cycle.filter.plugins;
    let all: Vec<usize> = (0..plugins.len()).collect();
    let groups = groups_of(cycle, &all);
    let of = |at: usize| groups.iter().filter_map(move |group| verdict(cycle, at, group));
    let is_shown = |at: &usize| of(*at).any(|id| cycle.verdicts.get(id).is_some());
    let is_skipped = |at: &usize| of(*at).all(|id| id == VerdictId::SKIPPED);
    let shown: Vec<usize> = all.iter().copied().filter(is_shown).collect();
    let quiet = all.iter().copied().filter(|at| !shown.contains(at));
    let is_unknown = |at: &usize| of(*at).any(|id| id == VerdictId::UNKNOWN);
    let (unknown, quiet): (Vec<usize>, Vec<usize>) = quiet.partition(is_unknown);
    let (skipped, passed): (Vec<usize>, Vec<usize>) = quiet.into_iter().partition(is_skipped);
    let groups = if shown.is_empty() { Vec::new() } else { groups_of(cycle, &shown) };
    let rows = lines_shown(groups.len(), GROUPS);
    html! {
        @if !groups.is_empty() {
            h3 { "Filter" }
            div.scroll { table {
                thead { tr {
                    th { "nodes" } th { "" } @for at in &shown { th { (plugins[*at].plugin) } }
                } }
                @for group in groups.iter().take(rows) { (group_row(cycle, &shown, group)) }
            } }
            @if let more @ 1.. = groups.len() - rows {
                p.dim { "and " (count(more, "more row")) }
            }
        }
        (listed("pass on every node: ", cycle, &passed))
        (listed("skipped: ", cycle, &skipped))
        (listed("opaque, unknown: ", cycle, &unknown))
    }
}

fn listed(words: &str, cycle: &CycleRecord, plugins: &[usize]) -> Markup {
    let names = plugins.iter().filter_map(|at| cycle.filter.plugins.get(*at));
    let names: Vec<&str> = names.map(|column| column.plugin.as_str()).collect();
    html! { @if !names.is_empty() { p.dim { (words) (names.join(", ")) } } }
}

fn verdict(cycle: &CycleRecord, plugin: usize, group: &VerdictGroup) -> Option<VerdictId> {
    of_plugin(cycle, cycle.filter.plugins.get(plugin)?, *group.nodes.first()?)
}

fn group_row(cycle: &CycleRecord, shown: &[usize], group: &VerdictGroup) -> Markup {
    let first = group.nodes.first();
    let final_verdict = first.and_then(|node| cycle.filter.verdicts.get(*node));
    let by_extender = first.and_then(|node| cycle.filter.by_extender(*node));
    html! {
        tr {
            td { @if group.nodes.len() > 1 { b { (group.nodes.len()) } " " } (names(cycle, &group.nodes)) }
            @match (by_extender, final_verdict) {
                (Some(status), _) => td.bad title=(status.message()) { "✗ " (status.plugin()) },
                (None, Some(id)) => (verdict_cell(cycle, id, false)),
                (None, None) => td {},
            }
            @for at in shown {
                @match verdict(cycle, *at, group) {
                    Some(id) => (verdict_cell(cycle, id, true)),
                    None => td {},
                }
            }
        }
    }
}

/// A cell with a verdict; its words where they say more than the sign.
fn verdict_cell(cycle: &CycleRecord, id: VerdictId, with_words: bool) -> Markup {
    let status = cycle.verdicts.get(id);
    let (class, sign) = match status.map(kubestep_framework::status::Status::code) {
        Some(Code::UnschedulableAndUnresolvable) => ("never", "⊘"),
        Some(Code::Error) => ("bad", "!"),
        Some(_) => ("bad", "✗"),
        None if id == VerdictId::PASS => ("good", "✓"),
        None if id == VerdictId::SKIPPED => ("dim", "–"),
        None if id == VerdictId::UNKNOWN => ("warn", "?"),
        None => ("dim", "·"),
    };
    let words = explain(cycle, id);
    html! {
        td.(class) title=(words) {
            (sign) @if with_words && status.is_some() { " " (words) }
        }
    }
}

fn names(cycle: &CycleRecord, nodes: &[NodeId]) -> String {
    let first = nodes.iter().take(NAMED).map(|node| cycle.nodes.name(*node).to_string());
    let first: Vec<String> = first.collect();
    let more = if nodes.len() > NAMED { ", …" } else { "" };
    format!("{}{more}", first.join(", "))
}

/// The weighted scores of the best nodes, with a bar of their sum.
fn scores(cycle: &CycleRecord) -> Markup {
    let columns: Vec<_> = cycle.score.columns().collect();
    let mut ranking: Vec<(usize, i64)> = cycle.score.totals.iter().enumerate().collect();
    ranking.sort_by_key(|(at, total)| (std::cmp::Reverse(*total), *at));
    let rows = lines_shown(ranking.len(), RANKED);
    let best = ranking.first().map_or(1, |(_, total)| (*total).max(1));
    let name = |at: usize| cycle.feasible.get(at).map(|node| cycle.nodes.name(*node));
    html! {
        @if !ranking.is_empty() && !columns.is_empty() {
            h3 { "Scores, weighted" }
            div.scroll { table {
                thead { tr {
                    th { "node" } th { "total" }
                    @for column in &columns { th.num { (column.plugin) " ×" (column.weight) } }
                } }
                @for (at, total) in ranking.iter().copied().take(rows) {
                    @let node = name(at).unwrap_or_default();
                    tr.chosen[cycle.node == Some(node)] {
                        td.total { (node) @if cycle.node == Some(node) { " ★" } }
                        td.total {
                            span.bar { span style={ "width:" (total.max(0) * 100 / best) "%" } {} } (total)
                        }
                        @for column in &columns {
                            td.num {
                                @match column.weighted(at) {
                                    Some(score) => (score),
                                    None => "?",
                                }
                            }
                        }
                    }
                }
            } }
            @if let more @ 1.. = ranking.len() - rows {
                p.dim { "and " (count(more, "more node")) }
            }
        }
    }
}

/// The pods that preemption chose.
fn victims(cycle: &CycleRecord) -> Markup {
    html! {
        @if let Some(chosen) = &cycle.preemption {
            h3 { "Preemption" }
            p {
                "On " (chosen.node) ", " (count(cycle.candidates.len(), "candidate")) ": preempts "
                @for (at, pod) in chosen.victims.iter().enumerate() {
                    @if at > 0 { ", " } (pod)
                }
                @if chosen.pdb_violations > 0 {
                    ", with " (count(chosen.pdb_violations, "violation")) " of disruption budgets"
                }
            }
        }
    }
}
