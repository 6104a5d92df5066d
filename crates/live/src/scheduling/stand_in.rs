//! A cluster in memory for tests: it accepts bindings and status updates, reports them as a watch
//! does, and can stop allowing writes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::feed::{self, Delta, FeedEvent, Notice};
use crate::scheduling::{Arrival, Cluster, LeaderStatus};
use crate::write::WriteResult;
use kubestep_api::{Kind, Object, ObjectKey, Time};
use kubestep_cluster::remote::{Outgoing, Request, WriteOutcome};
use kubestep_framework::pod::NamespacedName;

/// State shared by the test and the scheduler.
#[derive(Default)]
pub struct StandInServer {
    objects: std::collections::BTreeMap<ObjectKey, Object>,
    arrivals: VecDeque<Arrival>,
    dropped: usize,
    version: u64,
    /// The writes that were made, as text, without events.
    pub writes: Vec<String>,
    /// Whether writes are allowed; `None`: they are.
    pub leader_status: Option<LeaderStatus>,
    /// Whether answers to writes are held, as by a server that is slow.
    pub holds_answers: bool,
    held: VecDeque<Arrival>,
    /// The time that has passed, in microseconds.
    pub passed: i64,
    start: Time,
}

/// A cluster in memory that accepts writes, for tests. Clones share it.
#[derive(Clone, Default)]
pub struct StandIn(Arc<Mutex<StandInServer>>);

impl StandIn {
    /// A cluster whose clock starts at `start`, with objects that the scheduler has listed.
    pub fn new(start: Time, objects: impl IntoIterator<Item = Object>) -> StandIn {
        let mut server = StandInServer { start, ..StandInServer::default() };
        for object in objects {
            server.objects.insert(object.key(), object);
        }
        StandIn(Arc::new(Mutex::new(server)))
    }

    /// Reads or changes the server's state.
    pub fn with<T>(&self, act: impl FnOnce(&mut StandInServer) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The writes so far, as text, without events.
    pub fn writes(&self) -> Vec<String> {
        self.with(|server| server.writes.clone())
    }

    /// Adds an object as another client would.
    pub fn put(&self, object: Object) {
        self.with(|server| server.put(object));
    }

    /// Deletes an object as another client would.
    pub fn delete(&self, kind: Kind, key: NamespacedName) {
        self.with(|server| server.delete(kind, key));
    }
}

impl StandInServer {
    fn put(&mut self, mut object: Object) {
        self.version += 1;
        object.metadata_mut().resource_version = (1_000_000 + self.version).into();
        self.objects.insert(object.key(), object.clone());
        self.arrivals.push_back(Arrival::Event(FeedEvent::Delta(Delta::Put(object))));
    }

    fn delete(&mut self, kind: Kind, key: NamespacedName) {
        self.objects.retain(|_, object| object.kind() != kind || NamespacedName::of(object) != key);
        self.arrivals.push_back(Arrival::Event(FeedEvent::Delta(Delta::Delete { kind, key })));
    }

    /// Answers the oldest writes whose answers are held.
    pub fn answer_held(&mut self, writes: usize) {
        let some = writes.min(self.held.len());
        self.arrivals.extend(self.held.drain(..some));
    }

    fn change(
        &mut self,
        key: NamespacedName,
        change: impl FnOnce(&mut kubestep_api::Pod),
    ) -> Result<WriteOutcome, String> {
        let found = self.objects.values().find_map(|object| match object {
            Object::Pod(pod) if NamespacedName::of(object) == key => Some(pod.as_ref().clone()),
            _ => None,
        });
        let mut pod = found.ok_or("not found")?;
        change(&mut pod);
        self.put(pod.into());
        Ok(WriteOutcome::Done)
    }

    fn keep_newest(&mut self, exists: &dyn Fn(Kind, NamespacedName) -> bool) {
        let before = self.arrivals.len();
        if before <= feed::QUEUED {
            return;
        }
        let mut events = VecDeque::new();
        for arrival in std::mem::take(&mut self.arrivals) {
            match arrival {
                Arrival::Event(event) => events.push_back(event),
                other => self.arrivals.push_back(other),
            }
        }
        self.arrivals.extend(feed::newest(events, exists).into_iter().map(Arrival::Event));
        self.dropped += before - self.arrivals.len();
    }

    fn make(&mut self, request: Request) -> Result<WriteOutcome, String> {
        match request {
            Request::Bind { pod, node } => self.change(pod.key, |pod| pod.spec.node_name = node),
            Request::PodStatus { pod, patch } => self.change(pod.key, |pod| {
                let condition = patch.condition.into_iter();
                pod.status.conditions.extend(condition);
            }),
            Request::Update { after, .. } => {
                let key = after.key();
                self.put(after);
                Ok(self.objects.get(&key).cloned().map_or(WriteOutcome::Gone, WriteOutcome::Object))
            }
            _ => Ok(WriteOutcome::Done),
        }
    }
}

impl Cluster for StandIn {
    fn poll_next(&mut self, _: &mut Context<'_>) -> Poll<Option<Arrival>> {
        self.try_next().map_or(Poll::Pending, |arrival| Poll::Ready(Some(arrival)))
    }

    fn try_next(&mut self) -> Option<Arrival> {
        self.with(|server| server.arrivals.pop_front())
    }

    fn waiting(&self) -> usize {
        self.with(|server| server.arrivals.len())
    }

    fn keep_newest(&mut self, exists: &dyn Fn(Kind, NamespacedName) -> bool) {
        self.with(|server| server.keep_newest(exists));
    }

    fn take_dropped(&mut self) -> Option<Notice> {
        feed::dropped_notice(self.with(|server| std::mem::take(&mut server.dropped)))
    }

    fn leader_status(&mut self) -> LeaderStatus {
        self.with(|server| server.leader_status.clone()).unwrap_or(LeaderStatus::Leads)
    }

    fn now(&self) -> Time {
        self.with(|server| Time(server.start.0 + server.passed))
    }

    fn send(&mut self, request: Outgoing) {
        let Outgoing { ticket, request } = request;
        let what = request.describe();
        self.with(|server| {
            if !matches!(request, Request::Event { .. }) {
                server.writes.push(what.clone());
            }
            let in_binding_cycle = request.binding_cycle_write();
            let (answer, took) = (server.make(request), Duration::from_millis(1));
            let result = WriteResult { ticket, answer, what, call: None, in_binding_cycle, took };
            let answered = Arrival::Answered(result);
            let holds = server.holds_answers;
            let queue = if holds { &mut server.held } else { &mut server.arrivals };
            queue.push_back(answered);
        });
    }
}
