//! Shortens long values in messages: an error about a quantity of a million digits does not repeat
//! all of them.

use std::borrow::Cow;

/// The longest word, in characters. Paths and addresses are shorter.
const WORD: usize = 320;
/// How much of a longer word is shown: its beginning and its end.
const HEAD: usize = 120;
const TAIL: usize = 40;
/// Characters of the longest line that stays whole.
const LINE: usize = 8_000;

/// `text` with its long words and lines cut in the middle.
pub fn long_values(text: &str) -> Cow<'_, str> {
    // A text has at least as many bytes as characters.
    let is_short = |word: &str| word.len() <= WORD;
    let fits = |line: &str| line.len() <= LINE && line.split(' ').all(is_short);
    if text.split('\n').all(fits) {
        return Cow::Borrowed(text);
    }
    let lines: Vec<String> = text.split('\n').map(line).collect();
    Cow::Owned(lines.join("\n"))
}

fn line(line: &str) -> String {
    let words: Vec<Cow<str>> =
        line.split(' ').map(|word| middle(word, WORD, (HEAD, TAIL))).collect();
    middle(&words.join(" "), LINE, (LINE / 2, LINE / 4)).into_owned()
}

/// `text`, cut in the middle if it is longer than `limit`.
fn middle(text: &str, limit: usize, (head, tail): (usize, usize)) -> Cow<'_, str> {
    let length = if text.len() > limit { text.chars().count() } else { 0 };
    if length <= limit {
        return Cow::Borrowed(text);
    }
    let at = |n: usize| text.char_indices().nth(n).map_or(text.len(), |(at, _)| at);
    let left_out = length - head - tail;
    let (head, tail) = (&text[..at(head)], &text[at(length - tail)..]);
    Cow::Owned(format!("{head}…({left_out} characters)…{tail}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_value_is_cut_and_what_is_around_it_stays() {
        let text =
            format!("Pod a: cpu: \"{}\" is not a quantity\n  help: x", "1".repeat(1_000_000));
        let cut = long_values(&text);
        assert!(cut.len() < 400, "{}", cut.len());
        assert!(cut.starts_with("Pod a: cpu: \"111"), "{cut}");
        assert!(cut.contains("…(999842 characters)…1"), "{cut}");
        assert!(cut.ends_with("1\" is not a quantity\n  help: x"), "{cut}");
    }

    #[test]
    fn many_short_words_are_cut_as_a_line() {
        let cut = long_values(&"größe ".repeat(100_000)).into_owned();
        assert!(cut.chars().count() < LINE, "{}", cut.len());
    }

    #[test]
    fn what_is_short_stays() {
        let text = format!("{}\n/a/{}", "word ".repeat(200), "path/".repeat(50));
        assert!(matches!(long_values(&text), Cow::Borrowed(same) if same == text));
    }
}
