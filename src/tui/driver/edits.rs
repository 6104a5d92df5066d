//! Edits of what-ifs: done on a thread of their own, as a zone may be lost with thousands of pods.

use std::sync::Arc;
use std::time::Duration;

use super::Driver;
use super::search::RunningTask;
use super::task::{BackgroundTask, TaskProgress, TaskState};
use crate::tui::command::{Command, WhatIfCommand};
use crate::tui::command_result::CommandResult;
use kubestep_api::words::count;
use kubestep_debug::edit::{Edit, EditError};
use kubestep_debug::fork::EditDraft;

/// To the end of what is done.
pub(super) const WHOLE: Duration = Duration::from_secs(3600);

/// Edits that are being applied in slices.
pub(super) struct RunningEdits {
    /// The first edit, and how many more there are.
    words: String,
    /// What to say once they are applied.
    hint: Option<&'static str>,
    work: BackgroundTask<Result<AppliedEdits, EditError>>,
}

/// The draft, and the words of each edit with its side effects.
type AppliedEdits = (EditDraft, Vec<Vec<String>>);

impl Driver {
    /// Applies all of the edits, or none. What takes longer than `patience` goes on by itself.
    pub(super) fn edits(
        &mut self,
        edits: Vec<Edit>,
        patience: Duration,
        hint: Option<&'static str>,
    ) -> CommandResult {
        let words = in_short(&edits);
        let draft = self.branches.draft(&self.session);
        let begun = BackgroundTask::begin("edits", move |progress| apply(draft, edits, progress));
        let work = match begun {
            Ok(work) => work,
            Err(error) => return CommandResult::error(format!("cannot apply it: {error}")),
        };
        self.take_edits(RunningEdits { words, hint, work }, patience)
            .unwrap_or_else(|running| self.continue_in_background(RunningTask::Edits(running)))
    }

    /// The result of the edits, or the edits if they are still under way.
    pub(super) fn take_edits(
        &mut self,
        running: RunningEdits,
        patience: Duration,
    ) -> Result<CommandResult, RunningEdits> {
        let (draft, mut words) = match running.work.result(patience) {
            TaskState::Running => return Err(running),
            _ if running.work.is_stopping() => {
                let text = format!("stopped: {} was not applied", running.words);
                return Ok(CommandResult::info(text));
            }
            TaskState::Failed => return Ok(CommandResult::error("the edit failed")),
            TaskState::Done(Err(error)) => return Ok(CommandResult::error(error.to_string())),
            TaskState::Done(Ok(applied)) => applied,
        };
        let forked = match self.branches.take(&mut self.session, draft) {
            Ok(forked) => forked,
            Err(error) => return Ok(CommandResult::error(error.to_string())),
        };
        if let Some(first) = words.first_mut() {
            let place = forked.iter().map(|name| format!("in branch {name}"));
            let after = place.chain(running.hint.map(str::to_owned));
            // What comes next is read before side effects, of which there may be many.
            let at = if running.hint.is_some() { first.len().min(1) } else { first.len() };
            first.splice(at..at, after);
        }
        let text = words.concat().join("; ");
        // What was begun in one branch does not go on in another.
        Ok(CommandResult { stopped: forked.is_some(), ..CommandResult::info(text) })
    }

    /// Keeps a command that would change what edits are applied to until they are.
    pub(super) fn defer(&mut self, command: &Command) -> Option<CommandResult> {
        let Some(RunningTask::Edits(running)) = &self.tasks.running else { return None };
        let words = &running.words;
        if matches!(command, Command::WhatIf(WhatIfCommand::OpenEditor(_))) {
            return Some(CommandResult::error(format!("{words} is being applied; Esc stops it")));
        }
        if !command.changes_session() {
            return None;
        }
        let text = format!("done once {words} is applied; Esc stops it");
        self.tasks.deferred.push(command.clone());
        Some(CommandResult::info(text))
    }

    /// The commands that waited for edits, once these are over.
    pub fn take_deferred(&mut self) -> Vec<Command> {
        match &self.tasks.running {
            Some(RunningTask::Edits(_)) => Vec::new(),
            _ => std::mem::take(&mut self.tasks.deferred),
        }
    }
}

impl RunningEdits {
    /// Asks them to end.
    pub fn stop(&self) {
        self.work.stop();
    }

    /// How far they are.
    pub fn describe(&self) -> String {
        let words = &self.words;
        match (self.work.is_stopping(), self.work.progress()) {
            (true, _) => format!("stopping: {words}"),
            (_, (done, _)) => format!("{words}: {}; Esc stops", count(done, "change")),
        }
    }
}

fn apply(
    mut draft: EditDraft,
    edits: Vec<Edit>,
    progress: &Arc<TaskProgress>,
) -> Result<AppliedEdits, EditError> {
    let mut words = Vec::new();
    for edit in edits {
        let mut of_edit = vec![edit.to_string()];
        let progress = progress.clone();
        let applied = draft.edit(edit, Some(Arc::new(move || progress.count())))?;
        of_edit.extend(applied.notes);
        words.push(of_edit);
    }
    Ok((draft, words))
}

fn in_short(edits: &[Edit]) -> String {
    let first = edits.first().map(Edit::to_string).unwrap_or_default();
    match edits.len() {
        0 | 1 => first,
        all => format!("{first} and {} more", all - 1),
    }
}

#[cfg(test)]
mod tests;
