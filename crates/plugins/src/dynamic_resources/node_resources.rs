//! Node-allocatable devices: devices that represent the node's own CPU, memory and the like. The
//! demand of a pod's claims on them counts on the node like the pod's requests (alpha, behind
//! DRANodeAllocatableResources).
//!
//! Upstream: `nodeallocatabledynamicresources.go`.

use std::sync::Arc;

use kubestep_api::intern::Symbol;
use kubestep_api::{
    AllocationResult, Device, DeviceRequestAllocationResult, Name,
    NodeAllocatableResourceClaimStatus, NodeAllocatableResourceMapping, Pod, Quantity,
    ResourceClaim, ResourceList,
};
use kubestep_config::{Feature, FeatureGates};
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::error::PluginError;
use kubestep_framework::host::HostError;
use kubestep_framework::node::NodeInfo;
use kubestep_framework::objects::Objects;
use kubestep_framework::plugin::{BindContext, CycleContext};
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::pod::requests::{RequestOptions, pod_requests};
use kubestep_framework::resource::Resource;
use kubestep_framework::status::{Code, Status};

use super::claims::named;
use super::post_filter::key;
use super::state::{ClaimState, NodeAllocation};

/// Whether claims on such devices count as requests on the node.
pub fn is_on(features: &FeatureGates) -> bool {
    features.enabled(Feature::DRANodeAllocatableResources)
}

/// The demand of the claims of the cycle's pod on a node's own resources, as Filter found it; the
/// assumed pod carries it in its status.
pub(crate) fn claimed_on(
    state: &CycleState,
    node: Name,
) -> Vec<NodeAllocatableResourceClaimStatus> {
    let found = state.read::<ClaimState>().and_then(|state| state.allocation_on(node));
    found.map(|found| found.node_resources.clone()).unwrap_or_default()
}

/// Checks that no other pod uses such a claim.
///
/// # Errors
/// Another pod on the node uses it.
pub(crate) fn check_sharing(
    cx: &CycleContext<'_>,
    state: &ClaimState,
    node: &NodeInfo,
) -> Result<(), Status> {
    let Some(object) = &node.node else { return Ok(()) };
    for claim in state.claims.iter().filter(|claim| !claim.is_unallocated()) {
        if claim.available_on.as_ref().is_some_and(|matcher| !matcher.matches_node(object)) {
            continue;
        }
        let name = claim.claim.metadata.name;
        let key = NamespacedName::new(cx.pod.pod.metadata.namespace, name);
        let Some(users) = node.claim_users.get(&key) else { continue };
        let problem = match users.len() {
            1 if users.contains(&cx.pod.uid()) => continue,
            1 => "is already used by another pod",
            _ => "shared by multiple pods",
        };
        let text = format!("node allocatable resource claim {name} {problem}");
        return Err(Status::unresolvable(&text));
    }
    Ok(())
}

/// The demand of the newly allocated claims on the node's own resources.
///
/// # Errors
/// The pod does not fit with that demand, or a claim is not valid for such devices.
pub fn demand(
    cx: &CycleContext<'_>,
    state: &ClaimState,
    node: &NodeInfo,
    found: &NodeAllocation,
) -> Result<Vec<NodeAllocatableResourceClaimStatus>, Status> {
    let claims: Vec<_> = allocations(state, found)
        .filter(|(_, allocation)| draws_on_node(cx.objects, allocation))
        .collect();
    if claims.is_empty() {
        return Ok(Vec::new());
    }
    let pod = &cx.pod.pod;
    let statuses = statuses(cx, &claims)?;
    if let Some(unused) = statuses.iter().find(|status| status.containers.is_empty()) {
        let name = unused.resource_claim_name;
        return Err(Status::unresolvable(&format!(
            "claim {name}: node-allocatable resource claim not referenced by any container \
             within the pod"
        )));
    }
    let mut pod = pod.as_ref().clone();
    pod.status.node_allocatable_resource_claim_statuses = statuses;
    let pod_level = cx.features.enabled(Feature::PodLevelResources);
    let total = requests(&pod, !pod_level);
    if pod_level {
        check_pod_level(&pod, &total)?;
    }
    check_fit(node, &Resource::from_list(&total))?;
    Ok(pod.status.node_allocatable_resource_claim_statuses)
}

/// The claims to be allocated, each with its allocation.
fn allocations<'a>(
    state: &'a ClaimState,
    found: &'a NodeAllocation,
) -> impl Iterator<Item = (&'a Arc<ResourceClaim>, &'a AllocationResult)> {
    let mut fresh = found.results.iter();
    state.claims.iter().filter(|claim| claim.is_unallocated()).filter_map(move |claim| {
        let allocation = claim.allocation.as_ref().or_else(|| fresh.next())?;
        Some((&claim.claim, allocation))
    })
}

/// Whether a device of the allocation maps to resources of the node.
fn draws_on_node(objects: &Objects, allocation: &AllocationResult) -> bool {
    let devices = allocation.devices.results.iter().filter_map(|result| device(objects, result));
    devices.into_iter().any(|device| !device.node_allocatable_resource_mappings.is_empty())
}

/// The allocated device. As upstream, only the name of the pool is compared, not the driver.
fn device<'a>(objects: &'a Objects, result: &DeviceRequestAllocationResult) -> Option<&'a Device> {
    let slices = objects.resource_slices.values();
    let of_pool = slices.filter(|slice| slice.spec.pool.name == result.pool);
    of_pool.flat_map(|slice| &slice.spec.devices).find(|device| device.name == result.device)
}

/// One status for each claim, sorted by name.
fn statuses(
    cx: &CycleContext<'_>,
    claims: &[(&Arc<ResourceClaim>, &AllocationResult)],
) -> Result<Vec<NodeAllocatableResourceClaimStatus>, Status> {
    let pod = &cx.pod.pod;
    let named = named(pod, &cx.queue())
        .map_err(|text| Status::error(format!("processing pod resource claims: {text}")))?;
    let mut statuses = Vec::new();
    for (claim, allocation) in claims {
        let resources = resources_of(cx.objects, claim, allocation);
        let resources = resources.map_err(Status::error)?;
        let Some(resources) = resources else { continue };
        let uses = |name: Symbol| {
            named.iter().any(|(n, c)| *n == name && c.metadata.uid == claim.metadata.uid)
        };
        let all = pod.spec.init_containers.iter().chain(&pod.spec.containers);
        let containers = all.flat_map(|container| {
            let used = container.resources.claims.iter().filter(|used| uses(used.name));
            used.map(|_| container.name)
        });
        statuses.push(NodeAllocatableResourceClaimStatus {
            resource_claim_name: claim.metadata.name,
            containers: containers.collect(),
            resources,
        });
    }
    statuses.sort_by_key(|status| status.resource_claim_name);
    Ok(statuses)
}

/// The amounts of an allocation; `None` if none of its devices maps to any resource.
fn resources_of(
    objects: &Objects,
    claim: &ResourceClaim,
    allocation: &AllocationResult,
) -> Result<Option<ResourceList>, PluginError> {
    let mut resources = None;
    for result in &allocation.devices.results {
        let (pool, name) = (result.pool, result.device);
        let place = || format!("claim {}, device {name}", key(claim));
        let device = device(objects, result)
            .ok_or_else(|| format!("{}: device {name} not found in pool {pool}", place()))?;
        for (resource, mapping) in &device.node_allocatable_resource_mappings {
            let amount = amount(mapping, result).map_err(|key| {
                format!(
                    "{}: ConsumedCapacity is nil, but Capacity key '{key}' is set in \
                     NodeAllocatableResourceMappings for resource {resource}",
                    place()
                )
            })?;
            let Some(amount) = amount else { continue };
            let resources = resources.get_or_insert_with(ResourceList::default);
            let mut sum = resources.get(*resource).cloned().unwrap_or_default();
            sum.add(&amount);
            resources.insert(*resource, sum);
        }
    }
    Ok(resources)
}

/// The amount of a mapping for an allocated device: the consumed capacity times the multiplier,
/// or the multiplier alone. `None` if that capacity is not consumed; the error is its key if the
/// allocation has no consumed capacities at all.
fn amount(
    mapping: &NodeAllocatableResourceMapping,
    result: &DeviceRequestAllocationResult,
) -> Result<Option<Quantity>, Symbol> {
    let multiplier = mapping.allocation_multiplier.as_ref();
    let Some(key) = mapping.capacity_key.filter(|key| !key.is_empty()) else {
        return Ok(Some(multiplier.cloned().unwrap_or_default()));
    };
    if result.consumed_capacity.is_empty() {
        return Err(key);
    }
    let consumed = result.consumed_capacity.get(&key);
    Ok(consumed.map(|consumed| match multiplier {
        Some(multiplier) => consumed.times(multiplier),
        None => consumed.clone(),
    }))
}

/// The pod's requests plus the demand of its claims.
fn requests(pod: &Pod, skip_pod_level: bool) -> ResourceList {
    let options =
        RequestOptions { claim_status: true, skip_pod_level, ..RequestOptions::default() };
    pod_requests(pod, &options)
}

/// Checks that pod-level requests cover the requests of the containers and claims.
fn check_pod_level(pod: &Pod, total: &ResourceList) -> Result<(), Status> {
    if pod.spec.resources.as_ref().is_none_or(|resources| resources.requests.is_none()) {
        return Ok(());
    }
    let parts = requests(pod, true);
    let exceeded =
        total.iter().find(|(name, whole)| parts.get(*name).is_some_and(|part| part > *whole));
    match exceeded {
        None => Ok(()),
        Some((name, _)) => Err(Status::unresolvable(&format!(
            "pod level request for {name} is insufficient to cover the aggregated container and \
             node-allocatable DRA requests"
        ))),
    }
}

/// Checks that the node has enough left for the pod's requests and claims together.
fn check_fit(node: &NodeInfo, demand: &Resource) -> Result<(), Status> {
    let (offers, used) = (&node.allocatable, &node.requested);
    let mut lacking = Vec::new();
    let mut code = Code::Unschedulable;
    let mut check = |name: &str, wants: i64, offers: i64, used: i64| {
        if wants > offers - used {
            lacking.push(Symbol::new(&format!("Insufficient {name}")));
            if wants > offers {
                code = Code::UnschedulableAndUnresolvable;
            }
        }
    };
    let plain = [
        ("cpu", demand.milli_cpu, offers.milli_cpu, used.milli_cpu),
        ("memory", demand.memory, offers.memory, used.memory),
        (
            "ephemeral-storage",
            demand.ephemeral_storage,
            offers.ephemeral_storage,
            used.ephemeral_storage,
        ),
    ];
    for (name, wants, offers, used) in plain.into_iter().filter(|(_, wants, ..)| *wants > 0) {
        check(name, wants, offers, used);
    }
    for (name, wants) in demand.scalars.iter().filter(|(name, _)| name.starts_with("hugepages-")) {
        check(name, *wants, offers.scalar(*name), used.scalar(*name));
    }
    match lacking.is_empty() {
        true => Ok(()),
        false => Err(Status::with_reasons(code, lacking)),
    }
}

/// Writes the demand of the claims into the pod's status.
///
/// # Errors
/// The pod cannot be written.
pub fn write(cx: &mut BindContext<'_>, state: &ClaimState) -> Result<(), HostError> {
    let statuses = on_chosen_node(cx, state);
    if statuses.is_empty() {
        return Ok(());
    }
    let pod = cx.pod.key();
    let written = cx.host.set_node_resource_claims(pod, statuses);
    written.map_err(|error| {
        error.context(format!("updating pod {pod} NodeAllocatableResourceClaimStatuses"))
    })
}

/// Undoes [`write`]. Upstream only logs a failure of this write.
pub fn clear(cx: &mut BindContext<'_>, state: &ClaimState) {
    if !on_chosen_node(cx, state).is_empty() {
        let _cleared = cx.host.set_node_resource_claims(cx.pod.key(), Vec::new());
    }
}

fn on_chosen_node(
    cx: &BindContext<'_>,
    state: &ClaimState,
) -> Vec<NodeAllocatableResourceClaimStatus> {
    let found = state.allocation_on(cx.node).filter(|_| is_on(cx.features));
    found.map(|found| found.node_resources.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
