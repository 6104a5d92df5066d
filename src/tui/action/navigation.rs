//! Moving within a view: rows, columns, panes, order and filter of what is shown.

use super::{Action, ActionFn, ActionKind, COUNT, change, count};
use crate::tui::action_error::ActionError;
use crate::tui::app::{App, Effect};
use crate::tui::model::Model;

const fn look(
    name: &'static str,
    keys: &'static [&'static str],
    help: &'static str,
    run: ActionFn,
) -> Action {
    Action::new(name, keys, help, run).kind(ActionKind::Look)
}

/// One that a count repeats.
const fn counted(
    name: &'static str,
    keys: &'static [&'static str],
    help: &'static str,
    run: ActionFn,
) -> Action {
    look(name, keys, help, run).takes(COUNT)
}

/// The rows of the table.
#[rustfmt::skip]
pub const ACTIONS: &[Action] = &[
    counted("down", &["j", "down"], "Next row", |app, model, text| rows(app, model, 1, text)),
    counted("up", &["k", "up"], "Previous row", |app, model, text| rows(app, model, -1, text)),
    counted("left", &["h", "left", "<", "shift-left"], "Select the column to the left",
        |app, model, text| columns(app, model, -1, text)),
    counted("right", &["l", "right", ">", "shift-right"], "Select the column to the right",
        |app, model, text| columns(app, model, 1, text)),
    look("top", &["g g", "home"], "First row", |app, model, _| rows(app, model, isize::MIN, "")),
    look("bottom", &["G", "end"], "Last row", |app, model, _| rows(app, model, isize::MAX, "")),
    counted("half-down", &["ctrl-d"], "Half a screen down",
        |app, model, text| rows(app, model, half_page(app), text)),
    counted("half-up", &["ctrl-u"], "Half a screen up",
        |app, model, text| rows(app, model, -half_page(app), text)),
    counted("page-down", &["ctrl-f", "pagedown"], "One screen down",
        |app, model, text| rows(app, model, app.page_lines(), text)),
    counted("page-up", &["ctrl-b", "pageup"], "One screen up",
        |app, model, text| rows(app, model, -app.page_lines(), text)),
    look("next-pane", &["tab", "backtab"], "Move the focus to the detail pane, or back to the rows",
        |app, _, _| change(app, App::switch_pane)),
    look("sort", &["o"], "Sort by the chosen column: up, down, off",
        |app, _, _| change(app, |app| app.change_grid(|grid| grid.cycle_sort()))).search("order"),
    look("invert", &["i"], "Reverse the order of the rows",
        |app, _, _| change(app, |app| app.change_grid(|grid| grid.invert()))),
    look("failures", &["z"], "Show only rows with a failure, or all again",
        |app, _, _| change(app, |app| app.change_grid(|grid| grid.failures_only ^= true)))
        .hint("failures"),
];

fn rows(app: &mut App, model: &Model, lines: isize, text: &str) -> Result<Effect, ActionError> {
    let lines = lines.saturating_mul(times(text)?);
    change(app, |app| app.move_or_say(model, lines))
}

fn columns(app: &mut App, model: &Model, by: isize, text: &str) -> Result<Effect, ActionError> {
    let by = by * times(text)?;
    change(app, |app| app.choose_column(model, by))
}

fn times(text: &str) -> Result<isize, ActionError> {
    Ok(isize::try_from(count(text)?).unwrap_or(isize::MAX))
}

fn half_page(app: &App) -> isize {
    (app.page_lines() / 2).max(1)
}
