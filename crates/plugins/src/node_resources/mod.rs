//! NodeResourcesFit and NodeResourcesBalancedAllocation, and what they share: the incoming pod's
//! requests, and the amounts that scores are computed from.
//!
//! Upstream: `pkg/scheduler/framework/plugins/noderesources`.

pub mod balanced_allocation;
pub mod fit;

mod amounts;
mod args;
mod devices;
pub mod strategy;

pub use args::ResourceSpec;

use kubestep_api::intern::Symbol;
use kubestep_config::versions::Switch;
use kubestep_config::{Feature, FeatureGates};
use kubestep_framework::plugin::QueueContext;
use kubestep_framework::pod::PodInfo;
use kubestep_framework::pod::requests::{RequestOptions, pod_requests};
use kubestep_framework::resource::Resource;

/// The requests of an incoming pod: from its spec alone, without defaults. Negative amounts count
/// as 0.
fn incoming_request(pod: &PodInfo, features: &FeatureGates) -> Resource {
    let options = RequestOptions {
        skip_pod_level: !features.enabled(Feature::PodLevelResources),
        ..RequestOptions::default()
    };
    let mut request = Resource::from_list(&pod_requests(&pod.pod, &options));
    request.milli_cpu = request.milli_cpu.max(0);
    request.memory = request.memory.max(0);
    request.ephemeral_storage = request.ephemeral_storage.max(0);
    request.allowed_pods = 0;
    for (_, amount) in &mut request.scalars {
        *amount = (*amount).max(0);
    }
    request
}

/// Whether a device class serves the resource on nodes that do not offer it themselves.
fn is_served_by_devices(cx: &QueueContext<'_>, resource: Symbol) -> bool {
    cx.features.enabled(Feature::DRAExtendedResource)
        && cx.objects.extended_resources.class_for(resource).is_some()
}

/// Both plugins sign a pod by its requests.
fn sign_requests(
    cx: &QueueContext<'_>,
    pod: &PodInfo,
) -> Result<Vec<(&'static str, String)>, Symbol> {
    let by_use = cx.features.has(Switch::SignaturesWithExtendedResources);
    if !by_use && cx.features.enabled(Feature::DRAExtendedResource) {
        return Err("signature disabled when dra extended resources enabled".into());
    }
    let request = incoming_request(pod, cx.features);
    let mut requested = request.scalars.iter().filter(|(_, amount)| *amount != 0);
    if requested.any(|(name, _)| is_served_by_devices(cx, *name)) {
        let reason = "signature disabled when dra extended resources are used in the cluster";
        return Err(Symbol::new(reason));
    }
    let Resource { milli_cpu, memory, ephemeral_storage, .. } = request;
    let scalars: Vec<String> =
        request.scalars.iter().map(|(name, amount)| format!("{name:?}:{amount}")).collect();
    let scalars =
        if scalars.is_empty() { "null".to_owned() } else { format!("{{{}}}", scalars.join(",")) };
    let text = format!(
        "{{\"MilliCPU\":{milli_cpu},\"Memory\":{memory},\"EphemeralStorage\":{ephemeral_storage},\
         \"AllowedPodNumber\":0,\"ScalarResources\":{scalars}}}"
    );
    Ok(vec![("v1.Pod.Spec.ContainerRequestsAndOverheads()", text)])
}

#[cfg(test)]
mod tests;
