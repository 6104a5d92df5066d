//! Compiled selectors: label selectors, node selectors and tolerations as the scheduler matches
//! them, validated once; values are compared as names, not as texts.
//!
//! Upstream: `apimachinery/pkg/labels`, `component-helpers/scheduling/corev1/nodeaffinity`,
//! `api/core/v1/toleration.go`.

mod node;
mod parse;
mod requirement;
mod toleration;
mod validate;

use std::fmt;

pub use node::{NodeMatcher, PreferredTerms, RequiredNodeAffinity, UnmetPart};
pub use parse::ParseSelectorError;
pub use requirement::{Operator, Requirement};
pub use toleration::{find_untolerated_taint, tolerates};
pub use validate::{is_dns_subdomain, is_label_text};

use crate::intern::Symbol;
use crate::{LabelSelector, LabelSelectorOperator, Labels, Name};

/// Why a selector is invalid: what the API server would reject. Prints like upstream's aggregate, a
/// single error unchanged and several different ones as a list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", join_errors(.0))]
pub struct SelectorErrors(pub Vec<String>);

/// A compiled label selector.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Selector {
    /// Matches no labels: an absent selector.
    #[default]
    Nothing,
    /// Matches any labels: an empty selector.
    Everything,
    /// All requirements must match; sorted by key.
    All(Box<[Requirement]>),
}

impl Selector {
    /// Compiles a selector as written. Absent selects nothing, empty selects everything.
    ///
    /// # Errors
    /// A key, value or operator is invalid.
    pub fn new(written: Option<&LabelSelector>) -> Result<Selector, SelectorErrors> {
        let Some(written) = written else { return Ok(Selector::Nothing) };
        let labels = written
            .match_labels
            .iter()
            .map(|(key, value)| Requirement::new(key, Operator::Equals, vec![*value], ""));
        let expressions = written.match_expressions.iter().map(|expression| {
            let operator = match expression.operator {
                LabelSelectorOperator::In => Operator::In,
                LabelSelectorOperator::NotIn => Operator::NotIn,
                LabelSelectorOperator::Exists => Operator::Exists,
                LabelSelectorOperator::DoesNotExist => Operator::DoesNotExist,
                LabelSelectorOperator::Other(text) => {
                    return Err(vec![format!("{text:?} is not a valid label selector operator")]);
                }
            };
            Requirement::new(expression.key, operator, expression.values.clone(), "")
        });
        let requirements: Result<Vec<_>, _> = labels.chain(expressions).collect();
        requirements.map(Selector::from_requirements).map_err(SelectorErrors)
    }

    /// Requires all labels of a set with their values (`labels.SelectorFromSet`). An empty or
    /// absent set selects everything. Keys and values are not validated.
    pub fn from_labels(labels: &Labels) -> Selector {
        Selector::from_requirements(
            labels
                .iter()
                .map(|(key, value)| Requirement::unchecked(key, Operator::Equals, vec![*value]))
                .collect(),
        )
    }

    /// Parses kubectl's notation: `app=web,tier in (front,back),!canary`.
    ///
    /// # Errors
    /// A requirement is not in that notation, or the API server would reject it.
    pub fn parse(text: &str) -> Result<Selector, ParseSelectorError> {
        parse::parse(text)
    }

    /// All of these requirements; an empty list selects everything.
    pub(crate) fn from_requirements(mut requirements: Vec<Requirement>) -> Selector {
        if requirements.is_empty() {
            return Selector::Everything;
        }
        requirements.sort_by_key(|requirement| requirement.key);
        Selector::All(requirements.into_boxed_slice())
    }

    /// The selector narrowed by more requirements; `Nothing` stays `Nothing`.
    pub fn and(self, more: impl IntoIterator<Item = Requirement>) -> Selector {
        match self {
            Selector::Nothing => Selector::Nothing,
            Selector::Everything => Selector::from_requirements(more.into_iter().collect()),
            Selector::All(requirements) => {
                let mut requirements = requirements.into_vec();
                requirements.extend(more);
                Selector::from_requirements(requirements)
            }
        }
    }

    /// Whether the selector matches the labels.
    pub fn matches(&self, labels: &Labels) -> bool {
        match self {
            Selector::Nothing => false,
            Selector::Everything => true,
            Selector::All(_) => self.unmet(labels).next().is_none(),
        }
    }

    /// The indices of the [`Selector::requirements`] that the labels do not meet.
    pub fn unmet<'a>(&'a self, labels: &'a Labels) -> impl Iterator<Item = usize> + 'a {
        let requirements = self.requirements().iter().enumerate();
        requirements
            .filter_map(move |(at, requirement)| (!requirement.matches(labels)).then_some(at))
    }

    /// Whether the selector matches everything (upstream's `Empty`; false for `Nothing`).
    pub fn is_everything(&self) -> bool {
        *self == Selector::Everything
    }

    /// The requirements in the order of their keys; empty for `Nothing` and `Everything`.
    pub fn requirements(&self) -> &[Requirement] {
        match self {
            Selector::All(requirements) => requirements,
            _ => &[],
        }
    }
}

/// kubectl's notation; `<none>` for the selector that selects nothing.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Selector::Nothing {
            return f.write_str("<none>");
        }
        for (at, requirement) in self.requirements().iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            write!(f, "{requirement}")?;
        }
        Ok(())
    }
}

impl LabelSelector {
    /// A selector of these labels.
    pub fn of_labels(labels: Labels) -> LabelSelector {
        LabelSelector { match_labels: labels, ..Default::default() }
    }

    /// Adds an expression, as the API server does for `matchLabelKeys`.
    pub(crate) fn add_expression(
        &mut self,
        key: Symbol,
        operator: LabelSelectorOperator,
        values: Vec<Name>,
    ) {
        let expression = crate::LabelSelectorRequirement { key, operator, values };
        self.match_expressions.push(expression);
    }
}

/// A single error unchanged, several different ones as a list (upstream's aggregate).
pub(crate) fn join_errors(errors: &[String]) -> String {
    let mut different: Vec<&str> = Vec::new();
    for error in errors {
        if !different.contains(&error.as_str()) {
            different.push(error);
        }
    }
    match different[..] {
        [one] => one.to_owned(),
        _ => format!("[{}]", different.join(", ")),
    }
}

#[cfg(test)]
mod tests;
