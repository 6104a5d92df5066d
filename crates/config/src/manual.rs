//! The manual of the plugins, as text and as JSON.
//!
//! Its only source are the descriptors of the plugins; the defaults of arguments come from decoding
//! empty arguments. The command line and the help in the interface show this text.

use serde_json::{Value, json};

use super::describe::{TableLine, compact, row, table, words, wrapped};
use super::features::FeatureGates;
use super::points::{ArgumentDoc, DefaultProfile, PluginDescriptor};
use super::yaml_value::YamlValue;

/// What the plugin does, its points, weight and arguments, and an example; wrapped at `width`
/// columns where words allow.
pub fn text(plugin: &PluginDescriptor, gates: &FeatureGates, width: usize) -> String {
    let mut text = format!("{}: {}\n\n", plugin.name, plugin.doc);
    paragraph(&mut text, plugin.long_doc, width);
    if !plugin.example.is_empty() {
        text.push('\n');
        paragraph(&mut text, &format!("For example: {}", plugin.example), width);
    }
    text.push('\n');
    let points = plugin.points.iter().map(|point| point.name().to_owned());
    let mut rows = vec![row("Runs at", points)];
    rows.extend(plugin.default_weight.map(|weight| row("Weight", [weight.to_string()])));
    rows.push(row("By default", words(&by_default(plugin, gates))));
    table(&mut text, &rows, width);
    if plugin.args.is_some() {
        text.push_str("\nArguments\n");
        let rows: Vec<TableLine> = arguments(plugin, gates).map(argument_row).collect();
        table(&mut text, &rows, width);
    }
    text
}

fn argument_row((argument, default): (&ArgumentDoc, Option<YamlValue>)) -> TableLine {
    let default = default.map_or_else(|| "nothing".to_owned(), |value| compact(&value));
    let about = format!("{}; default: {default}. {}", argument.takes, argument.doc);
    row(argument.name, words(&about))
}

fn paragraph(text: &mut String, words_of: &str, width: usize) {
    for line in wrapped(&words(words_of), width) {
        text.push_str(&line);
        text.push('\n');
    }
}

/// The manual of a plugin as JSON.
pub fn json(plugin: &PluginDescriptor, gates: &FeatureGates) -> Value {
    let points: Vec<&str> = plugin.points.iter().map(|point| point.name()).collect();
    let argument = |(argument, default): (&ArgumentDoc, Option<YamlValue>)| {
        json!({
            "name": argument.name,
            "takes": argument.takes,
            "about": argument.doc,
            "default": default.and_then(|value| serde_json::to_value(value).ok()),
        })
    };
    json!({
        "name": plugin.name,
        "about": plugin.doc,
        "explanation": plugin.long_doc,
        "example": plugin.example,
        "points": points,
        "defaultWeight": plugin.default_weight,
        "enabledByDefault": plugin.is_default(gates),
        "featureGate": plugin.gate().map(|gate| gate.name()),
        // A plugin of kube-scheduler is in its default profile, if only behind a gate, or it was
        // removed in some version.
        "partOfKubernetes":
            plugin.default_profile != DefaultProfile::Absent || !plugin.history.is_empty(),
        "registersEvents": plugin.registers_events,
        "signsPods": plugin.signs,
        "argsKind": plugin.args.map(|args| args.kind),
        "args": arguments(plugin, gates).map(argument).collect::<Vec<_>>(),
    })
}

fn by_default(plugin: &PluginDescriptor, gates: &FeatureGates) -> String {
    let state = if plugin.is_default(gates) { "enabled" } else { "not enabled" };
    match plugin.gate() {
        Some(gate) => format!("{state}: by the feature gate {gate}"),
        None => state.to_owned(),
    }
}

/// The arguments with their defaults; `None` where nothing is set.
fn arguments(
    plugin: &PluginDescriptor,
    gates: &FeatureGates,
) -> impl Iterator<Item = (&'static ArgumentDoc, Option<YamlValue>)> {
    let defaults = plugin.args.map(|args| args.default(gates).encode());
    let docs = plugin.args.map_or(&[][..], |args| args.docs);
    docs.iter().map(move |argument| {
        let default = defaults.as_ref().and_then(|fields| fields.get(argument.name));
        (argument, default.cloned())
    })
}
