//! The one error of reading input: where, what, and what to do about it.

use std::fmt;

use super::STDIN;

/// Columns of the offending line that are shown.
const SNIPPET_WIDTH: usize = 76;

/// Why the input could not be read. Prints as several lines: what, where, the line in
/// question with a caret, and what to do.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
pub struct SourceError {
    /// The file as it was named, `-` for standard input, "" for none.
    pub file: String,
    /// The document within the file, from 1; 0 if it is not about a document.
    pub document: u32,
    /// The line within the file, from 1; 0 if unknown.
    pub line: usize,
    /// The column, from 1; 0 if unknown.
    pub column: usize,
    /// The object as far as known: `Pod shop/web-0`.
    pub object: String,
    /// The field: `spec.containers[0].image`.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// The line's text, shortened, and the place of the column in it.
    pub snippet: Option<(String, usize)>,
    /// What to do.
    pub help: String,
}

impl SourceError {
    /// The error of a reading that was stopped.
    pub fn cancelled() -> Box<SourceError> {
        let message = "reading the input was cancelled".into();
        Box::new(SourceError { message, ..Default::default() })
    }

    /// True if reading was stopped.
    pub fn is_cancelled(&self) -> bool {
        *self == *SourceError::cancelled()
    }

    /// An error about a file as a whole.
    pub(super) fn of_file(file: &str, message: String, help: &str) -> Box<SourceError> {
        let (file, help) = (file.into(), help.into());
        Box::new(SourceError { file, message, help, ..Default::default() })
    }

    /// Adds the line in question out of the file's text.
    pub(super) fn with_snippet(mut self, text: &str) -> Box<SourceError> {
        let line = self.line.checked_sub(1).and_then(|at| text.split('\n').nth(at));
        self.snippet = line.map(|line| shorten(line.trim_end_matches('\r'), self.column.max(1)));
        Box::new(self)
    }

    fn place(&self) -> String {
        let mut place =
            if self.file == STDIN { "standard input".to_string() } else { self.file.clone() };
        for number in [self.line, self.column] {
            if number > 0 {
                place += &format!(":{number}");
            }
        }
        if self.document > 0 {
            place += &format!(" (document {})", self.document);
        }
        place
    }
}

/// The part of a line around a column, and the column's place in it, both in characters.
fn shorten(line: &str, column: usize) -> (String, usize) {
    let length = line.chars().count();
    let at = (column - 1).min(length);
    let from = if length <= SNIPPET_WIDTH { 0 } else { at.saturating_sub(SNIPPET_WIDTH / 2) };
    // A tab would put the caret in the wrong place.
    let shown: String = line
        .chars()
        .skip(from)
        .take(SNIPPET_WIDTH)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let (lead, at) = if from > 0 { ("…", at - from + 1) } else { ("", at) };
    let tail = if from + SNIPPET_WIDTH < length { "…" } else { "" };
    (format!("{lead}{shown}{tail}"), at)
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in [&self.object, &self.path] {
            if !part.is_empty() {
                write!(f, "{part}: ")?;
            }
        }
        write!(f, "{}", self.message)?;
        if !self.file.is_empty() {
            write!(f, "\n  --> {}", self.place())?;
        }
        if let Some((text, at)) = &self.snippet {
            let number = self.line.to_string();
            let margin = " ".repeat(number.len());
            write!(f, "\n {margin} |\n {number} | {text}\n {margin} | {}^", " ".repeat(*at))?;
        }
        if !self.help.is_empty() {
            write!(f, "\n  help: {}", self.help)?;
        }
        Ok(())
    }
}

/// What to do about a decoder's message.
pub(super) fn help_for(path: &str, message: &str) -> &'static str {
    let has = |part: &str| message.contains(part);
    if has("is not a quantity") {
        "write an amount such as 500m, 2 or 1Gi"
    } else if has("expected a string") && (has("integer") || has("boolean") || has("float")) {
        "put the value in quotes"
    } else if has("expected a boolean") {
        "write true or false, without quotes"
    } else if has("expected i32") || has("expected i64") || has("expected u32") {
        "write a whole number, without quotes and without leading zeros"
    } else if path == "kind" || has("nothing says what") {
        "add apiVersion and kind, or leave the file out"
    } else if has("duplicate field") {
        "keep the field once"
    } else if has("cannot start any token") {
        "indent with spaces instead of tabs"
    } else if has("EOF while") {
        "the text ends too early: was the file cut off?"
    } else {
        "correct this and try again; nothing of the input was used"
    }
}
