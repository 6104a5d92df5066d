//! Node selectors by expression: which one a node does not meet, what value it has instead, and
//! whether that looks like a typo.
//!
//! Used for everything that selects nodes: affinity of pods, of volumes and of devices, and
//! topologies of storage classes.

use serde::Serialize;

use super::Memo;
use kubestep_api::intern::Symbol;
use kubestep_api::selector::{NodeMatcher, Requirement, Selector, UnmetPart};
use kubestep_api::{
    Name, Node, NodeSelector, NodeSelectorOperator, NodeSelectorRequirement, NodeSelectorTerm,
};
use kubestep_config::suggest;
use kubestep_framework::snapshot::Snapshot;

/// The most values of a label that are listed.
const LISTED: usize = 5;

/// An expression that a node does not meet.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnmetExpression {
    /// The expression, in kubectl's notation.
    pub expression: Symbol,
    /// The label, or the field `metadata.name`.
    pub key: Symbol,
    /// The node's value; `None` if it lacks the label.
    pub has: Option<Name>,
    /// Why no node of the cluster meets the expression, if none does.
    pub hint: Option<Hint>,
}

/// Why no node of the cluster meets an expression.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Hint {
    /// No node has the value, but some have a similar one.
    NearValue {
        /// A value that some node has.
        near: Name,
    },
    /// No node has the value, or a similar one.
    NoSuchValue {
        /// The existing values, the first few.
        known: Vec<Name>,
    },
    /// No node has the label.
    NoSuchKey {
        /// A label key that nodes have, if one is similar.
        near: Option<Symbol>,
    },
    /// The node's value is not an integer, which `Gt` and `Lt` require.
    WholeNumbersOnly,
}

impl UnmetExpression {
    /// The short text, the same for all nodes that miss the expression.
    pub fn gist(&self) -> String {
        let hint = match &self.hint {
            None => String::new(),
            Some(Hint::NearValue { near }) => format!(" (no node has it; did you mean {near:?}?)"),
            Some(Hint::NoSuchValue { known }) => {
                let known: Vec<String> = known.iter().map(|value| value.to_string()).collect();
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

    /// Whether the text says that no node has the value or the label.
    pub fn names_no_node(&self) -> bool {
        use Hint::{NearValue, NoSuchKey, NoSuchValue};
        matches!(self.hint, Some(NearValue { .. } | NoSuchValue { .. } | NoSuchKey { .. }))
    }

    /// The full text, with the node's value.
    pub fn text(&self) -> String {
        let has = match self.has {
            Some(value) => format!("the node has {}={value}", self.key),
            None => format!("the node has no {}", self.key),
        };
        format!("{}: {has}", self.gist())
    }
}

/// The text of an expression, the same for all nodes.
#[derive(Debug)]
struct TermExpression {
    written: Symbol,
    key: Symbol,
    is_field: bool,
    /// Whether numbers are compared: `Gt` or `Lt`.
    is_comparison: bool,
    hint: Option<Hint>,
}

/// The texts of a term's parts.
#[derive(Debug, Default)]
struct TermTexts {
    expressions: Vec<TermExpression>,
    fields: Vec<TermExpression>,
}

/// The texts of a node selector's expressions. Which of them a node does not meet is decided by the
/// matcher that the plugin asks.
#[derive(Debug, Default)]
pub(super) struct NodeTerms(Vec<TermTexts>);

impl NodeTerms {
    /// The terms of a selector. Text written by a person may contain a typo (`typos`), text from a
    /// driver does not.
    pub(crate) fn of_selector(
        selector: &NodeSelector,
        typos: bool,
        snapshot: &Snapshot,
        memo: &Memo<'_>,
    ) -> NodeTerms {
        let term = |term: &NodeSelectorTerm| TermTexts {
            expressions: term
                .match_expressions
                .iter()
                .map(|written| {
                    TermExpression::new(written, false, hint(written, typos, snapshot, memo))
                })
                .collect(),
            fields: term
                .match_fields
                .iter()
                .map(|written| TermExpression::new(written, true, hint_of_name(written, snapshot)))
                .collect(),
        };
        NodeTerms(selector.node_selector_terms.iter().map(term).collect())
    }

    /// A single term that requires these labels, in the order of the selector's requirements.
    pub fn of_labels(labels: &Selector, snapshot: &Snapshot, memo: &Memo<'_>) -> NodeTerms {
        let written = |wanted: &Requirement| NodeSelectorRequirement {
            key: wanted.key,
            operator: NodeSelectorOperator::In,
            values: wanted.values.to_vec(),
        };
        let match_expressions = labels.requirements().iter().map(written).collect();
        let term = NodeSelectorTerm { match_expressions, ..Default::default() };
        NodeTerms::of_selector(
            &NodeSelector { node_selector_terms: vec![term] },
            true,
            snapshot,
            memo,
        )
    }

    /// The number of terms, of which one must match.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The parts that the node misses in the term that it misses least, with the index of that
    /// term. Empty if no term has a part. `terms` are the unmet parts of each term, from the
    /// matcher of this selector.
    pub fn nearest(
        &self,
        node: &Node,
        terms: impl Iterator<Item = (usize, impl Iterator<Item = UnmetPart>)>,
    ) -> (usize, Vec<UnmetExpression>) {
        let terms = terms.map(|(at, parts)| (at, parts.collect::<Vec<_>>()));
        let Some((at, parts)) = terms.min_by_key(|(_, parts)| parts.len()) else {
            return (0, Vec::new());
        };
        let unmet = |part| self.expression(at, part).map(|expression| expression.unmet(node));
        (at, parts.into_iter().filter_map(unmet).collect())
    }

    fn expression(&self, term: usize, part: UnmetPart) -> Option<&TermExpression> {
        let term = self.0.get(term)?;
        match part {
            UnmetPart::Expression(at) => term.expressions.get(at),
            UnmetPart::Field(at) => term.fields.get(at),
        }
    }
}

/// A selector of a volume, a class or a device, with its texts.
pub(super) struct ParsedTerms {
    matcher: NodeMatcher,
    terms: NodeTerms,
}

impl ParsedTerms {
    /// Parses a selector, as [`NodeTerms::of_selector`].
    pub fn new(
        selector: &NodeSelector,
        typos: bool,
        snapshot: &Snapshot,
        memo: &Memo<'_>,
    ) -> ParsedTerms {
        ParsedTerms {
            matcher: NodeMatcher::new(selector, ""),
            terms: NodeTerms::of_selector(selector, typos, snapshot, memo),
        }
    }

    /// The parts that the node misses in the term that it misses least. Volumes do not select by
    /// `name`: for them it is empty.
    pub fn unmet(&self, node: &Node, name: Name) -> Vec<UnmetExpression> {
        self.terms.nearest(node, self.matcher.unmet(&node.metadata.labels, name)).1
    }
}

impl TermExpression {
    fn new(
        written: &NodeSelectorRequirement,
        is_field: bool,
        hint: Option<Hint>,
    ) -> TermExpression {
        TermExpression {
            written: notation(written).into(),
            key: written.key,
            is_field,
            is_comparison: is_comparison(written.operator),
            hint,
        }
    }

    /// The expression, which the node does not meet, with the node's value.
    fn unmet(&self, node: &Node) -> UnmetExpression {
        let labels = &node.metadata.labels;
        let has = match self.is_field {
            true => Some(node.metadata.name),
            false => labels.get(self.key).copied(),
        };
        let is_number = |value: Name| value.text().parse::<i64>().is_ok();
        let hint = match has {
            Some(value) if self.is_comparison && !is_number(value) => Some(Hint::WholeNumbersOnly),
            _ => self.hint.clone(),
        };
        UnmetExpression { expression: self.written, key: self.key, has, hint }
    }
}

fn is_comparison(operator: NodeSelectorOperator) -> bool {
    matches!(operator, NodeSelectorOperator::Gt | NodeSelectorOperator::Lt)
}

/// The expression in kubectl's notation.
pub(crate) fn notation(written: &NodeSelectorRequirement) -> String {
    let NodeSelectorRequirement { key, operator, values } = written;
    let list: Vec<String> = values.iter().map(|value| value.to_string()).collect();
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
    let exists = |name: &Name| snapshot.by_name(*name).is_some();
    if written.operator != NodeSelectorOperator::In || written.values.iter().any(exists) {
        return None;
    }
    let names = || snapshot.iter().map(|node| node.name);
    let near = |name: &Name| suggest::closest_name(*name, names());
    Some(match written.values.iter().find_map(near) {
        Some(near) => Hint::NearValue { near },
        None => Hint::NoSuchValue { known: names().take(LISTED).collect() },
    })
}

/// The hint for an expression, if no node can meet it. Text written by a person may contain a typo
/// (`typos`), text from a driver does not.
fn hint(
    written: &NodeSelectorRequirement,
    typos: bool,
    snapshot: &Snapshot,
    memo: &Memo<'_>,
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
    let values: Vec<Name> = (0..column.len()).map(|domain| column.value(domain)).collect();
    let wanted = &written.values;
    if written.operator != NodeSelectorOperator::In || wanted.iter().any(|v| values.contains(v)) {
        return None;
    }
    let near = |value: &Name| suggest::closest_name(*value, values.iter().copied());
    Some(match wanted.iter().filter(|_| typos).find_map(near) {
        Some(near) => Hint::NearValue { near },
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
