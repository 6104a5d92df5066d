//! Drops the oldest past, for sessions that run for days.
//!
//! A session that follows a cluster calls [`Session::forget_past`]. When its recording exceeds the
//! memory budget although no matrix is left in it, the recording is cut: it then begins at the
//! second copy of the cluster, which becomes the first. That copy is the state after some step, so
//! nothing has to be replayed, and all later states are still reached from it. Copies lie at even
//! distances, so a cut drops a small part of the recording, or a quarter where memory allows only a
//! few copies; the cost per step does not grow with the length of the session. Numbers of steps,
//! stops, cycles and entries do not change, nor do hit counts.

use super::Session;
use crate::frames::Position;
use kubestep_api::Time;

/// What a session drops.
#[derive(Clone, Default)]
pub(super) struct HistoryLimit {
    /// Whether it drops anything.
    on: bool,
    /// The memory budget of the recording in bytes; `None`: unlimited.
    budget: Option<usize>,
}

impl HistoryLimit {
    pub(crate) fn set_budget(&mut self, bytes: usize) {
        self.budget = Some(bytes);
    }
}

impl Session {
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
        let HistoryLimit { on, budget } = &self.forgets;
        if !on || budget.is_none_or(|budget| self.recorded_bytes() <= budget) {
            return;
        }
        let Some(step) = self.checkpoints.second() else { return };
        self.forget_until(step);
    }

    /// Drops everything up to and including a step; there must be a copy after it.
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
