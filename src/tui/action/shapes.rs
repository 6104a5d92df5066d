//! What is folded, grouped, or drawn as a map.

use super::{Action, Argument, Place, Spec};
use crate::tui::app::{App, Effect};
use crate::tui::view::{self, ViewId};

/// Actions on the shape of the view's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shapes {
    /// Shows what is folded, or folds it again.
    Unfold,
    /// Groups nodes by a label.
    Group,
    /// Draws the nodes as a map.
    Map,
}

/// The views with something folded.
const FOLDED: Place = Place::views(&[ViewId::Cycle, ViewId::Filter, ViewId::Scores, ViewId::Nodes]);
/// The views whose rows are nodes.
const NODES: Place = Place::views(&[ViewId::Filter, ViewId::Scores, ViewId::Nodes]);

/// The rows of the table.
#[rustfmt::skip]
pub const SPECS: &[Spec] = &[
    Spec { place: FOLDED, ..spec(Shapes::Unfold, "unfold", &["O"], "Show skipped plugins, equal scores, grouped nodes; again folds them") },
    Spec { place: Place::views(&[ViewId::Nodes]), aliases: &["group"], argument: Argument::Optional("LABEL"), ..spec(Shapes::Group, "group-by", &["g z"], "Group nodes by zone, pool, type or a label, with sums; again ends it") },
    Spec { place: NODES, aliases: &["heat"], argument: Argument::Optional("WHAT"), ..spec(Shapes::Map, "map", &["H"], "A heat map, one cell per node, by zone; again the next, then rows") },
];

const fn spec(
    action: Shapes,
    name: &'static str,
    keys: &'static [&'static str],
    help: &'static str,
) -> Spec {
    Spec::new(Action::Shapes(action), name, keys, help)
}

/// Does it.
pub fn apply(action: Shapes, app: &mut App, argument: &str) -> Effect {
    let view = app.view();
    match action {
        Shapes::Unfold => {
            app.shape(view).toggle_all();
            let words = match app.shape(view).unfolded {
                true => "everything is shown; O folds skipped plugins, equal scores and groups",
                false => "skipped plugins, equal scores and groups are folded",
            };
            app.tell(words);
        }
        Shapes::Group => {
            let shape = app.shape(view);
            let key = match (argument, &shape.group_by) {
                ("", Some(_)) | ("none", _) => None,
                (name, _) => Some(view::label_key(name).to_owned()),
            };
            let words = match &key {
                Some(key) => {
                    format!("nodes by {key}; Enter unfolds a group, :group-by none ends it")
                }
                None => "nodes one by one".to_owned(),
            };
            shape.group(key);
            app.tell(words);
        }
        Shapes::Map => {
            let maps = view::maps(view);
            let named = maps.iter().position(|name| *name == argument);
            if !argument.is_empty() && named.is_none() && argument != "none" {
                return app
                    .fail(format!("there is no map {argument:?}; there are {}", maps.join(", ")));
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
            app.tell(words);
        }
    }
    Effect::None
}
