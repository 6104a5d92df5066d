//! Decoding of plugin arguments, strict like the document itself. An empty map
//! decodes to the defaults, so this is where they are applied, too (CFG-100…119).
//!
//! Upstream: `staging/src/k8s.io/kube-scheduler/config/v1/types_pluginargs.go`,
//! `pkg/scheduler/apis/config/v1/defaults.go`.

use kubestep_api::intern::Symbol;
use kubestep_api::{
    LabelSelector, LabelSelectorRequirement, NodeAffinity, NodeSelector, NodeSelectorRequirement,
    NodeSelectorTerm, PreferredSchedulingTerm,
};

use super::args::{
    DefaultConstraint, DefaultPreemptionArgs, DynamicResourcesArgs, InterPodAffinityArgs,
    ManualPermitArgs, NodeAffinityArgs, NodeResourcesBalancedAllocationArgs, NodeResourcesFitArgs,
    PluginArgs, PodTopologySpreadArgs, ResourceSpec, ScoringStrategy, UtilizationShapePoint,
    VolumeBindingArgs,
};
use super::decode::type_field;
use super::defaults;
use super::features::FeatureGates;
use super::node::Node;
use super::path::FieldPath;
use super::problem::Problem;
use super::reader::{Fields, Reader};
use super::types::{API_VERSION, GROUP, KIND};

type ReadArgs = fn(&mut Fields<'_, '_>, &FeatureGates) -> PluginArgs;

/// The plugins whose argument kind is known, sorted by name.
const KINDS: &[(&str, ReadArgs)] = &[
    ("DefaultPreemption", default_preemption),
    ("DynamicResources", dynamic_resources),
    ("InterPodAffinity", inter_pod_affinity),
    ("ManualPermit", manual_permit),
    ("NodeAffinity", node_affinity_args),
    ("NodeResourcesBalancedAllocation", balanced_allocation),
    ("NodeResourcesFit", resources_fit),
    ("PodTopologySpread", pod_topology_spread),
    ("VolumeBinding", volume_binding),
];

fn reader_of(plugin: &str) -> Option<ReadArgs> {
    KINDS.iter().find(|(name, _)| *name == plugin).map(|(_, read)| *read)
}

/// Whether `kind` is the argument kind of a known plugin.
pub fn has_args_kind(kind: &str) -> bool {
    kind.strip_suffix("Args").is_some_and(|plugin| reader_of(plugin).is_some())
}

/// Decodes the arguments of `plugin`; those of unknown kind are kept as written (CFG-041).
pub fn args(
    reader: &mut Reader,
    plugin: Symbol,
    node: &Node,
    path: &FieldPath,
    gates: &FeatureGates,
) -> Option<PluginArgs> {
    let Some(read) = reader_of(&plugin) else {
        let raw = serde_json::to_value(node).ok().filter(|raw| !raw.is_null());
        return raw.map(PluginArgs::Raw);
    };
    if let Err(problem) = check_kind(plugin, node, path) {
        reader.problems.push(problem);
        return None;
    }
    let mut fields = reader.fields(node, path);
    fields.raw("apiVersion");
    fields.raw("kind");
    let args = read(&mut fields, gates);
    fields.finish();
    Some(args)
}

/// The arguments a plugin has when none are given; `None` if its kind is unknown.
pub fn default_args(plugin: Symbol, gates: &FeatureGates) -> Option<PluginArgs> {
    reader_of(&plugin)?;
    let mut reader = Reader { problems: Vec::new(), yaml: false };
    args(&mut reader, plugin, &Node::Null, &FieldPath::root(), gates)
}

/// Arguments may leave out what they are, but not claim to be something else. CFG-042
fn check_kind(plugin: Symbol, node: &Node, path: &FieldPath) -> Result<(), Problem> {
    let version = type_field(node, "apiVersion", path)?;
    if !version.is_empty() && version != API_VERSION {
        let message = format!("{version:?} is not served");
        let help = format!("arguments take {API_VERSION}, or nothing");
        return Err(Problem::new(&path.field("apiVersion"), message).help(help));
    }
    let kind = type_field(node, "kind", path)?;
    if kind.is_empty() || kind.strip_suffix("Args") == Some(plugin.as_str()) {
        return Ok(());
    }
    let message = match kind == KIND || has_args_kind(kind) {
        true => {
            format!(
                "args for plugin {plugin} were not of type {plugin}Args.{GROUP}, got {kind}.{GROUP}"
            )
        }
        false => format!("there is no kind {kind:?} in {API_VERSION}"),
    };
    Err(Problem::new(&path.field("kind"), message).help(format!("write {plugin}Args")))
}

fn default_preemption(f: &mut Fields<'_, '_>, _: &FeatureGates) -> PluginArgs {
    let default = DefaultPreemptionArgs::default();
    PluginArgs::DefaultPreemption(DefaultPreemptionArgs {
        min_candidate_nodes_percentage: f
            .get("minCandidateNodesPercentage", Reader::int32)
            .unwrap_or(default.min_candidate_nodes_percentage),
        min_candidate_nodes_absolute: f
            .get("minCandidateNodesAbsolute", Reader::int32)
            .unwrap_or(default.min_candidate_nodes_absolute),
    })
}

fn dynamic_resources(f: &mut Fields<'_, '_>, gates: &FeatureGates) -> PluginArgs {
    let default = defaults::dynamic_resources(gates);
    PluginArgs::DynamicResources(DynamicResourcesArgs {
        filter_timeout: f.get("filterTimeout", Reader::duration).or(default.filter_timeout),
        binding_timeout: f.get("bindingTimeout", Reader::duration).or(default.binding_timeout),
    })
}

fn inter_pod_affinity(f: &mut Fields<'_, '_>, _: &FeatureGates) -> PluginArgs {
    let default = InterPodAffinityArgs::default();
    PluginArgs::InterPodAffinity(InterPodAffinityArgs {
        hard_pod_affinity_weight: f
            .get("hardPodAffinityWeight", Reader::int32)
            .unwrap_or(default.hard_pod_affinity_weight),
        ignore_preferred_terms_of_existing_pods: f
            .or_zero("ignorePreferredTermsOfExistingPods", Reader::boolean),
    })
}

fn manual_permit(f: &mut Fields<'_, '_>, _: &FeatureGates) -> PluginArgs {
    let default = ManualPermitArgs::default();
    PluginArgs::ManualPermit(ManualPermitArgs {
        selector: f.or_zero("selector", label_selector),
        timeout_seconds: f.get("timeoutSeconds", Reader::int64).unwrap_or(default.timeout_seconds),
    })
}

fn node_affinity_args(f: &mut Fields<'_, '_>, _: &FeatureGates) -> PluginArgs {
    let added_affinity = f.get("addedAffinity", node_affinity);
    PluginArgs::NodeAffinity(NodeAffinityArgs { added_affinity })
}

fn balanced_allocation(f: &mut Fields<'_, '_>, _: &FeatureGates) -> PluginArgs {
    let resources = defaults::resources(f.list("resources", resource_spec));
    PluginArgs::NodeResourcesBalancedAllocation(NodeResourcesBalancedAllocationArgs { resources })
}

fn resources_fit(f: &mut Fields<'_, '_>, _: &FeatureGates) -> PluginArgs {
    PluginArgs::NodeResourcesFit(NodeResourcesFitArgs {
        ignored_resources: f.list("ignoredResources", Reader::symbol).unwrap_or_default(),
        ignored_resource_groups: f
            .list("ignoredResourceGroups", Reader::symbol)
            .unwrap_or_default(),
        scoring_strategy: f.or_zero("scoringStrategy", scoring_strategy),
    })
}

fn pod_topology_spread(f: &mut Fields<'_, '_>, _: &FeatureGates) -> PluginArgs {
    let default = PodTopologySpreadArgs::default();
    PluginArgs::PodTopologySpread(PodTopologySpreadArgs {
        default_constraints: f.list("defaultConstraints", constraint).unwrap_or_default(),
        defaulting_type: f
            .get("defaultingType", Reader::symbol)
            .filter(|text| !text.is_empty())
            .unwrap_or(default.defaulting_type),
    })
}

fn volume_binding(f: &mut Fields<'_, '_>, gates: &FeatureGates) -> PluginArgs {
    let default = VolumeBindingArgs::default();
    PluginArgs::VolumeBinding(VolumeBindingArgs {
        bind_timeout_seconds: f
            .get("bindTimeoutSeconds", Reader::int64)
            .unwrap_or(default.bind_timeout_seconds),
        shape: defaults::storage_shape(f.list("shape", shape_point), gates),
    })
}

fn scoring_strategy(r: &mut Reader, node: &Node, path: &FieldPath) -> ScoringStrategy {
    let mut f = r.fields(node, path);
    let strategy = ScoringStrategy {
        strategy: f.or_zero("type", Reader::symbol),
        resources: defaults::resources(f.list("resources", resource_spec)),
        requested_to_capacity_ratio: f.get("requestedToCapacityRatio", capacity_ratio),
    };
    f.finish();
    strategy
}

fn capacity_ratio(r: &mut Reader, node: &Node, path: &FieldPath) -> Vec<UtilizationShapePoint> {
    let mut f = r.fields(node, path);
    let shape = f.list("shape", shape_point).unwrap_or_default();
    f.finish();
    shape
}

fn shape_point(r: &mut Reader, node: &Node, path: &FieldPath) -> UtilizationShapePoint {
    let mut f = r.fields(node, path);
    let point = UtilizationShapePoint {
        utilization: f.or_zero("utilization", Reader::int32),
        score: f.or_zero("score", Reader::int32),
    };
    f.finish();
    point
}

fn resource_spec(r: &mut Reader, node: &Node, path: &FieldPath) -> ResourceSpec {
    let mut f = r.fields(node, path);
    let spec = ResourceSpec {
        name: f.or_zero("name", Reader::symbol),
        weight: f.or_zero("weight", Reader::int64),
    };
    f.finish();
    spec
}

fn constraint(r: &mut Reader, node: &Node, path: &FieldPath) -> DefaultConstraint {
    let mut f = r.fields(node, path);
    let constraint = DefaultConstraint {
        max_skew: f.or_zero("maxSkew", Reader::int32),
        topology_key: f.or_zero("topologyKey", Reader::symbol),
        when_unsatisfiable: f.or_zero("whenUnsatisfiable", Reader::symbol),
        label_selector: f.get("labelSelector", label_selector),
        min_domains: f.get("minDomains", Reader::int32),
        node_affinity_policy: f.get("nodeAffinityPolicy", Reader::symbol),
        node_taints_policy: f.get("nodeTaintsPolicy", Reader::symbol),
        match_label_keys: f.list("matchLabelKeys", Reader::symbol).unwrap_or_default(),
    };
    f.finish();
    constraint
}

fn label_selector(r: &mut Reader, node: &Node, path: &FieldPath) -> LabelSelector {
    let mut f = r.fields(node, path);
    let labels = f.or_zero("matchLabels", labels);
    let selector = LabelSelector {
        match_labels: labels.into_iter().collect(),
        match_expressions: f.list("matchExpressions", label_requirement).unwrap_or_default(),
    };
    f.finish();
    selector
}

fn labels(r: &mut Reader, node: &Node, path: &FieldPath) -> Vec<(Symbol, Symbol)> {
    match node {
        Node::Map(entries) => entries
            .iter()
            .map(|(key, value)| (Symbol::new(key), r.symbol(value, &path.field(key))))
            .collect(),
        other => {
            // A map of fields with none known: says what was expected.
            r.fields(other, path).finish();
            Vec::new()
        }
    }
}

fn label_requirement(r: &mut Reader, node: &Node, path: &FieldPath) -> LabelSelectorRequirement {
    let mut f = r.fields(node, path);
    let requirement = LabelSelectorRequirement {
        key: f.or_zero("key", Reader::symbol),
        operator: f.or_zero("operator", Reader::text).as_str().into(),
        values: f.list("values", Reader::symbol).unwrap_or_default(),
    };
    f.finish();
    requirement
}

fn node_affinity(r: &mut Reader, node: &Node, path: &FieldPath) -> NodeAffinity {
    let mut f = r.fields(node, path);
    let affinity = NodeAffinity {
        required_during_scheduling_ignored_during_execution: f
            .get("requiredDuringSchedulingIgnoredDuringExecution", node_selector),
        preferred_during_scheduling_ignored_during_execution: f
            .list("preferredDuringSchedulingIgnoredDuringExecution", preferred_term)
            .unwrap_or_default(),
    };
    f.finish();
    affinity
}

fn node_selector(r: &mut Reader, node: &Node, path: &FieldPath) -> NodeSelector {
    let mut f = r.fields(node, path);
    let terms = f.list("nodeSelectorTerms", node_term).unwrap_or_default();
    f.finish();
    NodeSelector { node_selector_terms: terms }
}

fn preferred_term(r: &mut Reader, node: &Node, path: &FieldPath) -> PreferredSchedulingTerm {
    let mut f = r.fields(node, path);
    let term = PreferredSchedulingTerm {
        weight: f.or_zero("weight", Reader::int32),
        preference: f.or_zero("preference", node_term),
    };
    f.finish();
    term
}

fn node_term(r: &mut Reader, node: &Node, path: &FieldPath) -> NodeSelectorTerm {
    let mut f = r.fields(node, path);
    let term = NodeSelectorTerm {
        match_expressions: f.list("matchExpressions", node_requirement).unwrap_or_default(),
        match_fields: f.list("matchFields", node_requirement).unwrap_or_default(),
    };
    f.finish();
    term
}

fn node_requirement(r: &mut Reader, node: &Node, path: &FieldPath) -> NodeSelectorRequirement {
    let mut f = r.fields(node, path);
    let requirement = NodeSelectorRequirement {
        key: f.or_zero("key", Reader::symbol),
        operator: f.or_zero("operator", Reader::text).as_str().into(),
        values: f.list("values", Reader::symbol).unwrap_or_default(),
    };
    f.finish();
    requirement
}
