//! A recording played back with the embedded scheduler beside the cluster's own, as if it had
//! been there: the same on every machine and every day, as it looks at no clock but the
//! recording's.
//!
//! Between two changes our scheduler does all that it can, timers run down, and what ours alone
//! has decided is given back when a live shadow would.

use std::sync::Arc;
use std::time::Duration;

use crate::compare::{Decision, Verdict};
use crate::feed::{Delta, Event};
use crate::shadow::Shadow;
use kubestep_api::Time;
use kubestep_debug::Session;
use kubestep_framework::pod::NamespacedName;
use kubestep_source::recording::{Recorded, What};

/// A decision of the cluster's scheduler, compared with ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compared {
    /// The decision.
    pub decision: Arc<Decision>,
    /// Whether it fell before the recording began, so that nobody knows on which cluster.
    pub is_earlier: bool,
}

impl Compared {
    /// How the two compare, and where they differ or why they cannot be compared.
    pub fn verdict(&self) -> (Verdict, &str) {
        match self.decision.verdict {
            Verdict::Different | Verdict::Tie | Verdict::Untried if self.is_earlier => (
                Verdict::Incomparable,
                "decided before the recording began, on a cluster that is not in it",
            ),
            verdict => (verdict, &self.decision.reason),
        }
    }
}

/// Plays `changes` back on a session on the lists, and on to `until`. `tell` hears how many
/// changes are done.
pub fn replay(
    session: &mut Session,
    changes: &[Recorded],
    until: Time,
    mut tell: impl FnMut(usize),
) -> Vec<Compared> {
    let mut shadow = Shadow::remembering_all();
    let mut now = session.world().now();
    work(&mut shadow, session);
    shadow.catch_up(session, now);
    let earlier = shadow.decisions().len();
    for (at, change) in changes.iter().enumerate() {
        // Clocks may be set back; here time never runs backward.
        now = now.max(change.at);
        pass(&mut shadow, session, now);
        shadow.take(session, vec![delta(change)], now);
        tell(at + 1);
    }
    pass(&mut shadow, session, now.max(until));
    let decisions = shadow.decisions().iter().cloned().enumerate();
    decisions.map(|(at, decision)| Compared { decision, is_earlier: at < earlier }).collect()
}

/// A change as a feed tells it.
pub fn event(change: &Recorded) -> Event {
    Event::Delta(delta(change))
}

fn delta(change: &Recorded) -> Delta {
    match &change.what {
        What::Put(object) => Delta::Put(object.clone()),
        What::Delete(key) => {
            let name = NamespacedName::new(key.namespace, key.name);
            Delta::Delete { kind: key.kind, key: name }
        }
    }
}

fn work(shadow: &mut Shadow, session: &mut Session) {
    while shadow.work(session, Duration::MAX) {}
}

/// Lets time pass up to `until` with all that is due on the way.
fn pass(shadow: &mut Shadow, session: &mut Session, until: Time) {
    let mut now = session.world().now();
    loop {
        work(shadow, session);
        let timer = session.next_timer().map(|timer| timer.due);
        let due = timer.into_iter().chain(shadow.next_return()).min();
        // Each turn is later than the one before, so this comes to an end.
        let Some(due) = due.map(|due| due.max(Time(now.0 + 1))).filter(|due| *due < until) else {
            return;
        };
        now = due;
        shadow.tick(session, now);
    }
}

#[cfg(test)]
#[path = "replay/tests.rs"]
mod tests;
