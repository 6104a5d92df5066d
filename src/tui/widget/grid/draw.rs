//! Draws the visible part of a grid straight into the buffer.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Modifier, Style};

use super::columns::{self, ColumnLayout, MARK, PlacedColumn, ShownColumns};
use super::state::Geometry;
use super::{CellWriter, GridSource, GridState};
use crate::tui::glyph::{
    ASCENDING, BREAKPOINT, CURSOR, DESCENDING, EIGHTHS, MARKED, MORE_LEFT, MORE_RIGHT,
};
use crate::tui::sanitize;
use crate::tui::text::{Align, Truncation, fit, width};
use crate::tui::theme::Scope;
use crate::tui::widget::Paint;

/// Draws `source` into `area`; `focused` says whether it has the keys. Gives back where the selected cell
/// is, for the terminal's own cursor.
pub fn draw(
    buffer: &mut Buffer,
    area: Rect,
    source: &dyn GridSource,
    state: &mut GridState,
    paint: &Paint,
    focused: bool,
) -> Option<Position> {
    let shown = ShownColumns::of(source, paint.tier, state.sorted_column());
    draw_columns(buffer, area, (source, &shown), state, paint, focused)
}

/// The same with columns that are known.
pub fn draw_columns(
    buffer: &mut Buffer,
    area: Rect,
    (source, shown): (&dyn GridSource, &ShownColumns),
    state: &mut GridState,
    paint: &Paint,
    focused: bool,
) -> Option<Position> {
    // Columns without a row tell nothing. Of little room, rows get at least half.
    let titles = if state.total() == 0 { 0 } else { source.header_lines() };
    let headers = titles.min(area.height / 2).max(titles.min(1));
    if area.height <= headers || area.width <= MARK {
        return None;
    }
    let room = area.width - MARK;
    state.first_column = columns::scroll_to(shown, state.first_column, state.column, room);
    let placement = columns::place(shown, state.first_column, room);
    if headers > 0 {
        draw_header(buffer, Rect { height: headers, ..area }, state, paint, &placement);
    }
    let lines = Rect { y: area.y + headers, height: area.height - headers, ..area };
    let top = state.scroll_to_selection(usize::from(lines.height));
    remember(state, Rect { height: headers, ..area }, lines, top, &placement);
    let mut out = CellWriter::default();
    for (y, line) in (lines.top()..lines.bottom()).zip(top..) {
        let Some(row) = state.row_at(line) else { break };
        let row_area = Rect { y, height: 1, ..lines };
        draw_row(buffer, row_area, source, row, paint, &placement.columns, &mut out);
        if !state.marks().is_empty() && state.marks().contains(&source.key(row)) {
            paint.put(buffer, row_area, row_area.x + 1, y, MARKED, Scope::Mark);
        }
        if line == state.selected_line() {
            highlight(buffer, row_area, state, paint, &placement.columns, focused);
            if source.is_map() && source.gap() > 0 && focused {
                bracket(buffer, row_area, state, paint, &placement.columns);
            }
        }
    }
    selected_position(lines, state, top, &placement.columns)
}

fn remember(state: &mut GridState, header: Rect, lines: Rect, top: usize, shown: &ColumnLayout) {
    let place = |c: &PlacedColumn| (lines.x + MARK + c.x, c.width, c.index);
    let columns = shown.columns.iter().map(place).collect();
    state.geometry = Geometry { header, lines, top, columns, hidden: shown.hidden };
}

fn draw_header(
    buffer: &mut Buffer,
    area: Rect,
    state: &GridState,
    paint: &Paint,
    placement: &ColumnLayout,
) {
    for placed in &placement.columns {
        let chosen = placed.index == state.column;
        let scope = if chosen { Scope::HeaderChosen } else { Scope::Header };
        let mark = state.sort.filter(|s| s.column == placed.index);
        let mark = mark.map_or("", |s| if s.descending { DESCENDING } else { ASCENDING });
        let note = &placed.column.note;
        let titles = area.height.saturating_sub(u16::from(!note.is_empty())).max(1);
        // Of a name that is too high, the last words tell most.
        let lines: Vec<&str> = placed.column.title.split('\n').collect();
        let above = lines.len().saturating_sub(usize::from(titles));
        for (y, title) in (area.y..area.y + titles).zip(&lines[above..]) {
            let mark = if y == area.y { mark } else { "" };
            let room = usize::from(placed.width).saturating_sub(width(mark));
            let title = format!("{}{mark}", fit(title, room, Truncation::Middle));
            let line = Rect { y, height: 1, ..area };
            put_aligned(buffer, line, (placed, placed.column.cut), &title, scope, paint);
        }
        if !note.is_empty() && area.height > 1 {
            put_note(buffer, area, placed, paint);
        }
    }
    if placement.hidden.left > 0 {
        let x = placement.columns.first().map_or(0, |c| c.width) + MARK;
        paint.put(buffer, area, area.x + x, area.y, MORE_LEFT, Scope::HeaderChosen);
    }
    if placement.hidden.right > 0 {
        paint.put(buffer, area, area.right() - 1, area.y, MORE_RIGHT, Scope::HeaderChosen);
    }
}

/// The last line of a column's header.
fn put_note(buffer: &mut Buffer, area: Rect, placed: &PlacedColumn, paint: &Paint) {
    let needed: usize = placed.column.note.iter().map(|(text, _)| width(text)).sum();
    let blank = match placed.column.align {
        Align::Left => 0,
        Align::Right => usize::from(placed.width).saturating_sub(needed) as u16,
    };
    let (x, y) = (area.x + MARK + placed.x, area.bottom() - 1);
    let cell = Rect { x, width: placed.width, ..area }.intersection(area);
    let put = |x, (text, scope): &(String, Scope)| paint.put(buffer, cell, x, y, text, *scope);
    placed.column.note.iter().fold(x + blank, put);
}

fn draw_row(
    buffer: &mut Buffer,
    area: Rect,
    source: &dyn GridSource,
    row: usize,
    paint: &Paint,
    columns: &[PlacedColumn],
    out: &mut CellWriter,
) {
    if source.is_current(row) {
        paint.put(buffer, area, area.x, area.y, CURSOR, Scope::Cursor);
    } else if source.has_break(row) {
        paint.put(buffer, area, area.x, area.y, BREAKPOINT, Scope::Breakpoint);
    }
    for placed in columns {
        out.clear();
        source.cell(row, placed.index, out);
        match out.parts.is_empty() {
            true => {
                let cut = out.cut.unwrap_or(placed.column.cut);
                put_aligned(buffer, area, (placed, cut), &out.text, out.scope, paint);
            }
            false => put_parts(buffer, area, placed, out, paint),
        }
    }
}

/// A drawing: its parts from the left, as far as they fit.
fn put_parts(
    buffer: &mut Buffer,
    area: Rect,
    placed: &PlacedColumn,
    out: &CellWriter,
    paint: &Paint,
) {
    let x = area.x + MARK + placed.x;
    let cell = Rect { x, width: placed.width, ..area }.intersection(area);
    out.pieces().fold(x, |x, (text, part)| {
        let end = paint.put(buffer, cell, x, area.y, text, part.scope);
        if let Some(ground) = part.ground.and_then(|scope| paint.style(scope).fg) {
            let drawn = Rect { x, width: end - x, height: 1, ..area };
            buffer.set_style(drawn, Style::new().bg(ground));
        }
        end
    });
}

/// Writes the text of a column into a line.
fn put_aligned(
    buffer: &mut Buffer,
    line: Rect,
    (placed, cut): (&PlacedColumn, Truncation),
    text: &str,
    scope: Scope,
    paint: &Paint,
) {
    let clean = sanitize::clean(text);
    let shown = fit(&clean, usize::from(placed.width), cut);
    let blank = match placed.column.align {
        Align::Left => 0,
        Align::Right => placed.width.saturating_sub(width(&shown) as u16),
    };
    paint.put_clean(buffer, line, (line.x + MARK + placed.x + blank, line.y), &shown, scope);
}

/// The selection is laid over the finished line, so that verdicts keep their colour on it.
fn highlight(
    buffer: &mut Buffer,
    area: Rect,
    state: &GridState,
    paint: &Paint,
    columns: &[PlacedColumn],
    focused: bool,
) {
    let bar = if focused { Scope::Selection } else { Scope::SelectionOther };
    let grounds = grounds(buffer, area, paint);
    buffer.set_style(area, paint.style(bar));
    let chosen = columns.iter().find(|c| c.index == state.column && c.index > 0);
    if let Some(placed) = chosen.filter(|_| focused) {
        let cell = Rect { x: area.x + MARK + placed.x, width: placed.width, ..area };
        buffer.set_style(cell.intersection(area), paint.style(Scope::SelectionCell));
    }
    keep_bars(buffer, area);
    for (x, ground) in grounds {
        buffer.set_style(Rect { x, width: 1, ..area }, Style::new().bg(ground));
    }
}

/// The cells of a line in which a segment of a bar ends and the next one begins, with that one's colour.
fn grounds(buffer: &Buffer, line: Rect, paint: &Paint) -> Vec<(u16, Color)> {
    let plain = paint.style(Scope::Text).bg.unwrap_or(Color::Reset);
    let cells = (line.left()..line.right()).filter_map(|x| Some((x, buffer.cell((x, line.y))?)));
    let shared = cells.filter(|(_, cell)| cell.bg != plain && EIGHTHS.contains(&cell.symbol()));
    shared.map(|(x, cell)| (x, cell.bg)).collect()
}

/// Bars keep their filling on a line whose colours are exchanged.
fn keep_bars(buffer: &mut Buffer, line: Rect) {
    for x in line.left()..line.right() {
        let Some(cell) = buffer.cell_mut((x, line.y)) else { continue };
        if cell.symbol().starts_with(|c: char| ('\u{2580}'..='\u{259f}').contains(&c)) {
            cell.modifier.remove(Modifier::REVERSED);
        }
    }
}

/// Brackets around the selected cell of a map: one character on a colour of its own is easily overlooked.
fn bracket(
    buffer: &mut Buffer,
    area: Rect,
    state: &GridState,
    paint: &Paint,
    columns: &[PlacedColumn],
) {
    let chosen = columns.iter().find(|c| c.index == state.column && c.index > 0);
    let Some(placed) = chosen else { return };
    let x = area.x + MARK + placed.x;
    paint.put(buffer, area, x - 1, area.y, "[", Scope::Cursor);
    paint.put(buffer, area, x + placed.width, area.y, "]", Scope::Cursor);
}

fn selected_position(
    lines: Rect,
    state: &GridState,
    top: usize,
    columns: &[PlacedColumn],
) -> Option<Position> {
    state.selected_row()?;
    let down = u16::try_from(state.selected_line() - top).ok().filter(|d| *d < lines.height)?;
    let x = columns.iter().find(|c| c.index == state.column).map_or(0, |c| c.x);
    Some(Position::new(lines.x + MARK + x, lines.y + down))
}
