//! Choosing a view, and going back through those seen. A view's row is made from the table of views.

use super::{Action, ActionBody, ActionKind, change, inspect};
use crate::tui::app::{App, Effect};
use crate::tui::command::Command;
use crate::tui::model::Model;
use crate::tui::view::{VIEWS, ViewId};

const HISTORY: [Action; 3] = [
    Action::new("last-view", &["-"], "Back to the previous view", |app, _, _| {
        change(app, App::show_last)
    })
    .kind(ActionKind::Look),
    Action::new("view-back", &["["], "Back in the history of views", |app, _, _| {
        change(app, App::history_back)
    })
    .kind(ActionKind::Look),
    Action::new("view-forward", &["]"], "Forward in the history of views", |app, _, _| {
        change(app, App::history_forward)
    })
    .kind(ActionKind::Look),
];

const COUNT: usize = VIEWS.len() + HISTORY.len();

const fn rows() -> [Action; COUNT] {
    let mut rows = [HISTORY[0]; COUNT];
    let mut at = 0;
    while at < VIEWS.len() {
        let (view, spec) = &VIEWS[at];
        rows[at] = Action {
            name: spec.name,
            keys: spec.keys,
            help: spec.help,
            does: ActionBody::Show(*view),
            ..HISTORY[0]
        };
        at += 1;
    }
    while at < COUNT {
        rows[at] = HISTORY[at - VIEWS.len()];
        at += 1;
    }
    rows
}

/// The rows of the table.
pub const ACTIONS: &[Action] = &rows();

/// Shows a view. The view of reasons is about the pod that is selected, a view of a cycle about its last one.
pub fn show(view: ViewId, app: &mut App, model: &Model) -> Effect {
    let pod = inspect::pod_of(app, model).filter(|_| view == ViewId::Why);
    let shown = app.go_to(view, model);
    pod.map_or(shown, |pod| Effect::Session(Command::WhyView(pod)))
}
