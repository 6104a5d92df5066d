//! Checks and classifies the claims of a pod, before any node is considered.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::volumes::{self, ClaimVolume};
use kubestep_api::intern::Symbol;
use kubestep_api::{
    Name, ObjectMeta, PersistentVolumeClaim, PersistentVolumeClaimPhase, Pod, VolumeBindingMode,
};
use kubestep_framework::error::PluginError;
use kubestep_framework::objects::Objects;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::shared::assumed_volumes::AssumedVolumes;
use kubestep_framework::status::Status;

use super::candidate::{CandidateVolume, class_of_volume};

/// On a claim: binding is complete. Its value does not matter.
pub const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";

/// The claims of a pod by their binding state.
#[derive(Clone, Default, Debug)]
pub struct Claims {
    /// Claims that are bound, in order.
    pub bound: Vec<BoundClaim>,
    /// Claims that bind to an existing or provisioned volume when the node is known.
    pub delayed: Vec<Arc<PersistentVolumeClaim>>,
    /// The volumes of those claims' classes, by class name.
    pub candidates: BTreeMap<Name, Vec<CandidateVolume>>,
}

impl Claims {
    /// Whether all claims are bound, to volumes that every node can access.
    pub(super) fn suit_every_node(&self) -> bool {
        let volumes = || self.bound.iter().map(|claim| &claim.volume);
        self.delayed.is_empty()
            && volumes().all(|volume| volume.as_ref().is_some_and(CandidateVolume::reaches_all))
    }
}

/// A claim that is bound.
#[derive(Clone, Debug)]
pub struct BoundClaim {
    /// The claim, by namespace and name.
    pub claim: NamespacedName,
    /// The name of its volume.
    pub name: Name,
    /// The volume; `None` if it does not exist.
    pub volume: Option<CandidateVolume>,
}

/// Whether the pod has claims.
///
/// # Errors
/// Upstream's message for a claim that the pod cannot use: it does not exist, is being deleted,
/// lost its volume, or is an ephemeral volume's claim of another owner.
pub fn check(pod: &Pod, objects: &Objects) -> Result<bool, PluginError> {
    let mut any = false;
    for claim in volumes::claims(pod) {
        any = true;
        check_one(pod, claim, objects)?;
    }
    Ok(any)
}

fn check_one(pod: &Pod, volume: ClaimVolume, objects: &Objects) -> Result<(), PluginError> {
    let name = volume.key.name;
    let claim =
        volumes::find_claim(objects, volume.key).map_err(|error| match volume.ephemeral {
            true => PluginError::Other(format!(
                "waiting for ephemeral volume controller to create the persistentvolumeclaim \
                 \"{name}\""
            )),
            false => error,
        })?;
    if claim.status.phase == PersistentVolumeClaimPhase::Lost {
        return Err(format!(
            "persistentvolumeclaim \"{name}\" bound to non-existent persistentvolume \"{}\"",
            claim.spec.volume_name
        )
        .into());
    }
    if claim.metadata.deletion_timestamp.is_some() {
        return Err(format!("persistentvolumeclaim \"{name}\" is being deleted").into());
    }
    if volume.ephemeral { volumes::check_owner(pod, claim) } else { Ok(()) }
}

/// Sorts the claims of a pod: bound claims, and those that wait for the first consumer.
///
/// # Errors
/// A claim with immediate binding is not bound, or its class has no binding mode.
pub(crate) fn classify(
    pod: &Pod,
    objects: &Objects,
    assumed: &AssumedVolumes,
) -> Result<Claims, Status> {
    let mut claims = Claims::default();
    let mut immediate = false;
    for key in volumes::claims(pod).map(|claim| claim.key) {
        let claim = assumed.claims.get(objects, key).ok_or_else(|| {
            let name = key.to_string();
            let missing = volumes::not_found("persistentvolumeclaims", (&*name).into());
            Status::error(format!("error getting PVC \"{key}\": {missing}"))
        })?;
        if is_bound(claim) {
            let name = claim.spec.volume_name;
            let volume = assumed.volume(objects, name).map(CandidateVolume::new);
            claims.bound.push(BoundClaim { claim: key, name, volume });
        } else if is_delayed(claim, objects)? && claim.spec.volume_name.is_empty() {
            claims.delayed.push(claim.clone());
        } else {
            immediate = true;
        }
    }
    if immediate {
        return Err(Status::unresolvable("pod has unbound immediate PersistentVolumeClaims"));
    }
    claims.candidates = candidates(&claims.delayed, objects, assumed);
    Ok(claims)
}

/// Whether the claim is fully bound to a volume.
pub fn is_bound(claim: &PersistentVolumeClaim) -> bool {
    let ObjectMeta { annotations, .. } = &claim.metadata;
    !claim.spec.volume_name.is_empty() && annotations.get_str(BIND_COMPLETED).is_some()
}

fn is_delayed(claim: &PersistentVolumeClaim, objects: &Objects) -> Result<bool, Status> {
    let name = volumes::class_of(claim);
    let class = objects.storage_classes.get(&NamespacedName::new(Symbol::EMPTY, name));
    let Some(class) = class else { return Ok(false) };
    let mode = class.volume_binding_mode.ok_or_else(|| {
        Status::error(format!("VolumeBindingMode not set for StorageClass \"{name}\""))
    })?;
    Ok(mode == VolumeBindingMode::WaitForFirstConsumer)
}

fn candidates(
    delayed: &[Arc<PersistentVolumeClaim>],
    objects: &Objects,
    assumed: &AssumedVolumes,
) -> BTreeMap<Name, Vec<CandidateVolume>> {
    let classes = delayed.iter().map(|claim| (volumes::class_of(claim), Vec::new()));
    let mut candidates: BTreeMap<Name, Vec<CandidateVolume>> = classes.collect();
    if candidates.is_empty() {
        return candidates;
    }
    for volume in assumed.volumes.iter(objects) {
        if let Some(of_class) = candidates.get_mut(&class_of_volume(volume)) {
            of_class.push(CandidateVolume::new(volume));
        }
    }
    // Of volumes that fit equally well the first one by name is taken.
    for of_class in candidates.values_mut() {
        of_class.sort_unstable_by_key(|candidate| candidate.volume.metadata.name);
    }
    candidates
}
