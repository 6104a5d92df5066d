//! What plugins took, by cycle and in all: measured only where somebody hands a clock in.

use std::collections::VecDeque;
use std::sync::Arc;

use kubestep_framework::runtime::stopwatch::{Clock, Spent, Stopwatch, add};

/// Cycles of which the single times are kept; those before count in the sum only.
const KEPT: usize = 2_000;

/// See the module. What is run again to see the past, or on a copy to try something, is not counted.
#[derive(Clone, Default)]
pub struct Times {
    stopwatch: Option<Arc<Stopwatch>>,
    sum: Vec<Spent>,
    /// Shared with branches.
    cycles: VecDeque<(u64, Arc<[Spent]>)>,
}

impl Times {
    /// Measures from now on.
    pub(super) fn measure(&mut self, clock: Arc<dyn Clock>) {
        self.stopwatch = Some(Arc::new(Stopwatch::new(clock)));
    }

    /// What measures, if anything.
    pub(super) fn stopwatch(&self) -> Option<Arc<Stopwatch>> {
        self.stopwatch.clone()
    }

    /// A step was done: what was spent belongs to its cycle, if it had one.
    pub(super) fn step_done(&mut self, cycle: Option<u64>) {
        let spent = self.stopwatch.as_ref().map(|stopwatch| stopwatch.take()).unwrap_or_default();
        add(&mut self.sum, &spent);
        let Some(cycle) = cycle.filter(|_| !spent.is_empty()) else { return };
        // A number that comes again is that of another future.
        while self.cycles.back().is_some_and(|(last, _)| *last >= cycle) {
            self.cycles.pop_back();
        }
        self.cycles.push_back((cycle, spent.into()));
        if self.cycles.len() > KEPT {
            self.cycles.pop_front();
        }
    }

    /// Whether anything is measured.
    pub fn is_on(&self) -> bool {
        self.stopwatch.is_some()
    }

    /// All that was measured in this session, also between cycles and in futures given up since.
    pub fn sum(&self) -> &[Spent] {
        &self.sum
    }

    /// What was measured of a cycle; `None` if it was not measured, or too long ago.
    pub fn of_cycle(&self, cycle: u64) -> Option<&[Spent]> {
        let at = self.cycles.binary_search_by_key(&cycle, |(number, _)| *number).ok()?;
        self.cycles.get(at).map(|(_, spent)| spent.as_ref())
    }
}
