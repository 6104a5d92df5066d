//! Finds the resource claims of a pod and validates their requests.
//!
//! Upstream: `staging/src/k8s.io/dynamic-resource-allocation/resourceclaim/resourceclaim.go`.

use std::sync::Arc;

use kubestep_api::intern::Symbol;
use kubestep_api::{DeviceRequest, Name, Pod, PodResourceClaim, ResourceClaim};
use kubestep_config::{Feature, FeatureGates};
use kubestep_framework::error::PluginError;
use kubestep_framework::plugin::{CycleContext, QueueContext};
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::status::Status;

use super::workload;

/// The claims of a pod in the order of the spec, without those that turned out not to be needed.
///
/// # Errors
/// Upstream's message: which claim cannot be used, and why.
pub fn resolve(pod: &Pod, cx: &QueueContext<'_>) -> Result<Vec<Arc<ResourceClaim>>, PluginError> {
    Ok(named(pod, cx)?.into_iter().map(|(_, claim)| claim).collect())
}

/// Like [`resolve`], with the names by which the pod's containers reference the claims.
pub fn named(
    pod: &Pod,
    cx: &QueueContext<'_>,
) -> Result<Vec<(Symbol, Arc<ResourceClaim>)>, PluginError> {
    let mut claims = Vec::new();
    for written in &pod.spec.resource_claims {
        let Some(name) = claim_name(pod, written)? else { continue };
        let key = NamespacedName::new(pod.metadata.namespace, name);
        let claim = cx.shared.claims.get(cx.objects, key);
        let claim = claim.ok_or_else(|| format!("could not find ResourceClaim \"{key}\""))?;
        if claim.metadata.deletion_timestamp.is_some() {
            return Err(format!("resourceclaim \"{name}\" is being deleted").into());
        }
        if written.resource_claim_name.is_none() {
            check_owner(pod, &claim, cx.features)?;
        }
        claims.push((written.name, claim));
    }
    Ok(claims)
}

/// The name of the claim; `None` if none is needed.
fn claim_name(pod: &Pod, written: &PodResourceClaim) -> Result<Option<Name>, PluginError> {
    if written.resource_claim_name.is_some() {
        return Ok(written.resource_claim_name);
    }
    if written.resource_claim_template_name.is_none() {
        return Err(format!(
            "pod \"{}\", spec.resourceClaim \"{}\": none of the supported fields are set",
            pod.full_name(),
            written.name
        )
        .into());
    }
    let mut statuses = pod.status.resource_claim_statuses.iter();
    let status = statuses.find(|status| status.name == written.name);
    match status {
        Some(status) => Ok(status.resource_claim_name),
        None => Err(format!("pod \"{}\": ResourceClaim not created yet", pod.full_name()).into()),
    }
}

/// Checks that a claim created from a template is owned by the pod, or with
/// DRAWorkloadResourceClaims by the pod's group.
fn check_owner(
    pod: &Pod,
    claim: &ResourceClaim,
    features: &FeatureGates,
) -> Result<(), PluginError> {
    let owner = claim.metadata.controller();
    if owner.is_some_and(|owner| owner.uid == pod.metadata.uid) {
        return Ok(());
    }
    let group = workload::group_name(pod).filter(|_| workload::is_on(features));
    let missing = match group {
        Some(group) if owner.is_some_and(|owner| workload::is_group(owner, group)) => return Ok(()),
        Some(group) => format!("neither Pod nor PodGroup {group} is the owner"),
        None => "Pod is not owner".to_owned(),
    };
    Err(format!(
        "ResourceClaim {}/{} was not created for Pod {} ({missing})",
        claim.metadata.namespace,
        claim.metadata.name,
        pod.full_name()
    )
    .into())
}

/// Whether the claim is reserved for the pod.
pub(crate) fn is_reserved_for(claim: &ResourceClaim, pod: &Pod) -> bool {
    claim.status.reserved_for.iter().any(|user| user.uid == pod.metadata.uid)
}

/// Checks that all requests of a claim have a known type and that their device classes exist.
pub(crate) fn check_requests(claim: &ResourceClaim, cx: &CycleContext<'_>) -> Result<(), Status> {
    for request in &claim.spec.devices.requests {
        for (name, class) in classes(claim, request, cx)? {
            if class.is_empty() {
                let text = format!("request {name}: unsupported request type");
                return Err(Status::error(&text));
            }
            let key = NamespacedName::new(Symbol::EMPTY, class);
            if !cx.objects.device_classes.contains_key(&key) {
                let text = format!("request {name}: device class {class} does not exist");
                return Err(Status::unresolvable(&text));
            }
        }
    }
    Ok(())
}

/// The classes of a request, each with the name of the request or of its alternative.
fn classes(
    claim: &ResourceClaim,
    request: &DeviceRequest,
    cx: &CycleContext<'_>,
) -> Result<Vec<(String, Name)>, Status> {
    if let Some(exactly) = &request.exactly {
        return Ok(vec![(request.name.to_string(), exactly.device_class_name)]);
    }
    let problem = if request.first_available.is_empty() {
        "unknown request type"
    } else if !cx.features.enabled(Feature::DRAPrioritizedList) {
        "has subrequests, but the DRAPrioritizedList feature is disabled"
    } else {
        let alternatives = request.first_available.iter();
        return Ok(alternatives
            .map(|sub| (format!("{}/{}", request.name, sub.name), sub.device_class_name))
            .collect());
    };
    Err(Status::unresolvable(&format!(
        "resource claim {}/{}, request {}: {problem}",
        claim.metadata.namespace, claim.metadata.name, request.name
    )))
}
