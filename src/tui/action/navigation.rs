//! Moving within a view: rows, columns, panes, order and filter of what is shown.

use super::{Action, Kind, Run};
use crate::tui::app::{App, Effect};
use crate::tui::model::Model;

const fn look(
    name: &'static str,
    keys: &'static [&'static str],
    help: &'static str,
    run: Run,
) -> Action {
    Action::new(name, keys, help, run).kind(Kind::Look)
}

/// The rows of the table.
#[rustfmt::skip]
pub const ACTIONS: &[Action] = &[
    look("down", &["j", "down"], "Next row", |app, model, _| rows(app, model, 1)),
    look("up", &["k", "up"], "Previous row", |app, model, _| rows(app, model, -1)),
    look("left", &["h", "left", "<", "shift-left"], "Select the column to the left",
        |app, model, _| done(app.choose_column(model, -1))),
    look("right", &["l", "right", ">", "shift-right"], "Select the column to the right",
        |app, model, _| done(app.choose_column(model, 1))),
    look("top", &["g g", "home"], "First row", |app, model, _| rows(app, model, isize::MIN)),
    look("bottom", &["G", "end"], "Last row", |app, model, _| rows(app, model, isize::MAX)),
    look("half-down", &["ctrl-d"], "Half a screen down",
        |app, model, _| rows(app, model, half_page(app))),
    look("half-up", &["ctrl-u"], "Half a screen up",
        |app, model, _| rows(app, model, -half_page(app))),
    look("page-down", &["ctrl-f", "pagedown"], "One screen down",
        |app, model, _| rows(app, model, app.page_lines())),
    look("page-up", &["ctrl-b", "pageup"], "One screen up",
        |app, model, _| rows(app, model, -app.page_lines())),
    look("next-pane", &["tab", "backtab"], "Move the focus to the detail pane, or back to the rows",
        |app, _, _| done(app.switch_pane())),
    look("sort", &["o"], "Sort by the chosen column: up, down, off",
        |app, _, _| done(app.change_grid(|grid| grid.cycle_sort()))).search("order"),
    look("invert", &["i"], "Reverse the order of the rows",
        |app, _, _| done(app.change_grid(|grid| grid.invert()))),
    look("failures", &["z"], "Show only rows with a failure, or all again",
        |app, _, _| done(app.change_grid(|grid| grid.failures_only = !grid.failures_only)))
        .hint("failures"),
];

fn done((): ()) -> Result<Effect, String> {
    Ok(Effect::None)
}

fn rows(app: &mut App, model: &Model, lines: isize) -> Result<Effect, String> {
    done(app.move_or_say(model, lines))
}

fn half_page(app: &App) -> isize {
    (app.page_lines() / 2).max(1)
}
