//! Filter: whether the claims can be used, or allocated, on a node (DRA-020…023).

use std::sync::Arc;

use crate::api::{Node, ResourceClaim};
use crate::engine::dra::{AllocationError, Allocator, binding_conditions};
use crate::engine::framework::plugin::CycleContext;
use crate::engine::node::NodeInfo;
use crate::engine::status::Status;

use super::conditions::{Readiness, is_timed_out, readiness};
use super::extended;
use super::node_resources;
use super::state::{ClaimState, NodeAllocation};

/// The verdict on a node; what it found is kept in the state.
pub fn filter(
    cx: &CycleContext<'_>,
    state: &ClaimState,
    node: &NodeInfo,
    binding_timeout: i64,
) -> Status {
    let Some(object) = &node.node else { return Status::SUCCESS };
    // What claims take of a node's own resources depends on the pods there, which nominated pods
    // and preemption change.
    let is_known = !node_resources::is_on(cx.features);
    if let Some(known) = state.found().statuses.get(&node.name).filter(|_| is_known) {
        return known.clone();
    }
    let status = match evaluate(cx, state, node, object, binding_timeout) {
        Ok(()) => Status::SUCCESS,
        Err(status) => status,
    };
    state.found().statuses.insert(node.name, status.clone());
    status
}

fn evaluate(
    cx: &CycleContext<'_>,
    state: &ClaimState,
    node: &NodeInfo,
    object: &Node,
    binding_timeout: i64,
) -> Result<(), Status> {
    let extended = extended::claim_on(cx, state, node)?;
    if extended.is_none() && state.has_no_user_claims() {
        return Ok(());
    }
    let unavailable = unavailable_claims(cx, state, object, binding_timeout);
    let counts_on_nodes = node_resources::is_on(cx.features);
    if counts_on_nodes {
        node_resources::check_sharing(cx, state, node)?;
    }
    let mut allocation = None;
    if let Some(allocator) = &state.allocator {
        let mut found = allocate(allocator, state, object, extended)?;
        if counts_on_nodes {
            found.node_resources = node_resources::demand(cx, state, node, &found)?;
        }
        allocation = Some(found);
    }
    if !unavailable.is_empty() {
        state.found().unavailable.insert(node.name, unavailable);
        return Err(Status::unresolvable("resourceclaim not available on the node"));
    }
    if let Some(allocation) = allocation {
        state.found().allocations.insert(node.name, Arc::new(allocation));
    }
    Ok(())
}

/// The allocated claims that cannot be used on the node (DRA-021).
pub(super) fn unavailable_claims(
    cx: &CycleContext<'_>,
    state: &ClaimState,
    node: &Node,
    binding_timeout: i64,
) -> Vec<usize> {
    let checks_conditions = binding_conditions(cx.features);
    let is_unavailable = |at: &usize| {
        let claim = &state.claims[*at];
        if claim.available_on.as_ref().is_some_and(|matcher| !matcher.matches_node(node)) {
            return true;
        }
        if claim.is_unallocated() || !checks_conditions {
            return false;
        }
        match readiness(&claim.claim) {
            Readiness::Ready => false,
            Readiness::Failed(_) => true,
            Readiness::Waiting => is_timed_out(&claim.claim, binding_timeout, cx.now),
        }
    };
    (0..state.claims.len()).filter(is_unavailable).collect()
}

/// Allocates what is not allocated yet (DRA-022).
fn allocate(
    allocator: &Allocator,
    state: &ClaimState,
    node: &Node,
    extended: Option<(Arc<ResourceClaim>, extended::Mappings)>,
) -> Result<NodeAllocation, Status> {
    let (extended, mappings) = extended.map_or((None, Vec::new()), |(claim, m)| (Some(claim), m));
    let (pending, fresh): (Vec<usize>, Vec<usize>) =
        state.to_allocate().into_iter().partition(|at| state.claims[*at].allocation.is_some());
    let own = fresh.into_iter().map(|at| match &extended {
        Some(claim) if Some(at) == state.extended_index() => claim.clone(),
        _ => state.claims[at].claim.clone(),
    });
    let claims: Vec<Arc<ResourceClaim>> = own.collect();
    let name = node.metadata.name;
    let found = allocator.allocate(node, &claims).map_err(|error| match error {
        AllocationError::OnNode(text) => Status::unresolvable(&text),
        AllocationError::TimedOut => {
            Status::error(&format!("node {name}: timed out trying to allocate devices"))
        }
        AllocationError::Failed(text) => Status::error(&text),
    })?;
    let mut results = found.ok_or_else(|| Status::unresolvable("cannot allocate all claims"))?;
    // What the group has already comes last, whatever the order of the claims (DRA-023).
    results.extend(pending.into_iter().filter_map(|at| state.claims[at].allocation.clone()));
    Ok(NodeAllocation { results, extended, mappings, node_resources: Vec::new() })
}
