//! Choosing a view, and going back through those seen.

use super::{Action, Spec};
use crate::tui::app::{App, Effect};
use crate::tui::view::ViewId;

/// Actions that choose a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Views {
    /// Shows a view.
    Show(ViewId),
    /// The view before this one, and back again.
    Last,
    /// One back in the history.
    Back,
    /// One forward in the history.
    Forward,
}

const fn show(
    view: ViewId,
    name: &'static str,
    keys: &'static [&'static str],
    help: &'static str,
) -> Spec {
    spec(Views::Show(view), name, keys, help)
}

const fn spec(
    action: Views,
    name: &'static str,
    keys: &'static [&'static str],
    help: &'static str,
) -> Spec {
    Spec::new(Action::Views(action), name, keys, help)
}

/// The rows of the table.
#[rustfmt::skip]
pub const SPECS: &[Spec] = &[
    show(ViewId::Cycle, "overview", &["0"], "The cycle: every extension point with each plugin's status"),
    show(ViewId::Timeline, "timeline", &["1"], "All recorded cycles; Enter goes there"),
    show(ViewId::Queues, "queues", &["2"], "The scheduling queues, with reasons and time left"),
    show(ViewId::Filter, "filters", &["3"], "The filter matrix: every plugin on every node"),
    show(ViewId::Scores, "scores", &["4"], "The scores: raw, normalized, times weight, total, rank"),
    show(ViewId::Nodes, "nodes", &["5"], "The nodes with what is free on them"),
    show(ViewId::Pods, "pods", &["6"], "All pods of the cluster"),
    show(ViewId::Waiting, "waiting", &["7"], "Pods held at Permit, to allow or reject"),
    show(ViewId::Preemption, "preemption", &["8"], "Preemption: candidate nodes, victims, budgets"),
    show(ViewId::Events, "events", &["9"], "Queue moves and each queueing hint's answer"),
    show(ViewId::Breakpoints, "breakpoints", &["B"], "Breakpoints and watches, with their hits and values"),
    show(ViewId::Configuration, "configuration", &["g c"], "Profiles, plugins in order, weights, arguments, extenders, gates"),
    show(ViewId::Times, "times", &["g t"], "Time spent by plugin and extension point, nodes rejected by each"),
    show(ViewId::Messages, "messages", &["M"], "All messages: notices, warnings, errors, how often and when"),
    show(ViewId::Groups, "groups", &["g p"], "Pod groups: members, quorum, and the placements that were tried"),
    spec(Views::Last, "last-view", &["-"], "Back to the previous view"),
    spec(Views::Back, "view-back", &["["], "Back in the history of views"),
    spec(Views::Forward, "view-forward", &["]"], "Forward in the history of views"),
];

/// Does it.
pub fn apply(action: Views, app: &mut App) -> Effect {
    match action {
        Views::Show(view) => app.show(view),
        Views::Last => app.show_last(),
        Views::Back => app.history_back(),
        Views::Forward => app.history_forward(),
    }
    Effect::None
}
