//! Reports that are computed on copies of the session, in the background: what becomes of the pods
//! if nodes are lost, what an upgrade changes, and what differs between branches.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use super::Driver;
use super::difference::MAX_RUNS;
use super::search::RunningTask;
use super::task::{BackgroundTask, TaskProgress, TaskState};
use super::whatif::named_versions;
use crate::report::cut::CutRuns;
use crate::report::pending::NodeAllowance;
use crate::report::survive::{self, SurviveReport};
use crate::report::upgrade::{self, RejectedInput, UpgradeReport};
use crate::tui::command_result::{CommandResult, WindowContent};
use kubestep_config::FeatureGates;
use kubestep_config::versions::{Served, differences};
use kubestep_debug::Session;
use kubestep_debug::diff::Pair;
use kubestep_debug::edit::EditError;
use kubestep_debug::survive::Losses;
use kubestep_debug::upgrade::{gates, of_branch};

/// Maximum number of cycles before the losses, and after each.
const MAX_CYCLES: usize = 1_000_000;

/// What a report is about: the same again gives the same answer.
#[derive(Clone, PartialEq, Eq, Debug)]
struct ReportQuery {
    /// The command line that asks for it.
    line: String,
    branch: String,
    /// The step that it begins at; none if it is about the whole branch.
    step: Option<usize>,
    /// How often anything had been done to any branch.
    changes: u64,
}

/// The lines of a report, or why there is none.
pub(super) type ReportLines = Result<Vec<String>, EditError>;

/// How far a report is in words, from what is done and of how much.
pub(super) type ProgressWords = Box<dyn Fn(usize, usize) -> String>;

/// What is asked for, and how it is shown.
pub(super) struct ReportRequest {
    /// The command line that asks for it.
    pub line: String,
    /// The step that it begins at; none if it is about the whole branch.
    pub step: Option<usize>,
    pub title: String,
    pub progress: ProgressWords,
}

/// A report under way.
pub(super) struct RunningReport {
    query: Box<ReportQuery>,
    title: String,
    progress: ProgressWords,
    work: BackgroundTask<ReportLines>,
}

/// A report that is complete.
pub(super) struct FinishedReport {
    query: Box<ReportQuery>,
    title: String,
    lines: Vec<String>,
}

impl Driver {
    /// What becomes of the pods if nodes are lost, one set after the other.
    pub(super) fn survive(&mut self, text: &str) -> CommandResult {
        let mut world = Arc::unwrap_or_clone(self.session.world_at(self.session.step()));
        let losses = match Losses::parse(&world, text) {
            Ok(losses) => losses,
            Err(EditError(text)) => return CommandResult::error(text),
        };
        world.detach();
        let memory = self.session.history_memory();
        let request = ReportRequest {
            line: format!("survive {text}"),
            step: Some(self.session.step()),
            title: format!("What if {losses} is lost?"),
            progress: Box::new(|done, of| format!("{done} of {of} losses tried; Esc stops")),
        };
        self.report(request, move |task| {
            let mut session = Session::new(world);
            memory.into_iter().for_each(|bytes| session.set_history_memory(bytes));
            session.only_forward();
            let allowed = NodeAllowance::default();
            let report =
                SurviveReport::new(&mut session, &losses, MAX_CYCLES, Some(allowed), &|progress| {
                    task.go_on(progress.done, progress.of)
                });
            Ok(lines(&survive::text::answer_first(&report?)))
        })
    }

    /// What an upgrade changes for the pods of this branch.
    pub(super) fn upgrade(&mut self, text: &str) -> CommandResult {
        let versions = match self.versions_of_upgrade(text) {
            Ok(versions) => versions,
            Err(EditError(text)) => return CommandResult::error(text),
        };
        let (from, to) = (versions.a.release.name(), versions.b.release.name());
        let mut session = self.session.clone();
        session.detach();
        let request = ReportRequest {
            line: format!("upgrade {text}"),
            step: None,
            title: format!("What changes with kube-scheduler {from} → {to}?"),
            progress: Box::new(|runs, _| searching_causes(runs)),
        };
        self.report(request, move |task| upgrade_lines(&session, &versions, task))
    }

    /// The report of `work`: known from before, shown at once, or begun in the background.
    pub(super) fn report(
        &mut self,
        request: ReportRequest,
        work: impl FnOnce(&TaskProgress) -> ReportLines + Send + 'static,
    ) -> CommandResult {
        let ReportRequest { line, step, title, progress } = request;
        let query = Box::new(ReportQuery {
            line: line.trim_end().to_owned(),
            branch: self.branches.name().to_owned(),
            step,
            changes: self.changes,
        });
        if let Some(known) = self.tasks.report.as_ref().filter(|known| known.query == query) {
            return CommandResult::window(known.window());
        }
        let work = match BackgroundTask::begin("report", move |task| work(task)) {
            Ok(work) => work,
            Err(error) => return CommandResult::error(format!("cannot compute: {error}")),
        };
        let running = RunningReport { query, title, progress, work };
        let patience = self.freshness.patience;
        self.take_report(running, patience)
            .unwrap_or_else(|running| self.continue_in_background(RunningTask::Report(running)))
    }

    /// The window of a report, or the report if it is still under way.
    pub(super) fn take_report(
        &mut self,
        running: RunningReport,
        patience: Duration,
    ) -> Result<CommandResult, RunningReport> {
        let lines = match running.work.result(patience) {
            TaskState::Running => return Err(running),
            TaskState::Failed => {
                return Ok(CommandResult::error(format!(":{} failed", running.query.line)));
            }
            TaskState::Done(Err(_)) if running.work.is_stopping() => {
                return Ok(CommandResult::info("stopped; there is no answer"));
            }
            TaskState::Done(Err(EditError(text))) => return Ok(CommandResult::error(text)),
            TaskState::Done(Ok(lines)) => lines,
        };
        let is_part = running.work.is_stopping();
        let finished = FinishedReport { query: running.query, title: running.title, lines };
        let window = finished.window();
        if !is_part {
            self.tasks.report = Some(finished);
        }
        Ok(CommandResult::window(window))
    }

    /// The versions before and after, each with the gates that are set here. One that is named is
    /// compared with the branch's own, the older one first; without a name, the branch's own is
    /// compared with the default one, or with the one before it.
    fn versions_of_upgrade(&self, text: &str) -> Result<Pair<UpgradeSide>, EditError> {
        let here = Served::from(gates(&self.session).version());
        let default = Served::default();
        let ordered = |a: &Served, b: &Served| match a.version <= b.version {
            true => (a.clone(), b.clone()),
            false => (b.clone(), a.clone()),
        };
        let (a, b) = match named_versions(text)?.as_slice() {
            [] if here.version != default.version => ordered(&here, &default),
            [] => (here.version.before().unwrap_or(here.version).into(), here),
            [one] => ordered(&here, one),
            [a, b] => (a.clone(), b.clone()),
            _ => return Err(EditError("name at most two versions".into())),
        };
        let sides = Pair { a: self.side(a)?, b: self.side(b)? };
        match differences(sides.a.gates, sides.b.gates).is_empty() {
            true => Err(EditError(format!(
                "nothing differs between {} and {}: name another version",
                sides.a.release.name(),
                sides.b.release.name()
            ))),
            false => Ok(sides),
        }
    }

    fn side(&self, release: Served) -> Result<UpgradeSide, EditError> {
        let set = gates(&self.session).as_set();
        let adopted = release.gates().adopted(&set);
        let (gates, rejected) = adopted.map_err(|error| EditError(error.to_string()))?;
        Ok(UpgradeSide {
            release,
            gates,
            rejected: rejected.iter().map(RejectedInput::gate).collect(),
        })
    }
}

/// A version of an upgrade.
struct UpgradeSide {
    release: Served,
    gates: FeatureGates,
    /// The gates that are set here and that it does not take.
    rejected: Vec<RejectedInput>,
}

fn upgrade_lines(
    session: &Session,
    versions: &Pair<UpgradeSide>,
    task: &TaskProgress,
) -> ReportLines {
    let Pair { a, b } = versions;
    let gates = Pair { a: a.gates, b: b.gates };
    let found = of_branch(session, gates, MAX_RUNS, &|runs| task.go_on(runs, 0));
    let report = UpgradeReport {
        releases: Pair { a: a.release.name(), b: b.release.name() },
        rejected: b.rejected.clone(),
        upgrade: Some(found.map_err(|error| EditError(format!("no answer: {error}")))?),
        listed: upgrade::listed(gates.a, gates.b),
        cut: CutRuns::default(),
    };
    Ok(lines(&upgrade::text::text(&report, gates)))
}

/// How far the search for the causes of differences between versions is.
pub(super) fn searching_causes(runs: usize) -> String {
    format!("searching for the causes of the differences: {runs} runs; Esc stops")
}

pub(super) fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

impl RunningReport {
    /// Asks it to end.
    pub fn stop(&self) {
        self.work.stop();
    }

    /// How far it is.
    pub fn describe(&self) -> String {
        let (done, of) = self.work.progress();
        match self.work.is_stopping() {
            true => format!("stopping :{}", self.query.line),
            false => (self.progress)(done, of),
        }
    }
}

impl FinishedReport {
    fn window(&self) -> WindowContent {
        WindowContent::Report {
            title: self.title.clone(),
            lines: self.lines.clone(),
            line: self.query.line.clone(),
        }
    }
}
