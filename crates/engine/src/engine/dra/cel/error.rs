//! Errors of CEL in upstream's words.

use ::cel::{ExecutionError, ParseErrors, Value};

/// Why an expression cannot be read.
pub fn syntax(errors: &ParseErrors) -> String {
    let text = errors.to_string();
    if text.contains("Syntax error") {
        text
    } else {
        format!("ERROR: <input>: Syntax error: {text}")
    }
}

/// Why an expression does not work.
pub fn runtime(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::NoSuchOverload(overload) => {
            let types = overload.argument_types().join(", ");
            format!("no such overload: {}({types})", overload.function())
        }

        ExecutionError::UnsupportedBinaryOperator(..) | ExecutionError::ValuesNotComparable(..) => {
            "no such overload".to_owned()
        }
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        ExecutionError::IndexOutOfBounds(Value::Int(at)) => format!("index out of bounds: {at}"),
        ExecutionError::FunctionError { message, .. } => message.clone(),
        other => other.to_string(),
    }
}

/// What an expression of another type than bool ends with.
pub fn no_bool(found: &str) -> String {
    let reason = match found {
        "string" => "unsupported native conversion from string to 'bool'".to_owned(),
        other => format!("unsupported type conversion from '{other}' to bool"),
    };
    format!("CEL result of type {found} could not be converted to bool: {reason}")
}
