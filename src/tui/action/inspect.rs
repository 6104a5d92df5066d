//! Looking closer at what is selected.

use super::{Action, Argument, Place, Spec};
use crate::tui::app::{App, Effect};
use crate::tui::lines;
use crate::tui::model::Model;

/// Actions on the selected row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Inspect {
    /// Go into it.
    Open,
    /// Everything about it.
    Describe,
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
    Spec {
        action: Action::Inspect(action),
        name,
        aliases: &[],
        keys,
        argument: Argument::None,
        place: Place::ANY,
        hint,
        help,
    }
}

/// The rows of the table.
#[rustfmt::skip]
pub const SPECS: &[Spec] = &[
    spec(Inspect::Open, "open", &["enter"], "open", "Go into the selected row: its cycle, view or node"),
    spec(Inspect::Describe, "describe", &["d"], "describe", "Everything about the selected row, in one window"),
    spec(Inspect::Copy, "copy", &["y"], "", "Copy what is to be said about the selected row, as text"),
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
        Inspect::Copy => app.copy(model, lines::as_text),
        Inspect::CopyMarkdown => app.copy(model, lines::as_markdown),
    }
}
