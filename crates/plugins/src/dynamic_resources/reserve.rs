//! Reserve and Unreserve: the claims' allocations are signalled as pending, or withdrawn.

use std::sync::Arc;

use kubestep_api::intern::Symbol;
use kubestep_api::{AllocationResult, ResourceClaim};
use kubestep_framework::dra::counts_shares;
use kubestep_framework::plugin::BindContext;
use kubestep_framework::status::Status;

use super::claims::is_reserved_for;
use super::extended::{IN_MEMORY_NAME, delete_claim};
use super::filter;
use super::node_resources;
use super::post_filter::key;
use super::state::ClaimState;

/// The finalizer that keeps a claim from being deleted while it is allocated.
pub const FINALIZER: &str = "resource.kubernetes.io/delete-protection";

/// Reserves what Filter allocated on the chosen node.
pub fn reserve(cx: &mut BindContext<'_>, state: &mut ClaimState) -> Status {
    let to_allocate = state.to_allocate();
    if to_allocate.is_empty() || state.allocator.is_none() {
        return Status::SUCCESS;
    }
    let node = cx.snapshot.by_name(cx.node);
    let found = node.and_then(|node| filter::allocation_on(state, node));
    let found = found.filter(|found| !found.results.is_empty());
    let Some(found) = found else {
        let only_extended = to_allocate.iter().all(|at| Some(*at) == state.extended_index());
        return match only_extended {
            true => Status::SUCCESS,
            false => Status::error("claim allocation not found for node"),
        };
    };
    let (have, want) = (found.results.len(), to_allocate.len());
    if have != want {
        return Status::error(format!(
            "internal error, have {have} allocations, {want} claims to allocate, want {want} claims"
        ));
    }
    let extended = state.extended_index();
    for (at, allocation) in to_allocate.into_iter().zip(found.results.iter()) {
        let claim = &mut state.claims[at];
        claim.allocation = Some(allocation.clone());
        let special = found.extended.as_ref().filter(|_| Some(at) == extended);
        let pending = allocated(special.unwrap_or(&claim.claim), allocation);
        let uid = pending.metadata.uid;
        cx.shared.claims.signal_pending(uid, Arc::new(pending));
        if let Some(group) = &mut cx.shared.group_cycle {
            group.pending_claims.insert(uid);
        }
    }
    Status::SUCCESS
}

/// The claim with the finalizer and the allocation.
fn allocated(claim: &ResourceClaim, allocation: &AllocationResult) -> ResourceClaim {
    let mut claim = claim.clone();
    add_finalizer(&mut claim);
    claim.status.allocation = Some(allocation.clone());
    claim
}

/// Adds the finalizer; `false` if the claim already has it.
pub(crate) fn add_finalizer(claim: &mut ResourceClaim) -> bool {
    let finalizer = Symbol::new(FINALIZER);
    let missing = !claim.metadata.finalizers.contains(&finalizer);
    if missing {
        claim.metadata.finalizers.push(finalizer);
    }
    missing
}

/// Undoes the reservation. Claims that are reserved for the pod's group stay reserved: its other
/// pods may need them.
pub fn unreserve(cx: &mut BindContext<'_>, state: &mut ClaimState) {
    let (pod, shares) = (&cx.pod.pod, counts_shares(cx.features));
    for claim in state.claims.iter().take(state.user_owned).map(|claim| &claim.claim) {
        if cx.shared.claims.remove_pending(claim.metadata.uid, false) {
            cx.shared.claims.restore(cx.objects, key(claim), shares);
            if let Some(group) = &mut cx.shared.group_cycle {
                group.pending_claims.remove(&claim.metadata.uid);
            }
        }
        if claim.status.allocation.is_some() && is_reserved_for(claim, pod) {
            // Upstream only logs a failure of this write.
            let _released = cx.host.release_claim(claim, pod.metadata.uid);
        }
    }
    unreserve_extended(cx, state);
    node_resources::clear(cx, state);
}

fn unreserve_extended(cx: &mut BindContext<'_>, state: &ClaimState) {
    let Some(extended) = state.extended() else { return };
    if cx.shared.claims.remove_pending(state.initial_uid, false) {
        let shares = counts_shares(cx.features);
        cx.shared.claims.restore(cx.objects, key(extended), shares);
    }
    if extended.metadata.name != IN_MEMORY_NAME {
        let _deleted = delete_claim(extended, cx.host);
    }
}
