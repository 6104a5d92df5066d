//! How long preemptions take from the decision until the eviction of every victim is answered.
//!
//! Upstream counts the goroutines that evict, and measures the time before they start
//! (`pkg/scheduler/framework/preemption/executor.go`: arguments of `defer` are evaluated at once).
//! Here the evictions themselves are measured.

use std::collections::HashSet;
use std::time::Instant;

use prometheus::{HistogramVec, IntCounterVec};

use crate::metrics::builder::MetricsBuilder;
use kubestep_framework::record::Candidate;

/// Start of the description of a write that evicts a pod.
const EVICT: &str = "evict ";

/// Series about preemption: how long its evictions take, and how they end.
pub struct Evictions {
    seconds: HistogramVec,
    total: IntCounterVec,
    under_way: Vec<Preemption>,
}

/// A preemption with unanswered evictions.
struct Preemption {
    began: Instant,
    /// The keys of the remaining victims.
    left: HashSet<String>,
    failed: bool,
}

impl Evictions {
    /// All counters at zero.
    ///
    /// # Errors
    /// Prometheus rejects a metric's name or labels.
    pub fn new(make: &MetricsBuilder<'_>) -> prometheus::Result<Evictions> {
        Ok(Evictions {
            seconds: make.histograms(
                "preemption_goroutines_duration_seconds",
                "Time of a preemption until all evictions completed",
                &["result"],
                (0.01, 2.0, 20),
            )?,
            total: make.counters(
                "preemption_goroutines_execution_total",
                "Preemptions whose evictions completed",
                &["result"],
            )?,
            under_way: Vec::new(),
        })
    }

    /// Starts the measurement of a preemption.
    pub fn begin(&mut self, chosen: &Candidate) {
        let left: HashSet<String> = chosen.victims.iter().map(ToString::to_string).collect();
        if !left.is_empty() {
            self.under_way.push(Preemption { began: Instant::now(), left, failed: false });
        }
    }

    /// Records the answer to a write, described by `what`.
    pub fn answered(&mut self, what: &str, failed: bool) {
        let Some(victim) = what.strip_prefix(EVICT) else { return };
        let found = self.under_way.iter_mut().enumerate();
        let mut found = found.filter(|(_, preemption)| preemption.left.contains(victim));
        let Some((at, preemption)) = found.next() else { return };
        preemption.left.remove(victim);
        preemption.failed |= failed;
        if preemption.left.is_empty() {
            let result = if preemption.failed { "error" } else { "success" };
            self.total.with_label_values(&[result]).inc();
            let took = preemption.began.elapsed().as_secs_f64();
            self.seconds.with_label_values(&[result]).observe(took);
            self.under_way.remove(at);
        }
    }
}
