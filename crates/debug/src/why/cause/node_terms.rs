//! Node selectors taken apart: which expression a node does not meet, what it has instead, and
//! whether that looks like a typo.
//!
//! Shared by all that select nodes: affinity of pods, of volumes and of devices, and topologies
//! of storage classes.

use serde::Serialize;

use super::Memo;
use kubestep_api::intern::Symbol;
use kubestep_api::selector::NodeMatcher;
use kubestep_api::{
    Labels, Node, NodeSelector, NodeSelectorOperator, NodeSelectorRequirement, NodeSelectorTerm,
};
use kubestep_config::suggest;
use kubestep_framework::snapshot::Snapshot;

/// Values of a label that are listed at most.
const LISTED: usize = 5;

/// An expression that a node does not meet.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Unmet {
    /// The expression, in kubectl's notation.
    pub expression: Symbol,
    /// The label, or the field `metadata.name`.
    pub key: Symbol,
    /// The node's value; absent if it lacks the label.
    pub has: Option<Symbol>,
    /// What is odd about the expression in this cluster.
    pub hint: Option<Hint>,
}

/// What is odd about an expression: no node of the cluster could meet it.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Hint {
    /// No node has the value, but one that looks much like it.
    NearValue {
        /// That value.
        near: Symbol,
    },
    /// No node has the value.
    NoSuchValue {
        /// The values there are, the first few.
        known: Vec<Symbol>,
    },
    /// No node has the label.
    NoSuchKey {
        /// A label that looks much like it.
        near: Option<Symbol>,
    },
    /// The node's value is no whole number, and `Gt` and `Lt` compare nothing else.
    WholeNumbersOnly,
}

impl Unmet {
    /// The same for all nodes that miss the expression.
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

    /// With the node's value.
    pub fn words(&self) -> String {
        let has = match self.has {
            Some(value) => format!("the node has {}={value}", self.key),
            None => format!("the node has no {}", self.key),
        };
        format!("{}: {has}", self.gist())
    }
}

/// One expression, ready to be asked of nodes.
#[derive(Debug)]
struct Expression {
    written: Symbol,
    key: Symbol,
    is_field: bool,
    /// Whether numbers are compared: `Gt` or `Lt`.
    is_comparison: bool,
    /// The engine's own matcher, of this expression alone.
    matcher: NodeMatcher,
    hint: Option<Hint>,
}

/// A node selector taken apart: any of the terms must hold, each with all its expressions.
#[derive(Debug, Default)]
pub(super) struct NodeTerms {
    terms: Vec<Vec<Expression>>,
    /// Whether fields count; for volumes only labels do.
    fields: bool,
}

impl NodeTerms {
    /// The terms of a selector.
    pub fn of_selector(
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

    /// One term of labels with their values.
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

    /// What the node misses of the term that it comes nearest to, with the term's place. Nothing
    /// if a term holds.
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

/// kubectl's notation.
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

/// The same for an expression on the names of nodes, if it asks for a node that does not exist.
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

/// What is odd about an expression, if no node can meet it. What people write may be a typo
/// (`typos`), what drivers write is not.
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
