//! PreFilter: collects the claims of the pod and the state that they are allocated from.

use std::sync::Arc;

use crate::dynamic_resources::structured::{Allocator, Features, KeptDevices};
use crate::volumes::unresolvable;
use kubestep_api::ResourceClaim;
use kubestep_api::selector::NodeMatcher;
use kubestep_framework::dra::counts_shares;
use kubestep_framework::plugin::CycleContext;
use kubestep_framework::status::Status;

use super::claims::{check_requests, resolve};
use super::extended;
use super::state::{ClaimOfPod, ClaimState, DemandOfPod};
use super::workload;

/// The state for the pod; `seconds` limits the search for devices on a node. `kept` is what was
/// kept from earlier cycles.
///
/// # Errors
/// The status that rejects the pod, or Skip if it has no claims.
pub fn prepare(
    cx: &CycleContext<'_>,
    seconds: u64,
    kept: &KeptDevices,
) -> Result<ClaimState, Status> {
    let claims = resolve(&cx.pod.pod, &cx.queue()).map_err(unresolvable)?;
    let mut state = ClaimState::default();
    state.user_owned = claims.len();
    state.claims = claims.into_iter().map(ClaimOfPod::new).collect();
    if let Some((claim, scalars)) = extended::claim_for(cx) {
        state.initial_uid = claim.metadata.uid;
        state.claims.push(ClaimOfPod::new(claim));
        state.scalars = scalars;
    }
    state.bind_to = workload::bindings(cx).map_err(unresolvable)?;
    if state.is_empty() {
        return Err(Status::skip());
    }
    let extended = state.extended_index();
    for (at, claim) in state.claims.iter_mut().enumerate() {
        prepare_claim(cx, claim, Some(at) == extended)?;
    }
    if state.claims.iter().any(ClaimOfPod::is_unallocated) {
        state.allocator = Some(Arc::new(allocator(cx, seconds, kept)));
        state.demand = demand(cx, &state.claims, kept);
    }
    Ok(state)
}

fn allocator(cx: &CycleContext<'_>, seconds: u64, kept: &KeptDevices) -> Allocator {
    let allocated = cx.shared.claims.allocated(cx.objects, counts_shares(cx.features));
    let features = Features::of(cx.features);
    let slices = kept.slices(cx.objects, features, cx.snapshot.len());
    Allocator::new(features, allocated, cx.objects.device_classes.clone(), slices, seconds)
}

/// What is kept for the claims to be allocated, unless one is pending for the group.
fn demand(
    cx: &CycleContext<'_>,
    claims: &[ClaimOfPod],
    kept: &KeptDevices,
) -> Option<Arc<DemandOfPod>> {
    let unallocated = claims.iter().filter(|claim| claim.is_unallocated());
    let fresh = unallocated.map(|claim| claim.allocation.is_none().then(|| claim.claim.clone()));
    let claims: Vec<Arc<ResourceClaim>> = fresh.collect::<Option<_>>()?;
    let demand = kept.demand(cx.objects, &claims)?;
    Some(Arc::new(DemandOfPod { claims, demand }))
}

/// An allocated claim is usable where its node selector matches; a claim that another pod is
/// allocating rejects the pod, unless that pod is of the same group.
fn prepare_claim(
    cx: &CycleContext<'_>,
    claim: &mut ClaimOfPod,
    is_extended: bool,
) -> Result<(), Status> {
    if let Some(allocation) = &claim.claim.status.allocation {
        if let Some(selector) = &allocation.node_selector {
            let matcher = NodeMatcher::new(selector, "");
            matcher.check().map_err(|errors| Status::error(errors.to_string()))?;
            claim.available_on = Some(matcher);
        }
        return Ok(());
    }
    let metadata = &claim.claim.metadata;
    let group = cx.shared.group_cycle.as_ref();
    let pending = cx.shared.claims.pending(metadata.uid);
    if group.is_some_and(|group| group.pending_claims.contains(&metadata.uid)) && pending.is_some()
    {
        // Another pod of the group allocated it in this group cycle.
        claim.allocation = pending.cloned();
        return Ok(());
    }
    if pending.is_some() {
        return Err(Status::unresolvable(&format!(
            "resource claim {}/{} is in the process of being allocated",
            metadata.namespace, metadata.name
        )));
    }
    // The requests of the claim for extended resources depend on the node.
    if is_extended { Ok(()) } else { check_requests(&claim.claim, cx) }
}
