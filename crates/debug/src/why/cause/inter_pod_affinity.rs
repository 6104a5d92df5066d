//! InterPodAffinity: the term, and the pod that conflicts with it, also if the term is the other
//! pod's.

use super::culprits::{BlockingPods, ByDomain};
use super::{Cause, CauseText, Outlook, RejectedCase};
use kubestep_api::intern::Symbol;
use kubestep_api::selector::Selector;
use kubestep_api::{LabelSelectorOperator, Name};
use kubestep_config::suggest;
use kubestep_framework::pod::AffinityTerm;
use kubestep_framework::pod::class::PodClass;
use kubestep_plugins::inter_pod_affinity::{AffinityFilterState, AffinityReason, selects};
use serde::Serialize;
use std::collections::BTreeSet;

/// The path of the required terms in a pod.
const TERMS: &str = "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution";
/// The most domains that are listed by name.
const NAMED: usize = 5;

/// A term of pod affinity or anti-affinity.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AffinityTermText {
    /// The label selector, in kubectl's notation.
    pub selector: String,
    /// The namespaces it applies to.
    pub namespaces: Vec<Symbol>,
    /// The node label whose values are the domains.
    pub topology_key: Symbol,
}

impl AffinityTermText {
    fn of(term: &AffinityTerm) -> AffinityTermText {
        AffinityTermText {
            selector: match term.selector.is_everything() {
                true => "any labels".to_owned(),
                false => term.selector.to_string(),
            },
            namespaces: term.namespaces.clone(),
            topology_key: term.topology_key,
        }
    }

    fn pods(&self) -> String {
        let namespaces: Vec<&str> = self.namespaces.iter().map(|name| name.as_str()).collect();
        match namespaces.as_slice() {
            [] => format!("pods with {}", self.selector),
            some => format!("pods with {} in {}", self.selector, some.join(", ")),
        }
    }
}

/// Required pod affinity: no matching pod is in the node's domain.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NoPodNear {
    /// The affinity term of the pod that nothing satisfies.
    pub term: AffinityTermText,
    /// The node's domain; `None` if the node lacks the topology key.
    pub domain: Option<Name>,
    /// Domains with matching pods, and their numbers; the first few.
    pub other_domains: Vec<(Name, i64)>,
    /// Another namespace that has matching pods, if the term's namespaces have none.
    pub other_namespace: Option<Symbol>,
    /// A value of the selector that no pod has, if pods have a similar one.
    pub typo: Option<LabelTypo>,
}

/// A label value that was probably mistyped.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LabelTypo {
    /// Key of the label.
    pub key: Symbol,
    /// The value that pods have.
    pub near: Name,
    /// The field of the pod that has the mistyped value.
    pub field: String,
}

impl CauseText for NoPodNear {
    fn gist(&self) -> String {
        let (pods, key) = (self.term.pods(), self.term.topology_key);
        if self.domain.is_none() {
            return format!(
                "the node has no label {key}, the topology key of pod affinity to {pods}"
            );
        }
        match (self.other_domains.is_empty(), self.other_namespace) {
            (false, _) => format!("pod affinity: no {pods} in this {key}"),
            (true, None) => {
                let typo = self.typo.as_ref();
                let typo = typo.map(|typo| format!("; did you mean {}={}?", typo.key, typo.near));
                format!("pod affinity: there are no {pods} on any node{}", typo.unwrap_or_default())
            }
            (true, Some(other)) => format!(
                "pod affinity: there are no {pods} on any node, but some in namespace {other}"
            ),
        }
    }

    fn text(&self) -> String {
        let other_domains: Vec<String> = self
            .other_domains
            .iter()
            .map(|(domain, count)| format!("{domain} ({count})"))
            .collect();
        match (&self.domain, other_domains.is_empty()) {
            (Some(domain), false) => format!(
                "pod affinity: no {} in {}={domain}; they are in {}",
                self.term.pods(),
                self.term.topology_key,
                other_domains.join(", ")
            ),
            _ => self.gist(),
        }
    }
}

/// The owner of an anti-affinity term.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum TermOwner {
    /// The pending pod's own term.
    Own,
    /// Terms of pods that are on nodes, which match the pending pod.
    Theirs,
}

/// Anti-affinity of the pod itself, or of the pods that block it.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BlockingAntiAffinity {
    /// The owner of the term.
    pub whose: TermOwner,
    /// The term that matches.
    pub term: AffinityTermText,
    /// The node's value of the term's topology key.
    pub domain: Name,
    /// The pods that block it.
    pub pods: BlockingPods,
}

impl CauseText for BlockingAntiAffinity {
    fn gist(&self) -> String {
        let (pods, key) = (self.term.pods(), self.term.topology_key);
        match self.whose {
            TermOwner::Own => format!("anti-affinity: {pods} are in the same {key}"),
            TermOwner::Theirs => format!("anti-affinity of a pod in the same {key} to {pods}"),
        }
    }

    fn text(&self) -> String {
        let (pods, key, domain) = (self.pods.text(), self.term.topology_key, self.domain);
        match self.whose {
            TermOwner::Own => {
                format!("anti-affinity to {}: in {key}={domain} there is {pods}", self.term.pods())
            }
            TermOwner::Theirs => format!(
                "anti-affinity of {pods} to {} in {key}={domain}, which this pod matches",
                self.term.pods()
            ),
        }
    }
}

pub(super) fn explain(case: &RejectedCase<'_>) -> Vec<Cause> {
    let Some(state) = case.state.read::<AffinityFilterState>() else { return Vec::new() };
    let causes = |reason| match reason {
        AffinityReason::Affinity => not_near(case, state),
        AffinityReason::AntiAffinity => own(case, state),
        AffinityReason::ExistingAntiAffinity => theirs(case, state),
    };
    state.reasons(case.node.id).flat_map(causes).collect()
}

fn not_near(case: &RejectedCase<'_>, state: &AffinityFilterState) -> Vec<Cause> {
    let (terms, _) = state.own_terms();
    let cause = |(at, _)| {
        let term = &terms[at];
        let mut other_domains = state.affinity_domains(term);
        other_domains.truncate(NAMED);
        let known = case.memo.get(Symbol::new(&format!("affinity {at}")), || {
            OtherNamespace(other_namespace(case, term))
        });
        let domain = case.node.label(term.topology_key);
        let other_namespace = known.0.filter(|_| other_domains.is_empty());
        // A missing node label can only be fixed on the node; a missing pod may still come.
        let outlook = if domain.is_none() { Outlook::Mismatch } else { Outlook::Cluster };
        let alone = other_domains.is_empty() && other_namespace.is_none();
        let typo = || {
            case.memo.get(Symbol::new(&format!("typo {at}")), || NearbyLabel::of(case, at, term))
        };
        let typo = alone.then(typo).and_then(|typo| typo.0.clone());
        let term = AffinityTermText::of(term);
        let cause = NoPodNear { term, domain, other_domains, other_namespace, typo };
        Cause::new(cause, 1.0, outlook)
    };
    state.unmet_terms(case.node.id).map(cause).collect()
}

struct NearbyLabel(Option<LabelTypo>);

impl NearbyLabel {
    /// The first value of the required term `at`, as written in the pod, that no pod in the term's
    /// namespaces has while some have a similar one.
    fn of(case: &RejectedCase<'_>, at: usize, term: &AffinityTerm) -> NearbyLabel {
        let typo = |(field, key, value): (String, Symbol, Name)| {
            let classes = case.probe.snapshot().pods().classes().map(|pods| &pods.class);
            let meant = classes.filter(|class| {
                term.namespace_selector != Selector::Nothing
                    || term.namespaces.contains(&class.namespace)
            });
            let values: BTreeSet<Name> =
                meant.filter_map(|class| class.labels.get(key).copied()).collect();
            let near = || suggest::closest_name(value, values.iter().copied());
            let near = (!values.contains(&value)).then(near).flatten()?;
            Some(LabelTypo { key, near, field })
        };
        NearbyLabel(written_values(case, at).into_iter().find_map(typo))
    }
}

/// The labels that a required term selects, each with the path of its field.
fn written_values(case: &RejectedCase<'_>, at: usize) -> Vec<(String, Symbol, Name)> {
    let affinity = case.probe.pod().pod.spec.affinity.as_deref();
    let terms = affinity.and_then(|affinity| affinity.pod_affinity.as_ref());
    let terms = terms.map(|terms| &terms.required_during_scheduling_ignored_during_execution);
    let term = terms.and_then(|terms| terms.get(at));
    let Some(selector) = term.and_then(|term| term.label_selector.as_ref()) else {
        return Vec::new();
    };
    let path = format!("{TERMS}[{at}].labelSelector");
    let labels = selector.match_labels.iter();
    let labels = labels.map(|(key, value)| (format!("{path}.matchLabels['{key}']"), key, *value));
    let expressions = selector.match_expressions.iter().enumerate();
    let one_of = expressions.filter_map(|(at, one)| match (one.operator, one.values.as_slice()) {
        (LabelSelectorOperator::In, [value]) => {
            Some((format!("{path}.matchExpressions[{at}].values[0]"), one.key, *value))
        }
        _ => None,
    });
    labels.chain(one_of).collect()
}

struct OtherNamespace(Option<Symbol>);

/// A namespace outside the term's that has pods with the labels.
fn other_namespace(case: &RejectedCase<'_>, term: &AffinityTerm) -> Option<Symbol> {
    let classes = case.probe.snapshot().pods().classes().map(|pods| &pods.class);
    let meant = classes.filter(|class| term.selector.matches(&class.labels));
    let others = meant.map(|class| class.namespace).filter(|name| !term.namespaces.contains(name));
    others.min()
}

fn own(case: &RejectedCase<'_>, state: &AffinityFilterState) -> Vec<Cause> {
    let (_, terms) = state.own_terms();
    let cause = |(at, term): (usize, &AffinityTerm)| {
        let meant = |class: &PodClass| selects(term, class.namespace, &class.labels);
        let name = Symbol::new(&format!("own {at}"));
        blocked_by_pod(case, TermOwner::Own, name, term, meant)
    };
    terms.iter().enumerate().filter_map(cause).collect()
}

fn theirs(case: &RejectedCase<'_>, state: &AffinityFilterState) -> Vec<Cause> {
    let judged_alone = std::ptr::eq(case.node, case.plain);
    let classes = || case.probe.snapshot().pods().with_required_anti_affinity();
    let placed =
        case.memo.one(|| TheirTerms(meant_by(case, state, classes().map(|pods| &*pods.class))));
    let cause = |(at, term): (usize, &AffinityTerm)| {
        let has = |class: &PodClass| class.terms.required_anti_affinity.contains(term);
        blocked_by_pod(case, TermOwner::Theirs, Symbol::new(&format!("theirs {at}")), term, has)
    };
    if judged_alone {
        return placed.0.iter().enumerate().filter_map(cause).collect();
    }
    // Pods nominated to the node may have terms of their own.
    let here = case.node.pods.iter().map(|pod| &*pod.class);
    let terms = meant_by(case, state, classes().map(|pods| &*pods.class).chain(here));
    terms.iter().enumerate().filter_map(cause).collect()
}

/// Terms of pods on nodes that match the pod.
struct TheirTerms(Vec<AffinityTerm>);

/// The distinct required anti-affinity terms of these classes that match the pod.
fn meant_by<'a>(
    case: &RejectedCase<'_>,
    state: &AffinityFilterState,
    classes: impl Iterator<Item = &'a PodClass>,
) -> Vec<AffinityTerm> {
    let pod = case.probe.pod();
    let mut terms: Vec<AffinityTerm> = Vec::new();
    for term in classes.flat_map(|class| &class.terms.required_anti_affinity) {
        if state.is_meant_by(term, pod) && !terms.contains(term) {
            terms.push(term.clone());
        }
    }
    // Classes are not sorted.
    terms.sort_by_key(|term| {
        (term.topology_key, term.selector.to_string(), term.namespaces.clone())
    });
    terms
}

fn blocked_by_pod(
    case: &RejectedCase<'_>,
    whose: TermOwner,
    name: Symbol,
    term: &AffinityTerm,
    meant: impl Fn(&PodClass) -> bool,
) -> Option<Cause> {
    let domain = case.node.label(term.topology_key)?;
    let snapshot = case.probe.snapshot();
    // Nominated pods may have terms of their own: those are not cached.
    let judged_alone = std::ptr::eq(case.node, case.plain);
    let make = || ByDomain::of(snapshot, term.topology_key, &meant);
    let pods = match judged_alone {
        true => case.memo.get(name, make).at(case, &meant),
        false => make().at(case, &meant),
    };
    if pods.count == 0 {
        return None;
    }
    let missing = pods.count as f64;
    let cause = BlockingAntiAffinity { whose, term: AffinityTermText::of(term), domain, pods };
    Some(Cause::new(cause, missing, Outlook::Cluster))
}
