//! A table that asks for the cells it shows and no others.
//!
//! ratatui's `Table` needs every row; at 5,000 nodes × 25 plugins that costs 50 ms a frame. Here a
//! view describes its rows by the [`GridSource`] trait, and a frame costs only what fits on the
//! screen. The first column stays in place; the others scroll so that the selected one is visible.

mod columns;
mod draw;
mod state;
#[cfg(test)]
mod tests;

use kubestep_api::Labels;
use std::fmt;

pub use columns::ShownColumns;
pub use draw::{draw, draw_columns};
pub use state::{GridHit, GridState, Hidden};

use crate::tui::glyph::VerdictSign;
use crate::tui::layout::WidthTier;
use crate::tui::text::{Align, Truncation, width};
use crate::tui::theme::Scope;
use crate::tui::widget::bar::StyledParts;

/// Blank columns between two grid columns.
const GAP: u16 = 1;

/// Rows and columns of a grid, described and not built.
pub trait GridSource: Sync {
    /// The number of rows, before the filter.
    fn rows(&self) -> usize;
    /// Number of columns, at least one; the first is the row's name.
    fn columns(&self) -> usize;
    /// How a column looks.
    fn column(&self, column: usize) -> GridColumn;
    /// Writes one cell, at most as wide as its column.
    fn cell(&self, row: usize, column: usize, out: &mut CellWriter);

    /// Lines of the header: the titles, and one more where columns have notes.
    fn header_lines(&self) -> u16 {
        1
    }

    /// Writes what a filter looks for in a cell, where that is more than what it shows.
    fn searched(&self, row: usize, column: usize, out: &mut CellWriter) {
        self.cell(row, column, out);
    }

    /// What identifies a row when the data changes, so that the selection stays on it.
    fn key(&self, row: usize) -> u64 {
        row as u64
    }

    /// The line to select when the row on the selected line no longer exists.
    fn line_instead(&self, deleted: usize) -> usize {
        deleted
    }

    /// Whether the debugger stands on this row.
    fn is_current(&self, _row: usize) -> bool {
        false
    }

    /// Whether a breakpoint sits on this row.
    fn has_break(&self, _row: usize) -> bool {
        false
    }

    /// Whether the row stays when only failures are shown.
    fn is_failure(&self, _row: usize) -> bool {
        true
    }

    /// Whether cells are single signs, of which the selected one needs more than a colour: brackets in
    /// the blanks beside it, if there are any.
    fn is_map(&self) -> bool {
        false
    }

    /// Blank columns between two columns.
    fn gap(&self) -> u16 {
        GAP
    }

    /// Whether rows stand for objects with labels.
    fn has_labels(&self) -> bool {
        false
    }

    /// The labels of the row's object, for `-l` filters.
    fn labels(&self, _row: usize) -> Option<&Labels> {
        None
    }

    /// The amount that a row is sorted by in a column, where the cell does not show it as a plain
    /// number: `1750m/4`, `5m00s`. Other cells are sorted by their text.
    fn amount(&self, _row: usize, _column: usize) -> Option<i64> {
        None
    }
}

/// What rows are sorted by: numbers before text, empty cells last.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SortKey {
    /// A number. Within a column all are made in the same way.
    Number(i64),
    /// Another text: by letters, and the numbers in it by value.
    Text(Vec<u8>),
    Empty,
}

impl SortKey {
    /// That of a row in a column: its amount, else what the cell says.
    fn of(source: &dyn GridSource, row: usize, column: usize) -> SortKey {
        source.amount(row, column).map_or_else(
            || {
                let mut out = CellWriter::default();
                source.cell(row, column, &mut out);
                SortKey::of_text(&out.text)
            },
            SortKey::Number,
        )
    }

    /// That of a cell's text.
    fn of_text(text: &str) -> SortKey {
        let text = text.trim();
        match text.parse::<f64>() {
            Ok(number) => SortKey::Number(in_order(number)),
            Err(_) if text.is_empty() => SortKey::Empty,
            Err(_) => SortKey::Text(natural(text)),
        }
    }
}

/// Bytes in the order of a text whose numbers count by value: `ip-10-0` comes after `ip-9`. Each part
/// before a number ends with a zero byte, so that it comes before longer ones; the number follows.
fn natural(text: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(text.len() + 18);
    let mut rest = text;
    while !rest.is_empty() {
        let (letters, behind) =
            rest.split_at(rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len()));
        let end = behind.find(|c: char| !c.is_ascii_digit()).unwrap_or(behind.len());
        let (digits, behind) = behind.split_at(end);
        let number: u64 = if digits.is_empty() { 0 } else { digits.parse().unwrap_or(u64::MAX) };
        key.extend_from_slice(letters.as_bytes());
        key.push(0);
        key.extend_from_slice(&number.to_be_bytes());
        rest = behind;
    }
    key
}

/// A number that stands among others as `number` does by `f64::total_cmp`: the bits, those below
/// the sign turned over if it is negative.
fn in_order(number: f64) -> i64 {
    let bits = number.to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

/// How a column looks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GridColumn {
    /// Header; its lines stand under each other.
    pub title: String,
    /// The last line of the header, in pieces with a style each; empty for none.
    pub note: StyledParts,
    /// Columns of the terminal it takes.
    pub width: Width,
    /// The side its text sticks to.
    pub align: Align,
    /// Where its text is cut. Right-aligned text is a number and never cut.
    pub cut: Truncation,
    /// The narrowest class of terminal that shows it.
    pub from: WidthTier,
}

/// Width of a column in terminal columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// So many columns, whatever the rows contain.
    Fixed(u16),
    /// At least this, growing to the second number when there is room.
    Between(u16, u16),
    /// The same, once all others have what they need: a name is whole before a sentence is.
    Prose(u16, u16),
}

/// Rows that a column of prose is measured by; of more, it takes what room is left.
const MEASURED: usize = 200;

impl Width {
    /// The widest it can be.
    pub fn most(self) -> u16 {
        match self {
            Width::Fixed(width) | Width::Between(_, width) | Width::Prose(_, width) => width,
        }
    }
}

impl Default for Width {
    fn default() -> Width {
        Width::Fixed(8)
    }
}

impl GridColumn {
    /// A column of names, cut in the middle.
    pub fn name(title: &str, least: u16, most: u16) -> GridColumn {
        GridColumn {
            title: title.to_owned(),
            width: Width::Between(least, most.max(least)),
            cut: Truncation::Middle,
            ..GridColumn::default()
        }
    }

    /// A column of names as wide as the widest of them where there is room, else cut in the middle.
    pub fn fitted(title: &str, least: u16, widest: usize) -> GridColumn {
        let most = u16::try_from(widest.max(title.len())).unwrap_or(u16::MAX);
        GridColumn::name(title, least.min(most), most)
    }

    /// A column of short text.
    pub fn text(title: &str, width: u16) -> GridColumn {
        GridColumn { title: title.to_owned(), width: Width::Fixed(width), ..GridColumn::default() }
    }

    /// A column of prose that takes what room is left.
    pub fn prose(title: &str, least: u16) -> GridColumn {
        GridColumn {
            title: title.to_owned(),
            width: Width::Prose(least, u16::MAX),
            ..GridColumn::default()
        }
    }

    /// A column of prose no wider than its widest text.
    pub fn prose_of(title: &str, least: u16, widest: usize) -> GridColumn {
        let most = u16::try_from(widest.max(width(title))).unwrap_or(u16::MAX);
        GridColumn { width: Width::Prose(least.min(most), most), ..GridColumn::prose(title, least) }
    }

    /// The same of what a source shows in that column, unless it has many rows.
    pub fn prose_in(source: &dyn GridSource, column: usize, title: &str, least: u16) -> GridColumn {
        if source.rows() > MEASURED {
            return GridColumn::prose(title, least);
        }
        let width_of = |row| {
            let mut out = CellWriter::default();
            source.cell(row, column, &mut out);
            width(&out.text)
        };
        GridColumn::prose_of(title, least, (0..source.rows()).map(width_of).max().unwrap_or(0))
    }

    /// A column of numbers.
    pub fn number(title: &str, width: u16) -> GridColumn {
        GridColumn { align: Align::Right, ..GridColumn::text(title, width) }
    }

    /// The same, with a second header line.
    pub fn with_note(self, note: StyledParts) -> GridColumn {
        GridColumn { note, ..self }
    }

    /// The same, shown from this class of terminal on.
    pub fn shown_from(self, from: WidthTier) -> GridColumn {
        GridColumn { from, ..self }
    }
}

/// Receives a cell's text and style; reused from cell to cell.
#[derive(Debug, Default)]
pub struct CellWriter {
    /// The text; sanitised when it is drawn.
    pub text: String,
    pub scope: Scope,
    /// Where parts with other styles begin in the text, in bytes.
    pub parts: Vec<CellPart>,
    /// Where the text is cut, if not as the others of the column.
    pub cut: Option<Truncation>,
}

/// A part of a cell's text with a style of its own.
#[derive(Clone, Copy, Debug)]
pub struct CellPart {
    /// Where it begins, in bytes.
    at: usize,
    scope: Scope,
    /// The scope whose colour is behind it: what goes on where a partial cell ends.
    ground: Option<Scope>,
}

impl CellWriter {
    /// Empties it for the next cell.
    pub fn clear(&mut self) {
        self.text.clear();
        self.scope = Scope::Text;
        self.parts.clear();
        self.cut = None;
    }

    /// Appends text with a style of its own.
    pub fn part(&mut self, text: &str, scope: Scope) {
        self.part_on(text, scope, None);
    }

    /// The same before the colour of another scope.
    pub fn part_on(&mut self, text: &str, scope: Scope, ground: Option<Scope>) {
        self.parts.push(CellPart { at: self.text.len(), scope, ground });
        self.text.push_str(text);
    }

    /// Gives the whole cell one style.
    pub fn all(&mut self, scope: Scope) {
        self.scope = scope;
        self.parts.clear();
    }

    /// The text of each style, in order.
    pub fn styled(&self) -> impl Iterator<Item = (&str, Scope)> {
        self.pieces().map(|(text, part)| (text, part.scope))
    }

    /// The parts that stand before another colour, each with its scope.
    #[cfg(test)]
    pub fn grounds(&self) -> impl Iterator<Item = (&str, Scope)> {
        self.pieces().filter_map(|(text, part)| Some((text, part.ground?)))
    }

    fn pieces(&self) -> impl Iterator<Item = (&str, CellPart)> {
        let whole = CellPart { at: 0, scope: self.scope, ground: None };
        let starts = std::iter::once(whole).chain(self.parts.iter().copied());
        let ends = self.parts.iter().map(|part| part.at).chain([self.text.len()]);
        let texts = starts.zip(ends).map(|(part, to)| (&self.text[part.at..to], part));
        texts.filter(|(text, _)| !text.is_empty())
    }

    /// Sets text and style.
    pub fn set(&mut self, text: &str, scope: Scope) {
        self.text.push_str(text);
        self.scope = scope;
    }

    /// A verdict's sign and word.
    pub fn verdict(&mut self, verdict: VerdictSign) {
        self.set(verdict.glyph(), verdict.scope());
        self.text.push(' ');
        self.text.push_str(verdict.word());
    }
}

impl fmt::Write for CellWriter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.text.push_str(text);
        Ok(())
    }
}
