//! A debugging session: the cluster, its history, and the position of the debugger.

mod acting;
mod forgetting;
mod livelock;
mod moving;
mod restoring;
mod stopping;
#[cfg(test)]
mod tests;
mod within;

use std::sync::Arc;

use crate::breakpoint::Breakpoints;
use crate::checkpoint::{self, Checkpoints};
use crate::edit::{Applied, Edit, EditError};
use crate::frames::{Position, Tree};
use crate::input::{self, Change, Input, InputEffect};
use crate::ledger::Ledger;
use crate::timeline::{Step, Stop, Timeline};
use crate::timer::{self, Timer};
use crate::times::Times;
use crate::trace::thin::{self, ThinLists};
use crate::trace::{Entry, History};
use kubestep_api::intern::Symbol;
use kubestep_api::{Time, Uid};
use kubestep_cluster::{DeliveryObserver, ExtenderFn, World, Write};
use kubestep_framework::record::CycleRecord;
use kubestep_framework::stopwatch::Clock;
use kubestep_scheduler::what_if::ReplayHint;

use acting::Acting;
use forgetting::HistoryLimit;
pub use livelock::Livelock;
pub use moving::StepOutcome;
pub use restoring::Restoring;
pub use stopping::{ContinueOutcome, StopSearch};
use within::StateWithinStep;

/// Default memory for copies of the cluster, in bytes.
const CHECKPOINT_BYTES: usize = 96 << 20;

/// A cluster with its history: runs cycles, travels in time, branches and stops at breakpoints.
#[derive(Clone)]
pub struct Session {
    /// The cluster after the last step.
    world: World,
    history: History,
    timeline: Timeline,
    checkpoints: Checkpoints,
    /// The current stop: an index into those of the timeline.
    stop: usize,
    position: Position,
    /// The free amounts of the nodes over time.
    ledger: Ledger,
    breakpoints: Breakpoints,
    times: Times,
    acts: Acting,
    forgets: HistoryLimit,
    /// The state of the frame that was last shown within a stop.
    within: Option<StateWithinStep>,
}

impl Session {
    /// A session on a cluster, before its first cycle.
    pub fn new(mut world: World) -> Session {
        let loaded = input::collect(&mut world, None);
        let mut session = Session {
            checkpoints: Checkpoints::new(&world, CHECKPOINT_BYTES),
            world,
            history: History::default(),
            timeline: Timeline::default(),
            stop: 0,
            position: Position::START,
            ledger: Ledger::default(),
            breakpoints: Breakpoints::default(),
            times: Times::default(),
            acts: Acting::default(),
            forgets: HistoryLimit::default(),
            within: None,
        };
        session.record_step(None, loaded);
        session
    }

    /// The cluster after the newest step, wherever the position is.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// The cycles, queue moves, hints and events since the cluster was loaded.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// The steps, and the stops that the debugger can move to.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// The index of the current stop.
    pub fn stop_index(&self) -> usize {
        self.stop
    }

    /// The stop that the position is at or within.
    pub fn stop(&self) -> Option<&Stop> {
        self.timeline.stops().get(self.stop)
    }

    /// The step of the current stop. At a stop as a whole, the state shown is the one after the
    /// step.
    pub fn step(&self) -> usize {
        self.stop().map_or(0, |stop| stop.step)
    }

    /// The virtual clock at the position.
    pub fn now(&self) -> Time {
        self.timeline.steps().get(self.step()).map_or(self.world.now(), |step| step.time)
    }

    /// The current cycle; `None` before the first and at stops that are not cycles.
    pub fn record(&self) -> Option<&Arc<CycleRecord>> {
        self.history.cycle(self.stop()?.cycle?)
    }

    /// The newest cycle up to the position.
    pub fn latest_record(&self) -> Option<&Arc<CycleRecord>> {
        self.history.cycle(self.stop()?.newest_cycle)
    }

    /// The position within the current stop.
    pub fn position(&self) -> Position {
        self.position
    }

    /// The frames of the current stop.
    pub fn tree(&self) -> Tree<'_> {
        // What led to the loaded state is not part of the session.
        let entries = self.stop().filter(|stop| stop.step > 0).map(|stop| stop.entries.clone());
        let record = self.record().map(Arc::as_ref);
        let cycle = self.stop().and_then(|stop| stop.cycle_entry);
        Tree { record, entries: entries.unwrap_or_default(), cycle }
    }

    /// Whether the position is at the newest stop.
    pub fn is_at_newest(&self) -> bool {
        self.stop + 1 >= self.timeline.stops().end()
    }

    /// Runs one cycle after the newest step, and moves there.
    pub fn run_cycle(&mut self) -> StepOutcome {
        match self.apply(Input::Cycle) {
            Ok(true) => StepOutcome::NewCycle,
            _ => StepOutcome::Idle,
        }
    }

    /// Runs until no pod can be popped or until a livelock, at most `limit` cycles, and moves to
    /// the last. Returns the number of cycles run. `stop` is called after each cycle.
    pub fn run_until_idle(
        &mut self,
        limit: usize,
        mut stop: impl FnMut(&CycleRecord) -> bool,
    ) -> usize {
        for ran in 0..limit {
            if self.run_cycle() != StepOutcome::NewCycle {
                return ran;
            }
            if self.record().is_some_and(|record| stop(record)) || self.livelock().is_some() {
                return ran + 1;
            }
        }
        limit
    }

    /// Runs as [`Session::run_until_idle`], and lets time pass while a drain or a rollout is under
    /// way, until it ends or time changes nothing.
    pub fn run_to_end(
        &mut self,
        limit: usize,
        mut stop: impl FnMut(&CycleRecord) -> bool,
    ) -> usize {
        let mut ran = self.run_until_idle(limit, &mut stop);
        while ran < limit
            && self.record().is_none_or(|record| !stop(record))
            && self.continue_disruption()
        {
            ran += self.run_until_idle(limit - ran, &mut stop);
        }
        ran
    }

    /// Whether a run of `ran` cycles ended only because `limit` was reached: what would have
    /// happened next is not known.
    pub fn is_cut(&self, ran: usize, limit: usize) -> bool {
        let idle = self.world.scheduler().queue().is_idle();
        let goes_on = !idle || self.world.next_disruption().is_some();
        ran >= limit && goes_on && self.livelock().is_none()
    }

    /// Moves the clock to the next attempt of a drain, or to when a pod of a rollout becomes
    /// available. `false` if nothing is under way, or if that changed nothing and no pod can be
    /// popped.
    pub fn continue_disruption(&mut self) -> bool {
        let Some(due) = self.world.next_disruption() else { return false };
        let progress =
            |world: &World| world.disruptions().map_or(0, |all| all.progress(world.now()));
        let before = progress(&self.world);
        self.advance((due.0 - self.world.now().0).max(0));
        progress(&self.world) > before || !self.world.scheduler().queue().is_idle()
    }

    /// The next timer: the end of a backoff, the flush of unschedulable pods, a timeout at Permit.
    pub fn next_timer(&self) -> Option<Timer> {
        timer::timers(&self.world).into_iter().next()
    }

    /// Advances the clock to the next timer. Returns it; `None` if there is none.
    pub fn advance_to_next_timer(&mut self) -> Option<Timer> {
        let timer = self.next_timer()?;
        self.advance(timer.due.0 - self.world.now().0);
        Some(timer)
    }

    /// Advances the clock by `micros` microseconds.
    pub fn advance(&mut self, micros: i64) {
        // Advancing the clock cannot fail.
        let _ = self.apply(Input::Advance(micros));
    }

    /// Allows a waiting pod for one plugin, or for all with `None`. `false` if it does not wait.
    pub fn allow(&mut self, uid: Uid, plugin: Option<Symbol>) -> bool {
        self.apply(Input::Allow { uid, plugin }) == Ok(true)
    }

    /// Rejects a waiting pod in the name of `plugin`. `false` if it does not wait.
    pub fn reject(&mut self, uid: Uid, plugin: Symbol, message: &str) -> bool {
        self.apply(Input::Reject { uid, plugin, message: message.into() }) == Ok(true)
    }

    /// Changes the cluster from outside.
    ///
    /// # Errors
    /// The change cannot be applied; nothing changed.
    pub fn change(&mut self, change: Arc<dyn Change>) -> Result<(), EditError> {
        self.apply(Input::Change(change)).map(|_| ())
    }

    /// Applies an input after all others and keeps the position, so that someone who inspects the
    /// past is not disturbed. At the beginning of the newest stop, the position moves along.
    ///
    /// # Errors
    /// As [`Session::apply`].
    pub fn apply_in_background(&mut self, input: Input) -> Result<bool, EditError> {
        let goes_along = self.is_at_newest() && self.position == Position::START;
        let place = (self.stop, self.position);
        let done = self.apply(input)?;
        if done && !goes_along {
            (self.stop, self.position) = place;
            self.stand_in_what_is_kept();
        }
        Ok(done)
    }

    /// What the simulation wrote since the last call, if its cluster records that.
    pub fn take_writes(&mut self) -> Vec<Write> {
        self.world.api_mut().take_writes()
    }

    /// Applies an input after all others, and moves there. `false` if there was nothing to do: no
    /// pod can be popped, or the pod does not wait.
    ///
    /// # Errors
    /// A change cannot be applied; nothing changed.
    pub fn apply(&mut self, input: Input) -> Result<bool, EditError> {
        let effect = self.measured(|world, hands| input::perform(world, &input, hands))?;
        let Some(effect) = effect else { return Ok(false) };
        self.add_step(input, effect);
        Ok(true)
    }

    /// Applies an edit after all other inputs, moves there, and returns its side effects. If
    /// `observer` stops it, the session must be dropped.
    ///
    /// # Errors
    /// The edit cannot be applied; nothing changed.
    pub fn edit(
        &mut self,
        edit: Edit,
        observer: Option<DeliveryObserver>,
    ) -> Result<Applied, EditError> {
        self.world.observe(observer);
        let done = self.measured(|world, hands| input::perform_edit(world, &edit, hands));
        self.world.observe(None);
        let (applied, effect) = done?;
        self.add_step(Input::Change(Arc::new(edit)), effect);
        Ok(applied)
    }

    /// Lets `act` change the cluster, and measures it.
    fn measured<T>(&mut self, act: impl FnOnce(&mut World, Option<&ExtenderFn>) -> T) -> T {
        // Only here, so that nothing else that runs on a copy of the cluster is counted.
        self.world.scheduler_mut().measure(self.times.stopwatch());
        let done = act(&mut self.world, self.acts.extenders());
        self.world.scheduler_mut().measure(None);
        done
    }

    /// Adds what an input did to the log, and moves there.
    fn add_step(&mut self, input: Input, effect: InputEffect) {
        let cycle = effect.record.as_ref().map(|record| record.cycle);
        self.times.step_done(cycle, self.acts());
        let first = self.timeline.stops().end();
        self.record_step(Some(input), effect);
        (self.stop, self.position) = (first, Position::START);
        let step = self.last_step();
        let known = self.timeline.steps().get(step).is_some_and(|step| step.known.is_some());
        self.checkpoints.offer(step, if known { 1 } else { checkpoint::WHOLE }, &self.world);
        self.forget_surplus();
    }

    /// Measures the duration of plugins from now on, with a clock from outside.
    pub fn measure(&mut self, clock: Arc<dyn Clock>) {
        self.times.measure(clock);
    }

    /// The durations of plugins, as far as they were measured.
    pub fn times(&self) -> &Times {
        &self.times
    }

    /// Adds the effects of an input to the history and the timeline.
    fn record_step(&mut self, input: Option<Input>, effect: InputEffect) {
        let start = self.history.len() as u32;
        let (mut cycles, mut completed) = (Vec::new(), Vec::new());
        let (mut known, mut proposed) = (None, false);
        let mut entries = effect.entries.into_iter();
        for entry in entries.by_ref().take(effect.lead) {
            self.history.push(entry);
        }
        if let Some(record) = effect.record {
            // Only a cycle that is run completely needs the answers of extenders.
            let alone = matches!(input, Some(Input::Cycle)) && effect.answers.is_empty();
            known = ReplayHint::of(&record).filter(|_| alone);
            proposed = record.node_hint.is_some();
            let number = record.cycle;
            cycles.push((self.history.push(Entry::Cycle(record)), number));
        }
        // A cycle that was dropped while its pod waited cannot be completed.
        let finished = effect.finished.into_iter();
        let finished: Vec<_> =
            finished.filter(|record| !self.history.has_forgotten(record.cycle)).collect();
        let mut lists = ThinLists::default();
        for record in finished {
            let number = record.cycle;
            let (id, before) = self.history.put_cycle(record);
            match before {
                Some(before) => completed.push(Arc::new(thin::thin(&before, &mut lists))),
                None => cycles.push((id, number)),
            }
        }
        for entry in entries {
            self.history.push(entry);
        }
        let step = Step {
            input,
            time: self.world.now(),
            entries: start..self.history.len() as u32,
            answers: effect.answers.into(),
            completed: completed.clone().into(),
            known,
        };
        self.timeline.push(step, &cycles);
        if proposed {
            self.timeline.follows_ranking();
        }
        let replaced = completed.iter().map(|record| record.cycle).collect();
        self.look_at_step(&cycles, replaced);
    }

    /// Makes the state at the position the newest: later steps are dropped.
    pub fn cut(&mut self) {
        let step = self.step();
        self.world = self.world_at(step).as_ref().clone();
        let mut taken_back = Vec::new();
        for dropped in self.timeline.truncate(step + 1).iter().rev() {
            for record in dropped.completed.iter().rev() {
                self.history.take_back(record);
                taken_back.push(record.cycle);
            }
            self.history.truncate(dropped.entries.start as usize);
        }
        self.forget_rest(&taken_back);
        self.checkpoints.truncate(step);
        self.within = None;
        // A pod group is decided in one step: from one of its pods, move to its end.
        let last = self.timeline.last_stop_of(step);
        if self.stop != last {
            self.go_to_stop(last);
        }
    }

    /// Keeps no copies of the cluster from now on, which costs less. The recording stays, but
    /// earlier states cannot be reached any more: for runs that only go forward.
    pub fn only_forward(&mut self) {
        self.checkpoints.give_up();
    }

    /// How many copies of the cluster are kept, and about how much memory they take, in bytes.
    pub fn copies(&self) -> (usize, usize) {
        (self.checkpoints.count(), self.checkpoints.bytes())
    }

    /// A copy of this session up to the position. It does not write to a live cluster.
    pub fn fork(&self) -> Session {
        let mut fork = self.clone();
        fork.cut();
        fork.forgets = self.forgets.of_branch();
        fork.detach();
        fork
    }
}
