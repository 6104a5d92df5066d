//! What differs between two branches. The other one is first run as far as this one, on a copy;
//! that and the comparison are done in the background.

use std::time::Duration;

use super::Driver;
use super::task::{BackgroundTask, TaskProgress, TaskState};
use crate::report;
use crate::tui::command_result::{CommandResult, WindowContent};
use kubestep_api::words::count;
use kubestep_config::FeatureGates;
use kubestep_debug::Session;
use kubestep_debug::diff::{Difference, Pair, Side, compare};
use kubestep_debug::edit::EditError;
use kubestep_debug::fork::ORIGINAL;
use kubestep_debug::upgrade::{RunError, Upgrade, between_branches, cycles_as_far_as, gates};

/// Maximum number of runs in search of the causes of what a version changes, or a few more.
pub(super) const MAX_RUNS: usize = 500;

/// The branches by name, and how often anything had been done to any until then.
#[derive(Clone, PartialEq, Eq)]
struct ComparedBranches {
    names: Pair<String>,
    changes: u64,
}

/// A comparison under way.
pub(super) struct RunningComparison {
    sides: ComparedBranches,
    work: BackgroundTask<Option<Vec<String>>>,
}

/// The result of a comparison.
pub(super) struct BranchComparison {
    sides: ComparedBranches,
    lines: Vec<String>,
}

impl Driver {
    /// Compares this branch with another one, the original unless it is named.
    pub(super) fn compare(&mut self, name: Option<&str>) -> Result<CommandResult, EditError> {
        let (name, current) = (name.unwrap_or(ORIGINAL), self.branches.name());
        if name == current {
            return Err(EditError(format!(
                "you are on the {name} branch; E makes a branch with an edit"
            )));
        }
        let other = self.branches.other(name);
        let other = other.ok_or_else(|| EditError(format!("there is no branch {name:?}")))?;
        let names = Pair { a: name.to_owned(), b: current.to_owned() };
        let sides = ComparedBranches { names: names.clone(), changes: self.changes };
        if let Some(known) = self.tasks.comparison.as_ref().filter(|known| known.sides == sides) {
            return Ok(CommandResult::window(known.window()));
        }
        let (mut other, session) = (other.clone(), self.session.clone());
        other.detach();
        let begun = BackgroundTask::begin("compare", move |progress| {
            lines(other, &session, &names, progress)
        });
        let work = begun.map_err(|error| EditError(format!("cannot compare: {error}")))?;
        // What is compared in a moment is shown at once.
        let patience = self.freshness.patience;
        let compared = self.take_compared(RunningComparison { sides, work }, patience);
        Ok(compared.unwrap_or_else(|comparing| {
            self.continue_in_background(super::search::RunningTask::Difference(comparing))
        }))
    }

    /// The result of a comparison, or the comparison if it is still under way.
    pub(super) fn take_compared(
        &mut self,
        comparing: RunningComparison,
        patience: Duration,
    ) -> Result<CommandResult, RunningComparison> {
        let lines = match comparing.work.result(patience) {
            TaskState::Running => return Err(comparing),
            TaskState::Failed => return Ok(CommandResult::error("the comparison failed")),
            TaskState::Done(None) => {
                return Ok(CommandResult::info("stopped; nothing was compared"));
            }
            TaskState::Done(Some(lines)) => lines,
        };
        let compared = BranchComparison { sides: comparing.sides, lines };
        let window = compared.window();
        self.tasks.comparison = Some(compared);
        Ok(CommandResult::window(window))
    }
}

impl RunningComparison {
    /// Asks it to end.
    pub fn stop(&self) {
        self.work.stop();
    }

    /// How far it is.
    pub fn describe(&self) -> String {
        let name = &self.sides.names.a;
        match (self.work.is_stopping(), self.work.progress()) {
            (true, _) => "ending the comparison".into(),
            (_, (runs, 0)) if runs > 0 => format!(
                "searching which change of the version causes the differences: {runs} runs; Esc stops"
            ),
            (_, (done, of)) if done < of => {
                format!("{name} is run as far as this branch: {done} of {of} cycles; Esc stops")
            }
            _ => format!("comparing with {name}; Esc stops"),
        }
    }
}

impl BranchComparison {
    fn window(&self) -> WindowContent {
        let Pair { a: other, b: current } = &self.sides.names;
        WindowContent::Differences(
            format!("What differs from {other} in {current}"),
            self.lines.clone(),
        )
    }
}

/// `None` if it was stopped.
fn lines(
    mut other: Session,
    session: &Session,
    names: &Pair<String>,
    progress: &TaskProgress,
) -> Option<Vec<String>> {
    let cycles = |session: &Session| session.history().cycle_count();
    let missing = cycles(session).saturating_sub(cycles(&other));
    let limit = cycles_as_far_as(session).saturating_sub(cycles(&other));
    let (mut ran, mut goes_on) = (0, progress.go_on(0, missing));
    other.run_until_idle(limit, |_| {
        ran += 1;
        goes_on = progress.go_on(ran, missing.max(ran));
        !goes_on
    });
    goes_on = goes_on && progress.go_on(missing, missing);
    if !goes_on {
        return None;
    }
    let difference = compare(Side::of(&other), Side::of(session));
    let found = between_branches(&other, session, MAX_RUNS, &|runs| progress.go_on(runs, 0));
    if !progress.go_on(0, 0) {
        return None;
    }
    let gates = Pair { a: gates(&other), b: gates(session) };
    let side = |name: &str, session: &Session, gates: FeatureGates| {
        let version = match found {
            None => String::new(),
            Some(_) => format!(" (kube-scheduler {})", gates.version_words()),
        };
        format!("{name}{version}, {}", count(cycles(session), "cycle"))
    };
    let sides = Pair { a: side(&names.a, &other, gates.a), b: side(&names.b, session, gates.b) };
    let text = text(&difference, &sides, found, gates);
    Some(text.lines().map(str::to_owned).collect())
}

/// The difference, with what the version changes and which change of it causes what, unless both
/// decide as the same version.
fn text(
    difference: &Difference,
    sides: &Pair<String>,
    found: Option<Result<Upgrade, RunError>>,
    gates: Pair<FeatureGates>,
) -> String {
    use report::diff::text::{whole, with_causes};
    let summary = format!("{difference}\n");
    match found {
        None => whole(difference, sides, &summary, ""),
        Some(Ok(upgrade)) => {
            let causes = report::upgrade::text::between_branches(&upgrade, gates, difference);
            with_causes(difference, sides, &causes)
        }
        Some(Err(error)) => {
            let text = format!("\nThe causes cannot be searched: {error}\n");
            whole(difference, sides, &summary, &text)
        }
    }
}

#[cfg(test)]
mod tests;
