//! The scheduler in this process as a target: no API server, network or kubelet is in between.
//!
//! The clock of a measurement is the time that the scheduler works, which includes the simulated
//! API server, plus the time that passes while it waits for a backoff, a timer or the next bit of
//! work in the background. Waiting is skipped, so a workload takes less time than its clock shows.
//! Making objects from templates does not count.

mod claims;
mod objects;
mod recorder;

use std::sync::Arc;

pub use claims::allocated;

use crate::BenchError;
use crate::manifest::NewObject;
use crate::measure::Measurement;
use crate::target::{BenchTarget, PodCounts, PodFilter};
use kubestep_api::intern::Symbol;
use kubestep_api::{Kind, Name, Object, Pod, Time};
use kubestep_cluster::{START, World};
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::stopwatch::{Clock, Stopwatch};
use objects::ObjectMaker;
use recorder::MeasurementRecorder;

/// How far the cluster's clock may be behind, in microseconds: moving it has a cost.
const BEHIND: i64 = 1_000;

/// A cluster in memory.
pub struct Embedded {
    world: World,
    clock: Arc<dyn Clock>,
    /// Nanoseconds that the scheduler worked.
    busy: u64,
    /// Nanoseconds that were skipped.
    waited: u64,
    maker: ObjectMaker,
    stopwatch: Arc<Stopwatch>,
    recorder: Option<MeasurementRecorder>,
}

impl Embedded {
    /// A cluster that is measured with a clock from outside.
    pub fn new(mut world: World, clock: Arc<dyn Clock>) -> Embedded {
        let stopwatch = Arc::new(Stopwatch::new(clock.clone()));
        world.scheduler_mut().measure(Some(stopwatch.clone()));
        let maker = ObjectMaker::default();
        Embedded { world, clock, busy: 0, waited: 0, maker, stopwatch, recorder: None }
    }

    /// The cluster as it is now.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Lets the cluster work, which counts. Returns the nanoseconds too.
    fn work<T>(&mut self, work: impl FnOnce(&mut World) -> T) -> (T, u64) {
        let begin = self.clock.nanos();
        let result = work(&mut self.world);
        let took = self.clock.nanos().saturating_sub(begin);
        self.busy += took;
        (result, took)
    }

    /// The cluster's time at a time of the measurement.
    fn time_at(nanos: u64) -> Time {
        Time(START.0 + (nanos / 1000) as i64)
    }

    /// Moves the cluster's clock to the present.
    fn catch_up(&mut self) {
        let now = Self::time_at(self.now());
        if now.0 - self.world.now().0 >= BEHIND {
            self.work(|world| world.advance_to(now));
        }
    }

    /// Skips the time until the next timer, but not beyond `limit`.
    fn wait(&mut self, limit: u64) {
        let now = self.now();
        let timer = self.world.next_timer();
        let timer = timer.map_or(limit, |at| (at.0 - START.0).max(0) as u64 * 1000);
        let until = timer.max(now + 1000).min(limit.max(now + 1000));
        self.waited += until - now;
        self.work(|world| world.advance_to(Self::time_at(until)));
    }

    /// Takes what happened since the last time out of the cluster's records.
    fn take_records(&mut self) {
        let now = self.now();
        let events = self.world.api_mut().take_events();
        if let Some(recorder) = &mut self.recorder {
            recorder.events(&events, &self.world, now);
        }
        let scheduler = self.world.scheduler_mut();
        scheduler.take_finished();
        scheduler.queue_mut().drain_moves();
        scheduler.queue_mut().drain_hints();
        if !self.world.api_mut().take_deleted_pods().is_empty() {
            self.release_claims();
        }
        let (spent, done) = (self.stopwatch.take(), self.stopwatch.take_done());
        if let Some(recorder) = &mut self.recorder {
            recorder.spent(&spent, &done);
        }
    }

    fn delete_pod(&mut self, key: NamespacedName, at_once: bool) {
        let Some(pod) = self.world.api().objects().pod(key).cloned() else { return };
        let has_grace = pod.spec.termination_grace_period_seconds != Some(0) && !at_once;
        let stays_for_kubelet = has_grace && !pod.spec.node_name.is_empty();
        if !stays_for_kubelet && pod.metadata.finalizers.is_empty() {
            self.work(|world| world.delete(Kind::Pod, key));
        } else if pod.metadata.deletion_timestamp.is_none() {
            // As in scheduler_perf there is no kubelet, so it stays until its end.
            let mut pod = Pod::clone(&pod);
            pod.metadata.deletion_timestamp = Some(self.world.now());
            self.work(|world| world.update(pod.into()));
        }
    }

    fn pods<'a>(&'a self, which: &'a PodFilter) -> impl Iterator<Item = &'a Arc<Pod>> {
        let which = PodFilterNames::new(which);
        self.world.api().objects().pods.values().filter(move |pod| which.takes(pod))
    }
}

impl BenchTarget for Embedded {
    fn now(&self) -> u64 {
        self.busy + self.waited
    }

    fn create(&mut self, objects: Vec<NewObject>) -> Result<Vec<String>, BenchError> {
        let (mut names, mut made) = (Vec::new(), Vec::new());
        for new in &objects {
            let (name, object) = self.maker.make(new)?;
            let Some(mut object) = object else {
                // The scheduler does not read this kind.
                names.push(name);
                continue;
            };
            self.maker.admit(&mut object, &self.world)?;
            if let Some(recorder) = &mut self.recorder {
                recorder.created(&object, self.busy + self.waited);
            }
            let of_templates = self.claims_of(&object);
            made.push(object);
            made.extend(of_templates);
            names.push(name);
        }
        self.catch_up();
        self.work(|world| world.receive(made));
        self.take_records();
        Ok(names)
    }

    fn update(&mut self, object: &NewObject, subresource: Option<&str>) -> Result<(), BenchError> {
        let (_, made) = self.maker.make(object)?;
        let Some(new) = made else { return Ok(()) };
        let key = NamespacedName::of(&new);
        let Some(stored) = self.world.api().get(new.kind(), key) else {
            return Err(format!("{} does not exist", new.key()).into());
        };
        self.catch_up();
        for version in objects::updates(&stored, new, subresource) {
            self.work(|world| world.update(version));
        }
        self.take_records();
        Ok(())
    }

    fn delete(&mut self, like: &NewObject, name: &str) -> Result<(), BenchError> {
        let Some(kind) = Kind::of(like.api_version(), like.kind()) else { return Ok(()) };
        let namespace = if kind.is_namespaced() { like.namespace.as_str() } else { "" };
        let key = NamespacedName::new(namespace.into(), name.into());
        self.catch_up();
        match kind {
            Kind::Pod => self.delete_pod(key, false),
            _ => {
                self.work(|world| world.delete(kind, key));
            }
        }
        self.take_records();
        Ok(())
    }

    fn delete_pods(
        &mut self,
        namespace: &str,
        names: &[String],
        at_once: bool,
    ) -> Result<(), BenchError> {
        self.catch_up();
        let namespace = Symbol::new(namespace);
        for name in names {
            self.delete_pod(NamespacedName::new(namespace, Name::new(name)), at_once);
        }
        self.take_records();
        Ok(())
    }

    fn nodes(&mut self) -> Result<Vec<String>, BenchError> {
        let nodes = self.world.api().nodes();
        let mut names: Vec<String> = nodes.map(|node| node.metadata.name.to_string()).collect();
        names.sort();
        Ok(names)
    }

    fn pod_names(&mut self, which: &PodFilter) -> Result<Vec<String>, BenchError> {
        Ok(self.pods(which).map(|pod| pod.metadata.name.to_string()).collect())
    }

    fn count(&mut self, which: &PodFilter) -> Result<PodCounts, BenchError> {
        let mut counts = PodCounts::default();
        let mut pending: Option<&Arc<Pod>> = None;
        for pod in self.pods(which) {
            let was_tried = is_attempted(pod);
            match (pod.spec.node_name.is_empty(), was_tried) {
                (false, _) => counts.scheduled += 1,
                (true, true) => counts.attempted += 1,
                (true, false) => counts.unattempted += 1,
            }
            if pod.spec.node_name.is_empty() && (pending.is_none() || was_tried) {
                pending = Some(pod);
            }
        }
        counts.pending = pending.map(|pod| pending_words(pod));
        Ok(counts)
    }

    fn allocate_claims(&mut self, namespace: &str) -> Result<(), BenchError> {
        self.allocate(namespace)
    }

    fn turn(&mut self, limit: u64) -> Result<(), BenchError> {
        self.catch_up();
        match self.work(World::step) {
            (Some(record), took) => {
                if let Some(recorder) = &mut self.recorder {
                    recorder.attempt(&record, took);
                }
            }
            (None, _) => self.wait(limit),
        }
        self.take_records();
        Ok(())
    }

    fn begin(&mut self, pods: PodFilter) {
        self.take_records();
        self.recorder = Some(MeasurementRecorder::new(&pods, self.now(), self.busy));
    }

    fn end(&mut self) -> Measurement {
        let (now, busy) = (self.now(), self.busy);
        self.recorder.take().map(|recorder| recorder.end(now, busy)).unwrap_or_default()
    }
}

/// Whether a cycle or the API server has given it a condition about scheduling.
fn is_attempted(pod: &Pod) -> bool {
    let tried = pod.status.conditions.iter().any(|condition| condition.type_ == "PodScheduled");
    tried || !pod.spec.scheduling_gates.is_empty()
}

/// A pod without a node, with the scheduler's message.
fn pending_words(pod: &Pod) -> String {
    let name = NamespacedName::new(pod.metadata.namespace, pod.metadata.name);
    let mut conditions = pod.status.conditions.iter();
    match conditions.find(|condition| condition.type_ == "PodScheduled") {
        Some(condition) => format!("pod {name}: {}", condition.message),
        None => format!("pod {name} was not tried"),
    }
}

/// A filter with the strings of the cluster.
struct PodFilterNames {
    namespaces: Vec<Symbol>,
    labels: Vec<(Symbol, Name)>,
}

impl PodFilterNames {
    fn new(which: &PodFilter) -> PodFilterNames {
        PodFilterNames {
            namespaces: which.namespaces.iter().map(|name| Symbol::new(name)).collect(),
            labels: which
                .labels
                .iter()
                .map(|(key, value)| (Symbol::new(key), Name::new(value)))
                .collect(),
        }
    }

    fn takes(&self, pod: &Pod) -> bool {
        let has = |(key, value): &(Symbol, Name)| pod.metadata.labels.get(*key) == Some(value);
        self.namespaces.contains(&pod.metadata.namespace) && self.labels.iter().all(has)
    }
}

/// The pod in an object.
fn pod_of(object: &Object) -> Option<&Arc<Pod>> {
    match object {
        Object::Pod(pod) => Some(pod),
        _ => None,
    }
}
