//! Points in time as in the API (RFC 3339), stored as microseconds.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Microseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub i64);

impl Time {
    /// A second, in microseconds.
    pub const SECOND: i64 = 1_000_000;

    /// Parses an RFC 3339 text; fractions finer than microseconds are truncated.
    pub fn parse(text: &str) -> Result<Time, String> {
        text.parse::<jiff::Timestamp>()
            .map(|time| Time(time.as_microsecond()))
            .map_err(|_| format!("{text:?} is not a time, expected one like 2026-01-31T12:00:00Z"))
    }
}

/// `2026-01-31T12:00:00Z`, with a six-digit fraction if it is not zero.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ok(time) = jiff::Timestamp::from_microsecond(self.0) else {
            return write!(f, "{}µs", self.0);
        };
        if self.0 % Time::SECOND == 0 { write!(f, "{time:.0}") } else { write!(f, "{time:.6}") }
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
    fn refuses_what_is_not_a_time() {
        assert_eq!(
            Time::parse("yesterday"),
            Err(r#""yesterday" is not a time, expected one like 2026-01-31T12:00:00Z"#.into())
        );
        assert!(serde_json::from_str::<Time>("12").is_err());
    }
}
