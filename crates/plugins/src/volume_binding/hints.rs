//! Queueing hints: which events can make a pod schedulable that VolumeBinding rejected.

use crate::volumes;
use kubestep_api::CsiNode;
use kubestep_framework::events::{EventObjects, HintResult, QueueingHint};
use kubestep_framework::plugin::QueueContext;
use kubestep_framework::pod::PodInfo;

use super::candidate::MIGRATED_PLUGINS;
use super::capacity::limit;

/// A class helps if it is new or its topologies changed. Its binding mode is immutable.
pub(crate) fn after_class_change(
    _: &QueueContext<'_>,
    _: &PodInfo,
    objects: &EventObjects,
) -> HintResult {
    let (Some(old), Some(new)) = objects.storage_classes()? else { return Ok(QueueingHint::Queue) };
    Ok(QueueingHint::queue_if(old.allowed_topologies != new.allowed_topologies))
}

/// A claim helps if the pod uses it.
pub(crate) fn after_claim_change(
    _: &QueueContext<'_>,
    pod: &PodInfo,
    objects: &EventObjects,
) -> HintResult {
    Ok(QueueingHint::queue_if(volumes::uses_new_claim(&pod.pod, objects)?))
}

/// A CSINode helps if it is new or other plugins are migrated on its node.
pub(crate) fn after_csi_node_change(
    _: &QueueContext<'_>,
    _: &PodInfo,
    objects: &EventObjects,
) -> HintResult {
    let (Some(old), Some(new)) = objects.csi_nodes()? else { return Ok(QueueingHint::Queue) };
    let plugins = |node: &CsiNode| {
        node.metadata.annotations.get_str(MIGRATED_PLUGINS).cloned().unwrap_or_default()
    };
    Ok(QueueingHint::queue_if(plugins(old) != plugins(new)))
}

/// A driver helps if it stops reporting storage capacity and the pod has an inline volume of it.
pub(crate) fn after_driver_change(
    _: &QueueContext<'_>,
    pod: &PodInfo,
    objects: &EventObjects,
) -> HintResult {
    let (Some(old), Some(new)) = objects.csi_drivers()? else { return Ok(QueueingHint::Queue) };
    let stopped =
        old.spec.storage_capacity == Some(true) && new.spec.storage_capacity != Some(true);
    let mut sources = pod.pod.spec.volumes.iter().filter_map(|volume| volume.csi.as_ref());
    Ok(QueueingHint::queue_if(stopped && sources.any(|source| source.driver == new.metadata.name)))
}

/// A CSIStorageCapacity helps if it is new or larger than before.
pub(crate) fn after_capacity_change(
    _: &QueueContext<'_>,
    _: &PodInfo,
    objects: &EventObjects,
) -> HintResult {
    let (Some(old), Some(new)) = objects.csi_storage_capacities()? else {
        return Ok(QueueingHint::Queue);
    };
    let Some(now) = limit(new) else { return Ok(QueueingHint::Skip) };
    Ok(QueueingHint::queue_if(limit(old).is_none_or(|before| now.value() > before.value())))
}
