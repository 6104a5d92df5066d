//! Node selectors by expression: which one a node does not meet, what value it has instead, and
//! whether that looks like a typo.
//!
//! Used for everything that selects nodes: affinity of pods, of volumes and of devices, and
//! topologies of storage classes.

use serde::Serialize;

use super::Memo;
use kubestep_api::intern::Symbol;
use kubestep_api::selector::NodeMatcher;
use kubestep_api::{
    Labels, Node, NodeSelector, NodeSelectorOperator, NodeSelectorRequirement, NodeSelectorTerm,
};
use kubestep_config::suggest;
use kubestep_framework::snapshot::Snapshot;

/// The most values of a label that are listed.
const LISTED: usize = 5;

/// An expression that a node does not meet.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Unmet {
    /// The expression, in kubectl's notation.
    pub expression: Symbol,
    /// The label, or the field `metadata.name`.
    pub key: Symbol,
    /// The node's value; `None` if it lacks the label.
    pub has: Option<Symbol>,
    /// Why no node of the cluster meets the expression, if none does.
    pub hint: Option<Hint>,
}

/// Why no node of the cluster meets an expression.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Hint {
    /// No node has the value, but some have a similar one.
    NearValue {
        /// The similar value.
        near: Symbol,
    },
    /// No node has the value, or a similar one.
    NoSuchValue {
        /// The existing values, the first few.
        known: Vec<Symbol>,
    },
    /// No node has the label.
    NoSuchKey {
        /// A similar label.
        near: Option<Symbol>,
    },
    /// The node's value is not an integer, which `Gt` and `Lt` require.
    WholeNumbersOnly,
}

impl Unmet {
    /// The short text, the same for all nodes that miss the expression.
    pub fn gist(&self) -> String {
        let hint = match &self.hint {
            None => String::new(),
            Some(Hint::NearValue { near }) => format!(" (no node has it; did you mean {near:?}?)"),
            Some(Hint::NoSuchValue { known }) => {
                let known: Vec<&str> = known.iter().map(|value| value.as_str()).collect();
                format!(" (no node has it; there are {})", known.join(", "))
            }
            Some(Hint::NoSuchKey { near: Some(near) }) => {
                format!(" (no node has that label; did you mean {near:?}?)")
            }
            Some(Hint::NoSuchKey { near: None }) => " (no node has that label)".to_owned(),
            Some(Hint::WholeNumbersOnly) => " (Gt and Lt compare whole numbers only)".to_owned(),
        };
        format!("{}{hint}", self.expression)
    }

    /// The full text, with the node's value.
    pub fn words(&self) -> String {
        let has = match self.has {
            Some(value) => format!("the node has {}={value}", self.key),
            None => format!("the node has no {}", self.key),
        };
        format!("{}: {has}", self.gist())
    }
}

/// One parsed expression.
#[derive(Debug)]
struct Expression {
    written: Symbol,
    key: Symbol,
    is_field: bool,
    /// Whether numbers are compared: `Gt` or `Lt`.
    is_comparison: bool,
    /// The engine's own matcher for this expression alone.
    matcher: NodeMatcher,
    hint: Option<Hint>,
}

/// A node selector by expression: one of the terms must match, with all its expressions.
#[derive(Debug, Default)]
pub(super) struct NodeTerms {
    terms: Vec<Vec<Expression>>,
    /// Whether fields count; volumes only use labels.
    fields: bool,
}

impl NodeTerms {
    /// The terms of a selector.
    pub(crate) fn of_selector(
        selector: &NodeSelector,
        fields: bool,
        snapshot: &Snapshot,
        memo: &Memo,
    ) -> NodeTerms {
        let term = |term: &NodeSelectorTerm| {
            let label = |written: &NodeSelectorRequirement| {
                Expression::new(written, false, fields, (snapshot, memo))
            };
            let field = |written: &NodeSelectorRequirement| {
                Expression::new(written, true, fields, (snapshot, memo))
            };
            let on_fields = term.match_fields.iter().filter(|_| fields).map(field);
            term.match_expressions.iter().map(label).chain(on_fields).collect()
        };
        NodeTerms { terms: selector.node_selector_terms.iter().map(term).collect(), fields }
    }

    /// A single term that requires these labels.
    pub fn of_labels(labels: &Labels, snapshot: &Snapshot, memo: &Memo) -> NodeTerms {
        let expression = |(key, value): (Symbol, &Symbol)| {
            let written = NodeSelectorRequirement {
                key,
                operator: NodeSelectorOperator::In,
                values: vec![*value],
            };
            Expression::new(&written, false, true, (snapshot, memo))
        };
        NodeTerms { terms: vec![labels.iter().map(expression).collect()], fields: true }
    }

    /// Number of terms.
    pub fn len(&self) -> usize {
        self.terms.len()
    }

    /// The expressions that the node misses in the term that it misses least, with the index of
    /// that term. Empty if a term matches.
    pub fn unmet(&self, node: &Node) -> (usize, Vec<Unmet>) {
        let misses = |term: &Vec<Expression>| -> Vec<Unmet> {
            term.iter().filter_map(|expression| expression.unmet(node, self.fields)).collect()
        };
        let all = self.terms.iter().map(misses).enumerate();
        all.min_by_key(|(_, unmet)| unmet.len()).unwrap_or_default()
    }
}

impl Expression {
    fn new(
        written: &NodeSelectorRequirement,
        is_field: bool,
        typos: bool,
        (snapshot, memo): (&Snapshot, &Memo),
    ) -> Expression {
        let alone = match is_field {
            true => NodeSelectorTerm { match_fields: vec![written.clone()], ..Default::default() },
            false => {
                NodeSelectorTerm { match_expressions: vec![written.clone()], ..Default::default() }
            }
        };
        let hint = match is_field {
            true => hint_of_name(written, snapshot),
            false => hint(written, typos, snapshot, memo),
        };
        Expression {
            written: notation(written).into(),
            key: written.key,
            is_field,
            is_comparison: is_comparison(written.operator),
            matcher: NodeMatcher::new(&NodeSelector { node_selector_terms: vec![alone] }, ""),
            hint,
        }
    }

    fn unmet(&self, node: &Node, fields: bool) -> Option<Unmet> {
        let (labels, name) = (&node.metadata.labels, node.metadata.name);
        let named = if fields { name } else { Symbol::EMPTY };
        if self.matcher.matches(labels, named).unwrap_or(false) {
            return None;
        }
        let has = if self.is_field { Some(name) } else { labels.get(self.key).copied() };
        let is_number = |value: Symbol| value.parse::<i64>().is_ok();
        let hint = match has {
            Some(value) if self.is_comparison && !is_number(value) => Some(Hint::WholeNumbersOnly),
            _ => self.hint.clone(),
        };
        Some(Unmet { expression: self.written, key: self.key, has, hint })
    }
}

fn is_comparison(operator: NodeSelectorOperator) -> bool {
    matches!(operator, NodeSelectorOperator::Gt | NodeSelectorOperator::Lt)
}

/// The expression in kubectl's notation.
fn notation(written: &NodeSelectorRequirement) -> String {
    let NodeSelectorRequirement { key, operator, values } = written;
    let list: Vec<&str> = values.iter().map(|value| value.as_str()).collect();
    let list = list.join(",");
    match (operator, values.as_slice()) {
        (NodeSelectorOperator::In, [one]) => format!("{key}={one}"),
        (NodeSelectorOperator::In, _) => format!("{key} in ({list})"),
        (NodeSelectorOperator::NotIn, [one]) => format!("{key}!={one}"),
        (NodeSelectorOperator::NotIn, _) => format!("{key} notin ({list})"),
        (NodeSelectorOperator::Exists, _) => key.to_string(),
        (NodeSelectorOperator::DoesNotExist, _) => format!("!{key}"),
        (NodeSelectorOperator::Gt, _) => format!("{key}>{list}"),
        (NodeSelectorOperator::Lt, _) => format!("{key}<{list}"),
        (NodeSelectorOperator::Other(other), _) => format!("{key} {other} ({list})"),
    }
}

/// The hint for an expression on node names, if it requires a node that does not exist.
fn hint_of_name(written: &NodeSelectorRequirement, snapshot: &Snapshot) -> Option<Hint> {
    let exists = |name: &Symbol| snapshot.by_name(*name).is_some();
    if written.operator != NodeSelectorOperator::In || written.values.iter().any(exists) {
        return None;
    }
    let names = || snapshot.iter().map(|node| node.name);
    let near = |name: &Symbol| suggest::closest(name, names().map(|known| known.as_str()));
    Some(match written.values.iter().find_map(near) {
        Some(near) => Hint::NearValue { near: near.into() },
        None => Hint::NoSuchValue { known: names().take(LISTED).collect() },
    })
}

/// The hint for an expression, if no node can meet it. Text written by a person may contain a typo
/// (`typos`), text from a driver does not.
fn hint(
    written: &NodeSelectorRequirement,
    typos: bool,
    snapshot: &Snapshot,
    memo: &Memo,
) -> Option<Hint> {
    let positive = is_comparison(written.operator)
        || matches!(written.operator, NodeSelectorOperator::In | NodeSelectorOperator::Exists);
    let column = snapshot.topology(written.key);
    if !positive {
        return None;
    }
    if column.is_empty() {
        let keys = memo.one(|| LabelKeys::of(snapshot));
        let near = suggest::closest(&written.key, keys.0.iter().map(|key| key.as_str()));
        return Some(Hint::NoSuchKey { near: near.map(Symbol::new) });
    }
    let values: Vec<Symbol> = (0..column.len()).map(|domain| column.value(domain)).collect();
    let wanted = &written.values;
    if written.operator != NodeSelectorOperator::In || wanted.iter().any(|v| values.contains(v)) {
        return None;
    }
    let near = |value: &Symbol| suggest::closest(value, values.iter().map(|known| known.as_str()));
    Some(match wanted.iter().filter(|_| typos).find_map(near) {
        Some(near) => Hint::NearValue { near: near.into() },
        None => Hint::NoSuchValue { known: values.into_iter().take(LISTED).collect() },
    })
}

/// The labels that nodes have.
struct LabelKeys(Vec<Symbol>);

impl LabelKeys {
    fn of(snapshot: &Snapshot) -> LabelKeys {
        let mut keys: indexmap::IndexSet<Symbol> = indexmap::IndexSet::new();
        for node in snapshot.iter().filter_map(|info| info.node.as_ref()) {
            keys.extend(node.metadata.labels.keys());
        }
        LabelKeys(keys.into_iter().collect())
    }
}
