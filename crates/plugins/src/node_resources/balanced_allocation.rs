//! NodeResourcesBalancedAllocation: prefers nodes on which the pod makes the utilization of CPU,
//! memory and other resources more even.
//!
//! Upstream: `pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go`.

use std::sync::Arc;

use smallvec::SmallVec;

use super::amounts::{Amounts, RequestBasis, ResourceScorer, ScoreInput};
use super::sign_requests;
use super::{ResourceSpec, complete, default_resources};
use kubestep_api::intern::Symbol;
use kubestep_config::validation::Findings;
use kubestep_config::versions::Switch;
use kubestep_config::{
    ArgsType, Arguments, DefaultProfile, ExtensionPoint, FeatureGates, FieldPath, PluginDescriptor,
    ProfileArgs, arguments,
};
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::node::NodeInfo;
use kubestep_framework::plugin::{CycleContext, Fragments, Plugin, QueueContext, ScoreBasis};
use kubestep_framework::pod::PodInfo;
use kubestep_framework::record::nodes::NodeList;
use kubestep_framework::record::scores::MAX_NODE_SCORE;
use kubestep_framework::registry::Built;
use kubestep_framework::status::Status;

/// What configurations and the manual know of the plugin.
pub const PLUGIN: PluginDescriptor = PluginDescriptor {
    default_weight: Some(1),
    registers_events: false,
    args: Some(ArgsType::of::<NodeResourcesBalancedAllocationArgs>()),
    default_profile: DefaultProfile::Present,
    doc: "prefers nodes whose resources would be used evenly",
    long_doc: "The score is high where CPU and memory (or the resources in the arguments) would be \
               used to about the same fraction with the pod.",
    example: "A pod that brings a node to 50% of CPU and 50% of memory scores higher there than on \
              a node that it would bring to 90% and 10%.",
    ..PluginDescriptor::new(
        "NodeResourcesBalancedAllocation",
        &[ExtensionPoint::PreScore, ExtensionPoint::Score],
    )
};

arguments! {
    /// The resources to be balanced; every weight is 1.
    #[derive(Eq)]
    pub struct NodeResourcesBalancedAllocationArgs for "NodeResourcesBalancedAllocation" {
        resources: Vec<ResourceSpec> = default_resources(),
            put_some "resources", "a list of name and weight 1",
            "The resources that should be used evenly.";
    }
}

impl Arguments for NodeResourcesBalancedAllocationArgs {
    fn complete(&mut self, _: &FeatureGates) {
        complete(&mut self.resources);
    }

    fn validate(&self, found: &mut Findings, path: &FieldPath, _: &FeatureGates) {
        for (i, resource) in self.resources.iter().enumerate() {
            let path = path.field("resources").index(i);
            if self.resources[..i].iter().any(|other| other.name == resource.name) {
                found.duplicate(&path.field("name"), &resource.name);
            }
            if resource.weight != 1 {
                found.invalid(&path.field("weight"), resource.weight, "must be 1");
            }
        }
    }
}

/// Builds the plugin for a profile, from its arguments.
pub fn build(args: &ProfileArgs, features: &FeatureGates) -> Built {
    let args: NodeResourcesBalancedAllocationArgs = args.of();
    Ok(Arc::new(BalancedAllocation {
        name: Symbol::new("NodeResourcesBalancedAllocation"),
        scorer: ResourceScorer::new(&args.resources, RequestBasis::Requested),
        gain: features.has(Switch::BalancedAllocationGain),
        skips: features.has(Switch::BalancedAllocationSkips),
    }))
}

/// The amounts that the score of a node is computed from, and its balance with and without the
/// pod, each 0 to 100.
pub fn balances(
    cx: &CycleContext<'_>,
    args: &NodeResourcesBalancedAllocationArgs,
    node: &NodeInfo,
) -> (Vec<Amounts>, i64, i64) {
    let scorer = ResourceScorer::new(&args.resources, RequestBasis::Requested);
    let amounts = scorer.amounts(cx, &scorer.input(cx), node);
    let with_pod = balance(&amounts, |amount| amount.requested);
    let without = balance(&amounts, |amount| amount.allocated);
    (amounts.into_vec(), with_pod, without)
}

struct BalancedAllocation {
    name: Symbol,
    scorer: ResourceScorer,
    /// Whether the score is what the pod changes, and not the balance with the pod.
    gain: bool,
    /// Whether pods without requests are skipped.
    skips: bool,
}

/// Written by PreScore, read by Score.
#[derive(Clone)]
struct BalanceState(ScoreInput);

impl BalancedAllocation {
    fn node_score(&self, cx: &CycleContext<'_>, input: &ScoreInput, node: &NodeInfo) -> i64 {
        let amounts = self.scorer.amounts(cx, input, node);
        let with_pod = balance(&amounts, |amount| amount.requested);
        if !self.gain {
            return with_pod;
        }
        let without = balance(&amounts, |amount| amount.allocated);
        let half = MAX_NODE_SCORE / 2;
        half + (half + with_pod - without) / 2
    }
}

/// 100 if all resources have the same utilization, and less the more it deviates.
fn balance(amounts: &[Amounts], used: impl Fn(&Amounts) -> i64) -> i64 {
    let share = |amount: &Amounts| (used(amount) as f64 / amount.allocatable as f64).min(1.0);
    let shares: SmallVec<[f64; 4]> = amounts.iter().map(share).collect();
    ((1.0 - deviation(&shares)) * MAX_NODE_SCORE as f64) as i64
}

/// The standard deviation, computed in upstream's order, so that the last bit is the same.
fn deviation(shares: &[f64]) -> f64 {
    match shares {
        [] | [_] => 0.0,
        [first, second] => ((first - second) / 2.0).abs(),
        _ => {
            let count = shares.len() as f64;
            let mean = shares.iter().fold(0.0, |sum, share| sum + share) / count;
            let squares =
                shares.iter().fold(0.0, |sum, share| sum + (share - mean) * (share - mean));
            (squares / count).sqrt()
        }
    }
}

impl Plugin for BalancedAllocation {
    fn name(&self) -> Symbol {
        self.name
    }

    fn score_basis(&self) -> ScoreBasis {
        ScoreBasis::NodeAlone
    }

    fn score_key(&self, pod: &PodInfo) -> Option<String> {
        self.scorer.key(pod)
    }

    /// Skips pods that request none of the configured resources.
    fn pre_score(
        &self,
        cx: &CycleContext<'_>,
        state: &mut CycleState,
        _nodes: &NodeList,
    ) -> Status {
        let input = self.scorer.input(cx);
        if self.skips && input.is_zero() {
            return Status::skip();
        }
        state.write(BalanceState(input));
        Status::SUCCESS
    }

    fn score(
        &self,
        cx: &CycleContext<'_>,
        state: &CycleState,
        node: &NodeInfo,
    ) -> Result<i64, Status> {
        if let Some(BalanceState(input)) = state.read() {
            return Ok(self.node_score(cx, input, node));
        }
        match self.scorer.input(cx) {
            input if self.skips && input.is_zero() => Ok(0),
            input => Ok(self.node_score(cx, &input, node)),
        }
    }

    fn sign(&self, cx: &QueueContext<'_>, pod: &PodInfo) -> Fragments {
        sign_requests(cx, pod)
    }
}
