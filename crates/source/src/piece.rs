//! Text out of a file that remembers where in the file it stood, so that errors name the place
//! in the file.

use super::error::{SourceError, help_for, plain};
use super::item::Item;
use super::reader::line_ends;
use kubestep_api::DecodeError;
use kubestep_api::decode::json_error;

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// From 1.
    pub line: u32,
    /// Bytes before it in its line.
    pub column: usize,
}

impl Place {
    /// Where every file begins.
    pub const START: Place = Place { line: 1, column: 0 };

    /// The place behind a text that begins here.
    pub fn after(self, text: &str) -> Place {
        let bytes = text.as_bytes();
        match bytes.iter().rposition(|byte| *byte == b'\n') {
            None => Place { column: self.column + bytes.len(), ..self },
            Some(last) => {
                Place { line: self.line + line_ends(bytes) as u32, column: bytes.len() - last - 1 }
            }
        }
    }
}

/// A part of a file's text, or all of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'a> {
    /// The file as it was named.
    pub name: &'a str,
    pub text: &'a str,
    /// Where in the file it begins.
    pub start: Place,
}

impl Piece<'_> {
    /// A decoder's error about an object, placed in the file.
    pub fn error(&self, item: &Item<'_>, error: DecodeError) -> Box<SourceError> {
        let (line, column) = item.place(error.position);
        let error = SourceError {
            file: self.name.into(),
            document: item.document,
            line,
            column,
            help: help_for(&error.path, &error.message).into(),
            object: error.object,
            path: error.path,
            message: plain(&error.message),
            snippet: None,
        };
        error.with_snippet(self)
    }

    /// A parser's error about the text from `from` on, placed in the file.
    pub fn syntax_error(
        &self,
        document: u32,
        from: usize,
        error: &serde_json::Error,
    ) -> Box<SourceError> {
        let before = self.start.after(&self.text[..from]);
        // At the text's end the parser names the last character, which is none in an empty text.
        let column = if error.line() <= 1 { before.column } else { 0 } + error.column();
        let line = before.line as usize + error.line().max(1) - 1;
        let error = json_error(error);
        let error = SourceError {
            file: self.name.into(),
            document,
            line,
            column: column.max(1),
            help: help_for("", &error.message).into(),
            message: error.message,
            ..Default::default()
        };
        error.with_snippet(self)
    }
}
