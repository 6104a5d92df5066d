//! Decoding one object from JSON or YAML: its kind, its typed form, and errors that name the field.
//! Kinds that the scheduler does not read are recognized and left undecoded.

mod header;
mod legacy;

use std::fmt;

use serde::Deserialize;

use crate::intern::Symbol;
use crate::macros::api_structs;
use crate::object::leading_value;
use crate::{Kind, Object, yaml};

/// The text of one object.
#[derive(Clone, Copy, Debug)]
pub enum Text<'a> {
    /// One JSON value.
    Json(&'a str),
    /// One YAML document, without `---`.
    Yaml(&'a str),
}

/// The result of decoding an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Decoded {
    /// An object of a kind that the scheduler reads.
    Object(Object),
    /// An object of another kind, by its name in the API.
    Unread(Symbol),
}

/// Why an object could not be decoded.
#[derive(Clone, Debug, Default, PartialEq, thiserror::Error)]
pub struct DecodeError {
    /// The object as far as known: `Pod shop/web-0`, `Pod`, or "".
    pub object: String,
    /// The field, `spec.containers[0].resources.requests.cpu`; "" for the whole object.
    pub path: String,
    /// What is wrong, in the decoder's words.
    pub message: String,
    /// Line and column in the text, both from 1, where known.
    pub position: Option<(usize, usize)>,
    /// The API version of the object, where known.
    pub api_version: Symbol,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in [&self.object, &self.path] {
            if !part.is_empty() {
                write!(f, "{part}: ")?;
            }
        }
        f.write_str(&self.message)
    }
}

api_structs! {
    /// The fields that identify an object's kind.
    pub struct TypeMeta {
        pub api_version: Symbol,
        pub kind: Symbol,
    }
}

/// Decodes one object. `expected` is the kind to assume, as for the items of a `PodList`, which
/// need not name it; without it the object must name its kind.
pub fn decode(text: Text<'_>, expected: Option<Kind>) -> Result<Decoded, DecodeError> {
    decode_in(text, expected, Symbol::EMPTY)
}

/// As [`decode`], for an item of a list in `api_version`, which counts if the item names none.
pub fn decode_in(
    text: Text<'_>,
    expected: Option<Kind>,
    api_version: Symbol,
) -> Result<Decoded, DecodeError> {
    let mut types = match (header::scan(text), expected) {
        (Some(types), _) => types,
        // Items of a typed list rarely have a header; searching for one costs as much as decoding.
        (None, Some(kind)) if !has_versions(kind) => TypeMeta::default(),
        (None, _) => types_of(text)?,
    };
    if types.api_version.is_empty() {
        types.api_version = api_version;
    }
    let kind = match (types.kind.as_str(), expected) {
        ("", Some(kind)) => kind,
        ("", None) => return Err(missing_kind(text)),
        (name, _) => match Kind::of(&types.api_version, name) {
            Some(kind) => kind,
            None => return Ok(Decoded::Unread(types.kind)),
        },
    };
    let api_version = types.api_version;
    let mut object = decode_kind(text, kind, &api_version)
        .map_err(|error| DecodeError { api_version, ..error })?;
    object.compact();
    Ok(Decoded::Object(object))
}

/// Whether the shape of a kind depends on its API version.
pub fn has_versions(kind: Kind) -> bool {
    legacy::VERSIONS.iter().any(|(_, kinds)| kinds.contains(&kind))
}

/// The `apiVersion` that an object's text names; empty if it names none.
pub fn api_version(text: Text<'_>) -> Symbol {
    let types = header::scan(text).filter(|types| !types.api_version.is_empty());
    types.or_else(|| types_of(text).ok()).unwrap_or_default().api_version
}

/// Decodes an item of a list of `kind`s in `api_version`, without looking for its header.
pub fn decode_item(json: &str, kind: Kind, api_version: &str) -> Result<Object, DecodeError> {
    let mut object = decode_kind(Text::Json(json), kind, api_version)?;
    object.compact();
    Ok(object)
}

/// Decodes the object at the start of a JSON text in a single pass, and returns the length of its
/// text too. `None` for any that needs more than that: call [`decode`] with the object's text.
pub fn decode_leading(json: &str, expected: Option<Kind>) -> Option<(Decoded, usize)> {
    let types = header::scan(Text::Json(json)).unwrap_or_default();
    let kind = match (types.kind.as_str(), expected) {
        ("", kind) => kind?,
        (name, _) => match Kind::of(&types.api_version, name) {
            Some(kind) => kind,
            None => {
                let (_, length) = leading_value::<serde::de::IgnoredAny>(json).ok()?;
                return Some((Decoded::Unread(types.kind), length));
            }
        },
    };
    let is_unclear = types.api_version.is_empty() && has_versions(kind);
    if is_unclear || legacy::is_legacy(kind, &types.api_version) {
        return None;
    }
    let (mut object, length) = Object::read_leading(kind, json).ok()?;
    object.compact();
    Some((Decoded::Object(object), length))
}

/// The kind of the object at the start of a JSON text, if its first fields contain it.
pub fn leading_kind(json: &str) -> Option<Symbol> {
    header::scan(Text::Json(json)).map(|types| types.kind)
}

fn decode_kind(text: Text<'_>, kind: Kind, api_version: &str) -> Result<Object, DecodeError> {
    if legacy::is_legacy(kind, api_version) || has_merge_keys(text) {
        let mut value = to_value(text).map_err(|error| named(kind, error))?;
        legacy::upgrade(kind, api_version, &mut value);
        return from_value(kind, value);
    }
    let position = match text {
        Text::Json(json) => {
            let mut deserializer = serde_json::Deserializer::from_str(json);
            let object = Object::deserialize_as(kind, &mut deserializer);
            match object.and_then(|object| deserializer.end().map(|()| object)) {
                Ok(object) => return Ok(object),
                Err(error) => json_error(&error),
            }
        }
        Text::Yaml(text) => {
            let read = yaml::documents(text);
            match read.and_then(|documents| Object::deserialize_as(kind, documents)) {
                Ok(object) => return Ok(object),
                Err(error) => yaml_error(&error),
            }
        }
    };
    Err(explain(text, kind, position))
}

/// Decodes a whole object of a known kind from a JSON value.
pub fn from_value(kind: Kind, value: serde_json::Value) -> Result<Object, DecodeError> {
    let object = describe(kind, &value);
    let mut track = serde_path_to_error::Track::new();
    let tracked = serde_path_to_error::Deserializer::new(value, &mut track);
    Object::deserialize_as(kind, tracked).map_err(|error| DecodeError {
        object,
        path: field_path(&track.path()),
        message: error.to_string(),
        ..DecodeError::default()
    })
}

/// The path in the API's notation; the tracker prints "." for the whole object.
fn field_path(path: &serde_path_to_error::Path) -> String {
    let path = path.to_string();
    if path == "." { String::new() } else { path }
}

/// Decodes a second time, more slowly, to find the field and the object's name.
fn explain(text: Text<'_>, kind: Kind, found: DecodeError) -> DecodeError {
    let Ok(value) = to_value(text) else { return named(kind, found) };
    match from_value(kind, value) {
        Err(error) => DecodeError { position: found.position, ..error },
        // Only the text itself is invalid, for example because a field occurs twice.
        Ok(object) => DecodeError { object: object.key().to_string(), ..found },
    }
}

fn named(kind: Kind, error: DecodeError) -> DecodeError {
    DecodeError { object: kind.to_string(), ..error }
}

/// The object's name as far as it can be decoded: `Pod shop/web-0`.
fn describe(kind: Kind, value: &serde_json::Value) -> String {
    let field = |name: &str| value["metadata"][name].as_str().filter(|text| !text.is_empty());
    match (field("namespace"), field("name").or_else(|| field("generateName"))) {
        (Some(namespace), Some(name)) => format!("{kind} {namespace}/{name}"),
        (None, Some(name)) => format!("{kind} {name}"),
        (_, None) => kind.to_string(),
    }
}

fn missing_kind(text: Text<'_>) -> DecodeError {
    let value = to_value(text).unwrap_or_default();
    let name = value["metadata"]["name"].as_str().unwrap_or_default();
    DecodeError {
        object: name.into(),
        path: "kind".into(),
        message: "is missing, so nothing says what this object is".into(),
        position: Some((1, 1)),
        ..DecodeError::default()
    }
}

fn types_of(text: Text<'_>) -> Result<TypeMeta, DecodeError> {
    match text {
        Text::Json(json) => serde_json::from_str(json).map_err(|error| json_error(&error)),
        Text::Yaml(text) => yaml::from_str(text).map_err(|error| yaml_error(&error)),
    }
}

fn has_merge_keys(text: Text<'_>) -> bool {
    matches!(text, Text::Yaml(yaml) if yaml.contains("<<:"))
}

fn to_value(text: Text<'_>) -> Result<serde_json::Value, DecodeError> {
    match text {
        Text::Json(json) => serde_json::from_str(json).map_err(|error| json_error(&error)),
        Text::Yaml(yaml) if has_merge_keys(text) => {
            let mut value: serde_yaml::Value =
                yaml::from_str(yaml).map_err(|error| yaml_error(&error))?;
            value.apply_merge().map_err(|error| yaml_error(&error))?;
            serde_json::Value::deserialize(value).map_err(|error| yaml_error(&error))
        }
        Text::Yaml(text) => yaml::from_str(text).map_err(|error| yaml_error(&error)),
    }
}

/// The decoder's message without its position at the end.
pub fn json_error(error: &serde_json::Error) -> DecodeError {
    let position = (error.line() > 0).then(|| (error.line(), error.column().max(1)));
    let message = error.to_string();
    let suffix = format!(" at line {} column {}", error.line(), error.column());
    DecodeError {
        message: message.strip_suffix(&suffix).unwrap_or(&message).into(),
        position,
        ..Default::default()
    }
}

/// The decoder's message without its position at the end.
pub fn yaml_error(error: &serde_yaml::Error) -> DecodeError {
    let position = error.location().map(|at| (at.line(), at.column()));
    let mut message = error.to_string();
    if let Some((line, column)) = position {
        message = message.replacen(&format!(" at line {line} column {column}"), "", 1);
    }
    DecodeError { message, position, ..Default::default() }
}

#[cfg(test)]
mod tests;
