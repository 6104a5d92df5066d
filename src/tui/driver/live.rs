//! The live cluster behind a session: what comes from there is taken in between keys, and the
//! shadow scheduler works in slices.

use std::sync::Arc;
use std::time::Duration;

use super::{Done, Driver};
use crate::api::Time;
use crate::live::{Decision, Event, Following, Notice, debugger};
use crate::tui::app::Request;
use crate::tui::model::LiveModel;
use crate::tui::widget::status_line::Severity;

impl Driver {
    /// Lets the session follow a cluster whose lists were loaded into it.
    pub fn follow(&mut self, following: Following) {
        self.following = Some(following);
        self.model.start = self.session.world().now();
        self.live_changed();
    }

    /// The session is a recording that was played back, with the lists at `start`.
    pub fn play_back(&mut self, start: Time, decisions: Vec<Arc<Decision>>) {
        self.model.start = start;
        self.model.live = Some(LiveModel { recorded: true, decisions, ..LiveModel::default() });
        self.world_changed();
    }

    /// Whether events of a cluster are to be taken in.
    pub fn follows(&self) -> bool {
        self.following.as_ref().is_some_and(|following| !following.is_frozen())
    }

    /// The next event of the cluster; never, if none is followed.
    pub async fn next_event(&mut self) -> Option<Event> {
        match &mut self.following {
            Some(following) => following.next().await,
            None => std::future::pending().await,
        }
    }

    /// Takes an event in and all behind it. Gives what is to be said.
    pub fn take_event(&mut self, event: Option<Event>) -> Vec<Notice> {
        let Some(event) = event else {
            self.following = None;
            let text = "the cluster is not followed any more: what is shown gets old".to_owned();
            return vec![Notice { serious: true, text }];
        };
        let Some(following) = &mut self.following else { return Vec::new() };
        let notices = following.take(&mut self.session, event);
        self.live_changed();
        notices
    }

    /// Lets the shadow scheduler work for about `budget`. `true`: there is more to do.
    pub fn live_slice(&mut self, budget: Duration) -> bool {
        let Some(following) = &mut self.following else { return false };
        let before = self.session.timeline().steps().len();
        let more = following.work(&mut self.session, budget);
        if self.session.timeline().steps().len() != before {
            self.live_changed();
        }
        more
    }

    /// Lets time pass; gives when to do that again.
    pub fn live_tick(&mut self) -> Duration {
        let Some(following) = &mut self.following else { return Duration::MAX };
        let before = self.session.timeline().steps().len();
        following.tick(&mut self.session);
        let next = following.next_tick(&self.session);
        if self.session.timeline().steps().len() != before {
            self.live_changed();
        }
        next
    }

    /// What cannot be done while a cluster is followed.
    pub(super) fn refused_live(&self, request: &Request) -> Option<Done> {
        let following = self.following.as_ref()?;
        let text = match request {
            Request::ContinueHere => "the past of a live cluster cannot be changed",
            Request::Advance(_) if !following.is_frozen() => {
                "time passes by itself on a live cluster; Z freezes it"
            }
            _ => return None,
        };
        let message = Some((Severity::Error, text.to_owned()));
        Some(Done { message, ..Done::default() })
    }

    pub(super) fn freeze(&mut self) -> Done {
        let Some(following) = &mut self.following else { return Done::default() };
        let frozen = !following.is_frozen();
        following.freeze(frozen);
        let text = match (frozen, following.waiting()) {
            (true, _) => "frozen: events queue up, nothing moves; Z goes on".to_owned(),
            (false, 0) => "going on; nothing has happened meanwhile".to_owned(),
            (false, waiting) => format!("going on with {waiting} events that have queued up"),
        };
        self.live_changed();
        Done { message: Some((Severity::Info, text)), ..Done::default() }
    }

    pub(super) fn dump(&self) -> Done {
        let title = "What the scheduler believes".to_owned();
        Done { window: Some((title, debugger::dump(&self.session))), ..Done::default() }
    }

    fn live_changed(&mut self) {
        self.model.live = self.following.as_ref().map(|following| LiveModel {
            recorded: false,
            frozen: following.is_frozen(),
            cut_off: following.is_cut_off(),
            waiting: following.waiting(),
            decisions: following.shadow().decisions().to_vec(),
        });
        self.world_changed();
    }
}
