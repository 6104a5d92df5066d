//! Wording that messages of several packages share.

use std::fmt::Display;

/// A number of things: `1 node`, `2 nodes`, `3 patches`.
pub fn count<N: Display + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    let hisses = ["s", "x", "ch", "sh"].iter().any(|end| noun.ends_with(end));
    let ending = match hisses {
        _ if number == N::from(1) => "",
        true => "es",
        false => "s",
    };
    format!("{number} {noun}{ending}")
}

/// A span of time in its one or two largest units: `850ms`, `12.5s`, `4m05s`, `1h03m`, `2d01h`.
pub fn span(microseconds: i64) -> String {
    let sign = if microseconds < 0 { "-" } else { "" };
    let micros = microseconds.unsigned_abs();
    let (seconds, millis) = (micros / 1_000_000, micros / 1_000 % 1_000);
    match seconds {
        0 if millis == 0 && micros > 0 => format!("{sign}{micros}µs"),
        0 if millis > 0 => format!("{sign}{millis}ms"),
        0..60 if millis >= 100 => format!("{sign}{seconds}.{}s", millis / 100),
        0..60 => format!("{sign}{seconds}s"),
        60..3_600 => format!("{sign}{}m{:02}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{sign}{}h{:02}m", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{sign}{}d{:02}h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_two_units() {
        let cases = [
            (0, "0s"),
            (7, "7µs"),
            (1_000, "1ms"),
            (850_000, "850ms"),
            (12_500_000, "12.5s"),
            (12_030_000, "12s"),
            (245_000_000, "4m05s"),
            (3_780_000_000, "1h03m"),
            (176_400_000_000, "2d01h"),
            (-2_000_000, "-2s"),
        ];
        for (micros, text) in cases {
            assert_eq!(span(micros), text);
        }
    }

    #[test]
    fn one_is_not_many() {
        let counted = [count(0_usize, "node"), count(1_u64, "node"), count(2_i64, "more node")];
        assert_eq!(counted, ["0 nodes", "1 node", "2 more nodes"]);
        assert_eq!([count(1_u16, "patch"), count(2_u16, "patch")], ["1 patch", "2 patches"]);
    }
}
