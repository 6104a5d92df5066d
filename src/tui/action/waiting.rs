//! Allowing and rejecting pods held at Permit.

use super::{Action, Argument, ViewSet};
use crate::tui::action_error::ActionError;
use crate::tui::app::{App, Effect};
use crate::tui::command::Command;
use crate::tui::model::{Model, WaitingPod};
use crate::tui::view::ViewId;
use kubestep_api::intern::Symbol;
use kubestep_debug::decision::ManualDecision;

const WAITING: ViewSet = ViewSet::of(&[ViewId::Waiting]);

/// The rows of the table.
#[rustfmt::skip]
pub const ACTIONS: &[Action] = &[
    Action::new("allow", &["a"], "Allow the selected or all marked pods for their first plugin, or PLUGIN",
        |app, model, text| {
            let chosen = chosen(app, model)?;
            let plugin = plugin_of(&chosen, text.trim())?;
            Ok(decide(ManualDecision::Allow(Some(plugin)), &chosen))
        }).within(WAITING).hint("allow").takes(Argument::Optional("PLUGIN")).search("approve permit"),
    Action::new("allow-all", &["A"], "Allow the selected or all marked pods for every plugin that holds them",
        |app, model, _| Ok(decide(ManualDecision::Allow(None), &chosen(app, model)?)))
        .within(WAITING).hint("allow all").search("approve permit"),
    Action::new("reject", &["x"], "Reject the selected or all marked pods with a message",
        |app, model, text| {
            let decision = ManualDecision::Reject(text.trim().to_owned());
            Ok(decide(decision, &chosen(app, model)?))
        }).within(WAITING).hint("reject").takes(Argument::Required("MESSAGE")).search("deny"),
    Action::new("hold", &[], "Hold pods at Permit: app=web, shop/web-0, web-* for 5m",
        |_, _, text| Ok(hold("hold", text))).takes(Argument::Required("SELECTOR")).search("permit wait"),
    Action::new("release", &[], "Stop holding these pods, or all; those that wait continue",
        |_, _, text| Ok(hold("release", text))).takes(Argument::Optional("SELECTOR")),
];

fn hold(verb: &str, selector: &str) -> Effect {
    Effect::Session(Command::Hold(format!("{verb} {}", selector.trim())))
}

/// The marked pods, else the selected one.
fn chosen<'a>(app: &App, model: &'a Model) -> Result<Vec<&'a WaitingPod>, ActionError> {
    let rows = app.chosen_rows(model);
    let chosen: Vec<_> = rows.iter().filter_map(|row| model.waiting.get(*row)).collect();
    if chosen.is_empty() { Err("no pod waits at Permit".into()) } else { Ok(chosen) }
}

fn decide(decision: ManualDecision, chosen: &[&WaitingPod]) -> Effect {
    let pods = chosen.iter().map(|waiting| waiting.info.key()).collect();
    Effect::Session(Command::Decide(decision, pods))
}

/// The plugin named, or the first that holds each of the pods; it has to hold them all.
fn plugin_of(chosen: &[&WaitingPod], name: &str) -> Result<Symbol, ActionError> {
    let mut first = None;
    for waiting in chosen {
        let mut plugins = waiting.plugins.iter().map(|(plugin, _)| *plugin);
        let found = plugins.find(|p| name.is_empty() || p.as_str() == name);
        let Some(found) = found else { return Err(not_held_by(waiting, name).into()) };
        if *first.get_or_insert(found) != found {
            return Err(
                "the marked pods are held by different plugins first; :allow PLUGIN names \
                        one, A allows them for all"
                    .into(),
            );
        }
    }
    first.ok_or_else(|| "no pod waits at Permit".into())
}

fn not_held_by(waiting: &WaitingPod, name: &str) -> String {
    let holders: Vec<&str> = waiting.plugins.iter().map(|(p, _)| p.as_str()).collect();
    let pod = waiting.info.key();
    format!("{pod} is not held by {name:?}; it is held by {}", holders.join(", "))
}
