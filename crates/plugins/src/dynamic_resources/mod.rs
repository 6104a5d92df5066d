//! DynamicResources: pods with resource claims run where the claims' devices are available.
//!
//! Upstream: `pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go`.

use std::sync::Arc;
use std::task::Poll;

use crate::dynamic_resources::structured::{DeviceShortage, KeptDevices};
use crate::normalize::relative_to_highest;
use crate::older_events;
use crate::volumes;
use kubestep_api::NodeAllocatableResourceClaimStatus;
use kubestep_api::intern::Symbol;
use kubestep_api::{Duration, Name, Node};
use kubestep_config::versions::Switch;
use kubestep_config::{
    ArgsType, DefaultProfile, ExtensionPoint, Feature, FeatureGates, PluginChange,
    PluginDescriptor, PointSet, ProfileArgs,
};
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::events::{Action, EventResource, OlderRegistration, Registration};
use kubestep_framework::node::{NodeId, NodeInfo};
use kubestep_framework::plugin::{
    BindContext, CycleContext, Fragments, Plugin, PostFilterAnswer, PostFilterContext,
    PreFilterAnswer, QueueContext, ScoreBasis,
};
use kubestep_framework::pod::PodInfo;
use kubestep_framework::registry::Built;
use kubestep_framework::status::{Code, DistinctStatuses, Status};

mod args;
mod claims;
mod conditions;
mod extended;
mod filter;
mod hints;
mod node_resources;
mod post_filter;
mod pre_bind;
mod pre_filter;
mod reason;
mod reserve;
mod score;
mod state;
pub mod structured;
mod workload;

pub use args::DynamicResourcesArgs;
pub use reason::{DeviceReason, Unavailable, Wanted, WhyUnavailable};

use state::ClaimState;

/// The default `bindingTimeout`: how long PreBind waits for binding conditions.
const BINDING_TIMEOUT: Duration = Duration::from_secs(600);

/// What configurations and the manual know of the plugin.
pub const PLUGIN: PluginDescriptor = PluginDescriptor {
    default_weight: Some(2),
    args: Some(ArgsType::of::<DynamicResourcesArgs>()),
    default_profile: DefaultProfile::Gated(Feature::DynamicResourceAllocation),
    history: &[
        PluginChange::TakesArguments(Switch::DynamicResourcesArgsValidated),
        PluginChange::Weighs(Switch::DynamicResourcesScore),
        PluginChange::Implements(
            Switch::DynamicResourcesScore,
            PointSet::of(&[ExtensionPoint::Score]),
        ),
        PluginChange::Implemented(
            Switch::StructuredParametersOnly,
            PointSet::of(&[ExtensionPoint::PreScore]),
        ),
    ],
    doc: "resource claims: devices allocated to pods",
    long_doc: "Finds devices for the pod's resource claims on each node, scores by the \
               alternatives used, reserves the allocation and writes it before binding. In \
               PostFilter it deallocates an idle claim that blocks the pod.",
    example: "A claim requests one device of the class gpu.example.com: nodes whose ResourceSlices \
              have no free device of the class are rejected.",
    ..PluginDescriptor::new(
        "DynamicResources",
        &[
            ExtensionPoint::PreEnqueue,
            ExtensionPoint::PreFilter,
            ExtensionPoint::Filter,
            ExtensionPoint::PostFilter,
            ExtensionPoint::Score,
            ExtensionPoint::Reserve,
            ExtensionPoint::PreBind,
        ],
    )
};

/// Builds the plugin for a profile, from its arguments.
pub fn build(args: &ProfileArgs, features: &FeatureGates) -> Built {
    let args: DynamicResourcesArgs = args.of();
    let limited = features.enabled(Feature::DRASchedulerFilterTimeout);
    let timeout = args.filter_timeout.filter(|_| limited).map_or(0, |timeout| timeout.nanos);
    // A fraction of a second counts as a whole second.
    let filter_seconds = u64::try_from(timeout).unwrap_or(0).div_ceil(1_000_000_000);
    Ok(Arc::new(DynamicResources {
        name: "DynamicResources".into(),
        filter_seconds,
        binding_timeout: binding_timeout(&args),
        hints_allocatable: features.has(Switch::AllocatableRequeuesClaims),
        kept: KeptDevices::default(),
    }))
}

/// How long PreBind waits for binding conditions.
fn binding_timeout(args: &DynamicResourcesArgs) -> Duration {
    args.binding_timeout.unwrap_or(BINDING_TIMEOUT)
}

/// The devices that Filter allocated for the pod's claims on a node, by request.
pub fn found_devices(state: &CycleState, node: &NodeInfo) -> Vec<(Symbol, String)> {
    let state = state.read::<ClaimState>();
    let found = state.and_then(|state| filter::allocation_on(state, node));
    let results = found.iter().flat_map(|found| found.results.iter());
    let devices = results.flat_map(|allocation| &allocation.devices.results);
    let name = |device: &kubestep_api::DeviceRequestAllocationResult| {
        format!("{}/{}/{}", device.driver, device.pool, device.device)
    };
    devices.map(|device| (device.request, name(device))).collect()
}

/// Why the pod's claims are unavailable on a node, by the evaluation that Filter uses. The first
/// reason decides the status.
pub fn reasons(
    cx: &CycleContext<'_>,
    state: &CycleState,
    node: &NodeInfo,
    args: &DynamicResourcesArgs,
) -> Vec<DeviceReason> {
    let Some(state) = state.read::<ClaimState>().filter(|state| !state.is_empty()) else {
        return Vec::new();
    };
    let Err((reason, more)) = filter::evaluate(cx, state, node, binding_timeout(args)) else {
        return Vec::new();
    };
    std::iter::once(reason).chain(more).collect()
}

/// What is missing on a node where `wanted` cannot be allocated.
pub fn shortage(state: &CycleState, node: &Node, wanted: &Wanted) -> DeviceShortage {
    let allocator = state.read::<ClaimState>().and_then(|state| state.allocator.clone());
    allocator.map(|allocator| allocator.shortage(node, &wanted.claims)).unwrap_or_default()
}

struct DynamicResources {
    name: Symbol,
    /// The time limit of the search on a node, in seconds; 0 for no limit.
    filter_seconds: u64,
    /// How long PreBind waits for binding conditions.
    binding_timeout: Duration,
    /// Whether it registers for changes of a node's allocatable resources.
    hints_allocatable: bool,
    /// Saves time only: it changes no answer.
    kept: KeptDevices,
}

/// Whether the scores of claims can differ. Older patch releases look at them without
/// DRAPrioritizedList, too, and can fail there.
fn scores_claims(cx: &CycleContext<'_>) -> bool {
    cx.features.enabled(Feature::DRAPrioritizedList)
        || !cx.features.has(Switch::AllocatedClaimsScored)
}

/// The status if PreFilter never wrote the state.
fn not_found() -> Status {
    Status::error("not found")
}

impl Plugin for DynamicResources {
    fn name(&self) -> Symbol {
        self.name
    }

    fn events(&self) -> Option<Vec<Registration>> {
        let mut node = Action::ADD | Action::UPDATE_NODE_LABEL;
        if self.hints_allocatable {
            node = node | Action::UPDATE_NODE_ALLOCATABLE;
        }
        let change = Action::ADD | Action::UPDATE;
        let generated = Action::UPDATE_POD_GENERATED_RESOURCE_CLAIM;
        Some(vec![
            Registration::always(EventResource::Node, node),
            Registration::hinted(EventResource::ResourceClaim, change, hints::after_claim_change),
            Registration::hinted(EventResource::Pod, generated, hints::after_claim_generation),
            Registration::always(EventResource::DeviceClass, change),
            Registration::hinted(EventResource::ResourceSlice, change, hints::after_slice_change),
        ])
    }

    /// Up to 1.31, generated claims are no events.
    fn older_registration(&self) -> OlderRegistration {
        |rules, newest| {
            let counts = rules.by_change || newest.event.resource != EventResource::Pod;
            older_events::labels_and_taints(rules, newest).filter(|_| counts)
        }
    }

    fn node_resource_claims(
        &self,
        state: &CycleState,
        node: Name,
    ) -> Vec<NodeAllocatableResourceClaimStatus> {
        node_resources::claimed_on(state, node)
    }

    /// Keeps a pod out of the queue until all of its claims exist and can be used by it.
    fn pre_enqueue(&self, cx: &QueueContext<'_>, pod: &PodInfo) -> Status {
        match claims::resolve(&pod.pod, cx) {
            Ok(_) => Status::SUCCESS,
            Err(error) => volumes::unresolvable(error),
        }
    }

    /// The state is written first, even if PreFilter then rejects or skips the pod.
    fn pre_filter(&self, cx: &CycleContext<'_>, state: &mut CycleState) -> PreFilterAnswer {
        state.write(ClaimState::default());
        match pre_filter::prepare(cx, self.filter_seconds, &self.kept) {
            Ok(prepared) => {
                state.write(prepared);
                PreFilterAnswer::default()
            }
            Err(status) => status.into(),
        }
    }

    fn filter(&self, cx: &CycleContext<'_>, state: &CycleState, node: &NodeInfo) -> Status {
        match state.read::<ClaimState>() {
            None => not_found(),
            Some(state) if state.is_empty() => Status::SUCCESS,
            Some(state) => filter::filter(cx, state, node, self.binding_timeout),
        }
    }

    fn is_idle(&self, state: &CycleState) -> bool {
        state.read::<ClaimState>().is_some_and(ClaimState::is_empty)
    }

    fn filters(&self, cx: &CycleContext<'_>, state: &CycleState) -> Option<DistinctStatuses> {
        let state = state.read::<ClaimState>()?;
        if !state.is_empty() {
            return filter::on_all_nodes(cx, state);
        }
        let (statuses, by_slot) = (vec![Status::SUCCESS], vec![0; cx.snapshot.slots()]);
        Some(DistinctStatuses { statuses, by_slot })
    }

    /// If an earlier PreFilter plugin ended the cycle, this plugin's state is missing: the error
    /// `not found` ends PostFilter before DefaultPreemption runs, as upstream.
    fn post_filter(&self, cx: &mut PostFilterContext<'_>, state: &CycleState) -> PostFilterAnswer {
        let no_answer = || Status::with_reasons(Code::Unschedulable, Vec::new());
        let status = match state.read::<ClaimState>() {
            _ if post_filter::passes(&cx.cycle) => no_answer(),
            None => not_found(),
            Some(state) => post_filter::post_filter(cx, state, self.name),
        };
        PostFilterAnswer { status, ..PostFilterAnswer::default() }
    }

    fn score(
        &self,
        cx: &CycleContext<'_>,
        state: &CycleState,
        node: &NodeInfo,
    ) -> Result<i64, Status> {
        if !scores_claims(cx) {
            return Ok(0);
        }
        let state = state.read::<ClaimState>().ok_or_else(not_found)?;
        score::score(state, node, cx.features.has(Switch::AllocatedClaimsScored))
    }

    fn scores(
        &self,
        cx: &CycleContext<'_>,
        state: &CycleState,
        nodes: &[NodeId],
    ) -> Option<Vec<i64>> {
        let is_zero = |state: &ClaimState| state.is_empty() || score::are_zero(state);
        let nothing = !scores_claims(cx) || is_zero(state.read::<ClaimState>()?);
        nothing.then(|| vec![0; nodes.len()])
    }

    fn score_basis(&self) -> ScoreBasis {
        ScoreBasis::AllScores
    }

    fn normalize(
        &self,
        _cx: &CycleContext<'_>,
        _state: &CycleState,
        _nodes: &[NodeId],
        scores: &mut [i64],
    ) -> Status {
        relative_to_highest(scores, false);
        Status::SUCCESS
    }

    fn reserve(&self, cx: &mut BindContext<'_>, state: &mut CycleState) -> Status {
        match state.read_mut::<ClaimState>() {
            None => not_found(),
            Some(state) => reserve::reserve(cx, state),
        }
    }

    fn unreserve(&self, cx: &mut BindContext<'_>, state: &mut CycleState) {
        if let Some(state) = state.read_mut::<ClaimState>() {
            reserve::unreserve(cx, state);
        }
    }

    fn pre_bind_pre_flight(&self, _cx: &BindContext<'_>, state: &CycleState) -> Status {
        match state.read::<ClaimState>() {
            None => not_found(),
            Some(state) if state.is_empty() => Status::skip(),
            Some(_) => Status::SUCCESS,
        }
    }

    fn pre_binds_in_parallel(&self) -> bool {
        true
    }

    fn pre_bind(&self, cx: &mut BindContext<'_>, state: &mut CycleState) -> Status {
        let Some(claims) = state.read_mut::<ClaimState>() else { return not_found() };
        match pre_bind::bind_claims(cx, claims) {
            Poll::Pending => {
                if let Some(pause) = claims.until_retry(cx.now) {
                    state.poll_again_within(pause);
                }
                Status::wait()
            }
            Poll::Ready(Ok(())) => conditions::wait(cx, claims, self.binding_timeout),
            Poll::Ready(Err(text)) => Status::error(&text),
        }
    }

    /// As upstream, pods with resource claims are not signable.
    fn sign(&self, _cx: &QueueContext<'_>, pod: &PodInfo) -> Fragments {
        match pod.pod.spec.resource_claims.is_empty() {
            true => Ok(Vec::new()),
            false => Err("pods with dra resource claims are not signable".into()),
        }
    }
}

#[cfg(test)]
mod tests;
