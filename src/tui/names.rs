//! What the names of all nodes have in common, so that it need not stand on every row: the domain of a
//! cloud provider behind, a pool's name before.

use std::borrow::Cow;
use std::collections::HashSet;

use super::text::width;

/// Shorter parts are not worth it.
const LEAST: usize = 6;
/// Names as short as this keep what they begin with.
const SHORT: usize = 20;
/// Columns for names that are not known yet.
const USUAL: u16 = 36;

/// The beginning and the end that all names share.
#[derive(Clone, Default, Debug, PartialEq, Eq)]
pub struct CommonNameParts {
    prefix: String,
    suffix: String,
    /// Columns of the longest name without them.
    widest: usize,
}

impl CommonNameParts {
    /// Those of some names; empty ones are skipped. The end begins at a dot, the beginning ends with a
    /// dash, and something is left of every name.
    pub fn of<T: AsRef<str>>(names: impl Iterator<Item = T>) -> CommonNameParts {
        let names: Vec<T> = names.filter(|name| !name.as_ref().is_empty()).collect();
        let names = names.iter().map(T::as_ref);
        let mut parts = CommonNameParts::default();
        if names.clone().nth(1).is_some() {
            parts.suffix = shared_domain(names.clone());
            let longest = names.clone().map(|name| parts.short(name).len()).max().unwrap_or(0);
            if longest > SHORT {
                parts.prefix = common_prefix(names.clone().map(|name| parts.short(name)));
            }
        }
        parts.widest = names.map(|name| width(parts.short(name))).max().unwrap_or(0);
        parts
    }

    /// The name without them; whole if it does not have them.
    pub fn short<'a>(&self, name: &'a str) -> &'a str {
        let ends = name.len() > self.prefix.len() + self.suffix.len();
        let rest = name.strip_suffix(self.suffix.as_str()).filter(|_| ends);
        rest.and_then(|rest| rest.strip_prefix(self.prefix.as_str())).unwrap_or(name)
    }

    /// What all names end with.
    pub fn end(&self) -> &str {
        &self.suffix
    }

    /// A text without the end that all names share.
    pub fn without_end<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match !self.suffix.is_empty() && text.contains(&self.suffix) {
            true => Cow::Owned(text.replace(&self.suffix, "")),
            false => Cow::Borrowed(text),
        }
    }

    /// What is said of that: ` (nodes: *.eu-west-1.compute.internal)`.
    pub fn note_of_end(&self) -> String {
        format!(" (nodes: *{})", self.suffix)
    }

    /// Columns of the longest name without them; of what is usual while no name is known.
    pub fn widest(&self) -> u16 {
        match self.widest {
            0 => USUAL,
            widest => u16::try_from(widest).unwrap_or(u16::MAX),
        }
    }

    /// What a title says of them: ` (nodes: *.eu-west-1.compute.internal)`.
    pub fn note(&self) -> String {
        match (self.prefix.is_empty(), self.suffix.is_empty()) {
            (true, true) => String::new(),
            _ => format!(" (nodes: {}*{})", self.prefix, self.suffix),
        }
    }
}

/// The end that all names with a domain share. Names without one, such as those of control planes,
/// stay whole; nothing is shared if a shortened name would be equal to one of them.
fn shared_domain<'a>(names: impl Iterator<Item = &'a str> + Clone) -> String {
    let with_domain = names.clone().filter(|name| name.contains('.'));
    if with_domain.clone().nth(1).is_none() {
        return String::new();
    }
    let suffix = common_suffix(with_domain.clone());
    let others: HashSet<&str> = names.filter(|name| !name.contains('.')).collect();
    let mut short = with_domain.filter_map(|name| name.strip_suffix(suffix.as_str()));
    if short.any(|short| others.contains(short)) { String::new() } else { suffix }
}

fn common_suffix<'a>(mut names: impl Iterator<Item = &'a str>) -> String {
    let Some(first) = names.next() else { return String::new() };
    let mut common = first.find('.').map_or("", |at| &first[at..]);
    for name in names {
        while !(name.ends_with(common) && name.len() > common.len()) {
            common = common.get(1..).and_then(|rest| Some(&rest[rest.find('.')?..])).unwrap_or("");
            if common.is_empty() {
                return String::new();
            }
        }
    }
    if common.len() >= LEAST { common.to_owned() } else { String::new() }
}

fn common_prefix<'a>(mut names: impl Iterator<Item = &'a str>) -> String {
    let Some(first) = names.next() else { return String::new() };
    let mut common = first.rfind('-').map_or("", |at| &first[..=at]);
    for name in names {
        while !(name.starts_with(common) && name.len() > common.len()) {
            let shorter = common.strip_suffix('-').and_then(|rest| rest.rfind('-'));
            common = shorter.map_or("", |at| &common[..=at]);
            if common.is_empty() {
                return String::new();
            }
        }
    }
    if common.len() >= LEAST { common.to_owned() } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(names: &[&str]) -> (Vec<String>, String) {
        let parts = CommonNameParts::of(names.iter().copied());
        let short = names.iter().map(|name| parts.short(name).to_owned()).collect();
        (short, parts.note())
    }

    #[test]
    fn a_shared_domain_is_said_once() {
        let names =
            ["ip-10-0-2-17.eu-west-1.compute.internal", "ip-10-0-13-2.eu-west-1.compute.internal"];
        let (short, note) = shown(&names);
        assert_eq!(short, ["ip-10-0-2-17", "ip-10-0-13-2"]);
        assert_eq!(note, " (nodes: *.eu-west-1.compute.internal)");
        assert_eq!(CommonNameParts::of(names.into_iter()).short("other"), "other");
    }

    #[test]
    fn a_node_without_a_domain_stays_whole_and_is_not_mistaken_for_another() {
        let (short, _) = shown(&["a-1.example.com", "a-2.example.com", "control-plane-1"]);
        assert_eq!(short, ["a-1", "a-2", "control-plane-1"]);
        let (short, note) = shown(&["a-1.example.com", "a-2.example.com", "a-1"]);
        assert_eq!((short[0].as_str(), note.as_str()), ("a-1.example.com", ""));
        assert_eq!(shown(&["a-1.example.com", "control-plane-1"]).0[0], "a-1.example.com");
    }

    #[test]
    fn domains_that_differ_in_their_first_part_share_the_rest() {
        let (short, note) = shown(&["a.one.example.com", "b.two.example.com"]);
        assert_eq!((short[1].as_str(), note.as_str()), ("b.two", " (nodes: *.example.com)"));
    }

    #[test]
    fn a_pool_is_said_once_where_names_are_long() {
        let names = ["gke-prod-default-pool-5d1f-x7k2", "gke-prod-default-pool-5d1f-9qp1"];
        assert_eq!(shown(&names).0, ["x7k2", "9qp1"]);
        assert_eq!(shown(&names).1, " (nodes: gke-prod-default-pool-5d1f-*)");
        let names = ["node-a-1", "node-a-2"];
        assert_eq!(shown(&names), (vec!["node-a-1".into(), "node-a-2".into()], String::new()));
    }

    #[test]
    fn a_text_does_without_the_shared_end() {
        let parts = CommonNameParts::of(["a-1.example.com", "a-2.example.com"].into_iter());
        assert_eq!(
            parts.without_end("cordoned on a-1.example.com, a-2.example.com"),
            "cordoned on a-1, a-2"
        );
        assert_eq!(parts.note_of_end(), " (nodes: *.example.com)");
        let text = CommonNameParts::of(["a-1"].into_iter());
        assert!(matches!(text.without_end("a-1"), Cow::Borrowed("a-1")));
    }

    #[test]
    fn something_is_left_of_every_name() {
        for names in [&["a.example.com"][..], &["a.example.com", ".example.com"], &["", "x"], &[]] {
            assert!(shown(names).0.iter().zip(names).all(|(short, name)| short == name));
        }
    }
}
