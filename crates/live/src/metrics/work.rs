//! What the scheduler does apart from calling plugins at extension points: batching, queueing
//! hints, pod groups.

use prometheus::{Histogram, HistogramVec, IntCounterVec};

use crate::metrics::builder::{Buckets, MetricsBuilder};
use kubestep_config::{Feature, FeatureGates};
use kubestep_framework::stopwatch::{Done, Work};

/// From 0.01 ms to 20 ms.
const BATCHING: Buckets = (0.000_01, 2.0, 12);
/// From 1 ms to 16 s, as for scheduling attempts.
const ATTEMPT: Buckets = (0.001, 2.0, 15);

/// Series about the work of a cycle: node hints and batching.
pub struct WorkMetrics {
    node_hint: HistogramVec,
    stored: HistogramVec,
    batch_attempts: IntCounterVec,
    batch_flushes: IntCounterVec,
    queueing_hint: HistogramVec,
    groups: Option<Groups>,
    conditions: Option<BindingConditions>,
}

/// Series about devices with binding conditions.
struct BindingConditions {
    allocations: IntCounterVec,
    waited: HistogramVec,
}

impl BindingConditions {
    fn new(make: &MetricsBuilder<'_>) -> prometheus::Result<BindingConditions> {
        let labels = ["profile", "driver", "status"];
        Ok(BindingConditions {
            allocations: make.counters(
                "dra_bindingconditions_allocations_total",
                "Attempts with devices that have binding conditions, by driver and result",
                &labels,
            )?,
            waited: make.histograms(
                "dra_bindingconditions_wait_duration_seconds",
                "Time of the wait for binding conditions in PreBind",
                &labels,
                (0.1, 2.0, 14),
            )?,
        })
    }
}

struct Groups {
    attempts: IntCounterVec,
    attempt: HistogramVec,
    algorithm: Histogram,
}

impl Groups {
    fn new(make: &MetricsBuilder<'_>) -> prometheus::Result<Groups> {
        Ok(Groups {
            attempts: make.counters(
                "podgroup_schedule_attempts_total",
                "Attempts to schedule pod groups, by result",
                &["result", "profile"],
            )?,
            attempt: make.histograms(
                "podgroup_scheduling_attempt_duration_seconds",
                "Time of a pod group's scheduling cycle",
                &["result", "profile"],
                ATTEMPT,
            )?,
            algorithm: make.histogram(
                "podgroup_scheduling_algorithm_duration_seconds",
                "Time to find nodes for a pod group",
                ATTEMPT,
            )?,
        })
    }
}

impl WorkMetrics {
    /// All counters at zero. The series of pod groups and of binding conditions exist only with
    /// their feature gates.
    ///
    /// # Errors
    /// Prometheus rejects a metric's name or labels.
    pub fn new(make: &MetricsBuilder<'_>, gates: &FeatureGates) -> prometheus::Result<WorkMetrics> {
        let groups = gates.enabled(Feature::GenericWorkload).then(|| Groups::new(make));
        let conditions = gates.enabled(Feature::DRADeviceBindingConditions);
        let conditions = conditions.then(|| BindingConditions::new(make));
        Ok(WorkMetrics {
            node_hint: make.histograms(
                "get_node_hint_duration_seconds",
                "Time until batching returned a node hint, or none",
                &["hinted", "profile"],
                BATCHING,
            )?,
            stored: make.histograms(
                "store_schedule_results_duration_seconds",
                "Time to store a cycle's result for batching",
                &["profile"],
                BATCHING,
            )?,
            batch_attempts: make.counters(
                "batch_attempts_total",
                "Attempts to use batching, by result",
                &["profile", "result"],
            )?,
            batch_flushes: make.counters(
                "batch_cache_flushed_total",
                "Stored results that could not be used, by reason",
                &["profile", "reason"],
            )?,
            queueing_hint: make.histograms(
                "queueing_hint_execution_duration_seconds",
                "Time of a queueing hint, by plugin and event",
                &["plugin", "event", "hint"],
                (0.000_01, 1.5, 20),
            )?,
            groups: groups.transpose()?,
            conditions: conditions.transpose()?,
        })
    }

    /// Counts one piece of work.
    pub fn count(&self, done: &Done) {
        let seconds = done.nanos as f64 / 1e9;
        match done.work {
            Work::NodeHint { profile, hinted } => {
                let hinted = if hinted { "hint" } else { "no_hint" };
                self.node_hint.with_label_values(&[hinted, profile.as_str()]).observe(seconds);
            }
            Work::StoredResults { profile } => {
                self.stored.with_label_values(&[profile.as_str()]).observe(seconds);
            }
            Work::BatchAttempt { profile, result } => {
                self.batch_attempts.with_label_values(&[profile.as_str(), result]).inc();
            }
            Work::BatchFlush { profile, reason } => {
                self.batch_flushes.with_label_values(&[profile.as_str(), reason]).inc();
            }
            Work::QueueingHint { plugin, event, answer } => {
                let labels = [plugin.as_str(), &event.label(), answer.as_str()];
                self.queueing_hint.with_label_values(&labels).observe(seconds);
            }
            Work::BindingConditions { profile, driver, status } => {
                let labels = [profile.as_str(), driver.as_str(), status];
                if let Some(conditions) = &self.conditions {
                    conditions.allocations.with_label_values(&labels).inc();
                    conditions.waited.with_label_values(&labels).observe(seconds);
                }
            }
            Work::GroupAlgorithm => {
                self.groups.iter().for_each(|groups| groups.algorithm.observe(seconds));
            }
            Work::GroupAttempt { profile, result } => {
                let labels = [result, profile.as_str()];
                if let Some(groups) = &self.groups {
                    groups.attempts.with_label_values(&labels).inc();
                    groups.attempt.with_label_values(&labels).observe(seconds);
                }
            }
        }
    }
}
