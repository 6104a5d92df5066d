//! Moving within a view: rows, columns, panes, order and filter of what is shown.

use super::{Action, Spec};
use crate::tui::app::{App, Effect};
use crate::tui::model::Model;

/// Actions that move within a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Navigation {
    /// One row up.
    Up,
    /// One row down.
    Down,
    /// First row.
    Top,
    /// Last row.
    Bottom,
    /// Half a screen up.
    HalfUp,
    /// Half a screen down.
    HalfDown,
    /// A screen up.
    PageUp,
    /// A screen down.
    PageDown,
    /// Column to the left.
    Left,
    /// Column to the right.
    Right,
    /// The other pane.
    NextPane,
    /// Sort by the chosen column.
    Sort,
    /// Reverse the order.
    Invert,
    /// Rows with a failure only.
    FailuresOnly,
}

const fn spec(
    action: Navigation,
    name: &'static str,
    keys: &'static [&'static str],
    hint: &'static str,
    help: &'static str,
) -> Spec {
    Spec { hint, ..Spec::new(Action::Navigation(action), name, keys, help) }
}

/// The rows of the table.
#[rustfmt::skip]
pub const SPECS: &[Spec] = &[
    spec(Navigation::Down, "down", &["j", "down"], "", "Next row"),
    spec(Navigation::Up, "up", &["k", "up"], "", "Previous row"),
    spec(Navigation::Left, "left", &["h", "left", "<", "shift-left"], "", "Select the column to the left"),
    spec(Navigation::Right, "right", &["l", "right", ">", "shift-right"], "", "Select the column to the right"),
    spec(Navigation::Top, "top", &["g g", "home"], "", "First row"),
    spec(Navigation::Bottom, "bottom", &["G", "end"], "", "Last row"),
    spec(Navigation::HalfDown, "half-down", &["ctrl-d"], "", "Half a screen down"),
    spec(Navigation::HalfUp, "half-up", &["ctrl-u"], "", "Half a screen up"),
    spec(Navigation::PageDown, "page-down", &["ctrl-f", "pagedown"], "", "One screen down"),
    spec(Navigation::PageUp, "page-up", &["ctrl-b", "pageup"], "", "One screen up"),
    spec(Navigation::NextPane, "next-pane", &["tab", "backtab"], "", "Move the focus to the detail pane, or back to the rows"),
    spec(Navigation::Sort, "sort", &["o"], "", "Sort by the chosen column: up, down, off"),
    spec(Navigation::Invert, "invert", &["i"], "", "Reverse the order of the rows"),
    spec(Navigation::FailuresOnly, "failures", &["z"], "failures", "Show only rows with a failure, or all again"),
];

/// Does it.
pub fn apply(action: Navigation, app: &mut App, model: &Model) -> Effect {
    let page = app.page_lines();
    match action {
        Navigation::Up => app.move_or_say(model, -1),
        Navigation::Down => app.move_or_say(model, 1),
        Navigation::Top => app.move_or_say(model, isize::MIN),
        Navigation::Bottom => app.move_or_say(model, isize::MAX),
        Navigation::HalfUp => app.move_or_say(model, -(page / 2).max(1)),
        Navigation::HalfDown => app.move_or_say(model, (page / 2).max(1)),
        Navigation::PageUp => app.move_or_say(model, -page),
        Navigation::PageDown => app.move_or_say(model, page),
        Navigation::Left => app.choose_column(model, -1),
        Navigation::Right => app.choose_column(model, 1),
        Navigation::NextPane => app.switch_pane(),
        Navigation::Sort => app.change_grid(|grid| grid.cycle_sort()),
        Navigation::Invert => app.change_grid(|grid| grid.invert()),
        Navigation::FailuresOnly => {
            app.change_grid(|grid| grid.failures_only = !grid.failures_only);
        }
    }
    Effect::None
}
