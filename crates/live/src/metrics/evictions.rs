//! How long preemptions take from the decision until every victim's eviction is answered.
//!
//! Upstream counts the goroutines that do it, and measures the time before they begin
//! (`pkg/scheduler/framework/preemption/executor.go`: arguments of `defer` are evaluated at once).
//! Here it is the time that they take.

use std::collections::HashSet;
use std::time::Instant;

use prometheus::{HistogramVec, IntCounterVec};

use crate::metrics::make::Maker;
use kubestep_framework::record::Candidate;

/// How the words for a write begin that evicts a pod.
const EVICT: &str = "evict ";

/// Series about preemption: how long the evictions of a preemption take, and how they end.
pub struct Evictions {
    seconds: HistogramVec,
    total: IntCounterVec,
    under_way: Vec<Preemption>,
}

/// A preemption whose evictions are not all answered.
struct Preemption {
    began: Instant,
    /// The keys of victims.
    left: HashSet<String>,
    failed: bool,
}

impl Evictions {
    /// Nothing evicted yet.
    ///
    /// # Errors
    /// A metric's name or labels are not what Prometheus takes.
    pub fn new(make: &Maker<'_>) -> prometheus::Result<Evictions> {
        Ok(Evictions {
            seconds: make.histograms(
                "preemption_goroutines_duration_seconds",
                "Time of a preemption until every eviction is answered",
                &["result"],
                (0.01, 2.0, 20),
            )?,
            total: make.counters(
                "preemption_goroutines_execution_total",
                "Preemptions whose evictions are answered",
                &["result"],
            )?,
            under_way: Vec::new(),
        })
    }

    /// A preemption begins.
    pub fn begin(&mut self, chosen: &Candidate) {
        let left: HashSet<String> = chosen.victims.iter().map(ToString::to_string).collect();
        if !left.is_empty() {
            self.under_way.push(Preemption { began: Instant::now(), left, failed: false });
        }
    }

    /// A write was answered: `what` says which.
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
