//! Steps, one or many: what is not done in a moment goes on as a run, slice by slice.

use std::time::Instant;

use super::{Driver, Goal, StepMode, StepResult};
use crate::tui::command_result::CommandResult;
use kubestep_api::words::count;
use kubestep_debug::breakpoint::Moment;
use kubestep_debug::{Session, StepOutcome};

/// Steps that are left of a command with a count.
#[derive(Clone, Copy)]
pub(super) struct PendingSteps {
    /// How many are left, of how many.
    pub left: u32,
    pub count: u32,
    pub way: StepMode,
    pub step: fn(&mut Session) -> StepOutcome,
    /// Whether the view stays unless a breakpoint stops it.
    pub stays: bool,
    /// Where it began, for the messages of logging breakpoints.
    pub from: Option<Moment>,
}

impl Driver {
    /// Begins to walk, and goes as far as a person waits without noticing.
    pub(super) fn walk(&mut self, walk: PendingSteps) -> CommandResult {
        self.run.steps = Some(PendingSteps { from: self.session.moment(), ..walk });
        let (start, patience) = (Instant::now(), self.freshness.patience);
        let done = self.walk_on(|| start.elapsed() < patience);
        done.unwrap_or_else(|| self.begin_run(Goal::Steps))
    }

    /// Walks on while there is `more` time. Returns the result once it is over. A live
    /// scheduler does all at once, without decisions in between.
    pub(super) fn walk_on(&mut self, more: impl Fn() -> bool) -> Option<CommandResult> {
        let mut walk = self.run.steps.take()?;
        let mut went = StepResult::Ran(StepOutcome::Moved);
        let (mut stop, mut sent) = (None, None);
        while walk.left > 0 {
            let before = self.session.moment();
            went = self.one_step(walk.way, walk.step);
            walk.left -= 1;
            let sends = walk.way == StepMode::Over && self.schedules_live() && went.is_new_cycle();
            stop = match walk.way {
                StepMode::Back => self.stop_passed_back(before),
                // All of the cycle is stepped over.
                StepMode::Over if sends => self.stop_until(before, self.newest_moment()),
                StepMode::Into | StepMode::Over => self.stop_passed(before),
            };
            if stop.is_some() || went.is_end() {
                break;
            }
            if sends {
                sent = self.send();
            }
            if walk.left > 0 && !self.schedules_live() && !more() {
                self.run.steps = Some(walk);
                return None;
            }
        }
        let notes = if walk.way == StepMode::Back { Vec::new() } else { self.log_lines(walk.from) };
        let done = match stop {
            Some(words) => CommandResult::stopped(words),
            None => self.live_step_message(&went, sent),
        };
        let look_at = self.best_view().filter(|_| done.stopped || !walk.stays);
        Some(CommandResult { look_at, notes, ..done })
    }

    /// How far a walk is, for the status line.
    pub(super) fn walk_text(&self) -> Option<String> {
        let walk = self.run.steps?;
        let done = walk.count - walk.left;
        Some(format!("{done} of {}; Esc stops", count(walk.count as usize, "step")))
    }
}
