//! Errors of CEL with upstream's texts.

use ::cel::{ExecutionError, ParseErrors, Value};

/// Why an expression cannot be parsed.
pub fn syntax(errors: &ParseErrors) -> String {
    let text = errors.to_string().replace("\n| ", "\n | ");
    match text.starts_with("ERROR: <input>") {
        true => text,
        false => format!("ERROR: <input>: Syntax error: {text}"),
    }
}

/// The errors, each with its line and a marker below it, as upstream prints them.
pub fn located(text: &str, mut errors: Vec<(usize, String)>) -> String {
    errors.sort_by_key(|(start, _)| *start);
    let lines = errors.iter().map(|(start, error)| {
        let before = text.get(..*start).unwrap_or_default();
        let line = before.matches('\n').count();
        let ahead = before.rsplit('\n').next().unwrap_or_default();
        let source = text.lines().nth(line).unwrap_or_default().replace('\t', " ");
        // Upstream treats a character of several bytes as wide.
        let wide = |c: char| c.len_utf8() > 1;
        let dots: String = ahead.chars().map(|c| if wide(c) { '．' } else { '.' }).collect();
        let at = text.get(*start..).and_then(|rest| rest.chars().next());
        let mark = if at.is_some_and(wide) { '＾' } else { '^' };
        let column = ahead.chars().count() + 1;
        format!("ERROR: <input>:{}:{column}: {error}\n | {source}\n | {dots}{mark}", line + 1)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The error of an operator or function for values of other types.
pub(crate) const NO_OVERLOAD: &str = "no such overload";

/// Why the evaluation of an expression fails.
pub fn runtime(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::NoSuchOverload(overload) => {
            let types = overload.argument_types().join(", ");
            match overload.function() {
                "size" => format!("{NO_OVERLOAD}: size"),
                // The operands themselves return the error.
                function if !function.starts_with(char::is_alphabetic) => NO_OVERLOAD.to_owned(),
                "contains" | "startsWith" | "endsWith" | "matches" => NO_OVERLOAD.to_owned(),
                function => format!("{NO_OVERLOAD}: {function}({types})"),
            }
        }
        ExecutionError::UnsupportedBinaryOperator(..) | ExecutionError::ValuesNotComparable(..) => {
            NO_OVERLOAD.to_owned()
        }
        ExecutionError::UnexpectedType { want, .. } if want == "bool" => NO_OVERLOAD.to_owned(),
        ExecutionError::UnexpectedType { got, want } if want == "iterable" => {
            let mut name = got.clone();
            name.get_mut(..1).map(str::make_ascii_uppercase);
            format!("got 'types.{name}', expected iterable type")
        }
        ExecutionError::FunctionError { function, message }
            if message.starts_with("string parse error") =>
        {
            format!("type conversion error from 'string' to '{function}'")
        }
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(_, _, Value::UInt(_)) => "unsigned integer overflow".to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        ExecutionError::IndexOutOfBounds(Value::Int(at)) => format!("index out of bounds: {at}"),
        ExecutionError::FunctionError { message, .. } => match message.strip_prefix("Type conv") {
            Some(rest) => format!("type conv{rest}"),
            None => message.clone(),
        },
        other => other.to_string(),
    }
}

/// The error for an expression whose type is not bool.
pub(crate) fn no_bool(found: &str) -> String {
    let reason = match found {
        "string" => "unsupported native conversion from string to 'bool'".to_owned(),
        "list" => "type conversion error from list to 'bool'".to_owned(),
        other => match other.split_once('.') {
            Some((_, own)) => format!("type conversion error from '{own}' to 'bool'"),
            None => format!("unsupported type conversion from '{other}' to bool"),
        },
    };
    format!("CEL result of type {found} could not be converted to bool: {reason}")
}
