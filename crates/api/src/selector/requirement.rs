//! One requirement on a label: key, operator, values.

use std::fmt;

use super::validate::{label_key_error, label_value_error};
use crate::intern::Symbol;
use crate::{Labels, Name};

/// The operator of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Operator {
    Equals,
    NotEquals,
    In,
    NotIn,
    Exists,
    DoesNotExist,
    GreaterThan,
    LessThan,
}

/// A requirement that the API server would accept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Requirement {
    /// The key of the label.
    pub key: Symbol,
    /// How values are compared with the label.
    pub operator: Operator,
    /// The values, in the order written.
    pub values: Box<[Name]>,
    /// The value as a number, for `GreaterThan` and `LessThan`.
    number: i64,
}

impl Requirement {
    /// A requirement without validation, for keys and values that are known to be valid.
    /// `GreaterThan` and `LessThan` need [`Requirement::new`].
    pub fn unchecked(key: Symbol, operator: Operator, values: Vec<Name>) -> Requirement {
        Requirement { key, operator, values: values.into(), number: 0 }
    }

    /// A requirement validated like upstream's `NewRequirement`; `path` is the prefix of errors.
    pub fn new(
        key: Symbol,
        operator: Operator,
        values: Vec<Name>,
        path: &str,
    ) -> Result<Requirement, Vec<String>> {
        let mut errors = Vec::new();
        let field = |name: &str| format!("{path}{}{name}", if path.is_empty() { "" } else { "." });
        if let Some(reason) = label_key_error(&key) {
            errors.push(format!("{}: Invalid value: {key:?}: {reason}", field("key")));
        }
        if let Some(reason) = count_error(operator, values.len()) {
            let values = as_json(&values);
            errors.push(format!("{}: Invalid value: {values}: {reason}", field("values")));
        }
        let mut number = 0;
        for (at, value) in values.iter().enumerate() {
            if matches!(operator, Operator::GreaterThan | Operator::LessThan) {
                match parse_go_int(&value.text()) {
                    Some(parsed) => number = parsed,
                    None => errors.push(format!(
                        "{}[{at}]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, \
                         the value must be an integer",
                        field("values")
                    )),
                }
            }
        }
        for (at, value) in values.iter().enumerate() {
            if let Some(reason) = label_value_error(&value.text()) {
                let place = format!("{}[{at}][{key}]", field("values"));
                errors.push(format!("{place}: Invalid value: {value:?}: {reason}"));
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        Ok(Requirement { key, operator, values: values.into(), number })
    }

    /// Whether the labels match. As upstream, `NotIn` and `NotEquals` match an absent key.
    pub fn matches(&self, labels: &Labels) -> bool {
        let value = labels.get(self.key);
        match self.operator {
            Operator::Equals | Operator::In => {
                value.is_some_and(|value| self.values.contains(value))
            }
            Operator::NotEquals | Operator::NotIn => {
                value.is_none_or(|value| !self.values.contains(value))
            }
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan => number_of(value).is_some_and(|value| value > self.number),
            Operator::LessThan => number_of(value).is_some_and(|value| value < self.number),
        }
    }
}

fn number_of(value: Option<&Name>) -> Option<i64> {
    parse_go_int(&value?.text())
}

/// Go's `ParseInt(text, 10, 64)`: like Rust's, it accepts a leading plus.
fn parse_go_int(text: &str) -> Option<i64> {
    text.parse().ok()
}

/// A list as errors print it: JSON, and `null` for an empty one, which the API decodes as nil.
pub(super) fn as_json(values: &[Name]) -> String {
    if values.is_empty() {
        return "null".to_owned();
    }
    let texts: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
    format!("[{}]", texts.join(","))
}

fn count_error(operator: Operator, count: usize) -> Option<&'static str> {
    match operator {
        Operator::In | Operator::NotIn if count == 0 => {
            Some("for 'in', 'notin' operators, values set can't be empty")
        }
        Operator::Equals | Operator::NotEquals if count != 1 => {
            Some("exact-match compatibility requires one single value")
        }
        Operator::Exists | Operator::DoesNotExist if count != 0 => {
            Some("values set must be empty for exists and does not exist")
        }
        Operator::GreaterThan | Operator::LessThan if count != 1 => {
            Some("for 'Gt', 'Lt' operators, exactly one value is required")
        }
        _ => None,
    }
}

/// kubectl's notation: `a=b`, `a in (b,c)`, `!a`.
impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut values = self.values.to_vec();
        values.sort_unstable();
        let values: Vec<String> = values.iter().map(Name::to_string).collect();
        let values = values.join(",");
        let key = self.key;
        match self.operator {
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Exists => write!(f, "{key}"),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}
