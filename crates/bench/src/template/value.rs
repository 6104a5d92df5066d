//! The values of templates, printed as Go prints them.

use std::fmt;

/// The value of an expression in a template.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Int(i64),
    Float(f64),
    Text(String),
}

impl Value {
    /// As a number, where Go's `ParseFloat` would accept a text.
    pub fn number(&self) -> Result<f64, String> {
        match self {
            Value::Int(value) => Ok(*value as f64),
            Value::Float(value) => Ok(*value),
            Value::Text(text) => text.parse().map_err(|_| format!("{text:?} is not a number")),
        }
    }
}

/// Exponents from which Go writes one: below the first, from the second on.
const EXPONENTS: [i32; 2] = [-4, 21];

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Int(value) => write!(f, "{value}"),
            Value::Text(text) => f.write_str(text),
            Value::Float(value) => {
                let [low, high] = EXPONENTS;
                let exponent = if *value == 0.0 { 0.0 } else { value.abs().log10().floor() };
                match exponent < f64::from(low) || exponent >= f64::from(high) {
                    true => f.write_str(&with_exponent(*value)),
                    false => write!(f, "{value}"),
                }
            }
        }
    }
}

/// `1e+21`, with at least two digits in the exponent.
fn with_exponent(value: f64) -> String {
    let text = format!("{value:e}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}
