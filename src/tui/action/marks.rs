//! Marks on rows: what is marked is copied together, jumped between, and compared.

use super::{Action, Place, Spec};
use crate::tui::app::{App, Effect};
use crate::tui::model::Model;
use crate::tui::view::ViewId;

/// Actions on marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Marks {
    /// Marks the selected row, or takes its mark away.
    Mark,
    /// To the next marked row.
    Next,
    /// To the previous marked row.
    Previous,
    /// Takes all marks of the view away.
    Clear,
    /// Two nodes side by side.
    Compare,
}

const fn spec(
    action: Marks,
    name: &'static str,
    keys: &'static [&'static str],
    help: &'static str,
) -> Spec {
    Spec::new(Action::Marks(action), name, keys, help)
}

/// Views whose rows are nodes.
const NODES: Place = Place::views(&[ViewId::Filter, ViewId::Scores, ViewId::Nodes]);

/// The rows of the table.
#[rustfmt::skip]
pub const SPECS: &[Spec] = &[
    spec(Marks::Mark, "mark", &["v", "insert"], "Mark or unmark the selected row; y copies all marked rows"),
    spec(Marks::Next, "next-mark", &["'"], "To the next marked row"),
    spec(Marks::Previous, "previous-mark", &["\""], "To the previous marked row"),
    spec(Marks::Clear, "clear-marks", &["V"], "Clear all marks of this view"),
    Spec { place: NODES, ..spec(Marks::Compare, "compare", &["|"], "Two marked nodes side by side, or a marked one and the selected") },
];

/// Does it.
pub fn apply(action: Marks, app: &mut App, model: &Model) -> Effect {
    match action {
        Marks::Mark => app.mark(model),
        Marks::Next => app.jump_to_mark(model, false),
        Marks::Previous => app.jump_to_mark(model, true),
        Marks::Clear => app.clear_marks(),
        Marks::Compare => app.compare_nodes(model),
    }
}
