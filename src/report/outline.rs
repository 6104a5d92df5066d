//! An answer as an outline: lines under lines, each of which may lead somewhere.

use kubestep_api::intern::Symbol;
use kubestep_framework::pod::NamespacedName;

/// Where a line leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum To {
    /// What a plugin, or any, said of a node in the last cycle of a pod.
    Verdict(NamespacedName, Symbol, Option<Symbol>),
    /// A cycle by its number.
    Cycle(u64),
    /// What there is to say about a pod.
    Pod(NamespacedName),
    /// The search for what would make a pod fit.
    Search(NamespacedName),
}

/// What kind of line it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Tone {
    /// Like others.
    #[default]
    Plain,
    /// A heading.
    Heading,
    /// Something that is in the way.
    Bad,
    /// Something that is fine.
    Good,
    /// Something beside the point.
    Dim,
}

/// A line.
#[derive(Clone, PartialEq, Debug)]
pub struct Item {
    /// How far it is to the right; what follows further to the right belongs to it.
    pub depth: u8,
    /// What it is about, the same in later outlines of the same thing.
    pub id: String,
    /// The words.
    pub text: String,
    /// Where it leads.
    pub to: Option<To>,
    /// Whether what belongs to it is folded away at first.
    pub folded: bool,
    /// What kind of line it is.
    pub tone: Tone,
}

impl Item {
    /// A line that leads nowhere.
    pub fn new(depth: u8, text: impl Into<String>) -> Item {
        let text = text.into();
        Item { depth, id: text.clone(), text, to: None, folded: false, tone: Tone::Plain }
    }

    /// A heading, which stays what it is whatever its words.
    pub fn heading(id: &str, text: impl Into<String>) -> Item {
        Item { id: id.to_owned(), tone: Tone::Heading, ..Item::new(0, text) }
    }

    /// The same, leading somewhere.
    pub fn to(self, to: To) -> Item {
        Item { to: Some(to), ..self }
    }

    /// The same in another tone.
    pub fn tone(self, tone: Tone) -> Item {
        Item { tone, ..self }
    }

    /// The same, with what belongs to it folded away at first.
    pub fn folded(self, folded: bool) -> Item {
        Item { folded, ..self }
    }
}

/// Lines under lines.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Outline {
    /// What it is about.
    pub title: String,
    /// The lines, in order.
    pub items: Vec<Item>,
}

impl Outline {
    /// Adds a section of lines as they are indented, if there are any.
    pub fn section(&mut self, heading: Item, lines: Vec<String>) {
        if lines.is_empty() {
            return;
        }
        self.items.push(heading);
        self.items.extend(lines.iter().map(|line| {
            let indent = line.len() - line.trim_start().len();
            Item::new(1 + u8::try_from(indent / 2).unwrap_or(0).min(6), line.trim_start())
        }));
    }

    /// Whether lines belong to that one.
    pub fn has_more(&self, at: usize) -> bool {
        let depth = self.items.get(at).map(|item| item.depth);
        self.items.get(at + 1).zip(depth).is_some_and(|(next, depth)| next.depth > depth)
    }

    /// The places of the lines that are not folded away. `is_folded` says which line's are.
    pub fn open(&self, is_folded: impl Fn(&Item) -> bool) -> Vec<usize> {
        let mut open = Vec::new();
        let mut hidden_below = None;
        for (at, item) in self.items.iter().enumerate() {
            if hidden_below.is_some_and(|depth| item.depth > depth) {
                continue;
            }
            hidden_below = (self.has_more(at) && is_folded(item)).then_some(item.depth);
            open.push(at);
        }
        open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_under_a_folded_line_is_away() {
        let depths = [0, 1, 2, 1, 0, 1];
        let items = depths.iter().enumerate().map(|(at, depth)| Item::new(*depth, at.to_string()));
        let outline = Outline { title: String::new(), items: items.collect() };
        assert_eq!(outline.open(|_| false).len(), 6);
        assert_eq!(outline.open(|item| item.id == "1"), [0, 1, 3, 4, 5]);
        assert_eq!(outline.open(|item| item.id == "0" || item.id == "4"), [0, 4]);
        assert_eq!(outline.open(|item| item.id == "3"), [0, 1, 2, 3, 4, 5], "it has nothing");
    }

    #[test]
    fn sections_keep_their_indentation() {
        let mut outline = Outline::default();
        outline.section(Item::heading("none", "None"), Vec::new());
        outline.section(Item::heading("a", "A"), vec!["x".into(), "  y".into(), "    z".into()]);
        let shape: Vec<(u8, &str)> =
            outline.items.iter().map(|item| (item.depth, item.text.as_str())).collect();
        assert_eq!(shape, [(0, "A"), (1, "x"), (2, "y"), (3, "z")]);
    }
}
