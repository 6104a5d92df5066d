//! Prints JSON and YAML documents safely: characters that would control a terminal are written as
//! escapes of the format, so that a program reads the same values.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::clean::{escape, escape_json, is_safe_in_lines};

/// Indented JSON with a final line break.
pub fn json(value: &Value) -> String {
    escape_json(format!("{value:#}\n"))
}

/// JSON on one line, with a final line break.
pub fn json_line(value: &Value) -> String {
    escape_json(format!("{value}\n"))
}

/// The value as a YAML document.
pub fn yaml(value: &Value) -> String {
    // A tree of plain values can always be serialized.
    let text = serde_yaml::to_string(value).unwrap_or_default();
    if text.chars().all(is_safe_in_lines) { text } else { yaml_escaped(value, &text) }
}

/// A character that makes the emitter put a string in double quotes.
const QUOTE: char = '\u{1}';

/// Only double-quoted strings can have escapes. Unsafe characters are replaced by marks that the
/// emitter keeps, in strings that it has to quote; then the marks are replaced by escapes.
fn yaml_escaped(value: &Value, text: &str) -> String {
    // A private-use character that the document does not contain: it cannot contain all 6,400 of
    // them.
    let Some(mark) = ('\u{e000}'..='\u{f8ff}').find(|mark| !text.contains(*mark)) else {
        return json(value);
    };
    let marked = with_marks(value, mark);
    let text = serde_yaml::to_string(&marked).unwrap_or_default();
    text.replace(&format!("\\x01{mark}"), "").replace(mark, "\\U")
}

fn with_marks(value: &Value, mark: char) -> Value {
    match value {
        Value::String(text) => Value::String(marked(text, mark)),
        Value::Array(items) => items.iter().map(|item| with_marks(item, mark)).collect(),
        Value::Object(fields) => {
            let fields = fields.iter();
            let fields = fields.map(|(name, value)| (marked(name, mark), with_marks(value, mark)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        plain => plain.clone(),
    }
}

fn marked(text: &str, mark: char) -> String {
    if text.chars().all(is_safe_in_lines) {
        return text.to_owned();
    }
    let marked = escape(text.to_owned(), |out, c| {
        // Writing to a String cannot fail.
        let _ = write!(out, "{mark}{:08x}", c as u32);
    });
    format!("{QUOTE}{mark}{marked}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_strings_with_something_unsafe_are_quoted() {
        let value = serde_json::json!({"a\u{202e}": ["b\u{1b}[2J\u{85}\n", "plain \\x01"], "c": 1});
        let text = yaml(&value);
        let expected =
            "\"a\\U0000202e\":\n- \"b\\U0000001b[2J\\U00000085\\n\"\n- plain \\x01\nc: 1\n";
        assert_eq!(text, expected);
    }

    proptest! {
        #[test]
        fn yaml_is_safe_and_means_the_same(text in "\\PC*|[\u{0}-\u{ff}]*|[\u{2020}-\u{2070}a\n ]*|.*") {
            let value = serde_json::json!({ text.clone(): [text, "plain"] });
            let yaml = yaml(&value);
            prop_assert!(yaml.chars().all(is_safe_in_lines), "{yaml:?}");
            prop_assert_eq!(kubestep_api::yaml::from_str::<Value>(&yaml).unwrap(), value);
        }
    }
}
