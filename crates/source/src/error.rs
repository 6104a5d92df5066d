//! The error of reading input: where, what, and how to fix it.

use std::fmt;
use std::path::PathBuf;

use super::STDIN;
use super::piece::Piece;

/// Columns shown of the line with the error.
const SNIPPET_WIDTH: usize = 76;

/// Why a file could not be read as a whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {problem}", file.display())]
pub struct FileError {
    /// The path as it was named.
    pub file: PathBuf,
    /// What is wrong with it, and what to do.
    pub problem: String,
}

/// Why the input could not be read. Prints as several lines: what, where, the line with a caret,
/// and how to fix it.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
pub struct SourceError {
    /// The file as it was named, `-` for standard input, empty for none.
    pub file: String,
    /// The document within the file, from 1; 0 if it is not about a document.
    pub document: u32,
    /// The line within the file, from 1; 0 if unknown.
    pub line: usize,
    /// The column, from 1; 0 if unknown.
    pub column: usize,
    /// The object if known: `Pod shop/web-0`.
    pub object: String,
    /// The path of the field: `spec.containers[0].image`.
    pub path: String,
    /// What is wrong, in one sentence.
    pub message: String,
    /// The shortened line, and the index of the column in it.
    pub snippet: Option<(String, usize)>,
    /// How to fix it.
    pub help: String,
}

impl SourceError {
    /// The error of a cancelled read.
    pub fn cancelled() -> Box<SourceError> {
        let message = "reading the input was cancelled".into();
        Box::new(SourceError { message, ..Default::default() })
    }

    /// Whether reading was cancelled.
    pub fn is_cancelled(&self) -> bool {
        *self == *SourceError::cancelled()
    }

    /// An error about a file as a whole.
    pub(super) fn of_file(file: &str, message: String, help: &str) -> Box<SourceError> {
        let (file, help) = (file.into(), help.into());
        Box::new(SourceError { file, message, help, ..Default::default() })
    }

    /// Adds the line with the error, if it is part of the text.
    pub(super) fn with_snippet(mut self, piece: &Piece<'_>) -> Box<SourceError> {
        let Some(down) = self.line.checked_sub(piece.start.line as usize) else {
            return Box::new(self);
        };
        if may_hold_secrets(piece.text) {
            return Box::new(self);
        }
        // The first line may have started before the text.
        let cut = if down == 0 { piece.start.column } else { 0 };
        let column = self.column.saturating_sub(cut).max(1);
        let line = piece.text.split('\n').nth(down);
        self.snippet = line.map(|line| shorten(line.trim_end_matches('\r'), column));
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

/// Whether a text has objects whose lines must not appear in messages: secrets, config maps,
/// kubeconfigs.
fn may_hold_secrets(text: &str) -> bool {
    let is_mark = |c: char| c == '"' || c == '\'' || c == ':' || c.is_whitespace();
    let is_word = |c: char| !c.is_ascii_alphanumeric();
    let mut kinds = text.match_indices("kind").map(|(at, found)| {
        let rest = text[at + found.len()..].trim_start_matches(is_mark);
        rest.split(is_word).next().unwrap_or_default()
    });
    kinds.any(|kind| matches!(kind.trim_end_matches("List"), "Secret" | "ConfigMap" | "Config"))
}

/// The part of a line around a column, and the column's index in it, both in characters.
fn shorten(line: &str, column: usize) -> (String, usize) {
    let length = line.chars().count();
    let at = (column - 1).min(length);
    let from = if length <= SNIPPET_WIDTH { 0 } else { at.saturating_sub(SNIPPET_WIDTH / 2) };
    // A tab would misplace the caret.
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
        let of_file = self.document == 0 && !self.file.is_empty();
        let subject = if of_file { self.place() } else { String::new() };
        for part in [&subject, &self.object, &self.path] {
            if !part.is_empty() {
                write!(f, "{part}: ")?;
            }
        }
        write!(f, "{}", self.message)?;
        if !self.file.is_empty() && !of_file {
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

/// The decoder's message in common terms of YAML and JSON.
pub(super) fn plain(message: &str) -> String {
    let wrong = ["invalid type: ", "invalid value: "];
    let wrong = wrong.iter().find_map(|prefix| message.strip_prefix(prefix));
    let Some((got, expected)) = wrong.and_then(|text| text.split_once(", expected ")) else {
        return message.into();
    };
    let got = match got.split_once(' ') {
        Some(("string", text)) => format!("the text {text}"),
        Some(("integer" | "boolean", value)) => value.replace('`', ""),
        Some(("floating", value)) => value.trim_start_matches("point ").replace('`', ""),
        _ => match got {
            "map" => "a mapping".into(),
            "sequence" => "a list".into(),
            "null" | "unit value" => "nothing".into(),
            other => other.into(),
        },
    };
    let expected = match expected {
        "a sequence" => "a list",
        "a map" => "a mapping",
        "a string" => "a text",
        "a boolean" => "true or false",
        "i32" | "i64" | "u32" | "u64" => "a whole number",
        other if other.starts_with("struct ") => "a mapping",
        other => other,
    };
    format!("expected {expected}, got {got}")
}

/// How to fix the error in a decoder's message.
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
        "add apiVersion and kind, or omit the file"
    } else if has("duplicate field") {
        "keep the field once"
    } else if has("cannot start any token") {
        "indent with spaces instead of tabs"
    } else if has("EOF while") {
        "the text ends too early: is the file truncated?"
    } else {
        "correct this and try again; nothing was loaded"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoders_speak_of_lists_and_mappings() {
        for (message, expected) in [
            (
                "invalid type: string \"a\", expected a sequence",
                "expected a list, got the text \"a\"",
            ),
            ("invalid type: integer `2`, expected a string", "expected a text, got 2"),
            ("invalid type: boolean `true`, expected i32", "expected a whole number, got true"),
            (
                "invalid type: floating point `1.5`, expected i64",
                "expected a whole number, got 1.5",
            ),
            ("invalid type: map, expected a boolean", "expected true or false, got a mapping"),
            (
                "invalid type: sequence, expected struct ObjectMeta",
                "expected a mapping, got a list",
            ),
            ("duplicate field `image`", "duplicate field `image`"),
        ] {
            assert_eq!(plain(message), expected);
        }
    }

    #[test]
    fn lines_of_secrets_are_not_repeated() {
        for text in ["a: 1\nkind: Secret\n", "{\"kind\": \"ConfigMapList\"}", "kind: 'Config'"] {
            assert!(may_hold_secrets(text), "{text}");
        }
        for text in ["kind: Pod\n# Secret", "kind: ConfigSomething", "kind"] {
            assert!(!may_hold_secrets(text), "{text}");
        }
    }

    #[test]
    fn an_error_about_a_file_begins_with_its_name() {
        let error = SourceError::of_file("-", "is UTF-16 text".into(), "save it as UTF-8");
        assert_eq!(error.to_string(), "standard input: is UTF-16 text\n  help: save it as UTF-8");
    }
}
