//! Marks on rows: what is marked is copied together, jumped between, and compared.

use super::{Action, ViewSet};
use crate::tui::view::ViewId;

/// Views whose rows are nodes.
const NODES: ViewSet =
    ViewSet::of(&[ViewId::Filter, ViewId::Scores, ViewId::Nodes, ViewId::Preemption]);

/// The rows of the table.
#[rustfmt::skip]
pub const ACTIONS: &[Action] = &[
    Action::new("mark", &["v", "insert"], "Mark or unmark the selected row; y copies all marked rows",
        |app, model, _| app.mark(model)).search("select"),
    Action::new("next-mark", &["'"], "To the next marked row",
        |app, model, _| app.jump_to_mark(model, false)),
    Action::new("previous-mark", &["\""], "To the previous marked row",
        |app, model, _| app.jump_to_mark(model, true)),
    Action::new("clear-marks", &["V"], "Clear all marks of this view", |app, _, _| app.clear_marks()),
    Action::new("compare", &["|"], "Two marked nodes side by side, or a marked one and the selected",
        |app, model, _| app.compare_nodes(model)).within(NODES).search("difference"),
];
