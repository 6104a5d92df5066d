//! Single plugins, and profiles of chosen ones.

use std::sync::Arc;

use crate::config::{
    ExtensionPoint, FeatureGates, Origin, ProfileArgs, ResolvedPlugin, ResolvedProfile,
};
use crate::engine::framework::plugin::Plugin;
use crate::engine::framework::registry::{Factory, Registry};
use crate::engine::framework::runtime::Framework;
use crate::intern::Symbol;

/// Builds a plugin with the given arguments and the default gates.
pub fn plugin(factory: Factory, args: &ProfileArgs) -> Arc<dyn Plugin> {
    factory(args, &FeatureGates::default()).expect("arguments that the plugin accepts")
}

/// A profile of these plugins, each at every point it implements, with default arguments.
pub fn framework(plugins: &[&str]) -> Framework {
    framework_with(plugins, ProfileArgs::default(), &Registry::in_tree(), FeatureGates::default())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_framework_runs_plugins_where_they_belong() {
        let framework = framework(&["PrioritySort", "DefaultBinder"]);
        assert_eq!(names_at(&framework, ExtensionPoint::QueueSort), ["PrioritySort"]);
        assert_eq!(names_at(&framework, ExtensionPoint::Bind), ["DefaultBinder"]);
        assert!(names_at(&framework, ExtensionPoint::Filter).is_empty());
    }
}
