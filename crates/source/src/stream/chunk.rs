//! A chunk of text with consecutive objects, and its decoding.

use serde_json::value::RawValue;

use super::feed::blanks;
use crate::error::SourceError;
use crate::item::{DecodedItem, Expected, ItemText, SourceItem};
use crate::piece::{Piece, TextPosition};
use kubestep_api::Kind;
use kubestep_api::decode::{DecodeError, decode_leading, leading_kind};
use kubestep_api::intern::Symbol;
use kubestep_api::object::leading_value;

/// Number of bytes in which a document has to state its kind.
const HEADER: usize = 256;

/// How consecutive objects are separated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Sequence {
    /// Items of a list with their expected kind; `None` if unknown, because the kind may follow the
    /// items.
    Items(Option<Expected>),
    /// Documents, each an object whose first fields state its kind.
    Documents,
}

/// A chunk of text. Starts with an object, or with the end of an empty list.
pub(super) struct Chunk {
    pub file: Symbol,
    pub text: String,
    pub place: TextPosition,
    pub sequence: Sequence,
    /// Whether unknown fields are reported.
    pub is_checked: bool,
    /// Whether it follows the `[` of a list.
    pub is_first: bool,
    /// Whether it is the last one.
    pub is_last: bool,
}

/// The result of decoding a chunk.
pub(super) struct DecodedChunk {
    pub found: Vec<DecodedObject>,
    /// Number of bytes that were decoded.
    pub used: usize,
    pub end: ChunkEnd,
}

/// A decoded object of a chunk.
pub(super) struct DecodedObject {
    /// The document: from 1 within the chunk, or 0 in a list.
    pub document: u32,
    pub place: TextPosition,
    pub content: ChunkItem,
}

pub(super) enum ChunkItem {
    Outcome(DecodedItem),
    /// The text of an object that does not contain its kind.
    Unnamed(String),
}

/// Where decoding of a chunk ended.
pub(super) enum ChunkEnd {
    /// At the end of the chunk, where the next object has to start.
    Full,
    /// Before the `]` of the list.
    Closed,
    /// Before a document that has to be parsed as a whole.
    Other,
    /// Before an object that extends beyond the chunk.
    Short,
    /// At an error; its document is counted like those of the objects.
    Wrong(Box<SourceError>),
}

/// The next object of a chunk.
enum NextObject {
    Object(ChunkItem, usize),
    End(ChunkEnd),
}

/// The state of decoding a chunk.
struct Cursor {
    at: usize,
    place: TextPosition,
    document: u32,
    /// Whether an item has to follow, because of a comma before it.
    expects_item: bool,
}

impl Chunk {
    /// Decodes the text into objects, each with its place in the file.
    pub fn decode(&self) -> DecodedChunk {
        let document = u32::from(self.sequence == Sequence::Documents);
        let expects_item = !self.is_first;
        let mut cursor = Cursor { at: 0, place: self.place, document, expects_item };
        let mut found = Vec::new();
        let end = loop {
            let blank = blanks(&self.text[cursor.at..]);
            self.pass(&mut cursor, blank);
            match self.object(&cursor) {
                Ok((decoded, length)) => {
                    found.push(decoded);
                    cursor.expects_item = self.text[..cursor.at + length].ends_with(',');
                    self.pass(&mut cursor, length);
                    cursor.document += u32::from(self.sequence == Sequence::Documents);
                }
                Err(end) => break end,
            }
        };
        DecodedChunk { found, used: cursor.at, end }
    }

    fn pass(&self, cursor: &mut Cursor, length: usize) {
        cursor.place = cursor.place.after(&self.text[cursor.at..cursor.at + length]);
        cursor.at += length;
    }

    /// The object at the cursor, and the length of its text with the comma.
    fn object(&self, cursor: &Cursor) -> Result<(DecodedObject, usize), ChunkEnd> {
        let in_list = self.sequence != Sequence::Documents;
        match self.text.as_bytes().get(cursor.at) {
            None if in_list && self.is_last => {
                let start = if cursor.expects_item { "[0," } else { "[" };
                return Err(self.wrong_list(start, cursor.at, cursor.document));
            }
            None => return Err(ChunkEnd::Full),
            Some(b']') if in_list && cursor.expects_item => {
                return Err(self.wrong_list("[0,", cursor.at, cursor.document));
            }
            Some(b']') if in_list => return Err(ChunkEnd::Closed),
            Some(_) => {}
        }
        match self.next(cursor.at, cursor.place, cursor.document) {
            NextObject::Object(content, length) => {
                let comma = self.comma(cursor.at + length, cursor.document)?;
                let (document, place) = (cursor.document, cursor.place);
                Ok((DecodedObject { document, place, content }, length + comma))
            }
            NextObject::End(end) => Err(end),
        }
    }

    /// Bytes up to and including the comma after an item; 0 if the list or the document ends.
    fn comma(&self, at: usize, document: u32) -> Result<usize, ChunkEnd> {
        if self.sequence == Sequence::Documents {
            return Ok(0);
        }
        let blank = blanks(&self.text[at..]);
        match self.text.as_bytes().get(at + blank) {
            Some(b',') => Ok(blank + 1),
            Some(b']') => Ok(0),
            None if !self.is_last => Err(ChunkEnd::Short),
            _ => Err(self.wrong_list("[0", at, document)),
        }
    }

    /// The parser's error for a list with this beginning that continues with the text from `at`.
    fn wrong_list(&self, start: &str, at: usize, document: u32) -> ChunkEnd {
        let text = format!("{start}{}", &self.text[at..]);
        let parsed = serde_json::from_str::<serde::de::IgnoredAny>(&text);
        let Err(error) = parsed else { return ChunkEnd::Closed };
        let mut placed = self.piece().syntax_error(document, at, &error);
        if error.line() <= 1 {
            placed.column = placed.column.saturating_sub(start.len()).max(1);
        }
        ChunkEnd::Wrong(placed)
    }

    fn piece(&self) -> Piece<'_> {
        Piece { name: self.file.as_str(), text: &self.text, start: self.place }
    }

    /// Parses the object at a position.
    fn next(&self, at: usize, place: TextPosition, document: u32) -> NextObject {
        let rest = &self.text[at..];
        let Some(expected) = self.expected(rest) else {
            let is_cut = rest.len() < HEADER && !self.is_last;
            return NextObject::End(if is_cut { ChunkEnd::Short } else { ChunkEnd::Other });
        };
        let item = |text| {
            let content = ItemText::Json { text, column: place.column };
            SourceItem { document, line: place.line, content, expected }
        };
        let kind = match expected {
            Expected::Kind(kind) | Expected::KindIn(kind, _) => Some(kind),
            _ => None,
        };
        if matches!(expected, Expected::Anything | Expected::Kind(_))
            && let Some((decoded, length)) = decode_leading(rest, kind)
        {
            let outcome = item(&rest[..length]).outcome(decoded, self.is_checked);
            return NextObject::Object(ChunkItem::Outcome(outcome), length);
        }
        match leading_value::<&RawValue>(rest) {
            Ok((text, length)) => match self.closely(&item(text.get()), text.get()) {
                Ok(found) => NextObject::Object(found, length),
                Err(error) => {
                    NextObject::End(ChunkEnd::Wrong(self.piece().error(&item(text.get()), error)))
                }
            },
            Err(error) if error.is_eof() && !self.is_last => NextObject::End(ChunkEnd::Short),
            Err(error) => {
                NextObject::End(ChunkEnd::Wrong(self.piece().syntax_error(document, at, &error)))
            }
        }
    }

    /// The expected kind of the object; `None` if this chunk cannot decide it.
    fn expected(&self, text: &str) -> Option<Expected> {
        match self.sequence {
            Sequence::Items(expected) => Some(expected.unwrap_or(Expected::Anything)),
            Sequence::Documents => is_single(text).then_some(Expected::Anything),
        }
    }

    /// Decodes an object that has an unusual form or is invalid.
    fn closely(&self, item: &SourceItem<'_>, text: &str) -> Result<ChunkItem, DecodeError> {
        if text == "null" {
            return Ok(ChunkItem::Outcome(DecodedItem::Nothing));
        }
        match item.decode(self.is_checked) {
            Err(error) if self.sequence == Sequence::Items(None) && error.path == "kind" => {
                Ok(ChunkItem::Unnamed(text.to_string()))
            }
            decoded => decoded.map(ChunkItem::Outcome),
        }
    }
}

/// Whether the first fields of a document show that it is a single object, not a list.
pub(super) fn is_single(text: &str) -> bool {
    let kind = leading_kind(text);
    kind.is_some_and(|kind| Kind::by_name(&kind).is_some() || !kind.ends_with("List"))
}
