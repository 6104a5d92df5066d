//! Points in time as in the API (RFC 3339), stored as microseconds.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Duration;

/// A point in time: microseconds since 1970-01-01T00:00:00Z. Arithmetic saturates; what a
/// [`Duration`] has beyond microseconds is dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub i64);

/// A text is not a time in RFC 3339.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0:?} is not a time, expected one like 2026-01-31T12:00:00Z")]
pub struct ParseTimeError(pub String);

impl Time {
    /// Parses an RFC 3339 text; fractions finer than microseconds are truncated.
    ///
    /// # Errors
    /// The text is no such time.
    pub fn parse(text: &str) -> Result<Time, ParseTimeError> {
        text.parse::<jiff::Timestamp>()
            .map(|time| Time(time.as_microsecond()))
            .map_err(|_| ParseTimeError(text.to_owned()))
    }

    /// The last whole second that is not later.
    pub fn truncated_to_seconds(self) -> Time {
        Time(self.0 - self.0.rem_euclid(Duration::SECOND.as_micros()))
    }
}

impl Add<Duration> for Time {
    type Output = Time;
    fn add(self, span: Duration) -> Time {
        Time(self.0.saturating_add(span.as_micros()))
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl Sub<Duration> for Time {
    type Output = Time;
    fn sub(self, span: Duration) -> Time {
        Time(self.0.saturating_sub(span.as_micros()))
    }
}

/// The span since an earlier time; negative if that is later.
impl Sub for Time {
    type Output = Duration;
    fn sub(self, earlier: Time) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

/// `2026-01-31T12:00:00Z`, with a six-digit fraction if it is not zero.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ok(time) = jiff::Timestamp::from_microsecond(self.0) else {
            return write!(f, "{}µs", self.0);
        };
        match *self == self.truncated_to_seconds() {
            true => write!(f, "{time:.0}"),
            false => write!(f, "{time:.6}"),
        }
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
        crate::macros::text(deserializer, Time::parse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_rfc_3339() {
        let cases = [
            ("1970-01-01T00:00:00Z", 0, "1970-01-01T00:00:00Z"),
            ("2026-01-01T00:00:00Z", 1_767_225_600_000_000, "2026-01-01T00:00:00Z"),
            ("2026-01-01T00:00:00.5Z", 1_767_225_600_500_000, "2026-01-01T00:00:00.500000Z"),
            ("2026-01-01T01:00:00+01:00", 1_767_225_600_000_000, "2026-01-01T00:00:00Z"),
            ("2026-01-01T00:00:00.1234567Z", 1_767_225_600_123_456, "2026-01-01T00:00:00.123456Z"),
        ];
        for (text, micros, written) in cases {
            assert_eq!(Time::parse(text), Ok(Time(micros)), "{text}");
            assert_eq!(Time(micros).to_string(), written);
        }
    }

    #[test]
    fn differences_of_times_are_durations() {
        let (start, span) = (Time(5_500_000), Duration::from_secs(3));
        assert_eq!(start + span, Time(8_500_000));
        assert_eq!(start - span, Time(2_500_000));
        assert_eq!(start - (start + span), -span);
        assert_eq!(start + Duration { nanos: 1_999 }, Time(5_500_001));
        assert_eq!(
            [start, Time(-1)].map(Time::truncated_to_seconds),
            [5_000_000, -1_000_000].map(Time)
        );
        assert_eq!(Time(i64::MAX) + span, Time(i64::MAX));
    }

    #[test]
    fn rejects_what_is_not_a_time() {
        let rejection = Time::parse("yesterday").map_err(|err| err.to_string());
        let text = r#""yesterday" is not a time, expected one like 2026-01-31T12:00:00Z"#;
        assert_eq!(rejection, Err(text.to_owned()));
        assert!(serde_json::from_str::<Time>("12").is_err());
    }
}
