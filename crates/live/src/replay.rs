//! Replays a recording with the embedded scheduler as the shadow of the cluster's own. It reads no
//! clock except the recording's, so every replay gives the same result.
//!
//! Between two changes the embedded scheduler runs all cycles that it can and timers expire. A
//! decision that only it has made is undone when a live shadow would undo it.

use std::sync::Arc;
use std::time::Duration;

use crate::compare::{Agreement, ComparedDecision};
use crate::feed::{Delta, FeedEvent};
use crate::shadow::Shadow;
use kubestep_api::Time;
use kubestep_debug::Session;
use kubestep_framework::pod::NamespacedName;
use kubestep_source::recording::{ObjectChange, RecordedChange};

/// A decision of the cluster's scheduler, compared with that of the embedded one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayedDecision {
    /// The decision, compared at the time at which it was recorded.
    pub decision: Arc<ComparedDecision>,
    /// Whether it was made before the recording began, on an unknown state of the cluster.
    pub is_earlier: bool,
}

impl ReplayedDecision {
    /// How the two compare, and the difference or the reason why they cannot be compared.
    pub fn verdict(&self) -> (Agreement, &str) {
        match self.decision.verdict {
            Agreement::Different | Agreement::Opaque | Agreement::Tie | Agreement::Untried
                if self.is_earlier =>
            {
                (
                    Agreement::Incomparable,
                    "decided before the recording began, on a state that it does not contain",
                )
            }
            verdict => (verdict, &self.decision.reason),
        }
    }
}

/// Replays `changes` up to `until` on a session that holds the lists. `report` receives the number of
/// changes applied.
pub fn replay(
    session: &mut Session,
    changes: &[RecordedChange],
    until: Time,
    mut report: impl FnMut(usize),
) -> Vec<ReplayedDecision> {
    let mut shadow = Shadow::remembering_all();
    let mut now = session.world().now();
    work(&mut shadow, session);
    shadow.catch_up(session, now);
    let earlier = shadow.decisions().len();
    for (at, change) in changes.iter().enumerate() {
        // Clocks may be set back; the session's time must not run backward.
        now = now.max(change.at);
        pass(&mut shadow, session, now);
        shadow.take(session, vec![delta(change)], now);
        report(at + 1);
    }
    pass(&mut shadow, session, now.max(until));
    let decisions = shadow.decisions().iter().cloned().enumerate();
    decisions
        .map(|(at, decision)| ReplayedDecision { decision, is_earlier: at < earlier })
        .collect()
}

/// A recorded change as an event of a feed.
pub fn event(change: &RecordedChange) -> FeedEvent {
    FeedEvent::Delta(delta(change))
}

fn delta(change: &RecordedChange) -> Delta {
    match &change.what {
        ObjectChange::Put(object) => Delta::Put(object.clone()),
        ObjectChange::Delete(key) => {
            let name = NamespacedName::new(key.namespace, key.name);
            Delta::Delete { kind: key.kind, key: name }
        }
    }
}

fn work(shadow: &mut Shadow, session: &mut Session) {
    while shadow.work(session, Duration::MAX) {}
}

/// Advances the clock to `until` and handles everything that is due on the way.
fn pass(shadow: &mut Shadow, session: &mut Session, until: Time) {
    let mut now = session.world().now();
    loop {
        work(shadow, session);
        let timer = session.next_timer().map(|timer| timer.due);
        let due = timer.into_iter().chain(shadow.next_return()).min();
        // Each iteration is later than the one before, so the loop terminates.
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
