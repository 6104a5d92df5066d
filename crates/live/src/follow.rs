//! A session that follows a live cluster: it applies events, lets the shadow scheduler work,
//! advances the clock, and can be frozen: then events queue up and nothing changes.

use std::sync::Arc;
use std::time::Duration;

use crate::clock;
use crate::feed::{Delta, Feed, FeedEvent, Notice};
use crate::outage::Outage;
use crate::periodic::Periodic;
use crate::shadow::Shadow;
use kubestep_api::{Kind, Leases, Object, Provisioning, Time};
use kubestep_cluster::World;
use kubestep_cluster::schedulers::{PodReports, Schedulers};
use kubestep_debug::edit::EditError;
use kubestep_debug::{Change, Input, Session};
use kubestep_source::{Auxiliary, Filter};

/// Events applied in one batch.
const BATCH: usize = 2_000;
/// How often the connection is checked, and decisions that the cluster's scheduler did not share.
const CHECK: Duration = Duration::from_secs(1);

/// A live cluster behind a session.
pub struct Following {
    feed: Feed,
    filter: Filter,
    shadow: Shadow,
    frozen: bool,
    caught_up: bool,
    reported_skew: bool,
    /// What shows whether the cluster's own schedulers are running.
    reports: PodReports,
    leases: Option<(Periodic<Leases>, Leases)>,
    /// Objects that help to explain, and where new nodes come from by files.
    auxiliary: Option<(Periodic<Auxiliary>, Provisioning)>,
}

impl Following {
    /// Follows `feed`, whose lists are loaded into the session. Changes of objects that `filter`
    /// excludes are skipped.
    pub fn new(feed: Feed, filter: Filter) -> Following {
        let shadow = Shadow::default();
        Following {
            feed,
            filter,
            shadow,
            frozen: false,
            caught_up: false,
            reported_skew: false,
            reports: PodReports::default(),
            leases: None,
            auxiliary: None,
        }
    }

    /// Also observes whether the cluster's own schedulers are running; `reports` are of the listed
    /// pods.
    pub fn observe_schedulers(&mut self, reports: PodReports, leases: Periodic<Leases>) {
        (self.reports, self.leases) = (reports, Some((leases, Leases::default())));
    }

    /// Also reads the objects that no scheduler reads, but that help to explain. `of_files` says
    /// where new nodes come from, too.
    pub fn read_auxiliary(&mut self, auxiliary: Periodic<Auxiliary>, of_files: Provisioning) {
        self.auxiliary = Some((auxiliary, of_files));
    }

    /// The embedded scheduler that decides in parallel with the cluster's.
    pub fn shadow(&self) -> &Shadow {
        &self.shadow
    }

    /// Whether events are queued instead of applied.
    pub fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// What is not followed now, so that the display becomes stale.
    pub fn outage(&self) -> Option<Outage> {
        self.feed.outage()
    }

    /// Queues events from now on, or applies all that have queued up.
    pub fn freeze(&mut self, frozen: bool) {
        self.frozen = frozen;
    }

    /// How many events are queued.
    pub fn waiting(&self) -> usize {
        self.feed.waiting()
    }

    /// The time by the server's clock.
    pub fn now(&self) -> Time {
        self.feed.link().now()
    }

    /// The next event; `None` if no more can arrive. Cancel safe: nothing is lost if this is
    /// dropped before it is ready.
    pub async fn next(&mut self) -> Option<FeedEvent> {
        self.feed.next().await
    }

    /// Applies `first` and everything that has queued up behind it. Returns the notices to show.
    pub fn take(&mut self, session: &mut Session, first: FeedEvent) -> Vec<Notice> {
        let mut notices = self.skew_notice();
        notices.extend(self.feed.take_dropped());
        let mut deltas = Vec::new();
        let mut next = Some(first);
        let mut left = BATCH;
        while let Some(event) = next {
            match event {
                FeedEvent::Delta(Delta::Put(object)) if !self.filter.takes(&object) => {}
                FeedEvent::Delta(delta) => {
                    self.see(&delta);
                    deltas.push(delta);
                }
                FeedEvent::Notice(notice) => notices.push(notice),
            }
            left -= 1;
            next = if left > 0 { self.feed.try_next() } else { None };
        }
        let now = self.now();
        self.shadow.take(session, deltas, now);
        notices
    }

    /// Lets the embedded scheduler run cycles for about `budget`. `true`: there is more to do.
    pub fn work(&mut self, session: &mut Session, budget: Duration) -> bool {
        if self.frozen {
            return false;
        }
        let more = self.shadow.work(session, budget);
        if !more && !self.caught_up {
            self.caught_up = true;
            let now = self.now();
            self.shadow.catch_up(session, now);
        }
        more
    }

    /// When to call [`Following::tick`] next.
    pub fn next_tick(&self, session: &Session) -> Duration {
        let timer = session.next_timer().filter(|_| !self.frozen);
        let due = timer.map(|timer| timer.due.0 - self.now().0);
        let due = due.map(|micros| Duration::from_micros(micros.max(1_000) as u64));
        due.unwrap_or(CHECK).min(CHECK)
    }

    /// Advances the session to the present, unless it is frozen.
    pub fn tick(&mut self, session: &mut Session) {
        if !self.frozen {
            let now = self.now();
            self.shadow.tick(session, now);
            self.look_at_schedulers(session, now);
            self.look_at_auxiliary(session);
        } else {
            self.compact_queue(session);
        }
    }

    /// While nothing is applied, because it is frozen or another branch than `original` is shown:
    /// keeps the queue from growing without limit. Returns when to call it next.
    pub fn compact_queue(&mut self, original: &Session) -> Duration {
        self.feed.keep_newest(|kind, key| self.shadow.knows(original, kind, key));
        CHECK
    }

    fn see(&mut self, delta: &Delta) {
        match delta {
            Delta::Put(Object::Pod(pod)) => self.reports.see(pod),
            Delta::Delete { kind: Kind::Pod, key } => self.reports.forget(*key),
            _ => {}
        }
    }

    /// Takes a change of the cluster's schedulers into the session.
    fn look_at_schedulers(&mut self, session: &mut Session, now: Time) {
        let Some((reader, leases)) = &mut self.leases else { return };
        if let Some(new) = reader.take() {
            *leases = new;
        }
        let schedulers = Schedulers::new(leases, &self.reports, now);
        if !schedulers.reports_equal(session.world().schedulers()) {
            // This cannot fail.
            let _ =
                session.apply_in_background(Input::Change(Arc::new(SchedulersChange(schedulers))));
        }
    }

    /// Takes what was read of the objects that help to explain into the session.
    fn look_at_auxiliary(&self, session: &mut Session) {
        let Some((reader, of_files)) = &self.auxiliary else { return };
        let Some(mut new) = reader.take() else { return };
        new.provisioning.merge(of_files.clone());
        let world = session.world();
        if new.provisioning != **world.provisioning() || new.controllers != **world.controllers() {
            // This cannot fail.
            let _ = session.apply_in_background(Input::Change(Arc::new(AuxiliaryChange(new))));
        }
    }

    fn skew_notice(&mut self) -> Vec<Notice> {
        let text =
            self.feed.link().skew().and_then(clock::skew_notice).filter(|_| !self.reported_skew);
        self.reported_skew |= text.is_some();
        text.map(|text| Notice { serious: true, text }).into_iter().collect()
    }
}

/// Another state of the cluster's schedulers.
#[derive(Debug)]
struct SchedulersChange(Schedulers);

impl Change for SchedulersChange {
    fn describe(&self) -> String {
        let absence = self.0.first_absence(self.0.as_of);
        absence.unwrap_or_else(|| "the cluster's schedulers are running".to_owned())
    }

    fn cannot_fail(&self) -> bool {
        true
    }

    fn apply(&self, world: &mut World) -> Result<(), EditError> {
        world.set_schedulers(self.0.clone());
        Ok(())
    }
}

/// Another state of the objects that help to explain.
#[derive(Debug)]
struct AuxiliaryChange(Auxiliary);

impl Change for AuxiliaryChange {
    fn describe(&self) -> String {
        "controllers report something new".to_owned()
    }

    fn cannot_fail(&self) -> bool {
        true
    }

    fn apply(&self, world: &mut World) -> Result<(), EditError> {
        world.set_provisioning(self.0.provisioning.clone());
        world.set_controllers(self.0.controllers.clone());
        Ok(())
    }
}
