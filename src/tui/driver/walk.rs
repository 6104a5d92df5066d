//! Steps, one or many: what is not done in a moment goes on as a run, slice by slice.

use std::time::Instant;

use super::{Done, Driver, Goal, Way, Went, stopped};
use kubestep_api::words::count;
use kubestep_debug::breakpoint::Moment;
use kubestep_debug::{Ran, Session};

/// Steps under way.
#[derive(Clone, Copy)]
pub(super) struct Walk {
    /// How many are left, of how many.
    pub left: u32,
    pub count: u32,
    pub way: Way,
    pub step: fn(&mut Session) -> Ran,
    /// Whether the view stays unless a breakpoint stops it.
    pub stays: bool,
    /// Where it began, for what logging breakpoints have to say.
    pub from: Option<Moment>,
}

impl Driver {
    /// Begins to walk, and goes as far as a person waits without noticing.
    pub(super) fn walk(&mut self, walk: Walk) -> Done {
        self.walk = Some(Walk { from: self.session.moment(), ..walk });
        let (start, patience) = (Instant::now(), self.picture.patience);
        let done = self.walk_on(|| start.elapsed() < patience);
        done.unwrap_or_else(|| self.begin_run(Goal::Steps))
    }

    /// Walks on while there is `more` time. What came of it once it is over. For real all is
    /// done at once: nobody else decides in between.
    pub(super) fn walk_on(&mut self, more: impl Fn() -> bool) -> Option<Done> {
        let mut walk = self.walk.take()?;
        let mut went = Went::Ran(Ran::Moved);
        let (mut stop, mut sent) = (None, None);
        while walk.left > 0 {
            let before = self.session.moment();
            went = self.one_step(walk.way, walk.step);
            walk.left -= 1;
            let sends = walk.way == Way::Over && self.is_real() && went.is_new_cycle();
            stop = match walk.way {
                Way::Back => self.stop_passed_back(before),
                // All of the cycle is stepped over.
                Way::Over if sends => self.stop_until(before, self.newest_moment()),
                Way::Into | Way::Over => self.stop_passed(before),
            };
            if stop.is_some() || went.is_end() {
                break;
            }
            if sends {
                sent = self.send();
            }
            if walk.left > 0 && !self.is_real() && !more() {
                self.walk = Some(walk);
                return None;
            }
        }
        let notes = if walk.way == Way::Back { Vec::new() } else { self.log_lines(walk.from) };
        let done = match stop {
            Some(words) => stopped(words),
            None => self.said_of(&went, sent),
        };
        let look_at = self.best_view().filter(|_| done.stopped || !walk.stays);
        Some(Done { look_at, notes, ..done })
    }

    /// How far a walk is, for the status line.
    pub(super) fn walk_words(&self) -> Option<String> {
        let walk = self.walk?;
        let done = walk.count - walk.left;
        Some(format!("{done} of {}; Esc stops", count(walk.count as usize, "step")))
    }
}
