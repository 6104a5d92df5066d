//! Schedules a real cluster from the debugger: a cycle runs when the user asks for it, its writes
//! are held until the user sends them, and changes of the cluster, including answers to writes,
//! arrive as updates. All of them are steps of one session.
//!
//! The interface decides when to do which. [`Cluster`] is the interface to what lies outside of
//! this process; [`Wire`] is the real one.

#[cfg(any(test, feature = "testing"))]
pub mod stand_in;
mod wire;

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::feed::{Delta, Event, Notice};
use crate::scheduling::{Lead, Report, event_name};
use crate::updates::{ClusterUpdate, ClusterUpdates, is_irrelevant};
use crate::write::WriteResult;
use kubestep_api::{Kind, Object, Time};
use kubestep_cluster::World;
use kubestep_cluster::remote::Outgoing;
use kubestep_debug::trace::Entry;
use kubestep_debug::{Input, Ran, Session};
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::CycleRecord;
use kubestep_framework::stopwatch::Spent;

pub use wire::Wire;

/// Updates applied in one batch.
const BATCH: usize = 2_000;
/// How often the permission to write and the timers are checked.
const TICK: Duration = Duration::from_millis(100);
/// How far the scheduler's clock may lag behind the server's in a cycle, in microseconds.
const LAG: i64 = 100_000;

/// Something that arrived from the cluster.
#[derive(Debug)]
pub enum Arrival {
    /// A change, or a notice about the connection.
    Event(Event),
    /// The answer to a write.
    Answered(WriteResult),
}

/// Whether writes are allowed now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaderStatus {
    /// Writes are allowed.
    Leads,
    /// Another replica may hold the lease.
    Waits,
    /// Writes are never allowed again; the reason.
    Lost(String),
    /// The cluster cannot be followed.
    CutOff,
}

impl LeaderStatus {
    /// For people, in a few words.
    pub fn words(&self) -> String {
        match self {
            LeaderStatus::Leads => "leading: decisions are written to the cluster".into(),
            LeaderStatus::Waits => {
                "not leading: no cycle runs until this replica gets the lease".into()
            }
            LeaderStatus::Lost(reason) => format!("writing stopped: {reason}"),
            LeaderStatus::CutOff => {
                "the connection to the cluster is lost: no cycles and no writes \
                                     until it is restored"
                    .into()
            }
        }
    }

    /// Whether writes will never be allowed again.
    pub fn is_lost(&self) -> bool {
        matches!(self, LeaderStatus::Lost(_))
    }

    fn lead(&self) -> Option<Lead> {
        Some(match self {
            LeaderStatus::Leads => Lead::Leading,
            LeaderStatus::Waits => Lead::Waiting,
            LeaderStatus::Lost(reason) => Lead::Lost(reason.clone()),
            LeaderStatus::CutOff => return None,
        })
    }
}

/// The cluster beyond this process.
pub trait Cluster: Send {
    /// The next arrival, once there is one; `None` if no more can arrive.
    fn poll_next(&mut self, cx: &mut std::task::Context<'_>) -> std::task::Poll<Option<Arrival>>;

    /// The next arrival, if there is one already.
    fn try_next(&mut self) -> Option<Arrival>;

    /// How many arrivals are queued.
    fn waiting(&self) -> usize;

    /// Whether writes are allowed. Once it answers no, no further write is sent.
    fn standing(&mut self) -> LeaderStatus;

    /// The time by the server's clock.
    fn now(&self) -> Time;

    /// Sends a write in the background.
    fn send(&mut self, request: Outgoing);
}

/// Receives what happens, for metrics.
pub type Reporter = Box<dyn FnMut(&World, Report) + Send>;

/// The embedded scheduler, run cycle by cycle from the debugger on a real cluster.
pub struct InteractiveScheduler {
    cluster: Box<dyn Cluster>,
    context: String,
    dry_run: bool,
    frozen: bool,
    standing: LeaderStatus,
    report: Reporter,
    /// How many entries and steps of the session were reported.
    reported: (usize, usize),
    /// Plugin durations that were reported.
    spent: Vec<Spent>,
}

impl InteractiveScheduler {
    /// Schedules in a cluster whose lists are loaded into `session` and whose changes `cluster`
    /// delivers.
    pub fn new(
        mut cluster: Box<dyn Cluster>,
        session: &Session,
        (context, dry_run): (String, bool),
        mut report: Reporter,
    ) -> InteractiveScheduler {
        let reported = (session.history().len(), session.timeline().steps().end());
        let standing = cluster.standing();
        standing.lead().into_iter().for_each(|lead| report(session.world(), Report::Lead(lead)));
        let spent = session.times().sum().to_vec();
        InteractiveScheduler {
            cluster,
            context,
            dry_run,
            frozen: false,
            standing,
            report,
            reported,
            spent,
        }
    }

    /// The name of the context.
    pub fn context(&self) -> &str {
        &self.context
    }

    /// Whether every write is sent with `dryRun=All`.
    pub fn is_dry_run(&self) -> bool {
        self.dry_run
    }

    /// Whether updates are queued instead of applied.
    pub fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// Queues updates from now on, or applies all that have queued up.
    pub fn freeze(&mut self, frozen: bool) {
        self.frozen = frozen;
    }

    /// Whether writes were allowed at the last check.
    pub fn standing(&self) -> &LeaderStatus {
        &self.standing
    }

    /// How many updates are queued.
    pub fn waiting(&self) -> usize {
        self.cluster.waiting()
    }

    /// The next arrival. Cancel safe: nothing is lost if this is dropped before it is ready.
    pub async fn next(&mut self) -> Option<Arrival> {
        std::future::poll_fn(|cx| self.cluster.poll_next(cx)).await
    }

    /// Applies `first` and everything that has queued up behind it, and sends the writes that
    /// follow. Returns the notices to show.
    pub fn take(&mut self, session: &mut Session, first: Arrival) -> Vec<Notice> {
        let (mut notices, mut updates, mut handled) = (Vec::new(), Vec::new(), Vec::new());
        let (mut next, mut left) = (Some(first), BATCH);
        let began = Instant::now();
        while let Some(arrival) = next {
            match arrival {
                Arrival::Event(Event::Delta(delta)) => {
                    let (kind, key) = delta.place();
                    let there = session.world().api().get(kind, key);
                    let known = latest(&updates, kind, key).unwrap_or(there.as_ref());
                    handled.push(event_name(&delta, known));
                    updates.extend(update_of(session, &updates, delta, there.as_ref()));
                }
                Arrival::Event(Event::Notice(notice)) => {
                    (self.report)(session.world(), Report::Notice(notice.clone()));
                    notices.push(notice);
                }
                Arrival::Answered(answered) => {
                    notices.extend(self.answered(session.world(), &answered));
                    let WriteResult { ticket, answer, what } = answered;
                    updates.push(ClusterUpdate::Answer { ticket, answer, what });
                }
            }
            left -= 1;
            next = if left > 0 { self.cluster.try_next() } else { None };
        }
        if !updates.is_empty() {
            self.apply(session, updates);
        }
        // The batch is applied as one; each update counts with the mean duration.
        let took = began.elapsed() / u32::try_from(handled.len()).unwrap_or(u32::MAX).max(1);
        for event in handled {
            (self.report)(session.world(), Report::Handled { event, took });
        }
        notices
    }

    /// The notice for a write that failed.
    fn answered(&mut self, world: &World, answered: &WriteResult) -> Option<Notice> {
        let error = answered.answer.as_ref().err().cloned();
        let text = error.as_ref().map(|error| format!("{}: {error}", answered.what));
        (self.report)(world, Report::Answered { what: answered.what.clone(), error });
        text.map(|text| Notice { serious: true, text })
    }

    /// Runs a cycle for the next pod on the present state of the cluster. Its writes are not sent
    /// yet. `false` if no pod is in the active queue.
    ///
    /// # Errors
    /// Why no cycle may run now.
    pub fn decide(&mut self, session: &mut Session) -> Result<bool, String> {
        self.may_write()?;
        if self.cluster.now().0 - session.world().now().0 > LAG {
            self.apply(session, Vec::new());
        }
        let began = Instant::now();
        let ran = session.run_cycle() == Ran::NewCycle;
        let took = began.elapsed();
        if let Some(record) = session.record().filter(|_| ran).cloned() {
            (self.report)(session.world(), Report::Cycle(record.clone(), took));
            self.report_spent(session, Some(record));
        }
        Ok(ran)
    }

    /// Applies all updates that have queued up.
    pub fn catch_up(&mut self, session: &mut Session) -> Vec<Notice> {
        match self.cluster.try_next() {
            Some(first) => self.take(session, first),
            None => Vec::new(),
        }
    }

    /// Whether cycles may run and writes may be sent.
    ///
    /// # Errors
    /// Why they may not.
    pub fn may_write(&mut self) -> Result<(), String> {
        self.standing = self.cluster.standing();
        match (&self.standing, self.frozen) {
            (LeaderStatus::Leads, false) => Ok(()),
            (LeaderStatus::Leads, true) => Err("frozen: Z resumes updates".into()),
            (standing, _) => Err(standing.words()),
        }
    }

    /// Sends the writes that the scheduler holds. Returns a summary of them, if there are any.
    pub fn send(&mut self, session: &mut Session) -> Option<String> {
        let words = session.unsent_words();
        let requests = session.send();
        self.report_new(session);
        let sent = !requests.is_empty();
        requests.into_iter().for_each(|request| self.cluster.send(request));
        sent.then_some(words)
    }

    /// Checks whether writes are still allowed and, unless `held`, advances the clock. Returns
    /// whether anything changed, and the notices to show.
    pub fn tick(&mut self, session: &mut Session, held: bool) -> (bool, Vec<Notice>) {
        let standing = self.cluster.standing();
        let changed = standing != self.standing;
        let mut notices = Vec::new();
        if changed {
            let serious = standing != LeaderStatus::Leads;
            notices.push(Notice { serious, text: standing.words() });
            let lead = standing.lead();
            lead.into_iter().for_each(|lead| (self.report)(session.world(), Report::Lead(lead)));
            self.standing = standing;
        }
        let followed = self.standing != LeaderStatus::CutOff;
        (self.report)(session.world(), Report::Tick { followed });
        let now = self.cluster.now();
        let due = session.next_timer().is_some_and(|timer| timer.due <= now);
        if due && !held {
            self.apply(session, Vec::new());
        }
        (changed || due && !held, notices)
    }

    /// When to call [`InteractiveScheduler::tick`] again.
    pub fn next_tick(&self) -> Duration {
        TICK
    }

    /// Applies `updates` at the present time.
    fn apply(&mut self, session: &mut Session, updates: Vec<ClusterUpdate>) {
        let updates = ClusterUpdates { now: self.cluster.now(), updates };
        // Applying updates cannot fail.
        let _done = session.apply_beside(Input::Change(Arc::new(updates)));
        self.send(session);
    }

    /// Reports what the session has recorded since the last call, except the cycle that was run.
    fn report_new(&mut self, session: &Session) {
        let (entries, steps) = self.reported;
        for entry in session.history().entries().from(entries) {
            if let Entry::Move(moved) = entry.as_ref() {
                (self.report)(session.world(), Report::Moved(moved.clone()));
            }
        }
        for step in session.timeline().steps().from(steps) {
            for record in decided(session, step) {
                (self.report)(session.world(), Report::Decided(record));
            }
        }
        self.reported = (session.history().len(), session.timeline().steps().end());
        self.report_spent(session, None);
    }

    /// Reports the plugin durations since the last call: of a cycle, or outside of cycles.
    fn report_spent(&mut self, session: &Session, record: Option<Arc<CycleRecord>>) {
        let sum = session.times().sum();
        let new: Vec<Spent> = sum.iter().filter_map(|now| since(&self.spent, now)).collect();
        if !new.is_empty() {
            self.spent = sum.to_vec();
            (self.report)(session.world(), Report::Spent(record, new));
        }
    }
}

/// The operation for a change of the cluster; `None` if the change concerns nothing that a
/// scheduler reads.
fn update_of(
    session: &Session,
    updates: &[ClusterUpdate],
    delta: Delta,
    there: Option<&Object>,
) -> Option<ClusterUpdate> {
    match delta {
        Delta::Put(object) => {
            let nothing = is_irrelevant(session, updates, there, &object);
            (!nothing).then_some(ClusterUpdate::Accept(object))
        }
        Delta::Delete { kind, key } => Some(ClusterUpdate::Forget(kind, key)),
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

/// The plugin's duration at a point since it was reported.
fn since(reported: &[Spent], now: &Spent) -> Option<Spent> {
    let same = |old: &&Spent| old.point == now.point && old.plugin == now.plugin;
    let Some(old) = reported.iter().find(same) else { return Some(*now) };
    let new = Spent {
        turns: now.turns.saturating_sub(old.turns),
        nanos: now.nanos.saturating_sub(old.nanos),
        nodes: now.nodes.saturating_sub(old.nodes),
        refused: now.refused.saturating_sub(old.refused),
        ..*now
    };
    (new.turns > 0).then_some(new)
}

/// The cycles that a step ended although they began before it.
fn decided(session: &Session, step: &kubestep_debug::Step) -> Vec<Arc<CycleRecord>> {
    let completed = step.completed();
    let now = completed.filter_map(|before| session.history().cycle(before.cycle).cloned());
    now.collect()
}
