//! Label selectors, compiled: matching compares interned strings only.
//!
//! Upstream: `LabelSelectorAsSelector` in apimachinery.

use crate::api::{LabelSelector, LabelSelectorOperator, LabelSelectorRequirement, Labels};
use crate::intern::Symbol;

/// A compiled label selector.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Selector {
    /// Matches nothing: no selector was given.
    #[default]
    Nothing,
    /// All requirements must hold; none at all matches everything.
    All(Vec<Requirement>),
}

/// One requirement on a label.
#[derive(Clone, Debug, PartialEq)]
pub struct Requirement {
    /// The label.
    pub key: Symbol,
    /// What must hold of it.
    pub operator: LabelSelectorOperator,
    /// The values that In and NotIn compare with.
    pub values: Vec<Symbol>,
}

impl Selector {
    /// Compiles a selector; an absent one matches nothing, an empty one everything.
    ///
    /// # Errors
    /// An operator that does not exist, or values where there must be none or some.
    pub fn new(selector: Option<&LabelSelector>) -> Result<Selector, String> {
        let Some(selector) = selector else { return Ok(Selector::Nothing) };
        let equal = |(key, value): (Symbol, &Symbol)| Requirement {
            key,
            operator: LabelSelectorOperator::In,
            values: vec![*value],
        };
        let mut all: Vec<Requirement> = selector.match_labels.iter().map(equal).collect();
        for expression in &selector.match_expressions {
            all.push(Requirement::new(expression)?);
        }
        Ok(Selector::All(all))
    }

    /// Whether the selector matches everything, whatever the labels.
    pub fn is_everything(&self) -> bool {
        matches!(self, Selector::All(all) if all.is_empty())
    }

    /// Whether `labels` satisfy the selector.
    pub fn matches(&self, labels: &Labels) -> bool {
        match self {
            Selector::Nothing => false,
            Selector::All(all) => all.iter().all(|requirement| requirement.matches(labels)),
        }
    }
}

impl Requirement {
    fn new(expression: &LabelSelectorRequirement) -> Result<Requirement, String> {
        use LabelSelectorOperator::{DoesNotExist, Exists, In, NotIn, Other};
        let LabelSelectorRequirement { key, operator, values } = expression;
        match operator {
            In | NotIn if values.is_empty() => {
                return Err(format!(
                    "for 'in', 'notin' operators, values set can't be empty (key {key:?})"
                ));
            }
            Exists | DoesNotExist if !values.is_empty() => {
                return Err(format!(
                    "values set must be empty for exists and does not exist (key {key:?})"
                ));
            }
            Other(text) => return Err(format!("{text:?} is not a valid label selector operator")),
            _ => {}
        }
        Ok(Requirement { key: *key, operator: *operator, values: values.clone() })
    }

    /// Whether `labels` satisfy the requirement; NotIn holds for an absent label.
    pub fn matches(&self, labels: &Labels) -> bool {
        let value = labels.get(self.key);
        match self.operator {
            LabelSelectorOperator::In => value.is_some_and(|value| self.values.contains(value)),
            LabelSelectorOperator::NotIn => value.is_none_or(|value| !self.values.contains(value)),
            LabelSelectorOperator::Exists => value.is_some(),
            LabelSelectorOperator::DoesNotExist => value.is_none(),
            LabelSelectorOperator::Other(_) => false,
        }
    }
}
