//! The state of the cluster within a stop: as of the current frame.
//!
//! The state is taken while the step is run again from the state before it, so it holds what the
//! engine did up to that moment and nothing of what followed.

use std::sync::Arc;

use super::Session;
use crate::frames::{self, Position};
use crate::trace::EntryId;
use kubestep_cluster::World;
use kubestep_cluster::moments::MomentTarget;
use kubestep_config::ExtensionPoint;
use kubestep_framework::record::CycleRecord;
use kubestep_scheduler::host::Milestone;

/// Points at which a cycle changes the state, in the order in which it passes them.
const CHANGING: [ExtensionPoint; 5] = [
    ExtensionPoint::PostFilter,
    ExtensionPoint::Reserve,
    ExtensionPoint::Permit,
    ExtensionPoint::PreBind,
    ExtensionPoint::Bind,
];

/// The state at a moment within a step.
#[derive(Clone)]
pub(super) struct StateWithinStep {
    pub step: usize,
    pub moment: MomentTarget,
    pub world: Arc<World>,
}

impl Session {
    /// The identity of the state at the position: the step, and the moment within it.
    pub fn state_key(&self) -> (usize, Option<MomentTarget>) {
        (self.step(), self.moment_within())
    }

    /// Whether the position is within a stop, so that the effects of its rest are not visible yet.
    pub fn is_within(&self) -> bool {
        self.moment_within().is_some()
    }

    /// The newest cycle whose outcome is known at the position, 0 before the first.
    pub fn newest_known_cycle(&self) -> u64 {
        let Some(stop) = self.stop() else { return 0 };
        let under_way = match (self.position.entry, stop.cycle_entry) {
            // The entries of the failure come after the cycle.
            (Some(entry), Some(cycle)) => entry < cycle,
            _ => self.position != Position::START,
        };
        let known = !under_way || stop.cycle.is_none();
        if known { stop.newest_cycle } else { stop.newest_cycle - 1 }
    }

    /// The state at the position, if that is within a stop and the state is in memory.
    pub(super) fn state_within(&self, moment: MomentTarget) -> Option<&World> {
        let within = self.within.as_ref()?;
        let is_it = within.step == self.step() && within.moment == moment;
        is_it.then_some(within.world.as_ref())
    }

    /// The moment of the step at the position; `None`: its end.
    pub(super) fn moment_within(&self) -> Option<MomentTarget> {
        let stop = self.stop()?;
        match (self.position.entry, self.position.point) {
            (Some(entry), _) => self.moment_of(entry),
            (None, Some(point)) => {
                let milestone = milestone(self.record()?, point);
                Some(MomentTarget::Milestone(stop.cycle?, milestone))
            }
            (None, None) => None,
        }
    }

    /// The moment at which an entry of this step happened; `None` of the last, the step's end.
    fn moment_of(&self, entry: EntryId) -> Option<MomentTarget> {
        let step = self.timeline.steps().get(self.step())?;
        if entry.0 + 1 >= step.entries.end {
            return None;
        }
        let first = self.timeline.stops_of(self.step()).next()?;
        if let (Some(cycle), Some(at)) = (first.cycle, first.cycle_entry)
            && entry < at
        {
            return Some(MomentTarget::Milestone(cycle, Milestone::Popped));
        }
        let stops = self.timeline.stops_of(self.step());
        let cycles = stops.filter(|stop| stop.cycle_entry.is_some_and(|at| at < entry)).count();
        Some(MomentTarget::Recorded((entry.0 + 1 - step.entries.start) as usize - cycles))
    }
}

/// The last change that a cycle has made to the state once it passed a point.
fn milestone(record: &CycleRecord, point: ExtensionPoint) -> Milestone {
    let mut passed = CHANGING.into_iter().filter(|changing| *changing <= point);
    let last = passed.rfind(|changing| frames::reaches(record, *changing));
    last.map_or(Milestone::Popped, Milestone::Ran)
}

#[cfg(test)]
mod tests;
