//! The versions, and what differs between two of them, as text for people.

use std::fmt::Write;

use super::between::{Between, InProfile, PluginDifference};
use super::{Evidence, GateChange, KubeVersion, Switch};
use crate::describe::{TableLine, table, words};
use crate::features::GateSpec;
use kubestep_api::words::count;

/// The versions that are served, one a line, wrapped at `width` columns.
pub fn list_text(width: usize) -> String {
    let rows: Vec<TableLine> = KubeVersion::all()
        .map(|version| {
            let default = if version == KubeVersion::default() { "the default, " } else { "" };
            let text = format!("{default}{}{}", proof(version), changed(version));
            TableLine { label: version.to_string(), items: words(&text) }
        })
        .collect();
    let mut text = String::new();
    table(&mut text, &rows, width);
    text
}

fn proof(version: KubeVersion) -> String {
    match version.proved_by() {
        Some(release) => format!("compared with recorded decisions of kube-scheduler {release}"),
        None => "as far as it is public; no recorded decision proves it".to_owned(),
    }
}

/// `; 12 changes since 1.35: 7 recorded, 5 read`.
fn changed(version: KubeVersion) -> String {
    let Some(before) = version.before() else { return String::new() };
    let of = |evidence| {
        let since = Switch::all().filter(move |switch| switch.since() == version);
        since.filter(move |switch| switch.evidence() == evidence).count()
    };
    let counts = Evidence::ALL.map(|evidence| (of(evidence), evidence.name()));
    let total: usize = counts.iter().map(|(number, _)| number).sum();
    let counted = counts.iter().filter(|(number, _)| *number > 0);
    let counted: Vec<String> = counted.map(|(number, name)| format!("{number} {name}")).collect();
    format!("; {} since {before}: {}", count(total, "change"), counted.join(", "))
}

/// What differs between two versions, wrapped at `width` columns.
pub fn between_text(between: &Between, width: usize) -> String {
    let Between { from, to, switches, gates, plugins } = between;
    let (had, has) = (from.gates(), to.gates());
    let mut text = format!(
        "{} → {}: {} without a gate, {}, {}\n",
        from.name(),
        to.name(),
        count(switches.len(), "change"),
        count(gates.len(), "feature gate"),
        count(plugins.len(), "default plugin"),
    );
    for version in KubeVersion::all() {
        let since = || switches.iter().filter(move |switch| switch.since() == version);
        let (gained, lost) =
            (format!("New in {version}"), format!("New in {version}, not in {}", to.name()));
        section(&mut text, &gained, since().filter(|one| has.has(**one)).map(switch_row), width);
        section(&mut text, &lost, since().filter(|one| had.has(**one)).map(switch_row), width);
    }
    let (defaults, others): (Vec<_>, Vec<_>) = gates.iter().partition(|one| one.changes_default());
    let (on_off, stages) = ("Feature gates: defaults", "Feature gates: stages and locks");
    section(&mut text, on_off, defaults.into_iter().map(gate_row), width);
    section(&mut text, stages, others.into_iter().map(gate_row), width);
    section(&mut text, "Default plugins", plugins.iter().map(plugin_row), width);
    for evidence in Evidence::ALL.into_iter().filter(|one| *one != Evidence::Recorded) {
        if switches.iter().any(|switch| switch.evidence() == evidence) {
            // Writing to a string cannot fail.
            let _written = write!(text, "\n[{}] {}", evidence.name(), evidence.meaning());
        }
    }
    text.trim_end().to_owned() + "\n"
}

fn section(text: &mut String, title: &str, rows: impl Iterator<Item = TableLine>, width: usize) {
    let rows: Vec<TableLine> = rows.collect();
    if !rows.is_empty() {
        text.push_str(&format!("\n{title}\n"));
        table(text, &rows, width);
    }
}

fn switch_row(switch: &Switch) -> TableLine {
    let mut text = format!("{}: {}", switch.part(), switch.sentence());
    let requests: Vec<String> =
        switch.pull_requests().iter().map(|number| format!("#{number}")).collect();
    if !requests.is_empty() {
        text.push_str(&format!(" ({})", requests.join(", ")));
    }
    if !switch.patches().is_empty() {
        text.push_str(&format!(" {}.", since_patches(*switch)));
    }
    if switch.evidence() != Evidence::Recorded {
        text.push_str(&format!(" [{}]", switch.evidence().name()));
    }
    TableLine { label: switch.name().to_owned(), items: words(&text) }
}

/// The first patch releases that have a change: `Since 1.32.10, 1.33.6`.
pub fn since_patches(switch: Switch) -> String {
    format!("Since {}", switch.patches().join(", "))
}

fn gate_row(change: &GateChange) -> TableLine {
    let (from, to) = (spec_text(change.from), spec_text(change.to));
    let text = format!("{from} → {to}: {}", change.gate.effect());
    TableLine { label: change.gate.to_string(), items: words(&text) }
}

/// A gate in a version: `on (BETA)`; `absent` where it does not exist.
pub fn spec_text(spec: Option<GateSpec>) -> String {
    let Some(spec) = spec else { return "absent".to_owned() };
    let state = if spec.default { "on" } else { "off" };
    let locked = if spec.locked { ", locked" } else { "" };
    format!("{state} ({}{locked})", spec.stage.name())
}

fn plugin_row(change: &PluginDifference) -> TableLine {
    let text = match (&change.from, &change.to) {
        (None, Some(to)) => format!("new: {}", in_profile(to)),
        (Some(from), None) => format!("removed; it was at {}", in_profile(from)),
        (Some(from), Some(to)) => format!("{} → {}", in_profile(from), in_profile(to)),
        (None, None) => String::new(),
    };
    TableLine { label: change.plugin.to_owned(), items: words(&text) }
}

fn in_profile(plugin: &InProfile) -> String {
    let points: Vec<&str> = plugin.points.iter().map(|point| point.name()).collect();
    match plugin.weight {
        Some(weight) => format!("{}, weight {weight}", points.join(", ")),
        None => points.join(", "),
    }
}
