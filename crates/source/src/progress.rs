//! Reports the progress of reading.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::SourceError;

/// Default limit for the text of a file, in bytes: twice a dump of 15,000 nodes and 150,000 pods.
const LIMIT: u64 = 8 << 30;

/// The progress of reading, which another thread can watch and cancel, and its limit. Prints as
/// `1.20 GB of 4.89 GB read, 40,312 objects`.
#[derive(Debug)]
pub struct Progress {
    /// Limit for the uncompressed text of one file, in bytes. A text that is held as a whole, such
    /// as YAML, is limited to an eighth of that.
    limit: u64,
    /// Size of the files as stored, in bytes; 0 if unknown.
    pub total: AtomicU64,
    /// Bytes of `total` read so far.
    pub read: AtomicU64,
    /// Bytes of uncompressed text so far.
    pub bytes: AtomicU64,
    /// Objects found so far.
    pub found: AtomicU64,
    /// Objects decoded so far.
    pub decoded: AtomicU64,
    /// Whether reading has ended and the objects are being processed.
    pub is_read: AtomicBool,
    /// Set to cancel: reading then ends with [`SourceError::cancelled`].
    pub cancel: AtomicBool,
}

impl Default for Progress {
    fn default() -> Progress {
        Progress {
            limit: LIMIT,
            total: AtomicU64::default(),
            read: AtomicU64::default(),
            bytes: AtomicU64::default(),
            found: AtomicU64::default(),
            decoded: AtomicU64::default(),
            is_read: AtomicBool::default(),
            cancel: AtomicBool::default(),
        }
    }
}

impl Progress {
    /// Nothing read yet. `mebibytes` limits the text of a file, in MiB; `None`: the default.
    pub fn with_limit(mebibytes: Option<u32>) -> Progress {
        let limit = mebibytes.map_or(LIMIT, |mebibytes| u64::from(mebibytes) << 20);
        Progress { limit, ..Progress::default() }
    }

    /// Limits for the text of one file in bytes: in general, and if it is held as a whole.
    pub(super) fn limits(&self) -> (u64, u64) {
        (self.limit, self.limit / 8)
    }

    pub(super) fn check(&self) -> Result<(), Box<SourceError>> {
        if self.cancel.load(Ordering::Relaxed) {
            return Err(SourceError::cancelled());
        }
        Ok(())
    }

    /// The fraction that was read, 0 to 1; `None` if the total is unknown.
    pub fn part(&self) -> Option<f64> {
        let (read, total) = (get(&self.read), get(&self.total));
        (total > 0).then(|| read.min(total) as f64 / total as f64)
    }
}

fn get(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let objects = thousands(get(&self.found));
        if self.is_read.load(Ordering::Relaxed) {
            return write!(f, "{objects} objects read, building the cluster");
        }
        match get(&self.total) {
            0 => write!(f, "{} read, {objects} objects", bytes(get(&self.read))),
            total => {
                write!(f, "{} of {} read, {objects} objects", bytes(get(&self.read)), bytes(total))
            }
        }
    }
}

/// Decimal units, as for disks and files: `1.20 GB`.
fn bytes(count: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    match UNITS.iter().find(|(unit, _)| count >= *unit) {
        Some((unit, name)) => format!("{:.2} {name}", count as f64 / *unit as f64),
        None => format!("{count} B"),
    }
}

/// The number with separators, `40,312`.
fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_reported_in_large_units() {
        let progress = Progress { read: 999.into(), found: 12.into(), ..Progress::default() };
        assert_eq!(progress.to_string(), "999 B read, 12 objects");
        assert_eq!(progress.part(), None);
        let (read, total) = (1_204_000_000.into(), 4_816_000_000.into());
        let progress = Progress { read, total, found: 40_312.into(), ..Progress::default() };
        assert_eq!(progress.to_string(), "1.20 GB of 4.82 GB read, 40,312 objects");
        assert_eq!(progress.part(), Some(0.25));
        progress.is_read.store(true, Ordering::Relaxed);
        let expected = "40,312 objects read, building the cluster";
        assert_eq!(progress.to_string(), expected);
        assert_eq!(["0", "999", "1,000", "1,234,567"], [0, 999, 1_000, 1_234_567].map(thousands));
    }
}
