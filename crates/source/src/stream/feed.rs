//! The window on a file: text that was read and not consumed yet.

use serde_json::value::RawValue;

use crate::error::SourceError;
use crate::piece::{Piece, TextPosition};
use crate::reader::TextReader;
use crate::{MemoryLimits, Progress};
use kubestep_api::object::leading_value;

/// Longest marker, in bytes.
const MARKER: usize = 256;

/// Text that was read and not consumed yet.
pub(super) struct TextFeed<'p> {
    reader: TextReader<'p>,
    pub limits: MemoryLimits,
    /// Whether unknown fields are reported.
    pub is_checked: bool,
    text: String,
    /// Bytes of `text` that were consumed.
    at: usize,
    /// The position in the file after them.
    place: TextPosition,
    ended: bool,
}

/// The beginning of an object: `{`, whitespace and the first field's name. All objects that one
/// program writes into a list begin alike, and nested objects have another indentation or rarely
/// begin like that.
pub(super) struct Marker(String);

/// A piece of text that was split off.
pub(super) struct TextPiece {
    pub text: String,
    pub place: TextPosition,
    /// Whether it is the last one.
    pub is_last: bool,
    /// Whether it may end within an object.
    pub is_loose: bool,
}

impl<'p> TextFeed<'p> {
    /// A window on the file that begins with `text`.
    pub fn new(
        reader: TextReader<'p>,
        text: String,
        limits: MemoryLimits,
        is_checked: bool,
    ) -> TextFeed<'p> {
        TextFeed {
            reader,
            limits,
            is_checked,
            text,
            at: 0,
            place: TextPosition::START,
            ended: false,
        }
    }

    /// The path of the file as it was named.
    pub fn name(&self) -> &str {
        &self.reader.name
    }

    pub fn progress(&self) -> &'p Progress {
        self.reader.progress()
    }

    /// The text in the window.
    pub fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// The text in the window, with its position.
    pub fn piece(&self) -> Piece<'_> {
        Piece { name: self.name(), text: self.rest(), start: self.place }
    }

    /// Goes on behind the next `length` bytes.
    pub fn take(&mut self, length: usize) {
        self.place = self.place.after(&self.rest()[..length]);
        self.at += length;
    }

    /// Reads the next block. `false` at the end of the file.
    pub fn fill(&mut self) -> Result<bool, Box<SourceError>> {
        if !self.ended {
            self.text.drain(..std::mem::take(&mut self.at));
            self.ended = !self.reader.read_more(&mut self.text)?;
        }
        Ok(!self.ended)
    }

    /// Consumes whitespace and returns the next byte without consuming it; `None` at the end of the
    /// file.
    pub fn next(&mut self) -> Result<Option<u8>, Box<SourceError>> {
        loop {
            let blank = blanks(self.rest());
            self.take(blank);
            if let Some(byte) = self.rest().bytes().next() {
                return Ok(Some(byte));
            }
            if !self.fill()? && self.rest().is_empty() {
                return Ok(None);
            }
        }
    }

    /// Consumes the next value and returns its text.
    pub fn value(&mut self, document: u32) -> Result<String, Box<SourceError>> {
        loop {
            let read = leading_value::<&RawValue>(self.rest());
            let read = read.map(|(value, length)| (value.get().to_string(), length));
            match read {
                // A number at the end of the window may continue.
                Ok((_, length)) if length == self.rest().len() && self.grow()? => {}
                Ok((value, length)) => {
                    self.take(length);
                    return Ok(value);
                }
                Err(error) if error.is_eof() && self.grow()? => {}
                Err(error) => return Err(self.piece().syntax_error(document, 0, &error)),
            }
        }
    }

    /// Reads until the window has doubled. `false` if the file has ended.
    pub fn grow(&mut self) -> Result<bool, Box<SourceError>> {
        let before = self.rest().len();
        while self.rest().len() < 2 * before.max(1) && self.fill()? {}
        Ok(self.rest().len() > before)
    }

    /// Splits off about `size` bytes, before an object that begins with `marker` and follows
    /// `before`. `None` if no text is left.
    pub fn cut(
        &mut self,
        marker: &Marker,
        before: char,
        size: usize,
    ) -> Result<Option<TextPiece>, Box<SourceError>> {
        loop {
            let window = floor_char(self.rest(), 2 * size);
            let begins = marker.last_in(&self.rest()[..window], before);
            let all = self.ended && window == self.rest().len();
            if self.ended && self.rest().is_empty() {
                return Ok(None);
            }
            if all && window <= size {
                return Ok(Some(self.cut_off(window, false)));
            }
            match begins {
                Some(at) if window >= size => return Ok(Some(self.cut_off(at, false))),
                _ if all => return Ok(Some(self.cut_off(window, false))),
                _ if window < self.rest().len() => return Ok(Some(self.cut_off(window, true))),
                _ => self.fill()?,
            };
        }
    }

    fn cut_off(&mut self, length: usize, is_loose: bool) -> TextPiece {
        let (text, place) = (self.rest()[..length].to_string(), self.place);
        self.take(length);
        TextPiece { text, place, is_last: self.ended && self.rest().is_empty(), is_loose }
    }

    /// Puts back texts that were split off, which have to be consecutive up to the window; the
    /// first starts at `place`.
    pub(crate) fn put_back<'a>(
        &mut self,
        place: TextPosition,
        texts: impl Iterator<Item = &'a str>,
    ) {
        let mut text: String = texts.collect();
        text.push_str(self.rest());
        (self.text, self.at, self.place) = (text, 0, place);
    }

    /// The beginning of the next object.
    pub fn marker(&self) -> Marker {
        let rest = self.rest();
        let blank = |at: &usize| rest.get(1..*at).is_some_and(|text| text.trim().is_empty());
        let name = rest.find('"').filter(blank);
        let end = name.and_then(|at| rest[at + 1..].find('"').map(|end| at + end + 2));
        let first = rest.chars().next().map_or(0, char::len_utf8);
        Marker(rest[..end.filter(|end| *end <= MARKER).unwrap_or(first)].to_string())
    }
}

impl Marker {
    fn last_in(&self, text: &str, before: char) -> Option<usize> {
        let mut found = text.rmatch_indices(&self.0).map(|(at, _)| at);
        found.find(|at| *at > 0 && text[..*at].trim_ascii_end().ends_with(before))
    }
}

/// Length of the JSON whitespace at the start of the text, in bytes.
pub(super) fn blanks(text: &str) -> usize {
    text.bytes().take_while(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t')).count()
}

/// The last character boundary up to `at`.
fn floor_char(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}
