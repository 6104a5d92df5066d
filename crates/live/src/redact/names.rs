//! Pseudonyms: one for each name, in the same order as the names.
//!
//! A pseudonym is a number between `x` and `-`, followed by a word for what it names: `x0012-node`.
//! All names known at the beginning are numbered in their order; a later name gets a number in
//! between, with more digits.

use std::collections::BTreeMap;
#[cfg(test)]
use std::collections::BTreeSet;
use std::ops::Bound::{Excluded, Unbounded};

/// Names with their pseudonyms.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Name → number and word.
    given: BTreeMap<String, (String, &'static str)>,
    /// Names composed of other names, with their pseudonyms.
    made: BTreeMap<String, String>,
}

impl Names {
    /// Numbers names in their order. `words` maps each name to what it names.
    pub fn new(words: BTreeMap<String, &'static str>) -> Names {
        let width = words.len().to_string().len().max(3) + 1;
        let number = |at: usize| format!("{:0width$}", (at + 1) * 10);
        let given = words.into_iter().enumerate();
        // No number ends in zero, so that another one fits between any two.
        let given = given.map(|(at, (name, word))| (name, (number(at).replace_last_zero(), word)));
        Names { given: given.collect(), made: BTreeMap::new() }
    }

    /// Registers a composed name: `web-0` and `data` make `web-0-data`, whose pseudonym is composed
    /// of theirs.
    pub fn make(&mut self, first: &str, second: &str) {
        let (old, new) = (
            format!("{first}-{second}"),
            format!("{}-{}", self.of(first, "name"), self.of(second, "name")),
        );
        self.made.insert(old, new);
    }

    /// The pseudonym of a name; `word` says what it names, if that is not known yet.
    pub fn of(&mut self, old: &str, word: &'static str) -> String {
        if let Some(made) = self.made.get(old) {
            return made.clone();
        }
        if !self.given.contains_key(old) {
            let number = self.number_for(old);
            self.given.insert(old.to_owned(), (number, word));
        }
        let (number, word) = &self.given[old];
        format!("x{number}-{word}")
    }

    /// The pseudonym, if there is one.
    pub fn known(&self, old: &str) -> Option<String> {
        let made = self.made.get(old).cloned();
        made.or_else(|| self.given.get(old).map(|(number, word)| format!("x{number}-{word}")))
    }

    /// All names that have a pseudonym.
    #[cfg(test)]
    pub fn old(&self) -> BTreeSet<&str> {
        self.given.keys().chain(self.made.keys()).map(String::as_str).collect()
    }

    fn number_for(&self, old: &str) -> String {
        let low = self.given.range::<str, _>((Unbounded, Excluded(old))).next_back();
        let high = self.given.range::<str, _>((Excluded(old), Unbounded)).next();
        let number = |found: Option<(&String, &(String, &str))>| found.map(|(_, (n, _))| n.clone());
        between(&number(low).unwrap_or_default(), number(high).as_deref())
    }
}

trait TrailingZero {
    fn replace_last_zero(self) -> String;
}

impl TrailingZero for String {
    /// The trailing zero becomes a 5: `0120` gives `0125`.
    fn replace_last_zero(mut self) -> String {
        if self.pop().is_some() {
            self.push('5');
        }
        self
    }
}

/// Digits that sort after `low` and before `high`, neither of which ends in zero.
fn between(low: &str, high: Option<&str>) -> String {
    let digit = |text: &str, at: usize| text.as_bytes().get(at).map(|digit| digit - b'0');
    let mut digits = String::new();
    let mut high = high;
    for at in 0.. {
        let from = digit(low, at).unwrap_or(0);
        let to = high.and_then(|high| digit(high, at)).unwrap_or(10);
        if to > from + 1 {
            digits.push(char::from(b'0' + u8::midpoint(from, to)));
            break;
        }
        digits.push(char::from(b'0' + from));
        if to == from + 1 {
            // Any further digits are now below the upper limit.
            high = None;
        }
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(olds: &[&str]) -> Names {
        Names::new(olds.iter().map(|old| (old.to_string(), "node")).collect())
    }

    #[test]
    fn names_keep_their_order_and_say_what_they_are() {
        let mut names = names(&["b", "a", "c"]);
        assert_eq!(names.of("a", "pod"), "x0015-node");
        assert_eq!(names.of("c", "pod"), "x0035-node");
        assert_eq!(names.of("bb", "pod"), "x0027-pod");
        assert_eq!(names.of("bb", "node"), "x0027-pod");
        assert_eq!(names.known("zz"), None);
    }

    #[test]
    fn a_name_made_of_others_stays_so() {
        let mut names = names(&["web-0", "data"]);
        names.make("web-0", "data");
        let expected = format!("{}-{}", names.of("web-0", "pod"), names.of("data", "volume"));
        assert_eq!(names.of("web-0-data", "claim"), expected);
    }

    proptest! {
        #[test]
        fn later_names_come_between(
            first in proptest::collection::btree_set("[a-z0-9.-]{1,6}", 0..20),
            later in proptest::collection::vec("[a-z0-9.-]{1,6}", 0..60),
        ) {
            let words = first.iter().map(|name| (name.clone(), "x")).collect();
            let mut names = Names::new(words);
            let mut all: Vec<(String, String)> =
                first.iter().chain(&later).map(|name| (name.clone(), names.of(name, "x"))).collect();
            all.sort();
            all.dedup();
            for pair in all.windows(2) {
                prop_assert!(pair[0].1 < pair[1].1, "{pair:?}");
            }
        }
    }
}
