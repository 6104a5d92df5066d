//! Soft constraints: prefers nodes whose domains have fewer matching pods.

use std::sync::Arc;

use fixedbitset::FixedBitSet;

use kubestep_api::intern::Symbol;
use kubestep_config::versions::Switch;
use kubestep_framework::node::{NodeId, NodeInfo};
use kubestep_framework::plugin::CycleContext;
use kubestep_framework::record::nodes::NodeList;
use kubestep_framework::record::scores::{MAX_NODE_SCORE, range};
use kubestep_framework::snapshot::pod_index::ClassPods;
use kubestep_framework::snapshot::topology::TopologyColumn;

use super::constraint::{Constraints, SpreadConstraint};
use super::filter::with_all_keys;
use crate::normalize::each;

/// A constraint with the counts of its domains.
#[derive(Clone, Debug)]
struct Soft {
    key: Symbol,
    column: Arc<TopologyColumn>,
    /// Matching pods by domain; for the hostname key, by node slot.
    pods: Vec<i64>,
    per_host: bool,
    max_skew: i64,
    weight: f64,
}

/// The counts of one cycle.
#[derive(Clone, Debug)]
pub struct ScoreState {
    soft: Vec<Soft>,
    /// Nodes that lack a topology key and score 0.
    ignored: FixedBitSet,
}

/// The part of a score that a constraint adds: `pods × weight + max_skew − 1`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SoftPart {
    /// The topology key: the node label whose values are the domains.
    pub key: Symbol,
    /// Matching pods in the node's domain.
    pub pods: i64,
    /// The logarithm of the number of domains plus 2.
    pub weight: f64,
    /// `maxSkew` of the constraint.
    pub max_skew: i64,
}

/// Two sets of nodes, by slot.
struct NodeSets {
    /// Nodes whose pods are counted.
    counted: FixedBitSet,
    /// Nodes that are scored.
    scored: FixedBitSet,
}

impl ScoreState {
    /// Counts over the whole snapshot.
    pub fn new(cx: &CycleContext<'_>, constraints: &Constraints, nodes: &NodeList) -> ScoreState {
        let with_keys = with_all_keys(cx, constraints);
        let mut scored = FixedBitSet::with_capacity(cx.snapshot.slots());
        nodes.iter().for_each(|id| scored.insert(id.index()));
        let mut ignored = FixedBitSet::with_capacity(cx.snapshot.slots());
        if constraints.require_all_keys {
            ignored.union_with(&scored);
            ignored.difference_with(&with_keys);
            scored.intersect_with(&with_keys);
        }
        let mut counted = with_keys;
        if !constraints.require_all_keys {
            cx.snapshot.order().iter().for_each(|id| counted.insert(id.index()));
        }
        let nodes = NodeSets { counted, scored };
        let soft = |constraint| Soft::new(cx, constraints, constraint, &nodes);
        let mut soft: Vec<Soft> = constraints.list.iter().map(soft).collect();
        if !cx.features.has(Switch::SpreadCountsByConstraint) {
            share_counts(&mut soft);
        }
        ScoreState { soft, ignored }
    }

    /// The sum over the constraints whose key the node has. Of a node that an extender returned,
    /// pods are not known: for the hostname key none counts.
    pub fn score(&self, node: &NodeInfo) -> i64 {
        self.sum(node.id, |soft| soft.pods_on_node(node))
    }

    fn sum(&self, node: NodeId, pods: impl Fn(&Soft) -> Option<i64>) -> i64 {
        if self.ignored.contains(node.index()) {
            return 0;
        }
        let parts = self.soft.iter().map(|soft| pods(soft).map_or(0.0, |pods| soft.part(pods)));
        parts.sum::<f64>().round() as i64
    }

    /// The scores of several nodes.
    pub(super) fn scores(&self, nodes: &[NodeId]) -> Vec<i64> {
        let [soft] = self.soft.as_slice() else {
            let score = |node: &NodeId| self.sum(*node, |soft| soft.pods_at(*node));
            return nodes.iter().map(score).collect();
        };
        let mut scores = soft.pods_on(nodes);
        // Nodes without a domain have a count below 0.
        each(&mut scores, |pods| if pods < 0 { 0 } else { soft.part(pods).round() as i64 });
        if !self.ignored.is_clear() {
            let ignored = nodes.iter().map(|node| self.ignored.contains(node.index()));
            scores.iter_mut().zip(ignored).for_each(|(score, ignored)| {
                *score = if ignored { 0 } else { *score };
            });
        }
        scores
    }

    /// The part that each constraint adds to the score of a node; `None` for an ignored node.
    pub fn parts(&self, node: &NodeInfo) -> Option<Vec<SoftPart>> {
        if self.ignored.contains(node.id.index()) {
            return None;
        }
        let part = |soft: &Soft| {
            let (key, pods) = (soft.key, soft.pods_on_node(node)?);
            Some(SoftPart { key, pods, weight: soft.weight, max_skew: soft.max_skew })
        };
        Some(self.soft.iter().filter_map(part).collect())
    }

    /// Scales the scores so that fewer pods score higher; ignored nodes score 0.
    pub fn normalize(&self, nodes: &[NodeId], scores: &mut [i64]) {
        if self.ignored.is_clear() {
            return scale(scores);
        }
        let is_counted = |node: &NodeId| !self.ignored.contains(node.index());
        let pairs = nodes.iter().zip(scores.iter());
        let mut counted: Vec<i64> =
            pairs.filter(|(node, _)| is_counted(node)).map(|(_, score)| *score).collect();
        scale(&mut counted);
        let mut counted = counted.into_iter();
        for (node, score) in nodes.iter().zip(scores) {
            *score = if is_counted(node) { counted.next().unwrap_or_default() } else { 0 };
        }
    }
}

/// Scales the scores of nodes that are not ignored.
fn scale(scores: &mut [i64]) {
    let (min, max) = range(scores).unwrap_or_default();
    match max.max(0) {
        0 => scores.fill(MAX_NODE_SCORE),
        max => each(scores, |score| MAX_NODE_SCORE * (max + min - score) / max),
    }
}

/// Up to 1.32, constraints with the same topology key share the sum of their counts, and only the
/// first of them counts domains. Hosts are counted for each constraint.
fn share_counts(soft: &mut [Soft]) {
    for at in 0..soft.len() {
        let same = |other: &&Soft| !other.per_host && other.key == soft[at].key;
        if soft[at].per_host || soft[..at].iter().any(|other| same(&other)) {
            continue;
        }
        let mut sum = vec![0; soft[at].pods.len()];
        for other in soft.iter().filter(same) {
            sum.iter_mut().zip(&other.pods).for_each(|(sum, pods)| *sum += pods);
        }
        let key = soft[at].key;
        for (index, other) in soft.iter_mut().enumerate().filter(|(_, other)| other.key == key) {
            other.pods.clone_from(&sum);
            if index > at {
                other.weight = 2_f64.ln();
            }
        }
    }
}

impl Soft {
    fn new(
        cx: &CycleContext<'_>,
        constraints: &Constraints,
        constraint: &SpreadConstraint,
        nodes: &NodeSets,
    ) -> Soft {
        let column = cx.snapshot.topology(constraint.key);
        let per_host = constraint.key == "kubernetes.io/hostname";
        // Hosts are not counted as domains: the number of scored nodes is used.
        let size = match per_host {
            true => nodes.scored.count_ones(..),
            false => count_domains(&column, &nodes.scored),
        };
        let mut soft = Soft {
            key: constraint.key,
            pods: vec![0; if per_host { cx.snapshot.slots() } else { column.len() }],
            column,
            per_host,
            max_skew: constraint.max_skew,
            weight: ((size + 2) as f64).ln(),
        };
        let namespace = cx.pod.pod.metadata.namespace;
        let classes = cx.snapshot.pods().classes();
        let counting = classes.filter(|pods| constraint.counts(&pods.class, namespace));
        if per_host {
            counting.for_each(|pods| soft.add_by_host(pods));
        } else {
            let included = constraints.included(constraint, cx, &nodes.counted);
            counting.for_each(|pods| soft.add_by_domain(pods, &included));
        }
        soft
    }

    /// The number of pods in the node's domain; `None` without a domain.
    fn pods_at(&self, node: NodeId) -> Option<i64> {
        let domain = self.column.domain(node)?;
        Some(self.pods[if self.per_host { node.index() } else { domain }])
    }

    /// The same with the pods that the node itself has.
    fn pods_on_node(&self, node: &NodeInfo) -> Option<i64> {
        let pods = self.pods_at(node.id)?;
        Some(if self.per_host && node.pods.is_empty() { 0 } else { pods })
    }

    /// The number of pods in the domain of each node; -1 without a domain.
    fn pods_on(&self, nodes: &[NodeId]) -> Vec<i64> {
        if !self.per_host {
            return self.column.gather(nodes, &self.pods, -1).collect();
        }
        let labelled = self.column.labelled();
        let pods = |node: &NodeId| match labelled.contains(node.index()) {
            true => self.pods.get(node.index()).copied().unwrap_or(-1),
            false => -1,
        };
        nodes.iter().map(pods).collect()
    }

    /// What so many pods add to a score.
    fn part(&self, pods: i64) -> f64 {
        pods as f64 * self.weight + (self.max_skew - 1) as f64
    }

    fn add_by_host(&mut self, pods: &ClassPods) {
        for (node, number) in pods.nodes.iter() {
            self.pods[node.index()] += i64::from(*number);
        }
    }

    /// Counts nodes without the label in the domain with the empty value, if there is one. This
    /// matters for system defaults, which do not require the label.
    fn add_by_domain(&mut self, pods: &ClassPods, included: &FixedBitSet) {
        let empty = domain_of_nothing(&self.column);
        if empty.is_none() && included.is_superset(self.column.labelled()) {
            let counts = &mut self.pods;
            return pods.by_domain(&self.column, |domain, number| counts[domain] += number);
        }
        for (node, number) in pods.nodes.iter().filter(|(id, _)| included.contains(id.index())) {
            if let Some(domain) = self.column.domain(*node).or(empty) {
                self.pods[domain] += i64::from(*number);
            }
        }
    }
}

fn domain_of_nothing(column: &TopologyColumn) -> Option<usize> {
    (0..column.len()).find(|domain| column.value(*domain).is_empty())
}

/// The number of domains of these nodes; nodes without the label count as the empty value.
fn count_domains(column: &TopologyColumn, nodes: &FixedBitSet) -> usize {
    let mut domains = FixedBitSet::with_capacity(column.len() + 1);
    let nothing = domain_of_nothing(column).unwrap_or(column.len());
    for slot in nodes.ones() {
        domains.insert(column.domain(NodeId(slot as u32)).unwrap_or(nothing));
    }
    domains.count_ones(..)
}
