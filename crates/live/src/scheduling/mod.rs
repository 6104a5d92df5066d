//! The embedded scheduler in a live cluster: it schedules the pods of a live cluster and writes its
//! decisions there.
//!
//! The cluster's objects are mirrored in a `World` with a remote API server. Updates from watches
//! change it, cycles run, and the writes go out through a writer, whose answers arrive in between.
//! All of that is done by one `LiveScheduler` on one thread; other threads wait for the network.
//! While this program may not write, because another replica leads or the cluster cannot be
//! followed, no cycle runs.
//!
//! [`Scheduling`] runs cycles whenever a pod can be popped; [`InteractiveScheduler`] when the
//! debugger asks for one, and each change is a step of a session. [`Cluster`] is what lies outside
//! of this process; [`Wire`] is the real one.

mod automatic;
mod cluster;
mod in_flight;
mod interactive;
#[cfg(any(test, feature = "testing"))]
pub mod stand_in;

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::feed::{Delta, FeedEvent, Notice};
use crate::updates::{ClusterUpdate, ClusterUpdates};
use crate::write::WriteResult;
use kubestep_api::{Kind, Object};
use kubestep_cluster::World;
use kubestep_cluster::remote::{CallType, Outgoing};
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::{CycleRecord, Outcome, QueueMove};
use kubestep_framework::stopwatch::{Done, Spent};

pub use automatic::Scheduling;
pub use cluster::{Arrival, Cluster, LeaderStatus, Wire};
pub use interactive::{InteractiveScheduler, WritesHeld};

/// How often the permission to write and the timers are checked.
const TICK: Duration = Duration::from_millis(100);
/// How far the scheduler's clock may lag behind the server's in a cycle, in microseconds.
const LAG: i64 = 100_000;

/// Whether this program holds the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lead {
    /// Another replica holds the lease, or none yet.
    Waiting,
    /// This program holds it.
    Leading,
    /// This program held it, and must not write any more; the reason.
    Lost(String),
}

impl Lead {
    /// In a few words.
    pub fn describe(&self) -> String {
        match self {
            Lead::Waiting => "not leading: waiting for the lease".into(),
            Lead::Leading => "leading: scheduling".into(),
            Lead::Lost(reason) => reason.clone(),
        }
    }
}

/// Why the scheduling loop ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchedulingEnd {
    /// A stop was requested.
    Stopped,
    /// This program lost the lease; the reason.
    LeadLost(String),
    /// The feed of the cluster's changes ended.
    FeedEnded,
}

/// Something that happened, to be logged or counted.
#[derive(Debug)]
pub enum SchedulingReport {
    /// A notice about the connection.
    Notice(Notice),
    /// This program acquired, waits for or lost the lease.
    Lead(Lead),
    /// A cycle ended: bound, rejected or failed; or its pod waits in its binding cycle. With the
    /// cycle's duration.
    Cycle(Arc<CycleRecord>, Duration),
    /// The binding cycle of a pod that had waited ended.
    Decided(Arc<CycleRecord>),
    /// A pod moved in the queue.
    Moved(QueueMove),
    /// Plugin durations: of the cycle that was reported last, or outside of cycles.
    Spent(Option<Arc<CycleRecord>>, Vec<Spent>),
    /// Work of the scheduler apart from calling plugins at extension points.
    Done(Vec<Done>),
    /// A change of the cluster was applied.
    Handled {
        /// The event, as upstream names it.
        event: String,
        /// How long it took.
        took: Duration,
    },
    /// The regular timer fired.
    Tick {
        /// Whether the cluster is followed.
        followed: bool,
    },
    /// A write was answered.
    Answered {
        /// The write, in a few words.
        what: String,
        /// The error, if it failed.
        error: Option<String>,
        /// What sort of call it was, and how long it took.
        call: Option<(CallType, Duration)>,
    },
    /// A write was sent.
    Sent(CallType),
}

/// Receives what happens, for logs and metrics.
pub type Reporter = Box<dyn FnMut(&World, SchedulingReport) + Send>;

/// What the scheduler decides on: a world, or a session that records every change as a step.
trait SchedulerState {
    /// The most updates that are applied as one.
    const BATCH: usize;

    /// The cluster as the scheduler sees it.
    fn world(&self) -> &World;

    /// Whether a new version of an object, whose present one is `there`, can be skipped because it
    /// changes nothing that a scheduler reads. `pending` are the updates that precede it.
    fn is_irrelevant(
        &self,
        pending: &[ClusterUpdate],
        there: Option<&Object>,
        new: &Object,
    ) -> bool;

    /// Applies updates; without any, only time passes.
    fn apply(&mut self, updates: ClusterUpdates);

    /// Runs a cycle; `None` if no pod is in the active queue.
    fn cycle(&mut self) -> Option<Arc<CycleRecord>>;

    /// Takes the writes that the scheduler holds.
    fn take_requests(&mut self) -> Vec<Outgoing>;

    /// What was recorded since the last call: queue moves, and binding cycles that ended.
    fn take_records(&mut self) -> (Vec<QueueMove>, Vec<Arc<CycleRecord>>);

    /// What was measured since the last call.
    fn take_measurements(&mut self) -> (Vec<Spent>, Vec<Done>);
}

/// The scheduler of a live cluster: applies what arrives, runs cycles, sends writes and reports all
/// of it. When to do which is decided by its callers.
struct LiveScheduler {
    cluster: Box<dyn Cluster>,
    /// Whether writes are allowed, as of the last check.
    status: LeaderStatus,
    /// The status that was noticed last.
    noticed: LeaderStatus,
    /// The leadership that was reported last.
    lead: Option<Lead>,
    report: Reporter,
}

/// Arrivals that are applied as one.
#[derive(Default)]
struct Batch {
    updates: Vec<ClusterUpdate>,
    /// The names of the events.
    handled: Vec<String>,
    notices: Vec<Notice>,
}

impl LiveScheduler {
    /// A scheduler whose cluster's lists are loaded into `world`.
    fn new(mut cluster: Box<dyn Cluster>, world: &World, report: Reporter) -> LiveScheduler {
        let status = cluster.leader_status();
        let noticed = status.clone();
        let mut scheduler = LiveScheduler { cluster, status, noticed, lead: None, report };
        scheduler.report_lead(world);
        scheduler
    }

    /// The next arrival. Cancel safe: nothing is lost if this is dropped before it is ready.
    async fn next(&mut self) -> Option<Arrival> {
        std::future::poll_fn(|cx| self.cluster.poll_next(cx)).await
    }

    /// Checks whether writes are allowed.
    fn check(&mut self) -> &LeaderStatus {
        self.status = self.cluster.leader_status();
        &self.status
    }

    /// Applies `first` and what has queued up behind it, up to the state's batch, and sends the
    /// writes that follow. Returns the notices to show.
    fn take<S: SchedulerState>(&mut self, state: &mut S, first: Arrival) -> Vec<Notice> {
        let began = Instant::now();
        let mut batch = Batch::default();
        batch.notices.extend(self.cluster.take_dropped());
        self.collect(state, &mut batch, first);
        for _ in 1..S::BATCH {
            let Some(arrival) = self.cluster.try_next() else { break };
            self.collect(state, &mut batch, arrival);
        }
        let Batch { updates, handled, notices } = batch;
        if !updates.is_empty() {
            self.apply(state, updates);
        }
        // A batch is applied as one; each update counts with the mean duration.
        let took = began.elapsed() / u32::try_from(handled.len()).unwrap_or(u32::MAX).max(1);
        for event in handled {
            (self.report)(state.world(), SchedulingReport::Handled { event, took });
        }
        notices
    }

    fn collect<S: SchedulerState>(&mut self, state: &S, batch: &mut Batch, arrival: Arrival) {
        match arrival {
            Arrival::Event(FeedEvent::Delta(delta)) => batch.change(state, delta),
            Arrival::Event(FeedEvent::Notice(notice)) => {
                (self.report)(state.world(), SchedulingReport::Notice(notice.clone()));
                batch.notices.push(notice);
            }
            Arrival::Answered(WriteResult { ticket, answer, what, call, took, .. }) => {
                let call = call.map(|call| (call, took));
                let error = answer.as_ref().err().cloned();
                let text = error.as_ref().map(|error| format!("{what}: {error}"));
                batch.notices.extend(text.map(|text| Notice { serious: true, text }));
                (self.report)(
                    state.world(),
                    SchedulingReport::Answered { what: what.clone(), error, call },
                );
                batch.updates.push(ClusterUpdate::Answer { ticket, answer, what });
            }
            Arrival::Lead => {}
        }
    }

    /// Applies `updates` at the present time and sends the writes that follow.
    fn apply(&mut self, state: &mut impl SchedulerState, updates: Vec<ClusterUpdate>) {
        state.apply(ClusterUpdates { now: self.cluster.now(), updates });
        self.send(state);
    }

    /// Runs a cycle for the next pod on the present state of the cluster. Its writes are not sent
    /// yet. `false` if no pod is in the active queue.
    fn cycle(&mut self, state: &mut impl SchedulerState) -> bool {
        if self.cluster.now().0 - state.world().now().0 > LAG {
            self.apply(state, Vec::new());
        }
        let began = Instant::now();
        let Some(record) = state.cycle() else { return false };
        let took = began.elapsed();
        (self.report)(state.world(), SchedulingReport::Cycle(record.clone(), took));
        self.report_measurements(state, Some(record));
        true
    }

    /// Sends the writes that the scheduler holds. Returns whether there were any.
    fn send(&mut self, state: &mut impl SchedulerState) -> bool {
        let requests = state.take_requests();
        self.report_records(state);
        let sent = !requests.is_empty();
        for request in requests {
            if let Some(call) = request.request.call_type() {
                (self.report)(state.world(), SchedulingReport::Sent(call));
            }
            self.cluster.send(request);
        }
        sent
    }

    /// Reports a change of the permission to write, which is noticed, and unless `held`, advances
    /// the clock if a timer is due. Returns whether the clock was advanced.
    fn tick(&mut self, state: &mut impl SchedulerState, held: bool) -> (bool, Option<Notice>) {
        self.check();
        let notice = (self.status != self.noticed).then(|| {
            self.noticed = self.status.clone();
            self.report_lead(state.world());
            Notice { serious: self.status != LeaderStatus::Leads, text: self.status.describe() }
        });
        let followed = self.status != LeaderStatus::CutOff;
        (self.report)(state.world(), SchedulingReport::Tick { followed });
        let due = !held && self.due(state.world()).is_some_and(|due| due.is_zero());
        if due {
            self.apply(state, Vec::new());
        }
        (due, notice)
    }

    /// Time until the next timer is due; `None` if there is none.
    fn due(&self, world: &World) -> Option<Duration> {
        let left = world.next_timer()?.0 - self.cluster.now().0;
        Some(Duration::from_micros(u64::try_from(left).unwrap_or(0)))
    }

    fn report_lead(&mut self, world: &World) {
        let lead = self.status.lead().filter(|lead| self.lead.as_ref() != Some(lead));
        if let Some(lead) = lead {
            self.lead = Some(lead.clone());
            (self.report)(world, SchedulingReport::Lead(lead));
        }
    }

    /// Reports what was recorded and measured outside of cycles.
    fn report_records(&mut self, state: &mut impl SchedulerState) {
        let (moves, decided) = state.take_records();
        for moved in moves {
            (self.report)(state.world(), SchedulingReport::Moved(moved));
        }
        for record in decided {
            (self.report)(state.world(), SchedulingReport::Decided(record));
        }
        self.report_measurements(state, None);
    }

    /// Reports what was measured: in a cycle, or outside of cycles.
    fn report_measurements(
        &mut self,
        state: &mut impl SchedulerState,
        record: Option<Arc<CycleRecord>>,
    ) {
        let (spent, done) = state.take_measurements();
        if !spent.is_empty() {
            (self.report)(state.world(), SchedulingReport::Spent(record, spent));
        }
        if !done.is_empty() {
            (self.report)(state.world(), SchedulingReport::Done(done));
        }
    }
}

impl Batch {
    fn change(&mut self, state: &impl SchedulerState, delta: Delta) {
        let (kind, key) = delta.place();
        let there = state.world().api().get(kind, key);
        let known = latest(&self.updates, kind, key).unwrap_or(there.as_ref());
        let new = match &delta {
            Delta::Put(new) => Some(new),
            Delta::Delete { .. } => None,
        };
        self.handled.extend(state.world().scheduler().event_labels(known, new));
        match delta {
            Delta::Put(new) if state.is_irrelevant(&self.updates, there.as_ref(), &new) => {}
            Delta::Put(new) => self.updates.push(ClusterUpdate::Accept(new)),
            Delta::Delete { kind, key } => self.updates.push(ClusterUpdate::Forget(kind, key)),
        }
    }
}

/// The object as the pending `updates` leave it; `None` if none of them concerns it.
fn latest(updates: &[ClusterUpdate], kind: Kind, key: NamespacedName) -> Option<Option<&Object>> {
    updates.iter().rev().find_map(|update| match update {
        ClusterUpdate::Accept(object) => {
            let same = object.kind() == kind && NamespacedName::of(object) == key;
            same.then_some(Some(object))
        }
        ClusterUpdate::Forget(of, name) => ((*of, *name) == (kind, key)).then_some(None),
        _ => None,
    })
}

/// The result of a cycle, in one line.
pub fn describe_cycle(record: &CycleRecord) -> String {
    let pod = record.pod;
    match (record.outcome, record.node) {
        (Outcome::Scheduled, Some(node)) => format!("bound {pod} to {node}"),
        (Outcome::Waiting, Some(node)) => format!("binding {pod} to {node}"),
        (outcome, _) => format!("{pod}: {}: {}", outcome.as_str(), record.message),
    }
}
