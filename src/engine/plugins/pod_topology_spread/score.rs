//! Soft constraints: nodes score by how many pods their domains have already (PTS-030…036).

use fixedbitset::FixedBitSet;
use hashbrown::HashMap;

use crate::engine::framework::plugin::CycleContext;
use crate::engine::framework::scoring::MAX_NODE_SCORE;
use crate::engine::node::{NodeId, NodeInfo};
use crate::intern::Symbol;

use super::constraint::{Constraint, Constraints};
use super::counting::{PodsByNode, count_pods};

/// A constraint with what is known of its domains.
#[derive(Clone, Debug)]
struct Soft {
    constraint: Constraint,
    /// The pods it counts.
    pods: PodsByNode,
    /// Pods by domain, for the domains of the nodes in question; empty for hosts, where the
    /// node's own pods are counted when it is scored.
    domains: HashMap<Symbol, i64>,
    per_host: bool,
    weight: f64,
}

/// What scoring needs.
#[derive(Clone, Debug)]
pub struct ScoreState {
    soft: Vec<Soft>,
    /// Nodes that lack a key and score 0.
    ignored: FixedBitSet,
}

impl ScoreState {
    /// Counts over the whole snapshot, but only for domains of `nodes`.
    pub fn new(cx: &CycleContext<'_>, constraints: Constraints, nodes: &[NodeId]) -> ScoreState {
        let mut state = ScoreState::of_nodes(cx, &constraints, nodes);
        let pod = &cx.pod.pod;
        for info in cx.snapshot.iter() {
            let Some(node) = &info.node else { continue };
            if constraints.require_all_keys && !constraints.has_all_keys(&node.metadata.labels) {
                continue;
            }
            for soft in state.soft.iter_mut().filter(|soft| !soft.per_host) {
                let pods = soft.pods.on(info.id);
                if pods == 0 {
                    continue;
                }
                let value = info.label(soft.constraint.key).unwrap_or_default();
                let Some(count) = soft.domains.get_mut(&value) else { continue };
                if constraints.includes(&soft.constraint, pod, node) {
                    *count += pods;
                }
            }
        }
        state
    }

    /// The domains and their weights, without counts (PTS-031, PTS-032).
    fn of_nodes(cx: &CycleContext<'_>, constraints: &Constraints, nodes: &[NodeId]) -> ScoreState {
        let soft = |(constraint, pods): (&Constraint, PodsByNode)| Soft {
            constraint: constraint.clone(),
            pods,
            domains: HashMap::new(),
            per_host: constraint.key == "kubernetes.io/hostname",
            weight: 0.0,
        };
        let ignored = FixedBitSet::with_capacity(cx.snapshot.slots());
        let pods = count_pods(cx, constraints);
        let soft = constraints.list.iter().zip(pods).map(soft).collect();
        let mut state = ScoreState { soft, ignored };
        for info in nodes.iter().filter_map(|id| cx.snapshot.get(*id)) {
            let labels = info.node.as_ref().map(|node| &node.metadata.labels);
            let has_all = labels.is_some_and(|labels| constraints.has_all_keys(labels));
            if constraints.require_all_keys && !has_all {
                state.ignored.insert(info.id.index());
                continue;
            }
            for soft in state.soft.iter_mut().filter(|soft| !soft.per_host) {
                // PTS-036: without the label the node is in the domain of the empty value.
                let value = info.label(soft.constraint.key).unwrap_or_default();
                soft.domains.entry(value).or_insert(0);
            }
        }
        let scored = nodes.len() - state.ignored.count_ones(..);
        for soft in &mut state.soft {
            let size = if soft.per_host { scored } else { soft.domains.len() };
            soft.weight = ((size + 2) as f64).ln();
        }
        state
    }

    /// PTS-034
    pub fn score(&self, node: &NodeInfo) -> i64 {
        if self.ignored.contains(node.id.index()) {
            return 0;
        }
        let mut score = 0.0;
        for soft in &self.soft {
            let Some(value) = node.label(soft.constraint.key) else { continue };
            let count = match soft.per_host {
                true => soft.pods.on(node.id),
                false => soft.domains.get(&value).copied().unwrap_or(0),
            };
            score += count as f64 * soft.weight + (soft.constraint.max_skew - 1) as f64;
        }
        score.round() as i64
    }

    /// Fewer pods score higher; nodes left out score 0 (PTS-035).
    pub fn normalize(&self, nodes: &[NodeId], scores: &mut [i64]) {
        let ignored = |node: &NodeId| self.ignored.contains(node.index());
        let counted = || nodes.iter().zip(scores.iter()).filter(|(node, _)| !ignored(node));
        let min = counted().map(|(_, score)| *score).min().unwrap_or(0);
        let max = counted().map(|(_, score)| *score).max().unwrap_or(0).max(0);
        for (node, score) in nodes.iter().zip(scores) {
            *score = match (ignored(node), max) {
                (true, _) => 0,
                (false, 0) => MAX_NODE_SCORE,
                (false, max) => MAX_NODE_SCORE * (max + min - *score) / max,
            };
        }
    }
}
