//! Text about a selected row: labelled values and sentences, wrapped to the room there is.

use std::fmt::Display;
use std::ops::Range;

use super::sanitize::clean;
use super::text::{head, width, wrap};
use super::theme::Scope;
use super::widget::bar::StyledParts;
use super::widget::grid::{CellWriter, GridColumn, GridSource, Width};

/// Labels share this width, so that values stand under each other.
const LABEL: usize = 13;
/// Stands for a blank at which no line is broken.
const GLUE: &str = "\u{a0}";

/// One line before wrapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetailLine {
    /// What the text is; empty for a sentence.
    pub label: String,
    /// Whether the label is a key, which does what the text says.
    pub is_key: bool,
    pub text: String,
    pub scope: Scope,
    /// A drawing behind the text, which is not wrapped.
    pub drawing: StyledParts,
}

impl DetailLine {
    /// A value with its label, padded to the column of values.
    pub fn field(label: &str, text: impl Display) -> DetailLine {
        DetailLine { label: label.to_owned(), ..DetailLine::text(text) }
    }

    /// Keys, and what they do.
    pub fn key(keys: &str, does: impl Display) -> DetailLine {
        DetailLine { is_key: true, ..DetailLine::field(keys, does) }
    }

    /// A sentence without a label.
    pub fn text(text: impl Display) -> DetailLine {
        let (label, drawing) = (String::new(), StyledParts::new());
        DetailLine { label, is_key: false, text: text.to_string(), scope: Scope::Text, drawing }
    }

    /// A label with a drawing instead of text.
    pub fn drawn(label: &str, drawing: StyledParts) -> DetailLine {
        DetailLine { drawing, ..DetailLine::field(label, "") }
    }

    pub fn heading(text: impl Display) -> DetailLine {
        DetailLine::text(text).scoped(Scope::TextStrong)
    }

    /// The text and the characters of the drawing.
    fn value(&self) -> String {
        let drawn: String = self.drawing.iter().map(|(text, _)| text.as_str()).collect();
        format!("{}{drawn}", self.text)
    }

    /// The same in another style.
    pub fn scoped(self, scope: Scope) -> DetailLine {
        DetailLine { scope, ..self }
    }
}

/// All of `lines` under a title, as plain text.
pub fn as_text(title: &str, lines: &[DetailLine]) -> String {
    let line = |line: &DetailLine| match line.label.is_empty() {
        true => format!("{}\n", line.value()),
        false => format!("{}: {}\n", line.label, line.value()),
    };
    std::iter::once(format!("{title}\n")).chain(lines.iter().map(line)).collect()
}

/// All of `lines` under a title, as Markdown: headings, sentences, and a list of the labelled values.
pub fn as_markdown(title: &str, lines: &[DetailLine]) -> String {
    let line = |line: &DetailLine| match (line.label.is_empty(), line.scope) {
        (false, _) => format!("- **{}**: {}\n", line.label, line.value()),
        (true, Scope::TextStrong) => format!("\n### {}\n\n", line.text),
        (true, _) => format!("{}\n\n", line.value()),
    };
    std::iter::once(format!("## {title}\n\n")).chain(lines.iter().map(line)).collect()
}

/// A line after wrapping.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wrapped {
    /// The label, or blanks below it, or nothing.
    pub label: String,
    /// Whether the label is a key.
    pub is_key: bool,
    pub text: String,
    pub scope: Scope,
    /// A drawing behind the text.
    pub drawing: StyledParts,
    /// Whether a line before it has the beginning of the text.
    goes_on: bool,
}

impl Wrapped {
    /// Label, text and drawing, each with its style; what a node lacks stands out, and at the beginning of
    /// an indented text, the name of a plugin.
    pub fn parts(&self) -> impl Iterator<Item = (&str, Scope)> {
        let (name, rest) = match self.label.is_empty() && !self.goes_on {
            true => leading_name(&self.text),
            false => ("", self.text.as_str()),
        };
        let name = [(name, if self.scope == Scope::Text { Scope::Name } else { self.scope })];
        let label = if self.is_key { Scope::HintKey } else { Scope::TextDim };
        let label = [(self.label.as_str(), label)];
        let drawing = self.drawing.iter().map(|(text, scope)| (text.as_str(), *scope));
        label.into_iter().chain(name).chain(emphasized(rest, self.scope)).chain(drawing)
    }
}

/// A plain text in parts: how much is short stands out.
fn emphasized(text: &str, scope: Scope) -> Vec<(&str, Scope)> {
    let mut parts = Vec::new();
    let mut rest = text;
    while scope == Scope::Text
        && let Some(Range { start, end }) = shortage(rest)
    {
        parts.extend([(&rest[..start], scope), (&rest[start..end], Scope::TextStrong)]);
        rest = &rest[end..];
    }
    parts.push((rest, scope));
    parts
}

/// Where a text says how much of a resource is short: `500m cpu short`.
fn shortage(text: &str) -> Option<Range<usize>> {
    const SHORT: &str = " short";
    text.match_indices(SHORT).find_map(|(at, _)| {
        let (resource, end) = (text[..at].rfind(' ')?, at + SHORT.len());
        let start = text[..resource].rfind([' ', '(']).map_or(0, |before| before + 1);
        let is_amount = text[start..resource].starts_with(|c: char| c.is_ascii_digit());
        let is_word = text[end..].starts_with(char::is_alphanumeric);
        (is_amount && !is_word).then_some(start..end)
    })
}

/// The text with these amounts as single words, so that no line ends within them.
fn with_whole_amounts(text: &str) -> String {
    let parts = emphasized(text, Scope::Text).into_iter();
    parts
        .map(|(part, scope)| match scope {
            Scope::TextStrong => part.replace(' ', GLUE),
            _ => part.to_owned(),
        })
        .collect()
}

/// The name of a plugin at the beginning of an indented line, with the blanks before it, and the
/// rest: what it says, a remark in parentheses, or the next cell of a table.
fn leading_name(text: &str) -> (&str, &str) {
    let indent = text.len() - text.trim_start_matches(' ').len();
    let word = text[indent..].find(|c: char| !c.is_ascii_alphanumeric());
    let end = word.map_or(text.len(), |at| indent + at);
    let word = &text[indent..end];
    let capitals = word.chars().filter(char::is_ascii_uppercase).count();
    let is_name = indent > 1
        && word.starts_with(|c: char| c.is_ascii_uppercase())
        && (2..word.len()).contains(&capitals)
        && [":", " (", "  "].iter().any(|behind| text[end..].starts_with(behind));
    text.split_at(if is_name { end } else { 0 })
}

/// `lines` in `columns` terminal columns.
pub fn wrapped(lines: &[DetailLine], columns: usize) -> Vec<Wrapped> {
    let mut out = Vec::new();
    let widest = lines.iter().map(|line| width(&line.label)).max().unwrap_or(0);
    let labels = widest.clamp(LABEL, (columns / 3).max(LABEL));
    for (line, is_row) in lines.iter().zip(table_rows(lines)) {
        let label =
            if line.label.is_empty() { String::new() } else { format!("{:<labels$} ", line.label) };
        let rest = columns.saturating_sub(width(&label)).max(10);
        // Cells keep their distance where the whole line fits.
        let is_row = is_row || row_end(line).is_some_and(|end| end <= rest);
        let rows = match is_row {
            true => vec![whole_cells(&clean(&line.text), rest).to_owned()],
            false => {
                let rows = wrap(&with_whole_amounts(&line.text), rest).into_iter();
                rows.map(|row| row.replace(GLUE, " ")).collect()
            }
        };
        for (i, text) in rows.into_iter().enumerate() {
            let label = if i == 0 { label.clone() } else { " ".repeat(width(&label)) };
            let drawing = if i == 0 { line.drawing.clone() } else { StyledParts::new() };
            let (is_key, scope) = (line.is_key, line.scope);
            out.push(Wrapped { label, is_key, text, scope, drawing, goes_on: i > 0 });
        }
    }
    out
}

/// Whether each line is a row of a table: it is indented, has two blanks or more between its cells,
/// and so has a line next to it, whose last cell ends in the same column.
fn table_rows(lines: &[DetailLine]) -> Vec<bool> {
    let ends: Vec<Option<usize>> = lines.iter().map(row_end).collect();
    let is_row = |at: usize| {
        let next_to = [at.checked_sub(1), Some(at + 1)].into_iter().flatten();
        ends[at].is_some() && next_to.into_iter().any(|other| ends.get(other) == Some(&ends[at]))
    };
    (0..lines.len()).map(is_row).collect()
}

/// Where the last cell ends of a line that could be a row of a table.
fn row_end(line: &DetailLine) -> Option<usize> {
    let text = &line.text;
    let has_cells = text.starts_with("  ") && text.trim().contains("  ");
    (line.label.is_empty() && has_cells).then(|| width(text))
}

/// The cells of a row of a table that fit as a whole; the columns of its other rows end where its
/// own do.
fn whole_cells(row: &str, columns: usize) -> &str {
    if width(row) <= columns {
        return row;
    }
    let ends = row.match_indices("  ").map(|(at, _)| at);
    let cells = ends.filter(|at| !row[..*at].ends_with(' ') && !row[..*at].trim().is_empty());
    let fits = cells.filter(|at| width(&row[..*at]) <= columns).last();
    fits.map_or_else(|| head(row, columns), |at| &row[..at])
}

/// Wrapped lines as a grid of one column, for windows that scroll and filter.
pub struct LineGrid(pub Vec<Wrapped>);

impl GridSource for LineGrid {
    fn rows(&self) -> usize {
        self.0.len()
    }
    fn columns(&self) -> usize {
        1
    }
    fn header_lines(&self) -> u16 {
        0
    }
    fn column(&self, _column: usize) -> GridColumn {
        GridColumn { width: Width::Prose(10, u16::MAX), ..GridColumn::default() }
    }
    fn cell(&self, row: usize, _column: usize, out: &mut CellWriter) {
        for (text, scope) in self.0.get(row).into_iter().flat_map(Wrapped::parts) {
            out.part(text, scope);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_copies_as_text_and_as_markdown() {
        let lines = [DetailLine::heading("Last cycle, 3"), DetailLine::field("node", "a-0")];
        assert_eq!(as_text("web", &lines), "web\nLast cycle, 3\nnode: a-0\n");
        assert_eq!(
            as_markdown("web", &lines),
            "## web\n\n\n### Last cycle, 3\n\n- **node**: a-0\n"
        );
    }

    #[test]
    fn a_table_keeps_its_columns_and_shows_only_whole_cells() {
        let rows = [
            "                    b-0   a-0",
            "  NodeResourcesFit   94    73",
            "  total             468   447",
        ];
        let lines = rows.map(DetailLine::text);
        let shown = |columns| -> Vec<String> {
            wrapped(&lines, columns).into_iter().map(|line| line.text).collect()
        };
        assert_eq!(shown(40), rows);
        let narrow =
            ["                    b-0", "  NodeResourcesFit   94", "  total             468"];
        assert_eq!(shown(28), narrow);
    }

    #[test]
    fn how_much_is_short_stands_out_and_is_never_broken() {
        let text = "needs 1, 500m free (4 allocatable − 3.5 requested): 500m cpu short";
        for columns in 20..80 {
            let lines = wrapped(&[DetailLine::text(text)], columns);
            let strong = lines.iter().flat_map(Wrapped::parts);
            let strong = strong.filter(|(_, scope)| *scope == Scope::TextStrong);
            let strong: Vec<&str> = strong.map(|(text, _)| text).collect();
            assert_eq!(strong, ["500m cpu short"], "{columns}");
        }
        assert_eq!(shortage("a short list, 3 pods shortly"), None);
        assert_eq!(shortage("cpu (400m cpu short)"), Some(5..19));
    }

    #[test]
    fn only_the_name_of_a_plugin_at_the_beginning_of_a_text_is_coloured() {
        let names = |text: &str, columns| -> Vec<String> {
            let lines = wrapped(&[DetailLine::text(text)], columns);
            let parts = lines.iter().flat_map(Wrapped::parts);
            parts.filter(|(_, scope)| *scope == Scope::Name).map(|(it, _)| it.to_owned()).collect()
        };
        let blank: [&str; 0] = [];
        assert_eq!(
            names("  NodeResourcesFit: Insufficient cpu", 80).concat().trim(),
            "NodeResourcesFit"
        );
        assert_eq!(names("  NodeAffinity (on a-0): no", 80).concat().trim(), "NodeAffinity");
        let wraps = "  the same on every node: TaintToleration 75, ImageLocality 0";
        (30..60).for_each(|columns| assert_eq!(names(wraps, columns).concat(), "", "{columns}"));
        assert_eq!(names("  NodePool spare: m.large", 80).concat(), blank.concat(), "an object");
    }

    #[test]
    fn a_sentence_with_two_blanks_is_no_table() {
        let sentence = "  s  steps into the cycle, n runs it";
        let lines = [DetailLine::text(sentence), DetailLine::text("  W  explains")];
        let shown: Vec<String> = wrapped(&lines, 24).into_iter().map(|line| line.text).collect();
        assert_eq!(shown, ["  s steps into the", "  cycle, n runs it", "  W  explains"]);
    }

    #[test]
    fn values_stand_under_each_other_when_wrapped() {
        let lines =
            [DetailLine::field("message", "0/3 nodes are available"), DetailLine::text("end")];
        let shown: Vec<String> =
            wrapped(&lines, 30).into_iter().map(|line| line.label + &line.text).collect();
        assert_eq!(shown, ["message       0/3 nodes are", "              available", "end"]);
    }
}
