//! NodeResourcesFit and NodeResourcesBalancedAllocation, and what they share: the resources in their
//! arguments, the incoming pod's requests, and the amounts that scores are computed from.
//!
//! Upstream: `pkg/scheduler/framework/plugins/noderesources`.

pub mod balanced_allocation;
pub mod fit;

mod amounts;
mod devices;
pub mod strategy;

use kubestep_api::intern::Symbol;
use kubestep_config::versions::Switch;
use kubestep_config::{Feature, FeatureGates, argument_object};
use kubestep_framework::plugin::{Fragments, QueueContext};
use kubestep_framework::pod::PodInfo;
use kubestep_framework::pod::requests::{RequestOptions, pod_requests};
use kubestep_framework::resource::Resource;

argument_object! {
    /// A resource and its weight.
    #[derive(Copy, Eq)]
    pub struct ResourceSpec {
        /// The resource, by name.
        name: Symbol, put "name";
        /// 1 to 100; 1 if unset.
        weight: i64, put_some "weight";
    }
}

/// CPU and memory, weight 1 each.
fn default_resources() -> Vec<ResourceSpec> {
    ["cpu", "memory"].map(|name| ResourceSpec { name: Symbol::new(name), weight: 1 }).to_vec()
}

/// CPU and memory where no resource is given; a weight of 0 becomes 1.
fn complete(resources: &mut Vec<ResourceSpec>) {
    if resources.is_empty() {
        *resources = default_resources();
    }
    for resource in resources.iter_mut().filter(|resource| resource.weight == 0) {
        resource.weight = 1;
    }
}

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
fn sign_requests(cx: &QueueContext<'_>, pod: &PodInfo) -> Fragments {
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
