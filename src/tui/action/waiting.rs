//! Deciding about pods held at Permit.

use super::{Action, Argument, Place, Spec};
use crate::debug::decision::Decision;
use crate::intern::Symbol;
use crate::tui::app::{App, Effect, Request};
use crate::tui::model::{Model, WaitingPod};
use crate::tui::view::ViewId;

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
    spec(Waiting::Allow, "allow", &["a"], Argument::Optional("PLUGIN"), "allow", "Allow the selected pod for its first plugin, or for PLUGIN"),
    spec(Waiting::AllowAll, "allow-all", &["A"], Argument::None, "allow all", "Allow the selected pod for every plugin that holds it"),
    spec(Waiting::Reject, "reject", &["x"], Argument::Required("MESSAGE"), "reject", "Reject the selected pod with a message"),
    anywhere(Waiting::Hold, "hold", &[], Argument::Required("SELECTOR"), "", "Hold pods at Permit: app=web, shop/web-0, web-* for 5m"),
    anywhere(Waiting::Release, "release", &[], Argument::Optional("SELECTOR"), "", "Hold these pods no more, or none; those that wait go on"),
];

/// Does it.
pub fn apply(action: Waiting, app: &mut App, model: &Model, argument: &str) -> Effect {
    let argument = argument.trim();
    match action {
        Waiting::Hold => return Effect::Session(Request::Hold(format!("hold {argument}"))),
        Waiting::Release => return Effect::Session(Request::Hold(format!("release {argument}"))),
        _ => {}
    }
    let Some(waiting) = app.selected_row().and_then(|row| model.waiting.get(row)) else {
        return app.fail("no pod waits at Permit".into());
    };
    let decision = match action {
        Waiting::Allow => match plugin_of(waiting, argument) {
            Ok(plugin) => Decision::Allow(Some(plugin)),
            Err(problem) => return app.fail(problem),
        },
        Waiting::Reject => Decision::Reject(argument.to_owned()),
        _ => Decision::Allow(None),
    };
    Effect::Session(Request::Decide(decision, vec![waiting.info.key()]))
}

/// The plugin named, or the first that holds the pod.
fn plugin_of(waiting: &WaitingPod, argument: &str) -> Result<Symbol, String> {
    let name = argument.trim();
    let mut plugins = waiting.plugins.iter().map(|(plugin, _)| *plugin);
    let found = plugins.find(|p| name.is_empty() || p.as_str() == name);
    found.ok_or_else(|| {
        let holders: Vec<&str> = waiting.plugins.iter().map(|(p, _)| p.as_str()).collect();
        format!(
            "{} is not held by {name:?}; it is held by {}",
            waiting.info.key(),
            holders.join(", ")
        )
    })
}
