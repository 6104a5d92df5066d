//! Plugins of the project kubernetes-sigs/scheduler-plugins (as of v0.35, for Kubernetes 1.35), for
//! the profiles of those who run a scheduler with them.
//!
//! The package depends on [`kubestep_framework`] alone, as a plugin of your own would. No plugin of
//! it is in the default profile. [`entries`] is for a registry:
//!
//! ```
//! use kubestep_framework::registry::Registry;
//!
//! let registry = Registry::of(kubestep_scheduler_plugins::entries())?;
//! assert!(registry.descriptors().iter().any(|plugin| plugin.name == "QOSSort"));
//! # Ok::<(), kubestep_framework::registry::RegistryError>(())
//! ```

use kubestep_framework::api::custom::{CustomKind, declare};
use kubestep_framework::config::{FeatureGates, PluginDescriptor, ProfileArgs};
use kubestep_framework::registry::{Built, Entry, Registry};

mod capacity_scheduling;
pub mod coscheduling;
mod node_resource_topology;
mod node_resources_allocatable;
mod pod_state;
mod preemption_toleration;
mod qos_sort;
mod resources;
mod scores;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

/// Builds a plugin for one profile.
type Build = fn(&ProfileArgs, &FeatureGates) -> Built;

/// Every plugin with the function that builds it.
const PLUGINS: &[(PluginDescriptor, Build)] = &[
    (capacity_scheduling::PLUGIN, capacity_scheduling::build),
    (coscheduling::PLUGIN, coscheduling::build),
    (node_resource_topology::PLUGIN, node_resource_topology::build),
    (node_resources_allocatable::PLUGIN, node_resources_allocatable::build),
    (pod_state::PLUGIN, pod_state::build),
    (preemption_toleration::PLUGIN, preemption_toleration::build),
    (qos_sort::PLUGIN, qos_sort::build),
];

/// The custom kinds that the plugins read.
const KINDS: &[CustomKind] = &[
    coscheduling::group::PODGROUPS,
    capacity_scheduling::quota::ELASTIC_QUOTAS,
    node_resource_topology::topology::TOPOLOGIES,
];

/// Declares the custom kinds that the plugins read. To be called before objects are read.
pub fn declare_kinds() {
    KINDS.iter().for_each(|kind| declare(*kind));
}

/// The registry with the plugins, whose custom kinds are declared. Plugins of a name that it has
/// already are left out.
pub fn add_to(mut registry: Registry) -> Registry {
    declare_kinds();
    for plugin in entries() {
        let _registered = registry.register(plugin);
    }
    registry
}

/// The plugins, for a registry.
pub fn entries() -> impl Iterator<Item = Entry> {
    let own = |plugin| PluginDescriptor { project: Some("scheduler-plugins"), ..plugin };
    PLUGINS.iter().map(move |(plugin, build)| Entry::new(own(*plugin), build))
}
