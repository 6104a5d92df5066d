//! The top level of large JSON: consecutive documents, including lists and exports whose items are
//! decoded while they are read.

use rayon::prelude::*;

use super::FoundObject;
use super::chunk::{self, DecodedObject, Sequence, is_single};
use super::feed::TextFeed;
use super::relay;
use crate::error::SourceError;
use crate::item::{DecodedItem, Envelope, Expected, ItemText, SourceItem, is_list};
use crate::json::{LineCounter, ObjectTexts, first_document};
use crate::piece::{Piece, TextPosition};
use crate::{add, decode};
use kubestep_api::Kind;

type Result<T> = std::result::Result<T, Box<SourceError>>;

/// Reads all documents of the file.
pub(super) fn read(feed: TextFeed<'_>) -> Result<Vec<FoundObject>> {
    let mut reading = Documents { feed, number: 0, found: Vec::new() };
    while let Some(first) = reading.feed.next()? {
        // Reads enough to decode the first fields of a document.
        while reading.feed.rest().len() < reading.feed.limits.whole && reading.feed.fill()? {}
        let read = is_single(reading.feed.rest()) && reading.singles()?;
        if !read && !reading.small()? {
            reading.number += 1;
            match first {
                b'[' => reading.array()?,
                _ => reading.object()?,
            }
        }
    }
    Ok(reading.found)
}

struct Documents<'p> {
    feed: TextFeed<'p>,
    /// Number of documents so far.
    number: u32,
    found: Vec<FoundObject>,
}

/// The fields of a document read so far.
#[derive(Default)]
struct DocumentFields {
    api_version: Option<String>,
    kind: Option<String>,
    items: Option<Vec<DecodedObject>>,
    /// The fields of an export, in order.
    exported: Vec<(Expected, Vec<DecodedObject>)>,
}

impl Documents<'_> {
    /// Reads consecutive documents that are single objects. `false` if there was none.
    fn singles(&mut self) -> Result<bool> {
        let before = self.number;
        let decoded = relay::decode(&mut self.feed, Sequence::Documents, &mut self.number)?;
        self.keep(decoded, Expected::Anything)?;
        Ok(self.number > before)
    }

    /// Reads a document that is held as a whole. `false` if it is too large for that.
    fn small(&mut self) -> Result<bool> {
        loop {
            let wrong = match first_document(self.feed.rest()) {
                Ok(Some((parts, length))) => {
                    let found = decode_parts(&self.feed, self.number + 1, parts)?;
                    self.found.extend(found);
                    self.feed.take(length);
                    self.number += 1;
                    return Ok(true);
                }
                Ok(None) => return Ok(true),
                Err(error) => error,
            };
            if wrong.is_eof() && self.feed.rest().len() >= self.feed.limits.whole {
                return Ok(false);
            }
            if !wrong.is_eof() || !self.feed.grow()? {
                return Err(self.feed.piece().syntax_error(self.number + 1, 0, &wrong));
            }
        }
    }

    /// Reads a document that is an array: `[…]`.
    fn array(&mut self) -> Result<()> {
        let decoded = self.items(Some(Expected::Anything))?;
        self.keep(decoded, Expected::Anything)
    }

    /// Reads the items of a list, from its `[` to its `]`.
    fn items(&mut self, expected: Option<Expected>) -> Result<Vec<DecodedObject>> {
        self.feed.take(1);
        self.feed.next()?;
        let sequence = Sequence::Items(expected);
        let decoded = relay::decode(&mut self.feed, sequence, &mut self.number)?;
        self.feed.take(1);
        Ok(decoded)
    }

    /// Reads a document that is an object: `{…}`.
    fn object(&mut self) -> Result<()> {
        let mut fields = DocumentFields::default();
        let start = self.feed.piece().start;
        self.feed.take(1);
        let mut before = "{";
        loop {
            match self.feed.next()? {
                Some(b'"') => self.field(&mut fields)?,
                Some(b'}') if before == "{" => break,
                _ => return Err(self.does_not_follow(before)),
            }
            match self.feed.next()? {
                Some(b',') => self.feed.take(1),
                Some(b'}') => break,
                _ => return Err(self.does_not_follow("{\"a\":0")),
            }
            before = "{\"a\":0,";
        }
        self.feed.take(1);
        self.finish(fields, start)
    }

    /// Reads a field's name and value.
    fn field(&mut self, fields: &mut DocumentFields) -> Result<()> {
        let name: String = self.value()?;
        match self.feed.next()? {
            Some(b':') => self.feed.take(1),
            _ => return Err(self.does_not_follow("{\"a\"")),
        }
        let is_list = self.feed.next()? == Some(b'[');
        let place = self.feed.piece().start;
        match (name.as_str(), Expected::of_simulator_field(&name)) {
            ("apiVersion", _) => fields.api_version = Some(self.value()?),
            ("kind", _) => fields.kind = Some(self.value()?),
            ("items", _) if is_list && fields.may_be_list() => {
                fields.items = Some(self.items(fields.expected())?);
            }
            (_, Some(expected)) if expected.is_single() => {
                let content = chunk::ChunkItem::Unnamed(self.feed.value(self.number)?);
                let decoded = DecodedObject { document: self.number, place, content };
                fields.exported.push((expected, vec![decoded]));
            }
            (_, Some(expected)) if is_list && fields.may_be_export() => {
                fields.exported.push((expected, self.items(Some(expected))?));
            }
            (_, expected) => {
                self.feed.value(self.number)?;
                // A field of an export identifies one even without a list.
                fields.exported.extend(expected.map(|expected| (expected, Vec::new())));
            }
        }
        Ok(())
    }

    /// Reads the next value, which has to be a string.
    fn value(&mut self) -> Result<String> {
        let text = self.feed.value(self.number)?;
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }

    fn finish(&mut self, fields: DocumentFields, start: TextPosition) -> Result<()> {
        let kind = fields.kind.clone().unwrap_or_default();
        let api_version = fields.api_version.clone().unwrap_or_default();
        let is_export = !fields.exported.is_empty();
        match Envelope::of(&api_version, &kind, fields.items.is_some(), is_export) {
            Envelope::List(expected) => self.keep(fields.items.unwrap_or_default(), expected),
            Envelope::Export => {
                let mut exported = fields.exported.into_iter();
                exported.try_for_each(|(expected, decoded)| self.keep(decoded, expected))
            }
            Envelope::Single if !kind.is_empty() && Kind::of(&api_version, &kind).is_none() => {
                let outcome = match is_list(&kind) {
                    true => DecodedItem::Nothing,
                    false => DecodedItem::Unread(kind.as_str().into()),
                };
                self.found.push(FoundObject { document: self.number, line: start.line, outcome });
                Ok(())
            }
            Envelope::Single => Err(self.too_large(&kind, start)),
        }
    }

    /// Stores decoded objects; those that do not contain their kind are of the expected one.
    fn keep(&mut self, decoded: Vec<DecodedObject>, expected: Expected) -> Result<()> {
        let name = self.feed.name();
        let is_checked = self.feed.is_checked;
        let settle = |one| settle(name, one, expected, is_checked);
        let found: Vec<Result<FoundObject>> = decoded.into_par_iter().map(settle).collect();
        for found in found {
            self.found.push(found?);
        }
        Ok(())
    }

    /// The parser's error for text that cannot follow a document that begins with `before`.
    fn does_not_follow(&self, before: &str) -> Box<SourceError> {
        let text = format!("{before}{}", self.feed.rest());
        let piece = self.feed.piece();
        match serde_json::from_str::<serde::de::IgnoredAny>(&text) {
            Err(error) => {
                let mut placed = piece.syntax_error(self.number, 0, &error);
                if error.line() <= 1 {
                    placed.column = placed.column.saturating_sub(before.len()).max(1);
                }
                placed
            }
            Ok(_) => self.too_large("", piece.start),
        }
    }

    fn too_large(&self, kind: &str, start: TextPosition) -> Box<SourceError> {
        Box::new(SourceError {
            file: self.feed.name().into(),
            document: self.number,
            line: start.line as usize,
            object: kind.into(),
            message: "is larger than any object of a cluster, and not a list".into(),
            help: "give the list the kind List, or omit the file".into(),
            ..SourceError::default()
        })
    }
}

impl DocumentFields {
    /// Whether a list in a field `items` is the document's, as far as it is read.
    fn may_be_list(&self) -> bool {
        let kind = self.kind.as_deref().unwrap_or_default();
        matches!(Envelope::of("", kind, true, false), Envelope::List(_))
    }

    /// Whether a field of an export is one, as far as the document is read.
    fn may_be_export(&self) -> bool {
        let kind = self.kind.as_deref().unwrap_or_default();
        matches!(Envelope::of("", kind, false, true), Envelope::Export)
    }

    /// The expected kind of the items, if it is known already.
    fn expected(&self) -> Option<Expected> {
        Some(Expected::of_list(self.api_version.as_deref()?, self.kind.as_deref()?))
    }
}

/// Decodes the parts of the document at the start of the window.
fn decode_parts(
    feed: &TextFeed<'_>,
    document: u32,
    parts: ObjectTexts<'_>,
) -> Result<Vec<FoundObject>> {
    let piece = feed.piece();
    let mut counter = LineCounter::new(piece);
    let items: Vec<SourceItem<'_>> =
        parts.into_iter().map(|(text, expected)| counter.item(text, document, expected)).collect();
    add(&feed.progress().found, items.len());
    let checked = if feed.is_checked { usize::MAX } else { 0 };
    let outcomes = decode(&piece, &items, checked, feed.progress())?;
    let found =
        |(item, outcome): (&SourceItem<'_>, _)| FoundObject { document, line: item.line, outcome };
    Ok(items.iter().zip(outcomes).map(found).collect())
}

fn settle(
    file: &str,
    decoded: DecodedObject,
    expected: Expected,
    is_checked: bool,
) -> Result<FoundObject> {
    let DecodedObject { document, place, content } = decoded;
    let outcome = match content {
        chunk::ChunkItem::Outcome(outcome) => outcome,
        chunk::ChunkItem::Unnamed(text) => {
            let content = ItemText::Json { text: &text, column: place.column };
            let item = SourceItem { document, line: place.line, content, expected };
            let piece = Piece { name: file, text: &text, start: place };
            item.decode(is_checked).map_err(|error| piece.error(&item, error))?
        }
    };
    Ok(FoundObject { document, line: place.line, outcome })
}
