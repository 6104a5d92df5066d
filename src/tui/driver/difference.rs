//! What differs between two branches. The other one is first run as far as this one, on a copy;
//! that and the comparison are done in the background.

use super::Driver;
use super::reports::{ProgressWords, ReportLines, ReportRequest, lines, searching_causes};
use super::task::TaskProgress;
use crate::report;
use crate::tui::command_result::CommandResult;
use kubestep_api::words::count;
use kubestep_config::FeatureGates;
use kubestep_debug::Session;
use kubestep_debug::diff::{Difference, Pair, Side, compare};
use kubestep_debug::edit::EditError;
use kubestep_debug::fork::ORIGINAL;
use kubestep_debug::upgrade::{RunError, Upgrade, between_branches, cycles_as_far_as, gates};

/// Maximum number of runs in search of the causes of what a version changes, or a few more.
pub(super) const MAX_RUNS: usize = 500;

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
        let (mut other, session) = (other.clone(), self.session.clone());
        other.detach();
        let names = Pair { a: name.to_owned(), b: current.to_owned() };
        let request = ReportRequest {
            line: format!("differences {name}"),
            step: None,
            title: format!("What differs from {name} in {current}"),
            progress: progress(name),
        };
        Ok(self.report(request, move |task| differences(other, &session, &names, task)))
    }
}

/// How far a comparison with the branch `name` is.
fn progress(name: &str) -> ProgressWords {
    let name = name.to_owned();
    Box::new(move |done, of| match (done, of) {
        (runs, 0) if runs > 0 => searching_causes(runs),
        (done, of) if done < of => {
            format!("{name} is run as far as this branch: {done} of {of} cycles; Esc stops")
        }
        _ => format!("comparing with {name}; Esc stops"),
    })
}

/// What differs, unless it is stopped.
fn differences(
    mut other: Session,
    session: &Session,
    names: &Pair<String>,
    progress: &TaskProgress,
) -> ReportLines {
    // Not shown: who stops a report is told that there is no answer.
    let stopped = || EditError("stopped".into());
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
        return Err(stopped());
    }
    let difference = compare(Side::of(&other), Side::of(session));
    let found = between_branches(&other, session, MAX_RUNS, &|runs| progress.go_on(runs, 0));
    if !progress.go_on(0, 0) {
        return Err(stopped());
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
    Ok(lines(&text(&difference, &sides, found, gates)))
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
