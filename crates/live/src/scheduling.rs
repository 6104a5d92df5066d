//! The embedded scheduler as a real one: it decides about the pods of a live cluster, and what
//! it decides is written there.
//!
//! The cluster's objects are kept in a [`World`] whose API server is elsewhere. Watches change
//! it, cycles run whenever a pod can be popped, and what they want written goes out through a
//! [`Writer`], whose answers come back in between. All of that is one loop on one thread; the
//! network is waited for by others. While this program may not write, as another replica leads
//! or the cluster cannot be followed, no cycle runs and the gate is closed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::sleep;

use crate::feed::{Delta, Event, Feed, Notice};
use crate::write::{Answered, Writer};
use kubestep_api::Object;
use kubestep_cluster::World;
use kubestep_framework::record::{CycleRecord, Outcome, QueueMove};
use kubestep_framework::runtime::stopwatch::{Clock, Done, Spent, Stopwatch};

/// Events and answers taken in between two cycles, at most.
const BATCH: usize = 500;
/// How long cycles may run before something else is looked at.
const CYCLES: Duration = Duration::from_millis(5);
/// How often timers are looked at while there is always something to do.
const TICK: Duration = Duration::from_millis(100);
/// How long to sleep at most: clocks may be set.
const REST: Duration = Duration::from_secs(1);

/// Whether this program is the one that schedules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lead {
    /// Another replica does, or nobody yet.
    Waiting,
    /// It is.
    Leading,
    /// It was, and must not write any more; why.
    Lost(String),
}

impl Lead {
    /// In a few words.
    pub fn words(&self) -> String {
        match self {
            Lead::Waiting => "another replica may lead: waiting for the lease".into(),
            Lead::Leading => "leading: scheduling".into(),
            Lead::Lost(reason) => reason.clone(),
        }
    }
}

/// Why scheduling ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It was asked to.
    Stopped,
    /// It may not lead any more.
    LeadLost(String),
    /// The cluster is not followed any more.
    FeedEnded,
}

/// Something that happened, to be told or counted.
#[derive(Debug)]
pub enum Told {
    /// About the connection.
    Notice(Notice),
    /// It came to lead, or waits for that.
    Lead(Lead),
    /// A cycle came to its end: bound, refused or failed; or its pod waits. With the time that
    /// it took.
    Cycle(Arc<CycleRecord>, Duration),
    /// A cycle whose pod had waited is decided.
    Decided(Arc<CycleRecord>),
    /// A pod changed its place in the queue.
    Moved(QueueMove),
    /// What plugins took: for the cycle that was told before, or beside the cycles.
    Spent(Option<Arc<CycleRecord>>, Vec<Spent>),
    /// What the scheduler did beside calling plugins at their points.
    Done(Vec<Done>),
    /// A change of the cluster was taken in.
    Handled {
        /// What happened, as upstream names it.
        event: String,
        /// How long it took.
        took: Duration,
    },
    /// A moment passed.
    Tick {
        /// Whether the cluster is followed.
        followed: bool,
    },
    /// A write was answered.
    Answered {
        /// What was to be written.
        what: String,
        /// What went wrong, if it did.
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

/// The computer's own clock.
struct WallClock(Instant);

impl Clock for WallClock {
    fn nanos(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

impl Scheduling {
    /// Schedules in the cluster that `feed` follows and whose lists were loaded into `world`,
    /// which writes elsewhere.
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

    /// Schedules until it is stopped or may not lead any more. What happens is given to `tell`.
    pub async fn run(
        &mut self,
        mut lead: watch::Receiver<Lead>,
        mut stop: watch::Receiver<bool>,
        tell: &mut impl FnMut(&World, Told),
    ) -> End {
        let mut told = None;
        loop {
            let state = lead.borrow_and_update().clone();
            if told.replace(state.clone()).as_ref() != Some(&state) {
                tell(&self.world, Told::Lead(state.clone()));
            }
            if let Lead::Lost(reason) = state {
                self.writer.gate().shut(&reason);
                return End::LeadLost(reason);
            }
            if *stop.borrow_and_update() {
                return End::Stopped;
            }
            if self.turn(state == Lead::Leading, tell) {
                yield_now().await;
                continue;
            }
            let rest = self.rest();
            let news = tokio::select! {
                event = self.feed.next() => match event {
                    Some(event) => News::Event(event),
                    None => return End::FeedEnded,
                },
                Some(answered) = self.writer.next() => News::Answered(answered),
                _ = lead.changed() => News::Nothing,
                _ = stop.changed() => News::Nothing,
                () = sleep(rest) => News::Nothing,
            };
            match news {
                News::Event(event) => self.take(event, tell),
                News::Answered(answered) => self.answer(answered, tell),
                News::Nothing => {}
            }
        }
    }

    /// One round of everything. `true`: there may be more to do at once.
    fn turn(&mut self, leads: bool, tell: &mut impl FnMut(&World, Told)) -> bool {
        let mut busy = false;
        for _ in 0..BATCH {
            let Some(event) = self.feed.try_next() else { break };
            self.take(event, tell);
            busy = true;
        }
        for _ in 0..BATCH {
            let Some(answered) = self.writer.try_next() else { break };
            self.answer(answered, tell);
            busy = true;
        }
        self.tick(tell);
        if self.may_write(leads) {
            busy |= self.cycles(tell);
        }
        self.write();
        self.tell_rest(tell);
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

    /// Runs cycles for a moment. `true`: there may be more.
    fn cycles(&mut self, tell: &mut impl FnMut(&World, Told)) -> bool {
        let start = Instant::now();
        while start.elapsed() < CYCLES {
            let began = Instant::now();
            let Some(record) = self.world.step() else { return false };
            let took = began.elapsed();
            self.write();
            tell(&self.world, Told::Cycle(record.clone(), took));
            tell(&self.world, Told::Spent(Some(record), self.stopwatch.take()));
        }
        true
    }

    /// Sends what the scheduler wants written.
    fn write(&mut self) {
        for request in self.world.api_mut().take_outbox() {
            self.writer.send(request);
        }
    }

    fn take(&mut self, event: Event, tell: &mut impl FnMut(&World, Told)) {
        let began = Instant::now();
        let delta = match event {
            Event::Delta(delta) => delta,
            Event::Notice(notice) => return tell(&self.world, Told::Notice(notice)),
        };
        let (kind, key) = delta.place();
        let event = event_name(&delta, self.world.api().get(kind, key).as_ref());
        match delta {
            Delta::Put(object) => self.world.accept(object),
            Delta::Delete { kind, key } => self.world.forget(kind, key),
        }
        tell(&self.world, Told::Handled { event, took: began.elapsed() });
    }

    fn answer(&mut self, answered: Answered, tell: &mut impl FnMut(&World, Told)) {
        let Answered { ticket, answer, what } = answered;
        let error = answer.as_ref().err().cloned();
        self.world.answer(ticket, answer);
        tell(&self.world, Told::Answered { what, error });
    }

    /// Lets time pass.
    fn tick(&mut self, tell: &mut impl FnMut(&World, Told)) {
        if self.ticked.elapsed() >= TICK || self.due().is_zero() {
            self.ticked = Instant::now();
            self.world.advance_to(self.feed.link().now());
            tell(&self.world, Told::Tick { followed: !self.feed.is_cut_off() });
        }
    }

    /// How long until something is due by itself.
    fn due(&self) -> Duration {
        let Some(timer) = self.world.next_timer() else { return REST };
        let left = timer.0 - self.feed.link().now().0;
        Duration::from_micros(u64::try_from(left).unwrap_or(0))
    }

    fn rest(&self) -> Duration {
        self.due().clamp(Duration::from_millis(1), REST)
    }

    /// Tells what the scheduler has written down beside the cycles.
    fn tell_rest(&mut self, tell: &mut impl FnMut(&World, Told)) {
        let scheduler = self.world.scheduler_mut();
        let finished = scheduler.take_finished();
        scheduler.queue_mut().drain_hints();
        let moves = scheduler.queue_mut().drain_moves();
        self.world.api_mut().take_events();
        self.world.api_mut().take_deleted_pods();
        for record in finished {
            tell(&self.world, Told::Decided(Arc::new(record)));
        }
        for moved in moves {
            tell(&self.world, Told::Moved(moved));
        }
        let spent = self.stopwatch.take();
        if !spent.is_empty() {
            tell(&self.world, Told::Spent(None, spent));
        }
        let done = self.stopwatch.take_done();
        if !done.is_empty() {
            tell(&self.world, Told::Done(done));
        }
    }
}

/// What a change of an object is that is `known` so far, as upstream names it: `NodeAdd`,
/// `AssignedPodUpdate`.
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

/// What a rest ended with.
enum News {
    Event(Event),
    Answered(Answered),
    Nothing,
}

/// What became of a pod, in one line.
pub fn words(record: &CycleRecord) -> String {
    let pod = record.pod;
    match (record.outcome, record.node) {
        (Outcome::Scheduled, Some(node)) => format!("bound {pod} to {node}"),
        (Outcome::Waiting, Some(node)) => format!("{pod} is on its way to {node}"),
        (outcome, _) => format!("{pod}: {}: {}", outcome.as_str(), record.message),
    }
}
