//! Text from a cluster made safe for a terminal or a log: names, labels and messages can hold
//! anything, and what would control the terminal, hide or reorder the line comes out as a
//! visible escape. The one place that says what is safe; the interface uses it, too.

use std::borrow::Cow;
use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar;

/// Whether `c` may be drawn as it is: it occupies a cell, and it neither controls nor reorders.
pub fn is_safe(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    // Zero width covers combining marks, joiners, bidi controls and the byte order mark; `width` is
    // `None` for C1 controls. Line separators and fillers have a width but show nothing.
    c.width().is_some_and(|w| w > 0) && !is_deceptive(c)
}

/// Characters with a width of their own that still hide or reorder text.
fn is_deceptive(c: char) -> bool {
    matches!(c,
        '\u{80}'..='\u{9f}' | '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{e000}'..='\u{f8ff}' | '\u{e0000}'..='\u{e0fff}' | '\u{f0000}'..='\u{10ffff}')
}

/// `text` with every unsafe character as a visible escape (`\n`, `\t`, `\u{1b}`). Borrowed when clean,
/// which is the common case.
pub fn clean(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_safe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        push_clean(&mut out, c);
    }
    Cow::Owned(out)
}

/// Appends `c` to `out`, escaped when it is unsafe.
fn push_clean(out: &mut String, c: char) {
    match c {
        _ if is_safe(c) => out.push(c),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        // Writing to a String cannot fail.
        _ => drop(write!(out, "\\u{{{:x}}}", c as u32)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escapes_what_a_terminal_would_obey() {
        assert_eq!(clean("a\x1b[31mred"), "a\\u{1b}[31mred");
        assert_eq!(clean("bell\x07 \u{9b}1m"), "bell\\u{7} \\u{9b}1m");
        assert_eq!(clean("one\ntwo\tthree\r"), "one\\ntwo\\tthree\\r");
    }

    #[test]
    fn escapes_what_hides_or_reorders() {
        assert_eq!(clean("ab\u{202e}cd"), "ab\\u{202e}cd");
        assert_eq!(clean("a\u{200b}b\u{feff}"), "a\\u{200b}b\\u{feff}");
        assert_eq!(clean("e\u{301}"), "e\\u{301}");
        assert_eq!(clean("a\u{2066}b\u{2069}"), "a\\u{2066}b\\u{2069}");
    }

    #[test]
    fn leaves_ordinary_text_alone() {
        for text in ["node-0013.eu-west", "Größe 5 µs", "日本語", "▸ ✓ ✗ ⊘ ◷"] {
            assert!(matches!(clean(text), Cow::Borrowed(t) if t == text));
        }
    }

    proptest! {
        #[test]
        fn cleaned_text_is_safe_and_cleaning_is_idempotent(text in "\\PC*|[\u{0}-\u{ff}]*|.*") {
            let once = clean(&text).into_owned();
            prop_assert!(once.chars().all(is_safe));
            prop_assert_eq!(clean(&once), once.as_str());
        }
    }
}
