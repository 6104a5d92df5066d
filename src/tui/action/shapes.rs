//! What is folded, grouped, or drawn as a map.

use super::{Action, Argument, ViewSet};
use crate::tui::action_error::ActionError;
use crate::tui::app::{App, Effect};
use crate::tui::view::{self, ViewId};

/// The views with something folded.
const FOLDED: ViewSet = ViewSet::of(&[
    ViewId::Cycle,
    ViewId::Filter,
    ViewId::Scores,
    ViewId::Nodes,
    ViewId::Preemption,
]);
/// The views whose rows are nodes.
const NODES: ViewSet = ViewSet::of(&[ViewId::Filter, ViewId::Scores, ViewId::Nodes]);

/// The rows of the table.
#[rustfmt::skip]
pub const ACTIONS: &[Action] = &[
    Action::new("unfold", &["O"], "Show skipped plugins, equal scores, grouped nodes; again folds them",
        |app, _, _| Ok(unfold(app))).within(FOLDED).search("expand collapse"),
    Action { aliases: &["group"], ..Action::new("group-by", &["g z"],
        "Group nodes by zone, pool, type or a label, with sums; again ends it",
        |app, _, text| Ok(group(app, text.trim()))) }
        .takes(Argument::Optional("LABEL")).within(ViewSet::of(&[ViewId::Nodes])),
    Action { aliases: &["heat"], ..Action::new("map", &["H"],
        "A heat map, one cell per node, by zone; again the next, then rows",
        |app, _, text| map(app, text.trim())) }
        .takes(Argument::Optional("WHAT")).within(NODES).search("heatmap"),
];

fn unfold(app: &mut App) -> Effect {
    let shape = app.shape(app.view());
    shape.toggle_all();
    let words = match shape.unfolded {
        true => "everything is shown; O folds skipped plugins, equal scores and groups",
        false => "skipped plugins, equal scores and groups are folded",
    };
    app.hint(words);
    Effect::None
}

fn group(app: &mut App, argument: &str) -> Effect {
    let shape = app.shape(app.view());
    let key = match (argument, &shape.group_by) {
        ("", Some(_)) | ("none", _) => None,
        (name, _) => Some(view::label_key(name).to_owned()),
    };
    let words = match &key {
        Some(key) => format!("nodes by {key}; Enter unfolds a group, :group-by none ends it"),
        None => "nodes one by one".to_owned(),
    };
    shape.group(key);
    app.hint(words);
    Effect::None
}

fn map(app: &mut App, argument: &str) -> Result<Effect, ActionError> {
    let (view, maps) = (app.view(), app.view().maps());
    let named = maps.iter().position(|name| *name == argument);
    if !argument.is_empty() && named.is_none() && argument != "none" {
        return Err(format!("there is no map {argument:?}; there are {}", maps.join(", ")).into());
    }
    let shape = app.shape(view);
    match (argument, named) {
        ("", _) => shape.next_map(maps.len()),
        (_, named) => shape.set_map(named),
    }
    // The columns of a map are nodes: the first one, and no order of rows.
    let column = usize::from(shape.map.is_some());
    let words = match shape.map.and_then(|map| maps.get(map)) {
        Some(name) => format!("map of {name}: h j k l choose a node"),
        None => "rows again".to_owned(),
    };
    let grid = app.grid(view);
    (grid.column, grid.sort) = (column, None);
    app.hint(words);
    Ok(Effect::None)
}
