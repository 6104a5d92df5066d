//! JSON cut into objects: single objects, streams of them, lists, simulator exports.

use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::error::{SourceError, help_for};
use super::files::File;
use super::item::{Content, Expected, Item};
use crate::api::decode::json_error;

/// True if the text can be JSON at all.
pub(super) fn looks_like(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
}

/// Cuts a file into its objects, without decoding them.
pub(super) fn split(file: &File) -> Result<Vec<Item<'_>>, Box<SourceError>> {
    let text = file.text.as_str();
    let mut items = Vec::new();
    let mut place = Place { text, at: 0, line: 1, line_start: 0 };
    let mut documents = serde_json::Deserializer::from_str(text).into_iter::<Document<'_>>();
    let mut number = 0;
    loop {
        let start = documents.byte_offset();
        let Some(document) = documents.next() else { return Ok(items) };
        number += 1;
        let document = document.map_err(|error| syntax_error(file, number, &error))?;
        let whole = text[start..documents.byte_offset()].trim();
        let mut found = |text, expected| {
            items.push(place.item(text, number, expected));
        };
        match document.into_parts() {
            Parts::Single => found(whole, Expected::Anything),
            Parts::Several(parts) => parts.into_iter().for_each(|(raw, kind)| found(raw, kind)),
        }
    }
}

fn syntax_error(file: &File, document: u32, error: &serde_json::Error) -> Box<SourceError> {
    let error = json_error(error);
    let (line, column) = error.position.unwrap_or_default();
    SourceError {
        file: file.name.clone(),
        document,
        line,
        column,
        help: help_for("", &error.message).into(),
        message: error.message,
        ..Default::default()
    }
    .with_snippet(&file.text)
}

/// Counts lines on the way through the text; places are asked for in ascending order.
struct Place<'a> {
    text: &'a str,
    at: usize,
    line: u32,
    line_start: usize,
}

impl<'a> Place<'a> {
    fn item(&mut self, text: &'a str, document: u32, expected: Expected) -> Item<'a> {
        // A part of the text knows its place by its address.
        let at = text.as_ptr() as usize - self.text.as_ptr() as usize;
        let passed = &self.text.as_bytes()[self.at.min(at)..at];
        self.line += passed.iter().filter(|byte| **byte == b'\n').count() as u32;
        if let Some(newline) = passed.iter().rposition(|byte| *byte == b'\n') {
            self.line_start = self.at + newline + 1;
        }
        self.at = at;
        let content = Content::Json { text, column: at - self.line_start };
        Item { document, line: self.line, content, expected }
    }
}

/// The outermost level of a document.
#[derive(Default)]
struct Document<'a> {
    api_version: Option<&'a RawValue>,
    kind: Option<&'a RawValue>,
    /// `items`, if it is a list.
    items: Option<Vec<&'a RawValue>>,
    /// The fields that a simulator's export has, in order.
    exported: Vec<(Expected, List<'a>)>,
    /// The document is an array.
    is_array: bool,
}

enum Parts<'a> {
    Single,
    Several(Vec<(&'a str, Expected)>),
}

impl<'a> Document<'a> {
    fn into_parts(self) -> Parts<'a> {
        let kind = string(self.kind);
        let expected = Expected::of_list(&string(self.api_version), &kind);
        let each = |list: Vec<&'a RawValue>, expected: Expected| {
            let raw = list.into_iter().map(RawValue::get).filter(|raw| *raw != "null");
            raw.map(move |raw| (raw, expected)).collect::<Vec<_>>()
        };
        match self.items {
            Some(items) if self.is_array || kind.is_empty() || kind.ends_with("List") => {
                Parts::Several(each(items, expected))
            }
            _ if kind.is_empty() && !self.exported.is_empty() => Parts::Several(
                self.exported
                    .into_iter()
                    .flat_map(|(expected, list)| match list {
                        List::Items(items) => each(items, expected),
                        List::Raw(raw) => each(vec![raw], expected),
                        List::None => Vec::new(),
                    })
                    .collect(),
            ),
            _ => Parts::Single,
        }
    }
}

fn string(raw: Option<&RawValue>) -> String {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

impl<'de: 'a, 'a> serde::Deserialize<'de> for Document<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DocumentVisitor)
    }
}

struct DocumentVisitor;

impl<'de> Visitor<'de> for DocumentVisitor {
    type Value = Document<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a Kubernetes object or a list of them")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Document<'de>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Document { items: Some(items), is_array: true, ..Document::default() })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Document<'de>, A::Error> {
        let mut document = Document::default();
        while let Some(field) = map.next_key::<String>()? {
            match (field.as_str(), Expected::of_simulator_field(&field)) {
                ("apiVersion", _) => document.api_version = Some(map.next_value()?),
                ("kind", _) => document.kind = Some(map.next_value()?),
                ("items", _) => {
                    if let List::Items(items) = map.next_value()? {
                        document.items = Some(items);
                    }
                }
                (_, Some(expected)) if expected.is_single() => {
                    document.exported.push((expected, List::Raw(map.next_value()?)));
                }
                (_, Some(expected)) => document.exported.push((expected, map.next_value()?)),
                (_, None) => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(document)
    }
}

/// A field that is a list, cut up in the same pass, or is something else.
enum List<'a> {
    Items(Vec<&'a RawValue>),
    /// Kept as it is.
    Raw(&'a RawValue),
    /// Not a list: `null`, or the field of some other kind of object.
    None,
}

impl<'de: 'a, 'a> serde::Deserialize<'de> for List<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListVisitor)
    }
}

struct ListVisitor;

impl<'de> Visitor<'de> for ListVisitor {
    type Value = List<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<List<'de>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(List::Items(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<List<'de>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(List::None)
    }

    fn visit_unit<E>(self) -> Result<List<'de>, E> {
        Ok(List::None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<List<'de>, E> {
        Ok(List::None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<List<'de>, E> {
        Ok(List::None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<List<'de>, E> {
        Ok(List::None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<List<'de>, E> {
        Ok(List::None)
    }

    fn visit_str<E>(self, _: &str) -> Result<List<'de>, E> {
        Ok(List::None)
    }
}
