//! A session that follows a live cluster: takes events in, lets the shadow scheduler work, lets
//! time pass, and can be frozen, upon which events queue up and nothing moves.

use std::time::Duration;

use crate::clock;
use crate::feed::{Delta, Event, Feed, Notice};
use crate::outage::Outage;
use crate::shadow::Shadow;
use kubestep_api::Time;
use kubestep_debug::Session;
use kubestep_source::Filter;

/// Events taken in at once.
const BATCH: usize = 2_000;
/// Between two looks at the connection, and at decisions that nobody shared.
const CHECK: Duration = Duration::from_secs(1);

/// A live cluster behind a session.
pub struct Following {
    feed: Feed,
    filter: Filter,
    shadow: Shadow,
    frozen: bool,
    caught_up: bool,
    told_skew: bool,
}

impl Following {
    /// Follows `feed`, whose lists were loaded into the session; changes of objects that
    /// `filter` leaves out are not taken in.
    pub fn new(feed: Feed, filter: Filter) -> Following {
        let shadow = Shadow::default();
        Following { feed, filter, shadow, frozen: false, caught_up: false, told_skew: false }
    }

    /// The shadow scheduler.
    pub fn shadow(&self) -> &Shadow {
        &self.shadow
    }

    /// Whether nothing moves.
    pub fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// What is not followed at the moment, so that what is shown gets old.
    pub fn outage(&self) -> Option<Outage> {
        self.feed.outage()
    }

    /// Stops, or goes on with all that has queued up.
    pub fn freeze(&mut self, frozen: bool) {
        self.frozen = frozen;
    }

    /// How many events wait to be taken in.
    pub fn waiting(&self) -> usize {
        self.feed.waiting()
    }

    /// The time by the server's clock.
    pub fn now(&self) -> Time {
        self.feed.link().now()
    }

    /// The next event; `None` if there will never be one again. Nothing is lost if this is
    /// dropped before it is done.
    pub async fn next(&mut self) -> Option<Event> {
        self.feed.next().await
    }

    /// Takes `first` in with all that has come behind it. Gives what is to be said.
    pub fn take(&mut self, session: &mut Session, first: Event) -> Vec<Notice> {
        let mut notices = self.skew_notice();
        let mut deltas = Vec::new();
        let mut next = Some(first);
        let mut left = BATCH;
        while let Some(event) = next {
            match event {
                Event::Delta(Delta::Put(object)) if !self.filter.takes(&object) => {}
                Event::Delta(delta) => deltas.push(delta),
                Event::Notice(notice) => notices.push(notice),
            }
            left -= 1;
            next = if left > 0 { self.feed.try_next() } else { None };
        }
        let now = self.now();
        self.shadow.take(session, deltas, now);
        notices
    }

    /// Lets our scheduler decide for about `budget`. `true`: there is more.
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

    /// Lets time pass.
    pub fn tick(&mut self, session: &mut Session) {
        if !self.frozen {
            let now = self.now();
            self.shadow.tick(session, now);
        }
    }

    fn skew_notice(&mut self) -> Vec<Notice> {
        let text = self.feed.link().skew().and_then(clock::skew_notice).filter(|_| !self.told_skew);
        self.told_skew |= text.is_some();
        text.map(|text| Notice { serious: true, text }).into_iter().collect()
    }
}
