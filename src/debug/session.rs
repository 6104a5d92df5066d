//! A debugging session: the cluster, what happened in it so far, and where the debugger stands.

use std::collections::VecDeque;
use std::collections::vec_deque::Drain;
use std::sync::Arc;

use crate::api::Time;
use crate::debug::frames::{Depth, Position};
use crate::engine::record::{CycleRecord, HintRecord, QueueMove, QueueName};
use crate::intern::Symbol;
use crate::sim::World;
use crate::trace::{Entry, History};

/// What a step did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ran {
    /// The position moved within what was recorded.
    Moved,
    /// A new cycle was run and the position is in it.
    NewCycle,
    /// No pod can be popped: an event or a timer is needed.
    Idle,
    /// There is nothing before.
    AtStart,
}

/// A debugging session.
#[derive(Clone)]
pub struct Session {
    world: World,
    history: History,
    /// Number of the cycle the debugger stands in; 0 before the first.
    cycle: u64,
    position: Position,
}

impl Session {
    /// A session on a cluster, before its first cycle.
    pub fn new(world: World) -> Session {
        let history = History::default();
        let mut session = Session { world, history, cycle: 0, position: Position::START };
        session.collect();
        session
    }

    /// The cluster.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Everything that happened.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// The cycle the debugger stands in; `None` before the first.
    pub fn record(&self) -> Option<&Arc<CycleRecord>> {
        self.history.cycle(self.cycle)
    }

    /// Where in that cycle the debugger stands.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Whether the debugger stands in the newest cycle, or none was run yet.
    pub fn is_at_newest(&self) -> bool {
        self.history.last_cycle().is_none_or(|last| last.cycle == self.cycle)
    }

    /// Goes to the next frame, at any depth; runs a cycle at the end of the recording.
    pub fn step_into(&mut self) -> Ran {
        self.forward(Depth::Node)
    }

    /// Goes to the next frame that is not deeper than this one.
    pub fn step_over(&mut self) -> Ran {
        self.forward(self.position.depth())
    }

    /// Goes to the next frame outside of the one around this.
    pub fn step_out(&mut self) -> Ran {
        self.forward(self.position.parent().depth())
    }

    /// Goes to the frame before, at any depth.
    pub fn back_into(&mut self) -> Ran {
        self.backward(Depth::Node)
    }

    /// Goes to the frame before that is not deeper than this one.
    pub fn back_over(&mut self) -> Ran {
        self.backward(self.position.depth())
    }

    /// Goes back to the start of the frame around this one.
    pub fn back_out(&mut self) -> Ran {
        self.backward(self.position.parent().depth())
    }

    /// Goes to the start of the next cycle.
    pub fn next_cycle(&mut self) -> Ran {
        self.forward(Depth::Cycle)
    }

    /// Goes to the start of this cycle or, from there, of the one before.
    pub fn previous_cycle(&mut self) -> Ran {
        self.backward(Depth::Cycle)
    }

    /// Goes to a recorded cycle. `false` if there is none of that number.
    pub fn go_to_cycle(&mut self, number: u64) -> bool {
        let there = self.history.cycle(number).is_some();
        if there {
            (self.cycle, self.position) = (number, Position::START);
        }
        there
    }

    /// Goes to a frame of the cycle the debugger stands in.
    pub fn go_to(&mut self, position: Position) {
        if self.record().is_some() {
            self.position = position;
        }
    }

    /// Runs one cycle and goes there.
    pub fn run_cycle(&mut self) -> Ran {
        match self.world.step() {
            Some(record) => {
                (self.cycle, self.position) = (record.cycle, Position::START);
                self.history.push(Entry::Cycle(record));
                self.collect();
                Ran::NewCycle
            }
            None => Ran::Idle,
        }
    }

    /// Runs until no pod can be popped, at most `limit` cycles, and stands in the last. Gives
    /// the number of cycles run. `stop` is asked after each cycle.
    pub fn run_until_idle(
        &mut self,
        limit: usize,
        mut stop: impl FnMut(&CycleRecord) -> bool,
    ) -> usize {
        for ran in 0..limit {
            if self.run_cycle() != Ran::NewCycle {
                return ran;
            }
            if self.record().is_some_and(|record| stop(record)) {
                return ran + 1;
            }
        }
        limit
    }

    /// When something is due by itself: the end of a backoff, the flush of leftovers, a
    /// timeout at Permit.
    pub fn next_timer(&self) -> Option<Time> {
        let scheduler = self.world.scheduler();
        let queue = scheduler.queue().next_timer(self.world.now());
        queue.into_iter().chain(scheduler.next_permit_timeout()).min()
    }

    /// Moves the clock to the next timer. Gives its time, `None` if none is set.
    pub fn advance_to_next_timer(&mut self) -> Option<Time> {
        let due = self.next_timer()?;
        self.advance((due.0 - self.world.now().0).max(0));
        Some(due)
    }

    /// Moves the clock by `micros` microseconds.
    pub fn advance(&mut self, micros: i64) {
        self.world.advance(micros);
        self.collect();
    }

    /// Allows a waiting pod for one plugin, or for all with `None`. `false` if it does not wait.
    pub fn allow(&mut self, uid: Symbol, plugin: Option<Symbol>) -> bool {
        let done = self.world.allow(uid, plugin);
        self.collect();
        done
    }

    /// Rejects a waiting pod in the name of `plugin`. `false` if it does not wait.
    pub fn reject(&mut self, uid: Symbol, plugin: Symbol, message: &str) -> bool {
        let done = self.world.reject(uid, plugin, message);
        self.collect();
        done
    }

    fn forward(&mut self, deepest: Depth) -> Ran {
        let Some(record) = self.record() else { return self.first_or_new() };
        if let Some(next) = self.position.next(record, deepest) {
            self.position = next;
            return Ran::Moved;
        }
        match self.go_to_cycle(self.cycle + 1) {
            true => Ran::Moved,
            false => self.run_cycle(),
        }
    }

    /// From before the first cycle: into it, if it was run already.
    fn first_or_new(&mut self) -> Ran {
        match self.go_to_cycle(1) {
            true => Ran::Moved,
            false => self.run_cycle(),
        }
    }

    fn backward(&mut self, deepest: Depth) -> Ran {
        let Some(record) = self.record() else { return Ran::AtStart };
        if let Some(before) = self.position.previous(record, deepest) {
            self.position = before;
            return Ran::Moved;
        }
        let Some(record) = self.history.cycle(self.cycle - 1) else { return Ran::AtStart };
        (self.cycle, self.position) = (record.cycle, Position::last(record, deepest));
        Ran::Moved
    }

    /// Takes what happened beside the cycles into the history.
    fn collect(&mut self) {
        let now = self.world.now();
        for record in self.world.scheduler_mut().take_finished() {
            self.history.put_cycle(Arc::new(record));
        }
        let queue = self.world.scheduler_mut().queue_mut();
        let (moves, hints) = (queue.drain_moves(), queue.drain_hints());
        let mut hints = VecDeque::from(hints);
        for moved in moves {
            for hint in until_cause(&mut hints, &moved) {
                self.history.push(Entry::Hint(hint));
            }
            self.history.push(Entry::Move(moved));
        }
        for hint in hints {
            self.history.push(Entry::Hint(hint));
        }
        for event in self.world.api_mut().take_events() {
            self.history.push(Entry::Event(now, event));
        }
    }
}

/// Takes the hints up to the one that led to the move: a cause is told before its effect.
fn until_cause<'a>(
    hints: &'a mut VecDeque<HintRecord>,
    moved: &QueueMove,
) -> Drain<'a, HintRecord> {
    let by_hint = moved.plugin.filter(|_| moved.to != QueueName::Gated);
    let led = |hint: &HintRecord| by_hint == Some(hint.plugin) && hint.pod == moved.pod;
    let at = by_hint.and_then(|_| hints.iter().position(led));
    hints.drain(..at.map_or(0, |at| at + 1))
}
