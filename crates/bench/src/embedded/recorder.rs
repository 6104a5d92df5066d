//! Records what a measurement needs, from the cluster's own records.

use hashbrown::HashMap;

use super::{PodFilterNames, pod_of};
use crate::measure::Measurement;
use crate::target::PodFilter;
use kubestep_api::Object;
use kubestep_cluster::World;
use kubestep_framework::host::ApiEvent;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::{CycleRecord, Outcome};
use kubestep_framework::stopwatch::{Done, Spent, Work};

/// A measurement that is under way.
pub(super) struct MeasurementRecorder {
    pods: PodFilterNames,
    measured: Measurement,
    /// How long the scheduler had worked before, in nanoseconds.
    busy_before: u64,
    /// When the pods that are not scheduled yet were created.
    created: HashMap<NamespacedName, u64>,
}

impl MeasurementRecorder {
    pub fn new(pods: &PodFilter, now: u64, busy: u64) -> MeasurementRecorder {
        MeasurementRecorder {
            pods: PodFilterNames::new(pods),
            measured: Measurement { begin: now, ..Measurement::default() },
            busy_before: busy,
            created: HashMap::new(),
        }
    }

    pub fn created(&mut self, object: &Object, now: u64) {
        if let Some(pod) = pod_of(object).filter(|pod| self.pods.takes(pod)) {
            self.created.insert(NamespacedName::of(object), now);
            // A pod that is created with a node counts, as for upstream.
            if !pod.spec.node_name.is_empty() {
                self.measured.scheduled.push(now);
            }
        }
    }

    /// Counts the pods that were bound.
    pub fn events(&mut self, events: &[ApiEvent], world: &World, now: u64) {
        for event in events.iter().filter(|event| event.reason == "Scheduled") {
            let pod = world.api().objects().pod(event.regarding);
            if pod.is_some_and(|pod| self.pods.takes(pod)) {
                self.measured.scheduled.push(now);
                if let Some(created) = self.created.remove(&event.regarding) {
                    self.measured.pods.add(now - created);
                }
            }
        }
    }

    pub fn attempt(&mut self, record: &CycleRecord, took: u64) {
        let result = match record.outcome {
            Outcome::Scheduled => "scheduled",
            Outcome::Waiting => "waiting",
            Outcome::Unschedulable => "unschedulable",
            Outcome::SchedulerError => "error",
            Outcome::Dropped => return,
        };
        self.measured.attempts.entry(result).or_default().add(took);
    }

    /// Adds the durations of one step.
    pub fn spent(&mut self, spent: &[Spent], done: &[Done]) {
        let measured = &mut self.measured;
        let mut points: Vec<(&'static str, u64)> = Vec::new();
        for spent in spent {
            let point = spent.point.name();
            match points.iter_mut().find(|(known, _)| *known == point) {
                Some((_, nanos)) => *nanos += spent.nanos,
                None => points.push((point, spent.nanos)),
            }
            let key = (point, spent.plugin);
            measured.plugins.entry(key).or_default().add(spent.nanos);
        }
        for (point, nanos) in points {
            measured.points.entry(point).or_default().add(nanos);
        }
        for done in done {
            if let Work::QueueingHint { plugin, event, .. } = done.work {
                measured.hints.entry((event.label(), plugin)).or_default().add(done.nanos);
            }
        }
    }

    pub fn end(mut self, now: u64, busy: u64) -> Measurement {
        self.measured.end = now;
        self.measured.busy = Some(busy - self.busy_before);
        self.measured
    }
}
