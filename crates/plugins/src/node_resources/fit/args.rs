//! The arguments: resources that are not checked, and how nodes are scored.

use kubestep_api::intern::Symbol;
use kubestep_config::validation::Findings;
use kubestep_config::versions::Switch;
use kubestep_config::{Arguments, FeatureGates, FieldPath, argument_object, arguments};

use super::super::{ResourceSpec, complete, default_resources};
use crate::shape::{self, UtilizationShapePoint};

arguments! {
    /// What NodeResourcesFit leaves out, and how it scores.
    #[derive(Eq)]
    pub struct NodeResourcesFitArgs for "NodeResourcesFit" {
        ignored_resources: Vec<Symbol> = Vec::new(),
            put_some "ignoredResources", "a list of names",
            "Extended resources that Filter does not check.";
        ignored_resource_groups: Vec<Symbol> = Vec::new(),
            put_some "ignoredResourceGroups", "a list of prefixes",
            "The same for all extended resources with that prefix: example.com means example.com/gpu \
             and all others of example.com.";
        scoring_strategy: ScoringStrategy = ScoringStrategy::default(),
            put "scoringStrategy", "type, resources, requestedToCapacityRatio",
            "How nodes score: LeastAllocated prefers free nodes, MostAllocated full ones, and \
             RequestedToCapacityRatio follows a curve from utilization (0 to 100) to score (0 to 10). \
             resources lists the resources that count, with weights from 1 to 100.";
    }
}

argument_object! {
    /// `scoringStrategy`: how NodeResourcesFit scores.
    #[derive(Eq)]
    pub struct ScoringStrategy {
        /// `LeastAllocated`, `MostAllocated` or `RequestedToCapacityRatio`.
        strategy: Symbol, put_some "type";
        /// The resources that count, with weights 1 to 100.
        resources: Vec<ResourceSpec>, put_some "resources";
        /// The curve of RequestedToCapacityRatio.
        requested_to_capacity_ratio: Option<RequestedToCapacityRatio>,
            put_some "requestedToCapacityRatio";
    }
}

argument_object! {
    /// The curve of the strategy of this name.
    #[derive(Eq, Default)]
    pub struct RequestedToCapacityRatio {
        /// The points of the curve.
        shape: Vec<UtilizationShapePoint>, put_some "shape";
    }
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

impl Arguments for NodeResourcesFitArgs {
    const CHECKED_WHEN_BUILT: bool = true;

    fn complete(&mut self, _: &FeatureGates) {
        complete(&mut self.scoring_strategy.resources);
    }

    fn validate(&self, found: &mut Findings, path: &FieldPath, gates: &FeatureGates) {
        for (i, name) in self.ignored_resources.iter().enumerate() {
            found.qualified_name(&path.field("ignoredResources").index(i), name);
        }
        for (i, group) in self.ignored_resource_groups.iter().enumerate() {
            let path = path.field("ignoredResourceGroups").index(i);
            if group.contains('/') {
                found.invalid(&path, group.as_str(), "resource group name can't contain '/'");
            }
            found.qualified_name(&path, group);
        }
        let shape_validated = gates.has(Switch::ShapeValidated);
        self.scoring_strategy.validate(found, &path.field("scoringStrategy"), shape_validated);
    }

    fn ignored_resources(&mut self) -> Option<&mut Vec<Symbol>> {
        Some(&mut self.ignored_resources)
    }
}

impl ScoringStrategy {
    fn validate(&self, found: &mut Findings, path: &FieldPath, shape_validated: bool) {
        let known = ["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"];
        if !known.contains(&self.strategy.as_str()) {
            found.unsupported(&path.field("type"), &self.strategy, &known);
        }
        for (i, resource) in self.resources.iter().enumerate() {
            if !(1..=100).contains(&resource.weight) {
                let path = path.field("resources").index(i).field("weight");
                let name = resource.name;
                let detail = format!("resource weight of {name} not in valid range (0, 100]");
                found.invalid(&path, resource.weight, &detail);
            }
        }
        let ratio = self.requested_to_capacity_ratio.as_ref();
        if !shape_validated {
            // Upstream does not look at the strategy's type here, and crashes without a shape.
            let shape = ratio.map(|ratio| &ratio.shape);
            return match (self.strategy == "RequestedToCapacityRatio", shape) {
                (_, Some(shape)) => shape::validate(found, shape, &path.field("shape")),
                (true, None) => found.required(&path.field("shape"), "kube-scheduler crashes"),
                (false, None) => {}
            };
        }
        let path = path.field("requestedToCapacityRatio");
        match (self.strategy == "RequestedToCapacityRatio", ratio) {
            (true, Some(ratio)) => shape::validate(found, &ratio.shape, &path.field("shape")),
            (true, None) => {
                found.required(&path, "must be specified when type is RequestedToCapacityRatio");
            }
            (false, Some(_)) => {
                found.forbidden(&path, "must be nil when type is not RequestedToCapacityRatio");
            }
            (false, None) => {}
        }
    }
}
