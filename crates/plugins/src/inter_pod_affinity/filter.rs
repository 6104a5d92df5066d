//! Required affinity and anti-affinity: three counts of pods by topology domain, computed once per
//! cycle for each class of pods, and looked up for each node.

use std::sync::Arc;

use kubestep_api::intern::Symbol;
use kubestep_api::{Labels, Name};
use kubestep_framework::node::{NodeId, NodeInfo};
use kubestep_framework::plugin::CycleContext;
use kubestep_framework::pod::{AffinityTerm, PodInfo};
use kubestep_framework::snapshot::topology::{KeyCounts, KeyedCounts};
use kubestep_framework::status::{DistinctStatuses, Status};

use super::terms::{all_match, all_match_class, expand, selects};

/// A rule that keeps a pod off a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AffinityReason {
    /// A required affinity term of the pod matches no pod in the domain.
    Affinity,
    /// A required anti-affinity term of the pod matches a pod in the domain.
    AntiAffinity,
    /// The anti-affinity of pods that are placed.
    ExistingAntiAffinity,
}

impl AffinityReason {
    /// In the order in which Filter looks at them.
    const ALL: [AffinityReason; 3] = [
        AffinityReason::Affinity,
        AffinityReason::AntiAffinity,
        AffinityReason::ExistingAntiAffinity,
    ];
}

/// Filter's status for a reason.
pub fn rejection(reason: AffinityReason) -> Status {
    match reason {
        AffinityReason::Affinity => Status::unresolvable("node(s) didn't match pod affinity rules"),
        AffinityReason::AntiAffinity => {
            Status::unschedulable("node(s) didn't match pod anti-affinity rules")
        }
        AffinityReason::ExistingAntiAffinity => {
            Status::unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")
        }
    }
}

/// The three rejections, built once.
pub struct AffinityRejections([Status; 3]);

impl AffinityRejections {
    /// The rejections with the plugin's name.
    pub fn new(plugin: Symbol) -> AffinityRejections {
        AffinityRejections(AffinityReason::ALL.map(|reason| rejection(reason).by(plugin)))
    }
}

/// The part of the state that AddPod and RemovePod do not change.
#[derive(Debug)]
struct OwnTerms {
    affinity: Vec<AffinityTerm>,
    anti_affinity: Vec<AffinityTerm>,
    namespace_labels: Labels,
    matches_itself: bool,
}

/// The counts of one cycle for one pod.
#[derive(Clone, Debug)]
pub struct AffinityFilterState {
    own: Arc<OwnTerms>,
    /// Pods that match all own affinity terms.
    affinity: KeyedCounts,
    /// Pods that match an own anti-affinity term.
    anti_affinity: KeyedCounts,
    /// Anti-affinity terms of existing pods that match this pod.
    existing: KeyedCounts,
}

impl AffinityFilterState {
    /// Counts over the whole snapshot.
    pub fn new(cx: &CycleContext<'_>) -> AffinityFilterState {
        let terms = cx.pod.own_terms();
        let affinity = expand(&terms.required_affinity, cx.objects);
        let own = OwnTerms {
            matches_itself: all_match(&affinity, &cx.pod.pod),
            affinity,
            anti_affinity: expand(&terms.required_anti_affinity, cx.objects),
            namespace_labels: cx.objects.namespace_labels(cx.pod.pod.metadata.namespace),
        };
        let (affinity, anti_affinity) = count_matching(cx, &own);
        let existing = count_existing(cx, &own.namespace_labels);
        AffinityFilterState { own: Arc::new(own), affinity, anti_affinity, existing }
    }

    /// Whether Filter would accept every node: PreFilter then skips the plugin.
    pub fn is_idle(&self) -> bool {
        self.own.affinity.is_empty()
            && self.own.anti_affinity.is_empty()
            && self.existing.is_all_zero()
    }

    /// AddPod and RemovePod: adds `other` to all three counts, or removes it.
    pub(crate) fn count_pod(
        &mut self,
        cx: &CycleContext<'_>,
        other: &PodInfo,
        node: &NodeInfo,
        sign: i64,
    ) {
        let (own, snapshot) = (self.own.clone(), cx.snapshot);
        for term in &other.class.terms.required_anti_affinity {
            if term.matches(&cx.pod.pod, &own.namespace_labels) {
                self.existing.of_key(term.topology_key, snapshot).add(node.id, sign);
            }
        }
        if all_match(&own.affinity, &other.pod) {
            for term in &own.affinity {
                self.affinity.of_key(term.topology_key, snapshot).add(node.id, sign);
            }
        }
        let metadata = &other.pod.metadata;
        for term in &own.anti_affinity {
            if selects(term, metadata.namespace, &metadata.labels) {
                self.anti_affinity.of_key(term.topology_key, snapshot).add(node.id, sign);
            }
        }
    }

    /// The own required terms: affinity and anti-affinity.
    pub fn own_terms(&self) -> (&[AffinityTerm], &[AffinityTerm]) {
        (&self.own.affinity, &self.own.anti_affinity)
    }

    /// The own affinity terms, by their index, for which no pod that matches all terms is in the
    /// node's domain, and whether the node is in one.
    pub fn unmet_terms(&self, node: NodeId) -> impl Iterator<Item = (usize, bool)> {
        let count = move |term: &AffinityTerm| self.affinity.find(term.topology_key)?.at(node);
        let counts = self.own.affinity.iter().map(count).enumerate();
        let unmet = counts.filter(|(_, count)| count.is_none_or(|count| count <= 0));
        unmet.map(|(at, count)| (at, count.is_some()))
    }

    /// Pods that match all own affinity terms, by the domains of one of them.
    pub fn affinity_domains(&self, term: &AffinityTerm) -> Vec<(Name, i64)> {
        let Some(counts) = self.affinity.find(term.topology_key) else { return Vec::new() };
        let domains = 0..counts.column.len();
        let counted = domains.map(|at| (counts.column.value(at), counts.counts.get(at)));
        counted.filter(|(_, count)| *count > 0).collect()
    }

    /// The rules that keep the pod off the node: Filter stops at the first, an
    /// explanation names all.
    pub fn reasons(&self, node: NodeId) -> impl Iterator<Item = AffinityReason> {
        let applies = move |reason: &AffinityReason| match reason {
            AffinityReason::Affinity => !self.satisfies_affinity(node),
            AffinityReason::AntiAffinity => !none_at(&self.anti_affinity, node),
            AffinityReason::ExistingAntiAffinity => !none_at(&self.existing, node),
        };
        AffinityReason::ALL.into_iter().filter(applies)
    }

    /// Whether an anti-affinity term of another pod matches this one.
    pub fn is_meant_by(&self, term: &AffinityTerm, pod: &PodInfo) -> bool {
        term.matches(&pod.pod, &self.own.namespace_labels)
    }

    /// The status of a node; its rejections are built once.
    pub fn filter(&self, node: NodeId, rejections: &AffinityRejections) -> Status {
        let first = self.reasons(node).next();
        first.map_or(Status::SUCCESS, |reason| rejections.0[reason as usize].clone())
    }

    /// The statuses of all nodes.
    pub(super) fn filter_all(
        &self,
        slots: usize,
        rejections: &AffinityRejections,
    ) -> DistinctStatuses {
        let mut reasons = FirstReasons(vec![0; slots]);
        for term in &self.own.affinity {
            reasons.add_unmet(self.affinity.find(term.topology_key), self.is_first());
        }
        self.anti_affinity.iter().for_each(|key| reasons.add(AffinityReason::AntiAffinity, key));
        let existing = AffinityReason::ExistingAntiAffinity;
        self.existing.iter().for_each(|key| reasons.add(existing, key));
        let statuses = [Status::SUCCESS].into_iter().chain(rejections.0.iter().cloned()).collect();
        DistinctStatuses { statuses, by_slot: reasons.0 }
    }

    /// Whether the node has the key of every affinity term and a matching pod in each domain.
    fn satisfies_affinity(&self, node: NodeId) -> bool {
        self.unmet_terms(node).all(|(_, in_domain)| in_domain && self.is_first())
    }

    /// Whether it is the first pod of a group that wants to be together: it goes anywhere.
    fn is_first(&self) -> bool {
        self.own.matches_itself && self.affinity.is_all_zero()
    }
}

/// By slot: 0, or 1 + the first reason to reject the node.
struct FirstReasons(Vec<u16>);

impl FirstReasons {
    /// Adds an anti-affinity to the nodes of all domains that have a count.
    fn add(&mut self, reason: AffinityReason, key: &KeyCounts) {
        let counts = key.counts.values();
        let counted = counts.iter().enumerate().filter(|(_, count)| **count > 0);
        for node in counted.flat_map(|(domain, _)| key.column.members(domain)) {
            let first = &mut self.0[node.index()];
            *first = if *first == 0 { reason as u16 + 1 } else { *first };
        }
    }

    /// Adds a required affinity to the nodes without a domain and, unless the pod `is_first` of its
    /// group, to those of domains without a count.
    fn add_unmet(&mut self, key: Option<&KeyCounts>, is_first: bool) {
        let unmet = AffinityReason::Affinity as u16 + 1;
        let or = |first: &mut u16, reason: u16| *first = if *first == 0 { reason } else { *first };
        let Some(KeyCounts { column, counts, .. }) = key else {
            return self.0.iter_mut().for_each(|first| or(first, unmet));
        };
        let reason = |count: &i64| if *count <= 0 && !is_first { unmet } else { 0 };
        let by_domain: Vec<u16> = counts.values().iter().map(reason).collect();
        let reasons = column.by_slot(&by_domain, unmet);
        self.0.iter_mut().zip(reasons).for_each(|(first, reason)| or(first, reason));
    }
}

/// Whether no key has a count in the node's domain.
fn none_at(counts: &KeyedCounts, node: NodeId) -> bool {
    counts.iter().all(|counts| counts.at(node).is_none_or(|count| count <= 0))
}

/// Pods that match all own affinity terms, and pods that match each own anti-affinity term. Every
/// key of an own term has an entry, even with count 0.
fn count_matching(cx: &CycleContext<'_>, own: &OwnTerms) -> (KeyedCounts, KeyedCounts) {
    let (mut affinity, mut anti_affinity) = (KeyedCounts::default(), KeyedCounts::default());
    let keys = |terms: &[AffinityTerm], counts: &mut KeyedCounts| {
        terms.iter().for_each(|term| {
            counts.of_key(term.topology_key, cx.snapshot);
        });
    };
    keys(&own.affinity, &mut affinity);
    keys(&own.anti_affinity, &mut anti_affinity);
    if own.affinity.is_empty() && own.anti_affinity.is_empty() {
        return (affinity, anti_affinity);
    }
    for pods in cx.snapshot.pods().classes() {
        let class = &pods.class;
        if all_match_class(&own.affinity, class) {
            for term in &own.affinity {
                affinity.of_key(term.topology_key, cx.snapshot).add_class(pods);
            }
        }
        let matching = |term: &&AffinityTerm| selects(term, class.namespace, &class.labels);
        for term in own.anti_affinity.iter().filter(matching) {
            anti_affinity.of_key(term.topology_key, cx.snapshot).add_class(pods);
        }
    }
    (affinity, anti_affinity)
}

/// Anti-affinity terms of existing pods that match the pod.
fn count_existing(cx: &CycleContext<'_>, namespace_labels: &Labels) -> KeyedCounts {
    let mut counts = KeyedCounts::default();
    for pods in cx.snapshot.pods().with_required_anti_affinity() {
        for term in &pods.class.terms.required_anti_affinity {
            if term.matches(&cx.pod.pod, namespace_labels) {
                counts.of_key(term.topology_key, cx.snapshot).add_class(pods);
            }
        }
    }
    counts
}
