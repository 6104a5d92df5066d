//! Why a pod's resource claims cannot be used or allocated on a node, for people.

use std::sync::Arc;

use super::conditions::{Readiness, readiness};
use super::extended;
use super::filter::unavailable_claims;
use super::state::ClaimState;
use crate::api::{NodeSelector, ResourceClaim};
use crate::config::types::DynamicResourcesArgs;
use crate::engine::dra::Survey;
use crate::engine::framework::cycle_state::CycleState;
use crate::engine::framework::plugin::CycleContext;
use crate::engine::node::NodeInfo;
use crate::engine::pod::NamespacedName;

/// What of the claims speaks against a node.
#[derive(Clone, PartialEq, Debug)]
pub enum Obstacle {
    /// An allocated claim's devices cannot be reached from the node.
    OutOfReach(NamespacedName, NodeSelector),
    /// A device of an allocated claim failed, in its words.
    Failed(NamespacedName, String),
    /// The devices of an allocated claim were not ready in time.
    TimedOut(NamespacedName),
    /// Claims that cannot be allocated: what the devices in reach come to, by request.
    NotAllocated(Vec<Survey>),
}

/// Every obstacle on a node.
pub fn obstacles(
    cx: &CycleContext<'_>,
    state: &CycleState,
    node: &NodeInfo,
    args: &DynamicResourcesArgs,
) -> Vec<Obstacle> {
    let (Some(state), Some(object)) = (state.read::<ClaimState>(), &node.node) else {
        return Vec::new();
    };
    let timeout = super::binding_timeout(args);
    let unavailable = unavailable_claims(cx, state, object, timeout);
    let mut found: Vec<Obstacle> = unavailable
        .into_iter()
        .map(|at| why_unavailable(&state.claims[at].claim, state, at, object))
        .collect();
    let Some(allocator) = &state.allocator else { return found };
    let Ok(extended) = extended::claim_on(cx, state, node) else { return found };
    let own = state.to_allocate().into_iter().map(|at| match &extended {
        Some((claim, _)) if Some(at) == state.extended_index() => claim.clone(),
        _ => state.claims[at].claim.clone(),
    });
    let claims: Vec<Arc<ResourceClaim>> = own.collect();
    if !matches!(allocator.allocate(object, &claims), Ok(Some(_))) {
        found.push(Obstacle::NotAllocated(allocator.survey(object, &claims)));
    }
    found
}

fn why_unavailable(
    claim: &ResourceClaim,
    state: &ClaimState,
    at: usize,
    node: &crate::api::Node,
) -> Obstacle {
    let key = NamespacedName::new(claim.metadata.namespace, claim.metadata.name);
    let reached = state.claims[at].available_on.as_ref().is_none_or(|on| on.matches_node(node));
    let selector = claim.status.allocation.as_ref().and_then(|found| found.node_selector.clone());
    match (reached, selector, readiness(claim)) {
        (false, Some(selector), _) => Obstacle::OutOfReach(key, selector),
        (_, _, Readiness::Failed(text)) => Obstacle::Failed(key, text),
        _ => Obstacle::TimedOut(key),
    }
}
