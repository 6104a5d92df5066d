//! A resolved configuration, or why it was rejected, as JSON.

use serde_json::{Map, Value, json};

use crate::report::add_version;
use kubestep_config as config;
use kubestep_config::{
    ConfigError, ConfigStage, ExtensionPoint, FeatureGates, Origin, Problem, ResolvedConfig,
    ResolvedPlugin, ResolvedProfile,
};

/// The version of both documents below.
const SCHEMA: &str = "kubestep/config/v1";

/// The configuration that kube-scheduler would run.
pub fn resolved(config: &ResolvedConfig) -> Value {
    let gates: Map<String, Value> =
        config.features.changed().map(|(gate, on)| (gate.name().into(), on.into())).collect();
    let mut value = json!({
        "schema": SCHEMA,
        "valid": true,
        "profiles": config.profiles.iter().map(profile).collect::<Vec<_>>(),
        "featureGates": gates,
        "warnings": config.warnings.iter().map(problem).collect::<Vec<_>>(),
        "configuration": config::to_json(&config.completed()),
    });
    add_version(&mut value, config.features);
    value
}

/// Why kube-scheduler would not start.
pub fn rejected(error: &ConfigError, gates: FeatureGates) -> Value {
    let stage = match error.stage {
        ConfigStage::Decode => "decode",
        ConfigStage::Validate => "validate",
        ConfigStage::Build => "build",
    };
    let problems: Vec<Value> = error.problems.iter().map(problem).collect();
    let mut value = json!({"schema": SCHEMA, "valid": false, "stage": stage, "problems": problems});
    add_version(&mut value, gates);
    value
}

fn profile(profile: &ResolvedProfile) -> Value {
    let at = |point: ExtensionPoint| {
        let with_mark = |entry: &ResolvedPlugin| {
            let mut value = plugin(entry, point);
            if profile.is_opaque(entry.name) {
                value["opaque"] = true.into();
            }
            value
        };
        let plugins = profile.at(point).iter().map(with_mark).collect();
        (point.name().to_owned(), plugins)
    };
    let points: Map<String, Value> = ExtensionPoint::ALL.into_iter().map(at).collect();
    json!({"schedulerName": profile.scheduler_name.as_str(), "points": points})
}

fn plugin(plugin: &ResolvedPlugin, point: ExtensionPoint) -> Value {
    let origin = match plugin.origin {
        Origin::MultiPoint => "multiPoint",
        Origin::Specific => "point",
        Origin::Override => "pointOverMultiPoint",
    };
    let mut value = json!({"name": plugin.name.as_str(), "from": origin});
    if point.has_weights() {
        value["weight"] = plugin.weight.into();
    }
    value
}

fn problem(problem: &Problem) -> Value {
    json!({
        "field": problem.path.to_string(),
        "line": problem.location.map(|place| place.line),
        "column": problem.location.map(|place| place.column),
        "message": problem.message,
        "help": problem.help,
    })
}
