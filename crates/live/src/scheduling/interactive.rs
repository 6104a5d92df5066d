//! `kubestep schedule --tui`: a cycle runs when the user asks for it, its writes are held until the
//! user sends them, and what arrives from the cluster becomes steps of one session.

use std::sync::Arc;
use std::time::Duration;

use crate::feed::Notice;
use crate::scheduling::{
    Arrival, Cluster, LeaderStatus, LiveScheduler, Reporter, SchedulerState, TICK,
};
use crate::updates::{ClusterUpdate, ClusterUpdates, is_irrelevant};
use kubestep_api::Object;
use kubestep_cluster::World;
use kubestep_cluster::remote::Outgoing;
use kubestep_debug::trace::Entry;
use kubestep_debug::{Input, Session, StepOutcome};
use kubestep_framework::record::{CycleRecord, QueueMove};
use kubestep_framework::stopwatch::{Done, Spent};

/// The embedded scheduler, run cycle by cycle from the debugger on a real cluster.
pub struct InteractiveScheduler {
    scheduler: LiveScheduler,
    context: String,
    dry_run: bool,
    frozen: bool,
    reported: ReportProgress,
}

/// Why no cycle may run and nothing may be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WritesHeld {
    /// The user froze the cluster's updates.
    #[error("frozen: Z resumes updates")]
    Frozen,
    /// This program does not hold the lease.
    #[error("{}", .0.describe())]
    Lease(LeaderStatus),
}

/// How much of a session was reported.
struct ReportProgress {
    entries: usize,
    steps: usize,
}

impl ReportProgress {
    fn all_of(session: &Session) -> ReportProgress {
        ReportProgress { entries: session.history().len(), steps: session.timeline().steps().end() }
    }
}

/// A session whose changes are reported.
struct ReportedSession<'a> {
    session: &'a mut Session,
    reported: &'a mut ReportProgress,
}

impl InteractiveScheduler {
    /// Schedules in a cluster whose lists are loaded into `session` and whose changes `cluster`
    /// delivers.
    pub fn new(
        cluster: Box<dyn Cluster>,
        session: &Session,
        (context, dry_run): (String, bool),
        report: Reporter,
    ) -> InteractiveScheduler {
        let scheduler = LiveScheduler::new(cluster, session.world(), report);
        // The queue moves of the lists were recorded when the session began, and not reported yet.
        let entries = session.history().entries().start();
        let reported = ReportProgress { entries, ..ReportProgress::all_of(session) };
        InteractiveScheduler { scheduler, context, dry_run, frozen: false, reported }
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
    pub fn leader_status(&self) -> &LeaderStatus {
        &self.scheduler.status
    }

    /// How many updates are queued.
    pub fn waiting(&self) -> usize {
        self.scheduler.cluster.waiting()
    }

    /// The next arrival. Cancel safe: nothing is lost if this is dropped before it is ready.
    pub async fn next(&mut self) -> Option<Arrival> {
        self.scheduler.next().await
    }

    /// Applies `first` and everything that has queued up behind it, and sends the writes that
    /// follow. Returns the notices to show.
    pub fn take(&mut self, session: &mut Session, first: Arrival) -> Vec<Notice> {
        let (scheduler, mut state) = self.parts(session);
        scheduler.take(&mut state, first)
    }

    /// Runs a cycle for the next pod on the present state of the cluster. Its writes are not sent
    /// yet. `false` if no pod is in the active queue.
    ///
    /// # Errors
    /// Why no cycle may run now.
    pub fn decide(&mut self, session: &mut Session) -> Result<bool, WritesHeld> {
        self.may_write()?;
        let (scheduler, mut state) = self.parts(session);
        Ok(scheduler.cycle(&mut state))
    }

    /// Applies all updates that have queued up.
    pub fn catch_up(&mut self, session: &mut Session) -> Vec<Notice> {
        match self.scheduler.cluster.try_next() {
            Some(first) => self.take(session, first),
            None => Vec::new(),
        }
    }

    /// Whether cycles may run and writes may be sent.
    ///
    /// # Errors
    /// Why they may not.
    pub fn may_write(&mut self) -> Result<(), WritesHeld> {
        match (self.scheduler.check(), self.frozen) {
            (LeaderStatus::Leads, false) => Ok(()),
            (LeaderStatus::Leads, true) => Err(WritesHeld::Frozen),
            (leader_status, _) => Err(WritesHeld::Lease(leader_status.clone())),
        }
    }

    /// Sends the writes that the scheduler holds. Returns a summary of them, if there are any.
    pub fn send(&mut self, session: &mut Session) -> Option<String> {
        let words = session.describe_unsent();
        let (scheduler, mut state) = self.parts(session);
        scheduler.send(&mut state).then_some(words)
    }

    /// Checks whether writes are still allowed and, unless `held`, advances the clock. Returns
    /// whether anything changed, and the notices to show.
    pub fn tick(&mut self, session: &mut Session, held: bool) -> (bool, Vec<Notice>) {
        let (scheduler, mut state) = self.parts(session);
        let (advanced, notice) = scheduler.tick(&mut state, held);
        (advanced || notice.is_some(), notice.into_iter().collect())
    }

    /// While updates are queued: keeps the queue from growing without limit. `original` is the
    /// session into which they will be taken.
    pub fn compact_queue(&mut self, original: &Session) {
        let api = original.world().api();
        self.scheduler.cluster.keep_newest(&|kind, key| api.get(kind, key).is_some());
    }

    /// When to call [`InteractiveScheduler::tick`] again.
    pub fn next_tick(&self) -> Duration {
        TICK
    }

    fn parts<'a>(
        &'a mut self,
        session: &'a mut Session,
    ) -> (&'a mut LiveScheduler, ReportedSession<'a>) {
        (&mut self.scheduler, ReportedSession { session, reported: &mut self.reported })
    }
}

impl SchedulerState for ReportedSession<'_> {
    /// A batch is one step of the session.
    const BATCH: usize = 2_000;

    fn world(&self) -> &World {
        self.session.world()
    }

    fn is_irrelevant(
        &self,
        pending: &[ClusterUpdate],
        there: Option<&Object>,
        new: &Object,
    ) -> bool {
        is_irrelevant(self.session, pending, there, new)
    }

    fn apply(&mut self, updates: ClusterUpdates) {
        // Applying updates cannot fail.
        let _done = self.session.apply_in_background(Input::Change(Arc::new(updates)));
    }

    fn cycle(&mut self) -> Option<Arc<CycleRecord>> {
        let ran = self.session.run_cycle() == StepOutcome::NewCycle;
        self.session.record().filter(|_| ran).cloned()
    }

    fn take_requests(&mut self) -> Vec<Outgoing> {
        self.session.send()
    }

    fn take_records(&mut self) -> (Vec<QueueMove>, Vec<Arc<CycleRecord>>) {
        let (session, ReportProgress { entries, steps }) = (&*self.session, &*self.reported);
        let moves = session.history().entries().from(*entries).filter_map(|entry| match &**entry {
            Entry::Move(moved) => Some(moved.clone()),
            _ => None,
        });
        let steps = session.timeline().steps().from(*steps);
        let completed = steps.flat_map(|step| step.completed());
        let decided = completed.filter_map(|before| session.history().cycle(before.cycle).cloned());
        let records = (moves.collect(), decided.collect());
        *self.reported = ReportProgress::all_of(session);
        records
    }

    fn take_measurements(&mut self) -> (Vec<Spent>, Vec<Done>) {
        self.session.take_measurements()
    }
}
