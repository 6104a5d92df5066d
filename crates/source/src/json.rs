//! Splits JSON into objects: single objects, streams of them, lists, simulator exports.

use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::error::SourceError;
use super::item::{Envelope, Expected, ItemText, SourceItem};
use super::piece::{Piece, TextPosition};

/// Whether the text can be JSON at all.
pub(super) fn looks_like(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
}

/// Splits a text into its objects, without decoding them.
pub(super) fn split<'a>(piece: Piece<'a>) -> Result<Vec<SourceItem<'a>>, Box<SourceError>> {
    let mut items = Vec::new();
    let (mut at, mut number) = (0, 1);
    let mut counter = LineCounter::new(piece);
    while let Some((parts, length)) =
        first_document(&piece.text[at..]).map_err(|error| piece.syntax_error(number, at, &error))?
    {
        items.extend(parts.into_iter().map(|(text, kind)| counter.item(text, number, kind)));
        at += length;
        number += 1;
    }
    Ok(items)
}

/// The texts of a document's objects, with their expected kinds.
pub(super) type ObjectTexts<'a> = Vec<(&'a str, Expected)>;

/// Splits the first document of a text into its objects; also returns its length. `None` if only
/// whitespace is left.
pub(super) fn first_document(text: &str) -> serde_json::Result<Option<(ObjectTexts<'_>, usize)>> {
    let mut documents = serde_json::Deserializer::from_str(text).into_iter::<JsonDocument<'_>>();
    let Some(document) = documents.next() else { return Ok(None) };
    let document = document?;
    let length = documents.byte_offset();
    let parts = document.into_parts();
    Ok(Some((parts.unwrap_or_else(|| vec![(text[..length].trim(), Expected::Anything)]), length)))
}

/// Counts lines through the text; positions have to be requested in ascending order.
pub(super) struct LineCounter<'a> {
    piece: Piece<'a>,
    at: usize,
    place: TextPosition,
}

impl<'a> LineCounter<'a> {
    pub fn new(piece: Piece<'a>) -> LineCounter<'a> {
        LineCounter { piece, at: 0, place: piece.start }
    }

    /// A part of the text as an item.
    pub fn item(&mut self, text: &'a str, document: u32, expected: Expected) -> SourceItem<'a> {
        // A part of the text is a slice of it, so its address gives its offset.
        let at = text.as_ptr() as usize - self.piece.text.as_ptr() as usize;
        self.place = self.place.after(&self.piece.text[self.at.min(at)..at]);
        self.at = at;
        let content = ItemText::Json { text, column: self.place.column };
        SourceItem { document, line: self.place.line, content, expected }
    }
}

/// The top level of a document.
#[derive(Default)]
struct JsonDocument<'a> {
    api_version: Option<&'a RawValue>,
    kind: Option<&'a RawValue>,
    /// The field `items`, if it is a list.
    items: Option<Vec<&'a RawValue>>,
    /// The fields of a simulator export, in order.
    exported: Vec<(Expected, ListField<'a>)>,
}

impl<'a> JsonDocument<'a> {
    /// The objects of a list or an export with their expected kinds; `None` for a single object.
    fn into_parts(self) -> Option<ObjectTexts<'a>> {
        let (api_version, kind) = (string(self.api_version), string(self.kind));
        let is_export = !self.exported.is_empty();
        let each = |list: Vec<&'a RawValue>, expected: Expected| {
            let raw = list.into_iter().map(RawValue::get).filter(|raw| *raw != "null");
            raw.map(move |raw| (raw, expected)).collect::<Vec<_>>()
        };
        match Envelope::of(&api_version, &kind, self.items.is_some(), is_export) {
            Envelope::List(expected) => Some(each(self.items.unwrap_or_default(), expected)),
            Envelope::Export => {
                let exported = self.exported.into_iter();
                let parts = exported.flat_map(|(expected, list)| match list {
                    ListField::Items(items) => each(items, expected),
                    ListField::Raw(raw) => each(vec![raw], expected),
                    ListField::None => Vec::new(),
                });
                Some(parts.collect())
            }
            Envelope::Single => None,
        }
    }
}

fn string(raw: Option<&RawValue>) -> String {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

impl<'de: 'a, 'a> serde::Deserialize<'de> for JsonDocument<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DocumentVisitor)
    }
}

struct DocumentVisitor;

impl<'de> Visitor<'de> for DocumentVisitor {
    type Value = JsonDocument<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a Kubernetes object or a list of them")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<JsonDocument<'de>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(JsonDocument { items: Some(items), ..JsonDocument::default() })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonDocument<'de>, A::Error> {
        let mut document = JsonDocument::default();
        while let Some(field) = map.next_key::<String>()? {
            match (field.as_str(), Expected::of_simulator_field(&field)) {
                ("apiVersion", _) => document.api_version = Some(map.next_value()?),
                ("kind", _) => document.kind = Some(map.next_value()?),
                ("items", _) => {
                    if let ListField::Items(items) = map.next_value()? {
                        document.items = Some(items);
                    }
                }
                (_, Some(expected)) if expected.is_single() => {
                    document.exported.push((expected, ListField::Raw(map.next_value()?)));
                }
                (_, Some(expected)) => document.exported.push((expected, map.next_value()?)),
                (_, None) => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(document)
    }
}

/// A field that may be a list, split in the same pass.
enum ListField<'a> {
    Items(Vec<&'a RawValue>),
    /// A list that is not split yet.
    Raw(&'a RawValue),
    /// Not a list: `null`, or the field of another kind of object.
    None,
}

impl<'de: 'a, 'a> serde::Deserialize<'de> for ListField<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListVisitor)
    }
}

struct ListVisitor;

impl<'de> Visitor<'de> for ListVisitor {
    type Value = ListField<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<ListField<'de>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(ListField::Items(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ListField<'de>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(ListField::None)
    }

    fn visit_unit<E>(self) -> Result<ListField<'de>, E> {
        Ok(ListField::None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<ListField<'de>, E> {
        Ok(ListField::None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<ListField<'de>, E> {
        Ok(ListField::None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<ListField<'de>, E> {
        Ok(ListField::None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<ListField<'de>, E> {
        Ok(ListField::None)
    }

    fn visit_str<E>(self, _: &str) -> Result<ListField<'de>, E> {
        Ok(ListField::None)
    }
}
