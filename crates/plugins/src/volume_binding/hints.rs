//! Queueing hints: which events can make a pod schedulable that VolumeBinding rejected.

use crate::volumes;
use kubestep_api::intern::Symbol;
use kubestep_api::{CsiDriver, CsiNode, CsiStorageCapacity, Object, Pod, StorageClass};
use kubestep_framework::events::EventObjects;

use super::candidate::MIGRATED_PLUGINS;
use super::capacity::limit;

/// Whether the event can make `pod` schedulable.
///
/// # Errors
/// The event carries other objects than the plugin registered for.
pub fn helps(pod: &Pod, event: &EventObjects) -> Result<bool, String> {
    match (&event.old, &event.new) {
        (None, Some(Object::StorageClass(_) | Object::CsiNode(_))) => Ok(true),
        (None, Some(Object::CsiStorageCapacity(_))) => Ok(true),
        (Some(Object::StorageClass(old)), Some(Object::StorageClass(new))) => {
            Ok(class_helps(old, new))
        }
        (Some(Object::CsiNode(old)), Some(Object::CsiNode(new))) => Ok(node_helps(old, new)),
        (Some(Object::CsiStorageCapacity(old)), Some(Object::CsiStorageCapacity(new))) => {
            Ok(capacity_helps(old, new))
        }
        (Some(Object::CsiDriver(old)), Some(Object::CsiDriver(new))) => {
            Ok(driver_helps(pod, old, new))
        }
        (_, new @ Some(Object::PersistentVolumeClaim(_))) => {
            let claim = volumes::new_claim_beside(pod, new.as_ref())?;
            Ok(claim.is_some_and(|claim| {
                volumes::claims(pod).any(|used| used.key.name == claim.metadata.name)
            }))
        }
        _ => Err("unexpected objects".to_owned()),
    }
}

/// The binding mode of a class is immutable, so it is not compared.
fn class_helps(old: &StorageClass, new: &StorageClass) -> bool {
    old.allowed_topologies != new.allowed_topologies
}

fn node_helps(old: &CsiNode, new: &CsiNode) -> bool {
    let plugins = |node: &CsiNode| -> Symbol {
        node.metadata.annotations.get_str(MIGRATED_PLUGINS).copied().unwrap_or_default()
    };
    plugins(old) != plugins(new)
}

fn capacity_helps(old: &CsiStorageCapacity, new: &CsiStorageCapacity) -> bool {
    let Some(now) = limit(new) else { return false };
    limit(old).is_none_or(|before| now.value() > before.value())
}

/// A driver that stops reporting storage capacity no longer causes rejections.
fn driver_helps(pod: &Pod, old: &CsiDriver, new: &CsiDriver) -> bool {
    let stopped =
        old.spec.storage_capacity == Some(true) && new.spec.storage_capacity != Some(true);
    let sources = pod.spec.volumes.iter().filter_map(|volume| volume.csi.as_ref());
    stopped && sources.into_iter().any(|source| source.driver == new.metadata.name)
}
