//! What if: edits of the cluster and the scheduler, the branches they are tried in, and the
//! difference they make.

use super::{Action, Argument, Place, Spec};
use crate::tui::app::{App, Effect, Request};
use crate::tui::model::Model;
use crate::tui::view::ViewId;
use kubestep_api::intern::Symbol;
use kubestep_api::{Kind, ObjectKey};
use kubestep_debug::edit::configuration;
use kubestep_debug::edit::offers::Offer;
use kubestep_framework::pod::NamespacedName;

/// Actions that change something, in a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WhatIf {
    /// What could be done to the selected row.
    Menu,
    /// The selected object in an editor.
    Edit,
    /// An edit in words.
    Do,
    /// Takes the last edit back.
    Undo,
    /// Does it again.
    Redo,
    /// A new branch from here.
    Fork,
    /// Another branch, or the list of them.
    Branch,
    /// What differs from another branch.
    Differences,
    /// A higher weight, tried on the ranking.
    Raise,
    /// A lower weight.
    Lower,
}

/// What the session is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// The edits on offer for an object; for a node also those that decide about a pod.
    Menu(ObjectKey, Option<NamespacedName>),
    /// These edits, under a title.
    Offers(String, Vec<Offer>),
    /// An object as YAML, to be edited.
    Yaml(ObjectKey),
    /// Edits, each as a line, done together or not at all.
    Edits(Vec<String>),
    /// A change that the search found, by its place among them.
    Fix(usize),
    /// Takes the last edit back.
    Undo,
    /// Does it again.
    Redo,
    /// A new branch from the position.
    Fork(Option<String>),
    /// Another branch; the list of them without a name.
    Branch(Option<String>),
    /// What differs from that branch, else from the original.
    Compare(Option<String>),
    /// Changes a weight of the ranking on show by so much.
    Weigh(Symbol, i64),
}

/// A line of a window, and what it chooses.
pub type Choice = (Option<Wish>, String);

const fn spec(
    action: WhatIf,
    name: &'static str,
    keys: &'static [&'static str],
    argument: Argument,
    hint: &'static str,
    help: &'static str,
) -> Spec {
    Spec { argument, hint, ..Spec::new(Action::WhatIf(action), name, keys, help) }
}

const SCORES: Place = Place::views(&[ViewId::Scores]);

/// The rows of the table.
#[rustfmt::skip]
pub const SPECS: &[Spec] = &[
    spec(WhatIf::Menu, "menu", &["m"], Argument::None, "what if", "Choose a change of the selected row: cordon, resize, delete, …"),
    spec(WhatIf::Do, "what-if", &["E"], Argument::Required("EDIT"), "", "Change something in a branch, as in cordon node a"),
    spec(WhatIf::Edit, "edit", &["e"], Argument::Optional("KIND NAME"), "", "Edit the selected object as YAML in $EDITOR"),
    spec(WhatIf::Undo, "undo", &["u"], Argument::None, "", "Undo the branch's last edit and everything after it"),
    spec(WhatIf::Redo, "redo", &["U"], Argument::None, "", "Redo what was undone last"),
    spec(WhatIf::Fork, "fork", &[], Argument::Optional("NAME"), "", "Continue in a new branch from here"),
    spec(WhatIf::Branch, "branch", &[], Argument::Optional("NAME"), "", "Switch to another branch; without a name, list them"),
    spec(WhatIf::Differences, "differences", &["D"], Argument::Optional("BRANCH"), "", "What differs from the original, or from another branch"),
    Spec { place: SCORES, ..spec(WhatIf::Raise, "raise-weight", &["*"], Argument::None, "heavier", "Try a higher weight for the plugin: the ranking changes at once") },
    Spec { place: SCORES, ..spec(WhatIf::Lower, "lower-weight", &["%"], Argument::None, "lighter", "Try a lower weight for the plugin") },
];

/// Does it.
pub fn apply(action: WhatIf, app: &mut App, model: &Model, argument: &str) -> Effect {
    let argument = argument.trim();
    let named = (!argument.is_empty()).then(|| argument.to_owned());
    let wish = match action {
        WhatIf::Menu if app.view() == ViewId::Configuration => {
            let rows = &model.configuration.rows;
            let (name, found) = configuration::offers(rows, app.selected_row().unwrap_or_default());
            Wish::Offers(format!("What if: {name}"), found)
        }
        WhatIf::Menu => match subject(app, model) {
            Some(key) => Wish::Menu(key, pod_to_decide(app, model)),
            None => return app.fail("this row is no object that could be changed".into()),
        },
        WhatIf::Edit => {
            match named.map_or_else(|| Ok(subject(app, model)), |text| named_key(&text)) {
                Ok(Some(key)) => Wish::Yaml(key),
                Ok(None) => return app.fail("this row is no object that could be edited".into()),
                Err(problem) => return app.fail(problem),
            }
        }
        WhatIf::Do => Wish::Edits(vec![argument.to_owned()]),
        WhatIf::Undo => Wish::Undo,
        WhatIf::Redo => Wish::Redo,
        WhatIf::Fork => Wish::Fork(named),
        WhatIf::Branch => Wish::Branch(named),
        WhatIf::Differences if app.is_running() => {
            return app.fail("a run goes on: D compares once it is over; Esc stops it".into());
        }
        WhatIf::Differences => Wish::Compare(named),
        WhatIf::Raise => return weigh(app, model, 1),
        WhatIf::Lower => return weigh(app, model, -1),
    };
    Effect::Session(Request::WhatIf(wish))
}

/// Changes the weight of the plugin whose column is selected.
fn weigh(app: &mut App, model: &Model, by: i64) -> Effect {
    match app.selected_column().and_then(|column| app.source(model).plugin_of(column)) {
        Some(plugin) => Effect::Session(Request::WhatIf(Wish::Weigh(plugin, by))),
        None => app.fail("choose a plugin's column first, with l or →".into()),
    }
}

/// The object that the selected row is about.
pub(in crate::tui) fn subject(app: &App, model: &Model) -> Option<ObjectKey> {
    let row = app.selected_row();
    let pod = |key: NamespacedName| ObjectKey {
        kind: Kind::Pod,
        namespace: key.namespace,
        name: key.name,
    };
    match app.view() {
        ViewId::Queues => Some(pod(model.queued.get(row?)?.info.key())),
        ViewId::Waiting => Some(pod(model.waiting.get(row?)?.info.key())),
        ViewId::Pods => {
            let metadata = &model.pods.get(row?)?.pod.metadata;
            Some(pod(NamespacedName::new(metadata.namespace, metadata.name)))
        }
        ViewId::Nodes | ViewId::Filter | ViewId::Scores => {
            let name = app.source(model).node_of(row?, app.selected_column()?)?;
            (!name.is_empty()).then(|| node(name))
        }
        ViewId::Timeline => Some(pod(model.cycles.get(row?)?.pod)),
        ViewId::Why => Some(pod(model.why.as_ref()?.pod?)),
        _ => Some(pod(model.cycle()?.pod)),
    }
}

fn node(name: Symbol) -> ObjectKey {
    ObjectKey { kind: Kind::Node, namespace: Symbol::EMPTY, name }
}

/// The pod of the cycle whose nodes are on show.
fn pod_to_decide(app: &App, model: &Model) -> Option<NamespacedName> {
    matches!(app.view(), ViewId::Filter | ViewId::Scores).then(|| model.cycle())?.map(|c| c.pod)
}

/// `node a`, `pod shop/web`, or a pod's name alone.
fn named_key(text: &str) -> Result<Option<ObjectKey>, String> {
    let (kind, name) = text.split_once(' ').unwrap_or(("pod", text));
    let kind = Kind::by_name(kind).ok_or_else(|| format!("{kind:?} is no kind of object"))?;
    let (namespace, name) = match (kind.is_namespaced(), name.trim().split_once('/')) {
        (true, Some(parts)) => parts,
        (true, None) => ("default", name.trim()),
        (false, _) => ("", name.trim()),
    };
    Ok(Some(ObjectKey { kind, namespace: namespace.into(), name: name.into() }))
}
