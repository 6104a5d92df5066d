//! Looking closer at what is selected.

use super::{Action, Spec, whatif};
use crate::tui::app::{App, Effect, Request};
use crate::tui::lines;
use crate::tui::model::Model;
use crate::tui::view::ViewId;
use kubestep_api::Kind;
use kubestep_framework::pod::NamespacedName;

/// Actions on the selected row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Inspect {
    /// Go into it.
    Open,
    /// Everything about it.
    Describe,
    /// Why the pod is where it is.
    Why,
    /// The same as a view.
    WhyView,
    /// What would make it fit.
    Fixes,
    /// Copies that as text.
    Copy,
    /// Copies that as Markdown.
    CopyMarkdown,
}

const fn spec(
    action: Inspect,
    name: &'static str,
    keys: &'static [&'static str],
    hint: &'static str,
    help: &'static str,
) -> Spec {
    Spec { hint, ..Spec::new(Action::Inspect(action), name, keys, help) }
}

/// The rows of the table.
#[rustfmt::skip]
pub const SPECS: &[Spec] = &[
    spec(Inspect::Open, "open", &["enter"], "open", "Look into the selected row; Esc returns, t goes there"),
    spec(Inspect::Why, "why", &["W"], "why", "Why the pod is pending, or on its node: everything that blocks it"),
    spec(Inspect::Fixes, "fix", &["X"], "fix", "The smallest changes that would make the pod fit, each tried on a copy"),
    spec(Inspect::Describe, "describe", &["d"], "describe", "Everything about the selected row, in one window"),
    spec(Inspect::WhyView, "why-view", &["g w"], "", "Why, as a view with folds; Enter goes to the node or cycle"),
    spec(Inspect::Copy, "copy", &["y"], "", "Copy the details of the selected row, as text"),
    spec(Inspect::CopyMarkdown, "copy-markdown", &["Y"], "", "The same as Markdown, for an issue or a chat"),
];

/// Does it.
pub fn apply(action: Inspect, app: &mut App, model: &Model) -> Effect {
    match action {
        Inspect::Open => app.open(model),
        Inspect::Describe => {
            app.describe(model);
            Effect::None
        }
        Inspect::Why => of_pod(app, model, Request::Why),
        Inspect::WhyView => {
            let asked = pod_of(app, model);
            app.show(ViewId::Why);
            asked.map_or(Effect::None, |pod| Effect::Session(Request::Outline(pod)))
        }
        Inspect::Fixes => of_pod(app, model, Request::Fixes),
        Inspect::Copy => app.copy(model, lines::as_text),
        Inspect::CopyMarkdown => app.copy(model, lines::as_markdown),
    }
}

/// Asks about the pod of the selected row; of a node's row, about that of the cycle.
fn of_pod(app: &mut App, model: &Model, request: fn(NamespacedName) -> Request) -> Effect {
    match pod_of(app, model) {
        Some(pod) => Effect::Session(request(pod)),
        None => app.fail("choose a pod first, in 2 or 6".into()),
    }
}

/// The pod of the selected row; of a node's row, that of the cycle.
fn pod_of(app: &App, model: &Model) -> Option<NamespacedName> {
    let row = whatif::subject(app, model).filter(|key| key.kind == Kind::Pod);
    let row = row.map(|key| NamespacedName::new(key.namespace, key.name));
    row.or_else(|| model.cycle().map(|cycle| cycle.pod))
}
