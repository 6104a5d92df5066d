//! Forgetting the oldest past, for sessions that go on for days.
//!
//! A session that follows a cluster is told to [`Session::forget_past`]. When what it recorded
//! takes more than its budget though no matrix is left in it, the recording begins later: at the
//! second copy of the cluster, which becomes the first. Such a copy is the state after some step,
//! so nothing has to be done again for that, and all later states are reached from it as ever.
//! Copies lie at even distances, so that is a small part of what is kept, or a quarter where
//! there is room for a few copies only; the cost for each step is the same however long it goes
//! on. Numbers of steps, stops, cycles and entries stay as they are, and so do counts of hits.

use super::Session;
use crate::frames::Position;
use kubestep_api::Time;

/// What a session forgets.
#[derive(Clone, Default)]
pub(super) struct Forgets {
    /// Whether it does at all.
    on: bool,
    /// Most bytes of what is recorded; `None`: any.
    budget: Option<usize>,
}

impl Forgets {
    pub fn set_budget(&mut self, bytes: usize) {
        self.budget = Some(bytes);
    }
}

impl Session {
    /// From now on the oldest past is forgotten when the recording takes more than
    /// [`Session::set_history_memory`] allows: for sessions that follow a cluster. Branches of
    /// it keep all that they began with and everything they do.
    pub fn forget_past(&mut self) {
        self.forgets.on = true;
    }

    /// Since when the recording goes, if what came before was forgotten.
    pub fn forgotten_before(&self) -> Option<Time> {
        let steps = self.timeline.steps();
        steps.first().filter(|_| steps.start() > 0).map(|step| step.time)
    }

    /// About what the recording takes without matrices, in bytes.
    pub fn recorded_bytes(&self) -> usize {
        self.history.entry_bytes() + self.timeline.bytes()
    }

    /// Forgets a piece of the past if the recording is too large.
    pub(super) fn forget_surplus(&mut self) {
        let Forgets { on, budget } = &self.forgets;
        if !on || budget.is_none_or(|budget| self.recorded_bytes() <= budget) {
            return;
        }
        let Some(step) = self.checkpoints.second() else { return };
        self.forget_until(step);
    }

    /// Forgets what was done up to and with a step, after which there is a copy.
    fn forget_until(&mut self, step: usize) {
        let first = self.timeline.forget(step);
        self.history.forget(first);
        self.ledger.forget(first.0 as usize);
        self.breakpoints.forget(first.0 as usize);
        self.checkpoints.forget(step);
        self.stand_in_what_is_kept();
    }

    /// Who stood in what is forgotten now stands where the recording begins.
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
