//! The types of an extender's answer. Go decodes by type: a value of a wrong type makes the whole
//! answer an error, with the text of `encoding/json`.

use super::ExtenderError;
use serde_json::Value;

use AnswerShape::{List, Map, Struct, Text, Whole};

/// A type of Go, as far as decoding checks it.
pub(crate) enum AnswerShape {
    Text,
    Whole,
    /// A slice: its type, and that of its elements.
    List(&'static str, &'static AnswerShape),
    /// A map by strings: its type, and that of its values.
    Map(&'static str, &'static AnswerShape),
    /// A struct: its name without the package, and its fields.
    Struct(&'static str, &'static [(&'static str, AnswerShape)]),
}

/// The answer to a filter call.
pub(crate) const FILTER_RESULT: AnswerShape = Struct(
    "ExtenderFilterResult",
    &[
        ("Nodes", NODES),
        ("NodeNames", List("[]string", &Text)),
        ("FailedNodes", FAILED_NODES),
        ("FailedAndUnresolvableNodes", FAILED_NODES),
        ("Error", Text),
    ],
);
/// The answer to a prioritize call.
pub(crate) const PRIORITIES: AnswerShape =
    List("v1.HostPriorityList", &Struct("HostPriority", &[("Host", Text), ("Score", Whole)]));
/// The answer to a bind call.
pub(crate) const BINDING_RESULT: AnswerShape = Struct("ExtenderBindingResult", &[("Error", Text)]);
/// The answer to a preempt call.
pub(crate) const PREEMPTION_RESULT: AnswerShape = Struct(
    "ExtenderPreemptionResult",
    &[("NodeNameToMetaVictims", Map("map[string]*v1.MetaVictims", &VICTIMS))],
);

/// Nodes have a decoder of their own.
const NODES: AnswerShape =
    Struct("NodeList", &[("items", List("[]v1.Node", &Struct("Node", &[])))]);
const FAILED_NODES: AnswerShape = Map("v1.FailedNodesMap", &Text);
const VICTIMS: AnswerShape = Struct(
    "MetaVictims",
    &[
        ("Pods", List("[]*v1.MetaPod", &Struct("MetaPod", &[("UID", Text)]))),
        ("NumPDBViolations", Whole),
    ],
);

impl AnswerShape {
    /// Whether the answer can be decoded; `null` is valid anywhere and means the zero value.
    ///
    /// # Errors
    /// A value has a wrong type; the text is that of Go 1.26.
    pub(crate) fn check(&self, answer: &Value) -> Result<(), ExtenderError> {
        self.check_at(answer, &FieldPosition { holder: "", path: String::new() })
    }

    fn check_at(&self, value: &Value, at: &FieldPosition) -> Result<(), ExtenderError> {
        match (self, value) {
            (_, Value::Null) | (Text, Value::String(_)) => Ok(()),
            (Whole, Value::Number(number)) if number.is_i64() => Ok(()),
            (List(_, items), Value::Array(values)) => {
                values.iter().try_for_each(|value| items.check_at(value, at))
            }
            (Map(_, items), Value::Object(values)) => {
                values.values().try_for_each(|value| items.check_at(value, at))
            }
            (Struct(name, fields), Value::Object(values)) => {
                values.iter().try_for_each(|(key, value)| {
                    let field = fields.iter().find(|(name, _)| name.eq_ignore_ascii_case(key));
                    let Some((field, shape)) = field else { return Ok(()) };
                    shape.check_at(value, &at.inside(name, field))
                })
            }
            _ => Err(ExtenderError::Invalid(at.mismatch(self, value))),
        }
    }

    fn go_type(&self) -> String {
        match self {
            Text => "string".to_owned(),
            Whole => "int64".to_owned(),
            List(name, _) | Map(name, _) => (*name).to_owned(),
            Struct(name, _) => format!("v1.{name}"),
        }
    }
}

/// The position of a value in an answer.
struct FieldPosition {
    /// The innermost struct, which the error names.
    holder: &'static str,
    /// The path of fields to the value.
    path: String,
}

impl FieldPosition {
    fn inside(&self, holder: &'static str, field: &str) -> FieldPosition {
        let dot = if self.path.is_empty() { "" } else { "." };
        FieldPosition { holder, path: format!("{}{dot}{field}", self.path) }
    }

    fn mismatch(&self, shape: &AnswerShape, value: &Value) -> String {
        let found = match (shape, value) {
            (Whole, Value::Number(number)) => format!("number {number}"),
            (_, Value::Number(_)) => "number".to_owned(),
            (_, Value::Array(_)) => "array".to_owned(),
            (_, Value::Object(_)) => "object".to_owned(),
            (_, Value::String(_)) => "string".to_owned(),
            (_, Value::Bool(_) | Value::Null) => "bool".to_owned(),
        };
        let of_type = shape.go_type();
        match self.path.is_empty() {
            true => format!("json: cannot unmarshal {found} into Go value of type {of_type}"),
            false => format!(
                "json: cannot unmarshal {found} into Go struct field {}.{} of type {of_type}",
                self.holder, self.path
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The texts are what a Go 1.26 program prints for these answers.
    #[test]
    fn wrong_types_are_reported_as_by_go() {
        let cases = [
            (
                &FILTER_RESULT,
                json!({"NodeNames": ["a", 1]}),
                "number into Go struct field ExtenderFilterResult.NodeNames of type string",
            ),
            (
                &FILTER_RESULT,
                json!({"NodeNames": "a"}),
                "string into Go struct field ExtenderFilterResult.NodeNames of type []string",
            ),
            (
                &FILTER_RESULT,
                json!({"FailedNodes": []}),
                "array into Go struct field ExtenderFilterResult.FailedNodes of type v1.FailedNodesMap",
            ),
            (
                &FILTER_RESULT,
                json!({"failedNodes": {"a": true}}),
                "bool into Go struct field ExtenderFilterResult.FailedNodes of type string",
            ),
            (
                &FILTER_RESULT,
                json!({"Nodes": {"items": {}}}),
                "object into Go struct field NodeList.Nodes.items of type []v1.Node",
            ),
            (&FILTER_RESULT, json!([]), "array into Go value of type v1.ExtenderFilterResult"),
            (
                &PRIORITIES,
                json!([{"Host": "a", "Score": 1.5}]),
                "number 1.5 into Go struct field HostPriority.Score of type int64",
            ),
            (&PRIORITIES, json!([3]), "number into Go value of type v1.HostPriority"),
            (&PRIORITIES, json!({}), "object into Go value of type v1.HostPriorityList"),
            (
                &PREEMPTION_RESULT,
                json!({"NodeNameToMetaVictims": {"a": {"Pods": [{"UID": 1}]}}}),
                "number into Go struct field MetaPod.NodeNameToMetaVictims.Pods.UID of type string",
            ),
            (
                &PREEMPTION_RESULT,
                json!({"NodeNameToMetaVictims": {"a": []}}),
                "array into Go struct field ExtenderPreemptionResult.NodeNameToMetaVictims of type v1.MetaVictims",
            ),
            (
                &BINDING_RESULT,
                json!({"Error": []}),
                "array into Go struct field ExtenderBindingResult.Error of type string",
            ),
        ];
        for (shape, answer, text) in cases {
            let rejection = ExtenderError::Invalid(format!("json: cannot unmarshal {text}"));
            assert_eq!(shape.check(&answer), Err(rejection));
        }
    }

    #[test]
    fn null_and_unknown_fields_are_fine() {
        let answer = json!({"NodeNames": [null], "FailedNodes": {"a": null}, "Error": null,
            "Other": 3, "Nodes": {"items": [{"spec": 3}]}});
        assert_eq!(FILTER_RESULT.check(&answer), Ok(()));
        assert_eq!(PRIORITIES.check(&Value::Null), Ok(()));
    }
}
