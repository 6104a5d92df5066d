//! Text about a selected row: labelled values and sentences, wrapped to the room there is.

use std::fmt::Display;

use super::sanitize::clean;
use super::text::{head, width, wrap};
use super::theme::Scope;
use super::widget::grid::{CellOut, GridColumn, GridSource, Width};

/// Labels share this width, so that values stand under each other.
const LABEL: usize = 13;

/// One line before wrapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetailLine {
    /// What the text is; empty for a sentence.
    pub label: String,
    /// The text.
    pub text: String,
    /// Its style.
    pub scope: Scope,
}

impl DetailLine {
    /// A labelled value.
    pub fn field(label: &str, text: impl Display) -> DetailLine {
        DetailLine { label: label.to_owned(), text: text.to_string(), scope: Scope::Text }
    }

    /// A sentence.
    pub fn text(text: impl Display) -> DetailLine {
        DetailLine { label: String::new(), text: text.to_string(), scope: Scope::Text }
    }

    /// A heading.
    pub fn heading(text: impl Display) -> DetailLine {
        DetailLine::text(text).scoped(Scope::TextStrong)
    }

    /// The same in another style.
    pub fn scoped(self, scope: Scope) -> DetailLine {
        DetailLine { scope, ..self }
    }
}

/// All of `lines` under a title, as plain text.
pub fn as_text(title: &str, lines: &[DetailLine]) -> String {
    let line = |line: &DetailLine| match line.label.is_empty() {
        true => format!("{}\n", line.text),
        false => format!("{}: {}\n", line.label, line.text),
    };
    std::iter::once(format!("{title}\n")).chain(lines.iter().map(line)).collect()
}

/// All of `lines` under a title, as Markdown: headings, sentences, and a list of the labelled values.
pub fn as_markdown(title: &str, lines: &[DetailLine]) -> String {
    let line = |line: &DetailLine| match (line.label.is_empty(), line.scope) {
        (false, _) => format!("- **{}**: {}\n", line.label, line.text),
        (true, Scope::TextStrong) => format!("\n### {}\n\n", line.text),
        (true, _) => format!("{}\n\n", line.text),
    };
    std::iter::once(format!("## {title}\n\n")).chain(lines.iter().map(line)).collect()
}

/// A line after wrapping: label (or nothing), text, style.
pub type Wrapped = (String, String, Scope);

/// `lines` in `columns` terminal columns.
pub fn wrapped(lines: &[DetailLine], columns: usize) -> Vec<Wrapped> {
    let mut out = Vec::new();
    for line in lines {
        let label =
            if line.label.is_empty() { String::new() } else { format!("{:<LABEL$} ", line.label) };
        let rest = columns.saturating_sub(width(&label)).max(10);
        let rows = match line.label.is_empty() && is_table_row(&line.text) {
            true => vec![whole_cells(&clean(&line.text), rest).to_owned()],
            false => wrap(&line.text, rest),
        };
        for (i, text) in rows.into_iter().enumerate() {
            let label = if i == 0 { label.clone() } else { " ".repeat(width(&label)) };
            out.push((label, text, line.scope));
        }
    }
    out
}

/// Whether the text has columns: it is indented, with two blanks or more between its cells.
fn is_table_row(text: &str) -> bool {
    text.starts_with("  ") && text.trim().contains("  ")
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
        GridColumn { width: Width::Between(10, u16::MAX), ..GridColumn::default() }
    }
    fn cell(&self, row: usize, _column: usize, out: &mut CellOut) {
        if let Some((label, text, scope)) = self.0.get(row) {
            out.set(label, *scope);
            out.text.push_str(text);
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
            wrapped(&lines, columns).into_iter().map(|(_, text, _)| text).collect()
        };
        assert_eq!(shown(40), rows);
        let narrow =
            ["                    b-0", "  NodeResourcesFit   94", "  total             468"];
        assert_eq!(shown(28), narrow);
    }

    #[test]
    fn values_stand_under_each_other_when_wrapped() {
        let lines =
            [DetailLine::field("message", "0/3 nodes are available"), DetailLine::text("end")];
        let shown: Vec<String> =
            wrapped(&lines, 30).into_iter().map(|(l, t, _)| format!("{l}{t}")).collect();
        assert_eq!(shown, ["message       0/3 nodes are", "              available", "end"]);
    }
}
