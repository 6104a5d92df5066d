//! The wall clock, and the API server's clock as its `Date` headers report it.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

use kubestep_api::Time;
use kubestep_framework::stopwatch::Clock;

/// Microseconds up to which two clocks count as equal: `Date` has whole seconds, and answers take
/// time.
const TOLERATED: i64 = 2_000_000;

/// The computer's own clock, for measuring: nanoseconds since it was made.
pub struct WallClock(Instant);

impl Default for WallClock {
    fn default() -> WallClock {
        WallClock(Instant::now())
    }
}

impl Clock for WallClock {
    fn nanos(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// The time by the local clock.
pub fn local() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// The part of a difference between two clocks, in microseconds, that is more than imprecision.
pub fn counted(skew: i64) -> i64 {
    if skew.abs() <= TOLERATED { 0 } else { skew }
}

/// A sentence about clocks that differ.
pub(crate) fn skew_notice(skew: i64) -> Option<String> {
    let seconds = counted(skew).unsigned_abs() / 1_000_000;
    let direction = if skew > 0 { "behind" } else { "ahead of" };
    (seconds > 0).then(|| {
        format!("this machine's clock is {seconds} s {direction} the API server's; times shown are the server's")
    })
}

/// Parses the `Date` header of an answer: `Sun, 06 Nov 1994 08:49:37 GMT`.
pub(crate) fn parse_http(date: &str) -> Option<Time> {
    let zoned = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(date).ok()?;
    Some(Time(Timestamp::as_microsecond(zoned)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_answers() {
        let time = parse_http("Thu, 01 Jan 2026 00:00:00 GMT").unwrap();
        assert_eq!(time.to_string(), "2026-01-01T00:00:00Z");
        assert_eq!(parse_http("yesterday"), None);
    }

    #[test]
    fn clocks_that_differ_are_reported() {
        assert_eq!(skew_notice(1_500_000), None);
        let behind =
            "this machine's clock is 90 s behind the API server's; times shown are the server's";
        assert_eq!(skew_notice(90_000_000).as_deref(), Some(behind));
        assert!(skew_notice(-5_000_000).unwrap().contains("5 s ahead of"));
    }
}
