//! What a pod requests, in upstream's three variants.
//!
//! Quantities are summed exactly and rounded once at the end. Upstream:
//! `staging/src/k8s.io/component-helpers/resource/helpers.go`.

use std::sync::LazyLock;

use crate::resource::Resource;
use kubestep_api::intern::Symbol;
use kubestep_api::{
    Container, ContainerRestartPolicy, ContainerStatus, Pod, Quantity, QuantityFormat, ResourceList,
};
use kubestep_config::versions::Switch;
use kubestep_config::{Feature, FeatureGates};

/// CPU assumed for a container that requests none, in millicores.
pub(crate) const DEFAULT_MILLI_CPU: i64 = 100;
/// Memory assumed for a container that requests none, in bytes.
pub(crate) const DEFAULT_MEMORY: i64 = 200 * 1024 * 1024;

/// How requests are computed. The default is the plain spec with pod-level resources, as
/// NodeResourcesFit's Filter uses it.
#[derive(Clone, Default, Debug)]
pub struct RequestOptions {
    /// Include the status of in-place resizes, as reported by the kubelet.
    pub use_status: bool,
    /// The same for pod-level requests; only together with `use_status`.
    pub pod_level_status: bool,
    /// Include what resource claims use of the node's own resources.
    pub claim_status: bool,
    /// Only sum over containers, as if `spec.resources` were not set.
    pub skip_pod_level: bool,
    /// Per container, the default for a request that is absent; an explicit 0 stays 0.
    pub non_missing: ResourceList,
}

impl RequestOptions {
    /// Options that include the status of resizes, as far as the feature gates allow.
    pub fn with_status(features: &FeatureGates) -> RequestOptions {
        RequestOptions {
            use_status: features.enabled(Feature::InPlacePodVerticalScaling),
            pod_level_status: features.enabled(Feature::InPlacePodLevelResourcesVerticalScaling),
            ..RequestOptions::default()
        }
    }
}

/// The resources that a pod counts for on its node.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct PodResource {
    /// What the pod counts on its node.
    pub resource: Resource,
    /// CPU in millicores with defaults for containers that request none.
    pub non_zero_milli_cpu: i64,
    /// Memory in bytes with defaults for containers that request none.
    pub non_zero_memory: i64,
}

/// How NodeInfo computes requests: with status resources, pod-level resources and claims, each if
/// its feature gate is on.
fn accounting(features: &FeatureGates) -> RequestOptions {
    RequestOptions {
        skip_pod_level: !features.enabled(Feature::PodLevelResources),
        claim_status: features.enabled(Feature::DRANodeAllocatableResources),
        ..RequestOptions::with_status(features)
    }
}

/// What a pod uses of its node, without defaults for absent requests.
pub fn requested(pod: &Pod, features: &FeatureGates) -> Resource {
    Resource::from_list(&pod_requests(pod, &accounting(features)))
}

/// The resources that NodeInfo counts for a pod.
pub(crate) fn accounted(pod: &Pod, features: &FeatureGates) -> PodResource {
    let mut options = accounting(features);
    let requests = pod_requests(pod, &options);
    options.non_missing = match !options.skip_pod_level && has_pod_level_requests(pod) {
        true => missing_defaults(&requests),
        false => default_requests(),
    };
    let with_defaults = match options.non_missing.is_empty() {
        true => requests.clone(),
        false => pod_requests(pod, &options),
    };
    let with_defaults = match features.has(Switch::SidecarsInNonZeroRequests) {
        true => with_defaults,
        false => non_zero_up_to_1_31(pod),
    };
    let with_defaults = Resource::from_list(&with_defaults);
    PodResource {
        resource: Resource::from_list(&requests),
        non_zero_milli_cpu: with_defaults.milli_cpu,
        non_zero_memory: with_defaults.memory,
    }
}

/// The requests with defaults as up to 1.31: the sum of the app containers, or the largest step of
/// the init phase, sidecars among it; then the overhead.
fn non_zero_up_to_1_31(pod: &Pod) -> ResourceList {
    let defaults = RequestOptions { non_missing: default_requests(), ..RequestOptions::default() };
    let mut requests = ResourceList::default();
    for container in &pod.spec.containers {
        add(&mut requests, &requests_of(pod, container, false, &defaults));
    }
    let mut sidecars = ResourceList::default();
    for container in &pod.spec.init_containers {
        let mut step = sidecars.clone();
        container.resources.requests.iter().for_each(|own| add(&mut step, own));
        if is_sidecar(container) {
            sidecars = step.clone();
        }
        for (name, quantity) in defaults.non_missing.iter() {
            if step.get(name).is_none() {
                step.insert(name, quantity.clone());
            }
        }
        raise(&mut requests, &step);
    }
    pod.spec.overhead.iter().for_each(|overhead| add(&mut requests, overhead));
    requests
}

static DEFAULT_REQUESTS: LazyLock<ResourceList> = LazyLock::new(|| {
    let cpu = Quantity::new_milli(DEFAULT_MILLI_CPU, QuantityFormat::DecimalSi);
    let memory = Quantity::new(DEFAULT_MEMORY, QuantityFormat::BinarySi);
    [(Symbol::new("cpu"), cpu), (Symbol::new("memory"), memory)].into_iter().collect()
});

/// 100m of CPU and 200 MiB of memory, the defaults of a container without requests.
pub fn default_requests() -> ResourceList {
    DEFAULT_REQUESTS.clone()
}

/// With pod-level requests, a default applies only to a resource that the whole pod does not
/// request.
fn missing_defaults(requests: &ResourceList) -> ResourceList {
    let mut defaults = ResourceList::default();
    for (name, quantity) in default_requests().iter() {
        if requests.get(name).is_none() {
            defaults.insert(name, quantity.clone());
        }
    }
    defaults
}

/// The requests of a pod by resource name, including overhead.
pub fn pod_requests(pod: &Pod, options: &RequestOptions) -> ResourceList {
    let mut requests = container_requests(pod, options);
    if !options.skip_pod_level && has_pod_level_requests(pod) {
        override_by_pod_level(pod, options, &mut requests);
    }
    if let Some(overhead) = &pod.spec.overhead {
        add(&mut requests, overhead);
    }
    requests
}

fn override_by_pod_level(pod: &Pod, options: &RequestOptions, requests: &mut ResourceList) {
    let Some(spec) = pod.spec.resources.as_ref().and_then(|r| r.requests.as_ref()) else { return };
    let reported = pod.status.resources.as_ref();
    let reported = reported.filter(|_| options.use_status && options.pod_level_status);
    let effective = reported.map(|reported| {
        let actuated = reported.requests.as_ref();
        effective_requests(pod, Some(spec), actuated, pod.status.allocated_resources.as_ref())
    });
    for (name, quantity) in spec.iter().filter(|(name, _)| is_pod_level_resource(name)) {
        let quantity = match &effective {
            Some(effective) => effective.get(name).cloned().unwrap_or_default(),
            None => quantity.clone(),
        };
        requests.insert(name, quantity);
    }
}

/// Sum of the app containers and sidecars, but at least the largest step of the init phase: an init
/// container together with the sidecars started before it.
fn container_requests(pod: &Pod, options: &RequestOptions) -> ResourceList {
    let mut requests = ResourceList::default();
    for container in &pod.spec.containers {
        add(&mut requests, &requests_of(pod, container, options.use_status, options));
    }
    let mut sidecars = ResourceList::default();
    let mut init_peak = ResourceList::default();
    for container in &pod.spec.init_containers {
        let sidecar = is_sidecar(container);
        let own = requests_of(pod, container, options.use_status && sidecar, options);
        let mut step = sidecars.clone();
        add(&mut step, &own);
        if sidecar {
            add(&mut requests, &own);
            sidecars = step.clone();
        }
        raise(&mut init_peak, &step);
    }
    raise(&mut requests, &init_peak);
    if options.claim_status {
        for claim in &pod.status.node_allocatable_resource_claim_statuses {
            add(&mut requests, &claim.resources);
        }
    }
    requests
}

fn requests_of(
    pod: &Pod,
    container: &Container,
    use_status: bool,
    options: &RequestOptions,
) -> ResourceList {
    let spec = container.resources.requests.as_ref();
    let mut requests = match use_status.then(|| container_status(pod, container.name)).flatten() {
        Some(status) if status.resources.is_some() => {
            let actuated = status.resources.as_ref().and_then(|r| r.requests.as_ref());
            effective_requests(pod, spec, actuated, status.allocated_resources.as_ref())
        }
        _ => spec.cloned().unwrap_or_default(),
    };
    for (name, quantity) in options.non_missing.iter() {
        if requests.get(name).is_none() {
            requests.insert(name, quantity.clone());
        }
    }
    requests
}

/// The maximum of spec, actuated and allocated resources; the spec is left out while its resize is
/// infeasible.
fn effective_requests(
    pod: &Pod,
    spec: Option<&ResourceList>,
    actuated: Option<&ResourceList>,
    allocated: Option<&ResourceList>,
) -> ResourceList {
    let mut effective = ResourceList::default();
    let spec = spec.filter(|_| !resize_is_infeasible(pod));
    for list in [spec, actuated, allocated].into_iter().flatten() {
        raise(&mut effective, list);
    }
    effective
}

fn resize_is_infeasible(pod: &Pod) -> bool {
    let pending = pod.status.conditions.iter().find(|c| c.type_ == "PodResizePending");
    pending.is_some_and(|condition| condition.reason == "Infeasible")
}

/// Whether pod-level requests name a resource that is supported there. Only then do they replace
/// the sum of the containers.
pub(crate) fn has_pod_level_requests(pod: &Pod) -> bool {
    let requests = pod.spec.resources.as_ref().and_then(|r| r.requests.as_ref());
    requests.is_some_and(|list| list.iter().any(|(name, _)| is_pod_level_resource(&name)))
}

fn is_pod_level_resource(name: &str) -> bool {
    name == "cpu" || name == "memory" || name.starts_with("hugepages-")
}

fn add(sum: &mut ResourceList, other: &ResourceList) {
    if sum.is_empty() {
        sum.clone_from(other);
        return;
    }
    for (name, quantity) in other.iter() {
        match sum.get_mut(name) {
            Some(total) => total.add(quantity),
            None => {
                sum.insert(name, quantity.clone());
            }
        }
    }
}

fn raise(peak: &mut ResourceList, other: &ResourceList) {
    for (name, quantity) in other.iter() {
        if peak.get(name).is_none_or(|present| present < quantity) {
            peak.insert(name, quantity.clone());
        }
    }
}

/// Whether an init container keeps running with the app containers (`restartPolicy: Always`).
pub fn is_sidecar(container: &Container) -> bool {
    container.restart_policy == Some(ContainerRestartPolicy::Always)
}

fn container_status(pod: &Pod, name: Symbol) -> Option<&ContainerStatus> {
    let status = &pod.status;
    // A later entry of the same name wins, as in upstream's map.
    let mut all =
        status.init_container_statuses.iter().rev().chain(status.container_statuses.iter().rev());
    all.find(|status| status.name == name)
}

#[cfg(test)]
mod tests;
