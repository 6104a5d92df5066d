//! Text from a cluster made safe for a terminal or a log: what would control the terminal, hide
//! or reorder the line comes out as a visible escape.

/// The text with every unsafe character escaped (`\n`, `\u{1b}`).
pub fn clean(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match is_unsafe(c) {
            true => safe.extend(c.escape_default()),
            false => safe.push(c),
        }
    }
    safe
}

/// Control characters, and those that hide or reorder text.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}'
            | '\u{e000}'..='\u{f8ff}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_unsafe_is_escaped() {
        assert_eq!(clean("größer − 1 → 2"), "größer − 1 → 2");
        assert_eq!(clean("a\u{1b}[31mb\nc"), "a\\u{1b}[31mb\\nc");
        assert_eq!(clean("\u{202e}evil\u{9b}2J"), "\\u{202e}evil\\u{9b}2J");
    }
}
