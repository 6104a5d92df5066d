//! Makes text from a cluster safe for a terminal or a log: names, labels and messages can contain
//! anything, and characters that control the terminal, hide text or reorder the line are printed as
//! visible escapes. Only this module defines what is safe; the debugger's screen uses it, too.

use std::borrow::Cow;
use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar;

/// The start of a control sequence.
const CSI: &str = "\u{1b}[";

/// Whether `c` may be drawn unchanged: it occupies a cell, and neither controls nor reorders.
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

/// `text` with every unsafe character as a visible escape (`\n`, `\t`, `\u{1b}`). Borrowed if
/// clean, which is the common case.
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

/// [`clean`] for several lines: line breaks and tabs are kept.
pub fn clean_lines(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_safe_in_lines) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\n' | '\t' => out.push(c),
            _ => push_clean(&mut out, c),
        }
    }
    Cow::Owned(out)
}

/// Whether `c` may be printed unchanged in a text of several lines.
pub(crate) fn is_safe_in_lines(c: char) -> bool {
    matches!(c, '\n' | '\t') || is_safe(c)
}

/// [`clean_lines`] for a text with colours: the sequences that set them (SGR) are kept.
pub fn clean_colored(text: &str) -> String {
    with_colors(text, true)
}

/// [`clean_lines`] for a text with colours, which are removed.
pub fn clean_uncolored(text: &str) -> String {
    with_colors(text, false)
}

/// Keeps the sequences that set colours, or removes them.
fn with_colors(text: &str, keep: bool) -> String {
    let mut parts = text.split(CSI);
    let mut out = clean_lines(parts.next().unwrap_or_default()).into_owned();
    for part in parts {
        let is_parameter = |c: char| c.is_ascii_digit() || matches!(c, ';' | ':');
        let length = part.len() - part.trim_start_matches(is_parameter).len();
        let (sets_color, end) = (part[length..].starts_with('m'), length + 1);
        let rest = match (sets_color, keep) {
            (true, true) => {
                out.push_str(CSI);
                out.push_str(&part[..end]);
                &part[end..]
            }
            (true, false) => &part[end..],
            (false, _) => {
                out.push_str("\\u{1b}[");
                part
            }
        };
        out.push_str(&clean_lines(rest));
    }
    out
}

/// JSON text with unsafe characters in strings as JSON escapes. The values are unchanged.
pub fn escape_json(text: String) -> String {
    escape(text, |out, c| {
        let mut units = [0; 2];
        for unit in c.encode_utf16(&mut units) {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\u{unit:04x}");
        }
    })
}

/// `text` with every unsafe character written by `push`.
pub(super) fn escape(text: String, push: impl Fn(&mut String, char)) -> String {
    if text.chars().all(is_safe_in_lines) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match is_safe_in_lines(c) {
            true => out.push(c),
            false => push(&mut out, c),
        }
    }
    out
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

    #[test]
    fn only_colours_pass_in_coloured_text() {
        let own = "\u{1b}[1;38:5:4mname\u{1b}[0m\n";
        assert_eq!(clean_colored(own), own);
        assert_eq!(clean_colored("a\u{1b}[2Jb\u{1b}]0;x\u{7}"), "a\\u{1b}[2Jb\\u{1b}]0;x\\u{7}");
        assert_eq!(clean_colored("\u{1b}[31"), "\\u{1b}[31");
        assert_eq!(clean_uncolored(own), "name\n");
        assert_eq!(clean_uncolored("a\u{1b}[1mb\u{1b}[2J"), "ab\\u{1b}[2J");
    }

    proptest! {
        #[test]
        fn escaped_json_is_safe_and_means_the_same(text in "\\PC*|[\u{0}-\u{ff}]*|.*") {
            let value = serde_json::json!({ text.clone(): [text] });
            let escaped = escape_json(format!("{value:#}"));
            prop_assert!(escaped.chars().all(is_safe_in_lines));
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
        }

        #[test]
        fn coloured_text_holds_nothing_but_colours(text in "([\u{0}-\u{ff}]|\u{1b}\\[|m)*") {
            let cleaned = clean_colored(&text);
            let mut parts = cleaned.split("\u{1b}[");
            prop_assert!(parts.next().unwrap().chars().all(is_safe_in_lines));
            for part in parts {
                let rest = part.trim_start_matches(|c: char| c.is_ascii_digit() || ";:".contains(c));
                prop_assert!(rest.starts_with('m') && rest.chars().all(is_safe_in_lines));
            }
        }

        #[test]
        fn cleaned_text_is_safe_and_cleaning_is_idempotent(text in "\\PC*|[\u{0}-\u{ff}]*|.*") {
            let once = clean(&text).into_owned();
            prop_assert!(once.chars().all(is_safe));
            prop_assert_eq!(clean(&once), once.as_str());
        }
    }
}
