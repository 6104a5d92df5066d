//! Queueing hints: which events can make a pod schedulable that NodeVolumeLimits rejected.

use crate::volumes;
use crate::volumes::migration::{InTree, inline_handle};
use kubestep_api::intern::Symbol;
use kubestep_api::{CsiNode, Object, Pod, VolumeAttachment};
use kubestep_config::FeatureGates;
use kubestep_config::versions::Switch;
use kubestep_framework::events::{EventObjects, EventResource};

use super::count::may_attach;
use crate::placed::is_placed;

/// Whether the event can make `pod` schedulable.
///
/// # Errors
/// The event carries unexpected objects.
pub fn helps(
    features: &FeatureGates,
    pod: &Pod,
    resource: EventResource,
    objects: &EventObjects,
) -> Result<bool, String> {
    let unexpected = |place: &str| format!("unexpected objects in isSchedulableAfter{place}");
    match (resource, &objects.old, &objects.new) {
        (EventResource::CsiNode, Some(Object::CsiNode(old)), Some(Object::CsiNode(new))) => {
            Ok(limit_rose(old, new))
        }
        (EventResource::CsiNode, ..) => Err(unexpected("CSINodeUpdated")),
        (EventResource::PersistentVolumeClaim, _, new) => {
            let claim = volumes::new_claim_beside(pod, new.as_ref())?;
            Ok(claim.is_some_and(|claim| {
                volumes::claims(pod).any(|used| used.key.name == claim.metadata.name)
            }))
        }
        (EventResource::VolumeAttachment, Some(Object::VolumeAttachment(attachment)), _) => {
            attachment_helps(pod, attachment)
        }
        (EventResource::VolumeAttachment, ..) => Err(unexpected("VolumeAttachmentDeleted")),
        (_, Some(Object::Pod(deleted)), _) => Ok(had_volumes(features, deleted)),
        _ => Err(unexpected("PodDeleted")),
    }
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
fn attachment_helps(pod: &Pod, attachment: &VolumeAttachment) -> Result<bool, String> {
    for volume in &pod.spec.volumes {
        if volume.persistent_volume_claim.is_some() {
            return Ok(true);
        }
        let Some(in_tree) = InTree::of_volume(volume) else { continue };
        if in_tree.counts
            && let Err(why) = inline_handle(volume)
        {
            return Err(format!("converting volume({}) from inline to csi: {why}", volume.name));
        }
        if attachment.spec.attacher == in_tree.driver {
            return Ok(true);
        }
    }
    Ok(false)
}
