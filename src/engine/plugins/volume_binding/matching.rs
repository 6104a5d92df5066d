//! Which of the existing volumes suits a claim best (VB-012).
//!
//! Upstream: `FindMatchingVolume` in
//! `staging/src/k8s.io/component-helpers/storage/volume/pv_helpers.go`.

use std::sync::Arc;

use crate::api::selector::Selector;
use crate::api::{
    Node, PersistentVolume, PersistentVolumeClaim, PersistentVolumeMode, PersistentVolumePhase,
    Quantity,
};
use crate::intern::Symbol;

use super::candidate::Candidate;

/// The amount of storage a claim asks for.
pub fn requested(claim: &PersistentVolumeClaim) -> Option<&Quantity> {
    claim.spec.resources.requests.get_str("storage")
}

fn capacity(volume: &PersistentVolume) -> Quantity {
    volume.spec.capacity.get_str("storage").cloned().unwrap_or_default()
}

/// Whether the volume is promised to the claim, or given to it.
pub fn is_bound_to(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    volume.spec.claim_ref.as_ref().is_some_and(|reference| {
        reference.name == claim.metadata.name
            && reference.namespace == claim.metadata.namespace
            && (reference.uid.is_empty() || reference.uid == claim.metadata.uid)
    })
}

/// The volume promised to the claim if there is one, else the smallest that is large enough.
/// `candidates` are those of the claim's class, `chosen` those that other claims of the pod
/// have taken.
///
/// # Errors
/// The claim's selector cannot be parsed.
pub fn best<'a>(
    claim: &PersistentVolumeClaim,
    candidates: &'a [Candidate],
    node: &Node,
    chosen: &[Symbol],
) -> Result<Option<&'a Arc<PersistentVolume>>, String> {
    let selector = selector(claim)?;
    let wanted = requested(claim).cloned().unwrap_or_default();
    let mut smallest: Option<(&Candidate, Quantity)> = None;
    for candidate in candidates {
        let volume = &candidate.volume;
        let size = capacity(volume);
        let taken = volume.spec.claim_ref.is_some() && !is_bound_to(volume, claim);
        let unfit = taken || chosen.contains(&volume.metadata.name) || size < wanted;
        if unfit || !is_alike(volume, claim) {
            continue;
        }
        let reachable = candidate.reaches(node);
        if is_bound_to(volume, claim) {
            // Out of reach of the node, it is no use to look for another one.
            return Ok(reachable.then_some(volume));
        }
        let available = volume.status.phase == PersistentVolumePhase::Available;
        if available
            && selector.as_ref().is_none_or(|selector| selector.matches(&volume.metadata.labels))
            && reachable
            && has_modes(volume, claim)
            && smallest.as_ref().is_none_or(|(_, least)| *least > size)
        {
            smallest = Some((candidate, size));
        }
    }
    Ok(smallest.map(|(candidate, _)| &candidate.volume))
}

/// `None` without a selector: then labels do not matter.
fn selector(claim: &PersistentVolumeClaim) -> Result<Option<Selector>, String> {
    let Some(written) = &claim.spec.selector else { return Ok(None) };
    Selector::new(Some(written)).map(Some).map_err(|err| {
        format!(
            "error creating internal label selector for claim: {}/{}: {err}",
            claim.metadata.namespace, claim.metadata.name
        )
    })
}

/// Same mode, same attributes class, and not on its way out.
fn is_alike(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let (has, wants) = (&volume.spec, &claim.spec);
    let mode = |mode: Option<PersistentVolumeMode>| mode.unwrap_or_default();
    let class = |class: Option<Symbol>| class.unwrap_or_default();
    mode(has.volume_mode) == mode(wants.volume_mode)
        && class(has.volume_attributes_class_name) == class(wants.volume_attributes_class_name)
        && volume.metadata.deletion_timestamp.is_none()
}

fn has_modes(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    claim.spec.access_modes.iter().all(|mode| volume.spec.access_modes.contains(mode))
}
