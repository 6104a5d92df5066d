//! The answer as JSON, by `schema/explain.v1.json`.

use serde_json::{Value, json};

use kubestep_debug::why::Why;

/// The version of this document.
const SCHEMA: &str = "kubestep/explain/v1";

/// The whole answer.
pub fn value(why: &Why) -> Value {
    let mut value = serde_json::to_value(why).unwrap_or_default();
    if let Value::Object(fields) = &mut value {
        fields.insert("schema".to_owned(), json!(SCHEMA));
        fields.insert("schedulable".to_owned(), json!(why.is_schedulable()));
    }
    value
}
