//! Drops the oldest past, for sessions that run for days.
//!
//! A session that follows a cluster calls [`Session::forget_past`]. When its recording exceeds the
//! memory budget although no matrix is left in it, the recording is cut: it then begins at the
//! second copy of the cluster, which becomes the first. That copy is the state after some step, so
//! nothing has to be replayed, and all later states are still reached from it. Copies lie at even
//! distances, so a cut drops a small part of the recording, or a quarter where memory allows only a
//! few copies; the cost per step does not grow with the length of the session. Numbers of steps,
//! stops, cycles and entries do not change, nor do hit counts.

use super::{CHECKPOINT_BYTES, Session};
use crate::frames::Position;
use kubestep_api::Time;

/// Steps that are kept at least where there are no copies.
const FEWEST: usize = 1_024;

/// What a session drops.
#[derive(Clone, Default)]
pub(super) struct HistoryLimit {
    /// Whether it drops anything.
    on: bool,
    /// The memory budget of the past in bytes; `None`: unlimited.
    memory: Option<usize>,
}

impl HistoryLimit {
    /// A branch keeps everything, with the same budget for what can be computed again.
    pub(super) fn of_branch(&self) -> HistoryLimit {
        HistoryLimit { on: false, memory: self.memory }
    }

    /// The part of the budget for the recording.
    fn recording(&self) -> Option<usize> {
        self.memory.map(|bytes| bytes - bytes / 8 * 3)
    }
}

impl Session {
    /// Sets the memory budget of the past, in bytes: three eighths for copies of the cluster, the
    /// rest for the recording. Without a budget, no matrix is dropped.
    pub fn set_history_memory(&mut self, bytes: usize) {
        self.forgets.memory = Some(bytes);
        self.restore_budget();
    }

    /// The memory budget of the past, in bytes, if there is one.
    pub fn history_memory(&self) -> Option<usize> {
        self.forgets.memory
    }

    /// Allows the recording and the copies of the cluster as much memory as was set.
    pub(crate) fn restore_budget(&mut self) {
        let copies = self.forgets.memory.map_or(CHECKPOINT_BYTES, |bytes| bytes / 8 * 3);
        self.history.set_budget(self.forgets.recording());
        self.checkpoints.set_budget(copies);
    }

    /// Drops all matrices and copies of the cluster that can be made again, until the next
    /// [`Session::restore_budget`].
    pub(crate) fn keep_least(&mut self) {
        self.history.keep_least();
        self.checkpoints.set_budget(0);
        self.within = None;
    }

    /// Approximate memory of the steps before `first` and from `last` on, without matrices, in
    /// bytes: of a branch, what it does not share with the original.
    pub(crate) fn recorded_bytes_beside(&self, first: usize, last: usize) -> usize {
        let steps = self.timeline.steps();
        let shared = last.min(steps.end()).saturating_sub(first.max(steps.start()));
        let own = steps.count() - shared;
        (self.recorded_bytes() as f64 * own as f64 / steps.count().max(1) as f64) as usize
    }

    /// From now on, drops the oldest past when the recording takes more than
    /// [`Session::set_history_memory`] allows: for sessions that follow a cluster. Branches keep
    /// all that they started with and everything they do.
    pub fn forget_past(&mut self) {
        self.forgets.on = true;
    }

    /// The start of the recording, if earlier entries were dropped.
    pub fn forgotten_before(&self) -> Option<Time> {
        let steps = self.timeline.steps();
        steps.first().filter(|_| steps.start() > 0).map(|step| step.time)
    }

    /// Approximate memory of the recording without matrices, in bytes.
    pub(crate) fn recorded_bytes(&self) -> usize {
        self.history.entry_bytes() + self.timeline.bytes()
    }

    /// Drops a part of the past if the recording is too large.
    pub(super) fn forget_surplus(&mut self) {
        let budget = self.forgets.recording().filter(|_| self.forgets.on);
        if budget.is_none_or(|budget| self.recorded_bytes() <= budget) {
            return;
        }
        let steps = self.timeline.steps();
        let step = match self.checkpoints.first() {
            Some(_) => self.checkpoints.second(),
            // Without copies no earlier state is reached anyway.
            None => (steps.count() > FEWEST).then(|| steps.start() + steps.count() / 4),
        };
        step.into_iter().for_each(|step| self.forget_until(step));
    }

    /// Drops everything up to and including a step; there must be a copy after it, or none at all.
    fn forget_until(&mut self, step: usize) {
        let first = self.timeline.forget(step);
        self.history.forget(first);
        self.ledger.forget(first.0 as usize);
        self.breakpoints.forget(first.0 as usize);
        self.checkpoints.forget(step);
        self.stand_in_what_is_kept();
    }

    /// Moves a position in the dropped past to the start of the recording.
    pub(super) fn stand_in_what_is_kept(&mut self) {
        let beginning = self.timeline.stops().start();
        let stands = self.stop > beginning || self.forgotten_before().is_none();
        if !stands {
            (self.stop, self.position) = (beginning, Position::START);
        }
    }
}

#[cfg(test)]
mod tests;
