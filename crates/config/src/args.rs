//! The arguments of plugins, typed, with the defaults of Kubernetes 1.36 as `Default`.
//!
//! Upstream: `pkg/scheduler/apis/config/types_pluginargs.go` and
//! `pkg/scheduler/apis/config/v1/defaults.go`.

use kubestep_api::intern::Symbol;
use kubestep_api::{
    LabelSelector, NodeAffinity, NodeInclusionPolicy, TopologySpreadConstraint,
    UnsatisfiableConstraintAction,
};

use super::duration::Duration;

/// The arguments of one plugin.
#[derive(Clone, PartialEq, Debug)]
pub enum PluginArgs {
    /// For DefaultPreemption.
    DefaultPreemption(DefaultPreemptionArgs),
    /// For DynamicResources.
    DynamicResources(DynamicResourcesArgs),
    /// For InterPodAffinity.
    InterPodAffinity(InterPodAffinityArgs),
    /// For ManualPermit.
    ManualPermit(ManualPermitArgs),
    /// For NodeAffinity.
    NodeAffinity(NodeAffinityArgs),
    /// For NodeResourcesBalancedAllocation.
    NodeResourcesBalancedAllocation(NodeResourcesBalancedAllocationArgs),
    /// For NodeResourcesFit.
    NodeResourcesFit(NodeResourcesFitArgs),
    /// For PodTopologySpread.
    PodTopologySpread(PodTopologySpreadArgs),
    /// For VolumeBinding.
    VolumeBinding(VolumeBindingArgs),
    /// For a plugin whose argument kind is unknown: as written (CFG-041).
    Raw(serde_json::Value),
}

/// How many candidates preemption looks at. CFG-101, CFG-102
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DefaultPreemptionArgs {
    /// Percentage of the nodes, at least.
    pub min_candidate_nodes_percentage: i32,
    /// Number of nodes, at least.
    pub min_candidate_nodes_absolute: i32,
}

impl Default for DefaultPreemptionArgs {
    fn default() -> Self {
        Self { min_candidate_nodes_percentage: 10, min_candidate_nodes_absolute: 100 }
    }
}

/// Time limits of DynamicResources. CFG-118, CFG-119
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DynamicResourcesArgs {
    /// Limit for the allocation on one node; `None` or zero: no limit.
    pub filter_timeout: Option<Duration>,
    /// How long PreBind waits for binding conditions; `None` where the gates are off.
    pub binding_timeout: Option<Duration>,
}

impl Default for DynamicResourcesArgs {
    fn default() -> Self {
        Self {
            filter_timeout: Some(Duration::from_secs(10)),
            binding_timeout: Some(Duration::from_secs(600)),
        }
    }
}

/// Weights of InterPodAffinity. CFG-104, CFG-105
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InterPodAffinityArgs {
    /// Weight of the required affinity terms of placed pods, 0 to 100.
    pub hard_pod_affinity_weight: i32,
    /// Whether preferred terms of placed pods do not count.
    pub ignore_preferred_terms_of_existing_pods: bool,
}

impl Default for InterPodAffinityArgs {
    fn default() -> Self {
        Self { hard_pod_affinity_weight: 1, ignore_preferred_terms_of_existing_pods: false }
    }
}

/// Which pods kubestep's ManualPermit holds, and for how long.
#[derive(Clone, PartialEq, Debug)]
pub struct ManualPermitArgs {
    /// The pods that are held; an empty selector holds all.
    pub selector: LabelSelector,
    /// Seconds after which a held pod is rejected, 1 to 900.
    pub timeout_seconds: i64,
}

impl Default for ManualPermitArgs {
    fn default() -> Self {
        Self { selector: LabelSelector::default(), timeout_seconds: 900 }
    }
}

/// Affinity added to that of every pod. CFG-106
#[derive(Clone, PartialEq, Debug, Default)]
pub struct NodeAffinityArgs {
    /// Must be met, or is preferred, in addition to what the pod says.
    pub added_affinity: Option<NodeAffinity>,
}

/// Resources to be balanced. CFG-107
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeResourcesBalancedAllocationArgs {
    /// The resources; every weight is 1.
    pub resources: Vec<ResourceSpec>,
}

impl Default for NodeResourcesBalancedAllocationArgs {
    fn default() -> Self {
        Self { resources: default_resources() }
    }
}

/// What NodeResourcesFit leaves out, and how it scores. CFG-108…112
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NodeResourcesFitArgs {
    /// Extended resources that are not checked.
    pub ignored_resources: Vec<Symbol>,
    /// Prefixes (before the slash) of extended resources that are not checked.
    pub ignored_resource_groups: Vec<Symbol>,
    /// How nodes are scored.
    pub scoring_strategy: ScoringStrategy,
}

/// How NodeResourcesFit scores.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScoringStrategy {
    /// `LeastAllocated`, `MostAllocated` or `RequestedToCapacityRatio`; anything else is refused
    /// only when the plugin is built (CFG-120).
    pub strategy: Symbol,
    /// The resources that count, with weights 1 to 100.
    pub resources: Vec<ResourceSpec>,
    /// The curve of RequestedToCapacityRatio.
    pub requested_to_capacity_ratio: Option<Vec<UtilizationShapePoint>>,
}

impl Default for ScoringStrategy {
    fn default() -> Self {
        Self {
            strategy: Symbol::new("LeastAllocated"),
            resources: default_resources(),
            requested_to_capacity_ratio: None,
        }
    }
}

/// A resource and its weight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResourceSpec {
    /// The resource.
    pub name: Symbol,
    /// Its weight.
    pub weight: i64,
}

/// CPU and memory, weight 1 each.
pub fn default_resources() -> Vec<ResourceSpec> {
    ["cpu", "memory"].map(|name| ResourceSpec { name: Symbol::new(name), weight: 1 }).to_vec()
}

/// A point of a scoring curve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UtilizationShapePoint {
    /// Utilization in percent, 0 to 100.
    pub utilization: i32,
    /// Score, 0 to 10.
    pub score: i32,
}

/// Default constraints of PodTopologySpread. CFG-114, CFG-115
#[derive(Clone, PartialEq, Debug)]
pub struct PodTopologySpreadArgs {
    /// For pods that have no constraints, if `defaulting_type` is `List`.
    pub default_constraints: Vec<DefaultConstraint>,
    /// `System` (built-in constraints) or `List` (those of `default_constraints`).
    pub defaulting_type: Symbol,
}

impl Default for PodTopologySpreadArgs {
    fn default() -> Self {
        Self { default_constraints: Vec::new(), defaulting_type: Symbol::new("System") }
    }
}

impl PodTopologySpreadArgs {
    /// Whether the built-in constraints apply to pods that have none.
    pub fn uses_system_defaults(&self) -> bool {
        self.defaulting_type == "System"
    }

    /// The constraints of the list, as a pod would have them.
    pub fn constraints(&self) -> Vec<TopologySpreadConstraint> {
        self.default_constraints.iter().map(DefaultConstraint::to_constraint).collect()
    }
}

/// A default spread constraint as written: its enumerations are free text until validation.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DefaultConstraint {
    /// Largest allowed difference between domains.
    pub max_skew: i32,
    /// Label of the nodes that names their domain.
    pub topology_key: Symbol,
    /// `DoNotSchedule` or `ScheduleAnyway`.
    pub when_unsatisfiable: Symbol,
    /// Must not be given: it is deduced for each pod.
    pub label_selector: Option<LabelSelector>,
    /// Domains there must be at least.
    pub min_domains: Option<i32>,
    /// `Honor` or `Ignore`; upstream does not check it.
    pub node_affinity_policy: Option<Symbol>,
    /// `Honor` or `Ignore`; upstream does not check it.
    pub node_taints_policy: Option<Symbol>,
    /// Labels of the pod that are added to the selector.
    pub match_label_keys: Vec<Symbol>,
}

impl DefaultConstraint {
    /// The constraint as a pod would have it; text that is neither choice counts as the second.
    pub fn to_constraint(&self) -> TopologySpreadConstraint {
        TopologySpreadConstraint {
            max_skew: self.max_skew,
            topology_key: self.topology_key,
            when_unsatisfiable: match self.when_unsatisfiable.as_str() {
                "DoNotSchedule" => UnsatisfiableConstraintAction::DoNotSchedule,
                _ => UnsatisfiableConstraintAction::ScheduleAnyway,
            },
            label_selector: self.label_selector.clone(),
            min_domains: self.min_domains,
            node_affinity_policy: self.node_affinity_policy.map(policy),
            node_taints_policy: self.node_taints_policy.map(policy),
            match_label_keys: self.match_label_keys.clone(),
        }
    }
}

fn policy(text: Symbol) -> NodeInclusionPolicy {
    match text.as_str() {
        "Honor" => NodeInclusionPolicy::Honor,
        _ => NodeInclusionPolicy::Ignore,
    }
}

/// Time limit and scoring of VolumeBinding. CFG-116, CFG-117
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VolumeBindingArgs {
    /// Seconds that PreBind waits for volumes.
    pub bind_timeout_seconds: i64,
    /// Curve for scoring by storage capacity; only with StorageCapacityScoring.
    pub shape: Option<Vec<UtilizationShapePoint>>,
}

impl Default for VolumeBindingArgs {
    fn default() -> Self {
        Self { bind_timeout_seconds: 600, shape: None }
    }
}
