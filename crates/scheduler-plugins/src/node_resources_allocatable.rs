//! NodeResourcesAllocatable: prefers small nodes, or large ones.
//!
//! Upstream: `pkg/noderesources/allocatable.go` of kubernetes-sigs/scheduler-plugins.

use std::sync::Arc;

use crate::resources::{ResourceSpec, cpu_and_memory};
use crate::scores::between_lowest_and_highest;
use kubestep_framework::api::intern::Symbol;
use kubestep_framework::config::validation::Findings;
use kubestep_framework::config::{
    ArgsType, Arguments, ExtensionPoint, FeatureGates, FieldPath, PluginDescriptor, ProfileArgs,
    arguments,
};
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::node::{NodeId, NodeInfo};
use kubestep_framework::plugin::{CycleContext, Plugin};
use kubestep_framework::registry::Built;
use kubestep_framework::resource::Resource;
use kubestep_framework::status::Status;

/// What configurations and the manual know of the plugin.
pub const PLUGIN: PluginDescriptor = PluginDescriptor {
    registers_events: false,
    signs: false,
    args: Some(ArgsType::of::<NodeResourcesAllocatableArgs>()),
    doc: "prefers nodes with the least or the most allocatable resources",
    long_doc: "A node's score is the weighted mean of its allocatable resources, whatever is used \
               of them, scaled so that the lowest becomes 0 and the highest 100; with mode Least, \
               the other way round. CPU counts in millicores, memory in bytes.",
    example: "With mode Least, a node of 4 CPUs scores 100 and one of 8 CPUs and the same memory 0.",
    ..PluginDescriptor::new("NodeResourcesAllocatable", &[ExtensionPoint::Score])
};

arguments! {
    /// Which resources NodeResourcesAllocatable counts, and which nodes it prefers.
    #[derive(Eq)]
    pub struct NodeResourcesAllocatableArgs for "NodeResourcesAllocatable" {
        resources: Vec<ResourceSpec> = cpu_and_memory(1 << 20, 1),
            put_some "resources", "a list of name and weight",
            "The resources that count, with positive weights. By default a millicore counts as much \
             as a MiB.";
        mode: Symbol = Symbol::new("Least"),
            put "mode", "Least or Most",
            "Whether nodes with the least or with the most resources score high.";
    }
}

impl Arguments for NodeResourcesAllocatableArgs {
    const CHECKED_WHEN_BUILT: bool = true;

    fn complete(&mut self, _: &FeatureGates) {
        let default = NodeResourcesAllocatableArgs::default();
        if self.resources.is_empty() {
            self.resources = default.resources;
        }
        if self.mode.is_empty() {
            self.mode = default.mode;
        }
    }

    fn validate(&self, found: &mut Findings, path: &FieldPath, _: &FeatureGates) {
        for (i, resource) in self.resources.iter().enumerate().filter(|(_, it)| it.weight <= 0) {
            let detail = format!("the weight of {} must be positive", resource.name);
            let path = path.field("resources").index(i).field("weight");
            found.invalid(&path, resource.weight, &detail);
        }
        if !["Least", "Most"].contains(&self.mode.as_str()) {
            found.invalid(&path.field("mode"), self.mode.as_str(), "must be Least or Most");
        }
    }
}

/// Builds the plugin for a profile, from its arguments.
pub fn build(args: &ProfileArgs, _: &FeatureGates) -> Built {
    Ok(Arc::new(Allocatable(args.of())))
}

struct Allocatable(NodeResourcesAllocatableArgs);

impl Plugin for Allocatable {
    fn name(&self) -> Symbol {
        PLUGIN.name.into()
    }

    /// Negative with mode Least.
    fn score(&self, _: &CycleContext<'_>, _: &CycleState, node: &NodeInfo) -> Result<i64, Status> {
        let sign = if self.0.mode == "Most" { 1 } else { -1 };
        let (mut sum, mut weights) = (0_i64, 0_i64);
        for ResourceSpec { name, weight } in &self.0.resources {
            let amount = sign * counted(&node.allocatable, *name);
            sum = sum.wrapping_add(amount.wrapping_mul(*weight));
            weights = weights.wrapping_add(*weight);
        }
        Ok(sum.checked_div(weights).unwrap_or(0))
    }

    fn normalize(
        &self,
        _: &CycleContext<'_>,
        _: &CycleState,
        _: &[NodeId],
        scores: &mut [i64],
    ) -> Status {
        between_lowest_and_highest(scores);
        Status::SUCCESS
    }
}

/// The amount of a resource; the number of pods does not count.
fn counted(allocatable: &Resource, name: Symbol) -> i64 {
    if name == "pods" { 0 } else { allocatable.amount(name) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::problems;
    use kubestep_framework::testing::{Cluster, NodeBuilder, info, node, plugin, pod};

    /// The scores of nodes with these millicores and bytes of memory.
    fn scores(mode: &str, cpu_weight: i64, nodes: &[(i64, i64)]) -> Vec<i64> {
        let resources = cpu_and_memory(cpu_weight, 1);
        let args = NodeResourcesAllocatableArgs { resources, mode: mode.into() };
        let node = |(at, (cpu, memory)): (usize, &(i64, i64))| {
            let node = node(&format!("n{at}")).offers("cpu", &format!("{cpu}m"));
            node.offers("memory", &memory.to_string())
        };
        let cluster = Cluster::new(nodes.iter().enumerate().map(node), []);
        let plugin = plugin(build, &ProfileArgs::default().with(args));
        cluster.scores(&plugin, &info(pod("p"))).unwrap()
    }

    #[test]
    fn small_or_large_nodes_score_high() {
        let mib = 1 << 20;
        let thousands = [(1000, 1000 * mib), (2000, 2000 * mib), (3000, 3000 * mib)];
        let (by_mib, by_gib) = (mib, 1 << 30);
        for (mode, weight, nodes, expected) in [
            ("Least", by_mib, vec![(4000, 10000), (4000, 10000)], vec![0, 0]),
            ("Least", by_mib, vec![(4000, 10000), (6000, 10000)], vec![100, 0]),
            ("Most", by_mib, vec![(4000, 10000), (6000, 10000)], vec![0, 100]),
            ("Least", by_gib, vec![(1000, 2000), (1005, 1000)], vec![100, 0]),
            ("Most", by_gib, vec![(1000, 2000), (1005, 1000)], vec![0, 100]),
            ("Least", by_mib, thousands.to_vec(), vec![100, 50, 0]),
            ("Most", by_mib, thousands.to_vec(), vec![0, 50, 100]),
        ] {
            assert_eq!(scores(mode, weight, &nodes), expected, "{mode} {nodes:?}");
        }
    }

    #[test]
    fn wrong_arguments_are_rejected_when_the_profile_is_built() {
        let weights = "{resources: [{name: memory, weight: -1}, {name: cpu}], mode: Some}";
        let found = problems("NodeResourcesAllocatable", "score", weights);
        for at in ["resources[0].weight", "resources[1].weight", "mode"] {
            assert!(found.contains(&format!("{at}: Invalid value")), "{found}");
        }
        assert!(
            problems("NodeResourcesAllocatable", "score", "{resources: [], mode: ''}").is_empty()
        );
    }
}
