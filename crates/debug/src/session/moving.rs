//! How the debugger moves: forward and backward at every depth, and to named positions.
//!
//! A stop as a whole shows the state at its end. A step from there goes to the next stop: stepping
//! into it moves to its first frame, stepping over it to its end, as in gdb after `next`. Stepping
//! back into a stop moves to its last frame.

use super::Session;
use crate::frames::{Depth, Position};
use crate::trace::EntryId;
use kubestep_api::Time;

/// The result of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepOutcome {
    /// The position moved within what was recorded.
    Moved,
    /// A new cycle was run and the position is in it.
    NewCycle,
    /// No pod can be popped: an event or a timer is needed.
    Idle,
    /// The end of the recording of a session that acts: its cycles are run by the caller.
    AtEnd,
    /// There is nothing before.
    AtStart,
}

impl Session {
    /// Moves to the next frame, at any depth; runs a cycle at the end of the recording.
    pub fn step_into(&mut self) -> StepOutcome {
        self.forward(Depth::Node)
    }

    /// Moves to the next frame that is not deeper than this one.
    pub fn step_over(&mut self) -> StepOutcome {
        self.forward(self.position.depth())
    }

    /// Moves to the next frame outside of the enclosing one; from within a cycle to its end.
    pub fn step_out(&mut self) -> StepOutcome {
        match self.position.depth() {
            Depth::Point => self.moved_to(self.stop),
            _ => self.forward(self.position.parent().depth()),
        }
    }

    /// Moves to the previous frame, at any depth.
    pub fn back_into(&mut self) -> StepOutcome {
        self.backward(Depth::Node)
    }

    /// Moves to the previous frame that is not deeper than this one.
    pub fn back_over(&mut self) -> StepOutcome {
        self.backward(self.position.depth())
    }

    /// Moves back to the start of the enclosing frame; within a cycle to its first frame.
    pub fn back_out(&mut self) -> StepOutcome {
        let first = Position::START.next(&self.tree(), Depth::Point);
        match first.filter(|first| self.position.depth() == Depth::Point && *first != self.position)
        {
            Some(first) => {
                self.position = first;
                StepOutcome::Moved
            }
            None => self.backward(self.position.parent().depth()),
        }
    }

    /// Moves from a stop as a whole to its first frame, if it has any.
    pub fn enter(&mut self) {
        if self.position == Position::START
            && let Some(first) = self.position.next(&self.tree(), Depth::Point)
        {
            self.position = first;
        }
    }

    /// Moves to the end of the next cycle.
    pub fn next_cycle(&mut self) -> StepOutcome {
        let later = self.timeline.stops().from(self.stop + 1);
        let next = later.zip(self.stop + 1..).find(|(stop, _)| stop.cycle.is_some());
        match next.map(|(_, at)| at) {
            Some(next) => self.moved_to(next),
            None => self.run_on(),
        }
    }

    /// Moves to the end of the previous cycle, from the first one to the beginning.
    pub fn previous_cycle(&mut self) -> StepOutcome {
        let stops = self.timeline.stops();
        let start = stops.start();
        let earlier = stops.range(start..self.stop).rev().zip(1..);
        let before = earlier.into_iter().find(|(stop, _)| stop.cycle.is_some());
        match before.map(|(_, back)| self.stop - back) {
            Some(before) => self.moved_to(before),
            None if self.stop > start => self.moved_to(start),
            None => StepOutcome::AtStart,
        }
    }

    /// Moves to a recorded cycle. `false` if there is none of that number.
    pub fn go_to_cycle(&mut self, number: u64) -> bool {
        self.timeline.stop_of_cycle(number).map(|stop| self.moved_to(stop)).is_some()
    }

    /// Moves to a stop, by its index; to the last if there are fewer, and to the first if it was
    /// dropped.
    pub fn go_to_stop(&mut self, stop: usize) {
        let stops = self.timeline.stops();
        self.moved_to(stop.min(stops.end().saturating_sub(1)).max(stops.start()));
    }

    /// Moves to the newest stop.
    pub fn go_to_end(&mut self) {
        self.go_to_stop(usize::MAX);
    }

    /// Moves to a queue move, hint, event or cycle. `false` if there is none of that id.
    pub fn go_to_entry(&mut self, entry: EntryId) -> bool {
        let Some(stop) = self.timeline.stop_of_entry(entry) else { return false };
        self.moved_to(stop);
        if self.tree().cycle != Some(entry) && self.tree().entries.contains(&entry.0) {
            self.position = Position::of_entry(entry);
        }
        true
    }

    /// Moves to the last stop at or before `time`.
    pub fn go_to_time(&mut self, time: Time) {
        self.moved_to(self.timeline.stop_at(time));
    }

    /// Moves to the next cycle of the pod of this cycle, with `back` to the previous one. `false`
    /// if none is recorded.
    pub fn go_to_attempt(&mut self, back: bool) -> bool {
        let Some(record) = self.latest_record() else { return false };
        let attempt = match back {
            false => self.history.next_attempt(record),
            true => self.history.previous_attempt(record),
        };
        attempt.map(|record| record.cycle).is_some_and(|number| self.go_to_cycle(number))
    }

    /// Moves to a frame of the current stop.
    pub fn go_to(&mut self, position: Position) {
        self.position = position;
    }

    /// A new cycle, unless the session acts.
    pub(super) fn run_on(&mut self) -> StepOutcome {
        match self.acts() {
            true => StepOutcome::AtEnd,
            false => self.run_cycle(),
        }
    }

    fn moved_to(&mut self, stop: usize) -> StepOutcome {
        (self.stop, self.position) = (stop, Position::START);
        StepOutcome::Moved
    }

    fn forward(&mut self, deepest: Depth) -> StepOutcome {
        if let Some(next) = self.next_within(deepest) {
            self.position = next;
            return StepOutcome::Moved;
        }
        let ran = match self.is_at_newest() {
            false => self.moved_to(self.stop + 1),
            true => {
                if deepest == Depth::Node {
                    // From there the states within the cycle are reached at once.
                    self.checkpoints.revisit(self.last_step(), 0, &self.world);
                }
                self.run_on()
            }
        };
        if deepest == Depth::Node && matches!(ran, StepOutcome::Moved | StepOutcome::NewCycle) {
            self.enter();
        }
        ran
    }

    /// The next frame of this stop, unless the stop is over.
    fn next_within(&mut self, deepest: Depth) -> Option<Position> {
        if self.position == Position::START {
            return None;
        }
        if deepest == Depth::Node {
            self.make_whole();
        }
        self.position.next(&self.tree(), deepest)
    }

    fn backward(&mut self, deepest: Depth) -> StepOutcome {
        let within = deepest == Depth::Node && self.position == Position::START;
        if within && self.go_to_last_frame() {
            return StepOutcome::Moved;
        }
        let before = self.position.previous(&self.tree(), deepest);
        if let Some(before) = before.filter(|before| *before != Position::START) {
            self.position = before;
            return StepOutcome::Moved;
        }
        if self.stop <= self.timeline.stops().start() {
            return StepOutcome::AtStart;
        }
        self.moved_to(self.stop - 1);
        if deepest == Depth::Node {
            self.go_to_last_frame();
        }
        StepOutcome::Moved
    }

    /// Moves to the last frame of the stop, at any depth. `false` if it has none.
    fn go_to_last_frame(&mut self) -> bool {
        self.make_whole();
        self.position = Position::last(&self.tree(), Depth::Node);
        self.position != Position::START
    }
}
