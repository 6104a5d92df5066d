//! A live cluster: freeze it, see its scheduler's decisions next to ours, compare the cache with what the
//! server has.

use super::Action;
use crate::tui::action_error::ActionError;
use crate::tui::app::Effect;
use crate::tui::command::Command;
use crate::tui::model::{LiveModel, Model};

/// The rows of the table.
#[rustfmt::skip]
pub const ACTIONS: &[Action] = &[
    Action::new("freeze", &["Z"], "Freeze the view of the live cluster, or resume; updates are queued",
        |_, model, _| freeze(model)).search("pause stop"),
    Action::new("decisions", &["L"], "Compare the live scheduler's decisions with kubestep's",
        |app, model, _| {
            live(model)?;
            app.open_decisions(model);
            Ok(Effect::None)
        }).search("shadow difference"),
    Action::new("dump-cache", &["K"], "Dump nodes and queues, and compare the cache with the objects",
        |_, _, _| Ok(Effect::Session(Command::Dump))).search("debugger SIGUSR2"),
];

fn live(model: &Model) -> Result<&LiveModel, ActionError> {
    let none = "this session follows no cluster; kubestep without -f follows one";
    model.live.as_ref().ok_or_else(|| none.into())
}

fn freeze(model: &Model) -> Result<Effect, ActionError> {
    let live = live(model)?;
    if live.away && !live.recorded {
        return Err("a branch follows no cluster: :branch original goes back to it".into());
    }
    if live.recorded {
        return Err("this is a recording of a cluster: Space plays it, and pauses".into());
    }
    Ok(Effect::Session(Command::Freeze))
}
