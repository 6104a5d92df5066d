//! Preferred affinity and anti-affinity, of the pod and of existing pods: weights by topology
//! domain, computed once per cycle.

use std::sync::Arc;

use super::InterPodAffinityArgs;
use crate::normalize::each;
use kubestep_api::intern::Symbol;
use kubestep_api::{Affinity, Labels, Name};
use kubestep_framework::node::{NodeId, NodeInfo};
use kubestep_framework::plugin::CycleContext;
use kubestep_framework::pod::{AffinityTerm, WeightedTerm};
use kubestep_framework::record::scores::{MAX_NODE_SCORE, range};
use kubestep_framework::snapshot::Snapshot;
use kubestep_framework::snapshot::pod_index::ClassPods;
use kubestep_framework::snapshot::topology::TopologyColumn;
use kubestep_framework::status::Status;

use super::terms::{expand_weighted, selects};

/// The weight of each topology domain.
#[derive(Clone, Default, Debug)]
pub struct DomainWeights {
    keys: Vec<KeyWeights>,
}

/// Weights for one topology key, by domain.
#[derive(Clone, Debug)]
struct KeyWeights {
    key: Symbol,
    column: Arc<TopologyColumn>,
    weights: Vec<i64>,
    /// Whether any pod was counted, even if its weights add up to 0.
    used: bool,
}

impl DomainWeights {
    /// The sum of the weights of the node's domains.
    pub fn score(&self, node: NodeId) -> i64 {
        let of_key = |key: &KeyWeights| key.column.domain(node).map_or(0, |at| key.weights[at]);
        self.keys.iter().map(of_key).sum()
    }

    /// The scores of several nodes.
    pub(super) fn scores(&self, nodes: &[NodeId]) -> Vec<i64> {
        let mut keys = self.keys.iter().map(|key| key.column.gather(nodes, &key.weights, 0));
        let Some(first) = keys.next() else { return vec![0; nodes.len()] };
        let mut scores: Vec<i64> = first.collect();
        for weights in keys {
            scores.iter_mut().zip(weights).for_each(|(score, weight)| *score += weight);
        }
        scores
    }

    /// The part of the score that each topology key adds, with the node's domain.
    pub fn parts(&self, node: &NodeInfo) -> Vec<(Symbol, Name, i64)> {
        let part = |key: &KeyWeights| {
            let domain = key.column.domain(node.id)?;
            Some((key.key, key.column.value(domain), key.weights[domain]))
        };
        self.keys.iter().filter_map(part).collect()
    }

    /// Whether no pod was counted.
    fn is_unused(&self) -> bool {
        !self.keys.iter().any(|key| key.used)
    }

    /// Adds `weight` to the domains of the class's pods, once for each pod.
    fn add(&mut self, term: &AffinityTerm, pods: &ClassPods, weight: i64, snapshot: &Snapshot) {
        let key = term.topology_key;
        let at = self.keys.iter().position(|other| other.key == key).unwrap_or_else(|| {
            let column = snapshot.topology(key);
            let weights = vec![0; column.len()];
            self.keys.push(KeyWeights { key, column, weights, used: false });
            self.keys.len() - 1
        });
        let KeyWeights { column, weights, used, .. } = &mut self.keys[at];
        pods.by_domain(column, |domain, number| {
            weights[domain] += weight * number;
            *used = true;
        });
    }
}

/// The inputs of the score: the pod, its own terms, and the labels for existing pods' terms.
struct Scoring<'a> {
    cx: &'a CycleContext<'a>,
    affinity: Vec<WeightedTerm>,
    anti_affinity: Vec<WeightedTerm>,
    namespace_labels: Labels,
    hard_weight: i64,
    weights: DomainWeights,
}

impl Scoring<'_> {
    /// Adds the weights of the pod's preferred terms that match the pods of a class.
    fn count_own(&mut self, pods: &ClassPods) {
        let (class, snapshot) = (&pods.class, self.cx.snapshot);
        let meant = |own: &&WeightedTerm| selects(&own.term, class.namespace, &class.labels);
        for own in self.affinity.iter().filter(meant) {
            self.weights.add(&own.term, pods, own.weight, snapshot);
        }
        for own in self.anti_affinity.iter().filter(meant) {
            self.weights.add(&own.term, pods, -own.weight, snapshot);
        }
    }

    /// Adds the weights of terms of a class's pods that match the pod.
    fn count_theirs(&mut self, pods: &ClassPods) {
        let (terms, snapshot) = (&pods.class.terms, self.cx.snapshot);
        let sees = |term: &AffinityTerm| term.matches(&self.cx.pod.pod, &self.namespace_labels);
        if self.hard_weight > 0 {
            for term in terms.required_affinity.iter().filter(|term| sees(term)) {
                self.weights.add(term, pods, self.hard_weight, snapshot);
            }
        }
        for theirs in terms.preferred_affinity.iter().filter(|theirs| sees(&theirs.term)) {
            self.weights.add(&theirs.term, pods, theirs.weight, snapshot);
        }
        for theirs in terms.preferred_anti_affinity.iter().filter(|theirs| sees(&theirs.term)) {
            self.weights.add(&theirs.term, pods, -theirs.weight, snapshot);
        }
    }
}

/// The weights of this cycle; `None` if no pod is counted, and PreScore then skips.
///
/// # Errors
/// The pod's terms cannot be parsed.
pub fn prepare(
    cx: &CycleContext<'_>,
    args: &InterPodAffinityArgs,
) -> Result<Option<DomainWeights>, Status> {
    let has_preferences =
        cx.pod.pod.spec.affinity.as_ref().is_some_and(|affinity| has_preferences(affinity));
    if args.ignore_preferred_terms_of_existing_pods && !has_preferences {
        return Ok(None);
    }
    if let Some(text) = cx.pod.parse_error() {
        return Err(Status::error(format!("failed to parse pod: {text}")));
    }
    let terms = cx.pod.own_terms();
    let mut scoring = Scoring {
        cx,
        affinity: expand_weighted(&terms.preferred_affinity, cx.objects),
        anti_affinity: expand_weighted(&terms.preferred_anti_affinity, cx.objects),
        namespace_labels: cx.objects.namespace_labels(cx.pod.pod.metadata.namespace),
        hard_weight: i64::from(args.hard_pod_affinity_weight),
        weights: DomainWeights::default(),
    };
    // Existing pods without affinity count only if the pod has preferences of its own.
    if has_preferences {
        for pods in cx.snapshot.pods().classes() {
            scoring.count_own(pods);
            scoring.count_theirs(pods);
        }
    } else {
        cx.snapshot.pods().with_affinity().for_each(|pods| scoring.count_theirs(pods));
    }
    Ok(Some(scoring.weights).filter(|weights| !weights.is_unused()))
}

fn has_preferences(affinity: &Affinity) -> bool {
    let attract = affinity.pod_affinity.as_ref();
    let repel = affinity.pod_anti_affinity.as_ref();
    attract
        .is_some_and(|terms| !terms.preferred_during_scheduling_ignored_during_execution.is_empty())
        || repel.is_some_and(|terms| {
            !terms.preferred_during_scheduling_ignored_during_execution.is_empty()
        })
}

/// Scales the scores: the lowest becomes 0, the highest 100, truncating. If all are equal, all
/// become 0.
pub fn normalize(scores: &mut [i64]) {
    let (min, max) = range(scores).unwrap_or_default();
    let spread = max - min;
    match spread > 0 {
        true => each(scores, |score| {
            (MAX_NODE_SCORE as f64 * ((score - min) as f64 / spread as f64)) as i64
        }),
        false => scores.fill(0),
    }
}
