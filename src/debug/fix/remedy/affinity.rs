//! Node selectors and node affinity: correct the value, ask for less, or label the node.

use serde_json::json;

use super::{Need, Remedies};
use crate::api::{NodeSelectorOperator, NodeSelectorRequirement};
use crate::debug::edit::{Edit, NodeEdit, PodEdit, Term, TermList};
use crate::debug::why::cause::{AffinityMismatch, AffinityOf, Hint, Unmet};
use crate::intern::Symbol;

/// Where the required terms are in a pod.
const TERMS: &str =
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";

pub(super) fn mismatch(need: &Need<'_>, mismatch: &AffinityMismatch) -> Remedies {
    match mismatch.of {
        AffinityOf::NodeSelector => selector(need, &mismatch.unmet),
        AffinityOf::NodeAffinity => expressions(need, mismatch.term.unwrap_or(0), &mismatch.unmet),
        AffinityOf::AddedAffinity => Vec::new(),
    }
}

/// A remedy is as good as what it does about every unmet expression.
fn all(unmet: &[Unmet], lift: impl Fn(&Unmet) -> Option<Edit>) -> Option<Vec<Edit>> {
    let edits: Option<Vec<Edit>> = unmet.iter().map(lift).collect();
    edits.filter(|edits| !edits.is_empty())
}

fn selector(need: &Need<'_>, unmet: &[Unmet]) -> Remedies {
    let wanted = |key: Symbol| need.pod.spec.node_selector.as_ref()?.get(key).copied();
    let correct = |one: &Unmet| Some(need.pod(PodEdit::Select(one.key, near_value(one)?)));
    let give_up = |one: &Unmet| Some(need.pod(PodEdit::Unselect(one.key)));
    let label =
        |one: &Unmet| Some(Edit::Node(need.node.name, NodeEdit::Label(one.key, wanted(one.key)?)));
    let ways = [all(unmet, correct), all(unmet, give_up), all(unmet, label)];
    let mut remedies: Remedies = ways.into_iter().flatten().collect();
    remedies.extend(take_the_nodes_values(need, unmet));
    remedies
}

/// Asks for the values that the node has.
fn take_the_nodes_values(need: &Need<'_>, unmet: &[Unmet]) -> Option<Vec<Edit>> {
    all(unmet, |one| Some(need.pod(PodEdit::Select(one.key, one.has?))))
}

fn near_value(unmet: &Unmet) -> Option<Symbol> {
    match &unmet.hint {
        Some(Hint::NearValue { near }) => Some(*near),
        _ => None,
    }
}

/// Of the required terms the one that comes nearest to the node.
fn expressions(need: &Need<'_>, term: usize, unmet: &[Unmet]) -> Remedies {
    let mut remedies: Remedies = Vec::new();
    remedies.extend(corrected(need, term, unmet));
    let places: Option<Vec<usize>> = unmet.iter().map(|one| place(need, term, one.key)).collect();
    if let Some(mut places) = places {
        // From the back, as each that is taken out moves those behind it.
        places.sort_unstable();
        places.dedup();
        let relax = |at: &usize| {
            let term = Term { list: TermList::NodeRequired, index: term, expression: Some(*at) };
            need.pod(PodEdit::Relax(term))
        };
        remedies.push(places.iter().rev().map(relax).collect());
    }
    remedies.extend(all(unmet, |one| label(need, term, one)));
    remedies
}

fn requirements<'a>(
    need: &Need<'a>,
    term: usize,
) -> impl Iterator<Item = &'a NodeSelectorRequirement> {
    let node = need.pod.spec.affinity.as_ref().and_then(|all| all.node_affinity.as_ref());
    let required =
        node.and_then(|node| node.required_during_scheduling_ignored_during_execution.as_ref());
    let term = required.and_then(|selector| selector.node_selector_terms.get(term));
    term.into_iter().flat_map(|term| term.match_expressions.iter().chain(&term.match_fields))
}

fn place(need: &Need<'_>, term: usize, key: Symbol) -> Option<usize> {
    requirements(need, term).position(|requirement| requirement.key == key)
}

/// The value that was probably meant, in place of those written.
fn corrected(need: &Need<'_>, term: usize, unmet: &[Unmet]) -> Option<Vec<Edit>> {
    all(unmet, |one| {
        let near = near_value(one)?;
        let at = place(need, term, one.key)?;
        let wanted = requirements(need, term).nth(at)?;
        let path = format!("{TERMS}[{term}].matchExpressions[{at}].values");
        let is_list = wanted.operator == NodeSelectorOperator::In;
        is_list.then(|| need.set(path, Some(json!([near.as_str()]))))
    })
}

/// Gives the node what the expression asks for.
fn label(need: &Need<'_>, term: usize, unmet: &Unmet) -> Option<Edit> {
    let wanted = requirements(need, term).find(|requirement| requirement.key == unmet.key)?;
    let edit = match wanted.operator {
        NodeSelectorOperator::In => NodeEdit::Label(wanted.key, *wanted.values.first()?),
        NodeSelectorOperator::Exists => NodeEdit::Label(wanted.key, Symbol::new("true")),
        NodeSelectorOperator::NotIn | NodeSelectorOperator::DoesNotExist => {
            NodeEdit::Unlabel(wanted.key)
        }
        _ => return None,
    };
    Some(Edit::Node(need.node.name, edit))
}
