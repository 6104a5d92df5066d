//! Leaving, asking, and how the interface looks.

use super::{Action, Argument, Spec};
use crate::tui::app::{App, Effect, Request};
use crate::tui::model::Model;
use crate::tui::prompt::Purpose;

/// Exit code after Ctrl-C, as of a process ended by SIGINT.
pub const INTERRUPTED: i32 = 130;

/// Actions that concern the interface itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum General {
    /// Ask for a command.
    Command,
    /// Ask for a filter.
    Filter,
    /// All keys and commands.
    Help,
    /// The same, with a filter to type at once.
    Palette,
    /// Close, clear, or go out.
    Escape,
    /// Choose a theme.
    Theme,
    /// Choose a preset of keys.
    Keys,
    /// Show or hide breadcrumbs.
    Breadcrumbs,
    /// Show columns meant for wide terminals.
    Wide,
    /// The screen into a file.
    Save,
    /// The mouse on or off.
    Mouse,
    /// Draw everything again.
    Redraw,
    /// Back to the shell for now.
    Suspend,
    /// Close the window, or leave.
    Quit,
    /// Leave at once.
    Interrupt,
}

const fn spec(
    action: General,
    name: &'static str,
    keys: &'static [&'static str],
    hint: &'static str,
    help: &'static str,
) -> Spec {
    Spec { hint, ..Spec::new(Action::General(action), name, keys, help) }
}

/// The rows of the table.
#[rustfmt::skip]
pub const SPECS: &[Spec] = &[
    spec(General::Command, "command", &[":"], "command", "Type a command; Tab completes, Up recalls"),
    Spec { argument: Argument::Optional("TEXT"), ..spec(General::Filter, "filter", &["/"], "filter", "Keep rows with TEXT; ! inverts, * is anything, -l takes labels") },
    spec(General::Help, "help", &["?", "f1"], "", "All keys and commands; / filters them, Enter runs one"),
    spec(General::Palette, "palette", &["ctrl-p"], "", "Find a command by typing part of it"),
    Spec { argument: Argument::Optional("NAME"), ..spec(General::Theme, "theme", &["T"], "", "Use a theme; without a name, the next one") },
    Spec { argument: Argument::Optional("PRESET"), ..spec(General::Keys, "keys", &[], "", "Use the keys of vi, emacs or plain; without a name, show them") },
    spec(General::Wide, "wide", &["ctrl-w"], "", "Show or hide the columns meant for wide terminals"),
    spec(General::Breadcrumbs, "breadcrumbs", &["ctrl-g"], "", "Show or hide the line with the position"),
    Spec { argument: Argument::Required("FILE"), ..spec(General::Save, "save", &["ctrl-s"], "", "Save the screen to FILE: .svg as a picture, else text") },
    Spec { argument: Argument::Optional("on|off"), ..spec(General::Mouse, "mouse", &[], "", "Click rows, headers and views, and scroll; off selects text") },
    spec(General::Escape, "escape", &["esc"], "", "Close the window, drop the filter, or go to the enclosing view"),
    spec(General::Redraw, "redraw", &["ctrl-l"], "", "Draw the whole screen again"),
    spec(General::Suspend, "suspend", &["ctrl-z"], "", "Back to the shell; fg returns"),
    Spec { aliases: &["q"], ..spec(General::Quit, "quit", &["q"], "", "Close the window, or leave when none is open") },
    spec(General::Interrupt, "interrupt", &["ctrl-c"], "", "Leave at once"),
];

/// Does it.
pub fn apply(action: General, app: &mut App, model: &Model, argument: &str) -> Effect {
    match action {
        General::Command => app.ask(Purpose::Command, ""),
        General::Filter => app.filter(model, argument),
        General::Help => app.open_help(),
        General::Palette => app.open_palette(),
        General::Theme => app.set_theme(argument.trim()),
        General::Keys => return app.use_keys(argument.trim()),
        General::Wide => app.toggle_wide(),
        General::Breadcrumbs => app.toggle_breadcrumbs(),
        General::Escape if model.going_back.is_some() => return Effect::Session(Request::GiveUp),
        General::Escape => return app.escape(model),
        General::Save => return Effect::Save(argument.trim().to_owned()),
        General::Mouse => return app.switch_mouse(argument.trim()),
        General::Redraw => return Effect::Clear,
        General::Suspend => return Effect::Suspend,
        General::Quit => return app.quit(),
        General::Interrupt => return Effect::Quit(INTERRUPTED),
    }
    Effect::None
}
