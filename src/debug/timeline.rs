//! The log of a session: its steps, each an input with what it led to, and the stops among
//! them where a debugger can stand.
//!
//! A step is what is done again to get back to a state. A stop is what a person sees as one:
//! a cycle, or something else that was done. A step of a pod group has several cycles and so
//! several stops; any other has one.

use std::ops::Range;
use std::sync::Arc;

use crate::api::Time;
use crate::debug::input::{Answer, Input};
use crate::engine::record::CycleRecord;
use crate::engine::scheduler::Known;
use crate::trace::EntryId;

/// An input with what is needed to do it again and to take it back.
#[derive(Clone, Debug)]
pub struct Step {
    /// What was done; `None`: the cluster was loaded, which is always the first step.
    pub input: Option<Input>,
    /// The virtual clock after it.
    pub time: Time,
    /// What it led to, as places in the history.
    pub entries: Range<u32>,
    /// What extenders answered.
    pub(super) answers: Arc<[Answer]>,
    /// Records of earlier cycles as they were before this step completed them.
    pub(super) completed: Arc<[Arc<CycleRecord>]>,
    /// What is known of the cycle, if it can be done again without its matrices.
    pub(super) known: Option<Known>,
}

impl Step {
    /// The cycles that this step brought to their end though they began before, as they were
    /// before it.
    pub fn completed(&self) -> impl Iterator<Item = &Arc<CycleRecord>> {
        self.completed.iter()
    }
}

/// A place where the debugger can stand: a cycle, or another thing that was done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stop {
    /// The step it belongs to.
    pub step: usize,
    /// The number of its cycle, if it is one.
    pub cycle: Option<u64>,
    /// The number of the newest cycle up to here, 0 before the first.
    pub newest_cycle: u64,
    /// What happened beside the cycle: queue moves, hints and events, as places in the history.
    pub entries: Range<u32>,
}

/// The steps and stops of a session, oldest first.
#[derive(Clone, Default, Debug)]
pub struct Timeline {
    steps: Vec<Step>,
    stops: Vec<Stop>,
}

impl Timeline {
    /// Appends a step. `cycles` are the places and numbers of its cycles.
    pub(super) fn push(&mut self, step: Step, cycles: &[(EntryId, u64)]) {
        let number = self.steps.len();
        let mut newest = self.stops.last().map_or(0, |stop| stop.newest_cycle);
        let Range { start, end } = step.entries;
        let first = cycles.first().map_or(end, |(id, _)| id.0);
        if start < first || cycles.is_empty() {
            let entries = start..first;
            self.stops.push(Stop { step: number, cycle: None, newest_cycle: newest, entries });
        }
        for (at, (id, cycle)) in cycles.iter().enumerate() {
            newest = *cycle;
            let until = cycles.get(at + 1).map_or(end, |(next, _)| next.0);
            let (cycle, entries) = (Some(*cycle), id.0 + 1..until);
            self.stops.push(Stop { step: number, cycle, newest_cycle: newest, entries });
        }
        self.steps.push(step);
    }

    /// Says that the newest step was proposed a node by the ranking of the cycle before it,
    /// which therefore has to be run whole again.
    pub(super) fn follows_ranking(&mut self) {
        let is_cycle = |step: &&mut Step| matches!(step.input, Some(Input::Cycle));
        if let Some(before) = self.steps.iter_mut().rev().skip(1).find(is_cycle) {
            before.known = None;
        }
    }

    /// The steps.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The stops.
    pub fn stops(&self) -> &[Stop] {
        &self.stops
    }

    /// Forgets all steps after the first `len`. Gives them back, the oldest first.
    pub(super) fn truncate(&mut self, len: usize) -> Vec<Step> {
        self.stops.truncate(self.stops.partition_point(|stop| stop.step < len));
        self.steps.split_off(len.min(self.steps.len()))
    }

    /// The index of the stop of a cycle.
    pub fn stop_of_cycle(&self, number: u64) -> Option<usize> {
        let at = self.stops.partition_point(|stop| stop.newest_cycle < number);
        self.stops.get(at)?.cycle.filter(|cycle| *cycle == number).map(|_| at)
    }

    /// The index of the stop that an entry of the history belongs to.
    pub fn stop_of_entry(&self, entry: EntryId) -> Option<usize> {
        let at = self.stops.partition_point(|stop| stop.entries.end <= entry.0);
        // The cycle itself comes right before its entries.
        self.stops.get(at).filter(|stop| {
            let first = stop.entries.start - u32::from(stop.cycle.is_some());
            (first..stop.entries.end).contains(&entry.0)
        })?;
        Some(at)
    }

    /// The last stop of which the clock shows at most `time`; the first if there is none.
    pub fn stop_at(&self, time: Time) -> usize {
        let steps = self.steps.partition_point(|step| step.time <= time);
        self.last_stop_of(steps.saturating_sub(1))
    }

    /// The first stop of which the clock shows at least `time`; the last if there is none.
    pub fn first_stop_at(&self, time: Time) -> usize {
        let steps = self.steps.partition_point(|step| step.time < time);
        let stop = self.stops.partition_point(|stop| stop.step < steps);
        stop.min(self.stops.len().saturating_sub(1))
    }

    /// The stops of a step.
    pub fn stops_of(&self, step: usize) -> &[Stop] {
        let before = self.stops.partition_point(|stop| stop.step < step);
        let until = self.stops.partition_point(|stop| stop.step <= step);
        self.stops.get(before..until).unwrap_or_default()
    }

    /// The last stop of a step.
    pub fn last_stop_of(&self, step: usize) -> usize {
        self.stops.partition_point(|stop| stop.step <= step).saturating_sub(1)
    }
}
