//! From the arguments of a call to a command line, and the schema of the arguments.

use serde_json::{Map, Value, json};

use super::process::ToolCall;
use super::tools::{ArgumentForm, Parameter, Tool};
use kubestep_config::suggest;

type JsonObject = Map<String, Value>;

/// The schema of a tool's arguments.
pub(super) fn schema(tool: &Tool) -> JsonObject {
    let property = |parameter: &Parameter| {
        let mut schema = match parameter.form {
            ArgumentForm::Positional | ArgumentForm::Text(_) | ArgumentForm::Input(_) => {
                json!({"type": "string"})
            }
            ArgumentForm::Texts(_) => json!({"type": "array", "items": {"type": "string"}}),
            ArgumentForm::Number(_) => json!({"type": "integer", "minimum": 0}),
        };
        schema["description"] = parameter.description.into();
        (parameter.name.to_owned(), schema)
    };
    let properties: JsonObject = tool.parameters().map(property).collect();
    let required = tool.parameters().filter(|parameter| parameter.required);
    let required: Vec<&str> = required.map(|parameter| parameter.name).collect();
    let mut schema = JsonObject::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), properties.into());
    schema.insert("required".to_owned(), required.into());
    schema.insert("additionalProperties".to_owned(), false.into());
    schema
}

/// The command line of a call.
///
/// # Errors
/// In a sentence: an argument is unknown, missing or of another type.
pub(super) fn command_line(tool: &Tool, arguments: &JsonObject) -> Result<ToolCall, String> {
    check_names(tool, arguments)?;
    let mut call = ToolCall::default();
    call.words.extend(tool.command.iter().map(|&word| word.to_owned()));
    for parameter in tool.parameters() {
        match arguments.get(parameter.name).filter(|value| !value.is_null()) {
            Some(value) => add(&mut call, parameter, value)?,
            None if parameter.required => {
                return Err(format!("{}: {} is missing", tool.name, parameter.name));
            }
            None => {}
        }
    }
    Ok(call)
}

fn check_names(tool: &Tool, arguments: &JsonObject) -> Result<(), String> {
    let known = || tool.parameters().map(|parameter| parameter.name);
    let Some(unknown) = arguments.keys().find(|name| !known().any(|known| known == *name)) else {
        return Ok(());
    };
    let near = suggest::closest(unknown, known());
    let near = near.map(|near| format!(", did you mean {near}?")).unwrap_or_default();
    let all: Vec<&str> = known().collect();
    Err(format!(
        "{}: there is no argument {unknown:?}{near}; there are {}",
        tool.name,
        all.join(", ")
    ))
}

/// Adds an argument. A value cannot become an option: it follows `=`, or comes after `--`.
fn add(call: &mut ToolCall, parameter: &Parameter, value: &Value) -> Result<(), String> {
    let wrong = |kind: &str| format!("{}: {kind} is needed, not {value}", parameter.name);
    let text = || value.as_str().ok_or_else(|| wrong("a text"));
    match parameter.form {
        ArgumentForm::Positional => call.positional = Some(text()?.to_owned()),
        ArgumentForm::Text(option) => call.words.push(format!("{option}={}", text()?)),
        ArgumentForm::Texts(option) => {
            let texts = value.as_array().ok_or_else(|| wrong("a list of texts"))?;
            for text in texts {
                let text = text.as_str().ok_or_else(|| wrong("a list of texts"))?;
                call.words.push(format!("{option}={text}"));
            }
        }
        ArgumentForm::Number(option) => {
            let number = value.as_u64().ok_or_else(|| wrong("a whole number"))?;
            call.words.push(format!("{option}={number}"));
        }
        ArgumentForm::Input(option) => {
            call.words.push(format!("{option}=-"));
            call.input = Some(text()?.to_owned());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tools::TOOLS;
    use super::*;

    fn line(tool: &str, arguments: Value) -> Result<Vec<String>, String> {
        let tool = TOOLS.iter().find(|row| row.name == tool).unwrap();
        command_line(tool, arguments.as_object().unwrap()).map(|call| call.line("json"))
    }

    #[test]
    fn values_are_no_options() {
        let words = line("explain", json!({"pod": "--trace=x", "files": ["-o", "a b"]})).unwrap();
        let expected =
            ["explain", "--filename=-o", "--filename=a b", "--output=json", "--", "--trace=x"];
        assert_eq!(words, expected);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let error = |tool, arguments| line(tool, arguments).unwrap_err();
        assert!(error("explain", json!({"file": []})).contains("did you mean files?"));
        assert_eq!(error("why_not", json!({"pod": "a"})), "why_not: node is missing");
        assert_eq!(
            error("run", json!({"files": "a"})),
            "files: a list of texts is needed, not \"a\""
        );
        assert_eq!(
            error("run", json!({"replicas": -1})),
            "replicas: a whole number is needed, not -1"
        );
    }
}
