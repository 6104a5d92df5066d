//! DynamicResources: pods with resource claims run where the claims' devices are.
//!
//! Upstream: `pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go`.

use std::sync::Arc;

use crate::api::ResourceClaim;
use crate::config::{FeatureGates, ProfileArgs};
use crate::engine::framework::cycle_state::CycleState;
use crate::engine::framework::events::{
    Action, ClusterEvent, EventObjects, EventResource, Hint, Registration,
};
use crate::engine::framework::plugin::{
    BindContext, CycleContext, Plugin, PostFilterAnswer, PostFilterContext, PreFilterAnswer,
    QueueContext,
};
use crate::engine::framework::scoring::default_normalize;
use crate::engine::node::{NodeId, NodeInfo};
use crate::engine::pod::PodInfo;
use crate::engine::status::Status;
use crate::intern::Symbol;

mod claims;
mod hints;

/// Builds the plugin.
pub fn build(_: &ProfileArgs, _: &FeatureGates) -> Result<Arc<dyn Plugin>, String> {
    Ok(Arc::new(DynamicResources { name: "DynamicResources".into() }))
}

struct DynamicResources {
    name: Symbol,
}

/// The claims of the pod. Written as soon as PreFilter runs, so that its absence tells
/// PostFilter that an earlier plugin ended PreFilter (DRA-033).
#[derive(Clone, Default, PartialEq, Debug)]
struct ClaimState {
    claims: Vec<Arc<ResourceClaim>>,
}

/// What reading the state says when PreFilter never ran.
fn not_found() -> Status {
    Status::error("not found")
}

impl Plugin for DynamicResources {
    fn name(&self) -> Symbol {
        self.name
    }

    fn events(&self) -> Option<Vec<Registration>> {
        let node = Action::ADD | Action::UPDATE_NODE_LABEL | Action::UPDATE_NODE_ALLOCATABLE;
        let change = Action::ADD | Action::UPDATE;
        let generated = Action::UPDATE_POD_GENERATED_RESOURCE_CLAIM;
        Some(vec![
            Registration::always(EventResource::Node, node),
            Registration::hinted(EventResource::ResourceClaim, change),
            Registration::hinted(EventResource::Pod, generated),
            Registration::always(EventResource::DeviceClass, change),
            Registration::always(EventResource::ResourceSlice, change),
        ])
    }

    fn hint(
        &self,
        cx: &QueueContext<'_>,
        pod: &PodInfo,
        _event: &ClusterEvent,
        objects: &EventObjects,
    ) -> Result<Hint, String> {
        Ok(if hints::helps(cx.objects, pod, objects)? { Hint::Queue } else { Hint::Skip })
    }

    /// DRA-011
    fn pre_enqueue(&self, cx: &QueueContext<'_>, pod: &PodInfo) -> Status {
        match claims::resolve(&pod.pod, cx.objects) {
            Ok(_) => Status::SUCCESS,
            Err(text) => Status::unresolvable(&text),
        }
    }

    /// DRA-012…014
    fn pre_filter(&self, cx: &CycleContext<'_>, state: &mut CycleState) -> PreFilterAnswer {
        state.write(ClaimState::default());
        let claims = match claims::resolve(&cx.pod.pod, cx.objects) {
            Ok(claims) => claims,
            Err(text) => return Status::unresolvable(&text).into(),
        };
        if claims.is_empty() {
            return Status::skip().into();
        }
        for claim in claims.iter().filter(|claim| claim.status.allocation.is_none()) {
            if let Err(status) = claims::check_classes(claim, cx.objects) {
                return status.into();
            }
        }
        state.write(ClaimState { claims });
        PreFilterAnswer::default()
    }

    fn filter(&self, _cx: &CycleContext<'_>, state: &CycleState, node: &NodeInfo) -> Status {
        let (Some(state), Some(node)) = (state.read::<ClaimState>(), &node.node) else {
            return not_found();
        };
        for claim in &state.claims {
            let status = claims::fits(claim, node);
            if !status.is_success() {
                return status;
            }
        }
        Status::SUCCESS
    }

    /// DRA-030, DRA-033
    fn post_filter(&self, _cx: &mut PostFilterContext<'_>, state: &CycleState) -> PostFilterAnswer {
        let status = match state.read::<ClaimState>() {
            None => not_found(),
            Some(state) if state.claims.is_empty() => {
                Status::unschedulable("no new claims to deallocate")
            }
            Some(_) => Status::unschedulable("still not schedulable"),
        };
        PostFilterAnswer { status, ..PostFilterAnswer::default() }
    }

    fn score(
        &self,
        _cx: &CycleContext<'_>,
        state: &CycleState,
        _node: &NodeInfo,
    ) -> Result<i64, Status> {
        state.read::<ClaimState>().map(|_| 0).ok_or_else(not_found)
    }

    fn normalize(
        &self,
        _cx: &CycleContext<'_>,
        _state: &CycleState,
        _nodes: &[NodeId],
        scores: &mut [i64],
    ) -> Status {
        default_normalize(false, scores);
        Status::SUCCESS
    }

    fn reserve(&self, _cx: &mut BindContext<'_>, state: &mut CycleState) -> Status {
        match state.read::<ClaimState>() {
            None => not_found(),
            Some(_) => Status::SUCCESS,
        }
    }

    /// DRA-027
    fn pre_bind_pre_flight(&self, _cx: &BindContext<'_>, state: &CycleState) -> Status {
        match state.read::<ClaimState>() {
            None => not_found(),
            Some(state) if state.claims.is_empty() => Status::skip(),
            Some(_) => Status::SUCCESS,
        }
    }

    /// DRA-032
    fn sign(
        &self,
        _cx: &QueueContext<'_>,
        pod: &PodInfo,
    ) -> Result<Vec<(&'static str, String)>, Symbol> {
        match pod.pod.spec.resource_claims.is_empty() {
            true => Ok(Vec::new()),
            false => Err("pods with dra resource claims are not signable".into()),
        }
    }
}

#[cfg(test)]
mod tests;
