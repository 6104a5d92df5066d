//! Rules for single profiles, and for all profiles together.

use serde_json::{Value, json};

use crate::features::FeatureGates;
use crate::path::FieldPath;
use crate::points::ExtensionPoint;
use crate::types::{API_VERSION, KubeSchedulerProfile, PluginConfig, PluginRef, PluginSet};
use kubestep_api::intern::Symbol;

use super::{Findings, percentage};

/// Plugins that were removed from Kubernetes.
const REMOVED: [&str; 4] = ["AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"];

/// Validates all profiles: names, queue order, plugins and their arguments.
pub fn validate(
    found: &mut Findings,
    profiles: &[KubeSchedulerProfile],
    path: &FieldPath,
    gates: &FeatureGates,
) {
    if profiles.is_empty() {
        found.required(path, "");
        return;
    }
    for (i, profile) in profiles.iter().enumerate() {
        let path = path.index(i);
        one(found, profile, &path, gates);
        let name = profile.scheduler_name;
        if profiles[..i].iter().any(|other| other.scheduler_name == name) {
            found.duplicate(&path.field("schedulerName"), &name);
        }
    }
    common_queue_sort(found, profiles, path);
}

fn one(
    found: &mut Findings,
    profile: &KubeSchedulerProfile,
    path: &FieldPath,
    gates: &FeatureGates,
) {
    if profile.scheduler_name.is_empty() {
        found.required(&path.field("schedulerName"), "");
    }
    let percentage_path = path.field("percentageOfNodesToScore");
    percentage(found, &percentage_path, profile.percentage_of_nodes_to_score);
    let classic = |point: &ExtensionPoint| *point < ExtensionPoint::PlacementGenerate;
    for point in ExtensionPoint::ALL.into_iter().filter(classic) {
        let path = path.field("plugins").field(point.key()).field("enabled");
        for (i, plugin) in profile.plugins.at(point).enabled.iter().enumerate() {
            removed(found, &path.index(i), plugin.name);
        }
    }
    for (i, config) in profile.plugin_config.iter().enumerate() {
        let path = path.field("pluginConfig").index(i);
        if profile.plugin_config[..i].iter().any(|other| other.name == config.name) {
            found.duplicate(&path, &config.name);
        }
        if !removed(found, &path, config.name) {
            arguments(found, config, &path.field("args"), gates);
        }
    }
}

fn removed(found: &mut Findings, path: &FieldPath, name: Symbol) -> bool {
    let removed = REMOVED.contains(&name.as_str());
    if removed {
        let detail = format!(
            "was invalid in version {API_VERSION:?} \
             (KubeSchedulerConfiguration is version {API_VERSION:?})"
        );
        found.invalid(path, name.as_str(), &detail);
        if let Some(problem) = found.problems.last_mut() {
            problem.help =
                Some("Kubernetes no longer has this plugin; NodeVolumeLimits replaces it".into());
        }
    }
    removed
}

fn arguments(found: &mut Findings, config: &PluginConfig, path: &FieldPath, gates: &FeatureGates) {
    let args = config.args.as_ref().filter(|args| !args.checked_when_built());
    if let Some(args) = args {
        args.validate(found, path, gates);
    }
}

/// All profiles must order the queue alike.
fn common_queue_sort(found: &mut Findings, profiles: &[KubeSchedulerProfile], path: &FieldPath) {
    let [first, others @ ..] = profiles else { return };
    let canon = first.plugins.at(ExtensionPoint::QueueSort);
    let count = canon.enabled.len();
    if count > 1 {
        let path = path.index(0).field("plugins").field("queueSort").field("Enabled");
        found.invalid(&path, count, "only one queue sort plugin can be enabled");
    }
    // Without a queue sort plugin upstream looks for arguments under the empty name, except in the
    // first profile.
    let sorter = canon.enabled.first().map(|plugin| plugin.name).unwrap_or_default();
    let own = |config: &&PluginConfig| config.name == sorter;
    let own_of_first = first.plugin_config.iter().rfind(own).filter(|_| !sorter.is_empty());
    let wanted = own_of_first.and_then(|config| config.args.as_ref());
    for (i, profile) in others.iter().enumerate() {
        let path = path.index(i + 1);
        let set = profile.plugins.at(ExtensionPoint::QueueSort);
        if set != canon {
            let path = path.field("plugins").field("queueSort");
            found.invalid(&path, set_value(set), "must be the same for all profiles");
        }
        let configs = profile.plugin_config.iter().filter(own);
        for _ in configs.filter(|config| config.args.as_ref() != wanted) {
            let path = path.field("pluginConfig").field("args");
            found.invalid(&path, Value::Null, "queueSort must be the same for all profiles");
        }
    }
}

fn set_value(set: &PluginSet) -> Value {
    let names = |plugins: &[PluginRef]| -> Vec<Value> {
        plugins.iter().map(|plugin| plugin.name.as_str().into()).collect()
    };
    json!({ "enabled": names(&set.enabled), "disabled": names(&set.disabled) })
}
