//! Deciding about pods held at Permit.

use super::{Action, Argument, Place, Spec};
use crate::tui::app::{App, Effect, Request};
use crate::tui::model::{Model, WaitingPod};
use crate::tui::view::ViewId;
use kubestep_api::intern::Symbol;
use kubestep_debug::decision::Decision;

/// Actions on the selected waiting pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Waiting {
    /// Allow for one plugin.
    Allow,
    /// Allow for all plugins.
    AllowAll,
    /// Reject with a message.
    Reject,
    /// Hold pods from now on.
    Hold,
    /// Hold them no more.
    Release,
}

const fn spec(
    action: Waiting,
    name: &'static str,
    keys: &'static [&'static str],
    argument: Argument,
    hint: &'static str,
    help: &'static str,
) -> Spec {
    let place = Place::views(&[ViewId::Waiting]);
    Spec { place, ..anywhere(action, name, keys, argument, hint, help) }
}

/// A row that is valid in all views.
const fn anywhere(
    action: Waiting,
    name: &'static str,
    keys: &'static [&'static str],
    argument: Argument,
    hint: &'static str,
    help: &'static str,
) -> Spec {
    Spec { argument, hint, ..Spec::new(Action::Waiting(action), name, keys, help) }
}

/// The rows of the table.
#[rustfmt::skip]
pub const SPECS: &[Spec] = &[
    spec(Waiting::Allow, "allow", &["a"], Argument::Optional("PLUGIN"), "allow", "Allow the selected or all marked pods for their first plugin, or PLUGIN"),
    spec(Waiting::AllowAll, "allow-all", &["A"], Argument::None, "allow all", "Allow the selected or all marked pods for every plugin that holds them"),
    spec(Waiting::Reject, "reject", &["x"], Argument::Required("MESSAGE"), "reject", "Reject the selected or all marked pods with a message"),
    anywhere(Waiting::Hold, "hold", &[], Argument::Required("SELECTOR"), "", "Hold pods at Permit: app=web, shop/web-0, web-* for 5m"),
    anywhere(Waiting::Release, "release", &[], Argument::Optional("SELECTOR"), "", "Stop holding these pods, or all; those that wait continue"),
];

/// Does it.
pub fn apply(action: Waiting, app: &mut App, model: &Model, argument: &str) -> Effect {
    let argument = argument.trim();
    match action {
        Waiting::Hold => return Effect::Session(Request::Hold(format!("hold {argument}"))),
        Waiting::Release => return Effect::Session(Request::Hold(format!("release {argument}"))),
        _ => {}
    }
    let rows = app.chosen_rows(model);
    let chosen: Vec<&WaitingPod> = rows.iter().filter_map(|row| model.waiting.get(*row)).collect();
    if chosen.is_empty() {
        return app.fail("no pod waits at Permit".into());
    }
    let decision = match action {
        Waiting::Allow => match plugin_of(&chosen, argument) {
            Ok(plugin) => Decision::Allow(Some(plugin)),
            Err(problem) => return app.fail(problem),
        },
        Waiting::Reject => Decision::Reject(argument.to_owned()),
        _ => Decision::Allow(None),
    };
    let pods = chosen.iter().map(|waiting| waiting.info.key()).collect();
    Effect::Session(Request::Decide(decision, pods))
}

/// The plugin named, or the first that holds each of the pods; it has to hold them all.
fn plugin_of(chosen: &[&WaitingPod], name: &str) -> Result<Symbol, String> {
    let mut first = None;
    for waiting in chosen {
        let mut plugins = waiting.plugins.iter().map(|(plugin, _)| *plugin);
        let found = plugins.find(|p| name.is_empty() || p.as_str() == name);
        let Some(found) = found else { return Err(not_held_by(waiting, name)) };
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
