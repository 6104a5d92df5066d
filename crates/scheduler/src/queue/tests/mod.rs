//! Tests of the queue as a whole. This file has the test bench: a queue with fake plugins and a
//! clock that tests advance. The cases are those of upstream's `scheduling_queue_test.go`.

mod adding;
mod gates;
mod older;
mod random;
mod requeueing;
mod timing;
mod updating;

use std::sync::Arc;

use super::*;
use kubestep_api::{Object, Pod};
use kubestep_config::{FeatureGates, ProfileArgs};
use kubestep_framework::events::{
    Action, ClusterEvent, EventObjects, EventResource, HintResult, QueueingHint, Registration,
};
use kubestep_framework::plugin::Plugin;
use kubestep_framework::shared::PluginStore;
use kubestep_framework::status::Status;
use kubestep_plugins::{priority_sort, scheduling_gates};

const NODE_ADD: ClusterEvent = ClusterEvent::new(EventResource::Node, Action::ADD);
const PV_ADD: ClusterEvent = ClusterEvent::new(EventResource::PersistentVolume, Action::ADD);
const SECOND: Duration = Duration::SECOND;
const HALF_A_SECOND: Duration = Duration::from_millis(500);

/// A plugin with fixed answers.
#[derive(Clone)]
struct Fake {
    name: &'static str,
    events: Vec<Registration>,
    allowed_labels: Option<Vec<&'static str>>,
}

impl Plugin for Fake {
    fn name(&self) -> Symbol {
        self.name.into()
    }
    fn events(&self) -> Option<Vec<Registration>> {
        Some(self.events.clone())
    }
    fn pre_enqueue(&self, _: &QueueContext<'_>, pod: &PodInfo) -> Status {
        let labels = &pod.pod.metadata.labels;
        match &self.allowed_labels {
            Some(allowed) if !allowed.iter().any(|label| labels.get_str(label).is_some()) => {
                Status::unresolvable(&format!("{} holds it", self.name))
            }
            _ => Status::SUCCESS,
        }
    }
}

/// A plugin that answers every event of `events` with `hint`.
fn hinting(name: &'static str, events: &[ClusterEvent], hint: QueueingHint) -> Fake {
    answering(name, events, Ok(hint))
}

/// A plugin whose hint for every event of `events` gives that answer.
fn answering(name: &'static str, events: &[ClusterEvent], answer: HintResult) -> Fake {
    let hinted = |event: &ClusterEvent| {
        let answer = answer.clone();
        Registration::hinted(event.resource, event.action, move |_, _, _| answer.clone())
    };
    Fake { name, events: events.iter().map(hinted).collect(), allowed_labels: None }
}

/// A PreEnqueue plugin that passes only pods with one of these labels.
fn gate(name: &'static str, allowed: &[&'static str], events: &[ClusterEvent]) -> Fake {
    Fake { allowed_labels: Some(allowed.to_vec()), ..hinting(name, events, QueueingHint::Queue) }
}

/// A queue, the objects that its plugins see, and a clock.
#[derive(Clone)]
struct Bench {
    queue: SchedulingQueue,
    objects: Objects,
    now: Time,
}

fn arcs(fakes: &[Fake]) -> Vec<Arc<dyn Plugin>> {
    fakes.iter().map(|fake| Arc::new(fake.clone()) as Arc<dyn Plugin>).collect()
}

/// The bench's only profile has the empty scheduler name: that of a pod that names none.
const PROFILE: Symbol = Symbol::EMPTY;

impl Bench {
    /// A queue with the PreEnqueue plugins, the hint plugins and SchedulingGates, in one profile.
    fn new(settings: QueueSettings, gates: &[Fake], hints: &[Fake]) -> Bench {
        let features = FeatureGates::default();
        let args = ProfileArgs::default();
        let own = scheduling_gates::build(&args, &features).unwrap();
        let mut plugins = QueuePlugins::default();
        plugins.sort = Some(priority_sort::build(&args, &features).unwrap());
        let gates: Vec<_> = [own.clone()].into_iter().chain(arcs(gates)).collect();
        let asked: Vec<_> = gates.iter().cloned().chain(arcs(hints)).collect();
        plugins.add_profile(&settings, PROFILE, &gates, &asked);
        let queue = SchedulingQueue::with_plugins(settings, plugins);
        let now = Time::parse("2026-01-01T00:00:00Z").unwrap();
        Bench { queue, objects: Objects::default(), now }
    }

    /// A queue with default settings and the hint plugins.
    fn with_hints(hints: &[Fake]) -> Bench {
        Bench::new(QueueSettings::default(), &[], hints)
    }

    /// Calls `work` with the queue and a context at the current time.
    fn with<T>(&mut self, work: impl FnOnce(&mut SchedulingQueue, &QueueContext<'_>) -> T) -> T {
        let (features, shared) = (FeatureGates::default(), PluginStore::default());
        let (objects, now) = (&self.objects, self.now);
        work(&mut self.queue, &QueueContext { objects, features: &features, shared: &shared, now })
    }

    fn add(&mut self, pod: &Pod) {
        let pod = Arc::new(pod.clone());
        self.objects.insert(Object::Pod(pod.clone()));
        self.with(|queue, cx| queue.add(cx, Arc::new(PodInfo::new(pod))));
    }

    fn pop(&mut self) -> QueuedPodInfo {
        self.with(|queue, cx| queue.pop(cx)).expect("a pod can be popped")
    }

    /// Requeues a popped pod with its rejectors.
    fn fail(&mut self, pod: QueuedPodInfo, unschedulable: &[&str], pending: &[&str]) {
        let pod = rejected(pod, unschedulable, pending);
        self.with(|queue, cx| queue.add_unschedulable_if_not_present(cx, pod)).unwrap();
    }

    /// Adds the pod, pops it and requeues it as failed.
    fn add_failed(&mut self, pod: &Pod, unschedulable: &[&str], pending: &[&str]) {
        self.add(pod);
        let popped = self.pop();
        assert_eq!(popped.key(), key_of(pod));
        self.fail(popped, unschedulable, pending);
    }

    fn event(&mut self, event: ClusterEvent) {
        self.with(|queue, cx| queue.move_all(cx, event, &EventObjects::default(), None));
    }

    fn update(&mut self, old: &Pod, new: &Pod) {
        let (old, new) = (Arc::new(old.clone()), Arc::new(new.clone()));
        self.objects.insert(Object::Pod(new.clone()));
        self.with(|queue, cx| queue.update(cx, &old, new));
    }

    fn activate(&mut self, pod: &Pod) {
        self.with(|queue, cx| queue.activate(cx, &[key_of(pod)]));
    }

    fn advance(&mut self, span: Duration) {
        self.now += span;
    }

    fn flush_backoff(&mut self) {
        self.with(|queue, cx| queue.flush_backoff_completed(cx));
    }

    fn flush_leftover(&mut self) {
        self.with(|queue, cx| queue.flush_unschedulable_leftover(cx));
    }

    fn place(&self, pod: &Pod) -> QueueName {
        self.queue.queue_of(key_of(pod))
    }

    fn queued(&self, pod: &Pod) -> &QueuedPodInfo {
        self.queue.get(key_of(pod)).expect("the pod is in the queue")
    }

    /// Names in queue order: active, in backoff, unschedulable or gated, in flight.
    fn names(&self) -> [Vec<String>; 4] {
        let waiting =
            self.queue.unschedulable.walk(0, |_| true).into_iter().map(Arc::as_ref).collect();
        let lists = [self.queue.active(), self.queue.backoff(), waiting, self.queue.in_flight()];
        lists.map(|pods| pods.into_iter().map(|pod| pod.key().name.to_string()).collect())
    }
}

fn rejected(mut pod: QueuedPodInfo, unschedulable: &[&str], pending: &[&str]) -> QueuedPodInfo {
    pod.unschedulable_plugins = unschedulable.iter().map(|name| Symbol::new(name)).collect();
    pod.pending_plugins = pending.iter().map(|name| Symbol::new(name)).collect();
    pod
}

fn key_of(pod: &Pod) -> NamespacedName {
    NamespacedName::new(pod.metadata.namespace, pod.metadata.name)
}

/// A pod in namespace `ns` whose UID is derived from its name.
fn pod(name: &str, priority: i32) -> Pod {
    let mut pod = Pod::default();
    pod.metadata.namespace = "ns".into();
    pod.metadata.name = name.into();
    pod.metadata.uid = format!("uid-{name}").as_str().into();
    pod.spec.priority = Some(priority);
    pod
}

fn labelled(mut pod: Pod, label: &str) -> Pod {
    pod.metadata.labels.insert(label.into(), Name::EMPTY);
    pod
}

fn annotated(mut pod: Pod) -> Pod {
    pod.metadata.annotations.insert("touched".into(), "".into());
    pod
}
