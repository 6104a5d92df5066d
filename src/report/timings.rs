//! The times a run took, as one JSON object.

use serde_json::json;

use kubestep_debug::Session;
use kubestep_framework::record::Outcome;

/// What `kubestep run --timings` prints.
#[derive(Clone, PartialEq, Debug)]
pub struct Timings {
    load_s: f64,
    cycle_s: f64,
    nodes: usize,
    pods: usize,
    cycles: usize,
    scheduled: usize,
    unschedulable: usize,
    peak_rss_bytes: u64,
}

impl Timings {
    /// The timings of a session that took `load_s` seconds to load and `cycle_s` seconds for its
    /// cycles.
    pub fn new(session: &Session, load_s: f64, cycle_s: f64) -> Timings {
        let count = |outcome: Outcome| {
            session.history().cycles().filter(|record| record.outcome == outcome).count()
        };
        let world = session.world();
        Timings {
            load_s,
            cycle_s,
            nodes: world.scheduler().cache().node_count(),
            pods: world.api().objects().pods.len(),
            cycles: session.history().cycles().count(),
            scheduled: count(Outcome::Scheduled),
            unschedulable: count(Outcome::Unschedulable),
            peak_rss_bytes: peak_rss_bytes().unwrap_or(0),
        }
    }

    /// As JSON, on one line.
    pub fn to_json(&self) -> serde_json::Value {
        json!({
            "schema": "kubestep/timings/v1",
            "load_s": self.load_s,
            "nodes": self.nodes,
            "pods": self.pods,
            "cycles": self.cycles,
            "scheduled": self.scheduled,
            "unschedulable": self.unschedulable,
            "cycle_s": self.cycle_s,
            "cycles_per_s": self.cycles as f64 / self.cycle_s.max(f64::MIN_POSITIVE),
            "peak_rss_bytes": self.peak_rss_bytes,
        })
    }
}

/// The peak resident set size of this process; known on Linux only.
fn peak_rss_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}
