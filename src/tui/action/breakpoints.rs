//! Setting breakpoints and watches, and changing those there are.

use super::{Action, Argument, ViewSet};
use crate::tui::action_error::ActionError;
use crate::tui::app::{App, Effect};
use crate::tui::command::{BreakpointCommand, Command};
use crate::tui::model::Model;
use crate::tui::view::ViewId;

const LIST: ViewSet = ViewSet::of(&[ViewId::Breakpoints]);

/// The rows of the table.
#[rustfmt::skip]
pub const ACTIONS: &[Action] = &[
    Action::new("break-here", &["b", "f9"], "Toggle breakpoint on the selected row",
        |app, model, _| session(toggle_here(app, model)?)),
    Action::new("break", &[], "Breakpoint: Filter, pod:web-*, on:tie, once, log, if score > 80",
        |app, _, text| set(app, text)).takes(Argument::Required("LOCATION|save FILE|load FILE|clear"))
        .search("stop pause"),
    Action::new("watch", &[], "Stop at a change of node:NAME [RESOURCE], queue:NAME, pod:NS/NAME; log, show",
        |_, _, text| session(BreakpointCommand::Watch(text.trim().to_owned())))
        .takes(Argument::Required("SUBJECT")).search("stop"),
    Action::new("watch-here", &["w"], "Watch what is free on the selected node, or where the pod is",
        |app, model, _| session(watch_here(app, model)?)),
    Action::new("break-edit", &[], "Rewrite a breakpoint or watch", |_, _, text| session(edit(text)?))
        .takes(Argument::Required("NUMBER TEXT")),
    Action::new("break-remove", &["x", "delete"], "Remove the selected breakpoint or watch",
        |app, model, text| session(BreakpointCommand::Remove(number(app, model, text)?)))
        .within(LIST).takes(Argument::Optional("NUMBER")).hint("remove").search("delete clear"),
    Action::new("break-switch", &["a"], "Enable or disable the selected breakpoint or watch",
        |app, model, text| session(BreakpointCommand::Switch(number(app, model, text)?, None)))
        .within(LIST).takes(Argument::Optional("NUMBER")).hint("on/off"),
];

fn session(command: BreakpointCommand) -> Result<Effect, ActionError> {
    Ok(Effect::Session(Command::Breakpoint(command)))
}

/// `:break` with a location or another word.
fn set(app: &mut App, argument: &str) -> Result<Effect, ActionError> {
    if argument.trim() == "list" {
        app.show(ViewId::Breakpoints);
        return Ok(Effect::None);
    }
    session(parse(argument)?)
}

fn toggle_here(app: &App, model: &Model) -> Result<BreakpointCommand, ActionError> {
    let location = location(app, model)
        .ok_or("no breakpoint can sit on this row; :break LOCATION sets one")?;
    Ok(BreakpointCommand::Toggle(location))
}

/// The breakpoint location of the selected cell.
fn location(app: &App, model: &Model) -> Option<String> {
    let row = app.selected_row()?;
    let column = app.selected_column()?;
    app.source(model).location(row, column)
}

/// A watch of the node or pod that the selected row is about.
fn watch_here(app: &App, model: &Model) -> Result<BreakpointCommand, ActionError> {
    let location = location(app, model).unwrap_or_default();
    let subject = |word: &&str| word.starts_with("node:") || word.starts_with("pod:");
    match location.split_whitespace().find(subject) {
        Some(subject) => Ok(BreakpointCommand::Watch(subject.to_owned())),
        None => {
            Err("only nodes and pods can be watched from their rows; :watch takes queues".into())
        }
    }
}

/// `:break` with what follows it.
fn parse(argument: &str) -> Result<BreakpointCommand, ActionError> {
    let argument = argument.trim();
    let (word, rest) = argument.split_once(char::is_whitespace).unwrap_or((argument, ""));
    let rest = rest.trim();
    let file = || match rest.is_empty() {
        true => Err(format!("break {word} needs the name of a file")),
        false => Ok(rest.to_owned()),
    };
    let number = || rest.parse().map_err(|_| format!("{rest:?} is not a breakpoint's number"));
    Ok(match word {
        "save" => BreakpointCommand::Save(file()?),
        "load" => BreakpointCommand::Load(file()?),
        "clear" if rest.is_empty() => BreakpointCommand::Clear,
        "remove" | "delete" => BreakpointCommand::Remove(number()?),
        "on" => BreakpointCommand::Switch(number()?, Some(true)),
        "off" => BreakpointCommand::Switch(number()?, Some(false)),
        _ => BreakpointCommand::Break(argument.to_owned()),
    })
}

/// Parses `NUMBER TEXT`: which breakpoint, and its new definition.
fn edit(argument: &str) -> Result<BreakpointCommand, ActionError> {
    let (number, text) = argument.trim().split_once(char::is_whitespace).unwrap_or((argument, ""));
    let number = number.parse().map_err(|_| format!("{number:?} is not a breakpoint's number"))?;
    Ok(BreakpointCommand::Edit(number, text.trim().to_owned()))
}

/// The number that was typed, or that of the selected row.
fn number(app: &App, model: &Model, argument: &str) -> Result<u32, ActionError> {
    match argument.trim() {
        "" => {
            let row = app.selected_row().and_then(|row| model.breakpoints.get(row));
            row.map(|row| row.id).ok_or_else(|| "there is no breakpoint here".into())
        }
        text => Ok(text.parse().map_err(|_| format!("{text:?} is not a breakpoint's number"))?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn break_takes_locations_and_words() {
        assert_eq!(parse("save my file"), Ok(BreakpointCommand::Save("my file".into())));
        assert_eq!(parse("off 3"), Ok(BreakpointCommand::Switch(3, Some(false))));
        assert_eq!(parse(" Filter  if a "), Ok(BreakpointCommand::Break("Filter  if a".into())));
        assert_eq!(parse("clear"), Ok(BreakpointCommand::Clear));
        assert!(parse("load").is_err() && parse("remove x").is_err());
        assert_eq!(edit("3 Filter"), Ok(BreakpointCommand::Edit(3, "Filter".into())));
        assert!(edit("Filter").is_err());
    }
}
