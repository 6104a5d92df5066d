//! Preferred affinity and anti-affinity, of the pod and of the pods placed already: weights by
//! topology domain, made once per cycle (IPA-020…025).

use hashbrown::HashMap;

use crate::api::{Affinity, Labels};
use crate::config::types::InterPodAffinityArgs;
use crate::engine::framework::plugin::CycleContext;
use crate::engine::framework::scoring::MAX_NODE_SCORE;
use crate::engine::node::NodeInfo;
use crate::engine::pod::{AffinityTerm, PodInfo, WeightedTerm};
use crate::engine::pod_index::{Places, PodKind, TermKind};
use crate::engine::status::Status;
use crate::intern::Symbol;

use super::terms::{expand_weighted, means};

/// What a node is worth by the values of its labels: for each topology key, weight by value.
#[derive(Clone, Default, Debug)]
pub struct Weights {
    keys: Vec<(Symbol, HashMap<Symbol, i64>)>,
}

impl Weights {
    /// IPA-024
    pub fn score(&self, node: &NodeInfo) -> i64 {
        let of_key = |(key, values): &(Symbol, HashMap<Symbol, i64>)| {
            node.label(*key).and_then(|value| values.get(&value)).copied().unwrap_or(0)
        };
        self.keys.iter().map(of_key).sum()
    }

    /// Adds `weight` for each pod at `places`.
    fn add_all(
        &mut self,
        cx: &CycleContext<'_>,
        term: &AffinityTerm,
        places: &Places,
        weight: i64,
    ) {
        for (id, pods) in places {
            if let Some(node) = cx.snapshot.get(*id) {
                self.add(term, node, weight * i64::from(*pods));
            }
        }
    }

    fn add(&mut self, term: &AffinityTerm, node: &NodeInfo, weight: i64) {
        let key = term.topology_key;
        let Some(value) = node.label(key) else { return };
        let at = match self.keys.iter().position(|(other, _)| *other == key) {
            Some(at) => at,
            None => {
                self.keys.push((key, HashMap::new()));
                self.keys.len() - 1
            }
        };
        *self.keys[at].1.entry(value).or_default() += weight;
    }
}

/// What weighs in: the pod, its own terms, and how others' terms see it.
struct Scoring<'a> {
    pod: &'a PodInfo,
    affinity: Vec<WeightedTerm>,
    anti_affinity: Vec<WeightedTerm>,
    namespace_labels: Labels,
    hard_weight: i64,
    weights: Weights,
}

impl Scoring<'_> {
    /// What the pod's own preferences give for pods of a kind (IPA-022).
    fn count_own(&mut self, cx: &CycleContext<'_>, kind: &PodKind, places: &Places) {
        let attracted = self.affinity.iter().map(|own| (own, own.weight));
        let repelled = self.anti_affinity.iter().map(|own| (own, -own.weight));
        for (own, weight) in attracted.chain(repelled) {
            if means(&own.term, kind) {
                self.weights.add_all(cx, &own.term, places, weight);
            }
        }
    }

    /// What a term of placed pods gives (IPA-022).
    fn count_theirs(
        &mut self,
        cx: &CycleContext<'_>,
        (kind, term): (TermKind, &AffinityTerm),
        places: &Places,
    ) {
        let weight = match kind {
            TermKind::Affinity if self.hard_weight > 0 => self.hard_weight,
            TermKind::Prefers(weight) => weight,
            TermKind::Avoids(weight) => -weight,
            TermKind::Affinity | TermKind::AntiAffinity => return,
        };
        if term.matches(&self.pod.pod, &self.namespace_labels) {
            self.weights.add_all(cx, term, places, weight);
        }
    }
}

/// The weights of this cycle; `None` if nothing weighs in (IPA-020).
///
/// # Errors
/// The pod's terms cannot be parsed (IPA-026).
pub fn prepare(
    cx: &CycleContext<'_>,
    args: &InterPodAffinityArgs,
) -> Result<Option<Weights>, Status> {
    let has_preferences =
        cx.pod.pod.spec.affinity.as_ref().is_some_and(|affinity| has_preferences(affinity));
    if args.ignore_preferred_terms_of_existing_pods && !has_preferences {
        return Ok(None);
    }
    if let Some(text) = &cx.pod.parse_error {
        return Err(Status::error(&format!("failed to parse pod: {text}")));
    }
    let mut scoring = Scoring {
        pod: cx.pod,
        affinity: expand_weighted(&cx.pod.preferred_affinity, cx.objects),
        anti_affinity: expand_weighted(&cx.pod.preferred_anti_affinity, cx.objects),
        namespace_labels: cx.objects.namespace_labels(cx.pod.pod.metadata.namespace),
        hard_weight: i64::from(args.hard_pod_affinity_weight),
        weights: Weights::default(),
    };
    // IPA-021: without preferences of its own, only pods with affinity can weigh in.
    let index = cx.snapshot.pod_index();
    if has_preferences {
        index.pods().for_each(|(kind, places)| scoring.count_own(cx, kind, places));
    }
    index.terms().for_each(|(kind, term, places)| scoring.count_theirs(cx, (kind, term), places));
    Ok(Some(scoring.weights).filter(|weights| !weights.keys.is_empty()))
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

/// Spreads the scores over 0 to 100, truncating; all equal becomes 0 (IPA-025).
pub fn normalize(scores: &mut [i64]) {
    let min = scores.iter().copied().min().unwrap_or(0);
    let spread = scores.iter().copied().max().unwrap_or(0) - min;
    for score in scores {
        *score = match spread > 0 {
            true => (MAX_NODE_SCORE as f64 * ((*score - min) as f64 / spread as f64)) as i64,
            false => 0,
        };
    }
}
