//! The in-tree plugins of kube-scheduler 1.36, and kubestep's own ManualPermit. Each is a file or a
//! folder named like upstream's package; [`registry`] is the table that builds them.
//!
//! A plugin's file has, in this order, its description, its arguments and state, its
//! implementation of [`Plugin`](kubestep_framework::plugin::Plugin), and its tests. Several
//! plugins share the modules [`keys`], [`normalize`], [`signers`] and [`volumes`].

use kubestep_config::intree;
use kubestep_framework::registry::{Entry, Factory, Registry};

pub mod default_binder;
pub mod default_preemption;
pub mod dynamic_resources;
pub mod gang_scheduling;
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
pub mod pod_group_pods_count;
pub mod pod_topology_spread;
pub mod priority_sort;
pub mod scheduling_gates;
pub mod signers;
pub mod taint_toleration;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod topology_placement;
pub mod volume_binding;
pub mod volume_restrictions;
pub mod volume_zone;
pub mod volumes;

/// Name and factory of every plugin.
const FACTORIES: &[(&str, Factory)] = &[
    ("DefaultBinder", default_binder::build),
    ("DynamicResources", dynamic_resources::build),
    ("GangScheduling", gang_scheduling::build),
    ("InterPodAffinity", inter_pod_affinity::build),
    ("ManualPermit", manual_permit::build),
    ("NodeVolumeLimits", node_volume_limits::build),
    ("ImageLocality", image_locality::build),
    ("NodeAffinity", node_affinity::build),
    ("NodeDeclaredFeatures", node_declared_features::build),
    ("NodeName", node_name::build),
    ("NodePorts", node_ports::build),
    ("NodeUnschedulable", node_unschedulable::build),
    ("TaintToleration", taint_toleration::build),
    ("NodeResourcesBalancedAllocation", node_resources::balanced_allocation::build),
    ("NodeResourcesFit", node_resources::fit::build),
    ("DefaultPreemption", default_preemption::build),
    ("PodGroupPodsCount", pod_group_pods_count::build),
    ("PodTopologySpread", pod_topology_spread::build),
    ("PrioritySort", priority_sort::build),
    ("SchedulingGates", scheduling_gates::build),
    ("TopologyPlacementGenerator", topology_placement::build),
    ("VolumeBinding", volume_binding::build),
    ("VolumeRestrictions", volume_restrictions::build),
    ("VolumeZone", volume_zone::build),
];

/// The in-tree plugins and kubestep's own, in the order of their descriptors.
pub fn registry() -> Registry {
    let factory = |name: &str| FACTORIES.iter().find(|(known, _)| *known == name);
    let entries = intree::PLUGINS.iter().filter_map(|descriptor| {
        let (_, factory) = factory(descriptor.name)?;
        Some(Entry { descriptor: *descriptor, factory: *factory })
    });
    // No two descriptors of the table have the same name.
    Registry::of(entries).unwrap_or_default()
}
