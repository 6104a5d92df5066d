//! Finds the existing volume that matches a claim best.
//!
//! Upstream: `FindMatchingVolume` in
//! `staging/src/k8s.io/component-helpers/storage/volume/pv_helpers.go`.

use std::sync::Arc;

use kubestep_api::selector::Selector;
use kubestep_api::{
    Name, Node, PersistentVolume, PersistentVolumeClaim, PersistentVolumeMode,
    PersistentVolumePhase, Quantity,
};
use kubestep_framework::error::PluginError;
use kubestep_framework::pod::NamespacedName;

use super::candidate::CandidateVolume;
use super::reason::key;

/// The storage that a claim requests.
pub fn requested(claim: &PersistentVolumeClaim) -> Option<&Quantity> {
    claim.spec.resources.requests.get_str("storage")
}

/// The capacity of a volume.
pub fn capacity(volume: &PersistentVolume) -> Quantity {
    volume.spec.capacity.get_str("storage").cloned().unwrap_or_default()
}

/// Whether the volume's claimRef names the claim.
pub(crate) fn is_bound_to(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    volume.spec.claim_ref.as_ref().is_some_and(|reference| {
        reference.name == claim.metadata.name
            && reference.namespace == claim.metadata.namespace
            && (reference.uid.is_empty() || reference.uid == claim.metadata.uid)
    })
}

/// The volume that is pre-bound to the claim if there is one, else the smallest volume that is
/// large enough. `candidates` are the volumes of the claim's class, `chosen` those that the pod's
/// other claims get. `pass_over` is called for every volume that does not match, with the reason.
///
/// # Errors
/// The claim's selector is invalid.
pub fn best<'a>(
    claim: &PersistentVolumeClaim,
    candidates: &'a [CandidateVolume],
    node: &Node,
    chosen: &[VolumeMatch],
    mut pass_over: impl FnMut(Name, Unfit),
) -> Result<Option<&'a Arc<PersistentVolume>>, PluginError> {
    let selector = selector(claim)?;
    let wanted = requested(claim).cloned().unwrap_or_default();
    let wanted =
        VolumeRequirements { claim, node, chosen, selector: selector.as_ref(), size: wanted };
    let mut smallest: Option<(&CandidateVolume, Quantity)> = None;
    for candidate in candidates {
        let volume = &candidate.volume;
        let unfit = wanted.unfit(candidate);
        if let Some(why) = unfit {
            pass_over(volume.metadata.name, why);
        }
        match unfit {
            None if is_bound_to(volume, claim) => return Ok(Some(volume)),
            // A pre-bound volume that the node cannot access rules out any other volume.
            Some(Unfit::OutOfReach) if is_bound_to(volume, claim) => return Ok(None),
            None => {
                let size = capacity(volume);
                if smallest.as_ref().is_none_or(|(_, least)| *least > size) {
                    smallest = Some((candidate, size));
                }
            }
            Some(_) => {}
        }
    }
    Ok(smallest.map(|(candidate, _)| &candidate.volume))
}

/// A volume and the claim to bind it to.
pub type VolumeMatch = (Arc<PersistentVolume>, Arc<PersistentVolumeClaim>);

/// Why a volume does not match a claim on a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unfit {
    /// It is bound to this claim.
    Taken(NamespacedName),
    /// It is chosen for this claim of the same pod.
    Chosen(NamespacedName),
    /// Its capacity is below the request.
    TooSmall,
    /// Its volume mode or attributes class differs, or it is being deleted.
    NotAlike,
    /// Its phase is not `Available`.
    NotAvailable,
    /// The claim's selector does not match it.
    NotSelected,
    /// Its node affinity does not match the node.
    OutOfReach,
    /// It lacks an access mode.
    AccessModes,
}

/// The properties that a volume must match.
struct VolumeRequirements<'a> {
    claim: &'a PersistentVolumeClaim,
    node: &'a Node,
    chosen: &'a [VolumeMatch],
    selector: Option<&'a Selector>,
    size: Quantity,
}

impl VolumeRequirements<'_> {
    /// The first mismatch of a volume. For a volume pre-bound to the claim, only capacity, volume
    /// mode, attributes class, deletion and node affinity are checked.
    fn unfit(&self, candidate: &CandidateVolume) -> Option<Unfit> {
        let VolumeRequirements { claim, node, chosen, selector, size } = self;
        let volume = &candidate.volume;
        let promised = is_bound_to(volume, claim);
        if let Some(other) = volume.spec.claim_ref.as_ref().filter(|_| !promised) {
            return Some(Unfit::Taken(NamespacedName::new(other.namespace, other.name)));
        }
        let by = chosen.iter().find(|(other, _)| other.metadata.name == volume.metadata.name);
        if let Some((_, by)) = by {
            return Some(Unfit::Chosen(key(by)));
        }
        if capacity(volume) < *size {
            return Some(Unfit::TooSmall);
        }
        if !is_alike(volume, claim) {
            return Some(Unfit::NotAlike);
        }
        if !promised && volume.status.phase != PersistentVolumePhase::Available {
            return Some(Unfit::NotAvailable);
        }
        if !promised && selector.is_some_and(|s| !s.matches(&volume.metadata.labels)) {
            return Some(Unfit::NotSelected);
        }
        if !candidate.reaches(node) {
            return Some(Unfit::OutOfReach);
        }
        (!promised && !has_modes(volume, claim)).then_some(Unfit::AccessModes)
    }
}

/// The claim's selector; `None` if it has none, and labels then do not matter.
fn selector(claim: &PersistentVolumeClaim) -> Result<Option<Selector>, PluginError> {
    let Some(written) = &claim.spec.selector else { return Ok(None) };
    let selector = Selector::new(Some(written)).map_err(|err| {
        format!(
            "error creating internal label selector for claim: {}/{}: {err}",
            claim.metadata.namespace, claim.metadata.name
        )
    });
    Ok(Some(selector?))
}

/// Whether volume mode and attributes class are equal, and the volume is not being deleted.
fn is_alike(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let (has, wants) = (&volume.spec, &claim.spec);
    let mode = |mode: Option<PersistentVolumeMode>| mode.unwrap_or_default();
    let class = |class: Option<Name>| class.unwrap_or_default();
    mode(has.volume_mode) == mode(wants.volume_mode)
        && class(has.volume_attributes_class_name) == class(wants.volume_attributes_class_name)
        && volume.metadata.deletion_timestamp.is_none()
}

fn has_modes(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    claim.spec.access_modes.iter().all(|mode| volume.spec.access_modes.contains(mode))
}
