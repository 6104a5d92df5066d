//! Metrics with kube-scheduler's names, labels and buckets, for what there is here: upstream's
//! goroutines are not. `plugins` has the time of each plugin, `process` what the process takes;
//! requests are counted in [`traffic`].
//!
//! Upstream: `pkg/scheduler/metrics/metrics.go`.

mod make;
mod plugins;
mod process;
mod slis;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

use prometheus::{
    Encoder, Histogram, HistogramVec, IntCounter, IntCounterVec, IntGaugeVec, Opts, Registry,
    TextEncoder,
};

use crate::api::Time;
use crate::config::{Feature, FeatureGates};
use crate::engine::pod::NamespacedName;
use crate::engine::record::{CycleRecord, Outcome, QueueMove, QueueName};
use crate::intern::Symbol;
use crate::live::scheduling::{Lead, Told};
use crate::live::traffic;
use crate::sim::World;

use make::{Maker, gauges};
use plugins::Plugins;
use process::Process;

pub use slis::Slis;

/// How the words for a write begin that makes an object.
const CREATE: &str = "create ";
/// From here on attempts are one label.
const MANY_ATTEMPTS: u32 = 15;

/// What is counted. Whoever scrapes has a copy of `registry`.
pub struct Metrics {
    registry: Registry,
    attempts: IntCounterVec,
    attempt_seconds: HistogramVec,
    algorithm_seconds: Histogram,
    pending: IntGaugeVec,
    incoming: IntCounterVec,
    pod_attempts: Histogram,
    pod_seconds: HistogramVec,
    after_flush: IntCounter,
    preemptions: IntCounter,
    victims: Histogram,
    permit_seconds: HistogramVec,
    cache: IntGaugeVec,
    unschedulable: IntGaugeVec,
    plugins: Plugins,
    state: State,
    /// How many pods each plugin refuses, by profile. One that refuses none any more stays, as
    /// upstream: a series that ends looks like a gap.
    refusing: BTreeMap<(Symbol, Symbol), i64>,
    /// When the cycles under way began.
    under_way: HashMap<u64, Instant>,
    /// When pods came into the queue first.
    queued: HashMap<NamespacedName, Time>,
    /// Pods that were tried again only because they had waited for so long.
    flushed: HashSet<NamespacedName>,
}

/// What is told of the scheduler itself.
struct State {
    handled: HistogramVec,
    features: IntGaugeVec,
    master: IntGaugeVec,
    creates: IntCounterVec,
    lease: String,
}

impl State {
    fn new(make: &Maker<'_>, lease: &str) -> prometheus::Result<State> {
        Ok(State {
            handled: make.histograms(
                "event_handling_duration_seconds",
                "Time that a change of the cluster took",
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
                "Claims that were made for extended resources",
                &["status"],
            )?,
            lease: lease.to_owned(),
        })
    }
}

impl Metrics {
    /// Nothing counted yet. `lease` is the name of the lease, for the metric that says who leads.
    ///
    /// # Errors
    /// A metric's name or labels are not what Prometheus takes.
    pub fn new(lease: &str) -> prometheus::Result<Metrics> {
        let registry = Registry::new();
        let make = Maker { registry: &registry };
        registry.register(Box::new(Process::new()?))?;
        traffic::register(&registry)?;
        let attempt = (0.001, 2.0, 15);
        Ok(Metrics {
            attempts: make.counters(
                "schedule_attempts_total",
                "Attempts to schedule pods, by the result",
                &["result", "profile"],
            )?,
            attempt_seconds: make.histograms(
                "scheduling_attempt_duration_seconds",
                "Time of a scheduling attempt, binding included",
                &["result", "profile"],
                attempt,
            )?,
            algorithm_seconds: make.histogram(
                "scheduling_algorithm_duration_seconds",
                "Time of a scheduling cycle",
                attempt,
            )?,
            pending: make.gauges("pending_pods", "Pods in each queue", &["queue"])?,
            incoming: make.counters(
                "queue_incoming_pods_total",
                "Pods that came into a queue, by the event",
                &["queue", "event"],
            )?,
            pod_attempts: make.histogram(
                "pod_scheduling_attempts",
                "Attempts that a bound pod took",
                (1.0, 2.0, 5),
            )?,
            pod_seconds: make.histograms(
                "pod_scheduling_sli_duration_seconds",
                "Time from the queue to the node, by attempts",
                &["attempts"],
                (0.01, 2.0, 20),
            )?,
            after_flush: make.counter(
                "pod_scheduled_after_flush_total",
                "Pods that were bound after no event but only the passing of time woke them",
            )?,
            preemptions: make.counter("preemption_attempts_total", "Preemptions so far")?,
            victims: make.histogram("preemption_victims", "Victims chosen", (1.0, 2.0, 7))?,
            permit_seconds: make.histograms(
                "permit_wait_duration_seconds",
                "Time of the wait at Permit, by what ended it",
                &["result"],
                attempt,
            )?,
            cache: make.gauges("cache_size", "Nodes and pods in the cache", &["type"])?,
            unschedulable: make.gauges(
                "unschedulable_pods",
                "Pods that a plugin refused",
                &["plugin", "profile"],
            )?,
            plugins: Plugins::new(&make)?,
            state: State::new(&make, lease)?,
            refusing: BTreeMap::new(),
            under_way: HashMap::new(),
            queued: HashMap::new(),
            flushed: HashSet::new(),
            registry,
        })
    }

    /// What a server gives to whoever scrapes.
    pub fn registry(&self) -> Registry {
        self.registry.clone()
    }

    /// Counts what happened.
    pub fn count(&mut self, told: &Told) {
        match told {
            Told::Cycle(record, took) => self.cycle(record, *took),
            Told::Decided(record) => self.decided(record),
            Told::Moved(moved) => self.moved(moved),
            Told::Spent(record, spent) => self.plugins.spent(record.as_deref(), spent),
            Told::Handled { event, took } => {
                self.state.handled.with_label_values(&[event]).observe(took.as_secs_f64());
            }
            Told::Lead(lead) => {
                let leads = i64::from(*lead == Lead::Leading);
                self.state.master.with_label_values(&[&self.state.lease]).set(leads);
            }
            // Nothing else is created than claims for extended resources.
            Told::Answered { what, error } if what.starts_with(CREATE) => {
                let status = if error.is_none() { "success" } else { "failure" };
                self.state.creates.with_label_values(&[status]).inc();
            }
            Told::Notice(_) | Told::Answered { .. } | Told::Tick { .. } => {}
        }
    }

    /// Tells which feature gates are on.
    pub fn tell_features(&self, gates: &FeatureGates) {
        for feature in Feature::all() {
            let stage = feature.stage().name();
            let labels = [feature.name(), if stage == "GA" { "" } else { stage }];
            self.state.features.with_label_values(&labels).set(i64::from(gates.enabled(feature)));
        }
    }

    /// Measures what is there now.
    pub fn measure(&mut self, world: &World) {
        let scheduler = world.scheduler();
        let names = ["active", "backoff", "unschedulable", "gated"];
        for (name, length) in names.iter().zip(scheduler.queue().lengths()) {
            self.pending.with_label_values(&[name]).set(length as i64);
        }
        let cache = scheduler.cache();
        let size = |name: &str, size: usize| self.cache.with_label_values(&[name]).set(size as i64);
        size("nodes", cache.node_count());
        size("pods", cache.pod_count());
        size("assumed_pods", scheduler.waiting().len());
        self.refusing.values_mut().for_each(|pods| *pods = 0);
        for pod in scheduler.queue().unschedulable() {
            for plugin in &pod.unschedulable_plugins {
                let profile = pod.info.pod.spec.scheduler_name;
                *self.refusing.entry((*plugin, profile)).or_default() += 1;
            }
        }
        for ((plugin, profile), pods) in &self.refusing {
            self.unschedulable.with_label_values(&[plugin.as_str(), profile.as_str()]).set(*pods);
        }
    }

    fn cycle(&mut self, record: &CycleRecord, took: Duration) {
        self.algorithm_seconds.observe(took.as_secs_f64());
        if let Some(preemption) = &record.preemption {
            self.preemptions.inc();
            self.victims.observe(preemption.victims.len() as f64);
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

/// What moves pods that have waited for too long.
const FLUSH: &str = "UnschedulableTimeout";

impl Metrics {
    /// A pod counts as flushed until it comes back from an attempt.
    fn note_flush(&mut self, moved: &QueueMove) {
        if moved.from == QueueName::Unschedulable && moved.event.as_str() == FLUSH {
            self.flushed.insert(moved.pod);
        } else if moved.from == QueueName::InFlight && moved.to != QueueName::None {
            self.flushed.remove(&moved.pod);
        }
    }
}

/// The text that Prometheus reads.
pub fn text(registry: &Registry) -> Vec<u8> {
    let mut text = Vec::new();
    // Writing to memory does not fail; a metric that cannot be written is left out.
    let _written = TextEncoder::new().encode(&registry.gather(), &mut text);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn record(outcome: Outcome) -> CycleRecord {
        let pod = NamespacedName::new("d".into(), "p".into());
        CycleRecord {
            cycle: 7,
            pod,
            attempt: 2,
            profile: "default-scheduler".into(),
            time: Time(3_000_000),
            outcome,
            ..CycleRecord::default()
        }
    }

    fn moved(from: QueueName, to: QueueName, event: &str) -> Told {
        Told::Moved(QueueMove {
            time: Time(1_000_000),
            pod: record(Outcome::Waiting).pod,
            from,
            to,
            event: event.into(),
            plugin: None,
            order: None,
        })
    }

    #[test]
    fn pods_that_only_time_woke_are_counted_once_they_are_bound() {
        use QueueName::{Active, InFlight, Unschedulable};
        let mut metrics = Metrics::new("").unwrap();
        let bound = Told::Decided(Arc::new(record(Outcome::Scheduled)));
        metrics.count(&moved(Unschedulable, Active, FLUSH));
        metrics.count(&moved(Active, InFlight, ""));
        metrics.count(&moved(InFlight, Unschedulable, "ScheduleAttemptFailure"));
        metrics.count(&moved(Unschedulable, Active, "NodeAdd"));
        metrics.count(&bound);
        assert_eq!(metrics.after_flush.get(), 0);
        metrics.count(&moved(Unschedulable, Active, FLUSH));
        metrics.count(&moved(Active, InFlight, ""));
        metrics.count(&bound);
        assert_eq!(metrics.after_flush.get(), 1);
        assert!(metrics.flushed.is_empty());
    }

    #[test]
    fn a_pod_is_counted_from_the_queue_to_its_node() {
        let mut metrics = Metrics::new("kube-scheduler").unwrap();
        metrics.count(&moved(QueueName::None, QueueName::Active, "UnschedulablePodAdd"));
        let took = Duration::from_millis(2);
        metrics.count(&Told::Cycle(Arc::new(record(Outcome::Waiting)), took));
        metrics.count(&Told::Decided(Arc::new(record(Outcome::Scheduled))));
        metrics.count(&Told::Lead(Lead::Leading));
        let text = String::from_utf8(text(&metrics.registry())).unwrap();
        for line in [
            "scheduler_schedule_attempts_total{profile=\"default-scheduler\",result=\"scheduled\"} 1",
            "scheduler_queue_incoming_pods_total{event=\"UnschedulablePodAdd\",queue=\"active\"} 1",
            "scheduler_pod_scheduling_sli_duration_seconds_bucket{attempts=\"2\",le=\"2.56\"} 1",
            "scheduler_pod_scheduling_sli_duration_seconds_bucket{attempts=\"2\",le=\"1.28\"} 0",
            "scheduler_pod_scheduling_attempts_sum 2",
            "leader_election_master_status{name=\"kube-scheduler\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in:\n{text}");
        }
        assert!(metrics.queued.is_empty() && metrics.under_way.is_empty());
    }
}
