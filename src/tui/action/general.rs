//! Leaving, asking, and how the interface looks.

use super::{Action, Argument, change};
use crate::tui::app::{App, Effect};
use crate::tui::command::Command;
use crate::tui::model::Model;
use crate::tui::prompt::Purpose;

/// Exit code after Ctrl-C, as of a process ended by SIGINT.
pub const INTERRUPTED: i32 = 130;

/// The rows of the table.
#[rustfmt::skip]
pub const ACTIONS: &[Action] = &[
    Action::new("command", &[":"], "Type a command; Tab completes, Up recalls",
        |app, _, _| change(app, |app| app.ask(Purpose::Command, ""))).hint("command"),
    Action::new("filter", &["/"], "Keep rows with TEXT; ! inverts, * is anything, -l takes labels",
        |app, _, text| change(app, |app| app.filter(text))).hint("filter").takes(Argument::Optional("TEXT"))
        .search("search find grep selector namespace"),
    Action::new("help", &["?", "f1"], "All keys and commands; / filters them, Enter runs one",
        |_, _, _| Ok(Effect::Help { palette: false })).search("keys manual shortcuts"),
    Action::new("palette", &["ctrl-p"], "Find a command by typing part of it",
        |_, _, _| Ok(Effect::Help { palette: true })),
    Action::new("theme", &["T"], "Use a theme; without a name, the next one",
        |app, _, text| change(app, |app| app.set_theme(text.trim()))).takes(Argument::Optional("NAME"))
        .search("color colour dark light"),
    Action::new("keys", &[], "Use the keys of vi, vim, emacs or plain; without a name, show them",
        |_, _, text| Ok(Effect::Keys(text.trim().to_owned()))).takes(Argument::Optional("PRESET"))
        .search("bindings shortcuts"),
    Action::new("wide", &["ctrl-w"], "Show or hide the columns meant for wide terminals",
        |app, _, _| change(app, App::toggle_wide)),
    Action::new("breadcrumbs", &["ctrl-g"], "Show or hide the line with the position",
        |app, _, _| change(app, App::toggle_breadcrumbs)),
    Action::new("save", &["ctrl-s"], "Save the screen to FILE: .svg as a picture, else text",
        |_, _, text| Ok(Effect::Save(text.trim().to_owned()))).takes(Argument::Required("FILE"))
        .search("screenshot export"),
    Action::new("mouse", &[], "Click rows, headers and views, and scroll; off selects text",
        |app, _, text| app.switch_mouse(text.trim())).takes(Argument::Optional("on|off")),
    Action::new("escape", &["esc"], "Close the window, drop the filter, or go back to the enclosing view",
        |app, model, _| Ok(escape(app, model))).search("close back"),
    Action::new("redraw", &["ctrl-l"], "Draw the whole screen again",
        |_, _, _| Ok(Effect::Clear)).search("refresh clear"),
    Action::new("suspend", &["ctrl-z"], "Back to the shell; fg returns",
        |_, _, _| Ok(Effect::Suspend)).search("background"),
    Action { aliases: &["q"], ..Action::new("quit", &["q"], "Close the window, or leave when none is open",
        |app, _, _| Ok(app.quit())).search("exit leave") },
    Action::new("interrupt", &["ctrl-c"], "Leave at once",
        |_, _, _| Ok(Effect::Quit(INTERRUPTED))).search("exit quit"),
];

fn escape(app: &mut App, model: &Model) -> Effect {
    match model.going_back {
        Some(_) => Effect::Session(Command::CancelReplay),
        None => app.escape(model),
    }
}
