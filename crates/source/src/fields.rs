//! Fields that Kubernetes does not know, and fields that occur twice: typos, most likely. An API
//! server drops the first and takes one of the second; `kubectl` warns of both.

use std::cell::RefCell;
use std::collections::hash_map::DefaultHasher;
use std::fmt;
use std::hash::{Hash as _, Hasher as _};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::shapes::{self, Shape};
use kubestep_api::decode::{Text, json_error, yaml_error};
use kubestep_api::{DecodeError, Kind};
use kubestep_config::suggest;

/// Such fields that are reported of one object.
const MOST: usize = 16;
/// Keys of a user's mapping among which one that occurs twice is looked for.
const MOST_KEYS: usize = 256;

/// A field that is probably a mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnexpectedField {
    /// The field: `spec.containers[0].imagee`.
    pub path: String,
    /// Why it is unexpected.
    pub problem: FieldProblem,
    /// Line and column within the object's text, both from 1, where known.
    pub position: Option<(usize, usize)>,
}

/// Why a field is unexpected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldProblem {
    /// There is none of that name. The known one that is most like it, if one is.
    Unknown(Option<&'static str>),
    /// It occurs twice in the same object; the last one counts.
    Duplicate,
}

/// As the API server says it, and what was probably intended.
impl fmt::Display for UnexpectedField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &self.path;
        match self.problem {
            FieldProblem::Unknown(None) => write!(f, "unknown field {path:?}"),
            FieldProblem::Unknown(Some(near)) => {
                write!(f, "unknown field {path:?}, did you mean {near:?}?")
            }
            FieldProblem::Duplicate => write!(f, "duplicate field {path:?}"),
        }
    }
}

/// The unexpected fields of an object's text.
pub(super) fn unexpected_fields(text: Text<'_>, kind: Kind) -> Vec<UnexpectedField> {
    let (Text::Json(raw) | Text::Yaml(raw)) = text;
    let version = version(raw, kind.as_str());
    let Some(shape) = version.and_then(|version| shapes::of(version, kind.as_str())) else {
        return Vec::new();
    };
    all(|walk| match text {
        Text::Json(text) => {
            let mut json = serde_json::Deserializer::from_str(text);
            walk.of(shape).deserialize(&mut json).map_err(|error| json_error(&error))
        }
        Text::Yaml(text) => kubestep_api::yaml::documents(text)
            .and_then(|documents| walk.of(shape).deserialize(documents))
            .map_err(|error| yaml_error(&error)),
    })
}

/// The version that an object's text names; the usual one where it names none, as in a list.
fn version(text: &str, kind: &str) -> Option<&'static str> {
    let versions = shapes::versions(kind);
    // The longer names, v1beta1, have the shorter ones, v1, in them and stand behind them.
    let named = versions.iter().rev().find(|version| text.contains(**version));
    let usual = versions.first().filter(|_| !text.contains("apiVersion"));
    named.or(usual).copied()
}

/// The unexpected fields of a parsed object. `kind` is its kind where it does not contain one.
pub(super) fn unexpected_fields_of(value: &serde_json::Value, kind: &str) -> Vec<UnexpectedField> {
    let version = match value["apiVersion"].as_str() {
        Some(version) if !version.is_empty() => version,
        _ => shapes::versions(kind).first().copied().unwrap_or_default(),
    };
    let Some(shape) = shapes::of(version, kind) else { return Vec::new() };
    all(|walk| walk.of(shape).deserialize(value).map_err(|error| json_error(&error)))
}

/// Walks until no unexpected field is left: a walk ends at the first one that was not found before,
/// because where it ends is where the field is.
fn all(walk: impl Fn(&FoundField) -> Result<(), DecodeError>) -> Vec<UnexpectedField> {
    let mut unexpected: Vec<UnexpectedField> = Vec::new();
    while unexpected.len() < MOST {
        let found = FoundField { skip: unexpected.len().into(), unexpected: RefCell::default() };
        let end = walk(&found);
        // Text that cannot be parsed is for the decoder to report.
        let (Err(error), Some(field)) = (end, found.unexpected.into_inner()) else { break };
        unexpected.push(UnexpectedField { position: error.position, ..field });
    }
    unexpected
}

/// What a walk found.
struct FoundField {
    /// Unexpected fields to skip, as they were found before.
    skip: std::cell::Cell<usize>,
    unexpected: RefCell<Option<UnexpectedField>>,
}

impl FoundField {
    fn of<'a>(&'a self, shape: &'a Shape) -> Walk<'a> {
        Walk { shape, path: Path::Root, found: self }
    }

    /// Ends the walk at a field, unless it was found before.
    fn note<E: serde::de::Error>(&self, path: &Path<'_>, problem: FieldProblem) -> Result<(), E> {
        if let Some(rest) = self.skip.get().checked_sub(1) {
            self.skip.set(rest);
            return Ok(());
        }
        let path = path.to_string();
        self.unexpected.replace(Some(UnexpectedField { path, problem, position: None }));
        Err(E::custom("unexpected field"))
    }
}

/// Where a walk is, from the object on.
enum Path<'a> {
    Root,
    Field(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root => Ok(()),
            Path::Field(Path::Root, name) => f.write_str(name),
            Path::Field(parent, name) => write!(f, "{parent}.{name}"),
            Path::Index(parent, at) => write!(f, "{parent}[{at}]"),
        }
    }
}

/// A value that is compared with what is known of it.
struct Walk<'a> {
    shape: &'a Shape,
    path: Path<'a>,
    found: &'a FoundField,
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.shape {
            Shape::Any => deserializer.deserialize_ignored_any(IgnoredAny).map(|_| ()),
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        match self.shape {
            Shape::Fields(fields) => walk_fields(fields, &self.path, self.found, map),
            Shape::Map(shape) => walk_map(shape, &self.path, self.found, map),
            Shape::Any | Shape::List(_) => {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(())
            }
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Walk { shape, path, found } = self;
        let shape = if let Shape::List(item) = shape { item } else { &Shape::Any };
        let mut at = 0;
        while list.next_element_seed(Walk { shape, path: Path::Index(&path, at), found })?.is_some()
        {
            at += 1;
        }
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_none<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
}

fn walk_fields<'de, A: MapAccess<'de>>(
    fields: &[(&'static str, Shape)],
    path: &Path<'_>,
    found: &FoundField,
    mut map: A,
) -> Result<(), A::Error> {
    let mut seen = 0_u128;
    while let Some(key) = map.next_key_seed(FieldName { fields, seen, path, found })? {
        let Some((at, (name, shape))) = key.and_then(|at| Some((at, fields.get(at)?))) else {
            map.next_value::<IgnoredAny>()?;
            continue;
        };
        seen |= bit(at);
        map.next_value_seed(Walk { shape, path: Path::Field(path, name), found })?;
    }
    Ok(())
}

fn walk_map<'de, A: MapAccess<'de>>(
    shape: &Shape,
    path: &Path<'_>,
    found: &FoundField,
    mut map: A,
) -> Result<(), A::Error> {
    let mut seen = Vec::new();
    while let Some(key) = map.next_key_seed(UserKey { seen: &mut seen, path, found })? {
        map.next_value_seed(Walk { shape, path: Path::Field(path, &key), found })?;
    }
    Ok(())
}

/// A field's place among the known ones as a bit; none has as many fields as there are bits.
fn bit(at: usize) -> u128 {
    1 << at.min(127)
}

/// A key that should be a known field: gives its place among them.
struct FieldName<'a> {
    fields: &'a [(&'static str, Shape)],
    /// The fields that came before, as bits.
    seen: u128,
    path: &'a Path<'a>,
    found: &'a FoundField,
}

impl<'de> DeserializeSeed<'de> for FieldName<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for FieldName<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Option<usize>, E> {
        let path = Path::Field(self.path, name);
        let at = self.fields.iter().position(|(known, _)| *known == name);
        match at {
            Some(at) if self.seen & bit(at) != 0 => {
                self.found.note(&path, FieldProblem::Duplicate)?
            }
            Some(_) => {}
            // What YAML merges is looked at where it stands.
            None if name == "<<" => {}
            None => {
                let known = self.fields.iter().map(|(known, _)| *known);
                self.found.note(&path, FieldProblem::Unknown(suggest::closest(name, known)))?;
            }
        }
        Ok(at)
    }
}

/// A key of the user's own, such as a label's.
struct UserKey<'a> {
    /// Hashes of those before.
    seen: &'a mut Vec<u64>,
    path: &'a Path<'a>,
    found: &'a FoundField,
}

impl<'de> DeserializeSeed<'de> for UserKey<'_> {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for UserKey<'_> {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: serde::de::Error>(self, key: &str) -> Result<String, E> {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        let hash = hasher.finish();
        if self.seen.contains(&hash) {
            self.found.note(&Path::Field(self.path, key), FieldProblem::Duplicate)?;
        } else if self.seen.len() < MOST_KEYS {
            self.seen.push(hash);
        }
        Ok(key.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warnings_of(fields: &[UnexpectedField]) -> Vec<String> {
        let line = |field: &UnexpectedField| match field.position {
            Some((line, _)) => format!("{line}: {field}"),
            None => field.to_string(),
        };
        fields.iter().map(line).collect()
    }

    const YAML: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, labells: {}}\nspec:\n  \
                        nodeSelectors: {a: b}\n  containers:\n  - name: c\n    livenessProbe:\n      \
                        httpGett: {port: 80}\n    resources: {limits: {cpu: 1, nvidia.com/gpu: 1}}\n  \
                        quux: 1\n";

    #[test]
    fn unknown_fields_are_found_with_their_lines_in_yaml_and_json() {
        let expected = [
            "unknown field \"metadata.labells\", did you mean \"labels\"?",
            "unknown field \"spec.nodeSelectors\", did you mean \"nodeSelector\"?",
            "unknown field \"spec.containers[0].livenessProbe.httpGett\", did you mean \
             \"httpGet\"?",
            "unknown field \"spec.quux\"",
        ];
        let numbered = |lines: [usize; 4]| -> Vec<String> {
            lines.iter().zip(expected).map(|(line, text)| format!("{line}: {text}")).collect()
        };
        let yaml = unexpected_fields(Text::Yaml(YAML), Kind::Pod);
        assert_eq!(warnings_of(&yaml), numbered([3, 5, 9, 11]));
        let value: serde_json::Value = kubestep_api::yaml::from_str(YAML).unwrap();
        // A parsed mapping is in alphabetical order.
        let (mut parsed, mut sorted) =
            (warnings_of(&unexpected_fields_of(&value, "Pod")), expected);
        parsed.sort();
        sorted.sort();
        assert_eq!(parsed, sorted);
        let json = "{\"kind\": \"Pod\",\n \"metadata\": {\n\"labells\": {}},\n\"spec\": {\
                    \"nodeSelectors\": {}, \"containers\": [{\"livenessProbe\":\n{\"httpGett\": 1}}],\n\
                    \"quux\": [1, {}]}}";
        let json = unexpected_fields(Text::Json(json), Kind::Pod);
        assert_eq!(warnings_of(&json), numbered([3, 4, 5, 6]));
    }

    #[test]
    fn what_stands_twice_is_found() {
        let text = "{\"spec\": {\"hostIPC\": true, \"hostIPC\": false, \"nodeSelector\": {\"a\": \
                    \"1\", \"a\": \"2\"}}}";
        let expected =
            ["duplicate field \"spec.hostIPC\"", "duplicate field \"spec.nodeSelector.a\""];
        let found = unexpected_fields(Text::Json(text), Kind::Pod);
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn custom_resources_and_wrong_types_are_not_judged() {
        let custom = serde_json::json!({"apiVersion": "example.com/v1", "specc": {}});
        assert!(unexpected_fields_of(&custom, "Pod").is_empty());
        for text in ["{\"spec\": [1]}", "{\"spec\": null}", "{\"metadata\": {", "[]", "3"] {
            assert!(unexpected_fields(Text::Json(text), Kind::Pod).is_empty(), "{text}");
        }
    }
}
