//! Deciding about pods held at Permit.

use super::{Action, Argument, Place, Spec};
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
    Spec { argument, place, hint, ..Spec::new(Action::Waiting(action), name, keys, help) }
}

/// The rows of the table.
#[rustfmt::skip]
pub const SPECS: &[Spec] = &[
    spec(Waiting::Allow, "allow", &["a"], Argument::Optional("PLUGIN"), "allow", "Allow the selected pod for its first plugin, or for PLUGIN"),
    spec(Waiting::AllowAll, "allow-all", &["A"], Argument::None, "allow all", "Allow the selected pod for every plugin that holds it"),
    spec(Waiting::Reject, "reject", &["x"], Argument::Required("MESSAGE"), "reject", "Reject the selected pod with a message"),
];

/// Does it.
pub fn apply(action: Waiting, app: &mut App, model: &Model, argument: &str) -> Effect {
    let Some(waiting) = app.selected_row().and_then(|row| model.waiting.get(row)) else {
        return app.fail("no pod waits at Permit".into());
    };
    let pod = waiting.info.key();
    match action {
        Waiting::AllowAll => Effect::Session(Request::Allow { pod, plugin: None }),
        Waiting::Allow => match plugin_of(waiting, argument) {
            Ok(plugin) => Effect::Session(Request::Allow { pod, plugin: Some(plugin) }),
            Err(problem) => app.fail(problem),
        },
        Waiting::Reject => {
            Effect::Session(Request::Reject { pod, message: argument.trim().to_owned() })
        }
    }
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
