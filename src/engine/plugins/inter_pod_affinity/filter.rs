//! Required affinity and anti-affinity: three counts of pods by topology domain, made once per
//! cycle, looked up per node (IPA-002…007).

use std::sync::Arc;

use smallvec::SmallVec;

use crate::api::Labels;
use crate::engine::framework::plugin::CycleContext;
use crate::engine::node::NodeInfo;
use crate::engine::pod::{AffinityTerm, PodInfo};
use crate::engine::pod_index::{Places, TermKind};
use crate::engine::status::Status;
use crate::engine::topology::{CountMap, Counts, Domain};
use crate::intern::Symbol;

use super::terms::{all_match, expand, matches, means};

/// The three refusals, built once (IPA-004).
pub struct Refusals {
    affinity: Status,
    anti_affinity: Status,
    existing: Status,
}

impl Default for Refusals {
    fn default() -> Refusals {
        Refusals {
            affinity: Status::unresolvable("node(s) didn't match pod affinity rules"),
            anti_affinity: Status::unschedulable("node(s) didn't match pod anti-affinity rules"),
            existing: Status::unschedulable(
                "node(s) didn't satisfy existing pods anti-affinity rules",
            ),
        }
    }
}

/// What does not change within a cycle.
#[derive(Debug)]
struct Own {
    affinity: Vec<AffinityTerm>,
    anti_affinity: Vec<AffinityTerm>,
    namespace_labels: Labels,
    matches_itself: bool,
}

/// The counts of one cycle, for one pod.
#[derive(Clone, Debug)]
pub struct FilterState {
    own: Arc<Own>,
    /// Pods that match all own affinity terms.
    affinity: Counts<Domain>,
    /// Pods that match an own anti-affinity term.
    anti_affinity: Counts<Domain>,
    /// Anti-affinity terms of other pods that match this one.
    existing: Counts<Domain>,
    /// The topology keys in `existing`.
    existing_keys: SmallVec<[Symbol; 2]>,
}

impl FilterState {
    /// Counts over the whole snapshot.
    pub fn new(cx: &CycleContext<'_>) -> FilterState {
        let affinity = expand(&cx.pod.required_affinity, cx.objects);
        let own = Arc::new(Own {
            matches_itself: all_match(&affinity, &cx.pod.pod),
            affinity,
            anti_affinity: expand(&cx.pod.required_anti_affinity, cx.objects),
            namespace_labels: cx.objects.namespace_labels(cx.pod.pod.metadata.namespace),
        });
        let (affinity, anti_affinity) = count_matching(cx, &own);
        let (existing, existing_keys) = count_existing(cx, &own.namespace_labels);
        FilterState {
            own,
            affinity: affinity.into(),
            anti_affinity: anti_affinity.into(),
            existing: existing.into(),
            existing_keys,
        }
    }

    /// Whether nothing can be refused (IPA-003).
    pub fn is_idle(&self) -> bool {
        self.own.affinity.is_empty()
            && self.own.anti_affinity.is_empty()
            && self.existing.is_all_zero()
    }

    /// Counts `other` in or out (IPA-007).
    pub fn count_pod(&mut self, pod: &PodInfo, other: &PodInfo, node: &NodeInfo, sign: i64) {
        let own = self.own.clone();
        for term in &other.required_anti_affinity {
            if term.matches(&pod.pod, &own.namespace_labels)
                && let Some(domain) = domain(node, term)
            {
                self.existing.add(domain, sign);
                add_key(&mut self.existing_keys, domain.0);
            }
        }
        if all_match(&own.affinity, &other.pod) {
            for domain in own.affinity.iter().filter_map(|term| domain(node, term)) {
                self.affinity.add(domain, sign);
            }
        }
        let matching = own.anti_affinity.iter().filter(|term| matches(term, &other.pod));
        for domain in matching.filter_map(|term| domain(node, term)) {
            self.anti_affinity.add(domain, sign);
        }
    }

    /// IPA-004
    pub fn filter(&self, node: &NodeInfo, refusals: &Refusals) -> Status {
        if !self.satisfies_affinity(node) {
            refusals.affinity.clone()
        } else if !self.satisfies_anti_affinity(node) {
            refusals.anti_affinity.clone()
        } else if !self.satisfies_existing(node) {
            refusals.existing.clone()
        } else {
            Status::SUCCESS
        }
    }

    /// IPA-005
    fn satisfies_affinity(&self, node: &NodeInfo) -> bool {
        let mut found = true;
        for term in &self.own.affinity {
            let Some(domain) = domain(node, term) else { return false };
            found &= self.affinity.get(domain) > 0;
        }
        // The first pod of a group that wants to be together goes anywhere.
        found || (self.affinity.is_all_zero() && self.own.matches_itself)
    }

    /// IPA-006
    fn satisfies_anti_affinity(&self, node: &NodeInfo) -> bool {
        let domains = self.own.anti_affinity.iter().filter_map(|term| domain(node, term));
        self.anti_affinity.is_all_zero()
            || domains.into_iter().all(|domain| self.anti_affinity.get(domain) <= 0)
    }

    fn satisfies_existing(&self, node: &NodeInfo) -> bool {
        self.existing_keys
            .iter()
            .all(|key| node.label(*key).is_none_or(|value| self.existing.get((*key, value)) <= 0))
    }
}

/// The domain that a node is in for a term; `None` if it lacks the label.
fn domain(node: &NodeInfo, term: &AffinityTerm) -> Option<Domain> {
    Some((term.topology_key, node.label(term.topology_key)?))
}

fn add_key(keys: &mut SmallVec<[Symbol; 2]>, key: Symbol) {
    if !keys.contains(&key) {
        keys.push(key);
    }
}

/// Pods that match all own affinity terms, and pods that match each own anti-affinity term.
fn count_matching(cx: &CycleContext<'_>, own: &Own) -> (CountMap<Domain>, CountMap<Domain>) {
    let (mut affinity, mut anti_affinity) = (CountMap::default(), CountMap::default());
    if own.affinity.is_empty() && own.anti_affinity.is_empty() {
        return (affinity, anti_affinity);
    }
    for (kind, places) in cx.snapshot.pod_index().pods() {
        let all_mean = own.affinity.iter().all(|term| means(term, kind));
        if all_mean && !own.affinity.is_empty() {
            add_domains(&mut affinity, cx, places, &own.affinity);
        }
        for term in own.anti_affinity.iter().filter(|term| means(term, kind)) {
            add_domains(&mut anti_affinity, cx, places, std::slice::from_ref(term));
        }
    }
    (affinity, anti_affinity)
}

/// Counts the pods at `places` into the domains of `terms`.
fn add_domains(
    counts: &mut CountMap<Domain>,
    cx: &CycleContext<'_>,
    places: &Places,
    terms: &[AffinityTerm],
) {
    for (id, pods) in places {
        let Some(node) = cx.snapshot.get(*id) else { continue };
        for domain in terms.iter().filter_map(|term| domain(node, term)) {
            *counts.entry(domain).or_default() += i64::from(*pods);
        }
    }
}

/// Anti-affinity terms of placed pods that match the pod.
fn count_existing(
    cx: &CycleContext<'_>,
    namespace_labels: &Labels,
) -> (CountMap<Domain>, SmallVec<[Symbol; 2]>) {
    let (mut counts, mut keys) = (CountMap::default(), SmallVec::new());
    for (kind, term, places) in cx.snapshot.pod_index().terms() {
        if kind == TermKind::AntiAffinity && term.matches(&cx.pod.pod, namespace_labels) {
            add_domains(&mut counts, cx, places, std::slice::from_ref(term));
            add_key(&mut keys, term.topology_key);
        }
    }
    (counts, keys)
}
