//! Which values the arguments of plugins may have (CFG-101…119).
//!
//! Upstream: `pkg/scheduler/apis/config/validation/validation_pluginargs.go`,
//! `staging/src/k8s.io/component-helpers/scheduling/corev1/nodeaffinity`.

use serde_json::{Value, json};

use crate::duration::Duration;
use crate::features::{Feature, FeatureGates};
use crate::path::FieldPath;
use crate::types::{
    DefaultConstraint, DefaultPreemptionArgs, DynamicResourcesArgs, ManualPermitArgs,
    NodeResourcesBalancedAllocationArgs, NodeResourcesFitArgs, PluginArgs, PodTopologySpreadArgs,
    ScoringStrategy, UtilizationShapePoint, VolumeBindingArgs,
};
use kubestep_api::intern::Symbol;
use kubestep_api::{NodeAffinity, NodeSelectorOperator, NodeSelectorRequirement, NodeSelectorTerm};

use super::Findings;
use super::names::{label_value, qualified_name};

/// Checks the arguments of a plugin, whose place is `path`.
pub fn validate_args(
    found: &mut Findings,
    args: &PluginArgs,
    path: &FieldPath,
    gates: &FeatureGates,
) {
    match args {
        PluginArgs::DefaultPreemption(args) => default_preemption(found, args, path),
        PluginArgs::DynamicResources(args) => dynamic_resources(found, args, path, gates),
        PluginArgs::InterPodAffinity(args) => {
            let path = path.field("hardPodAffinityWeight");
            percent(found, &path, args.hard_pod_affinity_weight);
        }
        PluginArgs::ManualPermit(args) => manual_permit(found, args, path),
        PluginArgs::NodeAffinity(args) => {
            if let Some(affinity) = &args.added_affinity {
                node_affinity(found, affinity, &path.field("addedAffinity"));
            }
        }
        PluginArgs::NodeResourcesBalancedAllocation(args) => balanced(found, args, path),
        PluginArgs::NodeResourcesFit(args) => resources_fit(found, args, path),
        PluginArgs::PodTopologySpread(args) => pod_topology_spread(found, args, path),
        PluginArgs::VolumeBinding(args) => volume_binding(found, args, path, gates),
        PluginArgs::Raw(_) => {}
    }
}

fn percent(found: &mut Findings, path: &FieldPath, value: i32) {
    if !(0..=100).contains(&value) {
        found.invalid(path, value, "not in valid range [0, 100]");
    }
}

/// CFG-101…103
fn default_preemption(found: &mut Findings, args: &DefaultPreemptionArgs, path: &FieldPath) {
    let (relative, absolute) =
        (args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute);
    let relative_path = path.field("minCandidateNodesPercentage");
    let absolute_path = path.field("minCandidateNodesAbsolute");
    percent(found, &relative_path, relative);
    if absolute < 0 {
        found.invalid(&absolute_path, absolute, "not in valid range [0, inf)");
    }
    if relative == 0 && absolute == 0 {
        let same = |other: &str| format!("cannot be zero at the same time as {other}");
        found.invalid(&relative_path, 0, &same("minCandidateNodesAbsolute"));
        found.invalid(&absolute_path, 0, &same("minCandidateNodesPercentage"));
    }
}

/// CFG-118, CFG-119
fn dynamic_resources(
    found: &mut Findings,
    args: &DynamicResourcesArgs,
    path: &FieldPath,
    gates: &FeatureGates,
) {
    if let Some(timeout) = args.filter_timeout {
        let path = path.field("filterTimeout");
        if !gates.enabled(Feature::DRASchedulerFilterTimeout) {
            found.forbidden(&path, "DRASchedulingFilterTimeout feature gate is disabled");
        } else if timeout.nanos < 0 {
            found.invalid(&path, timeout.to_string(), "must be zero or positive");
        }
    }
    let binding = gates.enabled(Feature::DRADeviceBindingConditions)
        && gates.enabled(Feature::DRAResourceClaimDeviceStatus);
    if let Some(timeout) = args.binding_timeout {
        let path = path.field("bindingTimeout");
        if !binding {
            let detail = "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus \
                          feature gate is disabled";
            found.forbidden(&path, detail);
        } else if timeout < Duration::from_secs(1) {
            found.invalid(&path, timeout.to_string(), "must be at least 1 second");
        }
    }
}

/// kubestep's own plugin: the selector must compile, and upstream allows pods to wait 15 minutes.
fn manual_permit(found: &mut Findings, args: &ManualPermitArgs, path: &FieldPath) {
    let timeout = args.timeout_seconds;
    if !(1..=900).contains(&timeout) {
        found.invalid(&path.field("timeoutSeconds"), timeout, "not in valid range [1, 900]");
    }
    let path = path.field("selector");
    for (key, value) in args.selector.match_labels.iter() {
        let path = path.field("matchLabels").key(&key);
        label_key(found, &path, &key);
        reasons(found, &path, value, label_value(value));
    }
    for (i, requirement) in args.selector.match_expressions.iter().enumerate() {
        let path = path.field("matchExpressions").index(i);
        expression(
            found,
            &path,
            requirement.key,
            requirement.operator.as_str(),
            &requirement.values,
            false,
        );
    }
}

/// CFG-106: the selector of every term must compile.
fn node_affinity(found: &mut Findings, affinity: &NodeAffinity, path: &FieldPath) {
    if let Some(required) = &affinity.required_during_scheduling_ignored_during_execution {
        let path =
            path.field("requiredDuringSchedulingIgnoredDuringExecution").field("nodeSelectorTerms");
        for (i, term) in required.node_selector_terms.iter().enumerate() {
            node_term(found, term, &path.index(i));
        }
    }
    let path = path.field("preferredDuringSchedulingIgnoredDuringExecution");
    let preferred = &affinity.preferred_during_scheduling_ignored_during_execution;
    for (i, term) in preferred.iter().enumerate().filter(|(_, term)| term.weight != 0) {
        node_term(found, &term.preference, &path.index(i));
    }
}

fn node_term(found: &mut Findings, term: &NodeSelectorTerm, path: &FieldPath) {
    for (i, requirement) in term.match_expressions.iter().enumerate() {
        let path = path.field("matchExpressions").index(i);
        let operator = requirement.operator.as_str();
        expression(found, &path, requirement.key, operator, &requirement.values, true);
    }
    for (i, requirement) in term.match_fields.iter().enumerate() {
        node_field(found, requirement, &path.field("matchFields").index(i));
    }
}

/// One requirement on labels (NewRequirement in `labels/selector.go`).
fn expression(
    found: &mut Findings,
    path: &FieldPath,
    key: Symbol,
    operator: &str,
    values: &[Symbol],
    of_nodes: bool,
) {
    let operators: &[&str] = &["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"];
    let operators = if of_nodes { operators } else { &operators[..4] };
    if !operators.contains(&operator) {
        found.unsupported(&path.field("operator"), operator, operators);
        return;
    }
    label_key(found, &path.field("key"), &key);
    value_count(found, &path.field("values"), operator, values);
    for (i, value) in values.iter().enumerate() {
        let path = path.field("values").index(i);
        if matches!(operator, "Gt" | "Lt") && value.parse::<i64>().is_err() {
            let detail = "for 'Gt', 'Lt' operators, the value must be an integer";
            found.invalid(&path, value.as_str(), detail);
        }
    }
    for (i, value) in values.iter().enumerate() {
        let path = path.field("values").index(i).key(&key);
        reasons(found, &path, value, label_value(value));
    }
}

fn value_count(found: &mut Findings, path: &FieldPath, operator: &str, values: &[Symbol]) {
    let detail = match (operator, values.len()) {
        ("In" | "NotIn", 0) => "for 'in', 'notin' operators, values set can't be empty",
        ("Exists" | "DoesNotExist", 1..) => {
            "values set must be empty for exists and does not exist"
        }
        ("Gt" | "Lt", 0 | 2..) => "for 'Gt', 'Lt' operators, exactly one value is required",
        _ => return,
    };
    found.invalid(path, texts(values), detail);
}

/// One requirement on fields, of which only the name exists.
fn node_field(found: &mut Findings, requirement: &NodeSelectorRequirement, path: &FieldPath) {
    match requirement.operator {
        NodeSelectorOperator::In | NodeSelectorOperator::NotIn => {
            if requirement.values.len() != 1 {
                let value = texts(&requirement.values);
                found.invalid(&path.field("values"), value, "must have one element");
            }
        }
        other => found.unsupported(&path.field("operator"), other.as_str(), &["In", "NotIn"]),
    }
}

fn texts(values: &[Symbol]) -> Value {
    values.iter().map(|value| value.as_str()).collect()
}

fn label_key(found: &mut Findings, path: &FieldPath, key: &str) {
    reasons(found, path, key, qualified_name(key));
}

/// One finding for all reasons.
fn reasons(found: &mut Findings, path: &FieldPath, value: &str, reasons: Vec<String>) {
    if !reasons.is_empty() {
        found.invalid(path, value, &reasons.join("; "));
    }
}

/// One finding for each reason.
fn label_name(found: &mut Findings, path: &FieldPath, name: &str) {
    for reason in qualified_name(name) {
        found.invalid(path, name, &reason);
    }
}

/// CFG-107
fn balanced(found: &mut Findings, args: &NodeResourcesBalancedAllocationArgs, path: &FieldPath) {
    for (i, resource) in args.resources.iter().enumerate() {
        let path = path.field("resources").index(i);
        if args.resources[..i].iter().any(|other| other.name == resource.name) {
            found.duplicate(&path.field("name"), &resource.name);
        }
        if resource.weight != 1 {
            found.invalid(&path.field("weight"), resource.weight, "must be 1");
        }
    }
}

/// CFG-108…112
fn resources_fit(found: &mut Findings, args: &NodeResourcesFitArgs, path: &FieldPath) {
    for (i, name) in args.ignored_resources.iter().enumerate() {
        label_name(found, &path.field("ignoredResources").index(i), name);
    }
    for (i, group) in args.ignored_resource_groups.iter().enumerate() {
        let path = path.field("ignoredResourceGroups").index(i);
        if group.contains('/') {
            found.invalid(&path, group.as_str(), "resource group name can't contain '/'");
        }
        label_name(found, &path, group);
    }
    scoring_strategy(found, &args.scoring_strategy, &path.field("scoringStrategy"));
}

fn scoring_strategy(found: &mut Findings, strategy: &ScoringStrategy, path: &FieldPath) {
    let known = ["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"];
    if !known.contains(&strategy.strategy.as_str()) {
        found.unsupported(&path.field("type"), &strategy.strategy, &known);
    }
    for (i, resource) in strategy.resources.iter().enumerate() {
        if !(1..=100).contains(&resource.weight) {
            let path = path.field("resources").index(i).field("weight");
            let name = resource.name;
            let detail = format!("resource weight of {name} not in valid range (0, 100]");
            found.invalid(&path, resource.weight, &detail);
        }
    }
    let path = path.field("requestedToCapacityRatio");
    match (strategy.strategy == "RequestedToCapacityRatio", &strategy.requested_to_capacity_ratio) {
        (true, Some(shape)) => function_shape(found, shape, &path.field("shape")),
        (true, None) => {
            found.required(&path, "must be specified when type is RequestedToCapacityRatio");
        }
        (false, Some(_)) => {
            found.forbidden(&path, "must be nil when type is not RequestedToCapacityRatio");
        }
        (false, None) => {}
    }
}

/// CFG-113
fn function_shape(found: &mut Findings, shape: &[UtilizationShapePoint], path: &FieldPath) {
    if shape.is_empty() {
        found.required(path, "at least one point must be specified");
    }
    let unsorted = |i: &usize| shape[i - 1].utilization >= shape[*i].utilization;
    if let Some(i) = (1..shape.len()).find(unsorted) {
        let path = path.index(i).field("utilization");
        let detail = "values must be sorted in increasing order";
        found.invalid(&path, shape[i].utilization, detail);
    }
    for (i, point) in shape.iter().enumerate() {
        percent(found, &path.index(i).field("utilization"), point.utilization);
        if !(0..=10).contains(&point.score) {
            let path = path.index(i).field("score");
            found.invalid(&path, point.score, "not in valid range [0, 10]");
        }
    }
}

/// CFG-114, CFG-115
fn pod_topology_spread(found: &mut Findings, args: &PodTopologySpreadArgs, path: &FieldPath) {
    let constraints = &args.default_constraints;
    let defaulting = args.defaulting_type;
    let type_path = path.field("defaultingType");
    if defaulting != "System" && defaulting != "List" {
        found.unsupported(&type_path, &defaulting, &["System", "List"]);
    } else if defaulting == "System" && !constraints.is_empty() {
        let detail = "when .defaultConstraints are not empty";
        found.invalid(&type_path, defaulting.as_str(), detail);
    }
    for i in 0..constraints.len() {
        constraint(found, &constraints[..=i], &path.field("defaultConstraints").index(i));
    }
}

/// The last of `constraints`, given those before it.
fn constraint(found: &mut Findings, constraints: &[DefaultConstraint], path: &FieldPath) {
    let Some((last, before)) = constraints.split_last() else { return };
    if last.max_skew <= 0 {
        found.invalid(&path.field("maxSkew"), last.max_skew, "not in valid range (0, inf)");
    }
    let key_path = path.field("topologyKey");
    if last.topology_key.is_empty() {
        found.required(&key_path, "can not be empty");
    } else {
        label_name(found, &key_path, &last.topology_key);
    }
    let action_path = path.field("whenUnsatisfiable");
    match last.when_unsatisfiable.as_str() {
        "" => found.required(&action_path, "can not be empty"),
        "DoNotSchedule" | "ScheduleAnyway" => {}
        other => found.unsupported(&action_path, other, &["DoNotSchedule", "ScheduleAnyway"]),
    }
    if last.label_selector.is_some() {
        let detail = "constraint must not define a selector, as they deduced for each pod";
        found.forbidden(&path.field("labelSelector"), detail);
    }
    let identity = |c: &DefaultConstraint| (c.topology_key, c.when_unsatisfiable);
    if before.iter().any(|other| identity(other) == identity(last)) {
        let (key, action) = identity(last);
        found.duplicate(path, &format!("{{{key}, {action}}}"));
    }
}

/// CFG-116, CFG-117
fn volume_binding(
    found: &mut Findings,
    args: &VolumeBindingArgs,
    path: &FieldPath,
    gates: &FeatureGates,
) {
    if args.bind_timeout_seconds < 0 {
        let detail = "invalid BindTimeoutSeconds, should not be a negative value";
        found.invalid(&path.field("bindTimeoutSeconds"), args.bind_timeout_seconds, detail);
    }
    let path = path.field("shape");
    match &args.shape {
        shape if gates.enabled(Feature::StorageCapacityScoring) => {
            function_shape(found, shape.as_deref().unwrap_or_default(), &path);
        }
        Some(shape) => {
            let point = |p: &UtilizationShapePoint| json!({ "utilization": p.utilization, "score": p.score });
            let value: Value = shape.iter().map(point).collect();
            let detail = "unexpected field `shape`, remove it or turn on the feature gate \
                          StorageCapacityScoring";
            found.invalid(&path, value, detail);
        }
        None => {}
    }
}
