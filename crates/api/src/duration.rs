//! Spans of time as Kubernetes configuration writes them: `1m30s`, possibly negative.
//!
//! Parsing and printing follow Go's `time.ParseDuration` and `Duration.String`, which upstream uses
//! through `metav1.Duration`. Arithmetic saturates, at some 292 years.

use std::fmt;
use std::ops::{Add, Mul, Neg, Sub};

/// A signed span of time in nanoseconds. The difference of two [`Time`](crate::Time)s is one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Duration {
    /// In nanoseconds; may be negative.
    pub nanos: i64,
}

/// The units with their length in nanoseconds.
const UNITS: [(&str, i64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

impl Duration {
    /// No time at all, the default.
    pub const ZERO: Duration = Duration { nanos: 0 };
    /// The resolution of [`Time`](crate::Time).
    pub const MICROSECOND: Duration = Duration::from_micros(1);
    /// 1,000,000,000 nanoseconds.
    pub const SECOND: Duration = Duration::from_secs(1);

    /// So many seconds, as many as fit into 64 bits of nanoseconds.
    pub const fn from_secs(seconds: i64) -> Duration {
        Duration { nanos: seconds.saturating_mul(1_000_000_000) }
    }

    /// So many milliseconds, as many as fit into 64 bits of nanoseconds.
    pub const fn from_millis(millis: i64) -> Duration {
        Duration { nanos: millis.saturating_mul(1_000_000) }
    }

    /// So many microseconds, as many as fit into 64 bits of nanoseconds.
    pub const fn from_micros(micros: i64) -> Duration {
        Duration { nanos: micros.saturating_mul(1_000) }
    }

    /// The duration in microseconds, rounded towards zero.
    pub const fn as_micros(self) -> i64 {
        self.nanos / 1_000
    }

    /// Parses `-1h2m3.5s`. `None` if it is no duration or exceeds 64 bits.
    pub fn parse(text: &str) -> Option<Duration> {
        let (negative, mut rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        if rest == "0" {
            return Some(Duration::default());
        }
        if rest.is_empty() {
            return None;
        }
        let mut total: i128 = 0;
        while !rest.is_empty() {
            let (nanos, tail) = part(rest)?;
            total += nanos;
            rest = tail;
        }
        let nanos = if negative { -total } else { total };
        i64::try_from(nanos).ok().map(|nanos| Duration { nanos })
    }
}

impl Add for Duration {
    type Output = Duration;
    fn add(self, other: Duration) -> Duration {
        Duration { nanos: self.nanos.saturating_add(other.nanos) }
    }
}

impl Sub for Duration {
    type Output = Duration;
    fn sub(self, other: Duration) -> Duration {
        Duration { nanos: self.nanos.saturating_sub(other.nanos) }
    }
}

impl Mul<i64> for Duration {
    type Output = Duration;
    fn mul(self, times: i64) -> Duration {
        Duration { nanos: self.nanos.saturating_mul(times) }
    }
}

impl Neg for Duration {
    type Output = Duration;
    fn neg(self) -> Duration {
        Duration { nanos: self.nanos.saturating_neg() }
    }
}

/// The first number with its unit, in nanoseconds, and the rest of `text`.
fn part(text: &str) -> Option<(i128, &str)> {
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let number_end = text.find(|c| !is_number(c))?;
    let (number, rest) = text.split_at(number_end);
    let unit_end = rest.find(is_number).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(unit_end);
    let unit = UNITS.iter().find(|(name, _)| *name == unit)?.1;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') || whole.len() > 19 {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    Some((whole * i128::from(unit) + fraction_nanos(fraction, unit), rest))
}

/// `0.fraction` of `unit`, in nanoseconds, rounded down.
fn fraction_nanos(fraction: &str, unit: i64) -> i128 {
    let digits = &fraction[..fraction.len().min(18)];
    let value: i128 = digits.parse().unwrap_or(0);
    value * i128::from(unit) / 10_i128.pow(digits.len() as u32)
}

impl fmt::Display for Duration {
    /// `10m0s`, `1.5s`, `0s`, `2ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.nanos < 0 { "-" } else { "" };
        let nanos = self.nanos.unsigned_abs();
        let text = match nanos {
            0 => "0s".to_owned(),
            1..1_000 => format!("{nanos}ns"),
            1_000..1_000_000 => format!("{}µs", decimal(nanos, 3)),
            1_000_000..1_000_000_000 => format!("{}ms", decimal(nanos, 6)),
            _ => hours_minutes_seconds(nanos),
        };
        f.pad(&format!("{sign}{text}"))
    }
}

fn hours_minutes_seconds(nanos: u64) -> String {
    let minutes = nanos / 60_000_000_000;
    let seconds = decimal(nanos % 60_000_000_000, 9);
    match (minutes / 60, minutes % 60) {
        (0, 0) => format!("{seconds}s"),
        (0, minutes) => format!("{minutes}m{seconds}s"),
        (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
    }
}

/// `value / 10^digits` without trailing zeros.
fn decimal(value: u64, digits: u32) -> String {
    let scale = 10_u64.pow(digits);
    let fraction = format!("{:0width$}", value % scale, width = digits as usize);
    match fraction.trim_end_matches('0') {
        "" => format!("{}", value / scale),
        fraction => format!("{}.{fraction}", value / scale),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(text: &str) -> Option<String> {
        Duration::parse(text).map(|duration| duration.to_string())
    }

    #[test]
    fn durations_print_as_go_prints_them() {
        for (text, printed) in [
            ("600s", "10m0s"),
            ("1h", "1h0m0s"),
            ("-1.5h", "-1h30m0s"),
            ("0", "0s"),
            ("+5s", "5s"),
            ("1500ms", "1.5s"),
            ("1.5ms", "1.5ms"),
            ("2us3ns", "2.003µs"),
            (".5s", "500ms"),
            ("7ns", "7ns"),
        ] {
            assert_eq!(round(text).as_deref(), Some(printed), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_rejected() {
        for text in ["", "-", "5", "s", "1 s", "5x", "1..5s", ".s", "99999999999h", "1h-5m", "é"] {
            assert_eq!(round(text), None, "{text}");
        }
    }
}
