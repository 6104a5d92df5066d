//! What the interface remembers of a grid: selection, chosen column, scroll positions, filter, order.

use kubestep_api::Labels;
use std::collections::BTreeSet;

use ratatui::layout::Rect;
use rayon::prelude::*;

use super::{CellWriter, GridSource, SortKey};
use crate::tui::filter::{Filterable, RowFilter};
use crate::tui::layout::WidthTier;

/// Order of rows by a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sort {
    /// Index of the column.
    pub column: usize,
    /// Whether the highest value is first.
    pub descending: bool,
}

/// Where the last frame drew the grid, for the mouse.
#[derive(Clone, Debug, Default)]
pub struct Geometry {
    pub header: Rect,
    pub lines: Rect,
    /// The row line drawn first.
    pub top: usize,
    /// Left edge, width and number of each column drawn.
    pub columns: Vec<(u16, u16, usize)>,
    /// Columns that are not there.
    pub hidden: Hidden,
}

/// How many columns a frame left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hidden {
    /// Those to the left of the ones shown.
    pub left: usize,
    /// Those to the right.
    pub right: usize,
    /// Those that only wider terminals show.
    pub wide: usize,
}

/// What is under a place on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GridHit {
    /// A line of the grid, and a column if there is one.
    Line(usize, Option<usize>),
    /// The header of that column.
    Header(usize),
}

/// State of one grid. `refresh` must follow every change of the data, filter or order.
#[derive(Clone, Debug, Default)]
pub struct GridState {
    pub filter: RowFilter,
    /// Order, if not the source's own.
    pub sort: Option<Sort>,
    /// Only rows with a failure.
    pub failures_only: bool,
    /// Index of the chosen column.
    pub column: usize,
    /// First scrolled column shown, at least 1.
    pub first_column: usize,
    /// The first line that is shown.
    top: usize,
    /// The line that is selected.
    selected: usize,
    selected_key: Option<u64>,
    /// The selected line and its key when a run began.
    held: Option<(usize, Option<u64>)>,
    /// Keys of the rows that a person marked.
    marks: BTreeSet<u64>,
    /// Source rows in the order shown.
    order: Vec<u32>,
    total: usize,
    stamp: Option<OrderKey>,
    pub(super) geometry: Geometry,
}

/// What the order was computed from.
#[derive(Clone, Debug, PartialEq)]
struct OrderKey {
    revision: u64,
    filter: RowFilter,
    sort: Option<Sort>,
    failures_only: bool,
}

impl OrderKey {
    /// Whether only the filter is another, and leaves nothing that the one before did not.
    fn narrows(&self, before: &OrderKey) -> bool {
        let same = OrderKey { filter: before.filter.clone(), ..self.clone() } == *before;
        same && self.filter.narrows(&before.filter)
    }
}

struct SearchedRow<'a>(&'a dyn GridSource, usize);

impl Filterable for SearchedRow<'_> {
    fn text(&self, all: &mut String) {
        // The cells are written one behind the other.
        let mut out = CellWriter { text: std::mem::take(all), ..CellWriter::default() };
        for column in 0..self.0.columns() {
            self.0.searched(self.1, column, &mut out);
            out.text.push(' ');
        }
        *all = out.text;
    }

    fn labels(&self) -> Option<&Labels> {
        self.0.labels(self.1)
    }
}

/// Rows in the order of a column, equal ones as they were.
fn sorted(source: &dyn GridSource, rows: Vec<u32>, sort: Sort) -> Vec<u32> {
    let key = |row: u32| (SortKey::of(source, row as usize, sort.column), row);
    let mut keys: Vec<(SortKey, u32)> = rows.into_par_iter().map(key).collect();
    match sort.descending {
        true => keys.par_sort_by(|a, b| b.0.cmp(&a.0)),
        false => keys.par_sort_by(|a, b| a.0.cmp(&b.0)),
    }
    keys.into_iter().map(|(_, row)| row).collect()
}

impl GridState {
    /// A grid that starts out in the order of a column.
    pub fn sorted(column: usize, descending: bool) -> GridState {
        GridState { sort: Some(Sort { column, descending }), ..GridState::default() }
    }

    /// Recomputes which rows are shown in which order, unless nothing changed; `revision` changes with the
    /// data. The selection stays on its row, or near where it was.
    pub fn refresh(&mut self, source: &dyn GridSource, revision: u64) {
        let stamp = OrderKey {
            revision,
            filter: self.filter.clone(),
            sort: self.sort,
            failures_only: self.failures_only,
        };
        // The lines of a map depend on the size of the screen, too.
        let as_many = self.total == source.rows();
        if as_many && self.stamp.as_ref() == Some(&stamp) {
            return;
        }
        let before = self.stamp.replace(stamp).filter(|_| as_many);
        self.total = source.rows();
        match self.stamp.as_ref().zip(before).is_some_and(|(now, before)| now.narrows(&before)) {
            true => {
                let before = std::mem::take(&mut self.order);
                self.order = self.kept(source, before.into_par_iter());
            }
            false => self.order = self.ordered_rows(source),
        }
        self.column = self.column.min(source.columns().saturating_sub(1));
        let (line, key) = self.held.unwrap_or((self.selected, self.selected_key));
        let kept = key.and_then(|key| self.line_of(source, key));
        let instead = match key {
            Some(_) => source.line_instead(line),
            None => line,
        };
        self.put_selection(source, kept.unwrap_or(instead));
    }

    /// Lets refreshes begin at the present selection, however many there are before it is released:
    /// where it ends does not depend on what rows came and went in between.
    pub fn hold(&mut self) {
        self.held.get_or_insert((self.selected, self.selected_key));
    }

    /// Lets the next refresh begin where this one ended.
    pub fn release(&mut self) {
        self.held = None;
    }

    fn ordered_rows(&self, source: &dyn GridSource) -> Vec<u32> {
        let rows = 0..source.rows() as u32;
        let order = match (self.failures_only, self.filter.is_empty()) {
            (false, true) => rows.collect(),
            (false, false) => self.kept(source, rows.into_par_iter()),
            (true, _) => {
                let failures = rows.into_par_iter();
                self.kept(source, failures.filter(|row| source.is_failure(*row as usize)))
            }
        };
        match self.sort.filter(|sort| sort.column < source.columns()) {
            Some(sort) => sorted(source, order, sort),
            None => order,
        }
    }

    /// Those of `rows` that the filter leaves.
    fn kept(&self, source: &dyn GridSource, rows: impl ParallelIterator<Item = u32>) -> Vec<u32> {
        let keeps = |room: &mut String, row: u32| {
            self.filter.keeps(&SearchedRow(source, row as usize), room).then_some(row)
        };
        rows.map_init(String::new, keeps).flatten_iter().collect()
    }

    fn line_of(&self, source: &dyn GridSource, key: u64) -> Option<usize> {
        self.order.iter().position(|row| source.key(*row as usize) == key)
    }

    /// Selects a line, or the last one when there are fewer.
    pub fn select(&mut self, source: &dyn GridSource, line: usize) {
        self.release();
        self.put_selection(source, line);
    }

    fn put_selection(&mut self, source: &dyn GridSource, line: usize) {
        self.selected = line.min(self.order.len().saturating_sub(1));
        self.selected_key = self.selected_row().map(|row| source.key(row));
    }

    /// Lets the next refresh select the last line.
    pub fn go_to_end(&mut self) {
        (self.selected, self.selected_key, self.stamp) = (usize::MAX, None, None);
        self.release();
    }

    /// Moves the selection by `lines`, stopping at both ends.
    pub fn move_by(&mut self, source: &dyn GridSource, lines: isize) {
        self.select(source, self.selected.saturating_add_signed(lines));
    }

    /// Moves what is on screen by `lines`, for text of which no line is chosen: the selection goes on
    /// from the edge of the last frame.
    pub fn scroll_by(&mut self, source: &dyn GridSource, lines: isize) {
        let (first, height) = (self.geometry.top, usize::from(self.geometry.lines.height));
        let edge = match lines < 0 {
            true => first.min(self.selected),
            false => (first + height).saturating_sub(1).max(self.selected),
        };
        self.select(source, edge.saturating_add_signed(lines));
    }

    /// Selects the row with this key; says whether it is shown at all.
    pub fn select_key(&mut self, source: &dyn GridSource, key: u64) -> bool {
        let line = self.line_of(source, key);
        if let Some(line) = line {
            self.select(source, line);
        }
        line.is_some()
    }

    /// Marks a row by its key, or takes its mark away; says whether it is marked now.
    pub fn toggle_mark(&mut self, key: u64) -> bool {
        let marked = self.marks.insert(key);
        if !marked {
            self.marks.remove(&key);
        }
        marked
    }

    /// The keys of marked rows, also of those not shown.
    pub fn marks(&self) -> &BTreeSet<u64> {
        &self.marks
    }

    /// Takes all marks away; says how many there were.
    pub fn clear_marks(&mut self) -> usize {
        std::mem::take(&mut self.marks).len()
    }

    /// The marked rows of the source that are shown, in the order shown.
    pub fn marked_rows(&self, source: &dyn GridSource) -> Vec<usize> {
        if self.marks.is_empty() {
            return Vec::new();
        }
        let rows = self.order.iter().map(|row| *row as usize);
        rows.filter(|row| self.marks.contains(&source.key(*row))).collect()
    }

    /// Selects the next marked line, or the one before, around the ends; says whether there is another.
    pub fn jump_to_mark(&mut self, source: &dyn GridSource, back: bool) -> bool {
        let (lines, from) = (self.order.len(), self.selected);
        let mut after = (1..lines).map(|step| match back {
            true => (from + lines - step) % lines,
            false => (from + step) % lines,
        });
        let is_marked = |line: &usize| {
            self.row_at(*line).is_some_and(|row| self.marks.contains(&source.key(row)))
        };
        let found = after.find(is_marked);
        if let Some(line) = found {
            self.select(source, line);
        }
        found.is_some()
    }

    /// Chooses the column `by` columns to the right, or to the left when negative, of those that
    /// a terminal of that class shows.
    pub fn choose_column(&mut self, source: &dyn GridSource, by: isize, tier: WidthTier) {
        let shown = (0..source.columns()).filter(|at| *at == 0 || source.column(*at).from <= tier);
        let shown: Vec<usize> = shown.collect();
        let at = shown.partition_point(|column| *column < self.column).saturating_add_signed(by);
        self.column = shown.get(at).or(shown.last()).copied().unwrap_or_default();
    }

    /// Sorts by the chosen column: ascending, then descending, then not at all.
    pub fn cycle_sort(&mut self) {
        self.sort = match self.sort {
            Some(Sort { column, descending: false }) if column == self.column => {
                Some(Sort { column, descending: true })
            }
            Some(Sort { column, descending: true }) if column == self.column => None,
            _ => Some(Sort { column: self.column, descending: false }),
        };
        self.select_top();
    }

    /// Another order is looked at from its top.
    fn select_top(&mut self) {
        (self.selected, self.selected_key, self.top) = (0, None, 0);
    }

    /// Reverses the order shown: of the sorted column, else of the chosen one.
    pub fn invert(&mut self) {
        let column = self.column;
        let sort = self.sort.get_or_insert(Sort { column, descending: false });
        sort.descending = !sort.descending;
        self.select_top();
    }

    /// What the last frame drew at a place.
    pub fn hit(&self, x: u16, y: u16) -> Option<GridHit> {
        let shown = &self.geometry;
        let under = |(left, width, _): &&(u16, u16, usize)| (*left..left + width).contains(&x);
        let column = shown.columns.iter().find(under).map(|(_, _, index)| *index);
        if shown.header.contains((x, y).into()) {
            return column.map(GridHit::Header);
        }
        let inside = shown.lines.contains((x, y).into());
        let line = shown.top + usize::from(y.saturating_sub(shown.lines.y));
        (inside && line < self.order.len()).then_some(GridHit::Line(line, column))
    }

    /// Lines of rows that the last frame had room for.
    pub fn height(&self) -> u16 {
        self.geometry.lines.height
    }

    /// Lines below those that the last frame drew.
    pub fn lines_below(&self) -> usize {
        let drawn = self.geometry.top + usize::from(self.geometry.lines.height);
        self.order.len().saturating_sub(drawn)
    }

    /// Columns that the last frame left out.
    pub fn hidden_columns(&self) -> Hidden {
        self.geometry.hidden
    }

    /// Index of the selected line among those that the filter leaves.
    pub fn selected_line(&self) -> usize {
        self.selected
    }

    /// The column that rows are sorted by.
    pub fn sorted_column(&self) -> Option<usize> {
        self.sort.map(|sort| sort.column)
    }

    /// The selected row of the source.
    pub fn selected_row(&self) -> Option<usize> {
        self.row_at(self.selected)
    }

    /// The row of the source at a line.
    pub fn row_at(&self, line: usize) -> Option<usize> {
        self.order.get(line).map(|row| *row as usize)
    }

    /// At most so many rows, from the first one on the screen.
    pub fn rows_from_top(&self, count: usize) -> impl Iterator<Item = usize> {
        self.order.iter().skip(self.geometry.top).take(count).map(|row| *row as usize)
    }

    /// How many rows are shown.
    pub fn shown(&self) -> usize {
        self.order.len()
    }

    /// How many rows there are.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Scrolls so that the selection is within `height` lines; gives back the first line.
    pub fn scroll_to_selection(&mut self, height: usize) -> usize {
        let highest = self.order.len().saturating_sub(height);
        let least = (self.selected + 1).saturating_sub(height);
        self.top = self.top.clamp(least, self.selected.max(least)).min(highest);
        self.top
    }
}
