//! The log of a session: its steps, each an input with its effects, and the stops, the positions
//! that the debugger can move to.
//!
//! Steps are replayed to reach an earlier state. A stop is what the user steps over: a cycle, or
//! another input. The step of a pod group has several cycles, and so several stops; any other step
//! has one.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

use crate::input::{ExtenderResult, Input};
use crate::trace::history::ENTRY_BYTES;
use crate::trace::{EntryId, OffsetList};
use kubestep_api::Time;
use kubestep_framework::record::CycleRecord;
use kubestep_scheduler::what_if::ReplayHint;

/// Approximate size of a step with its stops and its changes of nodes, in bytes.
const STEP_BYTES: usize = 600;

/// An input with what is needed to redo and to undo it.
#[derive(Clone, Debug)]
pub struct Step {
    /// The input; `None` only for the first step: the cluster was loaded, or earlier steps were
    /// dropped.
    pub input: Option<Input>,
    /// The virtual clock after it.
    pub time: Time,
    /// Its effects, as positions in the history.
    pub entries: Range<u32>,
    /// The answers of extenders.
    pub(super) answers: Arc<[ExtenderResult]>,
    /// Records of earlier cycles as they were before this step completed them.
    pub(super) completed: Arc<[Arc<CycleRecord>]>,
    /// What is known of the cycle, if it can be run again without its matrices.
    pub(super) known: Option<ReplayHint>,
}

impl Step {
    /// The earlier cycles that this step completed, as they were before it.
    pub fn completed(&self) -> impl Iterator<Item = &Arc<CycleRecord>> {
        self.completed.iter()
    }

    /// Approximate size without its entries in the history, in bytes.
    fn bytes(&self) -> usize {
        let input = match &self.input {
            Some(Input::Change(change)) => change.bytes(),
            _ => 0,
        };
        let answers: usize = self.answers.iter().flatten().map(json_bytes).sum();
        STEP_BYTES + input + answers + self.completed.len() * ENTRY_BYTES
    }
}

fn json_bytes(value: &Value) -> usize {
    let more = match value {
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(json_bytes).sum(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| name.len() + json_bytes(value)).sum()
        }
        _ => 0,
    };
    size_of::<Value>() + more
}

/// A position that the debugger can move to: a cycle, or another input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stop {
    /// The step it belongs to.
    pub step: usize,
    /// The number of its cycle, if it is one.
    pub cycle: Option<u64>,
    /// The number of the newest cycle up to here, 0 before the first.
    pub newest_cycle: u64,
    /// What happened, as positions in the history: queue moves, hints, events and, if it is one,
    /// the cycle.
    pub entries: Range<u32>,
    /// Which of the entries is the cycle.
    pub cycle_entry: Option<EntryId>,
}

/// The steps and stops of a session, oldest first.
#[derive(Clone, Default, Debug)]
pub struct Timeline {
    steps: OffsetList<Step>,
    stops: OffsetList<Stop>,
    /// Approximate size of the steps, in bytes.
    bytes: usize,
}

impl Timeline {
    /// Appends a step. `cycles` has the positions and numbers of its cycles.
    pub(super) fn push(&mut self, step: Step, cycles: &[(EntryId, u64)]) {
        let number = self.steps.end();
        let mut newest = self.stops.last().map_or(0, |stop| stop.newest_cycle);
        let Range { start, end } = step.entries;
        if cycles.is_empty() {
            let (cycle, newest_cycle, entries) = (None, newest, start..end);
            let stop = Stop { step: number, cycle, newest_cycle, entries, cycle_entry: None };
            self.stops.push(stop);
        }
        let mut from = start;
        for (at, (id, cycle)) in cycles.iter().enumerate() {
            newest = *cycle;
            let until = cycles.get(at + 1).map_or(end, |(next, _)| next.0);
            self.stops.push(Stop {
                step: number,
                cycle: Some(*cycle),
                newest_cycle: newest,
                entries: from..until,
                cycle_entry: Some(*id),
            });
            from = until;
        }
        self.bytes += step.bytes();
        self.steps.push(step);
    }

    /// Marks that the newest step used a node hint from the ranking of the cycle before it, so that
    /// one must be run completely when replayed.
    pub(super) fn follows_ranking(&mut self) {
        let is_cycle = |step: &&mut Step| matches!(step.input, Some(Input::Cycle));
        if let Some(before) = self.steps.iter_mut().rev().skip(1).find(is_cycle) {
            before.known = None;
        }
    }

    /// The inputs with what each led to, oldest first.
    pub fn steps(&self) -> &OffsetList<Step> {
        &self.steps
    }

    /// The stops of all steps, oldest first.
    pub fn stops(&self) -> &OffsetList<Stop> {
        &self.stops
    }

    /// Drops all steps after the first `len`. Returns them, the oldest first.
    pub(super) fn truncate(&mut self, len: usize) -> VecDeque<Step> {
        self.stops.cut(self.stops.partition_point(|stop| stop.step < len));
        let dropped = self.steps.cut(len);
        self.bytes -= dropped.iter().map(Step::bytes).sum::<usize>();
        dropped
    }

    /// Drops the steps up to and including `step`: the log begins with the state after it. Returns
    /// the first entry that is left; all before it are dropped.
    pub(super) fn forget(&mut self, step: usize) -> EntryId {
        let dropped = self.steps.forget(step).map(|step| step.bytes()).sum::<usize>();
        self.bytes -= dropped;
        let last = self.last_stop_of(step);
        self.stops.forget(last);
        let mut end = 0;
        if let Some(first) = self.steps.get_mut(step) {
            let before = first.bytes();
            end = first.entries.end;
            (first.input, first.known, first.entries) = (None, None, end..end);
            (first.answers, first.completed) = (Arc::default(), Arc::default());
            self.bytes -= before - first.bytes();
        }
        if let Some(stop) = self.stops.get_mut(last) {
            (stop.cycle, stop.cycle_entry, stop.entries) = (None, None, end..end);
        }
        EntryId(end)
    }

    /// Approximate size of the steps without their entries in the history, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The index of the stop of a cycle.
    pub fn stop_of_cycle(&self, number: u64) -> Option<usize> {
        let at = self.stops.partition_point(|stop| stop.newest_cycle < number);
        self.stops.get(at)?.cycle.filter(|cycle| *cycle == number).map(|_| at)
    }

    /// The index of the stop that an entry of the history belongs to.
    pub(crate) fn stop_of_entry(&self, entry: EntryId) -> Option<usize> {
        let at = self.stops.partition_point(|stop| stop.entries.end <= entry.0);
        self.stops.get(at).filter(|stop| stop.entries.contains(&entry.0)).map(|_| at)
    }

    /// The last stop at or before `time`; the first if there is none.
    pub fn stop_at(&self, time: Time) -> usize {
        let steps = self.steps.partition_point(|step| step.time <= time);
        self.last_stop_of(steps.saturating_sub(1).max(self.steps.start()))
    }

    /// The first stop at or after `time`; the last if there is none.
    pub fn first_stop_at(&self, time: Time) -> usize {
        let steps = self.steps.partition_point(|step| step.time < time);
        let stop = self.stops.partition_point(|stop| stop.step < steps);
        stop.min(self.stops.end().saturating_sub(1))
    }

    /// The stops of a step.
    pub(crate) fn stops_of(&self, step: usize) -> impl Iterator<Item = &Stop> {
        let before = self.stops.partition_point(|stop| stop.step < step);
        let until = self.stops.partition_point(|stop| stop.step <= step);
        self.stops.range(before..until)
    }

    /// The last stop of a step; the first of all if the step was dropped.
    pub fn last_stop_of(&self, step: usize) -> usize {
        let after = self.stops.partition_point(|stop| stop.step <= step);
        after.saturating_sub(1).max(self.stops.start())
    }
}
