//! An answer as an outline: nested lines, some of which link to other views.

use kubestep_api::Name;
use kubestep_api::intern::Symbol;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::QueueName;

/// The target of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkTarget {
    /// The verdict of a plugin, or of any, on a node in the last cycle of a pod.
    Verdict(NamespacedName, Name, Option<Symbol>),
    /// A cycle by its number.
    Cycle(u64),
    /// The explanation of a pod.
    Pod(NamespacedName),
    /// The search for fixes of a pod.
    Search(NamespacedName),
}

/// The style of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Tone {
    #[default]
    Plain,
    Heading,
    Bad,
    Good,
    Dim,
    /// About a pod in a queue.
    Queued(QueueName),
    /// About a pod held at Permit.
    Waiting,
}

/// A line of an outline.
#[derive(Clone, PartialEq, Debug)]
pub struct OutlineItem {
    /// The indentation level; following lines with a higher level are its children.
    pub depth: u8,
    /// Its identity, stable across outlines of the same subject.
    pub id: String,
    /// One line, without its indentation.
    pub text: String,
    /// The target of its link.
    pub to: Option<LinkTarget>,
    /// Whether its children are folded at first.
    pub folded: bool,
    pub tone: Tone,
}

impl OutlineItem {
    /// A line without a link.
    pub fn new(depth: u8, text: impl Into<String>) -> OutlineItem {
        let text = text.into();
        OutlineItem { depth, id: text.clone(), text, to: None, folded: false, tone: Tone::Plain }
    }

    /// A heading with a fixed id, whatever its text.
    pub fn heading(id: &str, text: impl Into<String>) -> OutlineItem {
        OutlineItem { id: id.to_owned(), tone: Tone::Heading, ..OutlineItem::new(0, text) }
    }

    /// Sets the target of the link.
    pub fn to(self, to: LinkTarget) -> OutlineItem {
        OutlineItem { to: Some(to), ..self }
    }

    pub fn tone(self, tone: Tone) -> OutlineItem {
        OutlineItem { tone, ..self }
    }

    /// Sets whether its children are folded at first.
    pub fn folded(self, folded: bool) -> OutlineItem {
        OutlineItem { folded, ..self }
    }
}

/// A message behind what it explains: `: node(s) were unschedulable`; nothing if there is none.
pub fn with_colon(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

/// A title and nested lines, which text indents and the screen folds.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Outline {
    /// What the outline is about, for the heading.
    pub title: String,
    /// The lines, in order.
    pub items: Vec<OutlineItem>,
}

impl Outline {
    /// Adds a section with lines, whose leading spaces give their level, if there are any.
    pub fn section(&mut self, heading: OutlineItem, lines: Vec<String>) {
        if lines.is_empty() {
            return;
        }
        self.items.push(heading);
        self.items.extend(lines.iter().map(|line| {
            let indent = line.len() - line.trim_start().len();
            OutlineItem::new(1 + u8::try_from(indent / 2).unwrap_or(0).min(6), line.trim_start())
        }));
    }

    /// Whether the line has children.
    pub fn has_more(&self, at: usize) -> bool {
        let depth = self.items.get(at).map(|item| item.depth);
        self.items.get(at + 1).zip(depth).is_some_and(|(next, depth)| next.depth > depth)
    }

    /// The indices of the visible lines. `is_folded` tells whether a line is folded.
    pub fn open(&self, is_folded: impl Fn(&OutlineItem) -> bool) -> Vec<usize> {
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
        let items =
            depths.iter().enumerate().map(|(at, depth)| OutlineItem::new(*depth, at.to_string()));
        let outline = Outline { title: String::new(), items: items.collect() };
        assert_eq!(outline.open(|_| false).len(), 6);
        assert_eq!(outline.open(|item| item.id == "1"), [0, 1, 3, 4, 5]);
        assert_eq!(outline.open(|item| item.id == "0" || item.id == "4"), [0, 4]);
        assert_eq!(outline.open(|item| item.id == "3"), [0, 1, 2, 3, 4, 5], "it has nothing");
    }

    #[test]
    fn sections_keep_their_indentation() {
        let mut outline = Outline::default();
        outline.section(OutlineItem::heading("none", "None"), Vec::new());
        outline.section(
            OutlineItem::heading("a", "A"),
            vec!["x".into(), "  y".into(), "    z".into()],
        );
        let shape: Vec<(u8, &str)> =
            outline.items.iter().map(|item| (item.depth, item.text.as_str())).collect();
        assert_eq!(shape, [(0, "A"), (1, "x"), (2, "y"), (3, "z")]);
    }
}
