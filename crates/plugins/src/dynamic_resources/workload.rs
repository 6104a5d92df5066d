//! Claims that all pods of a group share (alpha, behind DRAWorkloadResourceClaims).
//!
//! Such a claim is reserved for the group instead of each pod. Upstream: `BindTo`,
//! `IsReservedForPod` and `NameFromPodGroup` in
//! `staging/src/k8s.io/dynamic-resource-allocation/resourceclaim`, and
//! `unreservePodGroupClaims` in `dynamicresources.go`.

use std::sync::Arc;

use kubestep_api::intern::Symbol;
use kubestep_api::{
    Name, OwnerReference, Pod, PodGroup, PodGroupResourceClaim, ResourceClaim,
    ResourceClaimConsumerReference,
};
use kubestep_config::{Feature, FeatureGates};
use kubestep_framework::error::PluginError;
use kubestep_framework::objects::Objects;
use kubestep_framework::plugin::{CycleContext, PostFilterContext};
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::pod_groups::pod_group_of;
use kubestep_framework::status::Status;

use super::claims::is_reserved_for;

const API_GROUP: &str = "scheduling.k8s.io";

/// Whether pod groups may have claims.
pub fn is_on(features: &FeatureGates) -> bool {
    features.enabled(Feature::DRAWorkloadResourceClaims)
}

/// The name of the pod's group.
pub(crate) fn group_name(pod: &Pod) -> Option<Name> {
    pod.spec.scheduling_group.as_ref()?.pod_group_name
}

/// Whether an owner reference names this group. A pod does not know the UID of its group.
pub fn is_group(owner: &OwnerReference, group: Name) -> bool {
    let prefix = owner.api_version.as_str().strip_prefix(API_GROUP);
    owner.name == group
        && owner.kind == "PodGroup"
        && prefix.is_some_and(|rest| rest.starts_with('/'))
}

/// Whether the claim is reserved for the pod, or for its group.
pub(crate) fn is_reserved_for_pod_or_group(
    claim: &ResourceClaim,
    pod: &Pod,
    features: &FeatureGates,
) -> bool {
    let group = group_name(pod).filter(|_| is_on(features));
    let is_group = |user: &ResourceClaimConsumerReference| {
        user.api_group == API_GROUP && user.resource == "podgroups" && Some(user.name) == group
    };
    is_reserved_for(claim, pod)
        || (group.is_some() && claim.status.reserved_for.iter().any(is_group))
}

/// For each claim of the pod's spec, the consumer to reserve it for; `None` for the pod itself.
///
/// # Errors
/// The pod's group does not exist.
pub fn bindings(
    cx: &CycleContext<'_>,
) -> Result<Vec<Option<ResourceClaimConsumerReference>>, PluginError> {
    let pod = &cx.pod.pod;
    if !is_on(cx.features) || group_name(pod).is_none() {
        return Ok(Vec::new());
    }
    let group = group_object(cx.objects, pod)?;
    let shared = |name: Symbol, own: Option<Name>, template: Option<Name>| {
        let same = |claim: &PodGroupResourceClaim| {
            claim.name == name
                && claim.resource_claim_name == own
                && claim.resource_claim_template_name == template
        };
        group.spec.resource_claims.iter().any(same).then(|| reference(group))
    };
    let claims = pod.spec.resource_claims.iter();
    Ok(claims
        .map(|c| shared(c.name, c.resource_claim_name, c.resource_claim_template_name))
        .collect())
}

fn reference(group: &PodGroup) -> ResourceClaimConsumerReference {
    ResourceClaimConsumerReference {
        api_group: API_GROUP.into(),
        resource: "podgroups".into(),
        name: group.metadata.name,
        uid: group.metadata.uid,
    }
}

fn group_object<'a>(objects: &'a Objects, pod: &Pod) -> Result<&'a Arc<PodGroup>, PluginError> {
    let key = pod_group_of(pod).unwrap_or_default();
    let missing = || format!("podgroup.scheduling.k8s.io {:?} not found", key.name);
    Ok(objects.pod_groups.get(&key).ok_or_else(missing)?)
}

/// Removes the group's reservation from one of its claims if none of its pods has a node, so that
/// the next attempt can allocate other devices. `None` if there is nothing to unreserve.
pub(crate) fn unreserve_group(cx: &mut PostFilterContext<'_>) -> Option<Status> {
    let cycle = cx.cycle;
    let pod = &cycle.pod.pod;
    let key = pod_group_of(pod).filter(|_| is_on(cycle.features))?;
    let state = match cycle.shared.pod_groups.get(key) {
        Ok(state) => state,
        Err(text) => return Some(Status::error(text)),
    };
    // Pods placed in this cycle do not count.
    let before = cycle.shared.group_cycle.as_ref().map(|group| group.scheduled_before);
    if before.unwrap_or_else(|| state.scheduled()) > 0 {
        return None;
    }
    let freed = group_object(cycle.objects, pod).and_then(|group| free_one(cx, group));
    match freed {
        Ok(true) => Some(Status::unresolvable("ResourceClaim unreserved for PodGroup")),
        Ok(false) => None,
        Err(text) => Some(Status::error(&text)),
    }
}

fn free_one(cx: &mut PostFilterContext<'_>, group: &PodGroup) -> Result<bool, PluginError> {
    let (shared, objects) = (cx.cycle.shared, cx.cycle.objects);
    for written in &group.spec.resource_claims {
        let Some(name) = claim_name(group, written)? else { continue };
        let key = NamespacedName::new(group.metadata.namespace, name);
        let claim = shared.claims.get(objects, key);
        let claim = claim.ok_or_else(|| format!("could not find ResourceClaim \"{key}\""))?;
        let owner = claim.metadata.controller();
        let is_own = owner.is_some_and(|owner| owner.uid == group.metadata.uid);
        if written.resource_claim_name.is_none() && !is_own {
            continue;
        }
        let reserved = is_reserved_for_pod_or_group(&claim, &cx.cycle.pod.pod, cx.cycle.features);
        if claim.status.allocation.is_some() && reserved {
            // If a claim cannot be written, the next attempt tries again.
            if cx.host.release_claim(&claim, group.metadata.uid).is_ok() {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// The name of a claim of the group; `None` if none is needed.
fn claim_name(
    group: &PodGroup,
    written: &PodGroupResourceClaim,
) -> Result<Option<Name>, PluginError> {
    if written.resource_claim_name.is_some() {
        return Ok(written.resource_claim_name);
    }
    let key = NamespacedName::new(group.metadata.namespace, group.metadata.name);
    if written.resource_claim_template_name.is_none() {
        return Err(format!(
            "PodGroup {key}, spec.resourceClaim {}: none of the supported fields are set",
            written.name
        )
        .into());
    }
    let mut statuses = group.status.resource_claim_statuses.iter();
    match statuses.find(|status| status.name == written.name) {
        Some(status) => Ok(status.resource_claim_name),
        None => Err(format!("PodGroup {key}: ResourceClaim not created yet").into()),
    }
}
