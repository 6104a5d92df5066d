//! Arguments of plugins back to text, with their kind (CFG-046).

use serde::{Deserialize, Serialize};

use kubestep_api::intern::Symbol;
use kubestep_api::{NodeAffinity, NodeSelectorRequirement, NodeSelectorTerm};

use super::args::{
    DefaultConstraint, NodeResourcesFitArgs, PluginArgs, ResourceSpec, UtilizationShapePoint,
};
use super::encode::{Map, list};
use super::node::Node;
use super::types::API_VERSION;

/// The arguments of `plugin`.
pub fn args(plugin: &str, args: &PluginArgs) -> Node {
    let kind = format!("{plugin}Args");
    let map = Map::default().put("apiVersion", API_VERSION).put("kind", kind.as_str());
    match args {
        PluginArgs::DefaultPreemption(args) => map
            .put("minCandidateNodesPercentage", args.min_candidate_nodes_percentage)
            .put("minCandidateNodesAbsolute", args.min_candidate_nodes_absolute),
        PluginArgs::DynamicResources(args) => map
            .put_some("filterTimeout", text(args.filter_timeout))
            .put_some("bindingTimeout", text(args.binding_timeout)),
        PluginArgs::InterPodAffinity(args) => {
            map.put("hardPodAffinityWeight", args.hard_pod_affinity_weight).put(
                "ignorePreferredTermsOfExistingPods",
                args.ignore_preferred_terms_of_existing_pods,
            )
        }
        PluginArgs::ManualPermit(args) => {
            map.put("selector", object(&args.selector)).put("timeoutSeconds", args.timeout_seconds)
        }
        PluginArgs::NodeAffinity(args) => {
            map.put_some("addedAffinity", args.added_affinity.as_ref().map(node_affinity))
        }
        PluginArgs::NodeResourcesBalancedAllocation(args) => {
            map.put_some("resources", resources(&args.resources))
        }
        PluginArgs::NodeResourcesFit(args) => resources_fit(map, args),
        PluginArgs::PodTopologySpread(args) => map
            .put_some("defaultConstraints", list(&args.default_constraints, constraint))
            .put_some("defaultingType", args.defaulting_type.as_str()),
        PluginArgs::VolumeBinding(args) => map
            .put("bindTimeoutSeconds", args.bind_timeout_seconds)
            .put_some("shape", shape(args.shape.as_deref().unwrap_or_default())),
        PluginArgs::Raw(value) => return object(value),
    }
    .into()
}

fn text(value: Option<impl ToString>) -> Option<Node> {
    value.map(|value| Node::Text(value.to_string()))
}

/// An object of the API, by way of its own serialization.
fn object(value: &impl Serialize) -> Node {
    // Serializing plain values to JSON and reading them as a tree cannot fail.
    let value = serde_json::to_value(value).unwrap_or_default();
    Node::deserialize(value).unwrap_or(Node::Null)
}

fn symbols(values: &[Symbol]) -> Node {
    list(values, |value| value.as_str().into())
}

fn resources(resources: &[ResourceSpec]) -> Node {
    list(resources, |resource| {
        Map::default()
            .put("name", resource.name.as_str())
            .put_some("weight", resource.weight)
            .into()
    })
}

fn shape(shape: &[UtilizationShapePoint]) -> Node {
    list(shape, |point| {
        Map::default().put("utilization", point.utilization).put("score", point.score).into()
    })
}

fn resources_fit(map: Map, args: &NodeResourcesFitArgs) -> Map {
    let strategy = &args.scoring_strategy;
    let ratio = strategy.requested_to_capacity_ratio.as_deref();
    let ratio = ratio.map(|points| Node::from(Map::default().put_some("shape", shape(points))));
    let strategy = Map::default()
        .put_some("type", strategy.strategy.as_str())
        .put_some("resources", resources(&strategy.resources))
        .put_some("requestedToCapacityRatio", ratio);
    map.put_some("ignoredResources", symbols(&args.ignored_resources))
        .put_some("ignoredResourceGroups", symbols(&args.ignored_resource_groups))
        .put("scoringStrategy", strategy)
}

/// Field by field, because upstream writes some of them even when they are empty.
fn node_affinity(affinity: &NodeAffinity) -> Node {
    let required = affinity.required_during_scheduling_ignored_during_execution.as_ref();
    let required = required.map(|selector| {
        let terms = list(&selector.node_selector_terms, node_term);
        Node::from(Map::default().put("nodeSelectorTerms", terms))
    });
    let preferred = list(&affinity.preferred_during_scheduling_ignored_during_execution, |term| {
        Map::default()
            .put("weight", term.weight)
            .put("preference", node_term(&term.preference))
            .into()
    });
    Map::default()
        .put_some("requiredDuringSchedulingIgnoredDuringExecution", required)
        .put_some("preferredDuringSchedulingIgnoredDuringExecution", preferred)
        .into()
}

fn node_term(term: &NodeSelectorTerm) -> Node {
    Map::default()
        .put_some("matchExpressions", list(&term.match_expressions, node_requirement))
        .put_some("matchFields", list(&term.match_fields, node_requirement))
        .into()
}

fn node_requirement(requirement: &NodeSelectorRequirement) -> Node {
    Map::default()
        .put("key", requirement.key.as_str())
        .put("operator", requirement.operator.as_str())
        .put_some("values", symbols(&requirement.values))
        .into()
}

fn constraint(constraint: &DefaultConstraint) -> Node {
    let text = |value: Option<Symbol>| value.map(|value| Node::from(value.as_str()));
    Map::default()
        .put("maxSkew", constraint.max_skew)
        .put("topologyKey", constraint.topology_key.as_str())
        .put("whenUnsatisfiable", constraint.when_unsatisfiable.as_str())
        .put_some("labelSelector", constraint.label_selector.as_ref().map(object))
        .put_some("minDomains", constraint.min_domains)
        .put_some("nodeAffinityPolicy", text(constraint.node_affinity_policy))
        .put_some("nodeTaintsPolicy", text(constraint.node_taints_policy))
        .put_some("matchLabelKeys", symbols(&constraint.match_label_keys))
        .into()
}
