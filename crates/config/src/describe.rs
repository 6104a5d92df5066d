//! A resolved configuration as text for people: tables of plugins, feature
//! gates and limits, wrapped to a width.

use std::fmt::Write;

use super::features::FeatureGates;
use super::points::{ExtensionPoint, PluginDescriptor};
use super::profile::{Origin, ResolvedPlugin, ResolvedProfile};
use super::resolve::ResolvedConfig;
use super::types::{Extender, KubeSchedulerProfile};
use super::yaml_value::YamlValue;

/// The whole configuration, wrapped at `width` columns where words allow.
pub fn config(config: &ResolvedConfig, width: usize) -> String {
    let mut text = String::new();
    let backoff = format!(
        "{}s, doubled up to {}s",
        config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds
    );
    let mut rows = vec![
        row("Backoff", [backoff]),
        row("Nodes searched", [percentage(config.percentage_of_nodes_to_score)]),
        row("Parallelism", [config.parallelism.to_string()]),
    ];
    let gates: Vec<String> =
        config.features.changed().map(|(feature, on)| format!("{feature}={on}")).collect();
    if !gates.is_empty() {
        rows.push(TableLine { label: "Feature gates".to_owned(), items: gates });
    }
    rows.extend(config.extenders.iter().map(extender));
    table(&mut text, &rows, width);
    for (resolved, written) in config.profiles.iter().zip(&config.document.profiles) {
        text.push('\n');
        text.push_str(&profile(resolved, width));
        arguments(&mut text, written, width);
    }
    text
}

/// The plugins of a profile at each point, in their order, with weights (`×3`). `+` marks those
/// that the point's own set enables, `!` those that it overrides, `?` opaque ones.
pub fn profile(profile: &ResolvedProfile, width: usize) -> String {
    let mut text = format!("Profile {}\n", profile.scheduler_name);
    let mut rows: Vec<TableLine> = Vec::new();
    if let Some(own) = profile.percentage_of_nodes_to_score {
        rows.push(row("Nodes searched", [percentage(own)]));
    }
    for point in ExtensionPoint::ALL {
        let mark = |entry: &ResolvedPlugin| {
            let mark = if profile.is_opaque(entry.name) { "?" } else { "" };
            format!("{mark}{}", plugin(entry, point))
        };
        let items = profile.at(point).iter().map(mark).collect();
        rows.push(TableLine { label: point.name().to_owned(), items });
    }
    table(&mut text, &rows, width);
    text
}

/// All plugins with their extension points and what they do.
pub fn plugins(registry: &[PluginDescriptor], width: usize) -> String {
    let rows: Vec<TableLine> = registry
        .iter()
        .map(|plugin| {
            let points: Vec<_> = plugin.points.iter().map(ExtensionPoint::name).collect();
            let text = format!("{} ({})", plugin.doc, points.join(", "));
            TableLine { label: plugin.name.to_owned(), items: words(&text) }
        })
        .collect();
    let mut text = String::new();
    table(&mut text, &rows, width);
    text
}

/// All feature gates: whether they are on, their stage and their effect.
pub fn features(gates: &FeatureGates, width: usize) -> String {
    let rows: Vec<TableLine> = gates
        .known()
        .map(|(feature, spec)| {
            let state = if gates.enabled(feature) { "on" } else { "off" };
            let stage = spec.stage.name();
            let locked = if spec.locked { ", locked" } else { "" };
            let changed = match gates.enabled(feature) == spec.default {
                true => "",
                false => ", not the default",
            };
            let text = format!("{state} ({stage}{locked}{changed}): {}", feature.effect());
            TableLine { label: feature.name().to_owned(), items: words(&text) }
        })
        .collect();
    let mut text = String::new();
    table(&mut text, &rows, width);
    text
}

/// A line of a table: a label and items, which are not wrapped internally.
pub(super) struct TableLine {
    pub(super) label: String,
    pub(super) items: Vec<String>,
}

pub(super) fn row(label: &str, items: impl IntoIterator<Item = String>) -> TableLine {
    TableLine { label: label.to_owned(), items: items.into_iter().collect() }
}

pub(super) fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

/// Labels in one column, items wrapped in a second; a row without items shows a dash.
pub(super) fn table(text: &mut String, rows: &[TableLine], width: usize) {
    let label_width = rows.iter().map(|row| row.label.chars().count()).max().unwrap_or(0);
    let room = width.saturating_sub(label_width + 4);
    for row in rows {
        let mut label = row.label.as_str();
        for line in wrapped(&row.items, room) {
            // Writing to a string cannot fail.
            let _written = writeln!(text, "  {label:label_width$}  {line}");
            label = "";
        }
    }
}

pub(super) fn wrapped(items: &[String], room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for item in items {
        let last = lines.last().map_or(0, |line| line.chars().count());
        if last > 0 && last + 1 + item.chars().count() > room {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(item);
        }
    }
    if items.is_empty() {
        lines = vec!["–".to_owned()];
    }
    lines
}

fn plugin(plugin: &ResolvedPlugin, point: ExtensionPoint) -> String {
    let mark = match plugin.origin {
        Origin::MultiPoint => "",
        Origin::Specific => "+",
        Origin::Override => "!",
    };
    match point.has_weights() {
        true => format!("{mark}{}×{}", plugin.name, plugin.weight),
        false => format!("{mark}{}", plugin.name),
    }
}

pub(super) fn percentage(percentage: i32) -> String {
    match percentage {
        0 => "adaptive (50% minus 1% per 125 nodes, at least 5%, at least 100 nodes)".to_owned(),
        100 => "all".to_owned(),
        some => format!("{some}%, at least 100 nodes"),
    }
}

fn extender(extender: &Extender) -> TableLine {
    let mut items = vec![extender.url_prefix.clone()];
    items.extend(extender.verbs().map(str::to_owned));
    items.push(format!("within {}", extender.http_timeout));
    if extender.ignorable {
        items.push("(ignorable)".to_owned());
    }
    TableLine { label: "Extender".to_owned(), items }
}

/// The arguments of every plugin that has arguments, as a document would contain them.
fn arguments(text: &mut String, profile: &KubeSchedulerProfile, width: usize) {
    let mut rows = Vec::new();
    for config in &profile.plugin_config {
        let Some(encoded @ YamlValue::Map(_)) = config.args.as_ref().map(|args| args.encode())
        else {
            continue;
        };
        let items = arguments_in(encoded)
            .flat_map(|(name, value)| words(&format!("{name}={}", compact(&value))))
            .collect();
        rows.push(TableLine { label: config.name.to_string(), items });
    }
    if !rows.is_empty() {
        text.push_str("Arguments\n");
        table(text, &rows, width);
    }
}

/// The arguments in their document, without its version and kind.
pub(super) fn arguments_in(args: YamlValue) -> impl Iterator<Item = (String, YamlValue)> {
    let fields = if let YamlValue::Map(fields) = args { fields } else { Default::default() };
    fields.into_iter().filter(|(name, _)| name != "apiVersion" && name != "kind")
}

/// A value as YAML on one line.
pub(super) fn compact(value: &YamlValue) -> String {
    match value {
        YamlValue::Null => "null".to_owned(),
        YamlValue::Bool(value) => value.to_string(),
        YamlValue::Int(value) => value.to_string(),
        YamlValue::Float(value) => value.to_string(),
        YamlValue::Text(text) => text.clone(),
        YamlValue::List(list) => {
            let entries: Vec<_> = list.iter().map(compact).collect();
            format!("[{}]", entries.join(", "))
        }
        YamlValue::Map(fields) => {
            let field = |(name, value): &(String, YamlValue)| format!("{name}: {}", compact(value));
            let entries: Vec<_> = fields.iter().map(field).collect();
            format!("{{{}}}", entries.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::Feature;

    #[test]
    fn plugins_and_gates_are_listed() {
        let plugin =
            |name, point, doc| PluginDescriptor { doc, ..PluginDescriptor::new(name, &[point]) };
        let (sort, filter) = (ExtensionPoint::QueueSort, ExtensionPoint::Filter);
        let registry = [
            plugin("PrioritySort", sort, "orders the active queue by priority, then by time"),
            plugin("NodeUnschedulable", filter, "keeps pods off cordoned nodes"),
        ];
        let text = plugins(&registry, 60);
        assert_eq!(
            text,
            "  PrioritySort       orders the active queue by priority,
                     then by time (QueueSort)
  NodeUnschedulable  keeps pods off cordoned nodes (Filter)
"
        );
        let gates = FeatureGates::default().with(Feature::GangScheduling, true);
        let text = features(&gates, 200);
        let line = |name: &str| {
            let found = text.lines().find(|line| line.trim_start().starts_with(name));
            found.and_then(|line| line.split_once("  o")).map(|(_, rest)| format!("o{rest}"))
        };
        assert_eq!(
            line("GangScheduling").as_deref(),
            Some(
                "on (ALPHA, not the default): A pod group is scheduled only if enough of its pods fit."
            )
        );
        assert_eq!(
            line("SidecarContainers").as_deref(),
            Some("on (GA, locked): Restartable init containers count as long as the pod runs.")
        );
    }
}
