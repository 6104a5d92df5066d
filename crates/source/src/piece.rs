//! A part of a file's text that knows its position, so that errors refer to positions in the file.

use super::error::{SourceError, help_for, plain};
use super::item::SourceItem;
use super::reader::line_ends;
use kubestep_api::DecodeError;
use kubestep_api::decode::json_error;

/// A position in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TextPosition {
    /// The line, from 1.
    pub line: u32,
    /// Bytes before it in its line.
    pub column: usize,
}

impl TextPosition {
    /// The start of a file.
    pub const START: TextPosition = TextPosition { line: 1, column: 0 };

    /// The position after a text that starts here.
    pub fn after(self, text: &str) -> TextPosition {
        let bytes = text.as_bytes();
        match bytes.iter().rposition(|byte| *byte == b'\n') {
            None => TextPosition { column: self.column + bytes.len(), ..self },
            Some(last) => TextPosition {
                line: self.line + line_ends(bytes) as u32,
                column: bytes.len() - last - 1,
            },
        }
    }
}

/// A part of a file's text, or all of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'a> {
    /// The file as it was named.
    pub name: &'a str,
    pub text: &'a str,
    /// The position in the file at which it starts.
    pub start: TextPosition,
}

impl Piece<'_> {
    /// A decoder's error about an object, with its position in the file.
    pub fn error(&self, item: &SourceItem<'_>, error: DecodeError) -> Box<SourceError> {
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

    /// A parser's error about the text from `from` on, with its position in the file.
    pub(crate) fn syntax_error(
        &self,
        document: u32,
        from: usize,
        error: &serde_json::Error,
    ) -> Box<SourceError> {
        let before = self.start.after(&self.text[..from]);
        // At the end of the text the parser reports the last character, which an empty text does
        // not have.
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
