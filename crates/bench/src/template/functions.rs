//! The functions of scheduler_perf's templates.

use super::value::Value;

/// The functions that scheduler_perf adds to Go's templates.
pub const NAMES: &[&str] = &[
    "AddFloat",
    "AddInt",
    "DivideFloat",
    "DivideInt",
    "Mod",
    "MultiplyFloat",
    "MultiplyInt",
    "SubtractFloat",
    "SubtractInt",
];

/// Calls a function. As upstream, all of them calculate with floating point numbers, and those
/// with `Int` in their name cut off the fraction of the result.
pub(super) fn call(name: &str, arguments: &[Value]) -> Result<Value, String> {
    let numbers: Result<Vec<f64>, String> = arguments.iter().map(Value::number).collect();
    let numbers = numbers.map_err(|why| format!("{name}: {why}"))?;
    if name == "Mod" {
        return modulo(pair(name, &numbers)?).map(Value::Int);
    }
    let result = match name.trim_end_matches("Int").trim_end_matches("Float") {
        "Add" => numbers.iter().sum(),
        "Multiply" => numbers.iter().product(),
        "Subtract" => {
            let [left, right] = pair(name, &numbers)?;
            left - right
        }
        "Divide" => {
            let [left, right] = pair(name, &numbers)?;
            if right == 0.0 {
                return Err(format!("{name}: division by zero"));
            }
            left / right
        }
        _ => return Err(unknown(name)),
    };
    Ok(if name.ends_with("Int") { Value::Int(result as i64) } else { Value::Float(result) })
}

/// The message about a function that does not exist.
pub(super) fn unknown(name: &str) -> String {
    format!("there is no function {name:?}; there are {}", NAMES.join(", "))
}

fn pair(name: &str, numbers: &[f64]) -> Result<[f64; 2], String> {
    numbers
        .try_into()
        .map_err(|_| format!("{name}: takes 2 numbers, but there are {}", numbers.len()))
}

fn modulo([left, right]: [f64; 2]) -> Result<i64, String> {
    (left as i64).checked_rem(right as i64).ok_or_else(|| "Mod: division by zero".into())
}
