//! Merges the plugin sets of a profile with the default sets.
//!
//! Upstream: mergePluginSet in `pkg/scheduler/apis/config/v1/default_plugins.go`.

use kubestep_api::intern::Symbol;

use super::decode::Context;
use super::points::ExtensionPoint;
use super::types::{PluginRef, PluginSet, Plugins};

/// The default sets: MultiPoint enables the plugins of the default profile, in the order of the
/// registry.
pub(super) fn default_plugin_sets(context: &Context<'_>) -> Plugins {
    let mut plugins = Plugins::default();
    let default = context.plugins.iter().filter(|plugin| plugin.is_default(context.gates));
    let enabled = default.map(|plugin| PluginRef {
        name: Symbol::new(plugin.name),
        weight: plugin.default_weight.unwrap_or_default(),
    });
    plugins.multi_point.enabled = enabled.collect();
    plugins
}

/// The user's sets merged into the default sets, one by one.
pub fn merge(default: &Plugins, user: &Plugins) -> Plugins {
    let mut merged = Plugins::default();
    merged.multi_point = merge_set(&default.multi_point, &user.multi_point);
    for point in ExtensionPoint::ALL {
        *merged.at_mut(point) = merge_set(default.at(point), user.at(point));
    }
    merged
}

fn merge_set(default: &PluginSet, user: &PluginSet) -> PluginSet {
    // Weights of disabled entries have no meaning.
    let disabled: Vec<PluginRef> = user
        .disabled
        .iter()
        .chain(&default.disabled)
        .map(|plugin| PluginRef { name: plugin.name, weight: 0 })
        .collect();
    let is_disabled = |name: &str| disabled.iter().any(|plugin| plugin.name == name);
    let mut replaced = vec![false; user.enabled.len()];
    let mut enabled = Vec::new();
    if !is_disabled("*") {
        // A default plugin that the user disables is dropped. If the user also enables it, that
        // entry is appended, which is how plugins are reordered.
        for plugin in default.enabled.iter().filter(|plugin| !is_disabled(&plugin.name)) {
            // The user's last entry of a name replaces the default in its position.
            let position = user.enabled.iter().rposition(|own| own.name == plugin.name);
            enabled.push(position.map_or(*plugin, |i| user.enabled[i]));
            if let Some(i) = position {
                replaced[i] = true;
            }
        }
    }
    let appended = user.enabled.iter().zip(&replaced).filter(|(_, replaced)| !**replaced);
    enabled.extend(appended.map(|(plugin, _)| *plugin));
    PluginSet { enabled, disabled }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(plugins: &[(&str, i32)]) -> Vec<PluginRef> {
        let entry =
            |(name, weight): &(&str, i32)| PluginRef { name: (*name).into(), weight: *weight };
        plugins.iter().map(entry).collect()
    }

    fn merged(enabled: &[(&str, i32)], disabled: &[(&str, i32)]) -> PluginSet {
        let default =
            PluginSet { enabled: list(&[("A", 1), ("B", 2), ("C", 0)]), disabled: vec![] };
        merge_set(&default, &PluginSet { enabled: list(enabled), disabled: list(disabled) })
    }

    #[test]
    fn a_default_enabled_again_keeps_its_position() {
        let set = merged(&[("D", 4), ("B", 7)], &[]);
        assert_eq!(set.enabled, list(&[("A", 1), ("B", 7), ("C", 0), ("D", 4)]));
        assert_eq!(set.disabled, []);
    }

    #[test]
    fn disabled_and_enabled_moves_to_the_end() {
        let set = merged(&[("A", 5)], &[("A", 3)]);
        assert_eq!(set.enabled, list(&[("B", 2), ("C", 0), ("A", 5)]));
        assert_eq!(set.disabled, list(&[("A", 0)]));
    }

    #[test]
    fn a_star_drops_all_defaults() {
        assert_eq!(merged(&[("B", 1)], &[("*", 0)]).enabled, list(&[("B", 1)]));
    }

    #[test]
    fn of_repeated_entries_the_last_replaces_and_the_others_stay() {
        let set = merged(&[("B", 5), ("B", 6), ("Z", 1), ("Z", 2)], &[]);
        let expected = [("A", 1), ("B", 6), ("C", 0), ("B", 5), ("Z", 1), ("Z", 2)];
        assert_eq!(set.enabled, list(&expected));
    }
}
