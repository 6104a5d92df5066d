//! The incoming pod's own terms, with the namespaces that their namespace selectors match at
//! the moment added by name.

use kubestep_api::intern::Symbol;
use kubestep_api::{Labels, Pod};
use kubestep_framework::objects::Objects;
use kubestep_framework::pod::class::PodClass;
use kubestep_framework::pod::{AffinityTerm, WeightedTerm};

/// Own terms with the names of the selected namespaces.
pub fn expand(terms: &[AffinityTerm], objects: &Objects) -> Vec<AffinityTerm> {
    terms.iter().map(|term| expand_one(term, objects)).collect()
}

/// Like [`expand`], for preferred terms.
pub(crate) fn expand_weighted(terms: &[WeightedTerm], objects: &Objects) -> Vec<WeightedTerm> {
    let expanded = |weighted: &WeightedTerm| WeightedTerm {
        term: expand_one(&weighted.term, objects),
        weight: weighted.weight,
    };
    terms.iter().map(expanded).collect()
}

/// The selector stays in the term, as upstream replaces it only in a copy: [`selects`] still
/// evaluates it, against empty labels.
fn expand_one(term: &AffinityTerm, objects: &Objects) -> AffinityTerm {
    let mut expanded = term.clone();
    if term.namespace_selector.is_everything() {
        return expanded;
    }
    let selected =
        objects.namespace_labels.iter().filter(|(_, own)| term.namespace_selector.matches(own));
    expanded.namespaces.extend(selected.map(|(namespace, _)| *namespace));
    expanded
}

/// Whether an own term matches pods with these labels in that namespace. As upstream, the
/// namespace selector is evaluated against empty labels.
pub fn selects(term: &AffinityTerm, namespace: Symbol, labels: &Labels) -> bool {
    term.selects(namespace, labels, &Labels::default())
}

/// Whether all own terms match `pod`; `false` without terms.
pub fn all_match(terms: &[AffinityTerm], pod: &Pod) -> bool {
    all_select(terms, pod.metadata.namespace, &pod.metadata.labels)
}

/// Like [`all_match`], for a class of pods.
pub(crate) fn all_match_class(terms: &[AffinityTerm], class: &PodClass) -> bool {
    all_select(terms, class.namespace, &class.labels)
}

fn all_select(terms: &[AffinityTerm], namespace: Symbol, labels: &Labels) -> bool {
    !terms.is_empty() && terms.iter().all(|term| selects(term, namespace, labels))
}
