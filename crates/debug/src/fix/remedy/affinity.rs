//! Node selectors and node affinity: correct the value, relax the term, or label the node.

use serde_json::json;

use super::{Obstacle, Remedies, node};
use crate::edit::{Edit, PodEdit, TermList, TermRef};
use crate::why::cause::{AffinityMismatch, AffinityOf, Hint, UnmetExpression};
use kubestep_api::intern::Symbol;
use kubestep_api::{Name, NodeSelectorOperator, NodeSelectorRequirement, NodeSelectorTerm};
use kubestep_plugins::node_affinity::NodeAffinityArgs;

/// The path of the required terms in a pod.
const TERMS: &str =
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";

pub(super) fn mismatch(need: &Obstacle<'_>, mismatch: &AffinityMismatch) -> Remedies {
    match mismatch.of {
        AffinityOf::NodeSelector => selector(need, &mismatch.unmet),
        AffinityOf::NodeAffinity => expressions(need, mismatch.term.unwrap_or(0), &mismatch.unmet),
        AffinityOf::AddedAffinity => {
            let terms = added(need);
            let term = terms.get(mismatch.term.unwrap_or(0));
            let label = term.and_then(|term| label_all(need, term, &mismatch.unmet));
            label.into_iter().chain(other_profiles(need)).collect()
        }
    }
}

/// A remedy counts only if it fixes every unmet expression.
fn all(
    unmet: &[UnmetExpression],
    lift: impl Fn(&UnmetExpression) -> Option<Edit>,
) -> Option<Vec<Edit>> {
    let edits: Option<Vec<Edit>> = unmet.iter().map(lift).collect();
    edits.filter(|edits| !edits.is_empty())
}

fn selector(need: &Obstacle<'_>, unmet: &[UnmetExpression]) -> Remedies {
    let wanted = |key: Symbol| need.pod.spec.node_selector.as_ref()?.get(key).copied();
    let correct =
        |one: &UnmetExpression| Some(need.pod(PodEdit::Select(one.key, near_value(one)?)));
    let give_up = |one: &UnmetExpression| Some(need.pod(PodEdit::Unselect(one.key)));
    let label = |one: &UnmetExpression| node::set_label(need, one.key, wanted(one.key)?);
    let ways = [all(unmet, correct), all(unmet, give_up), all(unmet, label)];
    let mut remedies: Remedies = ways.into_iter().flatten().collect();
    remedies.extend(take_the_nodes_values(need, unmet));
    remedies
}

/// Changes the required values to those of the node.
fn take_the_nodes_values(need: &Obstacle<'_>, unmet: &[UnmetExpression]) -> Option<Vec<Edit>> {
    all(unmet, |one| Some(need.pod(PodEdit::Select(one.key, one.has?))))
}

fn near_value(unmet: &UnmetExpression) -> Option<Name> {
    match &unmet.hint {
        Some(Hint::NearValue { near }) => Some(*near),
        _ => None,
    }
}

/// Relaxes the required term that the node misses least.
fn expressions(need: &Obstacle<'_>, term: usize, unmet: &[UnmetExpression]) -> Remedies {
    let mut remedies: Remedies = Vec::new();
    remedies.extend(corrected(need, term, unmet));
    let places: Option<Vec<usize>> = unmet.iter().map(|one| place(need, term, one.key)).collect();
    if let Some(mut places) = places {
        // From the end, as each removal shifts the indices after it.
        places.sort_unstable();
        places.dedup();
        let relax = |at: &usize| {
            let term = TermRef { list: TermList::NodeRequired, index: term, expression: Some(*at) };
            need.pod(PodEdit::Relax(term))
        };
        remedies.push(places.iter().rev().map(relax).collect());
    }
    remedies.extend(self::term(need, term).and_then(|term| label_all(need, term, unmet)));
    remedies
}

/// Another profile, which adds other terms or none.
fn other_profiles(need: &Obstacle<'_>) -> impl Iterator<Item = Vec<Edit>> {
    let names = need.world.scheduler().frameworks().keys();
    let others = names.filter(|name| **name != need.pod.spec.scheduler_name);
    others.map(|name| vec![need.set("spec.schedulerName".to_owned(), Some(json!(name.as_str())))])
}

/// The terms that the pod's profile adds (`addedAffinity`).
fn added(need: &Obstacle<'_>) -> Vec<NodeSelectorTerm> {
    let frameworks = need.world.scheduler().frameworks();
    let profile = frameworks.get(&need.pod.spec.scheduler_name).map(|found| found.profile());
    let args = profile.map(|profile| profile.args.read::<NodeAffinityArgs>());
    let required = args.as_ref().and_then(|args| args.required());
    required.map(|required| required.node_selector_terms.clone()).unwrap_or_default()
}

fn requirements<'a>(
    need: &Obstacle<'a>,
    term: usize,
) -> impl Iterator<Item = &'a NodeSelectorRequirement> {
    let term = self::term(need, term).into_iter();
    term.flat_map(|term| term.match_expressions.iter().chain(&term.match_fields))
}

fn term<'a>(need: &Obstacle<'a>, term: usize) -> Option<&'a NodeSelectorTerm> {
    let node = need.pod.spec.affinity.as_ref()?.node_affinity.as_ref()?;
    let required = node.required_during_scheduling_ignored_during_execution.as_ref()?;
    required.node_selector_terms.get(term)
}

fn place(need: &Obstacle<'_>, term: usize, key: Symbol) -> Option<usize> {
    requirements(need, term).position(|requirement| requirement.key == key)
}

/// The value that was probably meant.
fn corrected(need: &Obstacle<'_>, term: usize, unmet: &[UnmetExpression]) -> Option<Vec<Edit>> {
    all(unmet, |one| {
        let near = near_value(one)?;
        let at = place(need, term, one.key)?;
        let wanted = requirements(need, term).nth(at)?;
        let path = path(need, term, at)?;
        let is_list = wanted.operator == NodeSelectorOperator::In;
        is_list.then(|| need.set(format!("{path}.values"), Some(json!([near]))))
    })
}

/// The path of a requirement in a term: those on labels come first, then those on fields.
fn path(need: &Obstacle<'_>, term: usize, at: usize) -> Option<String> {
    let on_labels = self::term(need, term)?.match_expressions.len();
    Some(match at.checked_sub(on_labels) {
        None => format!("{TERMS}[{term}].matchExpressions[{at}]"),
        Some(field) => format!("{TERMS}[{term}].matchFields[{field}]"),
    })
}

/// Gives the node the labels that the unmet expressions require.
pub(super) fn label_all(
    need: &Obstacle<'_>,
    term: &NodeSelectorTerm,
    unmet: &[UnmetExpression],
) -> Option<Vec<Edit>> {
    all(unmet, |one| label(need, term, one))
}

/// Gives the node the label that the expression requires.
fn label(need: &Obstacle<'_>, term: &NodeSelectorTerm, unmet: &UnmetExpression) -> Option<Edit> {
    let mut requirements = term.match_expressions.iter();
    let wanted = requirements.find(|requirement| requirement.key == unmet.key)?;
    match wanted.operator {
        NodeSelectorOperator::In => node::set_label(need, wanted.key, *wanted.values.first()?),
        NodeSelectorOperator::Exists => node::set_label(need, wanted.key, Name::new("true")),
        NodeSelectorOperator::NotIn | NodeSelectorOperator::DoesNotExist => {
            node::remove_label(need, wanted.key)
        }
        _ => None,
    }
}
