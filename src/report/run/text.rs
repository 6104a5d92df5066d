//! A run as text for people.

use std::fmt::Write;

use unicode_width::UnicodeWidthStr;

use super::RunReport;
use crate::report::disruption;
use crate::report::lines_shown;
use crate::report::new_nodes;
use crate::report::outcome::{Pending, conditions};
use crate::report::pending::PendingGroup;
use crate::report::usage::Usage;
use kubestep_api::words::count;
use kubestep_debug::capacity::Capacity;
use kubestep_framework::record::QueueName;
use kubestep_framework::record::certainty::Certainty;
use kubestep_framework::resource::amount;

/// Equal pending pods that are named; the others are counted.
const PODS_NAMED: usize = 3;
/// Nodes named where a workload would fit, before it says how many more there are.
const NODES_NAMED: usize = 8;

/// Which pods were placed where, who had to go for them, which stayed pending and why; how full
/// the nodes are; how many more would fit.
pub fn run(report: &RunReport) -> String {
    let mut text = pods(report);
    if let Some(report) = &report.disruption {
        text.push('\n');
        text.push_str(&disruption::text(report));
    }
    if !report.after.nodes.is_empty() {
        text.push('\n');
        text.push_str(&usage(&report.before, &report.after));
    }
    for entry in &report.capacity {
        text.push('\n');
        text.push_str(&capacity(entry));
    }
    if let Some(supply) = &report.new_nodes {
        text.push('\n');
        text.push_str(&new_nodes::supply(supply));
    }
    text
}

fn pods(report: &RunReport) -> String {
    let mut text = String::new();
    let names = report.placed.iter().map(|entry| entry.pod.to_string());
    let longest = names.map(|pod| pod.width()).max().unwrap_or(0);
    // Writing into a String cannot fail.
    for entry in &report.placed {
        let pod = entry.pod.to_string();
        let blank = " ".repeat(longest.saturating_sub(pod.width()));
        let _ = write!(text, "{pod}{blank}  on {}", entry.node);
        let attempt = (entry.attempt > 1).then(|| format!("attempt {}", entry.attempt));
        let tie = entry.tie_break.map(|how| format!("tie broken by {how}"));
        let notes: Vec<String> = attempt.into_iter().chain(tie).collect();
        let _ = match notes.as_slice() {
            [] => writeln!(text),
            notes => writeln!(text, " ({})", notes.join(", ")),
        };
        text.push_str(&uncertain(entry.certainty.as_deref()));
    }
    for entry in &report.evicted {
        let _ = writeln!(text, "{}  evicted from {} for {}", entry.pod, entry.node, entry.by);
    }
    report.groups.iter().for_each(|group| text.push_str(&pending(report, group)));
    let _ = write!(text, "{} placed, ", report.placed.len());
    if !report.evicted.is_empty() {
        let _ = write!(text, "{} evicted, ", report.evicted.len());
    }
    let cycles = count(report.cycles, "scheduling cycle");
    let version = report.gates.other_version().map(|version| format!(", kube-scheduler {version}"));
    let version = version.unwrap_or_default();
    let _ = writeln!(text, "{} pending, {cycles}{version}", report.pending.len());
    if let Some(number) = report.uncertain {
        let decisions = count(report.cycles, "decision");
        let _ = writeln!(text, "{number} of {decisions} uncertain because of opaque plugins");
    }
    text.push_str(&hint(report));
    text
}

/// Equal pending pods: the first few names, where they are, the cause, and the scheduler's message.
fn pending(report: &RunReport, group: &PendingGroup) -> String {
    let entries: Vec<&Pending> =
        group.pods.iter().filter_map(|at| report.pending.get(*at)).collect();
    let Some(first) = entries.first() else { return String::new() };
    let shown = lines_shown(entries.len(), PODS_NAMED);
    let names: Vec<String> =
        entries.iter().take(shown).map(|entry| entry.pod.to_string()).collect();
    let more = match entries.len() - shown {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let place = match first.place {
        QueueName::None => "in no queue",
        place => place.as_str(),
    };
    let mut text = format!("{}{more}  pending, {place}\n", names.join(", "));
    text.extend(group.reasons(first).iter().map(|reason| format!("    {reason}\n")));
    text + &uncertain(first.certainty.as_deref())
}

/// Where fixes are found, if causes of pending pods were.
fn hint(report: &RunReport) -> String {
    let explained = report.groups.iter().filter(|group| group.cause.is_some()).count();
    if explained == 0 {
        return String::new();
    }
    let pods = report.groups.iter().filter(|group| group.cause.is_none());
    let rest = match pods.map(|group| group.pods.len()).sum::<usize>() {
        0 => String::new(),
        rest => format!("{} not explained. ", count(rest, "pending pod")),
    };
    format!(
        "{rest}\"kubestep explain POD --fix\" with the same input searches for changes that help.\n"
    )
}

/// The conditions under which an uncertain decision stands, as an indented line.
fn uncertain(certainty: Option<&Certainty>) -> String {
    conditions(certainty).map(|text| format!("    uncertain: holds {text}\n")).unwrap_or_default()
}

/// A table of what the nodes offer in all, and what is requested of it.
fn usage(before: &Usage, after: &Usage) -> String {
    let mut rows = vec![["requested of", "offered", "before", "", "after", ""].map(str::to_owned)];
    for resource in after.resources(before) {
        let show = |amount| amount::of(&resource, amount);
        let (offered, requested) = after.total(resource);
        let (offered_before, requested_before) = before.total(resource);
        rows.push([
            resource.to_string(),
            show(offered),
            show(requested_before),
            share(requested_before, offered_before),
            show(requested),
            share(requested, offered),
        ]);
    }
    rows[0][0] = count(after.nodes.len(), "node");
    table(&rows)
}

fn share(part: i64, of: i64) -> String {
    if of <= 0 { String::new() } else { format!("{}%", (part as f64 / of as f64 * 100.0).round()) }
}

/// The first column to the left, the others to the right.
fn table(rows: &[[String; 6]]) -> String {
    let widths: Vec<usize> =
        (0..6).map(|at| rows.iter().map(|row| row[at].width()).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = format!("{:<width$}", row[0], width = widths[0]);
        for at in 1..6 {
            // A share stands close to its amount.
            let gap = if at == 3 || at == 5 { " " } else { "   " };
            let _ = write!(line, "{gap}{:>width$}", row[at], width = widths[at]);
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

fn capacity(entry: &Capacity) -> String {
    let more = match entry.stopped {
        Some(_) => format!("{} more would fit", entry.fit),
        None => format!("at least {} more would fit", entry.fit),
    };
    let mut text = format!("{}: {more}\n", entry.workload);
    let mut nodes: Vec<String> = entry
        .nodes
        .iter()
        .take(NODES_NAMED)
        .map(|(node, pods)| format!("{pods} on {node}"))
        .collect();
    if entry.nodes.len() > NODES_NAMED {
        nodes.push(format!("the rest on {} other nodes", entry.nodes.len() - NODES_NAMED));
    }
    if !nodes.is_empty() {
        let _ = writeln!(text, "    {}", nodes.join(", "));
    }
    if let Some(stop) = &entry.stopped {
        let _ = writeln!(text, "    the next one: {}", stop.message);
    }
    text
}
