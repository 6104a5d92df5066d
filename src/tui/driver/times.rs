//! What plugins take, drawn up for the view that shows it; and the clock that measures it.

use std::cmp::Reverse;
use std::sync::Arc;

use super::Driver;
use crate::tui::model::{TimesModel, TimesRow};
use kubestep_framework::stopwatch::{Clock, Spent};
use kubestep_live::clock::WallClock;

impl Driver {
    /// Measures what plugins take from now on.
    pub fn measure(&mut self) {
        self.measure_with(Arc::new(WallClock::default()));
    }

    /// The same with another clock.
    pub fn measure_with(&mut self, clock: Arc<dyn Clock>) {
        self.session.measure(clock);
    }

    /// The rows of the view, once for each change of anything else.
    pub(super) fn refresh_times(&mut self) {
        if self.freshness.times_of == self.model.revision {
            return;
        }
        let times = self.session.times();
        let cycle = self.model.cycle().map(|record| record.cycle);
        let here = cycle.and_then(|number| times.of_cycle(number));
        let row = |all: &Spent| {
            let same = |other: &&Spent| (other.point, other.plugin) == (all.point, all.plugin);
            TimesRow { all: *all, here: here.and_then(|list| list.iter().find(same)).copied() }
        };
        let mut rows: Vec<TimesRow> = times.sum().iter().map(row).collect();
        rows.sort_by_key(|row| Reverse(row.all.nanos));
        let cycle = cycle.filter(|_| here.is_some());
        self.model.times = TimesModel { is_on: times.is_on(), rows, cycle };
        self.model.revision += 1;
        self.freshness.times_of = self.model.revision;
    }
}
