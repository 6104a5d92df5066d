//! How long to wait before a list or watch is tried again: client-go's reflector backoff, with a
//! lower and an upper limit for what the server asks for.
//!
//! Upstream: `client-go/tools/cache/reflector.go` (800 ms, doubled up to 30 s, each pause
//! lengthened by up to itself). Unlike upstream, only progress resets it: a watch that stayed open
//! or delivered a change, not elapsed time or a status 200; and a watch that ends properly but
//! immediately counts as a failure.

use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::time::Duration;

use crate::failure::RequestFailure;

/// A first retry within this time is not reported.
const SHORT: Duration = Duration::from_secs(2);

/// How often lists and watches are retried.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// The server ends a watch after this many seconds.
    pub watch_seconds: u32,
    /// A watch that receives nothing for this long is restarted: its connection may be dead.
    /// Bookmarks arrive every minute, except for a kind that has not changed since the server
    /// started.
    pub idle: Duration,
    /// A watch that has been open for this long works, even if it delivered nothing.
    pub lived: Duration,
    /// The pause after the first failure, doubled each time.
    pub pause: Duration,
    /// The longest pause, before it is lengthened.
    pub longest_pause: Duration,
    /// The pause while a kind may not be read: roles rarely change.
    pub refused: Duration,
    /// Seed of the random lengthening of pauses.
    pub seed: u64,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            watch_seconds: 300,
            idle: Duration::from_secs(90),
            lived: Duration::from_secs(1),
            pause: Duration::from_millis(800),
            longest_pause: Duration::from_secs(30),
            refused: Duration::from_secs(60),
            seed: RandomState::new().hash_one(0),
        }
    }
}

/// A list or watch that ended.
#[derive(Clone, Debug)]
pub struct EndedStream {
    /// How long the watch was open.
    pub lived: Duration,
    /// Whether it delivered a change that was new.
    pub delivered: bool,
    /// Whether the kind was read before.
    pub was_read: bool,
    /// The failure that ended it.
    pub end: RequestFailure,
}

impl EndedStream {
    /// A request that had no success at all.
    pub fn failed(end: RequestFailure, was_read: bool) -> EndedStream {
        EndedStream { lived: Duration::ZERO, delivered: false, was_read, end }
    }
}

/// The pauses of one kind.
#[derive(Debug)]
pub struct Backoff {
    pace: Pace,
    name: String,
    /// Failures since the last progress; the exponent of the pause.
    failures: u32,
    /// Pauses so far, for the sequence of random lengths.
    pauses: u64,
}

impl Backoff {
    /// `name` spreads kinds, so that they do not all retry at the same time.
    pub fn new(pace: Pace, name: &str) -> Backoff {
        Backoff { pace, name: name.to_owned(), failures: 0, pauses: 0 }
    }

    /// How long to wait after this attempt before the next one.
    pub fn pause(&mut self, attempt: &EndedStream) -> Duration {
        let is_unreadable = matches!(attempt.end, RequestFailure::Malformed(_));
        let lived = attempt.lived >= self.pace.lived && !is_unreadable;
        if lived || attempt.delivered {
            self.failures = 0;
        }
        let is_cut = matches!(attempt.end, RequestFailure::Ended | RequestFailure::Unreachable(_));
        if is_cut && attempt.lived >= self.pace.longest_pause {
            return Duration::ZERO;
        }
        let step = self.step();
        match &attempt.end {
            RequestFailure::Refused(_) | RequestFailure::Absent(_) if !attempt.was_read => {
                self.pace.refused
            }
            failure => failure.retry_after().map_or(step, |after| step.max(after)),
        }
    }

    /// Whether a kind that waits for `pause` is shown as an outage: not on the first, short retry
    /// after a watch that worked.
    pub(crate) fn is_outage(&self, pause: Duration) -> bool {
        self.failures > 1 || pause > SHORT
    }

    fn step(&mut self) -> Duration {
        let doubled = self.pace.pause.saturating_mul(1 << self.failures.min(16));
        self.failures += 1;
        let base = doubled.min(self.pace.longest_pause);
        base + base.mul_f64(self.chance())
    }

    /// A pseudo-random number from 0 to 1 that differs between kinds, pauses and seeds.
    fn chance(&mut self) -> f64 {
        let mut hasher = DefaultHasher::new();
        (self.pace.seed, &self.name, self.pauses).hash(&mut hasher);
        self.pauses += 1;
        f64::from(hasher.finish() as u32) / f64::from(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    fn backoff() -> Backoff {
        Backoff::new(Pace { seed: 1, ..Pace::default() }, "pods")
    }

    fn at_once(end: RequestFailure) -> EndedStream {
        EndedStream::failed(end, true)
    }

    fn busy(after: Option<u64>) -> RequestFailure {
        RequestFailure::Busy { after: after.map(Duration::from_secs), message: String::new() }
    }

    fn failures() -> Vec<RequestFailure> {
        let text = String::new;
        vec![
            RequestFailure::Ended,
            RequestFailure::Expired(text()),
            RequestFailure::Unreachable(text()),
            RequestFailure::Malformed(text()),
            RequestFailure::Unauthorized(text()),
            RequestFailure::Refused(text()),
            RequestFailure::Absent(text()),
            RequestFailure::Server { code: 500, message: text(), after: None },
            RequestFailure::Server {
                code: 503,
                message: text(),
                after: Some(Duration::from_secs(1)),
            },
            busy(None),
            busy(Some(1)),
        ]
    }

    #[test]
    fn every_failure_backs_off_as_client_go_does() {
        for failure in failures() {
            let mut backoff = backoff();
            for base in [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0] {
                let pause = backoff.pause(&at_once(failure.clone()));
                let expected = seconds(base)..=seconds(base * 2.0);
                assert!(expected.contains(&pause), "{failure}: {pause:?} for {base}");
            }
        }
    }

    #[test]
    fn the_lengths_are_the_seeds_and_differ_between_kinds() {
        let pauses = |seed, name: &str| {
            let mut backoff = Backoff::new(Pace { seed, ..Pace::default() }, name);
            [(); 5].map(|()| backoff.pause(&at_once(RequestFailure::Ended)))
        };
        assert_eq!(pauses(1, "pods"), pauses(1, "pods"));
        assert_ne!(pauses(1, "pods"), pauses(2, "pods"));
        assert_ne!(pauses(1, "pods"), pauses(1, "nodes"));
    }

    #[test]
    fn only_progress_resets_it() {
        let after_five = |attempt: EndedStream| {
            let mut backoff = backoff();
            for _ in 0..5 {
                backoff.pause(&at_once(RequestFailure::Ended));
            }
            backoff.pause(&attempt)
        };
        let cut = RequestFailure::Unreachable(String::new());
        let lived = |lived: f64, end: &RequestFailure| {
            after_five(EndedStream { lived: seconds(lived), ..at_once(end.clone()) })
        };
        let first = seconds(0.8)..=seconds(1.6);
        assert!(lived(0.9, &cut) >= seconds(25.6));
        assert!(first.contains(&lived(1.0, &cut)));
        assert!(
            first.contains(&after_five(EndedStream { delivered: true, ..at_once(cut.clone()) }))
        );
        // A watch that worked for long is reopened immediately, except after 410, which needs a
        // list.
        assert_eq!([lived(300.0, &cut), lived(300.0, &RequestFailure::Ended)], [Duration::ZERO; 2]);
        assert!(first.contains(&lived(300.0, &RequestFailure::Expired(String::new()))));
        // A line that does not end is no progress, even after minutes.
        assert!(lived(300.0, &RequestFailure::Malformed(String::new())) >= seconds(25.6));
    }

    #[test]
    fn a_server_may_ask_for_longer_pauses_not_for_shorter_ones() {
        let mut backoff = backoff();
        let mut pause = |after| backoff.pause(&at_once(busy(after)));
        assert_eq!(pause(Some(7)), seconds(7.0));
        assert!((0..5).all(|_| pause(Some(1)) >= seconds(1.6)));
        assert!(pause(Some(1)) >= seconds(30.0));
    }

    #[test]
    fn what_may_not_be_read_is_asked_for_rarely_unless_it_was_read_before() {
        for failure in
            [RequestFailure::Refused(String::new()), RequestFailure::Absent(String::new())]
        {
            let mut backoff = backoff();
            assert_eq!(backoff.pause(&EndedStream::failed(failure.clone(), false)), MINUTE);
            assert!(backoff.pause(&at_once(failure)) < MINUTE);
        }
    }

    #[test]
    fn the_first_retry_is_no_outage_if_it_comes_soon() {
        let mut backoff = backoff();
        let pause = backoff.pause(&at_once(RequestFailure::Ended));
        assert!(!backoff.is_outage(pause));
        assert!(backoff.is_outage(seconds(7.0)));
        let pause = backoff.pause(&at_once(RequestFailure::Ended));
        assert!(backoff.is_outage(pause));
    }

    /// Requests a minute, if every attempt makes `each` of them.
    fn requests(each: u32, attempt: &EndedStream) -> u32 {
        let (mut backoff, mut now, mut count) = (backoff(), Duration::ZERO, 0);
        while now < MINUTE {
            count += each;
            now += attempt.lived + backoff.pause(attempt);
        }
        count
    }

    #[test]
    fn a_minute_of_any_failure_costs_few_requests() {
        for failure in failures() {
            // After 410 the attempt lists before it watches; after 401 it lists with new
            // credentials.
            assert!(requests(2, &at_once(failure.clone())) <= 14, "{failure}");
        }
        // The worst case: a server that seems to make progress each time.
        let delivered = EndedStream { delivered: true, ..at_once(RequestFailure::Ended) };
        assert!(requests(1, &delivered) <= 75, "{}", requests(1, &delivered));
        let lived = EndedStream { lived: seconds(1.0), ..at_once(RequestFailure::Ended) };
        assert!(requests(1, &lived) <= 34, "{}", requests(1, &lived));
    }
}
