//! Storage capacity as CSI drivers report it.

use std::sync::Arc;

use kubestep_api::intern::Symbol;
use kubestep_api::selector::Selector;
use kubestep_api::{CsiStorageCapacity, Node, PersistentVolumeClaim, Quantity, StorageClass};
use kubestep_framework::objects::Objects;
use kubestep_framework::pod::NamespacedName;

use super::matching::requested;

/// The capacity object that can hold the claim's volume: `Some(None)` if capacity need not be
/// checked, `None` if none that covers the node is large enough.
pub fn find(
    claim: &PersistentVolumeClaim,
    class: &StorageClass,
    node: &Node,
    objects: &Objects,
) -> Option<Option<Arc<CsiStorageCapacity>>> {
    let Some(size) = requested(claim) else { return Some(None) };
    let driver = NamespacedName::new(Symbol::EMPTY, class.provisioner.into());
    let driver = objects.csi_drivers.get(&driver);
    if driver.and_then(|driver| driver.spec.storage_capacity) != Some(true) {
        return Some(None);
    }
    let holds = |capacity: &&Arc<CsiStorageCapacity>| {
        capacity.storage_class_name == class.metadata.name
            && limit(capacity).is_some_and(|limit| limit.value() >= size.value())
            && has_access(node, capacity)
    };
    objects.csi_storage_capacities.values().find(holds).cloned().map(Some)
}

/// The size of the largest volume that fits.
pub fn limit(capacity: &CsiStorageCapacity) -> Option<&Quantity> {
    capacity.maximum_volume_size.as_ref().or(capacity.capacity.as_ref())
}

/// The size of the largest volume of the class that can be provisioned for the node.
pub fn largest(class: &StorageClass, node: &Node, objects: &Objects) -> Option<Quantity> {
    let of_class = |capacity: &&Arc<CsiStorageCapacity>| {
        capacity.storage_class_name == class.metadata.name && has_access(node, capacity)
    };
    let reached = objects.csi_storage_capacities.values().filter(of_class);
    reached.filter_map(|capacity| limit(capacity)).max_by_key(|limit| limit.value()).cloned()
}

/// Without a topology, the capacity is available to no node.
fn has_access(node: &Node, capacity: &CsiStorageCapacity) -> bool {
    let selector = Selector::new(capacity.node_topology.as_ref());
    selector.is_ok_and(|selector| selector.matches(&node.metadata.labels))
}
