//! The present state: pods in queues, the contents of the cache, running work.

use std::collections::BTreeMap;

use prometheus::IntGaugeVec;

use crate::metrics::builder::MetricsBuilder;
use kubestep_api::intern::Symbol;
use kubestep_cluster::World;
use kubestep_scheduler::queue::SchedulingQueue;

/// The label of an entry that marks a popped pod among the in-flight events.
const POPPED: &str = "PodPopped";

/// Gauges of the present state: pending pods, cache size, unschedulable pods by plugin.
pub struct StateGauges {
    pending: IntGaugeVec,
    /// The size of the cache, under each of its names.
    cache: Vec<IntGaugeVec>,
    pub(super) unschedulable: IntGaugeVec,
    goroutines: IntGaugeVec,
    in_flight: IntGaugeVec,
    /// How many pods each plugin rejects, by profile. As upstream, a plugin that rejects none any
    /// more keeps its series with 0: a series that ends looks like a gap.
    refusing: BTreeMap<(Symbol, Symbol), i64>,
    /// In-flight events by label; labels that no longer occur keep their series with 0.
    kept_events: BTreeMap<String, i64>,
}

/// The names of the metric with the size of the cache; 1.33 has the old one, too.
fn cache_names(minor: u8) -> &'static [&'static str] {
    match minor {
        ..=32 => &["scheduler_cache_size"],
        33 => &["cache_size", "scheduler_cache_size"],
        _ => &["cache_size"],
    }
}

impl StateGauges {
    /// All gauges at zero, as kube-scheduler of this minor version names them.
    ///
    /// # Errors
    /// Prometheus rejects a metric's name or labels.
    pub fn new(make: &MetricsBuilder<'_>, minor: u8) -> prometheus::Result<StateGauges> {
        let cache = |name| make.gauges(name, "Nodes and pods in the cache", &["type"]);
        Ok(StateGauges {
            pending: make.gauges("pending_pods", "Pods in each queue", &["queue"])?,
            cache: cache_names(minor).iter().map(|name| cache(name)).collect::<Result<_, _>>()?,
            unschedulable: make.gauges(
                "unschedulable_pods",
                "Pods that a plugin rejected",
                &["plugin", "profile"],
            )?,
            goroutines: make.gauges(
                "goroutines",
                "Work in progress, by operation",
                &["operation"],
            )?,
            in_flight: make.gauges(
                "inflight_events",
                "Events recorded for in-flight pods, and those pods",
                &["event"],
            )?,
            refusing: BTreeMap::new(),
            kept_events: BTreeMap::new(),
        })
    }

    /// Sets the gauges to the present state.
    pub fn measure(&mut self, world: &World) {
        let scheduler = world.scheduler();
        let names = ["active", "backoff", "unschedulable", "gated"];
        for (name, length) in names.iter().zip(scheduler.queue().lengths()) {
            self.pending.with_label_values(&[name]).set(length as i64);
        }
        let cache = scheduler.cache();
        let size = |name: &str, size: usize| {
            self.cache.iter().for_each(|gauges| gauges.with_label_values(&[name]).set(size as i64));
        };
        size("nodes", cache.node_count());
        size("pods", cache.pod_count());
        size("assumed_pods", scheduler.waiting().len());
        let binding = scheduler.waiting().len() as i64;
        self.goroutines.with_label_values(&["binding"]).set(binding);
        self.measure_in_flight(scheduler.queue());
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

    fn measure_in_flight(&mut self, queue: &SchedulingQueue) {
        self.kept_events.values_mut().for_each(|kept| *kept = 0);
        self.kept_events.insert(POPPED.into(), queue.in_flight().len() as i64);
        for event in queue.in_flight_events() {
            *self.kept_events.entry(event.label()).or_default() += 1;
        }
        for (event, kept) in &self.kept_events {
            self.in_flight.with_label_values(&[event]).set(*kept);
        }
    }
}
