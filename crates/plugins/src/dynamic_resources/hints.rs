//! Queueing hints: which events can make a pod schedulable that DynamicResources rejected.

use kubestep_api::{Object, ResourceClaim};
use kubestep_framework::events::EventObjects;
use kubestep_framework::plugin::QueueContext;
use kubestep_framework::pod::PodInfo;

use super::claims::resolve;

/// Whether a change of a claim, or of the pod itself, can make the pod schedulable.
///
/// # Errors
/// The event carries neither a claim nor a pod.
pub fn helps(cx: &QueueContext<'_>, pod: &PodInfo, event: &EventObjects) -> Result<bool, String> {
    match (&event.old, &event.new) {
        (old, Some(Object::ResourceClaim(new))) => {
            let old = match old {
                Some(Object::ResourceClaim(old)) => Some(old.as_ref()),
                _ => None,
            };
            Ok(claim_helps(cx, pod, old, new))
        }
        (_, Some(Object::Pod(new))) => {
            Ok(new.metadata.uid == pod.uid() && resolve(new, cx).is_ok())
        }
        _ => Err("unexpected object in isSchedulableAfterClaimChange".to_owned()),
    }
}

fn claim_helps(
    cx: &QueueContext<'_>,
    pod: &PodInfo,
    old: Option<&ResourceClaim>,
    new: &ResourceClaim,
) -> bool {
    let Ok(claims) = resolve(&pod.pod, cx) else { return false };
    let freed =
        |old: &ResourceClaim| old.status.allocation.is_some() && new.status.allocation.is_none();
    if old.is_some_and(freed) {
        return true;
    }
    let uses = claims.iter().any(|claim| claim.metadata.uid == new.metadata.uid);
    uses && old.is_none_or(|old| old.status != new.status)
}
