//! The durations of plugin calls, by cycle and in total: measured only if a clock is passed in.

use std::collections::VecDeque;
use std::sync::Arc;

use kubestep_framework::stopwatch::{Clock, Done, Spent, Stopwatch, add};

/// The number of cycles with individual durations; earlier ones count only in the total.
const KEPT: usize = 2_000;

/// The measured durations. Cycles that are replayed, or run on a copy, are not counted.
#[derive(Clone, Default)]
pub struct Times {
    stopwatch: Option<Arc<Stopwatch>>,
    sum: Vec<Spent>,
    /// The plugins' durations in each cycle, by number; shared with branches.
    cycles: VecDeque<(u64, Arc<[Spent]>)>,
    /// What a session that acts has not reported yet.
    unreported: (Vec<Spent>, Vec<Done>),
}

impl Times {
    pub(super) fn measure(&mut self, clock: Arc<dyn Clock>) {
        self.stopwatch = Some(Arc::new(Stopwatch::new(clock)));
    }

    /// The stopwatch, if durations are measured.
    pub(super) fn stopwatch(&self) -> Option<Arc<Stopwatch>> {
        self.stopwatch.clone()
    }

    /// A step is complete: the durations belong to its cycle, if it had one. If `reported`, they
    /// are kept for [`Times::take_unreported`].
    pub(super) fn step_done(&mut self, cycle: Option<u64>, reported: bool) {
        let Some(stopwatch) = &self.stopwatch else { return };
        let (spent, done) = (stopwatch.take(), stopwatch.take_done());
        add(&mut self.sum, &spent);
        if reported {
            add(&mut self.unreported.0, &spent);
            self.unreported.1.extend(done);
        }
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

    /// What was measured since the last call.
    pub(super) fn take_unreported(&mut self) -> (Vec<Spent>, Vec<Done>) {
        std::mem::take(&mut self.unreported)
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
