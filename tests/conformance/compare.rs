//! Finds the first difference of two documents, and names its path.

use kubestep_api::Quantity;
use serde_json::{Value, json};

/// Fields in the order of a cycle and of a step's state; others follow by name.
const ORDER: &[&str] = &[
    "cycles",
    "pod",
    "attempt",
    "preFilter",
    "nodeHint",
    "filter",
    "filterAll",
    "extenderFilter",
    "feasible",
    "preScore",
    "scores",
    "extenderScores",
    "totals",
    "postFilter",
    "candidates",
    "reserve",
    "permit",
    "preBind",
    "bind",
    "result",
    "message",
    "node",
    "nominatedNode",
    "evaluated",
    "active",
    "backoff",
    "unschedulable",
    "placed",
    "nominated",
    "deleted",
];

/// The most characters of a value that are shown.
const SHOWN: usize = 400;

/// The first difference as `path: expected …, got …`; `None` if there is none.
pub fn first_difference(path: &str, expected: &Value, got: &Value) -> Option<String> {
    match (expected, got) {
        (Value::Object(left), Value::Object(right)) => {
            let mut keys: Vec<&String> = left.keys().chain(right.keys()).collect();
            let place = |key: &String| ORDER.iter().position(|name| name == key);
            keys.sort_by_key(|key| (place(key).unwrap_or(ORDER.len()), *key));
            keys.dedup();
            keys.into_iter().find_map(|key| {
                let path = format!("{path}.{key}");
                differ(path.trim_start_matches('.'), left.get(key), right.get(key))
            })
        }
        (Value::Array(left), Value::Array(right)) => {
            let indexes = 0..left.len().max(right.len());
            indexes
                .into_iter()
                .find_map(|at| differ(&format!("{path}[{at}]"), left.get(at), right.get(at)))
        }
        _ if expected == got => None,
        _ => Some(format!("{path}: expected {}, got {}", show(expected), show(got))),
    }
}

fn differ(path: &str, expected: Option<&Value>, got: Option<&Value>) -> Option<String> {
    match (expected, got) {
        (Some(expected), Some(got)) => first_difference(path, expected, got),
        (Some(expected), None) => Some(format!("{path}: expected {}, got nothing", show(expected))),
        (None, Some(got)) => Some(format!("{path}: expected nothing, got {}", show(got))),
        (None, None) => None,
    }
}

fn show(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Compares a line of the corpus of quantities: a text, and upstream's result of parsing it.
pub fn quantity(scenario: &Value) -> Result<(), String> {
    let text = scenario["in"].as_str().ok_or("no text")?;
    let (expected, got) = match Quantity::parse(text) {
        Ok(quantity) => {
            let (value, milli) = (quantity.value(), quantity.milli_value());
            let canon = quantity.to_string();
            (scenario, json!({"in": text, "value": value, "milli": milli, "canon": canon}))
        }
        // With an error, the values have no meaning.
        Err(error) => (&scenario["err"], json!(error.to_string())),
    };
    first_difference("", expected, &got).map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn equal_documents_do_not_differ() {
        let document = json!({"a": [1, {"b": null}], "c": "d"});
        assert_eq!(first_difference("", &document, &document.clone()), None);
    }

    #[test]
    fn the_first_difference_in_cycle_order_is_named() {
        let expected = json!({"placed": {"x": "n1"}, "cycles": [{"attempt": 1, "pod": "a"}]});
        let got = json!({"placed": {"x": "n2"}, "cycles": [{"attempt": 2, "pod": "b"}]});
        let difference = first_difference("step 0", &expected, &got);
        assert_eq!(difference.as_deref(), Some(r#"step 0.cycles[0].pod: expected "a", got "b""#));
        let got = json!({"placed": {"x": "n2"}, "cycles": [{"attempt": 1, "pod": "a"}]});
        let difference = first_difference("step 0", &expected, &got);
        assert_eq!(difference.as_deref(), Some(r#"step 0.placed.x: expected "n1", got "n2""#));
    }

    #[test]
    fn missing_and_additional_parts_differ() {
        let (short, long) = (json!({"a": [1]}), json!({"a": [1, 2]}));
        let missing = first_difference("", &long, &short);
        assert_eq!(missing.as_deref(), Some("a[1]: expected 2, got nothing"));
        let additional = first_difference("", &short, &long);
        assert_eq!(additional.as_deref(), Some("a[1]: expected nothing, got 2"));
        assert_eq!(
            first_difference("x", &json!(1), &json!("1")).as_deref(),
            Some(r#"x: expected 1, got "1""#)
        );
    }
}
