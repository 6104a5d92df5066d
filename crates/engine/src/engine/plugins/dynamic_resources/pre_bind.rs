//! PreBind: allocations and reservations are written into the claims (DRA-028).

use std::sync::Arc;

use crate::api::{
    AllocationResult, Kind, Object, PodExtendedResourceClaimStatus, ResourceClaim,
    ResourceClaimConsumerReference, Time,
};
use crate::engine::dra::binding_conditions;
use crate::engine::framework::plugin::BindContext;
use crate::engine::host::Host;
use crate::intern::Symbol;

use super::extended::IN_MEMORY_NAME;
use super::node_resources;
use super::post_filter::key;
use super::reserve::add_finalizer;
use super::state::ClaimState;
use super::workload::is_reserved_for_pod_or_group;

/// Microseconds.
const SECOND: i64 = 1_000_000;

/// Writes every claim that is not reserved for the pod yet.
///
/// # Errors
/// A claim is not as it was, or cannot be written.
pub fn bind_claims(cx: &mut BindContext<'_>, state: &mut ClaimState) -> Result<(), String> {
    for at in 0..state.claims.len() {
        let claim = &state.claims[at].claim;
        if !is_reserved_for_pod_or_group(claim, &cx.pod.pod, cx.features) {
            bind_claim(cx, state, at)?;
        }
    }
    node_resources::write(cx, state)
}

fn bind_claim(cx: &mut BindContext<'_>, state: &mut ClaimState, at: usize) -> Result<(), String> {
    let is_extended = Some(at) == state.extended_index();
    let claim = state.claims[at].claim.clone();
    let allocation = state.claims[at].allocation.clone();
    if is_extended && allocation.is_none() && claim.spec.devices.requests.is_empty() {
        return Ok(());
    }
    let written = write_claim(cx, state, at, is_extended, allocation.as_ref());
    let mut assumed = false;
    if let Ok(written) = &written {
        assumed = cx.shared.claims.assume(cx.objects, written.clone());
    }
    if allocation.is_some() {
        cx.shared.claims.remove_pending(claim.metadata.uid, assumed && !is_extended);
    }
    let written = written?;
    state.claims[at].claim = written.clone();
    if is_extended { announce(cx, state, &written) } else { Ok(()) }
}

fn write_claim(
    cx: &mut BindContext<'_>,
    state: &mut ClaimState,
    at: usize,
    is_extended: bool,
    allocation: Option<&AllocationResult>,
) -> Result<Arc<ResourceClaim>, String> {
    let mut claim = state.claims[at].claim.clone();
    if is_extended && claim.metadata.name == IN_MEMORY_NAME {
        claim = create(cx, state)?;
        state.claims[at].claim = claim.clone();
    }
    let name = key(&claim);
    let mut claim = current(cx.host, claim);
    if claim.metadata.deletion_timestamp.is_some() {
        return Err(format!("claim {name} got deleted in the meantime"));
    }
    if let Some(allocation) = allocation {
        if claim.status.allocation.is_some() {
            return Err(format!("claim {name} got allocated elsewhere in the meantime"));
        }
        if add_finalizer(&mut claim) {
            let updated = update(cx, claim);
            let updated = updated.map_err(|e| format!("add finalizer to claim {name}: {e}"))?;
            claim = Arc::unwrap_or_clone(updated);
        }
        claim.status.allocation = Some(allocation.clone());
    }
    let group = state.bind_to.get(at).cloned().flatten();
    claim.status.reserved_for.push(group.unwrap_or_else(|| reference(cx)));
    if binding_conditions(cx.features) {
        let Some(allocation) = &mut claim.status.allocation else {
            return Err(format!("claim {name} got deallocated elsewhere in the meantime"));
        };
        // The API keeps whole seconds.
        let now = Time(cx.now.0 - cx.now.0.rem_euclid(SECOND));
        allocation.allocation_timestamp.get_or_insert(now);
    }
    let what = match allocation {
        Some(_) => "add allocation and reservation",
        None => "add reservation",
    };
    update(cx, claim).map_err(|error| format!("{what} to claim {name}: {error}"))
}

/// The claim as the server has it. Upstream finds out that its own is outdated when it writes.
pub fn current(host: &dyn Host, claim: Arc<ResourceClaim>) -> ResourceClaim {
    let claim = match host.get(Kind::ResourceClaim, key(&claim)) {
        Some(Object::ResourceClaim(current)) => current,
        _ => claim,
    };
    Arc::unwrap_or_clone(claim)
}

/// The pod as a user of claims.
fn reference(cx: &BindContext<'_>) -> ResourceClaimConsumerReference {
    let metadata = &cx.pod.pod.metadata;
    ResourceClaimConsumerReference {
        api_group: Symbol::EMPTY,
        resource: "pods".into(),
        name: metadata.name,
        uid: metadata.uid,
    }
}

fn update(cx: &mut BindContext<'_>, claim: ResourceClaim) -> Result<Arc<ResourceClaim>, String> {
    claim_of(cx.host.update(claim.into())?)
}

fn claim_of(object: Object) -> Result<Arc<ResourceClaim>, String> {
    match object {
        Object::ResourceClaim(claim) => Ok(claim),
        other => Err(format!("got a {} for a ResourceClaim", other.kind().plural())),
    }
}

/// Creates the claim for extended resources as the chosen node needs it (ER-005).
fn create(cx: &mut BindContext<'_>, state: &ClaimState) -> Result<Arc<ResourceClaim>, String> {
    let node = cx.node;
    let wanted = state.allocation_on(node).and_then(|found| found.extended.clone());
    let wanted =
        wanted.ok_or_else(|| format!("extended resource claim not found for node {node}"))?;
    let mut claim = Arc::unwrap_or_clone(wanted);
    let namespace = claim.metadata.namespace;
    claim.status.allocation = None;
    claim.metadata.name = Symbol::EMPTY;
    claim.metadata.uid = Symbol::EMPTY;
    let created = cx.host.create(claim.into());
    let failed = |error| format!("create claim for extended resources {namespace}/: {error}");
    claim_of(created.map_err(failed)?)
}

/// Says in the pod's status which claim stands for its extended resources.
fn announce(
    cx: &mut BindContext<'_>,
    state: &ClaimState,
    claim: &ResourceClaim,
) -> Result<(), String> {
    let found = state.allocation_on(cx.node);
    let mappings = found.map(|found| found.mappings.clone()).unwrap_or_default();
    let pod = cx.pod.key();
    if mappings.is_empty() {
        return Err(format!(
            "nil or empty request mappings, no update of pod {pod} ExtendedResourceClaimStatus"
        ));
    }
    let status = PodExtendedResourceClaimStatus {
        request_mappings: mappings,
        resource_claim_name: claim.metadata.name,
    };
    let set = cx.host.set_extended_resource_claim(pod, status);
    set.map_err(|error| format!("update pod {pod} ExtendedResourceClaimStatus: {error}"))
}
