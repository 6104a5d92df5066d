//! Single plugins, and profiles of chosen ones.

use std::sync::Arc;

use crate::plugin::Plugin;
use crate::registry::{Built, Registry};
use crate::runtime::Framework;
use kubestep_api::intern::Symbol;
use kubestep_config::{
    ExtensionPoint, FeatureGates, Origin, ProfileArgs, ResolvedPlugin, ResolvedProfile,
};

/// Builds a plugin with the given arguments and the default gates.
pub fn plugin(
    factory: impl Fn(&ProfileArgs, &FeatureGates) -> Built,
    args: &ProfileArgs,
) -> Arc<dyn Plugin> {
    factory(args, &FeatureGates::default()).expect("arguments that the plugin accepts")
}

/// A profile of all plugins of `registry`, each at every point it implements, with default
/// arguments.
pub fn framework_of(registry: &Registry) -> Framework {
    let descriptors = registry.descriptors();
    let names: Vec<&str> = descriptors.iter().map(|descriptor| descriptor.name).collect();
    framework_with(&names, ProfileArgs::default(), registry, FeatureGates::default())
}

/// A profile of these plugins of `registry`, each at every point it implements. Weights are
/// those of the default profile.
pub fn framework_with(
    plugins: &[&str],
    args: ProfileArgs,
    registry: &Registry,
    features: FeatureGates,
) -> Framework {
    let mut profile = ResolvedProfile {
        scheduler_name: "default-scheduler".into(),
        instances: plugins.iter().map(|name| Symbol::new(name)).collect(),
        args,
        ..ResolvedProfile::default()
    };
    let descriptors = registry.descriptors();
    for name in plugins {
        let descriptor = descriptors.iter().find(|other| other.name == *name).unwrap();
        for point in descriptor.points.iter() {
            let weight =
                if point.has_weights() { descriptor.default_weight.unwrap_or(1) } else { 0 };
            let name = Symbol::new(name);
            profile.points[point.index()].push(ResolvedPlugin {
                name,
                weight,
                origin: Origin::MultiPoint,
            });
        }
    }
    Framework::new(profile, registry, &features).unwrap()
}

/// The names of the plugins of `framework` at `point`.
pub fn names_at(framework: &Framework, point: ExtensionPoint) -> Vec<Symbol> {
    framework.at(point).iter().map(|plugin| plugin.name()).collect()
}
