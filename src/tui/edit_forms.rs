//! Which form an edit has that is typed or offered: for its completion, and for the line that describes it.

use kubestep_debug::edit::{EditForm, FORMS};

/// Whether an edit begins with this word.
pub fn is_verb(word: &str) -> bool {
    FORMS.iter().any(|form| form.verb() == word)
}

/// The form that an edit has, as far as it is typed.
pub fn find(line: &str) -> Option<&'static EditForm> {
    let verb = line.split_whitespace().next()?;
    let fitting = FORMS.iter().find(|form| fits(form.usage, line));
    fitting.or_else(|| FORMS.iter().find(|form| form.verb() == verb))
}

/// Whether a line begins as a form is written: its words in small letters stand for themselves.
pub fn fits(usage: &str, line: &str) -> bool {
    let mut usage = usage.split_whitespace();
    line.split_whitespace().all(|word| match usage.next() {
        Some(literal) if is_literal(literal) => literal == word,
        other => other.is_some(),
    })
}

/// Whether a form that a line has goes on behind its last word.
pub fn goes_on(line: &str) -> bool {
    let words = line.split_whitespace().count();
    FORMS.iter().any(|form| fits(form.usage, line) && form.usage.split_whitespace().count() > words)
}

/// Whether a word of a form is written as it stands.
pub fn is_literal(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_lowercase() || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_has_the_form_that_it_begins_like() {
        let usage = |line| find(line).map(|form| form.usage);
        assert_eq!(usage("cordon node a"), Some("cordon node NAME"));
        assert_eq!(usage("resize pod x"), Some("resize pod NAME [CONTAINER] RESOURCE=AMOUNT"));
        assert_eq!(usage("add 1 node like a"), Some("add N nodes like NAME"));
        assert_eq!(usage("nonsense"), None);
        assert!(fits("cordon node NAME", "cordon node") && !fits("cordon node NAME", "cordon x"));
    }
}
