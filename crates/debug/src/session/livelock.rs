//! Detects that the scheduler is in a livelock.
//!
//! When the active queue is empty, kube-scheduler pops a pod from the backoff queue before its
//! backoff is over. If the pod fails again, it returns there and is the next to be popped, until
//! something changes: a gang that is too large for the cluster causes such a livelock. As the
//! clock does not advance meanwhile, a run until nothing is left to schedule checks for it here.

use std::fmt;

use super::Session;
use crate::input::Input;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::{CycleRecord, Outcome};

/// Attempts of a pod at one moment, without a change, that count as a livelock.
const TRIES: usize = 5;

/// A livelock: a pod that is tried again and again while nothing changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Livelock {
    /// The pod that was tried last.
    pub pod: NamespacedName,
    /// The minimum number of its failed attempts.
    pub tries: usize,
}

impl fmt::Display for Livelock {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Livelock { pod, tries } = self;
        write!(
            out,
            "{pod} was tried {tries} times and nothing changed: with nothing else active, \
             kube-scheduler takes it from backoff at once, and goes on like that"
        )
    }
}

impl Session {
    /// The livelock that the newest cycle is part of, if any.
    pub fn livelock(&self) -> Option<Livelock> {
        let newest = self.history.last_cycle()?;
        if self.world.scheduler().queue().lengths()[0] > 0 {
            return None;
        }
        let first = self.history.cycles_of(newest.pod).rev().nth(TRIES - 1)?;
        if first.time != newest.time || first.uid != newest.uid {
            return None;
        }
        let mut tried = self.history.cycles().rev().take_while(|cycle| cycle.cycle >= first.cycle);
        let in_vain = tried.all(|cycle| !is_progress(cycle)) && self.only_cycles_since(first);
        in_vain.then_some(Livelock { pod: newest.pod, tries: TRIES })
    }

    fn only_cycles_since(&self, first: &CycleRecord) -> bool {
        let stop = self.timeline.stop_of_cycle(first.cycle);
        let step = stop.and_then(|stop| self.timeline.stops().get(stop)).map_or(0, |at| at.step);
        let mut since = self.timeline.steps().from(step);
        since.all(|step| matches!(step.input, Some(Input::Cycle)))
    }
}

/// Whether this cycle can change the outcome of later ones.
fn is_progress(cycle: &CycleRecord) -> bool {
    matches!(cycle.outcome, Outcome::Scheduled | Outcome::Waiting) || cycle.preemption.is_some()
}
