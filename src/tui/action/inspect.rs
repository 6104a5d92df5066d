//! Looking closer at what is selected.

use super::{Action, Argument, whatif};
use crate::tui::action_error::ActionError;
use crate::tui::app::{App, Effect};
use crate::tui::command::Command;
use crate::tui::lines;
use crate::tui::model::Model;
use kubestep_api::Kind;
use kubestep_framework::pod::NamespacedName;

/// The rows of the table.
#[rustfmt::skip]
pub const ACTIONS: &[Action] = &[
    Action::new("open", &["enter"], "Look into the selected row; Esc returns, t goes there",
        |app, model, _| app.open(model)).hint("open").search("inspect"),
    Action::new("why", &["W"], "Why the pod is pending, or on its node: everything that blocks it",
        |app, model, text| of_pod(app, model, text, Command::Why))
        .takes(Argument::Optional("POD")).hint("why")
        .search("explain pending unschedulable stuck reason cause"),
    Action::new("fix", &["X"], "The smallest changes that would make the pod fit, each tried on a copy",
        |app, model, text| of_pod(app, model, text, Command::Fixes))
        .takes(Argument::Optional("POD")).hint("fix")
        .search("remedy solve suggest unschedulable pending stuck"),
    Action::new("new-nodes", &[], "Which new node would take the pod: of pools and node groups, or a copy",
        |app, model, text| of_pod(app, model, text, Command::NewNodes))
        .takes(Argument::Optional("POD"))
        .search("karpenter autoscaler nodepool scale up price"),
    Action::new("disruptions", &[], "Which pods of drained and lost nodes and of rollouts are pending",
        |_, _, _| Ok(Effect::Session(Command::Disruptions)))
        .search("drain lose evict budget rollout pending"),
    Action::new("survive", &["R"], "Which pods stay pending if a node or zone is lost, or each in turn",
        |_, _, text| Ok(Effect::Session(Command::Survive(text.trim().to_owned()))))
        .takes(Argument::Optional("KEY[=VALUE]"))
        .search("lose loss zone node drain outage failure domain disaster"),
    Action::new("describe", &["d"], "Everything about the selected row, in one window",
        |app, model, _| app.describe(model)).hint("describe").search("details yaml spec"),
    Action::new("copy", &["y"], "Copy the details of the selected row, as text",
        |app, model, _| app.copy(model, lines::as_text)).search("yank clipboard"),
    Action::new("copy-markdown", &["Y"], "The same as Markdown, for an issue or a chat",
        |app, model, _| app.copy(model, lines::as_markdown)).search("yank clipboard"),
];

/// A command about the pod that is named, or else of the selected row; on a node's row, about that of
/// the cycle.
fn of_pod(
    app: &App,
    model: &Model,
    text: &str,
    command: fn(NamespacedName) -> Command,
) -> Result<Effect, ActionError> {
    let pod = match text.trim() {
        "" => pod_of(app, model).ok_or("choose a pod first, in 2 or 6")?,
        text => whatif::named_pod(text)?,
    };
    Ok(Effect::Session(command(pod)))
}

/// The pod of the selected row; of a node's row, that of the cycle.
pub fn pod_of(app: &App, model: &Model) -> Option<NamespacedName> {
    let row = whatif::subject(app, model).filter(|key| key.kind == Kind::Pod);
    let row = row.map(|key| NamespacedName::new(key.namespace, key.name));
    row.or_else(|| model.cycle().map(|cycle| cycle.pod))
}
