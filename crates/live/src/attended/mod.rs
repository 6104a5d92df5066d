//! The embedded scheduler as a real one with somebody at its debugger: cycles run when they are
//! asked for, what they want written is held until it is sent, and what happens in the cluster,
//! answers to writes among it, comes in as news, all as steps of one session.
//!
//! When to do which is for the interface to say. [`Cluster`] is what there is beyond this
//! process; the real one is [`Wire`].

#[cfg(any(test, feature = "testing"))]
pub mod stand_in;
mod wire;

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::feed::{Delta, Event, Notice};
use crate::news::{News, Op, says_nothing};
use crate::scheduling::{Lead, Told, event_name};
use crate::write::Answered;
use kubestep_api::{Kind, Object, Time};
use kubestep_cluster::World;
use kubestep_cluster::remote::Outgoing;
use kubestep_debug::trace::Entry;
use kubestep_debug::{Input, Ran, Session};
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::CycleRecord;
use kubestep_framework::runtime::stopwatch::Spent;

pub use wire::Wire;

/// News taken in at once.
const BATCH: usize = 2_000;
/// How often it is looked at whether writes are still allowed and what is due.
const TICK: Duration = Duration::from_millis(100);
/// How much older than now the scheduler's clock may be in a cycle, in microseconds.
const LAG: i64 = 100_000;

/// Something that came from the cluster.
#[derive(Debug)]
pub enum Arrival {
    /// A change, or a word about the connection.
    Event(Event),
    /// The answer to a write.
    Answered(Answered),
}

/// Whether writes are allowed at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// They are.
    Leads,
    /// Another replica may lead.
    Waits,
    /// Never again; why.
    Lost(String),
    /// The cluster cannot be followed.
    CutOff,
}

impl Standing {
    /// What it means, for people.
    pub fn words(&self) -> String {
        match self {
            Standing::Leads => "this scheduler leads: what it decides is written".into(),
            Standing::Waits => "another replica may lead: nothing is decided until the lease \
                                is free"
                .into(),
            Standing::Lost(reason) => format!("nothing is written any more: {reason}"),
            Standing::CutOff => "the connection to the cluster is lost: nothing is decided or \
                                 written until it is back"
                .into(),
        }
    }

    /// Whether writes will never be allowed again.
    pub fn is_lost(&self) -> bool {
        matches!(self, Standing::Lost(_))
    }

    fn lead(&self) -> Option<Lead> {
        Some(match self {
            Standing::Leads => Lead::Leading,
            Standing::Waits => Lead::Waiting,
            Standing::Lost(reason) => Lead::Lost(reason.clone()),
            Standing::CutOff => return None,
        })
    }
}

/// The cluster beyond this process.
pub trait Cluster: Send {
    /// What has come next, once there is something; `None` if nothing will ever come again.
    fn poll_next(&mut self, cx: &mut std::task::Context<'_>) -> std::task::Poll<Option<Arrival>>;

    /// What has come next, if it is there already.
    fn try_next(&mut self) -> Option<Arrival>;

    /// How many arrivals wait to be taken.
    fn waiting(&self) -> usize;

    /// Whether writes are allowed; from when it says otherwise they are stopped.
    fn standing(&mut self) -> Standing;

    /// The time by the server's clock.
    fn now(&self) -> Time;

    /// Makes a write, some time soon.
    fn send(&mut self, request: Outgoing);
}

/// Who is told what happens, for metrics.
pub type Teller = Box<dyn FnMut(&World, Told) + Send>;

/// The embedded scheduler, run cycle by cycle from the debugger on a real cluster.
pub struct Attended {
    cluster: Box<dyn Cluster>,
    context: String,
    dry_run: bool,
    frozen: bool,
    standing: Standing,
    tell: Teller,
    /// Entries and steps of the session that were told.
    told: (usize, usize),
    /// What plugins took, as far as that was told.
    spent: Vec<Spent>,
}

impl Attended {
    /// Schedules in a cluster whose lists were loaded into `session`, which acts.
    pub fn new(
        mut cluster: Box<dyn Cluster>,
        session: &Session,
        (context, dry_run): (String, bool),
        mut tell: Teller,
    ) -> Attended {
        let told = (session.history().len(), session.timeline().steps().end());
        let standing = cluster.standing();
        standing.lead().into_iter().for_each(|lead| tell(session.world(), Told::Lead(lead)));
        let spent = session.times().sum().to_vec();
        Attended { cluster, context, dry_run, frozen: false, standing, tell, told, spent }
    }

    /// The name of the context.
    pub fn context(&self) -> &str {
        &self.context
    }

    /// Whether the server only tries.
    pub fn is_dry_run(&self) -> bool {
        self.dry_run
    }

    /// Whether nothing moves.
    pub fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// Stops, or goes on with all that has queued up.
    pub fn freeze(&mut self, frozen: bool) {
        self.frozen = frozen;
    }

    /// Whether writes are allowed, as it was seen last.
    pub fn standing(&self) -> &Standing {
        &self.standing
    }

    /// How much has come that was not taken in.
    pub fn waiting(&self) -> usize {
        self.cluster.waiting()
    }

    /// What comes next. Nothing is lost if this is dropped before it is done.
    pub async fn next(&mut self) -> Option<Arrival> {
        std::future::poll_fn(|cx| self.cluster.poll_next(cx)).await
    }

    /// Takes `first` in with all that has come behind it, and sends what that leads to. Gives
    /// what is to be said.
    pub fn take(&mut self, session: &mut Session, first: Arrival) -> Vec<Notice> {
        let (mut notices, mut ops, mut handled) = (Vec::new(), Vec::new(), Vec::new());
        let (mut next, mut left) = (Some(first), BATCH);
        let began = Instant::now();
        while let Some(arrival) = next {
            match arrival {
                Arrival::Event(Event::Delta(delta)) => {
                    let (kind, key) = delta.place();
                    let there = session.world().api().get(kind, key);
                    let known = latest(&ops, kind, key).unwrap_or(there.as_ref());
                    handled.push(event_name(&delta, known));
                    ops.extend(op_of(session, &ops, delta, there.as_ref()));
                }
                Arrival::Event(Event::Notice(notice)) => {
                    (self.tell)(session.world(), Told::Notice(notice.clone()));
                    notices.push(notice);
                }
                Arrival::Answered(answered) => {
                    notices.extend(self.answered(session.world(), &answered));
                    let Answered { ticket, answer, what } = answered;
                    ops.push(Op::Answer { ticket, answer, what });
                }
            }
            left -= 1;
            next = if left > 0 { self.cluster.try_next() } else { None };
        }
        if !ops.is_empty() {
            self.news(session, ops);
        }
        // They are taken in together: each counts with the mean.
        let took = began.elapsed() / u32::try_from(handled.len()).unwrap_or(u32::MAX).max(1);
        for event in handled {
            (self.tell)(session.world(), Told::Handled { event, took });
        }
        notices
    }

    /// A write that went wrong is to be said.
    fn answered(&mut self, world: &World, answered: &Answered) -> Option<Notice> {
        let error = answered.answer.as_ref().err().cloned();
        let text = error.as_ref().map(|error| format!("{}: {error}", answered.what));
        (self.tell)(world, Told::Answered { what: answered.what.clone(), error });
        text.map(|text| Notice { serious: true, text })
    }

    /// Decides about the next pod, in the present state of the cluster. What is to be written
    /// is not sent yet. `false` if no pod can be tried.
    ///
    /// # Errors
    /// Nothing may be decided at the moment, and why.
    pub fn decide(&mut self, session: &mut Session) -> Result<bool, String> {
        self.may_write()?;
        if self.cluster.now().0 - session.world().now().0 > LAG {
            self.news(session, Vec::new());
        }
        let began = Instant::now();
        let ran = session.run_cycle() == Ran::NewCycle;
        let took = began.elapsed();
        if let Some(record) = session.record().filter(|_| ran).cloned() {
            (self.tell)(session.world(), Told::Cycle(record.clone(), took));
            self.tell_spent(session, Some(record));
        }
        Ok(ran)
    }

    /// Takes in all that has come.
    pub fn catch_up(&mut self, session: &mut Session) -> Vec<Notice> {
        match self.cluster.try_next() {
            Some(first) => self.take(session, first),
            None => Vec::new(),
        }
    }

    /// Whether something may be decided and written.
    ///
    /// # Errors
    /// It may not, and why.
    pub fn may_write(&mut self) -> Result<(), String> {
        self.standing = self.cluster.standing();
        match (&self.standing, self.frozen) {
            (Standing::Leads, false) => Ok(()),
            (Standing::Leads, true) => Err("frozen: Z goes on".into()),
            (standing, _) => Err(standing.words()),
        }
    }

    /// Sends what the scheduler wants written. Gives it in a few words, if there is something.
    pub fn send(&mut self, session: &mut Session) -> Option<String> {
        let words = session.unsent_words();
        let requests = session.send();
        self.tell_new(session);
        let sent = !requests.is_empty();
        requests.into_iter().for_each(|request| self.cluster.send(request));
        sent.then_some(words)
    }

    /// Looks whether writes are still allowed and, unless all is held, lets time pass. Gives
    /// whether something is different now, and what is to be said.
    pub fn tick(&mut self, session: &mut Session, held: bool) -> (bool, Vec<Notice>) {
        let standing = self.cluster.standing();
        let changed = standing != self.standing;
        let mut notices = Vec::new();
        if changed {
            let serious = standing != Standing::Leads;
            notices.push(Notice { serious, text: standing.words() });
            let lead = standing.lead();
            lead.into_iter().for_each(|lead| (self.tell)(session.world(), Told::Lead(lead)));
            self.standing = standing;
        }
        let followed = self.standing != Standing::CutOff;
        (self.tell)(session.world(), Told::Tick { followed });
        let now = self.cluster.now();
        let due = session.next_timer().is_some_and(|timer| timer.due <= now);
        if due && !held {
            self.news(session, Vec::new());
        }
        (changed || due && !held, notices)
    }

    /// When to call [`Attended::tick`] again.
    pub fn next_tick(&self) -> Duration {
        TICK
    }

    /// What has happened up to now.
    fn news(&mut self, session: &mut Session, ops: Vec<Op>) {
        let news = News { now: self.cluster.now(), ops };
        // News cannot fail.
        let _done = session.apply_beside(Input::Change(Arc::new(news)));
        self.send(session);
    }

    /// Tells what the session has recorded since the last time, but for the cycle that was run.
    fn tell_new(&mut self, session: &Session) {
        let (entries, steps) = self.told;
        for entry in session.history().entries().from(entries) {
            if let Entry::Move(moved) = entry.as_ref() {
                (self.tell)(session.world(), Told::Moved(moved.clone()));
            }
        }
        for step in session.timeline().steps().from(steps) {
            for record in decided(session, step) {
                (self.tell)(session.world(), Told::Decided(record));
            }
        }
        self.told = (session.history().len(), session.timeline().steps().end());
        self.tell_spent(session, None);
    }

    /// Tells what plugins took since the last time: for a cycle, or beside the cycles.
    fn tell_spent(&mut self, session: &Session, record: Option<Arc<CycleRecord>>) {
        let sum = session.times().sum();
        let new: Vec<Spent> = sum.iter().filter_map(|now| since(&self.spent, now)).collect();
        if !new.is_empty() {
            self.spent = sum.to_vec();
            (self.tell)(session.world(), Told::Spent(record, new));
        }
    }
}

/// What a change of the cluster does; `None` if it changes nothing that a scheduler reads.
fn op_of(session: &Session, ops: &[Op], delta: Delta, there: Option<&Object>) -> Option<Op> {
    match delta {
        Delta::Put(object) => {
            let nothing = says_nothing(session, ops, there, &object);
            (!nothing).then_some(Op::Accept(object))
        }
        Delta::Delete { kind, key } => Some(Op::Forget(kind, key)),
    }
}

/// The object as ops leave it that are not done yet; `None` if none is about it.
fn latest(ops: &[Op], kind: Kind, key: NamespacedName) -> Option<Option<&Object>> {
    ops.iter().rev().find_map(|op| match op {
        Op::Accept(object) => {
            let same = object.kind() == kind && NamespacedName::of(object) == key;
            same.then_some(Some(object))
        }
        Op::Forget(of, name) => ((*of, *name) == (kind, key)).then_some(None),
        _ => None,
    })
}

/// What a plugin took at a point since it was told.
fn since(told: &[Spent], now: &Spent) -> Option<Spent> {
    let same = |old: &&Spent| old.point == now.point && old.plugin == now.plugin;
    let Some(old) = told.iter().find(same) else { return Some(*now) };
    let new = Spent {
        turns: now.turns.saturating_sub(old.turns),
        nanos: now.nanos.saturating_sub(old.nanos),
        nodes: now.nodes.saturating_sub(old.nodes),
        refused: now.refused.saturating_sub(old.refused),
        ..*now
    };
    (new.turns > 0).then_some(new)
}

/// The cycles that a step ended, though they began before it.
fn decided(session: &Session, step: &kubestep_debug::Step) -> Vec<Arc<CycleRecord>> {
    let completed = step.completed();
    let now = completed.filter_map(|before| session.history().cycle(before.cycle).cloned());
    now.collect()
}
