//! Reads manifests: documents of any kind as written, to be tried on the cluster of the other
//! files. For small files; large ones go through the rest of this package.

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::STDIN;
use super::error::SourceError;
use super::fields::{UnexpectedField, unexpected_fields_of};
use super::piece::{Piece, TextPosition};
use kubestep_api::decode::{json_error, yaml_error};
use kubestep_api::yaml;

/// A document, not decoded.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// The file as it was named, `-` for standard input.
    pub file: String,
    /// The document, or item of a list.
    pub value: Value,
}

impl Manifest {
    /// The fields that Kubernetes does not know.
    pub fn unexpected_fields(&self) -> Vec<UnexpectedField> {
        unexpected_fields_of(&self.value, self.value["kind"].as_str().unwrap_or_default())
    }
}

/// Reads the documents of YAML and JSON files, items of lists one by one.
///
/// # Errors
/// A file cannot be read, is not YAML or JSON, or contains a document without a kind.
pub fn manifests(paths: &[PathBuf]) -> Result<Vec<Manifest>, Box<SourceError>> {
    let mut found = Vec::new();
    for path in paths {
        let file = path.display().to_string();
        let text = text(path).map_err(|error| {
            let (message, help) = match error.kind() {
                ErrorKind::NotFound => ("there is no such file".to_owned(), "check the path"),
                ErrorKind::IsADirectory => ("is a folder".to_owned(), "name the file in it"),
                ErrorKind::InvalidData => ("is not text".to_owned(), "save it as UTF-8"),
                _ => (format!("cannot be read: {error}"), "check the path"),
            };
            SourceError::of_file(&file, message, help)
        })?;
        for value in documents(&file, &text)? {
            found.push(Manifest { file: file.clone(), value });
        }
    }
    Ok(found)
}

fn text(path: &Path) -> std::io::Result<String> {
    if path.as_os_str() != STDIN {
        return std::fs::read_to_string(path);
    }
    let mut text = String::new();
    std::io::stdin().lock().read_to_string(&mut text).map(|_| text)
}

fn documents(file: &str, text: &str) -> Result<Vec<Value>, Box<SourceError>> {
    let mut values = Vec::new();
    for (number, value) in parse(file, text)?.into_iter().enumerate() {
        for value in items(value) {
            if value["kind"].as_str().is_none_or(str::is_empty) {
                let message = format!("document {} has no kind", number + 1);
                return Err(SourceError::of_file(file, message, "write apiVersion and kind"));
            }
            values.push(value);
        }
    }
    Ok(values)
}

fn parse(file: &str, text: &str) -> Result<Vec<Value>, Box<SourceError>> {
    let wrong = |error: kubestep_api::DecodeError| {
        let (line, column) = error.position.unwrap_or_default();
        let error = SourceError {
            line,
            column,
            ..*SourceError::of_file(file, error.message, "nothing was read from it")
        };
        error.with_snippet(&Piece { name: file, text, start: TextPosition::START })
    };
    if text.trim_start().starts_with('{') {
        let values = serde_json::Deserializer::from_str(text).into_iter();
        let values: Result<Vec<Value>, _> = values.collect();
        return values.map_err(|error| wrong(json_error(&error)));
    }
    let mut values = Vec::new();
    for document in yaml::documents(text).map_err(|error| wrong(yaml_error(&error)))? {
        let mut value =
            serde_yaml::Value::deserialize(document).map_err(|error| wrong(yaml_error(&error)))?;
        value.apply_merge().map_err(|error| wrong(yaml_error(&error)))?;
        values.push(Value::deserialize(value).map_err(|error| wrong(yaml_error(&error)))?);
    }
    Ok(values)
}

/// The items of a list, or the document itself; none for an empty document.
fn items(value: Value) -> Vec<Value> {
    let is_list = value["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
    match value {
        Value::Null => Vec::new(),
        Value::Object(mut fields)
            if is_list && fields.get("items").is_some_and(Value::is_array) =>
        {
            match fields.remove("items") {
                Some(Value::Array(items)) => items,
                _ => Vec::new(),
            }
        }
        value => vec![value],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<String> {
        let values = documents("f", text).unwrap();
        values.iter().map(|value| value["kind"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn documents_and_items_come_one_by_one() {
        assert_eq!(kinds("kind: Pod\n---\n# nothing\n---\nkind: Job\n"), ["Pod", "Job"]);
        assert_eq!(kinds("{\"kind\": \"List\", \"items\": [{\"kind\": \"Pod\"}]}"), ["Pod"]);
        assert_eq!(kinds("kind: PodList\nitems:\n- {kind: Pod}\n- {kind: Pod}\n").len(), 2);
        assert_eq!(kinds("kind: WaitList\n"), ["WaitList"]);
        assert!(kinds("").is_empty());
        let merged = documents("f", "kind: Pod\na: &a {x: 1}\nb: {<<: *a}\n").unwrap();
        assert_eq!(merged[0]["b"]["x"], 1);
    }

    #[test]
    fn what_is_wrong_is_reported_with_its_place() {
        let error = |text: &str| documents("f.yaml", text).unwrap_err().to_string();
        assert!(error("kind: Pod\n---\na: b\n").contains("document 2 has no kind"));
        assert!(error("kind: [\n").contains("f.yaml"), "{}", error("kind: [\n"));
        assert!(error("{\"kind\" 1}").contains("f.yaml:1:9"), "{}", error("{\"kind\" 1}"));
    }
}
