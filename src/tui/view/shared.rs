//! What several views show in the same way: names, outcomes, queues, times.

use std::sync::Arc;

use super::verdict;
use crate::tui::lines::DetailLine;
use crate::tui::model::{Model, span};
use crate::tui::text::{Truncation, fit, width};
use crate::tui::theme::Scope;
use kubestep_api::{Labels, Name};
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::{CycleRecord, GroupRecord};

/// Most columns that the names of nodes keep where there is no room for all of them.
pub const NAMES: u16 = 18;
/// Most columns of a pod's name in a title, so that what follows it fits.
const POD_IN_TITLE: usize = 32;

/// A pod's name for a title: a long one without its middle.
pub fn pod_in_title(pod: NamespacedName) -> String {
    fit(&pod.to_string(), POD_IN_TITLE, Truncation::Middle).into_owned()
}

/// A number that stands for a pod while the interface runs.
pub fn key_of(pod: NamespacedName) -> u64 {
    key_of_text(&pod.namespace).rotate_left(17) ^ key_of_text(&pod.name.text())
}

/// A number that stands for a text while the interface runs (FNV-1a).
pub fn key_of_text(text: &str) -> u64 {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Labels as `key=value, …`.
pub fn labels_text(labels: &Labels) -> String {
    let all: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    if all.is_empty() { "none".into() } else { all.join(", ") }
}

/// Names that are measured for the width of a column: of more, longer ones are cut.
pub const MEASURED: usize = 2_000;

/// Columns of the longest of some pods' names.
pub fn widest(pods: impl Iterator<Item = NamespacedName>) -> usize {
    let pods = pods.take(MEASURED);
    pods.map(|pod| width(&pod.namespace) + 1 + width(&pod.name.text())).max().unwrap_or(0)
}

/// Rows whose texts are measured for the width of a column.
const MEASURED_TEXTS: usize = 500;

/// Columns of the widest of the texts of all rows, at least those of `least`; of very many rows, the
/// `usual` ones.
pub fn widest_text(least: &str, texts: impl ExactSizeIterator<Item = String>, usual: usize) -> u16 {
    let widest = match texts.len() {
        0..=MEASURED_TEXTS => texts.map(|text| width(&text)).max().unwrap_or(0),
        _ => usual,
    };
    u16::try_from(widest.max(width(least))).unwrap_or(u16::MAX)
}

/// The labels of the node called `name`.
pub fn labels_of(model: &Model, name: Name) -> Option<&Labels> {
    Some(&model.nodes.named(name)?.node.as_ref()?.metadata.labels)
}

/// Time since the session's start.
pub fn since_start(model: &Model, time: kubestep_api::Time) -> String {
    format!("+{}", span(time.0 - model.start.0))
}

/// What opaque plugins could have changed about the decision.
pub fn uncertainty(cycle: &CycleRecord) -> Vec<String> {
    let certainty = cycle.certainty();
    let certainty = certainty.iter().filter(|certainty| !certainty.is_certain());
    certainty.flat_map(|certainty| certainty.conditions()).collect()
}

fn uncertain_lines(cycle: &CycleRecord) -> impl Iterator<Item = DetailLine> {
    let lines = uncertainty(cycle).into_iter();
    lines.map(|line| {
        DetailLine::field("uncertain", format!("holds {line}")).scoped(Scope::VerdictPending)
    })
}

/// How a cycle ended, with the pod's whole message.
pub fn outcome_lines(cycle: &Arc<CycleRecord>) -> Vec<DetailLine> {
    let scope = verdict::of_outcome(cycle.outcome).scope();
    let mut lines = vec![DetailLine::field("outcome", cycle.outcome.as_str()).scoped(scope)];
    if !cycle.message.is_empty() {
        lines.push(DetailLine::field("message", &cycle.message));
    }
    lines.extend(uncertain_lines(cycle));
    lines.extend(cycle.group.as_ref().map(group_line));
    let named = [
        ("node", cycle.node),
        ("nominated", cycle.nominated_node),
        ("tried first", cycle.nominated_first),
    ];
    lines.extend(named.iter().filter_map(|(l, n)| n.map(|n| DetailLine::field(l, n))));
    if let Some(status) = &cycle.permit_wait {
        let ended = if status.is_success() { "allowed".to_owned() } else { status.message() };
        lines.push(DetailLine::field("permit wait", ended));
    }
    lines.push(DetailLine::field("attempt", cycle.attempt));
    lines.push(DetailLine::field("profile", cycle.profile));
    let evaluated = format!(
        "{} of {} nodes, starting at node {}",
        cycle.evaluated_nodes,
        cycle.nodes.order.len(),
        cycle.start_index
    );
    lines.push(DetailLine::field("evaluated", evaluated));
    lines
}

/// The pod group of a cycle and how far it was from its quorum.
fn group_line(group: &GroupRecord) -> DetailLine {
    let GroupRecord { group, pods, scheduled_before, placed, min_count } = group;
    let found = scheduled_before + placed;
    let text = match min_count {
        None => format!("{group}, without a quorum: {found} of {pods} pods have a node"),
        Some(needed) => format!(
            "{group}, quorum {needed}: {found} of {pods} pods had found a node ({placed} in this attempt)"
        ),
    };
    let short = min_count.is_some_and(|needed| found < needed);
    DetailLine::field("group", text).scoped(if short { Scope::VerdictFail } else { Scope::Text })
}

/// How a tie was broken, where not as upstream does.
pub fn tie_break_text(cycle: &CycleRecord) -> String {
    cycle.other_tie_break().map(|how| format!(" (broken by {how})")).unwrap_or_default()
}
