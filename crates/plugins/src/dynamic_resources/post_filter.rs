//! PostFilter: deallocates a claim whose allocation excludes every node for the pod.

use std::collections::BTreeSet;

use kubestep_api::intern::Symbol;
use kubestep_api::{Kind, Name, ResourceClaim, Uid};
use kubestep_config::versions::Switch;
use kubestep_framework::host::{Host, HostError};
use kubestep_framework::plugin::{CycleContext, PostFilterContext};
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::status::Status;

use super::extended::{IN_MEMORY_NAME, delete_claim};
use super::state::ClaimState;
use super::workload;

/// Deallocates one claim that is reserved for no other pod, or deletes the claim for extended
/// resources that is left over from an earlier attempt.
pub fn post_filter(cx: &mut PostFilterContext<'_>, state: &ClaimState, plugin: Symbol) -> Status {
    if state.is_empty() {
        return Status::unschedulable("no new claims to deallocate");
    }
    let extended = state.extended().filter(|claim| claim.metadata.name != IN_MEMORY_NAME);
    for at in unavailable(cx, state, plugin) {
        if Some(at) == state.extended_index() {
            if extended.is_some() {
                break;
            }
            continue;
        }
        let claim = &state.claims[at].claim;
        if is_only_for(claim, cx.cycle.pod.uid()) {
            return match deallocate(claim, cx.host) {
                Ok(()) => Status::unschedulable("deallocation of ResourceClaim completed"),
                Err(text) => Status::error(&text),
            };
        }
    }
    match extended.map(|claim| delete_claim(claim, cx.host)) {
        None => {
            let freed = workload::unreserve_group(cx);
            freed.unwrap_or_else(|| Status::unschedulable("still not schedulable"))
        }
        Some(Ok(())) => Status::unschedulable("deletion of ResourceClaim completed"),
        Some(Err(text)) => Status::error(&text),
    }
}

/// Whether PostFilter has no answer for the pod: in 1.33, for one without claims.
pub fn passes(cx: &CycleContext<'_>) -> bool {
    cx.pod.pod.spec.resource_claims.is_empty()
        && cx.features.has(Switch::ClaimlessPodsPassed)
        && !cx.features.has(Switch::ClaimlessPodsAnswered)
}

/// The claims that were unavailable on a node that the plugin rejected. Upstream's order is
/// undefined.
fn unavailable(cx: &PostFilterContext<'_>, state: &ClaimState, plugin: Symbol) -> BTreeSet<usize> {
    let found = state.found();
    let is_rejected = |name: Name| {
        let node = cx.cycle.snapshot.by_name(name);
        node.is_some_and(|node| cx.statuses.get(node.id).plugin() == plugin)
    };
    let nodes = found.unavailable.iter().filter(|(node, _)| is_rejected(**node));
    nodes.flat_map(|(_, claims)| claims.iter().copied()).collect()
}

fn is_only_for(claim: &ResourceClaim, pod: Uid) -> bool {
    match claim.status.reserved_for.as_slice() {
        [] => true,
        [only] => only.uid == pod,
        _ => false,
    }
}

fn deallocate(claim: &ResourceClaim, host: &mut dyn Host) -> Result<(), HostError> {
    let mut claim = claim.clone();
    claim.status = Default::default();
    host.send(claim.into())
}

/// The claim's namespace and name.
pub fn key(claim: &ResourceClaim) -> NamespacedName {
    NamespacedName::new(claim.metadata.namespace, claim.metadata.name)
}

/// The kind of the claims that PostFilter writes.
pub(crate) const CLAIM: Kind = Kind::ResourceClaim;
