//! The claims of a pod, before any node is looked at.

use crate::api::{PersistentVolumeClaimPhase, Pod};
use crate::engine::objects::Objects;
use crate::engine::volumes::{self, ClaimVolume};

/// Whether the pod has claims at all; or why it cannot run with them (VB-002).
pub fn check(pod: &Pod, objects: &Objects) -> Result<bool, String> {
    let mut any = false;
    for claim in volumes::claims(pod) {
        any = true;
        check_one(pod, claim, objects)?;
    }
    Ok(any)
}

fn check_one(pod: &Pod, volume: ClaimVolume, objects: &Objects) -> Result<(), String> {
    let name = volume.key.name;
    let claim =
        volumes::find_claim(objects, volume.key).map_err(|text| match volume.ephemeral {
            true => format!(
                "waiting for ephemeral volume controller to create the persistentvolumeclaim \
             \"{name}\""
            ),
            false => text,
        })?;
    if claim.status.phase == PersistentVolumeClaimPhase::Lost {
        return Err(format!(
            "persistentvolumeclaim \"{name}\" bound to non-existent persistentvolume \"{}\"",
            claim.spec.volume_name
        ));
    }
    if claim.metadata.deletion_timestamp.is_some() {
        return Err(format!("persistentvolumeclaim \"{name}\" is being deleted"));
    }
    if volume.ephemeral { volumes::check_owner(pod, claim) } else { Ok(()) }
}
