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

/// What is wrong with a volume for a claim on a node.
#[derive(Clone, PartialEq, Debug)]
pub enum Unfit {
    /// It is bound to this claim, in `namespace/name`.
    Taken(String),
    /// It is smaller than what the claim asks for.
    TooSmall(Quantity),
    /// It is of another mode or attributes class, or on its way out.
    NotAlike,
    /// It is not `Available`.
    NotAvailable,
    /// The claim's selector does not select it.
    NotSelected,
    /// It cannot be reached from the node.
    OutOfReach,
    /// It lacks an access mode.
    AccessModes,
}

/// What is wrong with a volume, in the order in which [`best`] looks; `None` if it suits, unless
/// another claim of the pod has chosen it.
pub(super) fn unfit(
    claim: &PersistentVolumeClaim,
    candidate: &Candidate,
    node: &Node,
) -> Option<Unfit> {
    let volume = &candidate.volume;
    let wanted = requested(claim).cloned().unwrap_or_default();
    let taken = volume.spec.claim_ref.as_ref().filter(|_| !is_bound_to(volume, claim));
    if let Some(taken) = taken {
        return Some(Unfit::Taken(format!("{}/{}", taken.namespace, taken.name)));
    }
    let selected = || match selector(claim) {
        Ok(selector) => selector.is_none_or(|s| s.matches(&volume.metadata.labels)),
        Err(_) => false,
    };
    let promised = is_bound_to(volume, claim);
    let available = volume.status.phase == PersistentVolumePhase::Available;
    if capacity(volume) < wanted {
        Some(Unfit::TooSmall(capacity(volume)))
    } else if !is_alike(volume, claim) {
        Some(Unfit::NotAlike)
    } else if !candidate.reaches(node) {
        Some(Unfit::OutOfReach)
    } else if promised {
        None
    } else if !available {
        Some(Unfit::NotAvailable)
    } else if !selected() {
        Some(Unfit::NotSelected)
    } else {
        (!has_modes(volume, claim)).then_some(Unfit::AccessModes)
    }
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
