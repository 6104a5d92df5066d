//! The quantity corpus: texts, and upstream's results of parsing them.

use kubestep_api::Quantity;
use serde_json::{Value, json};

use crate::compare::first_difference;

/// Compares one line.
pub fn compare(scenario: &Value) -> Result<(), String> {
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
