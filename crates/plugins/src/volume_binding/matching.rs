//! Which of the existing volumes suits a claim best (VB-012).
//!
//! Upstream: `FindMatchingVolume` in
//! `staging/src/k8s.io/component-helpers/storage/volume/pv_helpers.go`.

use std::sync::Arc;

use kubestep_api::intern::Symbol;
use kubestep_api::selector::Selector;
use kubestep_api::{
    Node, PersistentVolume, PersistentVolumeClaim, PersistentVolumeMode, PersistentVolumePhase,
    Quantity,
};
use kubestep_framework::pod::NamespacedName;

use super::candidate::Candidate;
use super::reason::key;

/// The amount of storage a claim asks for.
pub fn requested(claim: &PersistentVolumeClaim) -> Option<&Quantity> {
    claim.spec.resources.requests.get_str("storage")
}

/// The size of a volume.
pub fn capacity(volume: &PersistentVolume) -> Quantity {
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
/// `candidates` are those of the claim's class, `chosen` what other claims of the pod have taken.
/// `pass_over` hears of every volume that does not suit, and why.
///
/// # Errors
/// The claim's selector cannot be parsed.
pub fn best<'a>(
    claim: &PersistentVolumeClaim,
    candidates: &'a [Candidate],
    node: &Node,
    chosen: &[Binding],
    mut pass_over: impl FnMut(Symbol, Unfit),
) -> Result<Option<&'a Arc<PersistentVolume>>, String> {
    let selector = selector(claim)?;
    let wanted = requested(claim).cloned().unwrap_or_default();
    let wanted = Wanted { claim, node, chosen, selector: selector.as_ref(), size: wanted };
    let mut smallest: Option<(&Candidate, Quantity)> = None;
    for candidate in candidates {
        let volume = &candidate.volume;
        let unfit = wanted.unfit(candidate);
        if let Some(why) = unfit {
            pass_over(volume.metadata.name, why);
        }
        match unfit {
            None if is_bound_to(volume, claim) => return Ok(Some(volume)),
            // Looking further is no use: the volume that is promised cannot be reached.
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

/// A volume with the claim that it is given to.
pub type Binding = (Arc<PersistentVolume>, Arc<PersistentVolumeClaim>);

/// What is wrong with a volume for a claim on a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unfit {
    /// It is bound to this claim.
    Taken(NamespacedName),
    /// Another claim of the pod gets it.
    Chosen(NamespacedName),
    /// It is smaller than what the claim asks for.
    TooSmall,
    /// It is of another mode or attributes class, or is being deleted.
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

/// What a volume is held to.
struct Wanted<'a> {
    claim: &'a PersistentVolumeClaim,
    node: &'a Node,
    chosen: &'a [Binding],
    selector: Option<&'a Selector>,
    size: Quantity,
}

impl Wanted<'_> {
    /// The first thing that is wrong with a volume. Of one that is promised to the claim, only
    /// size, kind and reach count.
    fn unfit(&self, candidate: &Candidate) -> Option<Unfit> {
        let Wanted { claim, node, chosen, selector, size } = self;
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
