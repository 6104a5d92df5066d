//! A document as a tree that keeps the order of fields and repeated fields, so that strict decoding
//! can report them.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, SerializeSeq, Serializer};
use serde::{Deserialize, Serialize};

use super::locate::locate_nth;
use super::path::FieldPath;
use super::problem::{Location, Problem};
use kubestep_api::yaml;

/// The maximum number of reported repeated fields, as every location needs another reading of the
/// text.
const MOST_REPEATED: usize = 100;

/// A value of a YAML or JSON document.
#[derive(Clone, PartialEq, Debug)]
pub enum YamlValue {
    /// `null`, `~` or nothing.
    Null,
    /// `true` or `false`, written without quotes.
    Bool(bool),
    /// A whole number of 64 bits.
    Int(i64),
    /// A number with a fraction or exponent, or beyond 64 bits.
    Float(f64),
    /// A text, with or without quotes.
    Text(String),
    /// A sequence, in order.
    List(Vec<YamlValue>),
    /// The fields of a map in the order of the document, repeated ones included.
    Map(Vec<(String, YamlValue)>),
}

impl YamlValue {
    /// The last field of that name, if this is a map.
    pub fn get(&self, name: &str) -> Option<&YamlValue> {
        match self {
            YamlValue::Map(fields) => {
                fields.iter().rev().find(|(key, _)| key == name).map(|(_, v)| v)
            }
            _ => None,
        }
    }

    /// The values of a list; none of anything else.
    pub fn items(&self) -> &[YamlValue] {
        match self {
            YamlValue::List(items) => items,
            _ => &[],
        }
    }

    /// A description of the value for error messages: `the text "x"`.
    pub fn describe(&self) -> String {
        match self {
            YamlValue::Null => "nothing".to_owned(),
            YamlValue::Bool(value) => format!("{value}"),
            YamlValue::Int(value) => format!("the number {value}"),
            YamlValue::Float(value) => format!("the number {value}"),
            YamlValue::Text(text) => format!("the text {text:?}"),
            YamlValue::List(_) => "a list".to_owned(),
            YamlValue::Map(_) => "a map".to_owned(),
        }
    }

    /// Replaces YAML's merge key `<<` by the fields of the maps that it names, after the map's own
    /// fields.
    fn merge(&mut self) {
        match self {
            YamlValue::List(list) => list.iter_mut().for_each(YamlValue::merge),
            YamlValue::Map(fields) => {
                fields.iter_mut().for_each(|(_, value)| value.merge());
                merge_fields(fields);
            }
            _ => {}
        }
    }
}

fn merge_fields(fields: &mut Vec<(String, YamlValue)>) {
    let Some(position) = fields.iter().position(|(key, _)| key == "<<") else { return };
    let sources = match &fields[position].1 {
        YamlValue::Map(source) => vec![source.clone()],
        YamlValue::List(list) => list.iter().filter_map(as_fields).collect(),
        _ => return,
    };
    fields.remove(position);
    for (key, value) in sources.into_iter().flatten() {
        if fields.iter().all(|(other, _)| *other != key) {
            fields.push((key, value));
        }
    }
}

fn as_fields(node: &YamlValue) -> Option<Vec<(String, YamlValue)>> {
    match node {
        YamlValue::Map(fields) => Some(fields.clone()),
        _ => None,
    }
}

/// The tree of a text.
pub struct ParsedDocuments {
    /// The first document of the text.
    pub root: YamlValue,
    /// Whether it was read as YAML and not as JSON.
    pub yaml: bool,
    /// Whether more documents follow; they are ignored, as upstream.
    pub more: bool,
}

/// Parses `text`: as JSON if it starts with `{` and is valid JSON, otherwise as YAML.
pub fn parse(text: &str) -> Result<ParsedDocuments, Problem> {
    if !text.trim_start().starts_with('{') {
        return parse_yaml(text);
    }
    match (serde_json::from_str(text), parse_yaml(text)) {
        (Ok(root), _) => Ok(ParsedDocuments { root, yaml: false, more: false }),
        (Err(_), Ok(parsed)) => Ok(parsed),
        (Err(error), Err(_)) => {
            let location = Location { line: error.line(), column: error.column().max(1) };
            Err(not_readable("JSON", &error.to_string(), Some(location)))
        }
    }
}

fn parse_yaml(text: &str) -> Result<ParsedDocuments, Problem> {
    let documents = yaml::documents(text);
    let mut documents =
        documents.map_err(|error| not_readable("YAML", &error.to_string(), None))?;
    let mut root = match documents.next() {
        Some(document) => YamlValue::deserialize(document).map_err(|error| {
            let location = error
                .location()
                .map(|location| Location { line: location.line(), column: location.column() });
            not_readable("YAML", &error.to_string(), location)
        })?,
        None => YamlValue::Null,
    };
    root.merge();
    let more =
        documents.any(|document| !matches!(YamlValue::deserialize(document), Ok(YamlValue::Null)));
    Ok(ParsedDocuments { root, yaml: true, more })
}

fn not_readable(format: &str, message: &str, location: Option<Location>) -> Problem {
    let message = without_places(message);
    let mut problem = Problem::new(&FieldPath::root(), format!("this is not {format}: {message}"));
    problem.location = location;
    problem
}

/// The message without its position (` at line 2 column 5`), which kubestep puts first.
fn without_places(message: &str) -> String {
    let mut parts = message.split(" at line ");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        let rest = rest.strip_prefix(" column ").unwrap_or(rest);
        text.push_str(rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    text
}

/// Reports every field that occurs several times in the same map.
pub(crate) fn find_repeated(
    node: &YamlValue,
    path: &FieldPath,
    text: &str,
    problems: &mut Vec<Problem>,
) {
    match node {
        YamlValue::List(list) => {
            for (i, entry) in list.iter().enumerate() {
                find_repeated(entry, &path.index(i), text, problems);
            }
        }
        YamlValue::Map(fields) => {
            let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
            for (name, value) in fields {
                let path = path.field(name);
                let times = seen.entry(name).or_default();
                if *times > 0 && problems.len() < MOST_REPEATED {
                    let mut problem = Problem::new(&path, "is given twice").help("remove one");
                    problem.location = locate_nth(text, &path, *times);
                    problems.push(problem);
                }
                *times += 1;
                find_repeated(value, &path, text, problems);
            }
        }
        _ => {}
    }
}

impl Serialize for YamlValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            YamlValue::Null => serializer.serialize_unit(),
            YamlValue::Bool(value) => serializer.serialize_bool(*value),
            YamlValue::Int(value) => serializer.serialize_i64(*value),
            YamlValue::Float(value) => serializer.serialize_f64(*value),
            YamlValue::Text(text) => serializer.serialize_str(text),
            YamlValue::List(list) => {
                let mut out = serializer.serialize_seq(Some(list.len()))?;
                list.iter().try_for_each(|entry| out.serialize_element(entry))?;
                out.end()
            }
            YamlValue::Map(fields) => {
                let mut out = serializer.serialize_map(Some(fields.len()))?;
                fields.iter().try_for_each(|(key, value)| out.serialize_entry(key, value))?;
                out.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for YamlValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<YamlValue, D::Error> {
        deserializer.deserialize_any(YamlVisitor)
    }
}

struct YamlVisitor;

impl<'de> Visitor<'de> for YamlVisitor {
    type Value = YamlValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a plain value, a list or a map")
    }
    fn visit_unit<E: Error>(self) -> Result<YamlValue, E> {
        Ok(YamlValue::Null)
    }
    fn visit_none<E: Error>(self) -> Result<YamlValue, E> {
        Ok(YamlValue::Null)
    }
    fn visit_bool<E: Error>(self, value: bool) -> Result<YamlValue, E> {
        Ok(YamlValue::Bool(value))
    }
    fn visit_i64<E: Error>(self, value: i64) -> Result<YamlValue, E> {
        Ok(YamlValue::Int(value))
    }
    fn visit_u64<E: Error>(self, value: u64) -> Result<YamlValue, E> {
        Ok(i64::try_from(value).map_or(YamlValue::Float(value as f64), YamlValue::Int))
    }
    fn visit_f64<E: Error>(self, value: f64) -> Result<YamlValue, E> {
        Ok(YamlValue::Float(value))
    }
    fn visit_str<E: Error>(self, text: &str) -> Result<YamlValue, E> {
        Ok(YamlValue::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<YamlValue, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = list.next_element()? {
            entries.push(entry);
        }
        Ok(YamlValue::List(entries))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<YamlValue, A::Error> {
        let mut fields = Vec::new();
        while let Some((key, value)) = map.next_entry::<YamlValue, YamlValue>()? {
            let key = match key {
                YamlValue::Text(text) => text,
                YamlValue::Int(value) => value.to_string(),
                YamlValue::Float(value) => value.to_string(),
                YamlValue::Bool(value) => value.to_string(),
                other => return Err(A::Error::custom(format!("{} as a key", other.describe()))),
            };
            fields.push((key, value));
        }
        Ok(YamlValue::Map(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        parse(text).err().unwrap().to_string()
    }

    #[test]
    fn json_and_yaml_give_the_same_tree() {
        let json = parse("{\"a\": [1, 2.5, null, true], \"b\": {\"c\": \"x\"}}").unwrap();
        let yaml = parse("a: [1, 2.5, ~, true]\nb:\n  c: x\n").unwrap();
        assert!(json.root == yaml.root && !json.yaml && yaml.yaml);
        assert_eq!(json.root.get("b").and_then(|b| b.get("c")), Some(&YamlValue::Text("x".into())));
        assert!(parse("{a: 1}").unwrap().yaml);
    }

    #[test]
    fn only_the_first_document_counts() {
        let parsed = parse("a: 1\n---\nb: 2\n").unwrap();
        assert!(parsed.more && parsed.root.get("b").is_none());
        assert!(!parse("a: 1\n---\n").unwrap().more);
        assert_eq!(parse("# nothing\n").unwrap().root, YamlValue::Null);
    }

    #[test]
    fn anchors_and_merge_keys_are_followed() {
        let parsed = parse("base: &b {x: 1, y: 2}\nuse:\n  <<: *b\n  y: 3\n").unwrap();
        let merged = parsed.root.get("use").unwrap();
        assert_eq!(merged.get("x"), Some(&YamlValue::Int(1)));
        assert_eq!(merged.get("y"), Some(&YamlValue::Int(3)));
    }

    #[test]
    fn unreadable_text_is_reported_with_its_place() {
        assert_eq!(message("{\n  \"a\" 1}"), "line 2, column 7: this is not JSON: expected `:`");
        assert_eq!(
            message("a: [1\nb: 2\n"),
            "line 2, column 2: this is not YAML: did not find expected ',' or ']', \
             while parsing a flow sequence"
        );
    }

    #[test]
    fn repeated_fields_are_found_where_they_are() {
        let text = "a:\n- x: 1\n  y: 2\n  x: 3\n";
        let mut problems = Vec::new();
        find_repeated(&parse(text).unwrap().root, &FieldPath::root(), text, &mut problems);
        let reported: Vec<_> = problems.iter().map(Problem::to_string).collect();
        assert_eq!(reported, ["a[0].x (line 4, column 3): is given twice; remove one"]);
    }
}
