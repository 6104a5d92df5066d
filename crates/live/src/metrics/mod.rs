//! Metrics with kube-scheduler's names, labels and buckets. `plugins` has the duration of each
//! plugin, `work` that of other work, `process` the resources of the process, `build` the versions;
//! requests are counted in `traffic`.
//!
//! Upstream: `pkg/scheduler/metrics/metrics.go`.

mod async_calls;
mod build;
mod builder;
mod evictions;
mod plugins;
mod process;
mod slis;
mod state_gauges;
mod work;

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use prometheus::{
    Encoder, Histogram, HistogramVec, IntCounter, IntCounterVec, IntGaugeVec, Opts, Registry,
    TextEncoder,
};

use crate::scheduling::{Lead, SchedulingReport};
use crate::traffic;
use kubestep_api::Time;
use kubestep_cluster::World;
use kubestep_config::{Feature, FeatureGates};
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::{CycleRecord, Outcome, PluginStatus, QueueMove, QueueName};
use kubestep_framework::status::Code;

use async_calls::AsyncCalls;
use builder::{MetricsBuilder, gauges};
use evictions::Evictions;
use plugins::PluginMetrics;
use process::Process;
use state_gauges::StateGauges;
use work::WorkMetrics;

pub use slis::Slis;

/// Start of the description of a write that creates an object.
const CREATE: &str = "create ";
const PREEMPTION: &str = "DefaultPreemption";
const VOLUME_BINDING: &str = "VolumeBinding";
/// From this count on, attempts share one label.
const MANY_ATTEMPTS: u32 = 15;

/// The scheduler's metrics. HTTP endpoints hold a copy of `registry`.
pub struct Metrics {
    registry: Registry,
    attempts: IntCounterVec,
    attempt_seconds: HistogramVec,
    algorithm_seconds: Histogram,
    incoming: IntCounterVec,
    pod_attempts: Histogram,
    pod_seconds: HistogramVec,
    after_flush: IntCounter,
    preemptions: IntCounter,
    victims: Histogram,
    permit_seconds: HistogramVec,
    evictions: Evictions,
    volumes: IntCounterVec,
    present: StateGauges,
    plugins: PluginMetrics,
    work: WorkMetrics,
    async_calls: Option<AsyncCalls>,
    state: SchedulerMetrics,
    /// When the running cycles began.
    under_way: HashMap<u64, Instant>,
    /// When pods first entered the queue.
    queued: HashMap<NamespacedName, Time>,
    /// Pods that were requeued only because they had waited too long.
    flushed: HashSet<NamespacedName>,
}

/// Metrics of the scheduler itself.
struct SchedulerMetrics {
    handled: HistogramVec,
    features: IntGaugeVec,
    master: IntGaugeVec,
    creates: IntCounterVec,
    lease: String,
}

impl SchedulerMetrics {
    fn new(make: &MetricsBuilder<'_>, lease: &str) -> prometheus::Result<SchedulerMetrics> {
        Ok(SchedulerMetrics {
            handled: make.histograms(
                "event_handling_duration_seconds",
                "Time to handle a change of the cluster, by event",
                &["event"],
                (0.000_1, 2.0, 12),
            )?,
            features: gauges(
                make.registry,
                Opts::new("kubernetes_feature_enabled", "1 if a feature gate is on"),
                &["name", "stage"],
            )?,
            master: gauges(
                make.registry,
                Opts::new("leader_election_master_status", "1 while this replica leads"),
                &["name"],
            )?,
            creates: make.counters(
                "resourceclaim_creates_total",
                "Resource claims created for extended resources",
                &["status"],
            )?,
            lease: lease.to_owned(),
        })
    }
}

fn after_flush(make: &MetricsBuilder<'_>) -> prometheus::Result<IntCounter> {
    let help = "Pods bound after a timeout, not an event, requeued them";
    make.counter("pod_scheduled_after_flush_total", help)
}

fn victims(make: &MetricsBuilder<'_>) -> prometheus::Result<Histogram> {
    make.histogram("preemption_victims", "Victims selected per preemption", (1.0, 2.0, 7))
}

impl Metrics {
    /// All counters at zero. `lease` is the name of the lease, a label of the leader metric. Some
    /// metrics exist only with their feature gate.
    ///
    /// # Errors
    /// Prometheus rejects a metric's name or labels.
    pub fn new(lease: &str, gates: &FeatureGates) -> prometheus::Result<Metrics> {
        let registry = Registry::new();
        let make = MetricsBuilder { registry: &registry };
        registry.register(Box::new(Process::new()?))?;
        traffic::register(&registry)?;
        build::register(&registry)?;
        let attempt = (0.001, 2.0, 15);
        let async_calls = gates.enabled(Feature::SchedulerAsyncAPICalls);
        let async_calls = async_calls.then(|| AsyncCalls::new(&make));
        Ok(Metrics {
            attempts: make.counters(
                "schedule_attempts_total",
                "Attempts to schedule pods, by result",
                &["result", "profile"],
            )?,
            attempt_seconds: make.histograms(
                "scheduling_attempt_duration_seconds",
                "Time of a scheduling attempt, including binding",
                &["result", "profile"],
                attempt,
            )?,
            algorithm_seconds: make.histogram(
                "scheduling_algorithm_duration_seconds",
                "Time of a scheduling cycle",
                attempt,
            )?,
            incoming: make.counters(
                "queue_incoming_pods_total",
                "Pods added to a queue, by event",
                &["queue", "event"],
            )?,
            pod_attempts: make.histogram(
                "pod_scheduling_attempts",
                "Attempts until a pod was bound",
                (1.0, 2.0, 5),
            )?,
            pod_seconds: make.histograms(
                "pod_scheduling_sli_duration_seconds",
                "Time from entering the queue to the binding, by attempts",
                &["attempts"],
                (0.01, 2.0, 20),
            )?,
            after_flush: after_flush(&make)?,
            preemptions: make.counter("preemption_attempts_total", "Preemption attempts")?,
            victims: victims(&make)?,
            permit_seconds: make.histograms(
                "permit_wait_duration_seconds",
                "Time that pods waited at Permit, by result",
                &["result"],
                attempt,
            )?,
            evictions: Evictions::new(&make)?,
            volumes: make.counters(
                "volume_scheduling_stage_error_total",
                "Errors of volume binding, by operation",
                &["operation"],
            )?,
            present: StateGauges::new(&make, gates.version().minor())?,
            plugins: PluginMetrics::new(&make)?,
            work: WorkMetrics::new(&make, gates)?,
            async_calls: async_calls.transpose()?,
            state: SchedulerMetrics::new(&make, lease)?,
            under_way: HashMap::new(),
            queued: HashMap::new(),
            flushed: HashSet::new(),
            registry,
        })
    }

    /// The registry for a server that exposes the metrics.
    pub fn registry(&self) -> Registry {
        self.registry.clone()
    }

    /// Adds a report of the scheduling loop to the series that it changes.
    pub fn count(&mut self, report: &SchedulingReport) {
        match report {
            SchedulingReport::Cycle(record, took) => self.cycle(record, *took),
            SchedulingReport::Decided(record) => self.decided(record),
            SchedulingReport::Moved(moved) => self.moved(moved),
            SchedulingReport::Spent(record, spent) => self.plugins.spent(record.as_deref(), spent),
            SchedulingReport::Handled { event, took } => {
                self.state.handled.with_label_values(&[event]).observe(took.as_secs_f64());
            }
            SchedulingReport::Lead(lead) => {
                let leads = i64::from(*lead == Lead::Leading);
                self.state.master.with_label_values(&[&self.state.lease]).set(leads);
            }
            SchedulingReport::Done(done) => done.iter().for_each(|done| self.work.count(done)),
            SchedulingReport::Answered { what, error, call } => {
                self.answered(what, error.is_some());
                if let (Some(calls), Some(call)) = (&self.async_calls, call) {
                    calls.answered(*call, error.is_some());
                }
            }
            SchedulingReport::Sent(call) => {
                self.async_calls.iter().for_each(|calls| calls.sent(*call))
            }
            SchedulingReport::Notice(_) | SchedulingReport::Tick { .. } => {}
        }
    }

    /// Reports which feature gates are enabled.
    pub fn report_features(&self, gates: &FeatureGates) {
        for (feature, spec) in gates.known() {
            let stage = spec.stage.name();
            let labels = [feature.name(), if stage == "GA" { "" } else { stage }];
            self.state.features.with_label_values(&labels).set(i64::from(gates.enabled(feature)));
        }
    }

    /// Sets the gauges to the present state.
    pub fn measure(&mut self, world: &World) {
        self.present.measure(world);
    }

    fn answered(&mut self, what: &str, failed: bool) {
        // Claims for extended resources are the only objects created.
        if what.starts_with(CREATE) {
            let status = if failed { "failure" } else { "success" };
            self.state.creates.with_label_values(&[status]).inc();
        }
        self.evictions.answered(what, failed);
    }

    fn cycle(&mut self, record: &CycleRecord, took: Duration) {
        self.algorithm_seconds.observe(took.as_secs_f64());
        if record.post_filter.iter().any(|answer| answer.plugin == PREEMPTION) {
            self.preemptions.inc();
        }
        if let Some(preemption) = &record.preemption {
            self.victims.observe(preemption.victims.len() as f64);
            self.evictions.begin(preemption);
        }
        match record.outcome {
            Outcome::Waiting => {
                self.under_way.insert(record.cycle, Instant::now() - took);
            }
            _ => self.attempted(record, took),
        }
    }

    fn decided(&mut self, record: &CycleRecord) {
        let began = self.under_way.remove(&record.cycle);
        let took = began.map(|began| began.elapsed()).unwrap_or_default();
        if let Some(status) = &record.permit_wait {
            let result = status.code().as_str();
            self.permit_seconds.with_label_values(&[result]).observe(took.as_secs_f64());
        }
        self.attempted(record, took);
    }

    fn attempted(&mut self, record: &CycleRecord, took: Duration) {
        volume_errors(record).for_each(|operation| {
            self.volumes.with_label_values(&[operation]).inc();
        });
        let result = match record.outcome {
            Outcome::Scheduled => "scheduled",
            Outcome::Unschedulable => "unschedulable",
            Outcome::SchedulerError => "error",
            Outcome::Waiting | Outcome::Dropped => return,
        };
        let labels = [result, record.profile.as_str()];
        self.attempts.with_label_values(&labels).inc();
        self.attempt_seconds.with_label_values(&labels).observe(took.as_secs_f64());
        if record.outcome == Outcome::Scheduled {
            self.bound(record, took);
        }
    }

    fn bound(&mut self, record: &CycleRecord, took: Duration) {
        self.pod_attempts.observe(f64::from(record.attempt));
        let attempts = match record.attempt {
            many if many >= MANY_ATTEMPTS => "15+".to_owned(),
            attempts => attempts.to_string(),
        };
        if self.flushed.remove(&record.pod) {
            self.after_flush.inc();
        }
        if let Some(since) = self.queued.remove(&record.pod) {
            let waited = (record.time.0 - since.0) as f64 / 1e6;
            let whole = waited + took.as_secs_f64();
            self.pod_seconds.with_label_values(&[&attempts]).observe(whole);
        }
    }

    fn moved(&mut self, moved: &QueueMove) {
        self.note_flush(moved);
        let queue = match moved.to {
            QueueName::Active => "active",
            QueueName::Backoff => "backoff",
            QueueName::Unschedulable => "unschedulable",
            QueueName::Gated => "gated",
            QueueName::InFlight => return,
            QueueName::None => {
                if moved.from != QueueName::InFlight {
                    self.queued.remove(&moved.pod);
                    self.flushed.remove(&moved.pod);
                }
                return;
            }
        };
        self.incoming.with_label_values(&[queue, moved.event.as_str()]).inc();
        if moved.to != QueueName::Gated {
            self.queued.entry(moved.pod).or_insert(moved.time);
        }
    }
}

/// The phase of volume binding in which an error occurred.
fn volume_errors(record: &CycleRecord) -> impl Iterator<Item = &'static str> {
    let broken = |answers: &[PluginStatus]| {
        answers
            .iter()
            .any(|answer| answer.plugin == VOLUME_BINDING && answer.status.code() == Code::Error)
    };
    // Only an error in Filter ends a cycle, so looking at all nodes is cheap enough.
    let failed = record.outcome == Outcome::SchedulerError;
    let columns = record.filter.plugins.iter().filter(|_| failed);
    let mut verdicts = columns
        .filter(|column| column.plugin == VOLUME_BINDING)
        .flat_map(|column| column.verdicts.iter())
        .filter_map(|verdict| record.verdicts.get(verdict));
    let searched = verdicts.any(|status| status.code() == Code::Error);
    let stages = [
        (searched, "predicate"),
        (broken(&record.reserve), "assume"),
        (broken(&record.pre_bind), "bind"),
    ];
    stages.into_iter().filter(|(failed, _)| *failed).map(|(_, operation)| operation)
}

/// The event that requeues pods that have waited too long.
const FLUSH: &str = "UnschedulableTimeout";

impl Metrics {
    /// A pod counts as flushed until its next attempt ends.
    fn note_flush(&mut self, moved: &QueueMove) {
        if moved.from == QueueName::Unschedulable && moved.event.as_str() == FLUSH {
            self.flushed.insert(moved.pod);
        } else if moved.from == QueueName::InFlight && moved.to != QueueName::None {
            self.flushed.remove(&moved.pod);
        }
    }
}

/// The metrics in the Prometheus text format.
pub fn text(registry: &Registry) -> Vec<u8> {
    let mut text = Vec::new();
    // Writing to memory cannot fail; a metric that cannot be encoded is omitted.
    let _written = TextEncoder::new().encode(&registry.gather(), &mut text);
    text
}

#[cfg(test)]
mod tests;
