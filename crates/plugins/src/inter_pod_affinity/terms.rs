//! The incoming pod's own terms, with their namespace selectors replaced by the names of the
//! namespaces they select now (IPA-001).

use kubestep_api::intern::Symbol;
use kubestep_api::{Labels, Pod};
use kubestep_framework::objects::Objects;
use kubestep_framework::pod::class::PodClass;
use kubestep_framework::pod::{AffinityTerm, WeightedTerm};

/// Own terms, ready to be matched with other pods.
pub fn expand(terms: &[AffinityTerm], objects: &Objects) -> Vec<AffinityTerm> {
    terms.iter().map(|term| expand_one(term, objects)).collect()
}

/// The same for preferred terms.
pub fn expand_weighted(terms: &[WeightedTerm], objects: &Objects) -> Vec<WeightedTerm> {
    let expanded = |weighted: &WeightedTerm| WeightedTerm {
        term: expand_one(&weighted.term, objects),
        weight: weighted.weight,
    };
    terms.iter().map(expanded).collect()
}

/// The selector itself stays, as upstream replaces it only on a copy: [`selects`] still tries
/// it, on no labels.
fn expand_one(term: &AffinityTerm, objects: &Objects) -> AffinityTerm {
    let mut expanded = term.clone();
    if term.namespace_selector.is_everything() {
        return expanded;
    }
    let selected = objects
        .namespaces
        .values()
        .map(|namespace| &namespace.metadata)
        .filter(|metadata| term.namespace_selector.matches(&metadata.labels))
        .map(|metadata| metadata.name);
    expanded.namespaces.extend(selected);
    expanded
}

/// Whether an own term means pods with these labels in that namespace. The namespace's labels
/// are not looked up, they are taken for empty.
pub fn selects(term: &AffinityTerm, namespace: Symbol, labels: &Labels) -> bool {
    term.selects(namespace, labels, &Labels::default())
}

/// Whether all own terms mean `pod`; no terms mean no pod.
pub fn all_match(terms: &[AffinityTerm], pod: &Pod) -> bool {
    all_select(terms, pod.metadata.namespace, &pod.metadata.labels)
}

/// The same, for a class of pods.
pub fn all_match_class(terms: &[AffinityTerm], class: &PodClass) -> bool {
    all_select(terms, class.namespace, &class.labels)
}

fn all_select(terms: &[AffinityTerm], namespace: Symbol, labels: &Labels) -> bool {
    !terms.is_empty() && terms.iter().all(|term| selects(term, namespace, labels))
}
