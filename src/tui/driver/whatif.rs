//! Does what-if commands: edits, branches and questions about them.

use std::time::Instant;

use super::edits::WHOLE;
use super::{Driver, Goal};
use crate::tui::command::{Command, WhatIfCommand};
use crate::tui::command_result::{CommandResult, EditorText, MenuItem, WindowContent};
use kubestep_api::intern::Symbol;
use kubestep_api::{Kind, ObjectKey};
use kubestep_cluster::World;
use kubestep_config::KubeVersion;
use kubestep_config::versions::{self, NotAVersion, Served};
use kubestep_debug::Session;
use kubestep_debug::edit::EditError;
use kubestep_debug::edit::node_set::label_key;
use kubestep_debug::edit::offers::{EditOffer, offers};
use kubestep_debug::fork::ORIGINAL;
use kubestep_debug::preview;
use kubestep_debug::upgrade::gates;
use kubestep_framework::pod::NamespacedName;

/// Columns for text in a window: it has room in a terminal of 80.
const WINDOW_WIDTH: usize = 74;

impl Driver {
    /// Does a what-if command.
    pub(super) fn what_if(&mut self, command: &WhatIfCommand) -> CommandResult {
        let done = match command {
            WhatIfCommand::Menu(key, pod) => Ok(self.menu(*key, *pod)),
            WhatIfCommand::Offers(title, found) => {
                Ok(CommandResult::window(WindowContent::Offers(title.clone(), found.clone())))
            }
            WhatIfCommand::OpenEditor(key) => self.yaml(*key),
            WhatIfCommand::EditLine(line) => self.edit_line(line),
            // The editor shows what is wrong, and is opened again.
            WhatIfCommand::Edits(edits) => Ok(self.edits(edits.clone(), WHOLE, None)),
            WhatIfCommand::Fix(number) => self.apply_fix(*number),
            WhatIfCommand::MoreFixes => Ok(self.more_fixes()),
            WhatIfCommand::Undo => self.undo(),
            WhatIfCommand::Redo => self.redo(),
            WhatIfCommand::Fork(name) => self.fork(name.as_deref()),
            WhatIfCommand::Branch(Some(name)) => self.switch_branch(name),
            WhatIfCommand::Branch(None) => Ok(self.list_branches()),
            WhatIfCommand::Compare(name) => self.compare(name.as_deref()),
            WhatIfCommand::Versions(text) => self.versions(text),
            WhatIfCommand::Weigh(plugin, by) => self.weigh(*plugin, *by),
        };
        let keeps_branch = matches!(command, WhatIfCommand::Weigh(..) | WhatIfCommand::Compare(_));
        if command.changes_session() && !keeps_branch {
            self.show_branch();
        }
        let notes = self.dropped_branches();
        done.map(|done| CommandResult { notes, ..done })
            .unwrap_or_else(|EditError(text)| CommandResult::error(text))
    }

    fn undo(&mut self) -> Result<CommandResult, EditError> {
        let undone = self.branches.undo(&mut self.session)?;
        Ok(CommandResult::info(format!("undone: {undone}")))
    }

    fn fork(&mut self, name: Option<&str>) -> Result<CommandResult, EditError> {
        let name = self.branches.fork(&mut self.session, name)?;
        Ok(CommandResult::info(format!("on branch {name}; the previous branch is unchanged")))
    }

    fn switch_branch(&mut self, name: &str) -> Result<CommandResult, EditError> {
        self.branches.switch(&mut self.session, name)?;
        let text = format!("on branch {name}");
        Ok(CommandResult { closes_windows: true, ..CommandResult::info(text) })
    }

    /// Shows the current branch, after anything was done to it.
    pub(super) fn show_branch(&mut self) {
        self.model.weights.clear();
        let name = self.branches.name();
        self.model.branch = if name == ORIGINAL { String::new() } else { name.to_owned() };
        self.future_forgotten();
    }

    /// The notices of branches that were dropped.
    pub(super) fn dropped_branches(&mut self) -> Vec<String> {
        self.branches.take_dropped().iter().map(ToString::to_string).collect()
    }

    fn menu(&mut self, key: ObjectKey, pod: Option<NamespacedName>) -> CommandResult {
        let world = &*self.session.world_at(self.session.step());
        let mut found = Vec::new();
        let pending = |pod: &NamespacedName| {
            let object = world.api().objects().pod(*pod);
            object.is_some_and(|object| object.spec.node_name.is_empty())
        };
        if let Some(pod) = pod.filter(pending) {
            let words = |verb| format!("{verb} node {} for pod {pod}", key.name);
            let decisions = ["choose", "force", "veto"].map(words);
            found.extend(decisions.map(EditOffer::whole));
        }
        found.extend(offers(world, key));
        let mut found: Vec<MenuItem> = found.into_iter().map(MenuItem::Edit).collect();
        found.extend(losses(world, key));
        let open = WindowContent::Offers(format!("What if: {key}"), found);
        CommandResult::window(open)
    }

    fn yaml(&mut self, key: ObjectKey) -> Result<CommandResult, EditError> {
        let name = NamespacedName::new(key.namespace, key.name);
        let world = self.session.world_at(self.session.step());
        let found = world.api().get(key.kind, name);
        let object = found.ok_or_else(|| EditError(format!("there is no {key} here")))?;
        let text = EditorText { name: key.to_string(), yaml: kubestep_debug::edit::yaml(&object) };
        Ok(CommandResult { editor: Some(text), ..CommandResult::default() })
    }

    fn edit_line(&mut self, line: &str) -> Result<CommandResult, EditError> {
        let unknown = self.session.world().config().unknown;
        let edits = crate::plugins::read_edits(line, unknown)
            .map_err(|error| EditError(format!("{error:#}")))?;
        Ok(self.edits(edits, self.freshness.patience, None))
    }

    fn list_branches(&self) -> CommandResult {
        let list = self.branches.list(&self.session);
        let lines = list.into_iter().map(|branch| {
            let mark = if branch.current { "* " } else { "  " };
            let from = branch.parent.map(|name| format!(", from {name}")).unwrap_or_default();
            let edits = match branch.edits.as_slice() {
                [] => String::new(),
                edits => format!(": {}", edits.join(", ")),
            };
            let line = format!("{mark}{}{from}{edits}", branch.name);
            (Some(WhatIfCommand::Branch(Some(branch.name))), line)
        });
        CommandResult::window(WindowContent::Branches("Branches".into(), lines.collect()))
    }

    /// What changed between two versions. Without a name: between the original's and the branch's,
    /// or the branch's and the default one.
    fn versions(&self, text: &str) -> Result<CommandResult, EditError> {
        let version = |session: &Session| Served::from(gates(session).version());
        let here = version(&self.session);
        let named = named_versions(text)?;
        let original = self.branches.other(ORIGINAL).map_or_else(|| here.clone(), version);
        let (from, to) = match named.as_slice() {
            [] if original != here => (original, here.clone()),
            [] if here != Served::default() => (here.clone(), Served::default()),
            [] => (here.version.before().unwrap_or(here.version).into(), here.clone()),
            [other] => (here.clone(), other.clone()),
            [from, to] => (from.clone(), to.clone()),
            _ => return Err(EditError("name at most two versions".into())),
        };
        if from.name() == to.name() {
            return Err(EditError(format!("this branch already decides as {}", to.name())));
        }
        let registry = self.session.world().registry().descriptors();
        let between = versions::between(&from, &to, &registry);
        let mut lines: Vec<String> =
            versions::between_text(&between, WINDOW_WIDTH).lines().map(str::to_owned).collect();
        let (from, to) = (from.name(), to.name());
        let other = if to == here.name() { &from } else { &to };
        lines.push(String::new());
        lines.push(format!(":what-if kube-version {other} tries {other} in a branch; D compares"));
        let title = format!("kube-scheduler {from} → {to}");
        Ok(CommandResult::window(WindowContent::Lines(title, lines)))
    }

    /// Redoes what was undone: in a moment, or as a run.
    fn redo(&mut self) -> Result<CommandResult, EditError> {
        let (start, patience) = (Instant::now(), self.freshness.patience);
        let redone = self.branches.redo(&mut self.session, || start.elapsed() < patience)?;
        if redone.left == 0 {
            return Ok(CommandResult::info(again(&redone.words)));
        }
        self.run.redoing = Some(redone);
        Ok(self.begin_run(Goal::Redo))
    }

    /// Goes on with it; returns the result once it is over.
    pub(super) fn redo_on(&mut self, more: impl FnMut() -> bool) -> Option<CommandResult> {
        let begun = self.run.redoing.take()?;
        let left = match self.branches.redo(&mut self.session, more) {
            Ok(redone) => redone.left,
            Err(error) => {
                return Some(CommandResult::error(error.to_string()));
            }
        };
        let done = begun.left.saturating_sub(left);
        self.model.progress =
            (left > 0).then(|| format!("{done} of {} steps redone; Esc stops", begun.left));
        if left == 0 {
            return Some(CommandResult::info(again(&begun.words)));
        }
        self.run.redoing = Some(begun);
        None
    }

    fn weigh(&mut self, plugin: Symbol, by: i64) -> Result<CommandResult, EditError> {
        let record = self.session.latest_record().cloned();
        let nothing = || EditError(format!("{plugin} gives no scores in this cycle"));
        let record = record.ok_or_else(nothing)?;
        let column = record.score.plugins.iter().find(|column| column.plugin == plugin);
        let real = column.ok_or_else(nothing)?.weight;
        let weights = &mut self.model.weights;
        let weight = (preview::weight_of(weights, plugin).unwrap_or(real) + by).max(0);
        weights.retain(|(name, _)| *name != plugin);
        if weight != real {
            weights.push((plugin, weight));
        }
        self.model.revision += 1;
        let totals = preview::totals(&record, &self.model.weights);
        let best = preview::winner(&record, &totals).and_then(|at| record.feasible.get(at));
        let best = best.map(|id| record.nodes.name(*id)).unwrap_or_default();
        let how = match (weight == real, weight) {
            (true, _) => "as configured".to_owned(),
            (false, _) => "Enter keeps it for the cycles that follow".to_owned(),
        };
        Ok(CommandResult::info(format!("{plugin} weight {weight}: the best is {best}; {how}")))
    }
}

/// The versions that a text names.
pub(super) fn named_versions(text: &str) -> Result<Vec<Served>, EditError> {
    let named: Result<Vec<Served>, NotAVersion> =
        text.split_whitespace().map(KubeVersion::nearest).collect();
    named.map_err(|error| EditError(error.to_string()))
}

/// The losses of a node and of its zone.
fn losses(world: &World, key: ObjectKey) -> Vec<MenuItem> {
    let Some(node) = world.api().node(key.name).filter(|_| key.kind == Kind::Node) else {
        return Vec::new();
    };
    let zone = label_key(world, "zone").ok();
    let zone = zone.and_then(|label| node.metadata.labels.get(label));
    let item = |what: String| MenuItem::Command {
        line: format!("survive {what}"),
        about: "lose it on a copy: which pods then have no node",
        command: Command::Survive(what),
    };
    let of_zone = zone.map(|zone| item(format!("zone={zone}")));
    std::iter::once(item(format!("node {}", key.name))).chain(of_zone).collect()
}

fn again(words: &str) -> String {
    format!("redone: {words}")
}

#[cfg(test)]
mod tests;
