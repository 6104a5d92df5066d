//! The report on an upgrade as text: the answer, what is refused, then each cause with its pods.

use std::fmt::Write;

use indexmap::IndexMap;

use super::UpgradeReport;
use kubestep_api::words::count;
use kubestep_config::FeatureGates;
use kubestep_config::versions::{Change, Switch};
use kubestep_debug::diff::Pair;
use kubestep_debug::upgrade::{Cause, Effect, PodDifference, Upgrade};

/// Pods that are listed for each effect and cause.
const PODS: usize = 10;

/// The whole report. `gates` are those of both sides.
pub fn text(report: &UpgradeReport, gates: Pair<FeatureGates>) -> String {
    let mut out = format!("kube-scheduler {} → {}: ", report.releases.a, report.releases.b);
    // Writing into a String cannot fail.
    match &report.upgrade {
        Some(upgrade) => out.push_str(&summary(upgrade)),
        None => {
            let _ = writeln!(out, "{} does not start with this configuration", report.releases.b);
        }
    }
    if !report.refused.is_empty() {
        let _ = writeln!(out, "\nRefused by {}", report.releases.b);
        for refused in &report.refused {
            let (kind, subject) = (refused.kind.words(), &refused.subject);
            let _ = writeln!(out, "  {kind} {subject}: {}", refused.reason);
        }
    }
    for (cause, pods) in report.upgrade.iter().flat_map(Upgrade::by_cause) {
        out.push('\n');
        out.push_str(&group(cause, &pods, gates));
    }
    out.push_str(&not_compared(&report.listed));
    out
}

/// `2 pods move, 1 becomes pending; 34 are the same`.
fn summary(upgrade: &Upgrade) -> String {
    let counted = Effect::ALL.map(|effect| (upgrade.count(effect), effect));
    let words: Vec<String> = counted
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, effect)| format!("{} {}", count(number, "pod"), verb(effect, number == 1)))
        .collect();
    let same = count(upgrade.same.len(), "pod");
    let is = if upgrade.same.len() == 1 { "ends" } else { "end" };
    let start = match words.is_empty() {
        true => "nothing changes for the pods".to_owned(),
        false => words.join(", "),
    };
    let reasons = match upgrade.other_reasons {
        0 => String::new(),
        others => format!(" ({others} with other verdicts or scores)"),
    };
    format!("{start}; {same} {is} the same{reasons}\n")
}

fn verb(effect: Effect, one: bool) -> &'static str {
    match (effect, one) {
        (Effect::Schedulable, true) => "becomes schedulable",
        (Effect::Schedulable, false) => "become schedulable",
        (Effect::Pending, true) => "becomes pending",
        (Effect::Pending, false) => "become pending",
        (Effect::Moved, true) => "moves",
        (Effect::Moved, false) => "move",
        (Effect::Presence, true) => "is evicted on one side only",
        (Effect::Presence, false) => "are evicted on one side only",
        (Effect::Waits, true) => "is pending in another state",
        (Effect::Waits, false) => "are pending in another state",
        (Effect::Message, true) => "gets another message",
        (Effect::Message, false) => "get another message",
        (Effect::Attempts, true) => "ends the same after other attempts",
        (Effect::Attempts, false) => "end the same after other attempts",
    }
}

/// A cause and its pods.
fn group(cause: &Cause, pods: &[&PodDifference], gates: Pair<FeatureGates>) -> String {
    let together = if cause.changes.len() > 1 { ", together" } else { "" };
    let mut out = match cause.changes.is_empty() {
        true => "For a cause that was not found\n".to_owned(),
        false => format!("Because of {}{together}\n", cause_words(cause)),
    };
    if !cause.smallest {
        out.push_str("  (the search ended at its limit: fewer changes may be enough)\n");
    }
    for change in &cause.changes {
        let _ = writeln!(out, "  {}", about(*change, gates));
    }
    // Pods with the same effect and the same messages are one entry.
    let mut entries: IndexMap<(Effect, String), Vec<&PodDifference>> = IndexMap::new();
    for pod in pods {
        let shared = match pod.effect {
            Effect::Message => message_words(pod),
            _ => String::new(),
        };
        entries.entry((pod.effect, shared)).or_default().push(pod);
    }
    for ((effect, shared), pods) in &entries {
        out.push_str(&entry(*effect, shared, pods));
    }
    out
}

fn entry(effect: Effect, shared: &str, pods: &[&PodDifference]) -> String {
    let number = pods.len();
    let mut out = format!("  {} {}\n", count(number, "pod"), verb(effect, number == 1));
    if shared.is_empty() {
        for pod in pods.iter().take(PODS) {
            let _ = writeln!(out, "    {}", pod_words(pod));
        }
    } else {
        let names: Vec<String> = pods.iter().take(PODS).map(|one| one.pod.to_string()).collect();
        let _ = writeln!(out, "    {}", names.join(", "));
    }
    if number > PODS {
        let _ = writeln!(out, "    and {} more (-o json lists all)", number - PODS);
    }
    if !shared.is_empty() {
        let _ = writeln!(out, "{shared}");
    }
    out
}

/// `default/web-0: on a → on b`.
pub fn pod_words(pod: &PodDifference) -> String {
    let PodDifference { pod: name, end, attempts, .. } = pod;
    match pod.effect {
        Effect::Message => format!("{name}: {:?} → {:?}", pod.message.a, pod.message.b),
        Effect::Attempts if attempts.differs() => {
            format!("{name}: {} → {}", count(attempts.a, "attempt"), count(attempts.b, "attempt"))
        }
        Effect::Attempts => format!("{name}: {}", end.b),
        _ => format!("{name}: {} → {}", end.a, end.b),
    }
}

fn message_words(pod: &PodDifference) -> String {
    let side = |text: &str| if text.is_empty() { "no message".to_owned() } else { text.to_owned() };
    format!("    before: {}\n    after:  {}", side(&pod.message.a), side(&pod.message.b))
}

/// `TaintMessageFixed and DynamicResourceAllocation`.
pub fn cause_words(cause: &Cause) -> String {
    let names: Vec<&str> = cause.changes.iter().map(|change| change.name()).collect();
    match names.split_last() {
        None => "a cause that was not found".to_owned(),
        Some((last, [])) => (*last).to_owned(),
        Some((last, names)) => format!("{} and {last}", names.join(", ")),
    }
}

/// The change in one line: what it belongs to, since when, and what it does.
fn about(change: Change, gates: Pair<FeatureGates>) -> String {
    match change {
        Change::Switch(switch) => {
            let requests: Vec<String> =
                switch.pull_requests().iter().map(|number| format!(", #{number}")).collect();
            let (name, part, since) = (switch.name(), switch.part(), switch.since());
            format!("{name} ({part}, {since}{}): {}", requests.concat(), switch.sentence())
        }
        Change::Gate(gate) => {
            let state = |gates: FeatureGates| if gates.enabled(gate) { "on" } else { "off" };
            let states = format!("{} → {}", state(gates.a), state(gates.b));
            format!("{gate} (feature gate, {states}): {}", gate.effect())
        }
    }
}

/// What kubestep cannot show.
fn not_compared(listed: &[Switch]) -> String {
    if listed.is_empty() {
        return String::new();
    }
    let mut out = "\nNot compared: kubestep decides alike on both sides\n".to_owned();
    for switch in listed {
        let (name, part, since) = (switch.name(), switch.part(), switch.since());
        let _ = writeln!(out, "  {name} ({part}, {since}): {}", switch.sentence());
    }
    out
}
