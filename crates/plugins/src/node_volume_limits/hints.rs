//! Queueing hints: which events can make a pod schedulable that NodeVolumeLimits rejected.

use crate::volumes;
use crate::volumes::migration::{InTree, inline_handle};
use kubestep_api::intern::Symbol;
use kubestep_api::{CsiNode, Pod, VolumeAttachment};
use kubestep_config::FeatureGates;
use kubestep_config::versions::Switch;
use kubestep_framework::error::PluginError;
use kubestep_framework::events::{EventObjects, HintResult, QueueingHint};
use kubestep_framework::plugin::QueueContext;
use kubestep_framework::pod::PodInfo;

use super::count::may_attach;
use crate::is_placed;

/// A CSINode helps if it has a higher limit than before.
pub(crate) fn after_limit_change(
    _: &QueueContext<'_>,
    _: &PodInfo,
    objects: &EventObjects,
) -> HintResult {
    let (Some(old), Some(new)) = objects.csi_nodes()? else { return Ok(QueueingHint::Queue) };
    Ok(QueueingHint::queue_if(limit_rose(old, new)))
}

/// A new claim helps if the pod uses it.
pub(crate) fn after_claim_creation(
    _: &QueueContext<'_>,
    pod: &PodInfo,
    objects: &EventObjects,
) -> HintResult {
    Ok(QueueingHint::queue_if(volumes::uses_new_claim(&pod.pod, objects)?))
}

/// A deleted pod helps if it had volumes that count.
pub(crate) fn after_pod_deletion(
    cx: &QueueContext<'_>,
    _: &PodInfo,
    objects: &EventObjects,
) -> HintResult {
    let (Some(deleted), _) = objects.pods()? else { return Ok(QueueingHint::Queue) };
    Ok(QueueingHint::queue_if(had_volumes(cx.features, deleted)))
}

/// A volume that was detached helps if the pod may need room for one of its driver.
pub(crate) fn after_detachment(
    _: &QueueContext<'_>,
    pod: &PodInfo,
    objects: &EventObjects,
) -> HintResult {
    let (Some(attachment), _) = objects.volume_attachments()? else {
        return Ok(QueueingHint::Queue);
    };
    Ok(QueueingHint::queue_if(attachment_helps(&pod.pod, attachment)?))
}

/// Whether the limit of some driver is higher now; a missing limit counts as 0.
fn limit_rose(old: &CsiNode, new: &CsiNode) -> bool {
    let limit_in = |node: &CsiNode, driver: Symbol| {
        let entry = node.spec.drivers.iter().rfind(|entry| entry.name == driver);
        entry.and_then(|entry| entry.allocatable.as_ref()?.count).unwrap_or(0)
    };
    let drivers = new.spec.drivers.iter();
    drivers.into_iter().any(|entry| {
        let now = entry.allocatable.as_ref().and_then(|limits| limits.count).unwrap_or(0);
        now > limit_in(old, entry.name)
    })
}

/// Whether the deleted pod had a node or nominated node, and volumes that count.
fn had_volumes(features: &FeatureGates, deleted: &Pod) -> bool {
    let placed = is_placed(deleted, features, Switch::VolumeLimitsHintCountsNominated);
    placed && deleted.spec.volumes.iter().any(may_attach)
}

/// A claim may be of any driver; the driver of an inline volume is known.
fn attachment_helps(pod: &Pod, attachment: &VolumeAttachment) -> Result<bool, PluginError> {
    for volume in &pod.spec.volumes {
        if volume.persistent_volume_claim.is_some() {
            return Ok(true);
        }
        let Some(in_tree) = InTree::of_volume(volume) else { continue };
        if in_tree.counts
            && let Err(why) = inline_handle(volume)
        {
            let text = format!("converting volume({}) from inline to csi: {why}", volume.name);
            return Err(text.into());
        }
        if attachment.spec.attacher == in_tree.driver {
            return Ok(true);
        }
    }
    Ok(false)
}
