//! Decoding YAML with a limit on the nesting of flow collections (`[…]`, `{…}`). The YAML decoder
//! visits every open one for each token, so that its work grows with depth times length, and it
//! rejects deep nesting only after scanning everything.

use serde::de::{DeserializeOwned, Error as _};
use serde_yaml::{Deserializer, Error};

/// Maximum nesting depth, the same as for JSON.
pub const MAX_DEPTH: usize = 128;

/// Decodes a text with one document.
///
/// # Errors
/// It is not valid YAML, nests too deep, or cannot be decoded as `T`.
pub fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    T::deserialize(documents(text)?)
}

/// The documents of a text; each is then deserialized.
///
/// # Errors
/// The text nests too deep.
#[expect(clippy::disallowed_methods, reason = "the one place that checks the depth first")]
pub fn documents(text: &str) -> Result<Deserializer<'_>, Error> {
    match too_deep(text) {
        Some(line) => Err(Error::custom(format!(
            "more than {MAX_DEPTH} levels are nested in each other, in line {line}"
        ))),
        None => Ok(Deserializer::from_str(text)),
    }
}

/// Maximum length in bytes of a tag or an anchor in front of a value.
const PROPERTY: usize = 64;

/// The line, from 1, in which flow collections nest deeper than [`MAX_DEPTH`].
fn too_deep(text: &str) -> Option<usize> {
    let mut brackets = DepthGuard::default();
    // Most texts never open so many brackets, in whatever context.
    if !text.bytes().any(|byte| brackets.exceeds(byte)) {
        return None;
    }
    let at = Scan { text: text.as_bytes(), at: 0, depth: DepthGuard::default() }.run()?;
    Some(1 + text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count())
}

/// Number of open collections.
#[derive(Default)]
struct DepthGuard(usize);

impl DepthGuard {
    /// Processes the next byte. `true` if it opens one collection too many.
    fn exceeds(&mut self, byte: u8) -> bool {
        match byte {
            b'[' | b'{' => self.0 += 1,
            b']' | b'}' => self.0 = self.0.saturating_sub(1),
            _ => {}
        }
        self.0 > MAX_DEPTH
    }
}

/// Scans a text as far as needed to distinguish brackets of collections from those in scalars and
/// comments.
struct Scan<'a> {
    text: &'a [u8],
    at: usize,
    depth: DepthGuard,
}

impl Scan<'_> {
    /// The position of the first collection that nests too deep.
    fn run(mut self) -> Option<usize> {
        while let Some(byte) = self.peek() {
            match byte {
                b'"' if self.begins_a_node() => self.quoted(b'"'),
                b'\'' if self.begins_a_node() => self.quoted(b'\''),
                b'#' if self.follows_a_blank() => self.rest_of_line(),
                b'|' | b'>' if self.depth.0 == 0 && self.begins_a_node() => self.block_scalar(),
                b'[' | b'{' if self.depth.0 == 0 && !self.begins_a_node() => self.at += 1,
                byte if self.depth.exceeds(byte) => return Some(self.at),
                _ => self.at += 1,
            }
        }
        None
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Whether a value may start here: after an indicator, a tag or an anchor, or at the start of a
    /// line; but not within a plain scalar.
    fn begins_a_node(&self) -> bool {
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let before = &self.text[..self.at];
        let end = before.iter().rposition(|byte| !is_blank(byte)).map_or(0, |last| last + 1);
        let is_apart = self.depth.0 > 0 || self.follows_a_blank();
        let is_after = before[..end].last().is_none_or(|last| b"\n\r[{,:-?".contains(last));
        let word = before[end.saturating_sub(PROPERTY)..end].rsplit(u8::is_ascii_whitespace).next();
        let is_property = word.is_some_and(|word| matches!(word.first(), Some(b'!' | b'&')));
        is_apart && (is_after || is_property)
    }

    fn follows_a_blank(&self) -> bool {
        self.at == 0 || self.text[self.at - 1].is_ascii_whitespace()
    }

    fn rest_of_line(&mut self) {
        let end = self.text[self.at..].iter().position(|byte| *byte == b'\n');
        self.at = end.map_or(self.text.len(), |end| self.at + end);
    }

    /// Moves behind the closing quote. `''` in single and `\"` in double quotes do not close a
    /// scalar: the former is scanned as two scalars, the latter is skipped.
    fn quoted(&mut self, quote: u8) {
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += if byte == b'\\' && quote == b'"' { 2 } else { 1 };
            if byte == quote && (quote == b'"' || self.peek() != Some(b'\'')) {
                return;
            }
            if byte == quote {
                self.at += 1;
            }
        }
    }

    /// Moves behind a `|` or `>` scalar: the lines that are indented more than its first line.
    fn block_scalar(&mut self) {
        let start = self.text[..self.at].iter().rposition(|byte| *byte == b'\n');
        let parent = indentation(&self.text[start.map_or(0, |at| at + 1)..]);
        self.rest_of_line();
        while self.at < self.text.len() {
            let line = &self.text[self.at + 1..];
            let is_blank = line.trim_ascii_start().is_empty() || line.starts_with(b"\n");
            if !is_blank && indentation(line) <= parent {
                return;
            }
            self.at += 1;
            self.rest_of_line();
        }
    }
}

fn indentation(line: &[u8]) -> usize {
    line.iter().take_while(|byte| **byte == b' ').count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn deep_flow_collections_are_rejected_with_their_line() {
        for open in ["[", "{a: ", "[ ", "[{a: "] {
            let text = format!("a: 1\nb:\n- {}", open.repeat(200));
            let error = from_str::<Value>(&text).unwrap_err().to_string();
            assert_eq!(error, "more than 128 levels are nested in each other, in line 3");
        }
    }

    #[test]
    fn brackets_in_scalars_and_comments_do_not_count() {
        let many = "[".repeat(300);
        for text in [
            format!("a: x{many}\n"),
            format!("a: x {many}\n"),
            format!("a: \"{many}\\\"{many}\"\n"),
            format!("a: '{many}''{many}'\n"),
            format!("a: |\n  {many}\n\n  {many}\nb: [1]\n"),
            format!("- a: >-\n    {many}\n- b\n"),
            format!("# {many}\na: 1 # {many}\n"),
            format!("a: [\"{many}\", '{many}'] # {many}\n"),
            format!("a: !!str \"{many}\"\n"),
        ] {
            assert!(from_str::<Value>(&text).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_hundred_levels_are_read() {
        let text = format!("{}{}", "[".repeat(100), "]".repeat(100));
        assert!(from_str::<Value>(&text).is_ok());
    }

    proptest! {
        /// Whatever surrounds it, exactly the nesting that the YAML decoder rejects is found, as
        /// JSON with the same depth is rejected.
        #[test]
        fn agrees_with_the_reader(depth in 100..160usize, text in "[a-z\\[\\]{}:,'\" #\n-]{0,40}") {
            let quoted = serde_json::to_string(&text).unwrap();
            let document = format!("{}{quoted}{}", "[".repeat(depth), "]".repeat(depth));
            prop_assert_eq!(too_deep(&document).is_some(), depth > MAX_DEPTH);
        }
    }
}
