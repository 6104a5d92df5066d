//! The versions, and what differs between two of them, as JSON by `schema/versions.v1.json`.

use serde_json::{Value, json};

use kubestep_config::versions::{Between, GateChange, InProfile, PluginDifference};
use kubestep_config::{GateSpec, KubeVersion, versions::Switch};

/// The JSON of `versions`, after `schema/versions.v1.json`.
pub fn document(between: Option<&Between>) -> Value {
    json!({
        "schema": "kubestep/versions/v1",
        "versions": KubeVersion::all().map(version).collect::<Vec<_>>(),
        "between": between.map(difference),
    })
}

fn version(version: KubeVersion) -> Value {
    json!({
        "version": version.to_string(),
        "default": version == KubeVersion::default(),
        "provedBy": version.proved_by(),
    })
}

fn difference(between: &Between) -> Value {
    json!({
        "from": between.from.name(),
        "to": between.to.name(),
        "changes": between.switches.iter().map(|one| switch(*one)).collect::<Vec<_>>(),
        "featureGates": between.gates.iter().map(gate).collect::<Vec<_>>(),
        "defaultPlugins": between.plugins.iter().map(plugin).collect::<Vec<_>>(),
    })
}

/// A change that no gate governs.
pub fn switch(switch: Switch) -> Value {
    json!({
        "name": switch.name(),
        "since": switch.since().to_string(),
        "firstPatch": switch.patches().first(),
        "patches": switch.patches(),
        "part": switch.part().name(),
        "evidence": switch.evidence().name(),
        "pullRequests": switch.pull_requests(),
        "about": switch.sentence(),
    })
}

fn gate(change: &GateChange) -> Value {
    json!({
        "name": change.gate.name(),
        "about": change.gate.effect(),
        "from": change.from.map(spec),
        "to": change.to.map(spec),
    })
}

fn spec(spec: GateSpec) -> Value {
    json!({"stage": spec.stage.name(), "default": spec.default, "locked": spec.locked})
}

fn plugin(change: &PluginDifference) -> Value {
    json!({
        "name": change.plugin,
        "from": change.from.as_ref().map(in_profile),
        "to": change.to.as_ref().map(in_profile),
    })
}

fn in_profile(plugin: &InProfile) -> Value {
    let points: Vec<&str> = plugin.points.iter().map(|point| point.name()).collect();
    json!({"points": points, "weight": plugin.weight})
}
