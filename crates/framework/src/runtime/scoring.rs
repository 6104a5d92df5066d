//! Running PreScore, Score and Normalize, and summing up.
//!
//! Upstream: `RunPreScorePlugins` and `RunScorePlugins` in
//! `pkg/scheduler/framework/runtime/framework.go`.

use crate::cycle_state::CycleState;
use crate::opaque::OpaquePlugin;
use crate::plugin::{CycleContext, Plugin};
use crate::record::nodes::NodeList;
use crate::record::scores::{MAX_NODE_SCORE, Scores};
use crate::record::{PluginStatus, ScoreColumn, ScoreRecord};
use crate::runtime::{Framework, run_plugin, wrap};
use crate::status::{Code, Status};
use kubestep_config::ExtensionPoint;

/// Scores that are known before Score runs.
#[derive(Clone, Debug)]
pub struct CachedScores {
    /// The plugins that need not run.
    pub columns: Vec<ScoreColumn>,
    /// The sums of their weighted scores.
    pub totals: Scores,
}

impl CachedScores {
    /// No scores of so many nodes.
    pub fn none(nodes: usize) -> CachedScores {
        CachedScores { columns: Vec::new(), totals: Scores::Same { value: 0, len: nodes } }
    }
}

impl Framework {
    /// Runs PreScore; the Score of plugins that skip is skipped too.
    pub fn run_pre_score(
        &self,
        cx: &CycleContext<'_>,
        state: &mut CycleState,
        nodes: &NodeList,
    ) -> (Vec<PluginStatus>, Status) {
        let mut answers = Vec::new();
        let (point, timer) = (ExtensionPoint::PreScore, &cx.shared.timer);
        for plugin in self.at(point) {
            let name = plugin.name();
            let fault = state.fault(point, name);
            let turn = || plugin.pre_score(cx, state, nodes);
            let status = run_plugin((point, name), fault, timer, turn).by(name);
            answers.push(PluginStatus::new(name, status.clone()));
            match status.code() {
                Code::Success => {}
                Code::Skip => state.skip_score.push(name),
                _ => {
                    let doing = format!("running PreScore plugin {name:?}");
                    return (answers, wrap(&doing, &status, name));
                }
            }
        }
        (answers, Status::SUCCESS)
    }

    /// Runs Score and Normalize and sums up the totals in `record`. `ids` are the slots of the
    /// nodes; `kept` are the scores that are known already; `raw` returns the raw scores of any
    /// other plugin.
    pub fn run_score(
        &self,
        cx: &CycleContext<'_>,
        state: &CycleState,
        ids: &NodeList,
        mut kept: CachedScores,
        mut raw: impl FnMut(&dyn Plugin) -> Result<Vec<i64>, Status>,
        record: &mut ScoreRecord,
    ) -> Status {
        let mut totals: Option<Vec<i64>> = None;
        let mut columns = Vec::new();
        let plugins = self.at(ExtensionPoint::Score);
        for plugin in plugins.iter().filter(|plugin| !state.skips_score(plugin.name())) {
            let (point, name) = (ExtensionPoint::Score, plugin.name());
            if let Some(at) = kept.columns.iter().position(|column| column.plugin == name) {
                cx.shared.timer.nodes(point, name, ids.len(), 0);
                columns.push(kept.columns.swap_remove(at));
                continue;
            }
            let fault = state.fault(point, name);
            let scored = cx.shared.timer.time(point, name, || {
                fault
                    .map_or_else(|| raw(plugin.as_ref()), Err)
                    .map_err(|status| failed("running Score plugins", plugin.as_ref(), &status))
                    .and_then(|raw| self.score_column(plugin.as_ref(), (cx, state), ids, raw))
            });
            cx.shared.timer.nodes(point, name, ids.len(), 0);
            let (column, normalized) = match scored {
                Ok(scored) => scored,
                Err(status) => {
                    record.plugins = columns.into();
                    return status; // no totals rather than partial sums
                }
            };
            let totals = totals.get_or_insert_with(|| kept.totals.values().into_owned());
            for (total, score) in totals.iter_mut().zip(&normalized) {
                *total += *score * column.weight;
            }
            columns.push(column);
        }
        record.plugins = columns.into();
        record.totals = totals.map_or(kept.totals, Scores::from);
        record.opaque = self.opaque_scores(ids.len());
        Status::SUCCESS
    }

    /// The columns of opaque plugins.
    fn opaque_scores(&self, len: usize) -> Vec<ScoreColumn> {
        let plugins = self.opaque().into_iter().flat_map(|opaque| &opaque.plugins);
        let column = |plugin: &OpaquePlugin| ScoreColumn {
            plugin: plugin.name,
            weight: plugin.weight,
            raw: Scores::Unknown { len },
            normalized: Scores::Unknown { len },
        };
        plugins.filter(|plugin| plugin.points.contains(ExtensionPoint::Score)).map(column).collect()
    }

    /// The column, and its normalized scores.
    fn score_column(
        &self,
        plugin: &dyn Plugin,
        (cx, state): (&CycleContext<'_>, &CycleState),
        ids: &NodeList,
        raw: Vec<i64>,
    ) -> Result<(ScoreColumn, Vec<i64>), Status> {
        let name = plugin.name();
        let mut scores = raw.clone();
        let status = plugin.normalize(cx, state, &ids.slice(), &mut scores);
        if !status.is_success() {
            return Err(failed("running Normalize on Score plugins", plugin, &status));
        }
        let is_valid = |score: &i64| (0..=MAX_NODE_SCORE).contains(score);
        // One look without a jump at each score; a second one names the score.
        if !scores.iter().fold(true, |all, score| all & is_valid(score))
            && let Some(score) = scores.iter().find(|score| !is_valid(score))
        {
            return Err(out_of_range(plugin, *score));
        }
        let weight = self.score_weight(name);
        let column = Scores::from(raw.as_slice());
        // Plugins that do not normalize share one list.
        let normalized = match scores == raw {
            true => column.clone(),
            false => Scores::from(scores.as_slice()),
        };
        Ok((ScoreColumn { plugin: name, weight, raw: column, normalized }, scores))
    }
}

fn failed(doing: &str, plugin: &dyn Plugin, status: &Status) -> Status {
    let name = plugin.name();
    Status::error(format!("{doing}: plugin {name:?} failed with: {}", status.message()))
}

/// Upstream's error about a normalized score outside 0 to 100.
fn out_of_range(plugin: &dyn Plugin, score: i64) -> Status {
    Status::error(format!(
        "applying score defaultWeights on Score plugins: plugin {:?} returns an invalid score \
         {score}, it should in the range of [0, {MAX_NODE_SCORE}] after normalizing",
        plugin.name()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubestep_api::intern::Symbol;

    struct Loud;

    impl Plugin for Loud {
        fn name(&self) -> Symbol {
            "Loud".into()
        }
    }

    #[test]
    fn the_complaint_names_plugin_score_and_bounds() {
        let text = "applying score defaultWeights on Score plugins: plugin \"Loud\" returns an \
                    invalid score 101, it should in the range of [0, 100] after normalizing";
        assert_eq!(out_of_range(&Loud, 101), Status::error(text));
    }
}
