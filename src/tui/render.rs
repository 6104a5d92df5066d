//! One frame: the lines around the view, the view's two panes, windows and the prompt over it.

use kubestep_config::ExtensionPoint;
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::action::{KeyInput, Suggestions};
use super::app::App;
use super::glyph::MARKED;
use super::layout::{self, PaneNeeds, WidthTier};
use super::lines::{DetailLine, wrapped};
use super::model::Model;
use super::prompt::{LONGEST, Prompt, Purpose};
use super::text::{Truncation, fit, width};
use super::theme::Scope;
use super::view::{self, View, ViewId};
use super::widget::bar::StyledParts;
use super::widget::grid::{self, GridSource, GridState, Hidden, ShownColumns};
use super::widget::prompt::PromptLine;
use super::widget::status_line::Severity;
use super::widget::{Paint, breadcrumbs, hints, popup, prompt, status_line};
use kubestep_api::words::count;

/// Columns of a strip of cycles that is worth its room.
const LEAST_STRIP: usize = 12;

/// Draws everything and places the terminal's cursor on what has the keys, where screen readers look.
pub fn render(frame: &mut Frame, app: &mut App, input: &KeyInput, model: &Model) {
    let area = frame.area();
    let theme = app.theme().clone();
    let paint = Paint { theme: &theme, charset: app.charset(), tier: app.tier() };
    let buffer = frame.buffer_mut();
    buffer.set_style(area, paint.style(Scope::Text));
    let Some(screen) = layout::screen(area, app.has_breadcrumbs()) else {
        too_small(buffer, area, &paint);
        return;
    };
    draw_top(buffer, &screen, app, model, &paint);
    let mut cursor = draw_view(buffer, screen.body, app, model, &paint);
    if app.window().is_some() {
        // What is behind a window steps back.
        buffer.set_style(screen.body, paint.style(Scope::TextDim));
    }
    cursor = draw_window(buffer, screen.body, app, &paint).or(cursor);
    draw_continuations(buffer, screen.body, (input, app.view()), &paint);
    let suggestions = input.suggestions(app);
    draw_suggestions(buffer, screen.body, &suggestions, &paint);
    let line = (input, suggestions.ghost.as_str());
    cursor = draw_bottom(buffer, &screen, (app, model), line, &paint).or(cursor);
    if let Some(position) = cursor {
        frame.set_cursor_position(position);
    }
}

fn too_small(buffer: &mut Buffer, area: Rect, paint: &Paint) {
    let (columns, lines) = layout::SMALLEST;
    let text = format!("kubestep needs {columns}×{lines}; this is {}×{}.", area.width, area.height);
    for (y, line) in (area.top()..).zip(super::text::wrap(&text, usize::from(area.width))) {
        paint.put(buffer, area, area.x, y, &line, Scope::Text);
    }
}

fn draw_top(
    buffer: &mut Buffer,
    screen: &layout::ScreenAreas,
    app: &App,
    model: &Model,
    paint: &Paint,
) {
    let (mode, scope) = app.mode(model);
    view::tabs(app.view()).draw(buffer, screen.tabs, (&mode, scope), paint);
    let (crumbs, clock) = (model.crumbs(), model.clock());
    let room = breadcrumbs::draw(buffer, screen.crumbs, &crumbs, &clock, paint);
    if app.view() != ViewId::Timeline {
        draw_strip(buffer, room, model, paint);
    }
}

/// The recorded cycles, between the breadcrumbs and the clock.
fn draw_strip(buffer: &mut Buffer, room: Rect, model: &Model, paint: &Paint) {
    let columns = usize::from(room.width.saturating_sub(4));
    if room.height == 0 || columns < LEAST_STRIP || model.cycles.is_empty() {
        return;
    }
    let parts = view::strip(model, columns);
    let length: usize = parts.iter().map(|(text, _)| width(text)).sum();
    let start = room.right().saturating_sub(length.min(columns) as u16 + 2);
    let put = |x, (text, scope): &(String, Scope)| paint.put(buffer, room, x, room.y, text, *scope);
    parts.iter().fold(start, put);
}

fn draw_view(
    buffer: &mut Buffer,
    body: Rect,
    app: &mut App,
    model: &Model,
    paint: &Paint,
) -> Option<Position> {
    let id = app.view();
    let source = app.source(model);
    let details = app.detail_lines();
    let (detail_focused, _) = app.detail_state();
    let grid = app.grid(id);
    // The class of the terminal decides where the panes are, also when wide columns are switched on.
    let shown = ShownColumns::of(&*source, paint.tier, grid.sorted_column());
    let (columns, tier) = (shown.natural_width(), WidthTier::of(body.width));
    let needs = |lines| PaneNeeds { columns, lines, details };
    // How wide the rows are does not depend on how many there are.
    let (rows, _) = layout::panes(body, tier, needs(0));
    let banner = source.banner(rows.width.saturating_sub(3));
    let lines = lines_of(&*source, grid, body.width, &banner);
    let (rows, detail) = layout::panes(body, tier, needs(lines));
    let inner = Rect { y: rows.y + 1, height: rows.height.saturating_sub(1), ..rows };
    let inner = draw_banner(buffer, inner, &banner, paint);
    let drawn = (&*source as &dyn GridSource, &shown);
    let mut cursor = grid::draw_columns(buffer, inner, drawn, grid, paint, !detail_focused);
    let mut notes = title_notes(&*source, grid);
    notes.extend(as_of(id, model, source.dims_future()));
    notes.extend(source.note());
    let room = usize::from(rows.width).saturating_sub(3 * notes.len() + 2);
    let room = room.saturating_sub(notes.iter().map(|note| width(note)).sum());
    notes.extend(hidden_columns(grid, source.hidden_part(), room));
    // What is said of a cycle ends with its number or its outcome.
    let cut = if id.is_of_cycle() { Truncation::Middle } else { Truncation::End };
    draw_rule(buffer, rows, (&notes, cut), !detail_focused, paint);
    if grid.shown() == 0 {
        draw_empty(buffer, inner, &*source, grid, paint);
    }
    let marked = grid.selected_row().is_some_and(|row| grid.marks().contains(&source.key(row)));
    let lines = app.details(&*source, model);
    if let Some(at) = draw_detail(buffer, detail, (app, marked), &lines, paint) {
        cursor = Some(at);
    }
    cursor
}

/// The lines that all rows take, with the rule, the header and the drawing above them. What a filter
/// hides counts too, so that the panes stay where they are while one types. Without any row, what is
/// said in their place takes lines.
fn lines_of(source: &dyn View, grid: &GridState, columns: u16, banner: &[StyledParts]) -> u16 {
    /// Above the sentence and below it.
    const BLANKS: usize = 2;
    let (rows, header) = match grid.total() {
        0 => (super::text::wrap(&source.empty(), empty_columns(columns)).len() + BLANKS, 0),
        rows => (rows, source.header_lines()),
    };
    // Without a drawing, a blank line below the rows.
    let above = 1 + usize::from(header) + banner.len().max(1);
    u16::try_from(rows.saturating_add(above)).unwrap_or(u16::MAX)
}

/// Columns of what is said where there is no row.
fn empty_columns(columns: u16) -> usize {
    usize::from(columns.saturating_sub(4))
}

/// As much of the drawing above the rows as leaves these the larger part; the room that is left.
fn draw_banner(buffer: &mut Buffer, area: Rect, lines: &[StyledParts], paint: &Paint) -> Rect {
    let height = u16::try_from(lines.len()).unwrap_or(u16::MAX).min(area.height / 3);
    for (y, parts) in (area.y..area.y + height).zip(lines) {
        let line = Rect { x: area.x + 2, width: area.width.saturating_sub(3), ..area };
        let put = |x: u16, (text, scope): &(String, Scope)| {
            let room = usize::from(line.right().saturating_sub(x));
            paint.put(buffer, line, x, y, &fit(text, room, Truncation::End), *scope)
        };
        parts.iter().fold(line.x, put);
    }
    Rect { y: area.y + height, height: area.height - height, ..area }
}

/// Of which moment the rows are, where that is not the present.
fn as_of(view: ViewId, model: &Model, dims_future: bool) -> Option<String> {
    if let Some((done, all)) = model.going_back {
        return Some(format!("going back: {done} of {all} steps"));
    }
    if is_ahead(view, model) {
        return Some("after this step".into());
    }
    if dims_future {
        return Some("dimmed: after this step".into());
    }
    let past = view.spec().part.shows_cluster() && !model.at_end;
    past.then(|| match model.cycle() {
        Some(cycle) => format!("as of cycle {}", cycle.cycle),
        None => "as loaded".into(),
    })
}

/// Whether the view shows what the cycle does only after the step in which the debugger stands.
fn is_ahead(view: ViewId, model: &Model) -> bool {
    let of_view = match view {
        ViewId::Filter => ExtensionPoint::Filter,
        ViewId::Scores => ExtensionPoint::Score,
        ViewId::Preemption => ExtensionPoint::PostFilter,
        _ => return false,
    };
    let stands = model.stepped_frame().filter(|_| model.is_under_way());
    stands.is_some_and(|frame| frame.point.is_none_or(|at| at.index() < of_view.index()))
}

/// `─ Filter of default/web ─ 38/5000 ─ /gpu ─ failures ───`
fn title_notes(source: &dyn View, grid: &GridState) -> Vec<String> {
    let mut notes = vec![source.title()];
    let whole = grid.shown() == grid.total();
    notes.push(match source.extent().filter(|_| whole) {
        Some(extent) => extent,
        None if whole => {
            format!("{}/{}", (grid.selected_line() + 1).min(grid.shown()), grid.total())
        }
        None => format!("{} of {}", grid.shown(), grid.total()),
    });
    // The extent leaves no room for where one is.
    if source.extent().is_some() && grid.lines_below() > 0 {
        notes.push(count(grid.lines_below(), "more line"));
    }
    if !grid.filter.is_empty() {
        notes.push(format!("/{}", grid.filter.text()));
    }
    if !grid.marks().is_empty() {
        notes.push(format!("{} marked", grid.marks().len()));
    }
    if grid.failures_only {
        notes.push(source.failures().into());
    }
    notes
}

/// What is not shown for want of room: columns to the sides, columns and parts that Ctrl-w shows. In
/// `room` columns that are too few the note is shorter, never left out.
fn hidden_columns(grid: &GridState, part: Option<&str>, room: usize) -> Option<String> {
    if grid.total() == 0 {
        return None;
    }
    let columns = |number| count(number, "more column");
    let notes = match (grid.hidden_columns(), part) {
        (Hidden { left: 0, right: 0, wide: 0 }, None) => return None,
        (Hidden { left: 0, right: 0, wide: 0 }, Some(part)) => {
            [format!("Ctrl-w: {part}"), "Ctrl-w".to_owned()]
        }
        (Hidden { left: 0, right: 0, wide }, _) => {
            [format!("Ctrl-w: {}", columns(wide)), format!("+{wide}")]
        }
        (Hidden { left: 0, right, .. }, _) => {
            [format!("{} ▸", columns(right)), format!("+{right} ▸")]
        }
        (Hidden { left, right: 0, .. }, _) => {
            [format!("◂ {}", columns(left)), format!("◂ +{left}")]
        }
        (Hidden { left, right, .. }, _) => {
            [format!("◂ {left} and {right} more columns ▸"), format!("◂ +{} ▸", left + right)]
        }
    };
    let [whole, short] = notes;
    Some(if width(&whole) + 3 <= room { whole } else { short })
}

fn draw_rule(
    buffer: &mut Buffer,
    area: Rect,
    (notes, cut): (&[String], Truncation),
    focused: bool,
    paint: &Paint,
) {
    paint.rule(buffer, area, area.y);
    let tail: usize = notes.iter().skip(1).map(|n| width(n) + 3).sum();
    let room = usize::from(area.width).saturating_sub(tail + 4);
    // A title that is whole without the end of the rule takes it.
    let room = room + usize::from(notes.first().is_some_and(|title| width(title) == room + 1));
    let mut x = area.x + 1;
    for (i, note) in notes.iter().enumerate() {
        let scope = match (i, focused) {
            (0, true) => Scope::TitleFocus,
            _ => Scope::Title,
        };
        let shown = if i == 0 { fit(note, room, cut) } else { note.as_str().into() };
        x = paint.put(buffer, area, x, area.y, &format!(" {shown} "), scope) + 1;
    }
}

fn draw_empty(buffer: &mut Buffer, area: Rect, source: &dyn View, grid: &GridState, paint: &Paint) {
    let (below, text) = match grid.total() {
        0 => (1, source.empty()),
        n => (3, format!("None of {n} rows is left; Esc drops the filter, z shows all again.")),
    };
    let first = area.y + area.height.min(below);
    let lines = super::text::wrap(&text, empty_columns(area.width));
    for (y, line) in (first..area.bottom()).zip(lines) {
        paint.put(buffer, area, area.x + 2, y, &line, Scope::TextDim);
    }
}

/// What is to be said about the selected cell; scrolls when it has the keys.
fn draw_detail(
    buffer: &mut Buffer,
    area: Rect,
    (app, marked): (&mut App, bool),
    lines: &[DetailLine],
    paint: &Paint,
) -> Option<Position> {
    let lines = wrapped(lines, layout::detail_columns(area.width));
    let room = usize::from(area.height.saturating_sub(1));
    let (focused, scroll) = app.detail_state();
    let last = lines.len().saturating_sub(room);
    *scroll = (*scroll).min(last);
    let scroll = *scroll;
    let mut notes = vec!["Details".to_owned()];
    if marked {
        notes.push(format!("{MARKED} marked"));
    }
    if last > 0 {
        let hint = if focused { "" } else { "; Tab scrolls, d shows all" };
        let more = last - scroll;
        notes.push(format!("{}{hint}", count(more, "more line")));
    }
    draw_rule(buffer, area, (&notes, Truncation::End), focused, paint);
    for (y, line) in (area.y + 1..area.bottom()).zip(lines.iter().skip(scroll)) {
        let put = |x, (text, scope): (&str, Scope)| paint.put(buffer, area, x, y, text, scope);
        line.parts().fold(area.x + 1, put);
    }
    app.set_detail_room(last);
    focused.then(|| Position::new(area.x + 1, (area.y + 1).min(area.bottom().saturating_sub(1))))
}

fn draw_window(buffer: &mut Buffer, area: Rect, app: &mut App, paint: &Paint) -> Option<Position> {
    let screen = (area.width, area.height);
    let window = app.window()?;
    let size = window.size(screen);
    let title = match window.grid.filter.is_empty() {
        true => window.title.clone(),
        false => {
            let (shown, total) = (window.grid.shown(), window.grid.total());
            format!("{} ─ {shown} of {total} ─ /{}", window.title, window.grid.filter.text())
        }
    };
    // Beside the window the view would show pieces of words; above and below, at most one line.
    let hidden = match size.1 + 2 >= area.height {
        true => area,
        false => Rect { x: area.x, width: area.width, ..layout::centred(area, size.0, size.1) },
    };
    paint.fill(buffer, hidden, Scope::Text);
    let inner = popup::draw(buffer, area, size, &title, window.footer, paint);
    let source = window.source(size.0.saturating_sub(4));
    let cursor = grid::draw(buffer, inner, &*source, &mut window.grid, paint, true);
    match window.grid.lines_below() {
        0 => {}
        below => popup::note(buffer, inner, &count(below, "more line"), paint),
    }
    cursor
}

/// After the beginning of a key sequence: what could follow, in the lower right corner.
fn draw_continuations(
    buffer: &mut Buffer,
    area: Rect,
    (input, view): (&KeyInput, ViewId),
    paint: &Paint,
) {
    let next = input.continuations(view);
    if next.is_empty() {
        return;
    }
    let longest = next.iter().map(|h| width(&h.key) + width(&h.text) + 1).max().unwrap_or(0);
    let size = ((longest + 4) as u16, next.len() as u16 + 2);
    let corner = Rect {
        x: area.right().saturating_sub(size.0),
        y: area.bottom().saturating_sub(size.1),
        width: size.0.min(area.width),
        height: size.1.min(area.height),
    };
    let inner = popup::draw(buffer, corner, size, &input.pending_text(), "", paint);
    for (y, hint) in (inner.top()..inner.bottom()).zip(&next) {
        let x = paint.put(buffer, inner, inner.x, y, &hint.key, Scope::HintKey);
        paint.put(buffer, inner, x + 1, y, &hint.text, Scope::HintText);
    }
}

/// What the typed line can be completed to, over the prompt.
fn draw_suggestions(buffer: &mut Buffer, area: Rect, found: &Suggestions, paint: &Paint) {
    let Some(widest) = found.lines.iter().map(|(text, _)| width(text)).max() else { return };
    let column = widest.clamp(12, usize::from(area.width / 2)) as u16;
    let height = (found.lines.len() as u16 + 2).min(area.height);
    let corner = Rect { y: area.bottom().saturating_sub(height), height, ..area };
    let footer = "Tab completes";
    let inner = popup::draw(buffer, corner, (area.width, height), "", footer, paint);
    let mut before = "";
    for (at, (y, (text, about))) in (inner.top()..inner.bottom()).zip(&found.lines).enumerate() {
        let name = Rect { width: column.min(inner.width), ..inner };
        paint.put(buffer, name, inner.x, y, text, Scope::HintKey);
        // The form of an edit is said once for all objects that it can be about.
        let shown = if about == before { "" } else { about };
        before = about;
        let room = usize::from(inner.width.saturating_sub(column + 2));
        let shown = fit(shown, room, Truncation::End);
        paint.put(buffer, inner, inner.x + column + 2, y, &shown, Scope::TextDim);
        if found.chosen == Some(at) {
            let line = Rect { y, height: 1, ..inner };
            buffer.set_style(line, paint.style(Scope::Selection));
        }
    }
    if !found.more.is_empty() {
        popup::note(buffer, inner, &found.more, paint);
    }
}

fn draw_bottom(
    buffer: &mut Buffer,
    screen: &layout::ScreenAreas,
    (app, model): (&mut App, &Model),
    (input, ghost): (&KeyInput, &str),
    paint: &Paint,
) -> Option<Position> {
    let (list, help) = input.hints(app, model);
    hints::draw(buffer, screen.hints, &list, &help, paint);
    let note = prompt_note(app);
    let Some(open) = app.prompt() else {
        let said = app.status();
        let goes_on = model.progress.as_deref().or(model.searching.as_deref());
        let said = said.or(goes_on.map(|text| (Severity::Info, text)));
        let said = said.or(app.selected_help().map(|help| (Severity::Info, help)));
        if let Some((severity, text)) = said {
            status_line::draw(buffer, screen.status, severity, text, paint);
        }
        return None;
    };
    let label = match open.purpose {
        Purpose::Command => ":".to_owned(),
        Purpose::Filter => "/".to_owned(),
        Purpose::Argument { command, what } => format!("{command} {}: ", what.to_lowercase()),
    };
    let (before, after) = open.around_cursor();
    let line = PromptLine { label: &label, before, after, ghost, note: &note };
    Some(prompt::draw(buffer, screen.status, &line, paint))
}

/// What is wrong with the text of the prompt; while a filter is typed, how many rows it leaves.
fn prompt_note(app: &mut App) -> String {
    if app.prompt().is_some_and(Prompt::is_full) {
        return format!("a line takes {LONGEST} characters");
    }
    let Some(text) = app.prompt().filter(|p| p.purpose == Purpose::Filter).map(|p| p.text()) else {
        return String::new();
    };
    match super::filter::RowFilter::parse(text) {
        Err(problem) => problem.to_string(),
        Ok(_) => {
            let (shown, total) = app.filter_count();
            format!("{shown}/{total}")
        }
    }
}
