//! What there is to do with a live cluster: stop following it, see its scheduler's decisions
//! beside ours, compare the cache with what the server has.

use super::{Action, Spec};
use crate::tui::app::{App, Effect, Request};
use crate::tui::model::Model;

/// Actions on a live cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Live {
    /// Stop, or go on.
    Freeze,
    /// The cluster's decisions beside ours.
    Decisions,
    /// What the scheduler believes.
    Dump,
}

const fn spec(
    action: Live,
    name: &'static str,
    keys: &'static [&'static str],
    help: &'static str,
) -> Spec {
    Spec::new(Action::Live(action), name, keys, help)
}

/// The rows of the table.
#[rustfmt::skip]
pub const SPECS: &[Spec] = &[
    spec(Live::Freeze, "freeze", &["Z"], "Freeze the view of the live cluster, or resume; updates are queued"),
    spec(Live::Decisions, "decisions", &["L"], "Compare the live scheduler's decisions with kubestep's"),
    spec(Live::Dump, "dump-cache", &["K"], "Dump nodes and queues, and compare the cache with the objects"),
];

/// Does it.
pub fn apply(action: Live, app: &mut App, model: &Model) -> Effect {
    match action {
        Live::Dump => Effect::Session(Request::Dump),
        _ if model.live.is_none() => {
            app.fail("no live cluster is behind this: kubestep without -f follows one".into())
        }
        Live::Freeze if model.live.as_ref().is_some_and(|live| live.away && !live.recorded) => {
            app.fail("a branch follows no cluster: :branch original goes back to it".into())
        }
        Live::Freeze if model.followed().is_none() => {
            app.fail("this is a recording of a cluster: Space plays it, and pauses".into())
        }
        Live::Freeze => Effect::Session(Request::Freeze),
        Live::Decisions => {
            app.open_decisions(model);
            Effect::None
        }
    }
}
