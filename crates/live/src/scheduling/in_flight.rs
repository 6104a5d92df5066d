//! How many writes of binding cycles are in flight at once, by how long the API server takes to
//! answer.
//!
//! A busy server answers no faster if more is sent to it; what is sent then queues, and each attempt
//! takes longer. A server far away is idle if less is sent. So the limit follows the number of writes
//! that queue, as TCP Vegas follows the packets that queue on their way: of the writes in flight, the
//! part queues that would be answered already if each took no longer than the fastest one.

use std::time::Duration;

use kubestep_cluster::remote::BindingCycleWrite;

use crate::write::AT_ONCE;

/// The limit at the start, and the least: with fewer, a server on two cores was as busy and bound fewer
/// pods, since each write cost it more. 24 in flight bound 1,030 pods a second in 22 ms each, 16 bound
/// 800 in 19 ms, 12 bound 700 in 17 ms; 64 bound 1,080 in 57 ms.
pub(super) const FEWEST: usize = 24;
/// Below this many queued writes, the limit grows; above [`MANY`], it shrinks.
const FEW: f64 = 16.0;
const MANY: f64 = 24.0;
/// How far the limit moves in a round.
const STEP: f64 = 1.0 / 16.0;
/// In this time, the duration of the fastest answer counts as twice as long: it may have been that
/// of a server that is no more, or of one that had less to store.
const FORGOTTEN: Duration = Duration::from_secs(60);

/// The limit of writes in flight, which follows the answers.
#[derive(Clone, Debug)]
pub(super) struct InFlightLimit {
    limit: f64,
    /// Whether a cycle had to wait in this round.
    was_full: bool,
    /// The answers of this round, and the sum over them of the part of its time that each one queued.
    answers: f64,
    queued: f64,
    /// The durations of the fastest answers of late, in seconds.
    fastest_binding: f64,
    fastest_pre_bind: f64,
}

impl Default for InFlightLimit {
    fn default() -> InFlightLimit {
        InFlightLimit {
            limit: FEWEST as f64,
            was_full: false,
            answers: 0.0,
            queued: 0.0,
            fastest_binding: f64::INFINITY,
            fastest_pre_bind: f64::INFINITY,
        }
    }
}

impl InFlightLimit {
    /// Whether no further cycle may begin while so many writes are in flight.
    pub fn is_reached(&mut self, in_flight: usize) -> bool {
        let is_reached = in_flight as f64 >= self.limit.floor();
        self.was_full |= is_reached;
        is_reached
    }

    /// Takes in that a write succeeded and `took` so long, `since` the answer before it.
    pub fn answered(&mut self, write: BindingCycleWrite, took: Duration, since: Duration) {
        let forgotten = 1.0 + since.as_secs_f64() / FORGOTTEN.as_secs_f64();
        self.fastest_binding *= forgotten;
        self.fastest_pre_bind *= forgotten;
        let fastest = match write {
            BindingCycleWrite::Binding => &mut self.fastest_binding,
            BindingCycleWrite::PreBind => &mut self.fastest_pre_bind,
        };
        // No division by zero if a clock stands still.
        let took = took.as_secs_f64().max(f64::MIN_POSITIVE);
        *fastest = fastest.min(took);
        self.queued += 1.0 - *fastest / took;
        self.answers += 1.0;
        if self.answers >= self.limit {
            self.end_round();
        }
    }

    /// Moves the limit after about as many answers as writes were in flight.
    fn end_round(&mut self) {
        let queued = self.limit * self.queued / self.answers;
        let step = (self.limit * STEP).max(1.0);
        if queued > MANY {
            self.limit -= step;
        } else if queued < FEW && self.was_full {
            self.limit += step;
        }
        self.limit = self.limit.clamp(FEWEST as f64, AT_ONCE as f64);
        (self.was_full, self.answers, self.queued) = (false, 0.0, 0.0);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// A server that needs `fastest` seconds for a write if it is idle, and answers at most `rate`
    /// writes a second, in order.
    struct Server {
        fastest: f64,
        rate: f64,
    }

    impl Server {
        /// Answers so many writes, of which as many are in flight as the limit allows; returns the limit
        /// then.
        fn answer(&self, limit: &mut InFlightLimit, writes: usize) -> usize {
            let (mut now, mut last) = (0.0, 0.0);
            let mut in_flight = VecDeque::new();
            for _ in 0..writes {
                while !limit.is_reached(in_flight.len()) {
                    last = f64::max(now + self.fastest, last + 1.0 / self.rate);
                    in_flight.push_back((now, last));
                }
                let (sent, answered) = in_flight.pop_front().unwrap();
                let [took, since] =
                    [sent, now].map(|from| Duration::from_secs_f64(answered - from));
                limit.answered(BindingCycleWrite::Binding, took, since);
                now = answered;
            }
            limit.limit as usize
        }
    }

    #[test]
    fn a_busy_server_gets_what_keeps_it_busy() {
        for (fastest, expected) in [(0.002, FEWEST..=FEWEST), (0.02, 36..=48), (0.2, 64..=64)] {
            let mut limit = InFlightLimit::default();
            let in_flight = Server { fastest, rate: 1_000.0 }.answer(&mut limit, 2_000);
            assert!(expected.contains(&in_flight), "{in_flight}");
        }
    }

    #[test]
    fn a_server_far_away_gets_as_many_as_can_be_sent() {
        let mut limit = InFlightLimit::default();
        let server = Server { fastest: 0.1, rate: 10_000.0 };
        assert_eq!(server.answer(&mut limit, 5_000), AT_ONCE);
    }

    #[test]
    fn a_server_that_gets_slower_gets_fewer_and_its_past_is_forgotten() {
        let mut limit = InFlightLimit::default();
        let far = |fastest| Server { fastest, rate: 100_000.0 };
        assert_eq!(far(0.01).answer(&mut limit, 5_000), AT_ONCE);
        assert!(far(0.1).answer(&mut limit, 2_000) <= MANY as usize + 4);
        assert_eq!(far(0.1).answer(&mut limit, 100_000), AT_ONCE);
    }

    #[test]
    fn an_idle_scheduler_does_not_raise_the_limit() {
        let mut limit = InFlightLimit::default();
        for _ in 0..100 {
            let (took, since) = (Duration::from_millis(2), Duration::from_secs(1));
            limit.answered(BindingCycleWrite::Binding, took, since);
        }
        assert!(limit.is_reached(FEWEST));
    }

    #[test]
    fn writes_of_claims_are_not_measured_by_bindings() {
        let mut limit = InFlightLimit::default();
        for _ in 0..1_000 {
            limit.is_reached(AT_ONCE);
            for (write, took) in [(BindingCycleWrite::Binding, 2), (BindingCycleWrite::PreBind, 40)]
            {
                limit.answered(write, Duration::from_millis(took), Duration::ZERO);
            }
        }
        assert!(!limit.is_reached(AT_ONCE - 1));
    }
}
