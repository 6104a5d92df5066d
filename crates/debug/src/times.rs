//! The durations of plugin calls, by cycle and in total: measured only if a clock is passed in.

use std::collections::VecDeque;
use std::sync::Arc;

use kubestep_framework::stopwatch::{Clock, Spent, Stopwatch, add};

/// The number of cycles with individual durations; earlier ones count only in the total.
const KEPT: usize = 2_000;

/// The measured durations. Cycles that are replayed, or run on a copy, are not counted.
#[derive(Clone, Default)]
pub struct Times {
    stopwatch: Option<Arc<Stopwatch>>,
    sum: Vec<Spent>,
    /// Shared with branches.
    cycles: VecDeque<(u64, Arc<[Spent]>)>,
}

impl Times {
    pub(super) fn measure(&mut self, clock: Arc<dyn Clock>) {
        self.stopwatch = Some(Arc::new(Stopwatch::new(clock)));
    }

    /// The stopwatch, if durations are measured.
    pub(super) fn stopwatch(&self) -> Option<Arc<Stopwatch>> {
        self.stopwatch.clone()
    }

    /// A step is complete: the durations belong to its cycle, if it had one.
    pub(super) fn step_done(&mut self, cycle: Option<u64>) {
        let spent = self.stopwatch.as_ref().map(|stopwatch| stopwatch.take()).unwrap_or_default();
        add(&mut self.sum, &spent);
        let Some(cycle) = cycle.filter(|_| !spent.is_empty()) else { return };
        // A cycle number that comes again belongs to a new branch.
        while self.cycles.back().is_some_and(|(last, _)| *last >= cycle) {
            self.cycles.pop_back();
        }
        self.cycles.push_back((cycle, spent.into()));
        if self.cycles.len() > KEPT {
            self.cycles.pop_front();
        }
    }

    /// Whether durations are measured.
    pub fn is_on(&self) -> bool {
        self.stopwatch.is_some()
    }

    /// All durations measured in this session, including those between cycles and in dropped
    /// branches.
    pub fn sum(&self) -> &[Spent] {
        &self.sum
    }

    /// The durations of a cycle; `None` if they were not measured or were dropped.
    pub fn of_cycle(&self, cycle: u64) -> Option<&[Spent]> {
        let at = self.cycles.binary_search_by_key(&cycle, |(number, _)| *number).ok()?;
        self.cycles.get(at).map(|(_, spent)| spent.as_ref())
    }
}
