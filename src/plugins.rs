//! The plugins that the program knows.

use kubestep_framework::registry::Registry;

/// The in-tree plugins, kubestep's own, and those of the project scheduler-plugins.
pub fn registry() -> Registry {
    let mut registry = kubestep_plugins::registry();
    for plugin in kubestep_scheduler_plugins::entries() {
        // No two plugins have the same name.
        let _registered = registry.register(plugin);
    }
    registry
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_plugin_has_a_name_of_its_own() {
        let all = super::registry().descriptors().len();
        let in_tree = kubestep_plugins::registry().descriptors().len();
        assert_eq!(all, in_tree + kubestep_scheduler_plugins::entries().count());
    }
}
