//! The embedded scheduler as a real one: it schedules the pods of a live cluster and writes its
//! decisions there.
//!
//! The cluster's objects are mirrored in a [`World`] with a remote API server. Watches change it,
//! cycles run whenever a pod can be popped, and the writes go out through a [`Writer`], whose
//! answers arrive in between. All of that is one loop on one thread; other threads wait for the
//! network. While this program may not write, because another replica leads or the cluster cannot
//! be followed, no cycle runs and the gate is closed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::sleep;

use crate::feed::{Delta, Event, Feed, Notice};
use crate::write::{WriteResult, Writer};
use kubestep_api::Object;
use kubestep_cluster::World;
use kubestep_framework::record::{CycleRecord, Outcome, QueueMove};
use kubestep_framework::stopwatch::{Clock, Done, Spent, Stopwatch};

/// Most events and answers applied between two cycles.
const BATCH: usize = 500;
/// How long cycles may run before events are handled again.
const CYCLES: Duration = Duration::from_millis(5);
/// How often timers are checked while the loop is busy.
const TICK: Duration = Duration::from_millis(100);
/// Longest sleep, because clocks may be set.
const REST: Duration = Duration::from_secs(1);

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
    pub fn words(&self) -> String {
        match self {
            Lead::Waiting => "not leading: waiting for the lease".into(),
            Lead::Leading => "leading: scheduling".into(),
            Lead::Lost(reason) => reason.clone(),
        }
    }
}

/// Why scheduling ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// A stop was requested.
    Stopped,
    /// This program lost the lease; the reason.
    LeadLost(String),
    /// The feed ended.
    FeedEnded,
}

/// Something that happened, to be logged or counted.
#[derive(Debug)]
pub enum Report {
    /// A notice about the connection.
    Notice(Notice),
    /// The leadership changed.
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
    },
}

/// The loop of `kubestep schedule`: events in, cycles, writes out.
pub struct Scheduling {
    world: World,
    feed: Feed,
    writer: Writer,
    stopwatch: Arc<Stopwatch>,
    ticked: Instant,
}

struct WallClock(Instant);

impl Clock for WallClock {
    fn nanos(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

impl Scheduling {
    /// Schedules in the cluster that `feed` follows. Its lists are loaded into `world`, whose API
    /// server is remote.
    pub fn new(mut world: World, feed: Feed, writer: Writer) -> Scheduling {
        let now = Instant::now();
        let stopwatch = Arc::new(Stopwatch::new(Arc::new(WallClock(now))));
        world.scheduler_mut().measure(Some(stopwatch.clone()));
        Scheduling { world, feed, writer, stopwatch, ticked: now }
    }

    /// The cluster as the scheduler sees it.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Schedules until it is stopped or loses the lease. Reports what happens to `report`.
    pub async fn run(
        &mut self,
        mut lead: watch::Receiver<Lead>,
        mut stop: watch::Receiver<bool>,
        report: &mut impl FnMut(&World, Report),
    ) -> End {
        let mut reported = None;
        loop {
            let state = lead.borrow_and_update().clone();
            if reported.replace(state.clone()).as_ref() != Some(&state) {
                report(&self.world, Report::Lead(state.clone()));
            }
            if let Lead::Lost(reason) = state {
                self.writer.gate().shut(&reason);
                return End::LeadLost(reason);
            }
            if *stop.borrow_and_update() {
                return End::Stopped;
            }
            if self.turn(state == Lead::Leading, report) {
                yield_now().await;
                continue;
            }
            let rest = self.rest();
            let wakeup = tokio::select! {
                event = self.feed.next() => match event {
                    Some(event) => Wakeup::Event(event),
                    None => return End::FeedEnded,
                },
                Some(answered) = self.writer.next() => Wakeup::Answered(answered),
                _ = lead.changed() => Wakeup::Nothing,
                _ = stop.changed() => Wakeup::Nothing,
                () = sleep(rest) => Wakeup::Nothing,
            };
            match wakeup {
                Wakeup::Event(event) => self.take(event, report),
                Wakeup::Answered(answered) => self.answer(answered, report),
                Wakeup::Nothing => {}
            }
        }
    }

    /// One iteration of the loop. Returns whether there may be more to do at once.
    fn turn(&mut self, leads: bool, report: &mut impl FnMut(&World, Report)) -> bool {
        let mut busy = false;
        for _ in 0..BATCH {
            let Some(event) = self.feed.try_next() else { break };
            self.take(event, report);
            busy = true;
        }
        for _ in 0..BATCH {
            let Some(answered) = self.writer.try_next() else { break };
            self.answer(answered, report);
            busy = true;
        }
        self.tick(report);
        if self.may_write(leads) {
            busy |= self.cycles(report);
        }
        self.write();
        self.report_rest(report);
        busy
    }

    /// Opens or closes the gate.
    fn may_write(&self, leads: bool) -> bool {
        let gate = self.writer.gate();
        match (leads, self.feed.is_cut_off()) {
            (false, _) => gate.close("this replica does not lead"),
            (true, true) => gate.close("the connection to the cluster is lost"),
            (true, false) => gate.open(),
        }
        gate.is_open()
    }

    /// Runs cycles for at most [`CYCLES`]. Returns whether there may be more.
    fn cycles(&mut self, report: &mut impl FnMut(&World, Report)) -> bool {
        let start = Instant::now();
        while start.elapsed() < CYCLES {
            let began = Instant::now();
            let Some(record) = self.world.step() else { return false };
            let took = began.elapsed();
            self.write();
            report(&self.world, Report::Cycle(record.clone(), took));
            report(&self.world, Report::Spent(Some(record), self.stopwatch.take()));
        }
        true
    }

    /// Sends the writes that the scheduler holds.
    fn write(&mut self) {
        for request in self.world.api_mut().take_outbox() {
            self.writer.send(request);
        }
    }

    fn take(&mut self, event: Event, report: &mut impl FnMut(&World, Report)) {
        let began = Instant::now();
        let delta = match event {
            Event::Delta(delta) => delta,
            Event::Notice(notice) => return report(&self.world, Report::Notice(notice)),
        };
        let (kind, key) = delta.place();
        let event = event_name(&delta, self.world.api().get(kind, key).as_ref());
        match delta {
            Delta::Put(object) => self.world.accept(object),
            Delta::Delete { kind, key } => self.world.forget(kind, key),
        }
        report(&self.world, Report::Handled { event, took: began.elapsed() });
    }

    fn answer(&mut self, answered: WriteResult, report: &mut impl FnMut(&World, Report)) {
        let WriteResult { ticket, answer, what } = answered;
        let error = answer.as_ref().err().cloned();
        self.world.answer(ticket, answer);
        report(&self.world, Report::Answered { what, error });
    }

    /// Advances the clock.
    fn tick(&mut self, report: &mut impl FnMut(&World, Report)) {
        if self.ticked.elapsed() >= TICK || self.due().is_zero() {
            self.ticked = Instant::now();
            self.world.advance_to(self.feed.link().now());
            report(&self.world, Report::Tick { followed: !self.feed.is_cut_off() });
        }
    }

    /// Time until the next timer is due.
    fn due(&self) -> Duration {
        let Some(timer) = self.world.next_timer() else { return REST };
        let left = timer.0 - self.feed.link().now().0;
        Duration::from_micros(u64::try_from(left).unwrap_or(0))
    }

    fn rest(&self) -> Duration {
        self.due().clamp(Duration::from_millis(1), REST)
    }

    /// Reports what the scheduler has recorded outside of cycles.
    fn report_rest(&mut self, report: &mut impl FnMut(&World, Report)) {
        let scheduler = self.world.scheduler_mut();
        let finished = scheduler.take_finished();
        scheduler.queue_mut().drain_hints();
        let moves = scheduler.queue_mut().drain_moves();
        self.world.api_mut().take_events();
        self.world.api_mut().take_deleted_pods();
        for record in finished {
            report(&self.world, Report::Decided(Arc::new(record)));
        }
        for moved in moves {
            report(&self.world, Report::Moved(moved));
        }
        let spent = self.stopwatch.take();
        if !spent.is_empty() {
            report(&self.world, Report::Spent(None, spent));
        }
        let done = self.stopwatch.take_done();
        if !done.is_empty() {
            report(&self.world, Report::Done(done));
        }
    }
}

/// The event for a change of an object whose last version is `known`, as upstream names it:
/// `NodeAdd`, `AssignedPodUpdate`.
pub(super) fn event_name(delta: &Delta, known: Option<&Object>) -> String {
    let (kind, _) = delta.place();
    let (action, object) = match delta {
        Delta::Put(object) if known.is_some() => ("Update", Some(object)),
        Delta::Put(object) => ("Add", Some(object)),
        Delta::Delete { .. } => ("Delete", known),
    };
    let which = match object {
        Some(Object::Pod(pod)) if pod.spec.node_name.is_empty() => "Unschedulable",
        Some(Object::Pod(_)) => "Assigned",
        _ => "",
    };
    format!("{which}{kind}{action}")
}

/// What ended a sleep.
enum Wakeup {
    Event(Event),
    Answered(WriteResult),
    Nothing,
}

/// The result of a cycle, in one line.
pub fn words(record: &CycleRecord) -> String {
    let pod = record.pod;
    match (record.outcome, record.node) {
        (Outcome::Scheduled, Some(node)) => format!("bound {pod} to {node}"),
        (Outcome::Waiting, Some(node)) => format!("binding {pod} to {node}"),
        (outcome, _) => format!("{pod}: {}: {}", outcome.as_str(), record.message),
    }
}
