//! The report on an upgrade as text: the answer, what is rejected, then each cause with its pods.

use std::fmt::Write;

use indexmap::IndexMap;

use super::UpgradeReport;
use crate::report::lines_shown;
use kubestep_api::words::count;
use kubestep_config::FeatureGates;
use kubestep_config::versions::{Switch, VersionChange};
use kubestep_debug::diff::{self, Difference, Pair};
use kubestep_debug::upgrade::{Aspect, CausingChanges, OutcomeDifference, PodEffect, Upgrade};

/// Pods that are listed for each effect and cause.
const PODS: usize = 10;
/// Changes of one cause that are described; of more, only the names are listed.
const CHANGES: usize = 8;

/// The whole report. `gates` are those of both sides.
pub fn text(report: &UpgradeReport, gates: Pair<FeatureGates>) -> String {
    let mut out = format!("kube-scheduler {} → {}: ", report.releases.a, report.releases.b);
    // Writing into a String cannot fail.
    match &report.upgrade {
        Some(upgrade) => {
            out.push_str(&summary(upgrade));
            out.extend(report.ended().into_iter().map(|line| line + "\n"));
        }
        None => {
            let _ = writeln!(out, "{} does not start with this configuration", report.releases.b);
        }
    }
    if !report.rejected.is_empty() {
        let _ = writeln!(out, "\nRejected by {}", report.releases.b);
        for rejected in &report.rejected {
            let (kind, subject) = (rejected.kind.describe(), &rejected.subject);
            let _ = writeln!(out, "  {kind} {subject}: {}", rejected.reason);
        }
    }
    out.extend(report.upgrade.iter().map(|upgrade| causes(upgrade, gates)));
    out.push_str(&not_compared(report));
    out
}

/// Between two branches of a session: the answer, each cause with its pods, and the pods of
/// `difference` that the version has nothing to do with.
pub fn between_branches(
    upgrade: &Upgrade,
    gates: Pair<FeatureGates>,
    difference: &Difference,
) -> VersionCauses {
    let (a, b) = (gates.a.version_words(), gates.b.version_words());
    let summary = format!("kube-scheduler {a} → {b}: {}", summary(upgrade));
    let mut text = causes(upgrade, gates);
    let ends = |pod: &&OutcomeDifference| pod.aspect == Aspect::End;
    let by_version = |name| upgrade.pods.iter().filter(ends).any(|pod| pod.pod == name);
    let others = difference.pods.iter().filter(|pod| pod.change != diff::PodChange::Reasons);
    let others = others.map(|pod| pod.pod).filter(|pod| !by_version(*pod));
    let others: Vec<String> = others.map(|pod| pod.to_string()).collect();
    if !others.is_empty() {
        let _ = writeln!(text, "\nNot because of the version: {}", others.join(", "));
    }
    VersionCauses { summary, text, explains_all: others.is_empty() }
}

/// What a version changes between two branches, as text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VersionCauses {
    /// The answer in a line.
    pub summary: String,
    /// Each cause with its pods.
    pub text: String,
    /// Whether nothing else makes pods end in another state, so that the line is the whole answer.
    pub explains_all: bool,
}

/// Each cause with its pods.
fn causes(upgrade: &Upgrade, gates: Pair<FeatureGates>) -> String {
    let causes = upgrade.by_cause().into_iter();
    causes.map(|(cause, pods)| format!("\n{}", group(cause, &pods, gates))).collect()
}

/// `2 pods move, 1 becomes pending; 34 are the same`.
fn summary(upgrade: &Upgrade) -> String {
    let counted = PodEffect::ALL.map(|effect| (upgrade.count(effect), effect));
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

fn verb(effect: PodEffect, one: bool) -> &'static str {
    match (effect, one) {
        (PodEffect::Schedulable, true) => "becomes schedulable",
        (PodEffect::Schedulable, false) => "become schedulable",
        (PodEffect::Pending, true) => "becomes pending",
        (PodEffect::Pending, false) => "become pending",
        (PodEffect::Moved, true) => "moves",
        (PodEffect::Moved, false) => "move",
        (PodEffect::Presence, true) => "is evicted on one side only",
        (PodEffect::Presence, false) => "are evicted on one side only",
        (PodEffect::Waits, true) => "is pending in another state",
        (PodEffect::Waits, false) => "are pending in another state",
        (PodEffect::Message, true) => "gets another message",
        (PodEffect::Message, false) => "get another message",
        (PodEffect::Attempts, true) => "ends the same after other attempts",
        (PodEffect::Attempts, false) => "end the same after other attempts",
    }
}

/// A cause and its pods.
fn group(cause: &CausingChanges, pods: &[&OutcomeDifference], gates: Pair<FeatureGates>) -> String {
    let mut out = match cause.changes.as_slice() {
        [] => "For a cause that was not found\n".to_owned(),
        [change] => {
            format!("Because of {}\n  {}\n", titled(*change, gates), change.sentence())
        }
        changes => format!("Because of {} together\n", count(changes.len(), "change")),
    };
    match cause.changes.len() {
        0 | 1 => {}
        2..=CHANGES => {
            for change in &cause.changes {
                let _ = writeln!(out, "  {}: {}", titled(*change, gates), change.sentence());
            }
        }
        _ => {
            let _ = writeln!(out, "  {}", describe_cause(cause));
        }
    }
    if !cause.smallest {
        out.push_str("  (not proven to be the smallest set: fewer changes may be enough)\n");
    }
    // Pods with the same effect and the same messages are one entry.
    let mut entries: IndexMap<(PodEffect, String), Vec<&OutcomeDifference>> = IndexMap::new();
    for pod in pods {
        let shared = match pod.effect {
            PodEffect::Message => describe_messages(pod),
            _ => String::new(),
        };
        entries.entry((pod.effect, shared)).or_default().push(pod);
    }
    for ((effect, shared), pods) in &entries {
        out.push_str(&entry(*effect, shared, pods));
    }
    out
}

fn entry(effect: PodEffect, shared: &str, pods: &[&OutcomeDifference]) -> String {
    let number = pods.len();
    let mut out = format!("  {} {}\n", count(number, "pod"), verb(effect, number == 1));
    // Pods that share their messages are on one line.
    let shown = if shared.is_empty() { lines_shown(number, PODS) } else { number.min(PODS) };
    if shared.is_empty() {
        for pod in pods.iter().take(shown) {
            let _ = writeln!(out, "    {}", describe_pod(pod));
        }
    } else {
        let names: Vec<String> = pods.iter().take(shown).map(|one| one.pod.to_string()).collect();
        let _ = writeln!(out, "    {}", names.join(", "));
    }
    if number > shown {
        let _ = writeln!(out, "    and {} more (-o json lists all)", number - shown);
    }
    if !shared.is_empty() {
        let _ = writeln!(out, "{shared}");
    }
    out
}

/// `default/web-0: on a → on b`.
pub fn describe_pod(pod: &OutcomeDifference) -> String {
    let OutcomeDifference { pod: name, end, attempts, .. } = pod;
    match pod.effect {
        PodEffect::Message => format!("{name}: {:?} → {:?}", pod.message.a, pod.message.b),
        PodEffect::Attempts if attempts.differs() => {
            format!("{name}: {} → {}", count(attempts.a, "attempt"), count(attempts.b, "attempt"))
        }
        PodEffect::Attempts => format!("{name}: {}", end.b),
        _ => format!("{name}: {} → {}", end.a, end.b),
    }
}

fn describe_messages(pod: &OutcomeDifference) -> String {
    let side = |text: &str| if text.is_empty() { "no message".to_owned() } else { text.to_owned() };
    format!("    before: {}\n    after: {}", side(&pod.message.a), side(&pod.message.b))
}

/// Names of the changes: `TaintMessageFixed and DynamicResourceAllocation`.
pub fn describe_cause(cause: &CausingChanges) -> String {
    let names: Vec<&str> = cause.changes.iter().map(|change| change.name()).collect();
    match names.split_last() {
        None => "a cause that was not found".to_owned(),
        Some((last, [])) => (*last).to_owned(),
        Some((last, names)) => format!("{} and {last}", names.join(", ")),
    }
}

/// The change with what it belongs to and since when.
fn titled(change: VersionChange, gates: Pair<FeatureGates>) -> String {
    match change {
        VersionChange::Switch(switch) => {
            let requests = switch.pull_requests().iter();
            let requests: String = requests.map(|number| format!(", #{number}")).collect();
            format!("{switch} ({}, {}{requests})", switch.part(), switch.since())
        }
        VersionChange::Gate(gate) => {
            let state = |gates: FeatureGates| if gates.enabled(gate) { "on" } else { "off" };
            format!("{gate} (feature gate, {} → {})", state(gates.a), state(gates.b))
        }
    }
}

/// What kubestep cannot show.
fn not_compared(report: &UpgradeReport) -> String {
    if report.listed.is_empty() {
        return String::new();
    }
    let mut out = "\nNot compared: kubestep decides the same on both sides\n".to_owned();
    for switch in &report.listed {
        let drawn = report.upgrade.as_ref().filter(|_| *switch == Switch::FirstOfEqualTotals);
        let concerned = drawn.map(|upgrade| match upgrade.drawn {
            0 => " No pod had such nodes.".to_owned(),
            1 => " 1 pod had such nodes.".to_owned(),
            number => format!(" {number} pods had such nodes."),
        });
        let (part, since, about) = (switch.part(), switch.since(), switch.sentence());
        let concerned = concerned.unwrap_or_default();
        let _ = writeln!(out, "  {switch} ({part}, {since}): {about}{concerned}");
    }
    out
}
