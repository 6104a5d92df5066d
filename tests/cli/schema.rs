//! Every JSON and YAML output matches its schema in `schema/`.
//!
//! The check implements the keywords of JSON Schema 2020-12 that our schemas use, and fails at any
//! other. It is stricter in one point: fields that the schema does not name are errors, so that all
//! printed fields are described.
//!
//! A crate would save some 110 lines, but `jsonschema` switches on `serde_json/float_roundtrip`, with
//! which the tested program would read numbers in another way than the released one, and brings 22
//! packages; `boon` brings 32.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

/// Keywords without an effect on validation.
const NOTES: &[&str] = &["$schema", "$id", "$defs", "title", "description"];

/// Checks an output that is JSON or YAML, as a whole or by line, against the schema that it names;
/// other outputs are not checked.
pub fn check(output: &str) {
    if let Ok(value) = serde_json::from_str::<Value>(output) {
        return check_value(&value);
    }
    if output.lines().any(|line| line.starts_with("schema: kubestep/")) {
        return check_value(&kubestep_api::yaml::from_str(output).unwrap());
    }
    let lines = output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let lines: Vec<Value> = lines.collect();
    // In a recording, the first line names the schema of all lines.
    match lines.first().and_then(|first| first.get("schema")).and_then(Value::as_str) {
        Some(name) => lines.iter().for_each(|value| check_by(name, value)),
        None => lines.iter().for_each(check_value),
    }
}

/// Checks lines of JSON that do not name their schema.
pub fn check_lines(name: &str, lines: &str) {
    for line in lines.lines() {
        check_by(name, &serde_json::from_str(line).unwrap());
    }
}

/// Checks each document of a YAML file against the schema of that name.
pub fn check_documents(name: &str, yaml: &str) {
    use serde::Deserialize;
    for document in kubestep_api::yaml::documents(yaml).unwrap() {
        check_by(name, &Value::deserialize(document).unwrap());
    }
}

fn check_value(value: &Value) {
    match value {
        Value::Object(fields) => match fields.get("schema").and_then(Value::as_str) {
            Some(name) => check_by(name, value),
            None => panic!("an object without the name of its schema: {value}"),
        },
        Value::Array(_) => panic!("a list cannot name its schema: {value}"),
        // A line of a text table may be a number.
        _ => {}
    }
}

fn check_by(name: &str, value: &Value) {
    let schema = load(name);
    let mut problems = Vec::new();
    Check { root: &schema }.value(value, &schema, "", &mut problems);
    assert!(problems.is_empty(), "{name}:\n{}", problems.join("\n"));
}

/// The schema `kubestep/run/v1`, in the file `schema/run.v1.json`.
fn load(name: &str) -> Value {
    let file = name.strip_prefix("kubestep/").unwrap().replace('/', ".");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("schema/{file}.json"));
    let text =
        fs::read_to_string(&path).unwrap_or_else(|_| panic!("{} is missing", path.display()));
    serde_json::from_str(&text).unwrap()
}

struct Check<'a> {
    root: &'a Value,
}

impl Check<'_> {
    fn value(&self, value: &Value, schema: &Value, at: &str, problems: &mut Vec<String>) {
        let keywords = match schema {
            Value::Bool(true) => return,
            Value::Object(keywords) => keywords,
            other => panic!("{other} is no schema"),
        };
        for (keyword, rule) in keywords {
            match keyword.as_str() {
                "$ref" => self.reference(value, rule, at, problems),
                "type" if !is_a(value, rule) => problems.push(format!("{at}: is no {rule}")),
                "const" if value != rule => problems.push(format!("{at}: is not {rule}")),
                "enum" if !rule.as_array().unwrap().contains(value) => {
                    problems.push(format!("{at}: {value} is none of {rule}"));
                }
                "minimum" if value.as_f64() < rule.as_f64() => {
                    problems.push(format!("{at}: is below {rule}"));
                }
                "oneOf" => self.one_of(value, rule, at, problems),
                "required" => missing(value, rule, at, problems),
                "items" => self.items(value, rule, at, problems),
                "type" | "const" | "enum" | "minimum" => {}
                "properties" | "additionalProperties" => {}
                note if NOTES.contains(&note) => {}
                other => panic!("{at}: the keyword {other} is not known here"),
            }
        }
        if keywords.contains_key("properties") || keywords.contains_key("additionalProperties") {
            self.fields(value, schema, at, problems);
        }
    }

    /// Resolves `#/$defs/node` in this schema, or another schema such as `urn:kubestep:run:v1`.
    fn reference(&self, value: &Value, reference: &Value, at: &str, problems: &mut Vec<String>) {
        let reference = reference.as_str().unwrap();
        if let Some(name) = reference.strip_prefix("urn:kubestep:") {
            let root = load(&format!("kubestep/{}", name.replace(':', "/")));
            return Check { root: &root }.value(value, &root, at, problems);
        }
        let schema = self.root.pointer(reference.strip_prefix('#').unwrap());
        let schema = schema.unwrap_or_else(|| panic!("{reference} is not there"));
        self.value(value, schema, at, problems);
    }

    fn one_of(&self, value: &Value, schemas: &Value, at: &str, problems: &mut Vec<String>) {
        let tried = schemas.as_array().unwrap().iter().map(|schema| {
            let mut problems = Vec::new();
            self.value(value, schema, at, &mut problems);
            problems
        });
        let tried: Vec<Vec<String>> = tried.collect();
        if tried.iter().filter(|problems| problems.is_empty()).count() != 1 {
            problems.push(format!("{at}: is not exactly one of the choices: {tried:?}"));
        }
    }

    fn items(&self, value: &Value, schema: &Value, at: &str, problems: &mut Vec<String>) {
        for (i, item) in value.as_array().into_iter().flatten().enumerate() {
            self.value(item, schema, &format!("{at}[{i}]"), problems);
        }
    }

    fn fields(&self, value: &Value, schema: &Value, at: &str, problems: &mut Vec<String>) {
        let empty = serde_json::Map::new();
        let named = schema.get("properties").map_or(&empty, |named| named.as_object().unwrap());
        let others = schema.get("additionalProperties");
        for (name, field) in value.as_object().into_iter().flatten() {
            let at = format!("{at}.{name}");
            match named.get(name).or(others) {
                Some(schema) => self.value(field, schema, &at, problems),
                None => problems.push(format!("{at}: is not described")),
            }
        }
    }
}

fn missing(value: &Value, names: &Value, at: &str, problems: &mut Vec<String>) {
    let Some(fields) = value.as_object() else { return };
    let names = names.as_array().unwrap().iter().map(|name| name.as_str().unwrap());
    problems
        .extend(names.filter(|n| !fields.contains_key(*n)).map(|n| format!("{at}.{n}: missing")));
}

fn is_a(value: &Value, types: &Value) -> bool {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let fits = |wanted: &Value| {
        *wanted == kind || (*wanted == "integer" && (value.is_i64() || value.is_u64()))
    };
    types.as_array().map_or_else(|| fits(types), |types| types.iter().any(fits))
}

#[test]
fn what_does_not_fit_is_reported() {
    let schema = serde_json::json!({
        "type": "object", "required": ["a", "b"],
        "properties": {
            "a": {"$ref": "#/$defs/count"},
            "b": {"type": "array", "items": {"enum": ["x", "y"]}},
            "c": {"oneOf": [{"type": "null"}, {"const": "z"}]},
            "d": {"type": "object", "additionalProperties": {"type": ["string", "null"]}},
        },
        "$defs": {"count": {"type": "integer", "minimum": 1}},
    });
    let reported = |value: Value| {
        let mut problems = Vec::new();
        Check { root: &schema }.value(&value, &schema, "", &mut problems);
        problems
    };
    let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    assert!(reported(json(r#"{"a": 1, "b": ["x"], "c": "z", "d": {"e": null}}"#)).is_empty());
    assert_eq!(reported(json(r#"{"a": 0}"#)), [".b: missing", ".a: is below 1"]);
    assert_eq!(reported(json(r#"{"a": 1.5, "b": []}"#)), [".a: is no \"integer\""]);
    assert_eq!(
        reported(json(r#"{"a": 1, "b": ["q"]}"#)),
        [".b[0]: \"q\" is none of [\"x\",\"y\"]"]
    );
    assert_eq!(reported(json(r#"{"a": 1, "b": [], "f": 1}"#)), [".f: is not described"]);
    assert_eq!(reported(json(r#"{"a": 1, "b": [], "c": 1}"#)).len(), 1);
    assert_eq!(reported(json(r#"{"a": 1, "b": [], "d": {"e": 1}}"#)).len(), 1);
}

/// A capture is only written from a live cluster; here it is written from a story.
#[test]
fn a_capture_is_what_its_schema_says() {
    use kubestep_live::capture::{CaptureSettings, text};
    use kubestep_live::snapshot::ClusterSnapshot;
    use kubestep_source::{Filter, read_text};

    for story in kubestep_source::fixtures::STORIES {
        let read = read_text(story.name, story.cluster.into(), &Filter::default()).unwrap();
        let objects = read.objects.into_iter().map(|loaded| loaded.object);
        let snapshot = ClusterSnapshot::of_objects(objects);
        let settings = CaptureSettings {
            scheduler_config: Some(serde_json::json!({"parallelism": 3})),
            kube_version: Some("1.36".into()),
            emulated_version: Some("1.35".into()),
            feature_gates: Some("GangScheduling=true".into()),
            ..CaptureSettings::default()
        };
        for settings in [settings, CaptureSettings::default()] {
            let text = text(&snapshot, &settings).unwrap();
            check_by("kubestep/capture/v1", &serde_json::from_str(&text).unwrap());
        }
    }
}

/// Every schema is a document of the draft, with the name of its file.
#[test]
fn schemas_are_named_like_their_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema");
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some(stem) = name.strip_suffix(".json") {
            let schema = load(&format!("kubestep/{}", stem.replace('.', "/")));
            let id = format!("urn:kubestep:{}", stem.replace('.', ":"));
            assert_eq!(schema["$id"], id);
            assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
            found.insert(name, id);
        }
    }
    assert!(found.len() > 1, "{found:?}");
}
