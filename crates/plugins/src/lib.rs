//! The in-tree plugins of kube-scheduler 1.36, and kubestep's own ManualPermit. Each is a file or a
//! folder named like upstream's package; [`registry`] is the table that builds them.
//!
//! A plugin's file, or the `mod.rs` of its folder, has in this order: its description, its
//! descriptor, its arguments, the function that builds it, its implementation of
//! [`Plugin`](kubestep_framework::plugin::Plugin), and its tests. Several plugins share the modules
//! [`keys`], [`normalize`], `older_events`, [`shape`], [`signers`] and [`volumes`].

use kubestep_api::Pod;
use kubestep_config::versions::Switch;
use kubestep_config::{FeatureGates, PluginDescriptor, ProfileArgs};
use kubestep_framework::registry::{Built, Entry, Registry};

mod default_binder;
pub mod default_preemption;
pub mod dynamic_resources;
mod gang_scheduling;
pub mod image_locality;
pub mod inter_pod_affinity;
pub mod keys;
pub mod manual_permit;
pub mod node_affinity;
pub mod node_declared_features;
pub mod node_name;
pub mod node_ports;
pub mod node_resources;
pub mod node_unschedulable;
pub mod node_volume_limits;
pub mod normalize;
mod older_events;
mod pod_group_pods_count;
pub mod pod_topology_spread;
pub mod priority_sort;
pub mod scheduling_gates;
pub mod shape;
pub mod signers;
pub mod taint_toleration;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod topology_placement;
pub mod volume_binding;
pub mod volume_restrictions;
pub mod volume_zone;
pub mod volumes;

/// Builds a plugin for one profile.
type Build = fn(&ProfileArgs, &FeatureGates) -> Built;

/// Every plugin with the function that builds it, in the order of kube-scheduler's default profile.
const PLUGINS: &[(PluginDescriptor, Build)] = &[
    (scheduling_gates::PLUGIN, scheduling_gates::build),
    (priority_sort::PLUGIN, priority_sort::build),
    (node_unschedulable::PLUGIN, node_unschedulable::build),
    (node_name::PLUGIN, node_name::build),
    (taint_toleration::PLUGIN, taint_toleration::build),
    (node_affinity::PLUGIN, node_affinity::build),
    (node_ports::PLUGIN, node_ports::build),
    (node_resources::fit::PLUGIN, node_resources::fit::build),
    (volume_restrictions::PLUGIN, volume_restrictions::build),
    (node_volume_limits::PLUGIN, node_volume_limits::build),
    (volume_binding::PLUGIN, volume_binding::build),
    (volume_zone::PLUGIN, volume_zone::build),
    (pod_topology_spread::PLUGIN, pod_topology_spread::build),
    (inter_pod_affinity::PLUGIN, inter_pod_affinity::build),
    (dynamic_resources::PLUGIN, dynamic_resources::build),
    (default_preemption::PLUGIN, default_preemption::build),
    (node_resources::balanced_allocation::PLUGIN, node_resources::balanced_allocation::build),
    (image_locality::PLUGIN, image_locality::build),
    (default_binder::PLUGIN, default_binder::build),
    (node_declared_features::PLUGIN, node_declared_features::build),
    (gang_scheduling::PLUGIN, gang_scheduling::build),
    (topology_placement::PLUGIN, topology_placement::build),
    (pod_group_pods_count::PLUGIN, pod_group_pods_count::build),
    (node_volume_limits::in_tree::EBS, node_volume_limits::in_tree::build_ebs),
    (node_volume_limits::in_tree::GCE_PD, node_volume_limits::in_tree::build_gce_pd),
    (node_volume_limits::in_tree::AZURE, node_volume_limits::in_tree::build_azure),
    (node_volume_limits::in_tree::OPENSTACK, node_volume_limits::in_tree::build_openstack),
    (manual_permit::PLUGIN, manual_permit::build),
];

/// The in-tree plugins and kubestep's own.
pub fn registry() -> Registry {
    let mut registry = Registry::default();
    for (plugin, build) in PLUGINS {
        // Fails only for a name that is in the table twice, which a test would find.
        let _registered = registry.register(Entry::new(*plugin, build));
    }
    registry
}

/// Whether a hint counts the pod as placed: it has a node or, with `switch`, is nominated to one.
fn is_placed(pod: &Pod, features: &FeatureGates, switch: Switch) -> bool {
    let is_nominated = !pod.status.nominated_node_name.is_empty();
    !pod.spec.node_name.is_empty() || (is_nominated && features.has(switch))
}

#[cfg(test)]
mod tests;
