//! Node selectors: terms with expressions on labels and fields, and a pod's node affinity.

use super::requirement::{Operator, Requirement, as_json};
use super::{Selector, SelectorErrors};
use crate::intern::Symbol;
use crate::{Labels, Name, Node, NodeSelector, NodeSelectorOperator, NodeSelectorRequirement};
use crate::{NodeSelectorTerm, Pod, PreferredSchedulingTerm};

/// The only field of nodes that selectors can name.
const METADATA_NAME: &str = "metadata.name";

/// A compiled `NodeSelector`: its terms are ORed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeMatcher {
    /// The terms that are not empty, each with its index in the selector as written.
    terms: Vec<(usize, CompiledTerm)>,
}

/// A part of a term that a node does not meet, by its index in the term as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnmetPart {
    /// An entry of `matchExpressions`.
    Expression(usize),
    /// An entry of `matchFields`.
    Field(usize),
}

/// A compiled term. `None` is an invalid part, which no node meets.
#[derive(Clone, Debug, Default, PartialEq)]
struct CompiledTerm {
    expressions: Vec<Option<Requirement>>,
    fields: Vec<Option<FieldRequirement>>,
    errors: Vec<String>,
}

/// `field = value` or `field != value`; a missing field of a node is "".
#[derive(Clone, Debug, PartialEq)]
struct FieldRequirement {
    is_name: bool,
    value: Name,
    negated: bool,
}

impl NodeMatcher {
    /// Compiles a selector; `path` is the prefix of errors. Empty terms match nothing, as upstream.
    pub fn new(selector: &NodeSelector, path: &str) -> NodeMatcher {
        let path = if path.is_empty() { "" } else { &format!("{path}.") };
        let terms = selector.node_selector_terms.iter().enumerate();
        NodeMatcher {
            terms: terms
                .filter(|(_, term)| !is_empty(term))
                .map(|(at, term)| {
                    (at, CompiledTerm::new(term, &format!("{path}nodeSelectorTerms[{at}]")))
                })
                .collect(),
        }
    }

    /// All errors of all terms, for callers that reject a selector with any.
    pub fn check(&self) -> Result<(), SelectorErrors> {
        let errors: Vec<String> =
            self.terms.iter().flat_map(|(_, term)| term.errors.clone()).collect();
        if errors.is_empty() { Ok(()) } else { Err(SelectorErrors(errors)) }
    }

    /// Whether any term matches; errors of terms count only if no term matches.
    pub fn matches(&self, labels: &Labels, name: Name) -> Result<bool, SelectorErrors> {
        let mut errors = Vec::new();
        for (_, term) in &self.terms {
            if term.matches(labels, name) {
                return Ok(true);
            }
            errors.extend(term.errors.iter().cloned());
        }
        if errors.is_empty() { Ok(false) } else { Err(SelectorErrors(errors)) }
    }

    /// Like [`NodeMatcher::matches`], but a term with errors does not match.
    pub fn matches_node(&self, node: &Node) -> bool {
        self.matches(&node.metadata.labels, node.metadata.name).unwrap_or(false)
    }

    /// The index of each term that is not empty, with the parts that the labels and the name do not
    /// meet. A term matches if it has no such part.
    pub fn unmet<'a>(
        &'a self,
        labels: &'a Labels,
        name: Name,
    ) -> impl Iterator<Item = (usize, impl Iterator<Item = UnmetPart> + 'a)> + 'a {
        self.terms.iter().map(move |(at, term)| (*at, term.unmet(labels, name)))
    }
}

impl CompiledTerm {
    fn new(term: &NodeSelectorTerm, path: &str) -> CompiledTerm {
        let mut compiled = CompiledTerm::default();
        for (at, written) in term.match_expressions.iter().enumerate() {
            match expression(written, &format!("{path}.matchExpressions[{at}]")) {
                Ok(requirement) => compiled.expressions.push(Some(requirement)),
                Err(errors) => {
                    compiled.expressions.push(None);
                    compiled.errors.extend(errors);
                }
            }
        }
        for (at, written) in term.match_fields.iter().enumerate() {
            match field(written, &format!("{path}.matchFields[{at}]")) {
                Ok(requirement) => compiled.fields.push(Some(requirement)),
                Err(error) => {
                    compiled.fields.push(None);
                    compiled.errors.push(error);
                }
            }
        }
        compiled
    }

    fn matches(&self, labels: &Labels, name: Name) -> bool {
        self.unmet(labels, name).next().is_none()
    }

    fn unmet<'a>(&'a self, labels: &'a Labels, name: Name) -> impl Iterator<Item = UnmetPart> + 'a {
        let expressions =
            self.expressions.iter().enumerate().filter_map(move |(at, expression)| {
                let met = expression.as_ref().is_some_and(|expression| expression.matches(labels));
                (!met).then_some(UnmetPart::Expression(at))
            });
        let fields = self.fields.iter().enumerate().filter_map(move |(at, field)| {
            // As upstream: fields of a node without a name are ignored.
            let met = field.as_ref().is_some_and(|field| name.is_empty() || field.matches(name));
            (!met).then_some(UnmetPart::Field(at))
        });
        expressions.chain(fields)
    }
}

impl FieldRequirement {
    fn matches(&self, name: Name) -> bool {
        let value = if self.is_name { name } else { Name::EMPTY };
        (value == self.value) != self.negated
    }
}

fn is_empty(term: &NodeSelectorTerm) -> bool {
    term.match_expressions.is_empty() && term.match_fields.is_empty()
}

fn expression(written: &NodeSelectorRequirement, path: &str) -> Result<Requirement, Vec<String>> {
    let operator = match written.operator {
        NodeSelectorOperator::In => Operator::In,
        NodeSelectorOperator::NotIn => Operator::NotIn,
        NodeSelectorOperator::Exists => Operator::Exists,
        NodeSelectorOperator::DoesNotExist => Operator::DoesNotExist,
        NodeSelectorOperator::Gt => Operator::GreaterThan,
        NodeSelectorOperator::Lt => Operator::LessThan,
        NodeSelectorOperator::Other(text) => {
            let choices = r#""In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt""#;
            return Err(vec![unsupported(path, text, choices)]);
        }
    };
    Requirement::new(written.key, operator, written.values.clone(), path)
}

fn field(written: &NodeSelectorRequirement, path: &str) -> Result<FieldRequirement, String> {
    let negated = match written.operator {
        NodeSelectorOperator::In => false,
        NodeSelectorOperator::NotIn => true,
        other => return Err(unsupported(path, other.as_str().into(), r#""In", "NotIn""#)),
    };
    let [value] = written.values[..] else {
        let values = as_json(&written.values);
        return Err(format!("{path}.values: Invalid value: {values}: must have one element"));
    };
    Ok(FieldRequirement { is_name: written.key == METADATA_NAME, value, negated })
}

fn unsupported(path: &str, operator: Symbol, choices: &str) -> String {
    format!("{path}.operator: Unsupported value: {operator:?}: supported values: {choices}")
}

/// The preferred terms of a pod's node affinity, compiled.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PreferredTerms {
    terms: Vec<(i64, CompiledTerm)>,
}

impl PreferredTerms {
    /// Compiles preferences. As upstream, those of weight 0 or with an empty term are dropped.
    pub fn new(terms: &[PreferredSchedulingTerm]) -> Result<PreferredTerms, SelectorErrors> {
        let (mut compiled, mut errors) = (Vec::new(), Vec::new());
        for (at, term) in terms.iter().enumerate() {
            if term.weight == 0 || is_empty(&term.preference) {
                continue;
            }
            let parsed = CompiledTerm::new(&term.preference, &format!("[{at}]"));
            errors.extend(parsed.errors.iter().cloned());
            compiled.push((i64::from(term.weight), parsed));
        }
        if errors.is_empty() {
            return Ok(PreferredTerms { terms: compiled });
        }
        Err(SelectorErrors(errors))
    }

    /// Sum of the weights of the preferences that match the node.
    pub fn score(&self, labels: &Labels, name: Name) -> i64 {
        let matching = self.terms.iter().filter(|(_, term)| term.matches(labels, name));
        matching.map(|(weight, _)| weight).sum()
    }

    /// The weight of each preference, in order, and whether it matches the node.
    pub fn verdicts(&self, labels: &Labels, name: Name) -> impl Iterator<Item = (i64, bool)> {
        self.terms.iter().map(move |(weight, term)| (*weight, term.matches(labels, name)))
    }

    /// Whether there are no preferences.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }
}

/// A pod's node selector and its required node affinity (`GetRequiredNodeAffinity`).
#[derive(Clone, Debug, PartialEq)]
pub struct RequiredNodeAffinity {
    labels: Selector,
    affinity: Option<NodeMatcher>,
}

impl RequiredNodeAffinity {
    /// Compiles the pod's node selector and required node affinity.
    pub fn of(pod: &Pod) -> RequiredNodeAffinity {
        let labels = pod.spec.node_selector.as_ref();
        let affinity = pod.spec.affinity.as_ref().and_then(|affinity| {
            let node_affinity = affinity.node_affinity.as_ref()?;
            node_affinity.required_during_scheduling_ignored_during_execution.as_ref()
        });
        RequiredNodeAffinity {
            labels: labels.map_or(Selector::Everything, Selector::from_labels),
            affinity: affinity.map(|selector| NodeMatcher::new(selector, "")),
        }
    }

    /// The node selector, compiled.
    pub fn labels(&self) -> &Selector {
        &self.labels
    }

    /// The required node affinity, compiled, if the pod has one.
    pub fn affinity(&self) -> Option<&NodeMatcher> {
        self.affinity.as_ref()
    }

    /// Whether every node matches.
    pub fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.affinity.is_none()
    }

    /// Whether the node matches both the node selector and the required affinity.
    pub fn matches(&self, labels: &Labels, name: Name) -> Result<bool, SelectorErrors> {
        if !self.labels.matches(labels) {
            return Ok(false);
        }
        self.affinity.as_ref().map_or(Ok(true), |affinity| affinity.matches(labels, name))
    }
}
