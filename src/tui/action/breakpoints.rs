//! Setting breakpoints and watches, and what is done with those there are.

use std::collections::BTreeSet;
use std::fmt::{Display, Write as _};

use super::{Action, Argument, Place, Spec};
use crate::tui::app::{App, BreakRequest, Effect, Request};
use crate::tui::model::{BreakpointRow, Model};
use crate::tui::view::ViewId;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::NodeNames;

/// Actions on breakpoints and watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Breakpoints {
    /// At the selected row, or none there any more.
    Here,
    /// At a place, by its words.
    Break,
    /// A value.
    Watch,
    /// The selected node, pod or queue.
    WatchHere,
    /// Written anew.
    Edit,
    /// Removed.
    Remove,
    /// On or off.
    Switch,
}

const fn spec(
    action: Breakpoints,
    name: &'static str,
    keys: &'static [&'static str],
    argument: Argument,
    hint: &'static str,
    help: &'static str,
) -> Spec {
    Spec { argument, hint, ..Spec::new(Action::Breakpoints(action), name, keys, help) }
}

const LIST: Place = Place::views(&[ViewId::Breakpoints]);

/// The rows of the table.
#[rustfmt::skip]
pub const SPECS: &[Spec] = &[
    spec(Breakpoints::Here, "break-here", &["b", "f9"], Argument::None, "", "Toggle breakpoint on the selected row"),
    spec(Breakpoints::Break, "break", &[], Argument::Required("PLACE|save FILE|load FILE|clear"), "", "Breakpoint: Filter, pod:web-*, on:tie, once, log, if score > 80"),
    spec(Breakpoints::Watch, "watch", &[], Argument::Required("SUBJECT"), "", "Stop at a change of node:NAME [RESOURCE], queue:NAME, pod:NS/NAME; log, show"),
    spec(Breakpoints::WatchHere, "watch-here", &["w"], Argument::None, "", "Watch what is free on the selected node, or where the pod is"),
    spec(Breakpoints::Edit, "break-edit", &[], Argument::Required("NUMBER TEXT"), "", "Rewrite a breakpoint or watch"),
    Spec { place: LIST, ..spec(Breakpoints::Remove, "break-remove", &["x", "delete"], Argument::Optional("NUMBER"), "remove", "Remove the selected breakpoint or watch") },
    Spec { place: LIST, ..spec(Breakpoints::Switch, "break-switch", &["a"], Argument::Optional("NUMBER"), "on/off", "Enable or disable the selected breakpoint or watch") },
];

/// What `break` can also be told, with what follows.
const WORDS: [&str; 8] = ["list", "save", "load", "clear", "remove", "delete", "on", "off"];

/// Does it.
pub fn apply(action: Breakpoints, app: &mut App, model: &Model, argument: &str) -> Effect {
    let request = match action {
        Breakpoints::Here => match place(app, model) {
            Some(place) => Ok(BreakRequest::Toggle(place)),
            None => Err("no breakpoint can sit on this row; :break PLACE sets one".into()),
        },
        Breakpoints::Break => {
            if argument.trim() == "list" {
                app.show(ViewId::Breakpoints);
                return Effect::None;
            }
            words(argument)
        }
        Breakpoints::Watch => Ok(BreakRequest::Watch(argument.trim().to_owned())),
        Breakpoints::WatchHere => watch_here(app, model),
        Breakpoints::Edit => edit(argument),
        Breakpoints::Remove => number(app, model, argument).map(BreakRequest::Remove),
        Breakpoints::Switch => {
            number(app, model, argument).map(|number| BreakRequest::Switch(number, None))
        }
    };
    match request {
        Ok(request) => Effect::Session(Request::Breakpoints(request)),
        Err(problem) => app.fail(problem),
    }
}

/// The place of the selected cell.
fn place(app: &mut App, model: &Model) -> Option<String> {
    let row = app.selected_row()?;
    let column = app.grid(app.view()).column;
    app.source(model).place(row, column)
}

/// A watch of the node or pod that the selected row is about.
fn watch_here(app: &mut App, model: &Model) -> Result<BreakRequest, String> {
    let place = place(app, model).unwrap_or_default();
    let subject = |word: &&str| word.starts_with("node:") || word.starts_with("pod:");
    match place.split_whitespace().find(subject) {
        Some(subject) => Ok(BreakRequest::Watch(subject.to_owned())),
        None => {
            Err("only nodes and pods can be watched from their rows; :watch takes queues".into())
        }
    }
}

/// `:break` with what follows it.
fn words(argument: &str) -> Result<BreakRequest, String> {
    let argument = argument.trim();
    let (word, rest) = argument.split_once(char::is_whitespace).unwrap_or((argument, ""));
    let rest = rest.trim();
    let file = || match rest.is_empty() {
        true => Err(format!("break {word} needs the name of a file")),
        false => Ok(rest.to_owned()),
    };
    let number = || rest.parse().map_err(|_| format!("{rest:?} is not a breakpoint's number"));
    Ok(match word {
        "save" => BreakRequest::Save(file()?),
        "load" => BreakRequest::Load(file()?),
        "clear" if rest.is_empty() => BreakRequest::Clear,
        "remove" | "delete" => BreakRequest::Remove(number()?),
        "on" => BreakRequest::Switch(number()?, Some(true)),
        "off" => BreakRequest::Switch(number()?, Some(false)),
        _ => BreakRequest::Break(argument.to_owned()),
    })
}

/// `NUMBER TEXT`.
fn edit(argument: &str) -> Result<BreakRequest, String> {
    let (number, text) = argument.trim().split_once(char::is_whitespace).unwrap_or((argument, ""));
    let number = number.parse().map_err(|_| format!("{number:?} is not a breakpoint's number"))?;
    Ok(BreakRequest::Edit(number, text.trim().to_owned()))
}

/// The number that was typed, or that of the selected row.
fn number(app: &App, model: &Model, argument: &str) -> Result<u32, String> {
    match argument.trim() {
        "" => {
            let row = app.selected_row().and_then(|row| model.breakpoints.get(row));
            row.map(|row| row.id).ok_or_else(|| "there is no breakpoint here".into())
        }
        text => text.parse().map_err(|_| format!("{text:?} is not a breakpoint's number")),
    }
}

/// What `:break` completes to: other words, points, plugins, outcomes, queues.
pub fn places(model: &Model) -> Vec<String> {
    use kubestep_debug::breakpoint::{Event, location};
    let points = location::POINTS.iter().map(|point| point.name().to_owned());
    let plugins = model.cycles.last().into_iter().flat_map(|cycle| {
        let filters = cycle.filter.plugins.iter().map(|column| column.plugin);
        filters.chain(cycle.score.plugins.iter().map(|column| column.plugin))
    });
    let mut plugins: Vec<String> = plugins.map(|plugin| plugin.to_string()).collect();
    plugins.sort_unstable();
    plugins.dedup();
    let outcomes = Event::ALL.iter().map(|(_, name)| format!("on:{name}"));
    let queues = location::QUEUES.iter().map(|(_, name)| format!("queue:{name}"));
    let words = WORDS.iter().map(|word| (*word).to_owned());
    points.chain(plugins).chain(outcomes).chain(queues).chain(words).collect()
}

/// What `:watch` completes to, of what begins with `typed`: queues, nodes and the pods there are
/// cycles of. There can be tens of thousands, of which few are meant.
pub fn subjects(nodes: &NodeNames, pods: &BTreeSet<NamespacedName>, typed: &str) -> Vec<String> {
    use kubestep_debug::breakpoint::location;
    let (mut found, mut text) = (Vec::new(), String::new());
    let mut add = |kind: &str, name: &dyn Display| {
        text.clear();
        // Writing into a text cannot fail.
        let _ = write!(text, "{kind}:{name}");
        if text.starts_with(typed) {
            found.push(text.clone());
        }
    };
    let queues = location::QUEUES.iter().filter(|(_, name)| *name != "none");
    queues.for_each(|(_, name)| add("queue", name));
    nodes.order.iter().for_each(|node| add("node", &nodes.name(*node)));
    pods.iter().for_each(|pod| add("pod", pod));
    found
}

/// The command line that writes a breakpoint anew, with its present text.
pub fn edit_line(row: &BreakpointRow) -> String {
    format!("break-edit {} {}", row.id, row.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn break_takes_places_and_words() {
        assert_eq!(words("save my file"), Ok(BreakRequest::Save("my file".into())));
        assert_eq!(words("off 3"), Ok(BreakRequest::Switch(3, Some(false))));
        assert_eq!(words(" Filter  if a "), Ok(BreakRequest::Break("Filter  if a".into())));
        assert_eq!(words("clear"), Ok(BreakRequest::Clear));
        assert!(words("load").is_err() && words("remove x").is_err());
        assert_eq!(edit("3 Filter"), Ok(BreakRequest::Edit(3, "Filter".into())));
        assert!(edit("Filter").is_err());
    }
}
