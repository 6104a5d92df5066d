//! How fast the virtual clock runs while playing.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Virtual time for each unit of real time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed(f64);

/// Those that keys choose between, slowest first.
const STEPS: [f64; 9] = [0.5, 1.0, 2.0, 5.0, 10.0, 60.0, 300.0, 3600.0, f64::INFINITY];

impl Default for Speed {
    fn default() -> Speed {
        Speed(1.0)
    }
}

impl Speed {
    /// The next faster one.
    pub fn faster(self) -> Speed {
        Speed(STEPS.into_iter().find(|step| *step > self.0).unwrap_or(f64::INFINITY))
    }

    /// The next slower one.
    pub fn slower(self) -> Speed {
        Speed(STEPS.into_iter().rev().find(|step| *step < self.0).unwrap_or(STEPS[0]))
    }

    /// Virtual microseconds that pass meanwhile.
    pub fn flow(self, passed: Duration) -> i64 {
        // A float beyond the integers becomes the largest one.
        (passed.as_micros() as f64 * self.0) as i64
    }

    /// How long a real pause becomes.
    pub fn pause(self, pause: Duration) -> Duration {
        pause.div_f64(self.0.max(STEPS[0]))
    }

    /// Whether nothing is waited for.
    pub fn is_unlimited(self) -> bool {
        self.0.is_infinite()
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_unlimited() {
            true => write!(f, "∞×"),
            false => write!(f, "{}×", self.0),
        }
    }
}

impl FromStr for Speed {
    type Err = String;

    fn from_str(text: &str) -> Result<Speed, String> {
        let speed = match text.trim() {
            "max" | "∞" => Some(f64::INFINITY),
            number => number.trim_end_matches(['x', '×']).parse().ok(),
        };
        let valid = speed.filter(|speed| (0.01..=1e9).contains(speed) || *speed == f64::INFINITY);
        valid.map(Speed).ok_or_else(|| {
            format!("{text:?} is not a speed; write a number like 0.5 or 60, or max")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_numbers_or_without_limit() {
        for (text, shown) in [("0.5", "0.5×"), ("10x", "10×"), (" 60 ", "60×"), ("max", "∞×")]
        {
            assert_eq!(text.parse::<Speed>().unwrap().to_string(), shown);
        }
        for wrong in ["", "0", "-1", "fast", "nan", "1e99"] {
            assert!(wrong.parse::<Speed>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn keys_go_up_to_no_limit_and_down_to_half() {
        let mut speed = Speed::default();
        for _ in 0..20 {
            speed = speed.faster();
        }
        assert!(speed.is_unlimited());
        assert_eq!(speed.flow(Duration::from_millis(1)), i64::MAX);
        assert_eq!(speed.pause(Duration::from_secs(1)), Duration::ZERO);
        for _ in 0..20 {
            speed = speed.slower();
        }
        assert_eq!(speed.to_string(), "0.5×");
        assert_eq!(speed.flow(Duration::from_secs(2)), 1_000_000);
        assert_eq!(speed.pause(Duration::from_secs(2)), Duration::from_secs(4));
    }
}
