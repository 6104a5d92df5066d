//! What if: edits of the cluster and the scheduler, the branches they are tried in, and the
//! difference they make.

use super::{Action, ActionFn, ActionKind, Argument, ViewSet};
use crate::tui::action_error::ActionError;
use crate::tui::app::{App, Effect};
use crate::tui::command::{Command, WhatIfCommand};
use crate::tui::command_result::MenuItem;
use crate::tui::model::Model;
use crate::tui::view::{self, ViewId};
use kubestep_api::intern::Symbol;
use kubestep_api::{Kind, Name, ObjectKey};
use kubestep_debug::edit::configuration;
use kubestep_framework::pod::NamespacedName;

const SCORES: ViewSet = ViewSet::of(&[ViewId::Scores]);

const fn edit(
    name: &'static str,
    keys: &'static [&'static str],
    help: &'static str,
    run: ActionFn,
) -> Action {
    Action::new(name, keys, help, run).kind(ActionKind::Edit)
}

/// The rows of the table.
#[rustfmt::skip]
pub const ACTIONS: &[Action] = &[
    edit("menu", &["m"], "Choose a change of the selected row: cordon, resize, delete, …",
        |app, model, _| menu(app, model)).hint("what if").search("uncordon taint label change request cpu memory"),
    edit("what-if", &["E"], "Change something in a branch, as in cordon node a",
        |_, _, text| session(WhatIfCommand::EditLine(text.trim().to_owned())))
        .takes(Argument::Required("EDIT"))
        .search("cordon uncordon drain taint untaint label scale resize request cpu memory delete weight disable enable feature"),
    edit("edit", &["e"], "Edit the selected object as YAML in $EDITOR",
        |app, model, text| open_editor(app, model, text.trim())).takes(Argument::Optional("KIND NAME"))
        .search("yaml editor change"),
    edit("undo", &["u"], "Undo the branch's last edit and everything after it",
        |_, _, _| session(WhatIfCommand::Undo)).search("revert"),
    edit("redo", &["U"], "Redo what was undone last", |_, _, _| session(WhatIfCommand::Redo)),
    edit("fork", &[], "Continue in a new branch from here",
        |_, _, text| session(WhatIfCommand::Fork(named(text)))).takes(Argument::Optional("NAME"))
        .search("copy branch"),
    edit("branch", &[], "Switch to another branch; without a name, list them",
        |_, _, text| session(WhatIfCommand::Branch(named(text)))).takes(Argument::Optional("NAME"))
        .search("checkout original"),
    edit("differences", &["D"], "What differs from the original, or from another branch",
        |app, _, text| differences(app, text)).takes(Argument::Optional("BRANCH")).search("diff compare"),
    edit("versions", &[], "What changed in scheduling between two versions of Kubernetes",
        |_, _, text| session(WhatIfCommand::Versions(text.trim().to_owned())))
        .takes(Argument::Optional("[A] B")).search("upgrade kube-version changelog release notes"),
    edit("upgrade", &["P"], "What an upgrade of Kubernetes changes for the pods, and why",
        |app, _, text| upgrade(app, text)).takes(Argument::Optional("[FROM] TO"))
        .search("version kube-version release downgrade"),
    edit("raise-weight", &["*"], "Try a higher weight for the plugin: the ranking changes at once",
        |app, model, _| weigh(app, model, 1)).within(SCORES).hint("heavier"),
    edit("lower-weight", &["%"], "Try a lower weight for the plugin",
        |app, model, _| weigh(app, model, -1)).within(SCORES).hint("lighter"),
];

fn session(command: WhatIfCommand) -> Result<Effect, ActionError> {
    Ok(Effect::Session(Command::WhatIf(command)))
}

fn named(argument: &str) -> Option<String> {
    Some(argument.trim()).filter(|name| !name.is_empty()).map(str::to_owned)
}

fn menu(app: &App, model: &Model) -> Result<Effect, ActionError> {
    if app.view() == ViewId::Configuration {
        let rows = &model.configuration.rows;
        let (name, found) = configuration::offers(rows, app.selected_row().unwrap_or_default());
        let found = found.into_iter().map(MenuItem::Edit).collect();
        return session(WhatIfCommand::Offers(format!("What if: {name}"), found));
    }
    let key = subject(app, model).ok_or("this row is no object that could be changed")?;
    session(WhatIfCommand::Menu(key, pod_to_decide(app, model)))
}

fn open_editor(app: &App, model: &Model, argument: &str) -> Result<Effect, ActionError> {
    let key = match argument {
        "" => subject(app, model).ok_or("this row is no object that could be edited")?,
        text => named_key(text)?,
    };
    session(WhatIfCommand::OpenEditor(key))
}

fn only_between_runs(app: &App, key: &str) -> Result<(), ActionError> {
    match app.is_running() {
        true => {
            Err(format!("a run is under way: {key} compares once it has ended; Esc stops it")
                .into())
        }
        false => Ok(()),
    }
}

fn differences(app: &App, argument: &str) -> Result<Effect, ActionError> {
    only_between_runs(app, "D")?;
    session(WhatIfCommand::Compare(named(argument)))
}

fn upgrade(app: &App, argument: &str) -> Result<Effect, ActionError> {
    only_between_runs(app, "P")?;
    Ok(Effect::Session(Command::Upgrade(argument.trim().to_owned())))
}

/// Changes the weight of the plugin whose column is selected.
fn weigh(app: &App, model: &Model, by: i64) -> Result<Effect, ActionError> {
    let column = app.selected_column();
    let plugin = column.and_then(|column| app.source(model).plugin_of(column));
    let plugin = plugin.or_else(|| view::decisive_plugin(model));
    let plugin = plugin.ok_or("no plugin scored the nodes of this cycle")?;
    session(WhatIfCommand::Weigh(plugin, by))
}

/// The object that the selected row is about.
pub fn subject(app: &App, model: &Model) -> Option<ObjectKey> {
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
        ViewId::Events => Some(pod(model.events.get(row?)?.1.pod())),
        ViewId::Why => Some(pod(model.why.as_ref()?.pod?)),
        _ => Some(pod(model.cycle()?.pod)),
    }
}

fn node(name: Name) -> ObjectKey {
    ObjectKey { kind: Kind::Node, namespace: Symbol::EMPTY, name }
}

/// The pod of the cycle whose nodes are on show.
fn pod_to_decide(app: &App, model: &Model) -> Option<NamespacedName> {
    matches!(app.view(), ViewId::Filter | ViewId::Scores).then(|| model.cycle())?.map(|c| c.pod)
}

/// The pod `NAME`, or `NAMESPACE/NAME`.
pub fn named_pod(text: &str) -> Result<NamespacedName, ActionError> {
    match named_key(text)? {
        ObjectKey { kind: Kind::Pod, namespace, name } => Ok(NamespacedName::new(namespace, name)),
        key => Err(format!("{key} is not a pod; write NAME or NAMESPACE/NAME").into()),
    }
}

/// `node a`, `pod shop/web`, or a pod's name alone.
fn named_key(text: &str) -> Result<ObjectKey, ActionError> {
    let (kind, name) = text.split_once(' ').unwrap_or(("pod", text));
    let kind = Kind::by_name(kind).ok_or_else(|| format!("{kind:?} is no kind of object"))?;
    let (namespace, name) = match (kind.is_namespaced(), name.trim().split_once('/')) {
        (true, Some(parts)) => parts,
        (true, None) => ("default", name.trim()),
        (false, _) => ("", name.trim()),
    };
    Ok(ObjectKey { kind, namespace: namespace.into(), name: name.into() })
}
