//! Running the plugins that generate and score the placements of a pod group.
//!
//! Upstream: `RunPlacementGeneratePlugins` and `RunPlacementScorePlugins` in
//! `pkg/scheduler/framework/runtime/framework.go`.

use std::sync::Arc;

use crate::plugin::{GroupContext, Plugin};
use crate::pod_groups::{Placement, Proposal};
use crate::record::scores::MAX_NODE_SCORE;
use crate::runtime::Framework;
use crate::status::Status;
use kubestep_api::Name;
use kubestep_api::intern::Symbol;
use kubestep_config::ExtensionPoint;

impl Framework {
    /// The placements to try, from the plugin that generates them. Without such a plugin, all nodes
    /// are the only placement.
    ///
    /// # Errors
    /// The plugin failed, or generated none.
    pub fn run_placement_generate(&self, cx: &GroupContext<'_>) -> Result<Vec<Placement>, Status> {
        let nodes = cx.snapshot.iter().map(|node| node.name).collect();
        let all = Placement { name: Name::EMPTY, nodes };
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
    Status::error(format!("{doing}: plugin {plugin:?} failed with: {}", status.message()))
}

fn out_of_range(plugin: Symbol, score: i64) -> Status {
    Status::error(format!(
        "applying score defaultWeights on PlacementScore plugins: plugin {plugin:?} returns an \
         invalid score {score}, it should in the range of [0, {MAX_NODE_SCORE}] after normalizing"
    ))
}

#[cfg(test)]
mod tests;
