//! Durations, counted in buckets that are fine enough for percentiles.

/// Buckets of one power of two: a duration is known to 1/64.
const FINE: usize = 64;

/// Durations in nanoseconds, counted by buckets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// By bucket; empty ones at the end are left out.
    counts: Vec<u64>,
    count: u64,
    sum: u64,
    max: u64,
}

impl Histogram {
    /// Adds a duration in nanoseconds.
    pub fn add(&mut self, nanos: u64) {
        let bucket = bucket(nanos);
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.count += 1;
        self.sum += nanos;
        self.max = self.max.max(nanos);
    }

    /// How many durations there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum in nanoseconds.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// The longest, in nanoseconds.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The mean in nanoseconds; 0 without durations.
    pub fn average(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// The duration in nanoseconds that `percent` of them do not exceed; 0 without durations.
    pub(crate) fn percentile(&self, percent: u64) -> u64 {
        let wanted = (self.count * percent).div_ceil(100);
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted && seen > 0 {
                return upper(bucket).min(self.max);
            }
        }
        self.max
    }
}

/// Below [`FINE`] each duration has a bucket, then each power of two has [`FINE`] of them.
fn bucket(nanos: u64) -> usize {
    let bits = nanos.checked_ilog2().unwrap_or(0) as usize;
    let fine = FINE.ilog2() as usize;
    match bits < fine {
        true => nanos as usize,
        false => (bits - fine) * FINE + (nanos >> (bits - fine)) as usize,
    }
}

/// The longest duration of a bucket.
fn upper(bucket: usize) -> u64 {
    if bucket < 2 * FINE {
        return bucket as u64;
    }
    let power = bucket / FINE - 1;
    let first = (bucket % FINE + FINE) as u64;
    ((first + 1) << power) - 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn percentiles_are_near_the_durations() {
        let mut all = Histogram::default();
        assert_eq!((all.percentile(99), all.average()), (0, 0.0));
        (1..=1000).for_each(|micros| all.add(micros * 1000));
        assert_eq!((all.count(), all.max(), all.sum()), (1000, 1_000_000, 500_500_000));
        for (percent, expected) in [(50, 500_000.0), (90, 900_000.0), (99, 990_000.0)] {
            let found = all.percentile(percent) as f64;
            assert!((found / expected - 1.0).abs() < 0.02, "{percent}: {found}");
        }
        assert_eq!(all.percentile(100), 1_000_000);
    }

    proptest! {
        #[test]
        fn a_bucket_holds_what_is_near(nanos in 0..u64::MAX / 4) {
            let (this, next) = (bucket(nanos), bucket(nanos + 1));
            prop_assert!(nanos <= upper(this) && upper(this) - nanos <= nanos / 32);
            prop_assert!(next == this || next == this + 1);
            prop_assert!(this == 0 || upper(this - 1) < nanos);
        }
    }
}
