//! Patterns for names, as in shells.

/// Whether the text matches; `*` stands for any text, `?` for any one character.
pub fn glob(pattern: &str, text: &str) -> bool {
    match pattern.find(['*', '?']) {
        None => pattern == text,
        // Most names differ from the pattern before that.
        Some(at) => {
            text.strip_prefix(&pattern[..at]).is_some_and(|rest| glob_rest(&pattern[at..], rest))
        }
    }
}

/// The same, character by character.
fn glob_rest(pattern: &str, text: &str) -> bool {
    let mut tail = pattern.chars();
    match tail.next() {
        None => text.is_empty(),
        Some('*') => {
            let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
            ends.into_iter().any(|at| glob_rest(tail.as_str(), &text[at..]))
        }
        Some(expected) => {
            let mut rest = text.chars();
            rest.next().is_some_and(|found| expected == '?' || expected == found)
                && glob_rest(tail.as_str(), rest.as_str())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs() {
        for (pattern, text, expected) in [
            ("web-*", "web-0", true),
            ("web-*", "web-", true),
            ("*-?", "web-10", false),
            ("*", "", true),
            ("?", "", false),
            ("a*b*c", "aXbYbc", true),
            ("web", "web-0", false),
        ] {
            assert_eq!(glob(pattern, text), expected, "{pattern} {text}");
        }
    }
}
