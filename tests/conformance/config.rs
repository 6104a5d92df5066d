//! The configuration corpus: documents and the result of kube-scheduler (resolved document
//! and plugins, or the stage that rejected them).

use std::collections::BTreeSet;

use kubestep_config as config;
use kubestep_config::{ConfigStage, ExtensionPoint, FeatureGates, Problem, ResolvedConfig};
use serde_json::{Map, Value, json};

use crate::compare::first_difference;
use crate::corpus::gates;

/// Compares one line: the profiles of a configuration, or why it is rejected.
pub fn compare(scenario: &Value) -> Result<(), String> {
    compare_document(&scenario["config"], gates(scenario)?, &scenario["expect"])
}

fn compare_document(document: &Value, gates: FeatureGates, expect: &Value) -> Result<(), String> {
    let plugins = kubestep_plugins::registry().descriptors();
    let loaded = match config::load(Some(&document.to_string()), &gates, &plugins) {
        Ok(loaded) => loaded,
        Err(error) => return compare_rejection(error.stage, &error.problems, expect),
    };
    same("resolved", &config::to_json(&loaded.document), &expect["resolved"])?;
    match config::build(loaded.document, &gates, &plugins) {
        Ok(resolved) => same("plugins", &self::plugins(&resolved), &expect["plugins"]),
        Err(error) => compare_rejection(error.stage, &error.problems, expect),
    }
}

fn same(what: &str, got: &Value, expected: &Value) -> Result<(), String> {
    first_difference(what, expected, got).map_or(Ok(()), Err)
}

/// The stage must be the same, and for invalid values the set of fields.
fn compare_rejection(
    stage: ConfigStage,
    problems: &[Problem],
    expect: &Value,
) -> Result<(), String> {
    let key = match stage {
        ConfigStage::Decode => "decodeError",
        ConfigStage::Validate => "invalid",
        ConfigStage::Build => "buildError",
    };
    let texts: Vec<String> = problems.iter().map(Problem::to_string).collect();
    let Some(expected) = expect.get(key) else {
        return Err(format!("rejected at {stage:?}: {texts:?}\n  expected {expect}"));
    };
    if stage != ConfigStage::Validate {
        return Ok(());
    }
    let expected: BTreeSet<&str> =
        expected.as_array().into_iter().flatten().filter_map(Value::as_str).map(field).collect();
    let paths: Vec<String> = problems.iter().map(|problem| problem.path.to_string()).collect();
    let got: BTreeSet<&str> = paths.iter().map(String::as_str).collect();
    match got == expected {
        true => Ok(()),
        false => Err(format!("fields {got:?}\n  expected {expected:?}")),
    }
}

/// The field path at the start of an error's text.
fn field(text: &str) -> &str {
    text.split(": ").next().unwrap_or(text)
}

/// Profile → extension point → plugins in order, with weights at `score`; extension points without
/// plugins are omitted.
fn plugins(resolved: &ResolvedConfig) -> Value {
    let mut profiles = Map::new();
    for profile in &resolved.profiles {
        let mut points = Map::new();
        for point in ExtensionPoint::ALL {
            // The recorder only lists the extension points of single pods.
            let of_pods = point < ExtensionPoint::PlacementGenerate;
            if of_pods && !profile.at(point).is_empty() {
                let entry = |plugin: &config::ResolvedPlugin| match point.has_weights() {
                    true => json!({ "name": plugin.name, "weight": plugin.weight }),
                    false => json!({ "name": plugin.name }),
                };
                points
                    .insert(point.key().to_owned(), profile.at(point).iter().map(entry).collect());
            }
        }
        profiles.insert(profile.scheduler_name.to_string(), Value::Object(points));
    }
    Value::Object(profiles)
}
