//! NodeResourcesFit: checks that the node has the resources that the pod requests, and scores it.
//!
//! `check` compares amounts, `rejection` shares the resulting statuses between nodes, `hints` has the
//! queueing hints. Upstream:
//! `pkg/scheduler/framework/plugins/noderesources/fit.go`.

mod args;
mod check;
mod hints;
mod rejection;

use std::sync::Arc;

use crate::keys;
use crate::older_events;
use kubestep_api::intern::Symbol;
use kubestep_config::versions::Switch;
use kubestep_config::{
    ArgsType, DefaultProfile, ExtensionPoint, Feature, FeatureGates, PluginDescriptor, ProfileArgs,
};
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::events::{Action, EventResource, OlderRegistration, Registration};
use kubestep_framework::node::NodeInfo;
use kubestep_framework::plugin::{
    CycleContext, Fragments, GroupContext, Plugin, PreFilterAnswer, QueueContext, ScoreBasis,
};
use kubestep_framework::pod::PodInfo;
use kubestep_framework::pod_groups::Proposal;
use kubestep_framework::record::nodes::NodeList;
use kubestep_framework::registry::Built;
use kubestep_framework::status::Status;

pub use super::amounts::Amounts;
use super::amounts::{RequestBasis, ResourceScorer, ScoreInput};
use super::sign_requests;
use super::strategy::UtilizationStrategy;
pub use args::{NodeResourcesFitArgs, RequestedToCapacityRatio, ScoringStrategy};
pub use check::Shortfall;
use check::{Demand, Exempt};
use rejection::FitRejections;
pub use rejection::rejection;

/// What configurations and the manual know of the plugin.
pub const PLUGIN: PluginDescriptor = PluginDescriptor {
    default_weight: Some(1),
    args: Some(ArgsType::of::<NodeResourcesFitArgs>()),
    default_profile: DefaultProfile::Present,
    doc: "CPU, memory, pods and other resources free on the node",
    long_doc: "The pod's requests plus those of the pods on the node must not exceed the node's \
               allocatable resources. The score follows the scoring strategy: LeastAllocated (the \
               default) spreads, MostAllocated packs, RequestedToCapacityRatio follows a curve.",
    example: "A node with 4 CPUs, of which pods request 3500m, rejects a pod that requests 1 CPU: \
              \"Insufficient cpu\". Actual usage does not count.",
    ..PluginDescriptor::new(
        "NodeResourcesFit",
        &[
            ExtensionPoint::PreFilter,
            ExtensionPoint::Filter,
            ExtensionPoint::PreScore,
            ExtensionPoint::Score,
            ExtensionPoint::PlacementScore,
        ],
    )
};

/// Builds the plugin.
///
/// # Errors
/// The scoring strategy does not exist.
pub fn build(args: &ProfileArgs, features: &FeatureGates) -> Built {
    let args: NodeResourcesFitArgs = args.of();
    let scoring_strategy = &args.scoring_strategy;
    Ok(Arc::new(Fit {
        name: Symbol::new("NodeResourcesFit"),
        exempt: exempt(&args),
        strategy: UtilizationStrategy::new(scoring_strategy)?,
        scorer: ResourceScorer::new(&scoring_strategy.resources, RequestBasis::NonZero),
        distinguishes: features.has(Switch::RequestAboveAllocatableUnresolvable),
        features: *features,
    }))
}

/// What a node lacks for the pod of a cycle, resource by resource; nothing where it fits.
pub fn shortfalls(state: &CycleState, node: &NodeInfo) -> Vec<Shortfall> {
    let state = state.read::<FitState>();
    state.map(|state| state.demand.shortfalls(node)).unwrap_or_default()
}

/// The amounts that the score of a node is computed from.
pub fn score_amounts(
    cx: &CycleContext<'_>,
    args: &NodeResourcesFitArgs,
    node: &NodeInfo,
) -> Vec<Amounts> {
    let scorer = ResourceScorer::new(&args.scoring_strategy.resources, RequestBasis::NonZero);
    scorer.amounts(cx, &scorer.input(cx), node).into_vec()
}

fn exempt(args: &NodeResourcesFitArgs) -> Exempt {
    Exempt {
        resources: args.ignored_resources.clone(),
        groups: args.ignored_resource_groups.clone(),
    }
}

struct Fit {
    name: Symbol,
    exempt: Exempt,
    strategy: UtilizationStrategy,
    scorer: ResourceScorer,
    /// Whether a request above the allocatable amount of a node is unresolvable.
    distinguishes: bool,
    features: FeatureGates,
}

/// Written by PreFilter, read by Filter.
#[derive(Clone)]
struct FitState {
    demand: Demand,
    rejections: Arc<FitRejections>,
}

/// Written by PreScore, read by Score.
#[derive(Clone)]
struct FitScoreState(ScoreInput);

impl Plugin for Fit {
    fn name(&self) -> Symbol {
        self.name
    }

    fn filter_key(&self, pod: &PodInfo) -> Option<String> {
        keys::requests(pod)
    }

    fn score_basis(&self) -> ScoreBasis {
        ScoreBasis::NodeAlone
    }

    fn score_key(&self, pod: &PodInfo) -> Option<String> {
        self.scorer.key(pod)
    }

    fn events(&self) -> Option<Vec<Registration>> {
        let pods = match self.features.enabled(Feature::InPlacePodVerticalScaling) {
            true => Action::DELETE | Action::UPDATE_POD_SCALE_DOWN,
            false => Action::DELETE,
        };
        let nodes = Action::ADD | Action::UPDATE_NODE_ALLOCATABLE;
        let mut events = vec![
            Registration::hinted(EventResource::Pod, pods, hints::after_pod_change),
            Registration::hinted(EventResource::Node, nodes, hints::after_node_change),
        ];
        if self.features.enabled(Feature::DRAExtendedResource) {
            let classes = Action::ADD | Action::UPDATE;
            let hint = hints::after_class_change;
            events.push(Registration::hinted(EventResource::DeviceClass, classes, hint));
        }
        Some(events)
    }

    fn older_registration(&self) -> OlderRegistration {
        older_events::all_node_updates
    }

    fn admits(&self, cx: &QueueContext<'_>, pod: &PodInfo, node: &NodeInfo) -> bool {
        Demand::new(cx, pod, &Exempt::default()).lacking(node).is_none()
    }

    /// Never skips: even a pod without requests needs room for one more pod.
    fn pre_filter(&self, cx: &CycleContext<'_>, state: &mut CycleState) -> PreFilterAnswer {
        let demand = Demand::new(&cx.queue(), cx.pod, &self.exempt);
        let rejections = Arc::new(FitRejections::new(self.name, self.distinguishes, &demand));
        state.write(FitState { demand, rejections });
        PreFilterAnswer::default()
    }

    fn filter(&self, _cx: &CycleContext<'_>, state: &CycleState, node: &NodeInfo) -> Status {
        let Some(FitState { demand, rejections }) = state.read() else {
            let text = r#"error reading "PreFilterNodeResourcesFit" from cycleState: not found"#;
            return Status::error(text);
        };
        let lacking = demand.lacking(node);
        if lacking.is_none() { Status::SUCCESS } else { rejections.status(&lacking, demand) }
    }

    fn pre_score(
        &self,
        cx: &CycleContext<'_>,
        state: &mut CycleState,
        _nodes: &NodeList,
    ) -> Status {
        state.write(FitScoreState(self.scorer.input(cx)));
        Status::SUCCESS
    }

    fn score(
        &self,
        cx: &CycleContext<'_>,
        state: &CycleState,
        node: &NodeInfo,
    ) -> Result<i64, Status> {
        if self.scorer.is_empty() {
            return Err(Status::error("resources not found"));
        }
        let amounts = match state.read::<FitScoreState>() {
            Some(FitScoreState(input)) => self.scorer.amounts(cx, input, node),
            None => self.scorer.amounts(cx, &self.scorer.input(cx), node),
        };
        Ok(self.strategy.score(&amounts))
    }

    /// Prefers fuller placements, whatever the strategy for nodes, as upstream.
    fn score_placement(
        &self,
        cx: &GroupContext<'_>,
        proposal: &Proposal<'_>,
    ) -> Result<i64, Status> {
        Ok(UtilizationStrategy::Most.score(&self.scorer.placement_amounts(cx, proposal)))
    }

    fn sign(&self, cx: &QueueContext<'_>, pod: &PodInfo) -> Fragments {
        sign_requests(cx, pod)
    }
}

#[cfg(test)]
mod tests;
