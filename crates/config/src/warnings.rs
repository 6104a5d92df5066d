//! Settings that upstream accepts silently although they have no effect, or another effect than
//! they seem to have.

use super::construct::ignored_resources;
use super::features::FeatureGates;
use super::opaque;
use super::path::FieldPath;
use super::points::{ExtensionPoint, PluginDescriptor, find_plugin};
use super::problem::Problem;
use super::suggest::closest;
use super::types::{KubeSchedulerConfiguration, KubeSchedulerProfile, PluginRef, PluginSet};

/// All warnings about `document`, profile by profile.
pub fn find(document: &KubeSchedulerConfiguration, registry: &[PluginDescriptor]) -> Vec<Problem> {
    let mut warnings = opaque::warnings(document, registry);
    for (i, profile) in document.profiles.iter().enumerate() {
        let path = FieldPath::root().field("profiles").index(i);
        let plugins = path.field("plugins");
        disabled(
            &mut warnings,
            &profile.plugins.multi_point,
            &plugins.field("multiPoint"),
            |name| known(name, registry),
        );
        for point in ExtensionPoint::ALL {
            let set = profile.plugins.at(point);
            let path = plugins.field(point.key());
            disabled(&mut warnings, set, &path, |name| runs_at(name, point, registry));
            weights(&mut warnings, set, point, &path);
        }
        unused_arguments(&mut warnings, profile, registry, &path);
    }
    overwritten_ignored_resources(&mut warnings, document);
    warnings
}

fn disabled(
    warnings: &mut Vec<Problem>,
    set: &PluginSet,
    path: &FieldPath,
    check: impl Fn(&str) -> Option<String>,
) {
    let entries = set.disabled.iter().enumerate().filter(|(_, plugin)| plugin.name != "*");
    for (i, plugin) in entries {
        if let Some(text) = check(&plugin.name) {
            let message = format!("disabling {:?} has no effect: {text}", plugin.name);
            warnings.push(Problem::new(&path.field("disabled").index(i), message));
        }
    }
}

fn known(name: &str, registry: &[PluginDescriptor]) -> Option<String> {
    if registry.iter().any(|plugin| plugin.name == name) {
        return None;
    }
    let near = closest(name, registry.iter().map(|plugin| plugin.name));
    Some(match near {
        Some(other) => format!("there is no such plugin; did you mean {other:?}?"),
        None => "there is no such plugin".to_owned(),
    })
}

fn runs_at(name: &str, point: ExtensionPoint, registry: &[PluginDescriptor]) -> Option<String> {
    let plugin = registry.iter().find(|plugin| plugin.name == name);
    match plugin {
        Some(plugin) if plugin.implements(point) => None,
        Some(_) => Some(format!("it does not run at {point}")),
        None => known(name, registry),
    }
}

fn weights(warnings: &mut Vec<Problem>, set: &PluginSet, point: ExtensionPoint, path: &FieldPath) {
    let weighted = |(_, plugin): &(usize, &PluginRef)| plugin.weight != 0 && !point.has_weights();
    for (i, plugin) in set.enabled.iter().enumerate().filter(weighted) {
        let path = path.field("enabled").index(i).field("weight");
        let message = format!("weight {} has no effect at {point}", plugin.weight);
        warnings.push(Problem::new(&path, message));
    }
}

/// Arguments for a plugin that is not enabled. Arguments equal to the defaults are not reported:
/// defaulting may have added them.
fn unused_arguments(
    warnings: &mut Vec<Problem>,
    profile: &KubeSchedulerProfile,
    registry: &[PluginDescriptor],
    path: &FieldPath,
) {
    for (i, config) in profile.plugin_config.iter().enumerate() {
        let args = find_plugin(registry, &config.name).and_then(|plugin| plugin.args);
        let default = args.map(|args| args.default(&FeatureGates::default()));
        if !profile.plugins.needs(&config.name) && config.args != default {
            let message = format!("arguments for {}, which is not enabled", config.name);
            warnings.push(Problem::new(&path.field("pluginConfig").index(i), message));
        }
    }
}

/// As upstream, the extenders' list replaces the user's.
fn overwritten_ignored_resources(
    warnings: &mut Vec<Problem>,
    document: &KubeSchedulerConfiguration,
) {
    if ignored_resources(&document.extenders).is_empty() {
        return;
    }
    for (i, profile) in document.profiles.iter().enumerate() {
        for (j, config) in profile.plugin_config.iter().enumerate() {
            let own = config.args.as_ref().and_then(|args| args.ignored_resources());
            if own.is_some_and(|own| !own.is_empty()) {
                let path = FieldPath::root().field("profiles").index(i);
                let path = path.field("pluginConfig").index(j).field("args");
                let message = "ignoredResources is replaced by the resources that extenders mark \
                               ignoredByScheduler";
                warnings.push(Problem::new(&path.field("ignoredResources"), message));
            }
        }
    }
}
