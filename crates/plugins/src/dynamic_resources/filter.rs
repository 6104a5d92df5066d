//! Filter: whether the claims can be used, or allocated, on a node.

use std::sync::Arc;

use crate::dynamic_resources::structured::{Allocator, binding_conditions};
use kubestep_api::{Duration, Name, Node, ResourceClaim};
use kubestep_framework::node::{NodeId, NodeInfo};
use kubestep_framework::plugin::CycleContext;
use kubestep_framework::status::{DistinctStatuses, Status};

use super::conditions::{Readiness, is_timed_out, readiness};
use super::extended;
use super::node_resources;
use super::reason::{DeviceReason, Unavailable, Wanted, WhyUnavailable};
use super::state::{ClaimState, NodeAllocation};

/// The status of a node; the allocation found there is stored in the state.
pub fn filter(
    cx: &CycleContext<'_>,
    state: &ClaimState,
    node: &NodeInfo,
    binding_timeout: Duration,
) -> Status {
    // The demand of claims on a node's own resources depends on the pods there, which nominated
    // pods and preemption change.
    let is_known = !node_resources::is_on(cx.features);
    if let Some(known) = state.found().statuses.get(&node.name).filter(|_| is_known) {
        return known.clone();
    }
    let status = match evaluate(cx, state, node, binding_timeout) {
        Ok(allocation) => {
            let allocation = allocation.map(|allocation| (node.name, Arc::new(allocation)));
            state.found().allocations.extend(allocation);
            Status::SUCCESS
        }
        Err((reason, _)) => {
            if let DeviceReason::Unavailable(claims) = &reason {
                let claims = claims.iter().map(|claim| claim.index).collect();
                state.found().unavailable.insert(node.name, claims);
            }
            reason.rejection(node.name, cx.features)
        }
    };
    state.found().statuses.insert(node.name, status.clone());
    status
}

/// The statuses of all nodes, if nothing has to be done but to allocate the claims of the pod's spec.
pub fn on_all_nodes(cx: &CycleContext<'_>, state: &ClaimState) -> Option<DistinctStatuses> {
    let (allocator, of_pod) = state.unmet_demand()?;
    let allocates_all = of_pod.claims.len() == state.claims.len();
    if !allocates_all || state.extended().is_some() || node_resources::is_on(cx.features) {
        return None;
    }
    let fits = of_pod.demand.pass(allocator, cx.snapshot, &of_pod.claims)?;
    state.found().at_once = true;
    let rejection = not_allocated(Vec::new(), Vec::new()).rejection(Name::EMPTY, cx.features);
    let by_slot = fits.into_iter().map(|fits| u16::from(!fits)).collect();
    Some(DistinctStatuses { statuses: vec![Status::SUCCESS, rejection], by_slot })
}

/// The allocation that Filter found for a node.
pub(super) fn allocation_on(state: &ClaimState, node: &NodeInfo) -> Option<Arc<NodeAllocation>> {
    let (known, at_once) = (state.allocation_on(node.name), state.found().at_once);
    if known.is_some() || !at_once {
        return known;
    }
    // Also after Reserve: a group reserves what it tried before.
    let (allocator, of_pod) = state.allocator.as_ref().zip(state.demand.as_ref())?;
    let node = (node.id, node.node.as_ref()?);
    let results = allocator.allocate_for(&of_pod.demand, node, &of_pod.claims).ok()??;
    Some(Arc::new(NodeAllocation { results, ..NodeAllocation::default() }))
}

/// The allocation for the pod on a node, or the reasons against it. The first reason decides the
/// status; the second adds to it.
pub(super) fn evaluate(
    cx: &CycleContext<'_>,
    state: &ClaimState,
    node: &NodeInfo,
    binding_timeout: Duration,
) -> Result<Option<NodeAllocation>, (DeviceReason, Option<DeviceReason>)> {
    let Some(object) = &node.node else { return Ok(None) };
    let with_status = |status| (DeviceReason::Status(status), None);
    let extended = extended::claim_on(cx, state, node).map_err(with_status)?;
    if extended.is_none() && state.has_no_user_claims() {
        return Ok(None);
    }
    let unavailable = unavailable_claims(cx, state, object, binding_timeout);
    let unavailable = (!unavailable.is_empty()).then_some(DeviceReason::Unavailable(unavailable));
    let counts_on_nodes = node_resources::is_on(cx.features);
    if counts_on_nodes {
        node_resources::check_sharing(cx, state, node).map_err(with_status)?;
    }
    let mut allocation = None;
    if let Some(allocator) = &state.allocator {
        let found = allocate(allocator, state, (node.id, object), extended);
        let mut found = match found {
            Ok(found) => found,
            Err(reason) => return Err((reason, unavailable)),
        };
        if counts_on_nodes {
            found.node_resources =
                node_resources::demand(cx, state, node, &found).map_err(with_status)?;
        }
        allocation = Some(found);
    }
    match unavailable {
        Some(reason) => Err((reason, None)),
        None => Ok(allocation),
    }
}

/// The allocated claims that cannot be used on the node: their node selector does not match, a
/// device failed, or its binding conditions were not met in time.
fn unavailable_claims(
    cx: &CycleContext<'_>,
    state: &ClaimState,
    node: &Node,
    binding_timeout: Duration,
) -> Vec<Unavailable> {
    let checks_conditions = binding_conditions(cx.features);
    let why = |at: usize| {
        let claim = &state.claims[at];
        if claim.available_on.as_ref().is_some_and(|matcher| !matcher.matches_node(node)) {
            return Some(WhyUnavailable::OutOfReach);
        }
        if claim.is_unallocated() || !checks_conditions {
            return None;
        }
        match readiness(&claim.claim, cx.features) {
            Readiness::Ready => None,
            Readiness::Failed(text) => Some(WhyUnavailable::Failed(text)),
            Readiness::Waiting => is_timed_out(&claim.claim, binding_timeout, cx.now)
                .then_some(WhyUnavailable::TimedOut),
        }
    };
    let unavailable = |index: usize| {
        let claim = state.claims[index].claim.clone();
        why(index).map(|why| Unavailable { index, claim, why })
    };
    (0..state.claims.len()).filter_map(unavailable).collect()
}

/// Allocates the claims that have no allocation.
fn allocate(
    allocator: &Allocator,
    state: &ClaimState,
    node: (NodeId, &Arc<Node>),
    extended: Option<(Arc<ResourceClaim>, extended::Mappings)>,
) -> Result<NodeAllocation, DeviceReason> {
    // The requests of a claim for extended resources depend on the node.
    if let (Some((_, of_pod)), None) = (state.unmet_demand(), &extended) {
        let found = allocator.allocate_for(&of_pod.demand, node, &of_pod.claims);
        return match found.map_err(DeviceReason::Failed)? {
            Some(results) => Ok(NodeAllocation { results, ..NodeAllocation::default() }),
            None => Err(not_allocated(of_pod.claims.clone(), Vec::new())),
        };
    }
    let (extended, mappings) = extended.map_or((None, Vec::new()), |(claim, m)| (Some(claim), m));
    let (pending, fresh): (Vec<usize>, Vec<usize>) =
        state.to_allocate().into_iter().partition(|at| state.claims[*at].allocation.is_some());
    let own = fresh.into_iter().map(|at| match &extended {
        Some(claim) if Some(at) == state.extended_index() => claim.clone(),
        _ => state.claims[at].claim.clone(),
    });
    let claims: Vec<Arc<ResourceClaim>> = own.collect();
    let Some(mut results) = allocator.allocate(node.1, &claims).map_err(DeviceReason::Failed)?
    else {
        return Err(not_allocated(claims, mappings));
    };
    // As upstream, allocations that are pending for the group come last, whatever the order of
    // the claims.
    results.extend(pending.into_iter().filter_map(|at| state.claims[at].allocation.clone()));
    Ok(NodeAllocation { results: results.into(), extended, mappings, node_resources: Vec::new() })
}

fn not_allocated(claims: Vec<Arc<ResourceClaim>>, mappings: extended::Mappings) -> DeviceReason {
    DeviceReason::NotAllocated(Wanted { claims, mappings })
}
