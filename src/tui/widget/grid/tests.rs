//! The grid asks for visible cells only, keeps its first column, its selection and its numbers.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::*;
use crate::tui::color::ColorDepth;
use crate::tui::filter::RowFilter;
use crate::tui::glyph::Charset;
use crate::tui::theme::{Library, Theme};
use crate::tui::widget::Paint;

/// `node-0`, `node-1`, … with a number column and wide text columns.
struct Nodes {
    rows: usize,
    columns: usize,
    asked: AtomicUsize,
    names: Vec<u64>,
}

fn nodes(rows: usize, columns: usize) -> Nodes {
    let names = (0..rows as u64).collect();
    Nodes { rows, columns, asked: AtomicUsize::new(0), names }
}

impl GridSource for Nodes {
    fn rows(&self) -> usize {
        self.rows
    }
    fn columns(&self) -> usize {
        self.columns
    }
    fn column(&self, column: usize) -> GridColumn {
        match column {
            0 => GridColumn::name("node", 8, 12),
            1 => GridColumn::number("score", 5),
            i => GridColumn::text(&format!("column{i}"), 10),
        }
    }
    fn cell(&self, row: usize, column: usize, out: &mut CellWriter) {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let name = self.names[row];
        match column {
            0 => write!(out, "node-{name}").unwrap(),
            1 => write!(out, "{}", 1000 - name).unwrap(),
            i => write!(out, "c{i}").unwrap(),
        }
    }
    fn key(&self, row: usize) -> u64 {
        self.names[row]
    }
    fn is_current(&self, row: usize) -> bool {
        row == 1
    }
    fn is_failure(&self, row: usize) -> bool {
        row.is_multiple_of(2)
    }
}

fn theme() -> Theme {
    Theme::load(&Library::default(), "dark", ColorDepth::Rgb).unwrap().0
}

fn draw_at(
    source: &Nodes,
    state: &mut GridState,
    width: u16,
    height: u16,
) -> (Vec<String>, Option<Position>) {
    let theme = theme();
    let tier = WidthTier::of(width);
    let paint = Paint { theme: &theme, charset: Charset::Unicode, tier };
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    let at = draw(&mut buffer, area, source, state, &paint, true);
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    ((0..height).map(|y| line(y).trim_end().to_owned()).collect(), at)
}

fn refreshed(source: &Nodes) -> GridState {
    let mut state = GridState::default();
    state.refresh(source, 1);
    state
}

#[test]
fn only_visible_cells_are_asked_for() {
    let source = nodes(5_000, 25);
    let mut state = refreshed(&source);
    source.asked.store(0, Ordering::Relaxed);
    draw_at(&source, &mut state, 200, 50);
    // 49 lines; name 8, score 5, then columns of 10 with a gap of one, the last one cut to what is left.
    assert_eq!(source.asked.load(Ordering::Relaxed), 49 * (2 + 17));
}

#[test]
fn a_refresh_without_change_asks_for_nothing() {
    let source = nodes(5_000, 25);
    let mut state = refreshed(&source);
    source.asked.store(0, Ordering::Relaxed);
    state.refresh(&source, 1);
    assert_eq!(source.asked.load(Ordering::Relaxed), 0);
}

#[test]
fn draws_header_mark_and_rows() {
    let source = nodes(3, 3);
    let mut state = refreshed(&source);
    let (lines, at) = draw_at(&source, &mut state, 40, 5);
    assert_eq!(
        lines,
        [
            "  node         score column2",
            "  node-0        1000 c2",
            "▶ node-1         999 c2",
            "  node-2         998 c2",
            "",
        ]
    );
    assert_eq!(at, Some(Position::new(2, 1)));
}

#[test]
fn the_first_column_stays_while_the_others_scroll() {
    let source = nodes(2, 9);
    let mut state = refreshed(&source);
    state.choose_column(&source, 7, WidthTier::Wide);
    let (lines, _) = draw_at(&source, &mut state, 36, 3);
    assert_eq!(lines[0], "  node        ◂column6    column7  ▸");
    assert!(lines[1].starts_with("  node-0"));
}

#[test]
fn a_number_that_does_not_fit_is_left_out_not_cut() {
    let source = nodes(2, 2);
    let mut state = refreshed(&source);
    let (lines, _) = draw_at(&source, &mut state, 14, 3);
    assert_eq!(lines[1], "  node-0");
    assert!(lines[0].ends_with('▸'));
}

#[test]
fn filter_counts_and_keeps_the_selected_row() {
    let source = nodes(200, 2);
    let mut state = refreshed(&source);
    state.select(&source, 42);
    state.filter = RowFilter::parse("node-*2").unwrap();
    state.refresh(&source, 1);
    assert_eq!((state.shown(), state.total()), (38, 200));
    assert_eq!(state.selected_row(), Some(42));
    state.filter = RowFilter::parse("node-199").unwrap();
    state.refresh(&source, 1);
    assert_eq!((state.shown(), state.selected_row()), (1, Some(199)));
}

#[test]
fn the_selection_follows_its_row_when_the_data_moves() {
    let mut source = nodes(10, 2);
    let mut state = refreshed(&source);
    state.select(&source, 7);
    source.names.rotate_left(3);
    state.refresh(&source, 2);
    assert_eq!(state.selected_row(), Some(4));
}

#[test]
fn sorting_cycles_up_down_and_off() {
    let source = nodes(12, 2);
    let mut state = refreshed(&source);
    state.choose_column(&source, 1, WidthTier::Wide);
    let first = |state: &mut GridState| {
        state.cycle_sort();
        state.refresh(&source, 1);
        state.row_at(0)
    };
    assert_eq!(first(&mut state), Some(11)); // lowest score
    assert_eq!(first(&mut state), Some(0));
    state.select(&source, 0);
    let (lines, _) = draw_at(&source, &mut state, 40, 3);
    assert_eq!(lines[0], "  node         score▼");
    assert_eq!(first(&mut state), Some(0));
    assert_eq!(state.sort, None);
}

#[test]
fn failures_only_hides_the_rest() {
    let source = nodes(5, 2);
    let mut state = refreshed(&source);
    state.failures_only = true;
    state.refresh(&source, 1);
    assert_eq!((0..3).map(|l| state.row_at(l)).collect::<Vec<_>>(), [Some(0), Some(2), Some(4)]);
}

#[test]
fn scrolling_keeps_the_selection_in_sight_with_the_least_movement() {
    let source = nodes(100, 2);
    let mut state = refreshed(&source);
    assert_eq!(state.scroll_to_selection(10), 0);
    state.select(&source, 14);
    assert_eq!(state.scroll_to_selection(10), 5);
    state.select(&source, 9);
    assert_eq!(state.scroll_to_selection(10), 5);
    state.select(&source, 4);
    assert_eq!(state.scroll_to_selection(10), 4);
    state.select(&source, 5_000);
    assert_eq!((state.selected_line(), state.scroll_to_selection(10)), (99, 90));
    assert_eq!(state.scroll_to_selection(200), 0);
}

#[test]
fn an_empty_grid_has_no_selection() {
    let source = nodes(0, 2);
    let mut state = refreshed(&source);
    state.move_by(&source, 5);
    let (_, at) = draw_at(&source, &mut state, 40, 5);
    assert_eq!((state.selected_row(), at), (None, None));
}

#[test]
fn text_sorts_numbers_by_value_and_blanks_last() {
    let key = SortKey::of_text;
    let sorted = ["-7", "-0.5", "0", "5", "9", "10", "a", "b", ""];
    assert!(sorted.is_sorted_by_key(|text| key(text)));
    let names =
        ["a-2", "a-10", "ip-10-0-0-18", "ip-10-0-0-179", "ip-10-0-0-180", "n", "n1-b", "n2-a"];
    assert!(names.is_sorted_by_key(|text| key(text)));
    assert!(key("9") < key("10") && key("-7") < key("-0.5") && key("b") < key(""));
}
