//! The quantity corpus: texts, and what upstream reads in them.

use kubestep::api::Quantity;
use serde_json::{Value, json};

use crate::compare::first_difference;

/// Compares one line.
pub fn compare(scenario: &Value) -> Result<(), String> {
    let text = scenario["in"].as_str().ok_or("no text")?;
    let mut got = match Quantity::parse(text) {
        Ok(quantity) => json!({
            "value": quantity.value(),
            "milli": quantity.milli_value(),
            "canon": quantity.to_string(),
        }),
        Err(error) => json!({"err": error.to_string()}),
    };
    got["in"] = json!(text);
    first_difference("", scenario, &got).map_or(Ok(()), Err)
}
