//! The moments within a step: in which order what it recorded happened, and the state of the
//! cluster at one of them.
//!
//! A step runs to its end at once. To show the cluster as of a moment within it, the step is run
//! again on a copy of the state before it, with a [`MomentTarget`], and the state is copied when it
//! gets there.

use kubestep_scheduler::Scheduler;
use kubestep_scheduler::host::Milestone;

use crate::World;
use crate::api_server::ApiServer;

/// How much a step has recorded so far.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Mark {
    /// The number of queue moves.
    pub moves: usize,
    /// The number of hints that were called.
    pub hints: usize,
    /// The number of API events.
    pub events: usize,
}

impl Mark {
    fn total(self) -> usize {
        self.moves + self.hints + self.events
    }
}

/// A moment within a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MomentTarget {
    /// The first at which so many moves, answers of hints and events were recorded. Those of one
    /// event belong together, as the queue takes it in under one lock.
    Recorded(usize),
    /// The last milestone of a cycle up to this one.
    Milestone(u64, Milestone),
}

/// What is remembered of the moments of the step under way. A copy waits for the same moment.
#[derive(Default)]
pub(super) struct Moments {
    marks: Vec<Mark>,
    /// Moves when the first pod was popped.
    popped: Option<usize>,
    target: Option<MomentTarget>,
    reached: Option<(Scheduler, Box<ApiServer>)>,
}

impl Clone for Moments {
    fn clone(&self) -> Moments {
        Moments { target: self.target, ..Moments::default() }
    }
}

/// What a step remembered, taken out.
#[derive(Default)]
pub struct StepMoments {
    /// The moments after which something new was recorded, in order.
    pub marks: Vec<Mark>,
    /// Moves when the first cycle began: those that took its pods out of the queue.
    pub popped: usize,
}

impl ApiServer {
    /// Notes how much is recorded now and, if this is the wanted moment, the state.
    pub(super) fn note(&mut self, scheduler: &Scheduler, milestone: Option<(u64, Milestone)>) {
        let (moves, hints) = scheduler.queue().recorded();
        let mark = Mark { moves, hints, events: self.events.len() };
        let last = self.moments.marks.last().copied().unwrap_or_default();
        if mark.total() < last.total() {
            // A caller that keeps no order took out what was recorded.
            self.moments.marks.clear();
        }
        if mark != last {
            self.moments.marks.push(mark);
        }
        if milestone.is_some_and(|(_, milestone)| milestone == Milestone::Popped) {
            self.moments.popped.get_or_insert(moves);
        }
        let is_it = match (self.moments.target, milestone) {
            (Some(MomentTarget::Recorded(count)), _) => {
                self.moments.reached.is_none() && mark.total() >= count
            }
            (Some(MomentTarget::Milestone(cycle, last)), Some((own, milestone))) => {
                own == cycle && milestone <= last
            }
            _ => false,
        };
        if is_it {
            self.moments.reached = Some((scheduler.clone(), Box::new(self.clone())));
        }
    }
}

impl World {
    /// Takes out what the steps since the last call remembered of their moments.
    pub fn take_moments(&mut self) -> StepMoments {
        let moments = &mut self.api.moments;
        let marks = std::mem::take(&mut moments.marks);
        StepMoments { marks, popped: moments.popped.take().unwrap_or_default() }
    }

    /// The cluster at a moment of a step, which is run to its end: as it is then if the moment
    /// never came. Gives what the step gave as well.
    pub fn at_moment<T>(
        mut self,
        target: MomentTarget,
        step: impl FnOnce(&mut World) -> T,
    ) -> (World, T) {
        let extenders = self.api.extenders().cloned();
        self.api.moments = Moments { target: Some(target), ..Moments::default() };
        let done = step(&mut self);
        let reached = std::mem::take(&mut self.api.moments).reached;
        let Some((scheduler, api)) = reached else { return (self, done) };
        let (now, mut api) = (api.now, *api);
        api.moments = Moments::default();
        // What answers them during the step is for the step alone.
        if let Some(extenders) = extenders {
            api.set_extenders(extenders);
        }
        (World { scheduler, api, now, ..self }, done)
    }

    /// Notes that something was done.
    pub(super) fn note(&mut self) {
        self.api.note(&self.scheduler, None);
    }
}
