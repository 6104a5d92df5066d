//! Why this node and not another: the ranking, each score from its inputs over the formula to
//! the number, and how a tie was broken.
//!
//! `EXPLAINERS` is the table of the plugins that score. The figures are the recorded
//! ones, or the plugin's own for a pod that was not placed in a cycle; an explainer only shows
//! what they were computed from.

mod inputs;

use std::borrow::Cow;
use std::sync::Arc;

use indexmap::IndexSet;
use serde::Serialize;

use kubestep_api::Name;
use kubestep_api::intern::Symbol;
use kubestep_config::versions::Switch;
use kubestep_framework::node::{NodeId, NodeInfo};
use kubestep_framework::record::{CycleRecord, ScoreColumn, ScoreRecord};
use kubestep_scheduler::what_if::{Probe, Scored};

/// Nodes whose scores are explained in full, unless others are asked for.
const EXPLAINED: usize = 3;

/// Why a pod is, or would be, placed where it is.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodePlacement {
    /// The node chosen; absent if it is not decided which of the best it would be.
    pub node: Option<Name>,
    /// Whether the pod was nominated to that node, which fitted, so that no other was asked.
    #[serde(skip)]
    pub nominated_first: bool,
    /// The plugins that scored, with their weights; extenders behind them.
    pub plugins: Vec<ScorePlugin>,
    /// The feasible nodes, best first.
    pub ranking: Vec<Ranked>,
    /// Whether the nodes were scored as an extender returned them: without their pods and images.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub as_returned: bool,
    /// The nodes that shared the best total, if there were several.
    pub tie: Vec<Name>,
    /// How the tie was broken.
    pub tie_break: Option<String>,
    /// Whether kube-scheduler picks one of the nodes with the best total at random: before 1.35, and
    /// where extenders score.
    #[serde(skip)]
    pub drawn: bool,
    /// The scores of some nodes with what they were computed from.
    pub formulas: Vec<Formula>,
}

/// A plugin that scored.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScorePlugin {
    /// Name of the plugin.
    pub plugin: Symbol,
    /// The weight by which its normalized score is multiplied.
    pub weight: i64,
    /// Whether it is opaque: its scores are unknown, and written as 0.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub opaque: bool,
}

/// A feasible node with its scores.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ranked {
    /// Name of the node.
    pub node: Name,
    /// Its place, from 1; nodes with the same total share one.
    pub rank: usize,
    /// The sum of all weighted scores.
    pub total: i64,
    /// The scores, parallel to the plugins.
    pub scores: Vec<Points>,
    /// The sum of the weighted scores of extenders, if there are any.
    pub extenders: Option<i64>,
}

/// A score on its way from the plugin to the total.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Points {
    /// What the plugin said.
    pub raw: i64,
    /// The same between 0 and 100.
    pub normalized: i64,
    /// The normalized score times the weight.
    pub weighted: i64,
}

/// What a score was computed from.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Formula {
    /// Name of the node.
    pub node: Name,
    /// Name of the plugin.
    pub plugin: Symbol,
    /// The inputs, each with its name.
    pub inputs: Vec<ScoreFactor>,
    /// How the raw score is made from them.
    pub formula: &'static str,
    /// How all raw scores are brought to 0…100.
    pub normalization: &'static str,
}

/// An input of a score.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScoreFactor {
    /// The input in words: `free cpu`.
    pub name: String,
    /// Its value, as people write it.
    pub value: String,
}

impl ScoreFactor {
    fn new(name: impl ToString, value: impl ToString) -> ScoreFactor {
        ScoreFactor { name: name.to_string(), value: value.to_string() }
    }
}

/// A score to be explained.
struct ScoredCase<'a> {
    probe: &'a Probe,
    scored: &'a Scored,
    node: &'a NodeInfo,
}

/// Who explains the scores of a plugin.
struct ScoreExplainer {
    plugin: &'static str,
    inputs: fn(&ScoredCase<'_>) -> Vec<ScoreFactor>,
    formula: fn(&ScoredCase<'_>) -> &'static str,
    normalization: &'static str,
}

const AS_IT_IS: &str = "as it is";
const TO_HIGHEST: &str = "100 × raw ÷ the highest raw of all nodes";

const EXPLAINERS: &[ScoreExplainer] = &[
    ScoreExplainer {
        plugin: "TaintToleration",
        inputs: inputs::taint_toleration,
        formula: |_| "the number of PreferNoSchedule taints that are not tolerated",
        normalization: "100 − 100 × raw ÷ the highest raw of all nodes",
    },
    ScoreExplainer {
        plugin: "NodeAffinity",
        inputs: inputs::node_affinity,
        formula: |_| "the sum of the weights of the preferences that the node meets",
        normalization: TO_HIGHEST,
    },
    ScoreExplainer {
        plugin: "NodeResourcesFit",
        inputs: inputs::node_resources_fit,
        formula: inputs::fit_formula,
        normalization: AS_IT_IS,
    },
    ScoreExplainer {
        plugin: "NodeResourcesBalancedAllocation",
        inputs: inputs::node_resources_balanced_allocation,
        formula: |_| "50 + (50 + balance with the pod − balance without it) ÷ 2",
        normalization: AS_IT_IS,
    },
    ScoreExplainer {
        plugin: "PodTopologySpread",
        inputs: inputs::pod_topology_spread,
        formula: |_| "for each constraint pods × weight + (maxSkew − 1), added up and rounded",
        normalization: "100 × (highest + lowest − raw) ÷ highest: fewer pods score higher",
    },
    ScoreExplainer {
        plugin: "InterPodAffinity",
        inputs: inputs::inter_pod_affinity,
        formula: |_| "the sum of the weights that pods give to the node's domains",
        normalization: "100 × (raw − lowest) ÷ (highest − lowest); 0 if all are equal",
    },
    ScoreExplainer {
        plugin: "ImageLocality",
        inputs: inputs::image_locality,
        formula: |_| {
            "100 × (scaled sizes − 23 MiB) ÷ (1000 MiB × containers − 23 MiB), within 0…100; an \
             image's size is scaled by the share of nodes that have it"
        },
        normalization: AS_IT_IS,
    },
    ScoreExplainer {
        plugin: "DynamicResources",
        inputs: inputs::dynamic_resources,
        formula: |_| "8 for each request that gets its first alternative, 7 for the second, …",
        normalization: TO_HIGHEST,
    },
];

/// The placement of a recorded cycle. `asked` are nodes to be explained in any case.
pub(super) fn recorded(probe: &Probe, record: &CycleRecord, asked: &[Name]) -> NodePlacement {
    let name = |id: &NodeId| record.nodes.name(*id);
    let nodes: Vec<Name> = record.feasible.iter().map(name).collect();
    let ranking = ranking(&nodes, &record.score, record.node);
    let mut scored = infos(probe, &nodes);
    if record.score.as_returned {
        scored = scored.iter().filter_map(as_returned).collect();
    }
    let mut formulas = formulas(probe, &scored, &ranking, record.node, asked);
    formulas.extend(by_extenders(record, &formulas));
    NodePlacement {
        nominated_first: record.node.is_some() && record.nominated_first == record.node,
        node: record.node,
        plugins: plugins(&record.score),
        tie: record.tied_nodes().iter().map(name).collect(),
        tie_break: (record.tied > 0).then(|| record.tie_break.to_string()),
        drawn: is_drawn(probe, &ranking),
        as_returned: record.score.as_returned,
        formulas,
        ranking,
    }
}

/// How the nodes that fit now would be ranked. `None` if there are none or a plugin fails.
pub(super) fn supposed(probe: &Probe, fitting: &[Name], asked: &[Name]) -> Option<NodePlacement> {
    let nodes = infos(probe, fitting);
    if nodes.is_empty() {
        return None;
    }
    let scored = probe.score(&nodes).ok()?;
    let ranking = ranking(fitting, &scored.record, None);
    let best: Vec<Name> = ranking.iter().filter(|row| row.rank == 1).map(|row| row.node).collect();
    let node = if let [only] = best[..] { Some(only) } else { None };
    Some(NodePlacement {
        nominated_first: false,
        node,
        plugins: plugins(&scored.record),
        tie: if best.len() > 1 { best } else { Vec::new() },
        tie_break: None,
        drawn: is_drawn(probe, &ranking),
        as_returned: false,
        formulas: formulas(probe, &nodes, &ranking, node, asked),
        ranking,
    })
}

/// Upstream: `selectHost` of 1.34, and the second key of the heap's elements since.
fn is_drawn(probe: &Probe, ranking: &[Ranked]) -> bool {
    let features = probe.features();
    let by_extenders = ranking.iter().any(|row| row.extenders.is_some());
    !features.has(Switch::FirstOfEqualTotals)
        || (by_extenders && features.has(Switch::ExtenderTieKey))
}

fn infos(probe: &Probe, names: &[Name]) -> Vec<Arc<NodeInfo>> {
    names.iter().filter_map(|name| probe.snapshot().by_name(*name).cloned()).collect()
}

/// A node as it is scored after an extender without a node cache returned it.
pub fn as_returned(node: &Arc<NodeInfo>) -> Option<Arc<NodeInfo>> {
    Some(Arc::new(NodeInfo::of_object(node.id, node.node.clone()?)))
}

fn plugins(record: &ScoreRecord) -> Vec<ScorePlugin> {
    let plugin = |column: Cow<'_, ScoreColumn>| ScorePlugin {
        plugin: column.plugin,
        weight: column.weight,
        opaque: column.raw.are_unknown(),
    };
    record.columns().map(plugin).collect()
}

/// What extenders said of the nodes that have formulas.
fn by_extenders(record: &CycleRecord, formulas: &[Formula]) -> Vec<Formula> {
    let mut nodes: Vec<Name> = formulas.iter().map(|formula| formula.node).collect();
    nodes.dedup();
    let position = |node: Name| {
        record.feasible.iter().position(|feasible| record.nodes.name(*feasible) == node)
    };
    let formula = |node: Name| {
        let at = position(node);
        let extenders = record.score.extenders.iter().filter(|extender| extender.weight != 0);
        extenders.map(move |extender| {
            let score = at.and_then(|at| extender.scores.get(at).copied().flatten());
            let score = score.map_or("none given".to_owned(), |score| score.to_string());
            Formula {
                node,
                plugin: extender.extender,
                inputs: vec![ScoreFactor::new("score", score)],
                formula: "the score that the extender returned, 0…10",
                normalization: "10 × score",
            }
        })
    };
    nodes.into_iter().flat_map(formula).collect()
}

/// The nodes by their totals; of those with the best one, the chosen one comes first.
fn ranking(nodes: &[Name], record: &ScoreRecord, chosen: Option<Name>) -> Vec<Ranked> {
    let columns: Vec<Cow<'_, ScoreColumn>> = record.columns().collect();
    // All scores of a window are read faster at once than one by one.
    let values = columns.iter().map(|it| (it.raw.values(), it.normalized.values(), it.weight));
    let (values, totals): (Vec<_>, _) = (values.collect(), record.totals.values());
    let at_or_0 = |values: &[i64], at: usize| values.get(at).copied().unwrap_or(0);
    let row = |(at, node): (usize, &Name)| Ranked {
        node: *node,
        rank: 0,
        total: at_or_0(&totals, at),
        scores: values
            .iter()
            .map(|(raw, normalized, weight)| {
                let normalized = at_or_0(normalized, at);
                Points { raw: at_or_0(raw, at), normalized, weighted: normalized * weight }
            })
            .collect(),
        extenders: record.by_extenders(at),
    };
    let mut rows: Vec<Ranked> = nodes.iter().enumerate().map(row).collect();
    rows.sort_by_key(|row| (std::cmp::Reverse(row.total), Some(row.node) != chosen));
    let mut last = None;
    for (at, row) in rows.iter_mut().enumerate() {
        let shared = last.filter(|(total, _)| *total == row.total);
        row.rank = shared.map_or(at + 1, |(_, rank)| rank);
        last = Some((row.total, row.rank));
    }
    rows
}

/// The formulas of the chosen node, of its nearest rivals and of the nodes asked for; all are among
/// `nodes`, as they were scored.
fn formulas(
    probe: &Probe,
    nodes: &[Arc<NodeInfo>],
    ranking: &[Ranked],
    chosen: Option<Name>,
    asked: &[Name],
) -> Vec<Formula> {
    // A lone node is not scored.
    if nodes.len() < 2 {
        return Vec::new();
    }
    let Ok(scored) = probe.score(nodes) else { return Vec::new() };
    let best = ranking.iter().map(|row| row.node).take(EXPLAINED);
    let shown: IndexSet<Name> =
        chosen.into_iter().chain(best).chain(asked.iter().copied()).collect();
    let infos = shown.iter().filter_map(|name| nodes.iter().find(|node| node.name == *name));
    infos.flat_map(|node| of_node(&ScoredCase { probe, scored: &scored, node })).collect()
}

fn of_node(case: &ScoredCase<'_>) -> Vec<Formula> {
    let formula = |column: &ScoreColumn| {
        let known = EXPLAINERS.iter().find(|explainer| column.plugin == explainer.plugin)?;
        Some(Formula {
            node: case.node.name,
            plugin: column.plugin,
            inputs: (known.inputs)(case),
            formula: (known.formula)(case),
            normalization: known.normalization,
        })
    };
    case.scored.record.plugins.iter().filter_map(formula).collect()
}
