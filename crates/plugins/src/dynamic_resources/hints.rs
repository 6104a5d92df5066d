//! Queueing hints: which events can make a pod schedulable that DynamicResources rejected.

use kubestep_api::ResourceClaim;
use kubestep_config::versions::Switch;
use kubestep_framework::events::{EventObjects, HintResult, QueueingHint};
use kubestep_framework::plugin::QueueContext;
use kubestep_framework::pod::PodInfo;

use super::claims::resolve;

/// A claim helps if it was deallocated, or if the pod uses it and its status changed.
pub(crate) fn after_claim_change(
    cx: &QueueContext<'_>,
    pod: &PodInfo,
    objects: &EventObjects,
) -> HintResult {
    let (old, Some(new)) = objects.resource_claims()? else { return Ok(QueueingHint::Queue) };
    Ok(QueueingHint::queue_if(claim_helps(cx, pod, old, new)))
}

/// A claim that was generated for the pod helps if it was the last one missing.
pub(crate) fn after_claim_generation(
    cx: &QueueContext<'_>,
    pod: &PodInfo,
    objects: &EventObjects,
) -> HintResult {
    let updated = objects.updated_pod(pod.uid())?;
    Ok(QueueingHint::queue_if(updated.is_some_and(|pod| resolve(pod, cx).is_ok())))
}

/// A slice helps; in 1.32, only a pod whose claims exist.
pub(crate) fn after_slice_change(
    cx: &QueueContext<'_>,
    pod: &PodInfo,
    _: &EventObjects,
) -> HintResult {
    let helps = cx.features.has(Switch::SlicesRequeueAll) || resolve(&pod.pod, cx).is_ok();
    Ok(QueueingHint::queue_if(helps))
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
