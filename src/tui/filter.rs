//! The `/` filter: which rows of a grid stay.
//!
//! `text` keeps rows that contain it, upper and lower case being equal; `*` stands for anything within a
//! word; a leading `!` keeps the others; `-l` takes a label selector as kubectl does.
//! Several words must all hold.

use kubestep_api::Labels;
use kubestep_api::selector::Selector;

/// A parsed filter. The empty filter keeps everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowFilter {
    text: String,
    terms: Vec<FilterTerm>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum FilterTerm {
    /// Contains the pieces in order within one word; one piece is a plain substring.
    Text { pieces: Vec<String>, keep: bool },
    /// `-l SELECTOR`: the labels match.
    Labels(Selector),
}

/// What a filter can ask of a row.
pub trait Filterable {
    /// Appends the row's text.
    fn text(&self, out: &mut String);
    /// Its labels, if it stands for an object.
    fn labels(&self) -> Option<&Labels>;
}

/// A filter that cannot be understood; the message is for people.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// `-l` without a selector, or with a broken one.
    #[error("a label selector is like -l zone=a,disk in (ssd, nvme),!gpu: {0}")]
    Selector(String),
}

impl RowFilter {
    /// Understands what was typed.
    pub fn parse(typed: &str) -> Result<RowFilter, FilterError> {
        let (text, selector) = split_selector(typed);
        let mut terms: Vec<FilterTerm> = text.split_whitespace().filter_map(text_term).collect();
        if let Some(selector) = selector {
            terms.push(FilterTerm::Labels(parse_selector(selector)?));
        }
        Ok(RowFilter { text: typed.trim().to_owned(), terms })
    }

    /// The filter as it was typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it asks for labels.
    pub fn has_labels(&self) -> bool {
        self.terms.iter().any(|term| matches!(term, FilterTerm::Labels(_)))
    }

    /// Whether it keeps everything.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether it is another one, typed further, that keeps no row which that one did not.
    pub fn narrows(&self, other: &RowFilter) -> bool {
        let is_plain = |term: &FilterTerm| matches!(term, FilterTerm::Text { pieces, keep: true } if pieces.len() == 1);
        self.text.starts_with(&other.text)
            && !self.text.contains('*')
            && self.terms.iter().chain(&other.terms).all(is_plain)
    }

    /// Whether `row` stays. `room` is for its text, so that many rows need no memory of their own.
    pub fn keeps(&self, row: &dyn Filterable, room: &mut String) -> bool {
        room.clear();
        if self.terms.iter().any(|t| matches!(t, FilterTerm::Text { .. })) {
            row.text(room);
            lower(room);
        }
        let text = room.as_str();
        self.terms.iter().all(|term| match term {
            FilterTerm::Text { pieces, keep } => contains(text, pieces) == *keep,
            FilterTerm::Labels(selector) => {
                row.labels().is_some_and(|labels| selector.matches(labels))
            }
        })
    }
}

fn lower(text: &mut String) {
    // Signs such as ✓ are in most rows, letters beyond ASCII in few.
    match text.is_ascii() || !text.chars().any(|c| !c.is_ascii() && c.is_alphabetic()) {
        true => text.make_ascii_lowercase(),
        false => *text = text.to_lowercase(),
    }
}

/// What comes before and after a `-l` that stands as a word of its own.
fn split_selector(typed: &str) -> (&str, Option<&str>) {
    let mut from = 0;
    while let Some(found) = typed[from..].find("-l") {
        let (start, end) = (from + found, from + found + 2);
        let alone = typed[..start].chars().next_back().is_none_or(char::is_whitespace)
            && typed[end..].chars().next().is_none_or(char::is_whitespace);
        if alone {
            return (&typed[..start], Some(&typed[end..]));
        }
        from = end;
    }
    (typed, None)
}

fn text_term(word: &str) -> Option<FilterTerm> {
    let (word, keep) = match word.strip_prefix('!') {
        Some(rest) => (rest, false),
        None => (word, true),
    };
    let pieces: Vec<String> =
        word.to_lowercase().split('*').filter(|p| !p.is_empty()).map(str::to_owned).collect();
    (!pieces.is_empty()).then_some(FilterTerm::Text { pieces, keep })
}

fn contains(text: &str, pieces: &[String]) -> bool {
    match pieces {
        [piece] => text.contains(piece.as_str()),
        _ => text.split_whitespace().any(|word| contains_in_order(word, pieces)),
    }
}

fn contains_in_order(word: &str, pieces: &[String]) -> bool {
    let mut rest = word;
    pieces.iter().all(|piece| match rest.find(piece.as_str()) {
        Some(at) => {
            rest = &rest[at + piece.len()..];
            true
        }
        None => false,
    })
}

fn parse_selector(text: &str) -> Result<Selector, FilterError> {
    if text.trim().is_empty() {
        return Err(FilterError::Selector("nothing follows -l".into()));
    }
    Selector::parse(text).map_err(|err| FilterError::Selector(err.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Row(&'static str, Labels);

    impl Filterable for Row {
        fn text(&self, out: &mut String) {
            out.push_str(self.0);
        }
        fn labels(&self) -> Option<&Labels> {
            Some(&self.1)
        }
    }

    fn keeps(filter: &str, row: &Row) -> bool {
        RowFilter::parse(filter).unwrap().keeps(row, &mut String::new())
    }

    fn gpu() -> Row {
        let labels = [("zone", "a"), ("gpu", "")].map(|(key, value)| (key.into(), value.into()));
        Row("gpu-node-7 NodeResourcesFit", labels.into_iter().collect())
    }

    #[test]
    fn text_is_a_substring_without_case() {
        assert!(keeps("NODE-7", &gpu()));
        assert!(keeps("noderes", &gpu()));
        assert!(!keeps("node-8", &gpu()));
        assert!(keeps("", &gpu()) && keeps("  ", &gpu()));
    }

    #[test]
    fn letters_beyond_ascii_have_no_case_either() {
        assert!(keeps("größe", &Row("✓ GRÖSSE Größe", Labels::default())));
        assert!(keeps("ÄPFEL", &Row("• äpfel", Labels::default())));
        assert!(keeps("✓ fit", &Row("✓ FIT", Labels::default())));
    }

    #[test]
    fn words_must_all_hold_and_a_mark_inverts_one() {
        assert!(keeps("gpu fit", &gpu()));
        assert!(!keeps("gpu taint", &gpu()));
        assert!(!keeps("!gpu", &gpu()));
        assert!(keeps("gpu !taint", &gpu()));
    }

    #[test]
    fn stars_stand_for_anything_in_between() {
        assert!(keeps("gpu-*-7", &gpu()));
        assert!(keeps("node*fit", &gpu()));
        assert!(!keeps("fit*node", &gpu()));
        assert!(!keeps("gpu*fit", &gpu()));
        assert!(keeps("*", &gpu()));
    }

    #[test]
    fn selectors_work_as_in_kubectl() {
        for kept in ["-l zone=a", "-l zone==a", "-l gpu", "-l !disk", "-l zone!=b", "-l disk!=x"] {
            assert!(keeps(kept, &gpu()), "{kept}");
        }
        for dropped in ["-l zone=b", "-l !gpu", "-l disk", "-l zone!=a"] {
            assert!(!keeps(dropped, &gpu()), "{dropped}");
        }
        assert!(keeps("-l zone in (a, b),gpu", &gpu()));
        assert!(!keeps("-l zone notin (a,b)", &gpu()));
        assert!(keeps("node -l zone=a", &gpu()));
        assert!(!keeps("nope -l zone=a", &gpu()));
    }

    #[test]
    fn a_dash_l_inside_a_word_is_text() {
        assert!(keeps("a-lab", &Row("data-lab", Labels::default())));
    }

    #[test]
    fn broken_selectors_say_so() {
        for broken in ["-l", "-l ", "-l =a", "-l zone in a", "-l a b"] {
            assert!(RowFilter::parse(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn what_is_typed_further_narrows() {
        let narrows = |now: &str, before: &str| {
            RowFilter::parse(now).unwrap().narrows(&RowFilter::parse(before).unwrap())
        };
        assert!(narrows("web", "we") && narrows("web a", "web") && narrows("w", ""));
        assert!(!narrows("wb", "we") && !narrows("w", "web"));
        assert!(!narrows("!web", "!we") && !narrows("a*b", "a*") && !narrows("-l a=b", "-l a"));
    }
}
