//! Earlier states of the cluster, and matrices that were dropped from records: the steps since the
//! nearest earlier copy are replayed.
//!
//! That can take long, so the work is a value, [`Restoring`], which is continued in slices and can
//! be dropped at any time.

use std::sync::Arc;

use super::Session;
use super::within::StateWithinStep;
use crate::input;
use kubestep_cluster::World;
use kubestep_cluster::moments::MomentTarget;
use kubestep_framework::record::CycleRecord;

/// Steps before the wanted one whose records are completed with it, so that stepping backward finds
/// them.
const NEARBY: usize = 16;

/// The work of restoring an earlier state.
pub struct Restoring {
    from: usize,
    at: usize,
    target: usize,
    world: World,
    /// The moment of the step after `target` that is wanted.
    moment: Option<MomentTarget>,
}

impl Restoring {
    /// Steps replayed so far, and in total.
    pub fn progress(&self) -> (usize, usize) {
        let more = usize::from(self.moment.is_some());
        (self.at - self.from, self.target - self.from + more)
    }
}

impl Session {
    /// The cluster at the position.
    pub(crate) fn world_at_position(&mut self) -> &World {
        self.finish(self.restoring_position(true));
        self.state().unwrap_or(&self.world)
    }

    /// The cluster at the position, if the state is in memory.
    pub fn state(&self) -> Option<&World> {
        if let Some(moment) = self.moment_within() {
            return self.state_within(moment);
        }
        match self.step() {
            step if step == self.last_step() => Some(&self.world),
            step => self.checkpoints.at(step).map(Arc::as_ref),
        }
    }

    /// Completes the record at the position.
    pub(super) fn make_whole(&mut self) {
        self.finish(self.restoring_position(false));
    }

    /// The cluster after a step.
    pub fn world_at(&mut self, step: usize) -> Arc<World> {
        if step >= self.last_step() {
            return Arc::new(self.world.clone());
        }
        self.finish(self.restoring(step, true));
        match self.checkpoints.at(step) {
            Some(world) => world.clone(),
            None => Arc::new(self.world.clone()),
        }
    }

    /// A cycle's record with nothing left out.
    pub fn whole_record(&mut self, number: u64) -> Option<Arc<CycleRecord>> {
        let stop = self.timeline.stop_of_cycle(number)?;
        let step = self.timeline.stops().get(stop)?.step;
        self.finish(self.restoring(step, false));
        self.history.cycle(number).cloned()
    }

    /// The work until the record at the position is complete and, with `state`, the state there is
    /// in memory. `None`: nothing is to be done.
    pub fn restoring_position(&self, state: bool) -> Option<Restoring> {
        let moment = self.moment_within().filter(|_| state);
        let Some(moment) = moment else { return self.restoring(self.step(), state) };
        if self.state_within(moment).is_some() {
            return self.restoring(self.step(), false);
        }
        let target = self.step().checked_sub(1)?;
        let (from, world) = self.checkpoints.before(target)?;
        let world = World::clone(world);
        Some(Restoring { from, at: from, target, world, moment: Some(moment) })
    }

    /// The work until the records of a step are complete and, with `state`, the state after it is
    /// in memory. `None`: nothing is to be done.
    pub fn restoring(&self, step: usize, state: bool) -> Option<Restoring> {
        let target = step.min(self.last_step());
        let no_state = state && target != self.last_step() && self.checkpoints.at(target).is_none();
        let from = match self.has_whole_records(target) {
            true if !no_state => return None,
            true => target,
            // One step more, so that the record before it is complete as well.
            false => target.saturating_sub(2).max(self.timeline.steps().start()),
        };
        let (from, world) = self.checkpoints.before(from)?;
        Some(Restoring { from, at: from, target, world: World::clone(world), moment: None })
    }

    /// Continues the work until it is done, or until `stop`, which is called after each step,
    /// returns true. `true`: done.
    pub fn restore(&mut self, work: &mut Restoring, mut stop: impl FnMut() -> bool) -> bool {
        if work.from < self.timeline.steps().start() {
            // The copy it began from was dropped; the caller asks for the state again.
            return true;
        }
        while work.at < work.target {
            work.at += 1;
            self.repeat_step(work);
            if work.at < work.target && stop() {
                return false;
            }
        }
        if let Some(moment) = work.moment {
            self.repeat_until(work, moment);
        }
        true
    }

    /// Replays the step after the target and keeps the state at a moment of it.
    fn repeat_until(&mut self, work: &Restoring, moment: MomentTarget) {
        let step = work.target + 1;
        let Some(done) = self.timeline.steps().get(step) else { return };
        let Some(input) = &done.input else { return };
        let (world, effect) = input::repeat_until(work.world.clone(), input, &done.answers, moment);
        let records = effect.record.iter().chain(&effect.finished);
        records.for_each(|record| self.history.fill(record));
        self.within = Some(StateWithinStep { step, moment, world: Arc::new(world) });
    }

    fn repeat_step(&mut self, work: &mut Restoring) {
        let Some(step) = self.timeline.steps().get(work.at) else { return };
        let Some(done) = &step.input else { return };
        let left = work.target - work.at;
        let fills = left < NEARBY && !self.has_whole_records(work.at);
        match &step.known {
            Some(known) if !fills && !self.leads_to_kept(work.at, work.target) => {
                input::repeat_known(&mut work.world, known);
            }
            _ => {
                let effect = input::repeat(&mut work.world, done, &step.answers);
                let records = effect.record.iter().chain(&effect.finished);
                records.filter(|_| left < NEARBY).for_each(|record| self.history.fill(record));
            }
        }
        self.checkpoints.revisit(work.at, left, &work.world);
    }

    /// Whether a state on the way to `target` is kept before the next known cycle after `step`.
    /// It must be complete, so its last cycle must be run with its matrices.
    fn leads_to_kept(&self, step: usize, target: usize) -> bool {
        let later = self.timeline.steps().range(step + 1..target + 1);
        let alike = later.take_while(|later| later.known.is_none()).count();
        (step..=step + alike).any(|at| self.checkpoints.keeps(at, target - at))
    }

    fn finish(&mut self, work: Option<Restoring>) {
        if let Some(mut work) = work {
            self.restore(&mut work, || false);
        }
    }

    fn has_whole_records(&self, step: usize) -> bool {
        let stops = self.timeline.stops_of(step);
        let mut records = stops.filter_map(|stop| self.history.cycle(stop.cycle?));
        records.all(|record| record.is_whole())
    }

    /// The step after which the cluster is as it is now.
    pub(super) fn last_step(&self) -> usize {
        self.timeline.steps().end().saturating_sub(1)
    }
}
