//! Placements of a pod group: the sets of nodes that it might run on, and their scores (alpha, gate
//! TopologyAwareWorkloadScheduling).
//!
//! Upstream: `RunPlacementGeneratePlugins` and `RunPlacementScorePlugins` in
//! `pkg/scheduler/framework/runtime/framework.go`.

use std::sync::Arc;

use crate::objects::Objects;
use crate::plugin::Plugin;
use crate::pod::{NamespacedName, PodInfo};
use crate::runtime::Framework;
use crate::runtime::scoring::MAX_NODE_SCORE;
use crate::shared::Shared;
use crate::snapshot::Snapshot;
use crate::status::Status;
use kubestep_api::Time;
use kubestep_api::intern::Symbol;
use kubestep_config::{ExtensionPoint, FeatureGates};

/// A set of nodes that a pod group might run on.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Placement {
    /// Its name, the value of the topology key; empty for all nodes.
    pub name: Symbol,
    /// Its nodes, in node order.
    pub nodes: Vec<Symbol>,
}

/// A placement with the nodes that were found for pods of the group in it.
#[derive(Clone, Debug)]
pub struct Proposal<'a> {
    /// The placement.
    pub placement: &'a Placement,
    /// The pods for which a node was found, with their nodes.
    pub assignments: Vec<(Arc<PodInfo>, Symbol)>,
}

/// What a plugin sees when it generates or scores placements.
#[derive(Clone, Copy)]
pub struct GroupContext<'a> {
    /// The pod group.
    pub group: NamespacedName,
    /// The cluster at the start of the cycle.
    pub snapshot: &'a Snapshot,
    /// All objects except nodes.
    pub objects: &'a Objects,
    /// The feature gates.
    pub features: &'a FeatureGates,
    /// What plugins store between cycles, including the pods of each group.
    pub shared: &'a Shared,
    /// The time.
    pub now: Time,
}

impl Framework {
    /// The placements to try, from the plugin that generates them. Without such a plugin, all nodes
    /// are the only placement.
    ///
    /// # Errors
    /// The plugin failed, or generated none.
    pub fn run_placement_generate(&self, cx: &GroupContext<'_>) -> Result<Vec<Placement>, Status> {
        let nodes = cx.snapshot.iter().map(|node| node.name).collect();
        let all = Placement { name: Symbol::EMPTY, nodes };
        let Some(plugin) = self.at(ExtensionPoint::PlacementGenerate).first() else {
            return Ok(vec![all]);
        };
        let name = plugin.name();
        let placements = plugin.generate_placements(cx, &all).map_err(|status| status.by(name))?;
        if placements.is_empty() {
            return Err(Status::unschedulable("no feasible placements found").by(name));
        }
        Ok(placements)
    }

    /// The total score of each proposal.
    ///
    /// # Errors
    /// A plugin failed; the text is upstream's.
    pub fn run_placement_score(
        &self,
        cx: &GroupContext<'_>,
        proposals: &[Proposal<'_>],
    ) -> Result<Vec<i64>, Status> {
        let plugins = self.at(ExtensionPoint::PlacementScore);
        let mut columns: Vec<Vec<i64>> = vec![Vec::new(); plugins.len()];
        for proposal in proposals {
            for (plugin, column) in plugins.iter().zip(&mut columns) {
                let score = plugin.score_placement(cx, proposal);
                column.push(score.map_err(|status| {
                    failed("running PlacementScore plugins", plugin.name(), &status)
                })?);
            }
        }
        for (plugin, column) in plugins.iter().zip(&mut columns) {
            let status = plugin.normalize_placements(cx, column);
            if !status.is_success() {
                let doing = "running NormalizePlacementScore on PlacementScore plugins";
                return Err(failed(doing, plugin.name(), &status));
            }
        }
        self.placement_totals(plugins, &columns, proposals.len())
    }

    fn placement_totals(
        &self,
        plugins: &[Arc<dyn Plugin>],
        columns: &[Vec<i64>],
        proposals: usize,
    ) -> Result<Vec<i64>, Status> {
        let mut totals = vec![0; proposals];
        for (plugin, column) in plugins.iter().zip(columns) {
            let weight = self.placement_weight(plugin.name());
            for (total, score) in totals.iter_mut().zip(column) {
                if !(0..=MAX_NODE_SCORE).contains(score) {
                    return Err(out_of_range(plugin.name(), *score));
                }
                *total += score * weight;
            }
        }
        Ok(totals)
    }

    fn placement_weight(&self, plugin: Symbol) -> i64 {
        let entries = self.profile().at(ExtensionPoint::PlacementScore);
        entries.iter().find(|entry| entry.name == plugin).map_or(1, |entry| i64::from(entry.weight))
    }
}

fn failed(doing: &str, plugin: Symbol, status: &Status) -> Status {
    Status::error(&format!("{doing}: plugin {plugin:?} failed with: {}", status.message()))
}

fn out_of_range(plugin: Symbol, score: i64) -> Status {
    Status::error(&format!(
        "applying score defaultWeights on PlacementScore plugins: plugin {plugin:?} returns an \
         invalid score {score}, it should in the range of [0, {MAX_NODE_SCORE}] after normalizing"
    ))
}

#[cfg(test)]
mod tests;
