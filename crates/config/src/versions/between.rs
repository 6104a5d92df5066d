//! Everything that differs in scheduling between two versions at their defaults.

use std::collections::BTreeMap;

use super::{GateChange, KubeVersion, Served, Switch, gate_changes};
use crate::features::FeatureGates;
use crate::points::{ExtensionPoint, PluginDescriptor};
use crate::resolve::resolve;

/// What differs between two releases.
#[derive(Clone, Debug)]
pub struct Between {
    /// The release that is compared with.
    pub from: Served,
    /// The second release; it may be the older one.
    pub to: Served,
    /// The changes that no gate governs, the oldest version first.
    pub switches: Vec<Switch>,
    /// The gates with another stage, default or lock.
    pub gates: Vec<GateChange>,
    /// The plugins that differ in the default profile, in the order of the registry.
    pub plugins: Vec<PluginDifference>,
}

/// A plugin that differs in the default profile. `None`: the profile does not have it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PluginDifference {
    /// The name of the plugin.
    pub plugin: &'static str,
    /// The plugin in the first version.
    pub from: Option<InProfile>,
    /// The plugin in the second version.
    pub to: Option<InProfile>,
}

/// How a profile runs a plugin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InProfile {
    /// The extension points at which it runs.
    pub points: Vec<ExtensionPoint>,
    /// The weight of its scores; `None` if it does not score.
    pub weight: Option<i32>,
}

/// What differs between two releases. `registry` has the plugins of all versions.
pub fn between(from: &Served, to: &Served, registry: &[PluginDescriptor]) -> Between {
    let (old, new) = (from.gates(), to.gates());
    let mut switches: Vec<Switch> =
        Switch::all().filter(|switch| old.has(*switch) != new.has(*switch)).collect();
    switches.sort_by_key(|switch| switch.since());
    Between {
        from: from.clone(),
        to: to.clone(),
        switches,
        gates: gate_changes(from.version, to.version),
        plugins: plugin_changes(from.version, to.version, registry),
    }
}

fn plugin_changes(
    from: KubeVersion,
    to: KubeVersion,
    registry: &[PluginDescriptor],
) -> Vec<PluginDifference> {
    let (a, b) = (default_profile(from, registry), default_profile(to, registry));
    let change = |plugin: &PluginDescriptor| {
        let (from, to) = (a.get(plugin.name).cloned(), b.get(plugin.name).cloned());
        (from != to).then_some(PluginDifference { plugin: plugin.name, from, to })
    };
    registry.iter().filter_map(change).collect()
}

/// The plugins of a version's default profile, by name.
fn default_profile(
    version: KubeVersion,
    registry: &[PluginDescriptor],
) -> BTreeMap<&'static str, InProfile> {
    // The default configuration of a version is valid.
    let resolved = resolve(None, &FeatureGates::of(version), registry);
    let mut plugins = BTreeMap::new();
    for profile in resolved.iter().flat_map(|resolved| resolved.profiles.first()) {
        for point in ExtensionPoint::ALL {
            for entry in profile.at(point) {
                let known = InProfile { points: Vec::new(), weight: None };
                let plugin: &mut InProfile = plugins.entry(entry.name.as_str()).or_insert(known);
                plugin.points.push(point);
                plugin.weight = plugin.weight.or(Some(entry.weight).filter(|weight| *weight > 0));
            }
        }
    }
    plugins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_listed_in_both_directions() {
        let (up, down) = (between_named("1.34", "1.36"), between_named("1.36", "1.34"));
        assert_eq!(up.switches, down.switches);
        assert!(up.switches.contains(&Switch::BalancedAllocationGain));
        assert!(up.switches.iter().all(|switch| switch.since().minor() > 34));
        assert!(up.switches.is_sorted_by_key(|switch| switch.since()));
        assert_eq!(up.gates.len(), down.gates.len());
        assert!(between_named("1.36", "1.36").gates.is_empty());
    }

    #[test]
    fn patch_releases_differ_in_what_was_backported() {
        let patches = between_named("1.33.3", "v1.33.13+k3s1");
        assert_eq!((patches.from.name(), patches.to.name()), ("1.33.3".into(), "1.33.13".into()));
        assert_eq!(patches.switches, [Switch::ClassConfigByRequest, Switch::SidecarHostPorts]);
        assert!(patches.gates.is_empty() && patches.plugins.is_empty());
        // 1.35.6 has a correction that 1.36.1 does not have yet.
        let lost = between_named("1.35.6", "1.36.1");
        assert_eq!(lost.switches.first(), Some(&Switch::AllocatedClaimsScored));
        assert!(!lost.to.gates().has(Switch::AllocatedClaimsScored));
    }

    fn between_named(from: &str, to: &str) -> Between {
        let named = |text| KubeVersion::nearest(text).unwrap();
        between(&named(from), &named(to), &[])
    }
}
