//! Pods scheduled in a second, sampled as upstream's collector does.

use crate::SECOND;

/// Upstream's interval between two samples, in nanoseconds.
const INTERVAL: u64 = SECOND;
/// Samples that a measurement should have at least, for percentiles.
const SAMPLES: u64 = 20;

/// Scheduled pods per second, sampled at intervals.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Throughput {
    /// Pods per second of each interval, ascending.
    samples: Vec<f64>,
    /// Nanoseconds between two of them.
    pub interval: u64,
}

impl Throughput {
    /// Samples a measurement that began at `begin` and ended at `end`, with the times at which pods
    /// were scheduled, ascending.
    ///
    /// Upstream samples every second, which is too rare for a scheduler that needs less for the
    /// whole workload: the interval is then a power of ten shorter. As upstream, sampling starts
    /// with the first interval in which a pod was scheduled, that interval is left out, and one
    /// without a scheduled pod counts as part of the next.
    pub fn new(begin: u64, end: u64, scheduled: &[u64]) -> Throughput {
        let (Some(first), Some(last)) = (scheduled.first(), scheduled.last()) else {
            return Throughput { samples: Vec::new(), interval: INTERVAL };
        };
        let mut interval = INTERVAL;
        while interval > 1 && (last - first) / interval < SAMPLES {
            interval /= 10;
        }
        let mut samples = sample(begin, end, interval, scheduled);
        samples.sort_by(f64::total_cmp);
        Throughput { samples, interval }
    }

    /// The mean of the samples; `None` without samples.
    pub fn average(&self) -> Option<f64> {
        let count = self.samples.len();
        (count > 0).then(|| self.samples.iter().sum::<f64>() / count as f64)
    }

    /// The sample that `percent` of them do not exceed.
    pub(crate) fn percentile(&self, percent: usize) -> Option<f64> {
        let at = (self.samples.len() * percent).div_ceil(100);
        self.samples.get(at.checked_sub(1)?).copied()
    }

    /// How many samples there are.
    pub fn count(&self) -> usize {
        self.samples.len()
    }
}

fn sample(begin: u64, end: u64, interval: u64, scheduled: &[u64]) -> Vec<f64> {
    let mut samples = Vec::new();
    let mut rest = scheduled.iter().peekable();
    // The time of the last sample, once there is one.
    let mut last: Option<u64> = None;
    let mut tick = begin;
    while let Some(next) = rest.peek() {
        // Ticks at which nothing was scheduled are skipped at once.
        tick += (**next - tick).div_ceil(interval).max(1) * interval;
        if tick > end {
            break;
        }
        let mut new = 0;
        while rest.next_if(|at| **at <= tick).is_some() {
            new += 1;
        }
        if let Some(last) = last {
            let intervals = (tick - last) / interval;
            let rate = f64::from(new) * SECOND as f64 / (tick - last) as f64;
            samples.extend((0..intervals).map(|_| rate));
        }
        last = Some(tick);
    }
    samples
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_upstreams() {
        // 10 pods in every second from the 3rd to the 42nd, but none in the 30th.
        let all: Vec<u64> = (20..420).map(|tenth| tenth * SECOND / 10 + 1).collect();
        let some: Vec<u64> = all.into_iter().filter(|at| at / SECOND != 29).collect();
        let measured = Throughput::new(0, 43 * SECOND, &some);
        assert_eq!(measured.interval, INTERVAL);
        // The first is left out; the two seconds with 10 pods count as two with 5.
        assert_eq!(measured.count(), 39);
        assert_eq!(measured.percentile(1), Some(5.0));
        assert_eq!(measured.percentile(5), Some(5.0));
        assert_eq!(measured.percentile(50), Some(10.0));
        let average = measured.average().unwrap();
        assert!((average - (37.0 * 10.0 + 2.0 * 5.0) / 39.0).abs() < 1e-9, "{average}");
    }

    #[test]
    fn a_short_measurement_has_a_shorter_interval() {
        // A pod each 100 µs for 50 ms.
        let all: Vec<u64> = (0..500).map(|number| number * 100_000 + 1).collect();
        let measured = Throughput::new(0, 51_000_000, &all);
        assert_eq!(measured.interval, 1_000_000);
        assert_eq!(measured.percentile(50), Some(10_000.0));
        assert_eq!(Throughput::new(0, SECOND, &[]).average(), None);
        assert_eq!(Throughput::new(0, SECOND, &[7]).average(), None);
    }
}
