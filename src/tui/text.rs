//! Measuring, cutting and writing text in terminal cells.
//!
//! Widths are display columns (`unicode-width`), never bytes. Names are cut in the middle because both
//! ends carry meaning (`ip-10-…-87.ec2`), prose at the end, numbers never: a column too narrow for its
//! numbers is dropped by the grid. Text is cleaned before it is measured.

use std::borrow::Cow;

use ratatui::buffer::Buffer;
use ratatui::style::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::glyph::ELLIPSIS;
use super::sanitize;

/// Where text that is too wide loses characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Truncation {
    /// Prose: the beginning says most.
    #[default]
    End,
    /// Names: both ends say something.
    Middle,
    /// Several names with commas: the first ones, and how many more there are.
    List,
}

/// The side that text shorter than its column sticks to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Align {
    /// At the left edge, as text.
    #[default]
    Left,
    /// At the right edge, as numbers.
    Right,
}

/// Between the names of a list.
const SEPARATOR: &str = ", ";

/// Display width of clean text in columns.
pub fn width(text: &str) -> usize {
    text.width()
}

/// Clean `text` cut to at most `max` columns, marked with an ellipsis.
pub fn fit(text: &str, max: usize, cut: Truncation) -> Cow<'_, str> {
    if width(text) <= max {
        return Cow::Borrowed(text);
    }
    Cow::Owned(match (max, cut) {
        (0, _) => String::new(),
        (1, _) => ELLIPSIS.to_string(),
        (_, Truncation::List) if text.contains(SEPARATOR) => return fit_list(text, max),
        (_, Truncation::End | Truncation::List) => format!("{}{ELLIPSIS}", head(text, max - 1)),
        (_, Truncation::Middle) => {
            let end = (max - 1) / 2;
            format!("{}{ELLIPSIS}{}", head(text, max - 1 - end), tail(text, end))
        }
    })
}

/// The first names of a list that fit with the number of the others: `NodePorts and 8 more`.
fn fit_list(text: &str, max: usize) -> Cow<'_, str> {
    let names = text.split(SEPARATOR).count();
    let ends = text.match_indices(SEPARATOR).map(|(end, _)| end);
    let shortened =
        ends.zip(1..).map(|(end, shown)| format!("{} and {} more", &text[..end], names - shown));
    match shortened.take_while(|list| width(list) <= max).last() {
        Some(list) => Cow::Owned(list),
        None => fit(text, max, Truncation::End),
    }
}

/// The longest beginning of `text` that is at most `max` columns wide.
pub fn head(text: &str, max: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > max {
            return &text[..at];
        }
    }
    text
}

/// The words of a name in camel case; capitals in a row are one.
pub fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for letter in name.chars() {
        match words.last_mut() {
            Some(word) if !letter.is_uppercase() => word.push(letter),
            Some(word) if word.chars().all(char::is_uppercase) => word.push(letter),
            _ => words.push(letter.into()),
        }
    }
    words
}

/// The words of a name in so many lines, as narrow as can be; a character more is fine if the first
/// line is longer for it.
pub fn in_lines(words: &[String], lines: usize) -> String {
    if lines <= 1 || words.len() <= 1 {
        return words.concat();
    }
    let split =
        |at: usize| format!("{}\n{}", words[..at].concat(), in_lines(&words[at..], lines - 1));
    let splits: Vec<String> = (1..words.len()).map(split).collect();
    let widest = |title: &String| title.lines().map(str::len).max().unwrap_or(0);
    let least = splits.iter().map(widest).min().unwrap_or(0);
    splits.into_iter().rfind(|title| widest(title) <= least + 1).unwrap_or_default()
}

/// The longest end of `text` that is at most `max` columns wide.
pub fn tail(text: &str, max: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices().rev() {
        used += c.width().unwrap_or(0);
        if used > max {
            return &text[at + c.len_utf8()..];
        }
    }
    text
}

/// Writes one line of clean text at `(x, y)`, at most `max` columns, cut at the end. Returns the column
/// after the last one written.
pub fn put(buffer: &mut Buffer, x: u16, y: u16, max: u16, text: &str, style: Style) -> u16 {
    if max == 0 || !buffer.area.contains((x, y).into()) {
        return x;
    }
    let room = max.min(buffer.area.right().saturating_sub(x));
    let shown = head(text, usize::from(room));
    let (end, _) = buffer.set_stringn(x, y, shown, usize::from(room), style);
    end
}

/// `text` as lines of at most `max` columns, broken at spaces where there are any and inside a word only
/// when it alone is too wide. Line breaks in `text` start a new line; every line is clean.
pub fn wrap(text: &str, max: usize) -> Vec<String> {
    let max = max.max(1);
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        wrap_paragraph(&sanitize::clean(paragraph), max, &mut lines);
    }
    lines
}

fn wrap_paragraph(text: &str, max: usize, lines: &mut Vec<String>) {
    let mut line: String = text.chars().take_while(|c| *c == ' ').take(max / 2).collect();
    let indent = " ".repeat((line.len() + number(text.trim_start())).min(max / 2));
    let mut empty = true;
    for word in text.split(' ').filter(|w| !w.is_empty()) {
        if !empty && width(&line) + 1 + width(word) > max {
            lines.push(std::mem::replace(&mut line, indent.clone()));
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        push_word(word, max, &mut line, lines, &indent);
        empty = false;
    }
    lines.push(line.trim_end().to_owned());
}

/// Columns of the number of an item: those of `1. `.
fn number(text: &str) -> usize {
    let digits = text.chars().take_while(char::is_ascii_digit).count();
    if digits > 0 && text[digits..].starts_with(". ") { digits + 2 } else { 0 }
}

/// The beginning of a word that is longer than a line: up to a dot or slash, if there is one in the
/// second half.
fn part(word: &str, max: usize) -> &str {
    let whole = head(word, max);
    let end = whole.rfind(['.', '/', ',', '=']).map_or(0, |at| at + 1);
    if end > whole.len() / 2 { &whole[..end] } else { whole }
}

/// Appends `word`, spilling into full lines while it does not fit on one.
fn push_word(word: &str, max: usize, line: &mut String, lines: &mut Vec<String>, indent: &str) {
    let mut rest = word;
    while width(line) + width(rest) > max {
        let part = part(rest, max.saturating_sub(width(line)));
        if part.is_empty() && width(line) <= width(indent) {
            break; // A single character wider than the line: let the writer cut it.
        }
        line.push_str(part);
        rest = &rest[part.len()..];
        lines.push(std::mem::replace(line, indent.to_owned()));
    }
    line.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_lose_their_middle_and_text_its_end() {
        assert_eq!(fit("ip-10-0-113-87.ec2", 11, Truncation::Middle), "ip-10…7.ec2");
        assert_eq!(fit("insufficient memory", 9, Truncation::End), "insuffic…");
        assert_eq!(fit("short", 9, Truncation::Middle), "short");
    }

    #[test]
    fn lists_are_cut_between_names() {
        let shown = |max| fit("NodePorts, VolumeZone, GPU", max, Truncation::List);
        assert_eq!(shown(26), "NodePorts, VolumeZone, GPU");
        assert_eq!(shown(32), "NodePorts, VolumeZone, GPU");
        assert_eq!(shown(25), "NodePorts and 2 more");
        assert_eq!(shown(19), "NodePorts, VolumeZ…");
        let more = fit("a, b, c, dddddddddddddddddddd", 20, Truncation::List);
        assert_eq!(more, "a, b, c and 1 more");
        assert_eq!(fit("no list at all", 9, Truncation::List), "no list …");
    }

    #[test]
    fn tiny_widths_do_not_overflow() {
        assert_eq!(fit("name", 0, Truncation::Middle), "");
        assert_eq!(fit("name", 1, Truncation::Middle), "…");
        assert_eq!(fit("name", 2, Truncation::Middle), "n…");
    }

    #[test]
    fn wide_characters_count_twice() {
        assert_eq!(width("日本"), 4);
        assert_eq!(head("日本語", 5), "日本");
        assert_eq!(fit("日本語版", 5, Truncation::End), "日本…");
    }

    #[test]
    fn wraps_at_spaces_and_keeps_line_breaks() {
        assert_eq!(wrap("0/3 nodes are available", 10), ["0/3 nodes", "are", "available"]);
        assert_eq!(wrap("a\nb", 10), ["a", "b"]);
        assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("  key: value more", 10), ["  key:", "  value", "  more"]);
        assert_eq!(wrap("", 10), [""]);
    }

    #[test]
    fn items_hang_behind_their_number_and_paths_break_behind_a_dot() {
        assert_eq!(wrap(" 1. set a b c", 10), [" 1. set a", "    b c"]);
        assert_eq!(wrap("spec.affinity.nodeAffinity", 16), ["spec.affinity.", "nodeAffinity"]);
        assert_eq!(wrap("a.bcdefghij", 8), ["a.bcdefg", "hij"]);
    }

    #[test]
    fn long_names_stand_in_several_lines() {
        let title = |lines| in_lines(&words("NodeResourcesBalancedAllocation"), lines);
        assert_eq!(title(1), "NodeResourcesBalancedAllocation");
        assert_eq!(title(2), "NodeResources\nBalancedAllocation");
        assert_eq!(title(3), "NodeResources\nBalanced\nAllocation");
        assert_eq!(in_lines(&words("NodeResourcesFit"), 2), "NodeResources\nFit");
        assert_eq!(in_lines(&words("ImageLocality"), 3), "Image\nLocality");
        assert_eq!(in_lines(&words("https://scorer:8888"), 2), "https://scorer:8888");
    }

    proptest! {
        #[test]
        fn fit_never_exceeds_its_width(text in "\\PC{0,40}", max in 0usize..30, middle: bool) {
            let text = sanitize::clean(&text).into_owned();
            let cut = if middle { Truncation::Middle } else { Truncation::List };
            prop_assert!(width(&fit(&text, max, cut)) <= max);
            prop_assert!(width(&fit(&text, max, Truncation::End)) <= max);
        }

        #[test]
        fn wrapping_loses_no_characters(text in "[a-z日 ]{0,60}", max in 4usize..20) {
            let letters = |t: &str| t.chars().filter(|c| *c != ' ').collect::<String>();
            let lines = wrap(&text, max);
            prop_assert!(lines.iter().all(|l| width(l) <= max));
            prop_assert_eq!(letters(&lines.concat()), letters(&text));
        }
    }
}
