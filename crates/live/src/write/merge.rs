//! The difference between two JSON documents as a merge patch (RFC 7396). We do not know every
//! field that the server has, so only what changed may be sent.

use serde_json::{Map, Value};

/// The patch that turns `before` into `after`; `None` if they are equal.
pub(super) fn difference(before: &Value, after: &Value) -> Option<Value> {
    match (before, after) {
        (before, after) if before == after => None,
        (Value::Object(before), Value::Object(after)) => Some(of_maps(before, after).into()),
        (_, after) => Some(after.clone()),
    }
}

fn of_maps(before: &Map<String, Value>, after: &Map<String, Value>) -> Map<String, Value> {
    let mut patch = Map::new();
    for (name, value) in after {
        let old = before.get(name).unwrap_or(&Value::Null);
        if let Some(change) = difference(old, value) {
            patch.insert(name.clone(), change);
        }
    }
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    patch
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_changed() {
        let before = json!({"a": 1, "b": {"c": [1], "d": 2}, "e": "gone"});
        let after = json!({"a": 1, "b": {"c": [1, 2], "d": 2}, "f": {"g": true}});
        let patch = json!({"b": {"c": [1, 2]}, "e": null, "f": {"g": true}});
        assert_eq!(difference(&before, &after), Some(patch));
        assert_eq!(difference(&before, &before), None);
    }
}
