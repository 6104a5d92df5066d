//! What is searched in the background, above all the smallest change that makes a pod fit; what
//! is found is applied as a what-if where it was asked for.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use super::Driver;
use super::edits::RunningEdits;
use super::reports::{FinishedReport, RunningReport};
use super::task::{BackgroundTask, TaskState};
use crate::report::{fixes, new_nodes};
use crate::tui::command::{Command, WhatIfCommand};
use crate::tui::command_result::{CommandResult, WindowContent};
use crate::tui::view_id::ViewId;
use kubestep_debug::Position as Frame;
use kubestep_debug::edit::EditError;
use kubestep_debug::fix::{self, Fixes, SearchLimits};
use kubestep_debug::new_node::{self, NewNodes};
use kubestep_framework::pod::NamespacedName;

const NOW: Duration = Duration::ZERO;

/// What was asked, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct FixQuery {
    pod: NamespacedName,
    branch: String,
    step: usize,
    stop: usize,
    frame: Frame,
}

/// Work on threads of its own, and its last result.
#[derive(Default)]
pub(super) struct Tasks {
    /// What is under way.
    pub running: Option<RunningTask>,
    /// Commands that wait until edits are applied, in order.
    pub deferred: Vec<Command>,
    /// The last changes found.
    pub fixes: Option<FoundFixes>,
    /// The last report.
    pub report: Option<FinishedReport>,
}

/// Work under way in the background.
pub(super) enum RunningTask {
    /// What would make a pod fit.
    Fixes(FixQuery, BackgroundTask<Fixes>),
    /// Which new nodes would take a pod.
    NewNodes(NamespacedName, BackgroundTask<Option<NewNodes>>),
    /// A report on losses, an upgrade, or what differs between branches.
    Report(RunningReport),
    /// Edits of a what-if.
    Edits(RunningEdits),
}

/// The result of a search.
pub(super) struct FoundFixes {
    question: FixQuery,
    fixes: Fixes,
}

const NO_STATE: &str =
    "the state that the changes were found for no longer exists in this branch; X searches again";

impl Driver {
    /// What would make the pod fit at the position: looked for, or at hand from before.
    pub(super) fn fixes(&mut self, pod: NamespacedName) -> CommandResult {
        let question = FixQuery {
            pod,
            branch: self.branches.name().to_owned(),
            step: self.session.step(),
            stop: self.session.stop_index(),
            frame: self.session.position(),
        };
        let same =
            |other: &FixQuery| FixQuery { frame: question.frame, ..other.clone() } == question;
        if let Some(answer) = self.tasks.fixes.as_ref().filter(|answer| same(&answer.question)) {
            return CommandResult::window(window(answer));
        }
        if self.session.world_at(self.session.step()).api().objects().pod(pod).is_none() {
            return super::why::deleted_pod(pod);
        }
        self.search(question, SearchLimits::default())
    }

    /// Searches for more changes than the last search.
    pub(super) fn more_fixes(&mut self) -> CommandResult {
        let branch = self.branches.name();
        let last = self.tasks.fixes.as_ref().filter(|last| last.question.branch == branch);
        let last = last.map(|last| (last.question.clone(), fixes::more_fixes(&last.fixes)));
        match last.filter(|(question, _)| self.exists(question)) {
            Some((question, most)) => self.search(question, SearchLimits::of_fixes(most)),
            None => CommandResult::error(NO_STATE),
        }
    }

    fn search(&mut self, question: FixQuery, limits: SearchLimits) -> CommandResult {
        self.stop_search();
        match self.begin_search(question, limits) {
            Ok(searching) => self.tasks.running = Some(searching),
            Err(error) => {
                let text = format!("cannot search: {error}");
                return CommandResult::error(text);
            }
        }
        CommandResult { searching: true, ..CommandResult::default() }
    }

    fn begin_search(
        &mut self,
        question: FixQuery,
        limits: SearchLimits,
    ) -> std::io::Result<RunningTask> {
        let pod = question.pod;
        let mut world = Arc::unwrap_or_clone(self.session.world_at(question.step));
        world.detach();
        let work = BackgroundTask::begin("fixes", move |progress| {
            let mut go_on = |tried, of| progress.go_on(tried, of);
            fix::fixes(&world, &world, pod, limits, &mut go_on)
        })?;
        Ok(RunningTask::Fixes(question, work))
    }

    /// Which new nodes would take the pod at the position.
    pub(super) fn new_nodes(&mut self, pod: NamespacedName) -> CommandResult {
        let mut world = Arc::unwrap_or_clone(self.session.world_at(self.session.step()));
        if world.api().objects().pod(pod).is_none() {
            return super::why::deleted_pod(pod);
        }
        world.detach();
        self.stop_search();
        let work = BackgroundTask::begin("new nodes", move |progress| {
            new_node::new_nodes(&world, pod, &mut |tried, of| progress.go_on(tried, of))
        });
        match work {
            Ok(work) => self.tasks.running = Some(RunningTask::NewNodes(pod, work)),
            Err(error) => return CommandResult::error(format!("cannot search: {error}")),
        }
        CommandResult { searching: true, ..CommandResult::default() }
    }

    /// Whether a search is under way: call `search_tick` now and then.
    pub fn is_searching(&self) -> bool {
        self.tasks.running.is_some()
    }

    /// Ends the search; what it has found until then still comes.
    pub fn stop_search(&mut self) {
        match &self.tasks.running {
            Some(RunningTask::Fixes(_, work)) => work.stop(),
            Some(RunningTask::NewNodes(_, work)) => work.stop(),
            Some(RunningTask::Report(report)) => report.stop(),
            Some(RunningTask::Edits(edits)) => {
                edits.stop();
                self.tasks.deferred.clear();
            }
            None => {}
        }
    }

    /// Looks how far the search is. Returns the result once it is over.
    pub fn search_tick(&mut self) -> Option<CommandResult> {
        self.model.searching = None;
        let going_on = match self.tasks.running.take()? {
            RunningTask::Fixes(question, work) => match work.result(NOW) {
                TaskState::Running => RunningTask::Fixes(question, work),
                came => return Some(self.take_found(question, came)),
            },
            RunningTask::NewNodes(pod, work) => match work.result(NOW) {
                TaskState::Running => RunningTask::NewNodes(pod, work),
                TaskState::Done(Some(answer)) => {
                    let title = format!("Which new node would take {pod}?");
                    let lines = new_nodes::lines(&answer, false);
                    return Some(CommandResult::window(WindowContent::Lines(title, lines)));
                }
                _ => return Some(without_result()),
            },
            RunningTask::Report(report) => match self.take_report(report, NOW) {
                Err(report) => RunningTask::Report(report),
                Ok(done) => return Some(done),
            },
            RunningTask::Edits(edits) => match self.take_edits(edits, NOW) {
                Err(edits) => RunningTask::Edits(edits),
                Ok(done) => {
                    self.live.runs &= !done.stopped;
                    self.show_branch();
                    let notes = self.dropped_branches();
                    return Some(CommandResult { notes, ..done });
                }
            },
        };
        self.model.searching = Some(going_on.describe());
        self.tasks.running = Some(going_on);
        None
    }

    fn take_found(&mut self, question: FixQuery, came: TaskState<Fixes>) -> CommandResult {
        let TaskState::Done(fixes) = came else { return without_result() };
        let answer = FoundFixes { question, fixes };
        let window = window(&answer);
        self.tasks.fixes = Some(answer);
        CommandResult::window(window)
    }

    /// Whether the state that changes were searched for still exists in this branch.
    fn exists(&self, question: &FixQuery) -> bool {
        let timeline = self.session.timeline();
        question.step < timeline.steps().end() && question.stop < timeline.stops().end()
    }

    /// Continues work in the background, in place of what is under way.
    pub(super) fn continue_in_background(&mut self, task: RunningTask) -> CommandResult {
        self.stop_search();
        self.tasks.running = Some(task);
        CommandResult { searching: true, ..CommandResult::default() }
    }

    /// Does the edits of a change that was found, in a branch from where it was asked for.
    pub(super) fn apply_fix(&mut self, number: usize) -> Result<CommandResult, EditError> {
        let found = self.tasks.fixes.as_ref().and_then(|answer| {
            Some((answer.question.clone(), answer.fixes.found.get(number)?.edits.clone()))
        });
        let nothing = || EditError("nothing was found yet; X searches".into());
        let (question, edits) = found.ok_or_else(nothing)?;
        self.branches.switch(&mut self.session, &question.branch)?;
        if !self.exists(&question) {
            return Err(EditError(NO_STATE.into()));
        }
        self.session.go_to_stop(question.stop);
        self.session.go_to(question.frame);
        let hint = Some("c runs on, D compares, u undoes");
        Ok(self.edits(edits, self.freshness.patience, hint))
    }
}

impl RunningTask {
    fn describe(&self) -> String {
        let (pod, what, is_stopping, progress) = match self {
            RunningTask::Fixes(question, work) => {
                (question.pod, "changes", work.is_stopping(), work.progress())
            }
            RunningTask::NewNodes(pod, work) => {
                (*pod, "new nodes", work.is_stopping(), work.progress())
            }
            RunningTask::Report(report) => return report.describe(),
            RunningTask::Edits(edits) => return edits.describe(),
        };
        match (is_stopping, progress) {
            (true, _) => format!("stopping the search for {pod}"),
            (_, (_, 0)) => format!("searching {what} for {pod}; Esc stops"),
            (_, (tried, of)) => format!("{tried} of {of} {what} tried for {pod}; Esc stops"),
        }
    }
}

pub(super) fn without_result() -> CommandResult {
    CommandResult::error("the search ended without a result".to_owned())
}

fn window(answer: &FoundFixes) -> WindowContent {
    let title = format!("What would make {} fit?", answer.question.pod);
    let lines = fixes::lines(&answer.fixes).into_iter();
    let lines = lines.map(|(fix, line)| (fix.map(WhatIfCommand::Fix), line));
    let more = fixes::more(&answer.fixes);
    let more = more.map(|more| {
        (Some(WhatIfCommand::MoreFixes), format!("{more}; Enter continues the search"))
    });
    let waiting = ViewId::Waiting.key();
    let held = answer
        .fixes
        .held
        .as_ref()
        .map(|_| (None, format!("{waiting} shows the waiting pods, to allow or reject them.")));
    WindowContent::Fixes(title, lines.chain(more).chain(held).collect())
}
