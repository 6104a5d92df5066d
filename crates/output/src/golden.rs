//! Files of expected output, which tests compare with what the program makes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has to stop")]

use std::fs;
use std::path::Path;

/// Whether tests rewrite their files of expected output: the variable `UPDATE_GOLDEN` is set.
pub fn is_updating() -> bool {
    std::env::var_os("UPDATE_GOLDEN").is_some()
}

/// Compares a text with a file, or rewrites the file with `UPDATE_GOLDEN`.
///
/// # Panics
/// They differ, or the file cannot be written.
pub fn compare(file: &Path, text: &str) {
    if is_updating() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    let expected = fs::read_to_string(file).unwrap_or_default();
    if let Some(difference) = difference(&expected, text) {
        let file = file.display();
        panic!("{file} differs; UPDATE_GOLDEN=1 rewrites it. {difference}\nNow:\n{text}");
    }
}

/// The first line that differs; `None` if the texts are equal.
pub fn difference(expected: &str, text: &str) -> Option<String> {
    if expected == text {
        return None;
    }
    let mut lines = expected.split('\n').zip(text.split('\n'));
    let differs = |(expected, line): &(&str, &str)| expected != line;
    let number = lines.position(|pair| differs(&pair));
    let number = number.unwrap_or_else(|| expected.lines().count().min(text.lines().count()));
    let line = |text: &str| text.lines().nth(number).unwrap_or("the end").to_owned();
    Some(format!("Line {}: {:?}, expected {:?}", number + 1, line(text), line(expected)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_reported() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        let reported = |text| difference("a\nb\n", text).unwrap();
        assert_eq!(reported("a\nc\n"), r#"Line 2: "c", expected "b""#);
        assert_eq!(reported("a\n"), r#"Line 2: "the end", expected "b""#);
        assert!(difference("a", "a\n").is_some());
    }
}
