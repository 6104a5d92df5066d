//! The manual of the plugins, as text and as JSON.
//!
//! Its only source is the table of [`super::intree`]; the defaults of arguments come from decoding
//! empty arguments. The command line and the help in the interface show this text.

use serde_json::{Value, json};

use super::decode_args::default_args;
use super::describe::{Row, compact, row, table, words, wrapped};
use super::encode_args;
use super::features::FeatureGates;
use super::intree::MANUAL_PERMIT;
use super::node::Node;
use super::points::{ArgumentDoc, PluginDescriptor};

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
    if !plugin.args.is_empty() {
        text.push_str("\nArguments\n");
        let rows: Vec<Row> = arguments(plugin, gates).map(argument_row).collect();
        table(&mut text, &rows, width);
    }
    text
}

fn argument_row((argument, default): (&ArgumentDoc, Option<Node>)) -> Row {
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
    let argument = |(argument, default): (&ArgumentDoc, Option<Node>)| {
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
        "enabledByDefault": is_default(plugin, gates),
        "featureGate": plugin.gate.map(|gate| gate.name()),
        "partOfKubernetes": plugin.name != MANUAL_PERMIT,
        "registersEvents": plugin.registers_events,
        "signsPods": plugin.signs,
        "argsKind": plugin.args_kind,
        "args": arguments(plugin, gates).map(argument).collect::<Vec<_>>(),
    })
}

/// Whether the plugin is in the default profile under these gates.
fn is_default(plugin: &PluginDescriptor, gates: &FeatureGates) -> bool {
    super::intree::default_plugins(gates).iter().any(|other| other.name == plugin.name)
}

fn by_default(plugin: &PluginDescriptor, gates: &FeatureGates) -> String {
    let state = if is_default(plugin, gates) { "enabled" } else { "not enabled" };
    match plugin.gate {
        Some(gate) => format!("{state}: by the feature gate {gate}"),
        None => state.to_owned(),
    }
}

/// The arguments with their defaults; `None` without a default.
fn arguments<'a>(
    plugin: &'a PluginDescriptor,
    gates: &FeatureGates,
) -> impl Iterator<Item = (&'a ArgumentDoc, Option<Node>)> {
    let defaults = default_args(plugin.name.into(), gates);
    let defaults = defaults.map(|args| encode_args::args(plugin.name, &args));
    plugin.args.iter().map(move |argument| {
        let default = defaults.as_ref().and_then(|fields| fields.get(argument.name));
        (argument, default.cloned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intree::{PLUGINS, find};

    /// The described arguments are exactly those in the encoding of empty arguments.
    #[test]
    fn every_argument_is_described() {
        let gates = FeatureGates::parse("StorageCapacityScoring=true").unwrap();
        for plugin in PLUGINS {
            let defaults = default_args(plugin.name.into(), &gates);
            let encoded = defaults.map(|args| encode_args::args(plugin.name, &args));
            let Some(Node::Map(fields)) = encoded else {
                assert!(plugin.args.is_empty(), "{}", plugin.name);
                continue;
            };
            let of_type = ["apiVersion", "kind"];
            for (name, _) in fields.iter().filter(|(name, _)| !of_type.contains(&name.as_str())) {
                let known = plugin.args.iter().any(|argument| argument.name == name);
                assert!(known, "{}: {name}", plugin.name);
            }
            for argument in plugin.args {
                let text = format!("{{{}: {{}}}}", argument.name);
                let node = crate::node::parse(&text).unwrap().root;
                let mut reader = crate::reader::Reader { problems: vec![], yaml: true };
                let path = crate::FieldPath::root();
                let name = plugin.name.into();
                crate::decode_args::args(&mut reader, name, &node, &path, &gates);
                let told = format!("{:?}", reader.problems);
                assert!(!told.contains("unknown field"), "{}: {told}", argument.name);
            }
        }
    }

    #[test]
    fn a_plugin_is_told_whole() {
        let plugin = find("InterPodAffinity").unwrap();
        assert_eq!(
            text(plugin, &FeatureGates::default(), 72),
            "InterPodAffinity: pods that attract or repel other pods

Required affinity and anti-affinity, of the pod and of the pods already
placed, refuse nodes; preferred terms score, and so do the required
affinity terms of placed pods with hardPodAffinityWeight.

For example: Required anti-affinity to its own label over
kubernetes.io/hostname: each replica gets a node for itself, and one
replica more than nodes stays pending.

  Runs at     PreFilter Filter PreScore Score
  Weight      2
  By default  enabled

Arguments
  hardPodAffinityWeight               0 to 100; default: 1. Weight with
                                      which required affinity terms of
                                      pods already placed attract the
                                      new pod.
  ignorePreferredTermsOfExistingPods  true or false; default: false.
                                      Leaves preferred terms of pods
                                      already placed out of the score,
                                      which is faster.
"
        );
    }
}
