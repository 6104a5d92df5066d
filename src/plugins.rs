//! The plugins that the program knows.

use kubestep_framework::registry::Registry;

/// Declares the custom kinds that plugins read. To be called before objects are read.
pub fn declare_kinds() {
    kubestep_scheduler_plugins::declare_kinds();
}

/// The in-tree plugins, kubestep's own, and those of the project scheduler-plugins.
pub fn registry() -> Registry {
    kubestep_scheduler_plugins::add_to(kubestep_plugins::registry())
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
