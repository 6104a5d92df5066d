//! The live cluster behind a session: what comes from there is taken in between keys, and the
//! shadow scheduler works in slices.

use std::sync::Arc;
use std::time::Duration;

use super::Driver;
use crate::tui::command::Command;
use crate::tui::command_result::{CommandResult, WindowContent};
use crate::tui::model::LiveModel;
use kubestep_api::Time;
use kubestep_debug::fork::ORIGINAL;
use kubestep_live::scheduling::Arrival;
use kubestep_live::{ComparedDecision, Following, InteractiveScheduler, Notice, debugger};

/// The live cluster behind the session.
#[derive(Default)]
pub(super) struct LiveConnection {
    /// A cluster that a shadow scheduler follows.
    pub following: Option<Following>,
    /// A cluster that the session schedules.
    pub scheduler: Option<Box<InteractiveScheduler>>,
    /// Notices that are not on screen yet.
    pub pending_notices: Vec<Notice>,
    /// Whether a live scheduler goes on without stepping.
    pub runs: bool,
}

impl Driver {
    /// Lets the session follow a cluster whose lists were loaded into it.
    pub fn follow(&mut self, following: Following) {
        self.live.following = Some(following);
        self.session.forget_past();
        self.model.start = self.session.world().now();
        self.live_changed();
    }

    /// The session is a recording that was played back, with the lists at `start`.
    pub fn play_back(&mut self, start: Time, decisions: Vec<Arc<ComparedDecision>>) {
        self.model.start = start;
        self.model.live = Some(LiveModel { recorded: true, decisions, ..LiveModel::default() });
        self.world_changed();
    }

    /// Whether events of a cluster are to be taken in: not while it is stopped, and not into a
    /// branch.
    pub fn follows(&self) -> bool {
        let shadows = self.live.following.as_ref().is_some_and(|following| !following.is_frozen());
        shadows && self.branches.on_original()
            || self.live.scheduler.is_some() && self.held().is_none()
    }

    /// Whether the connection to a cluster is to be looked at, also while it is frozen or a branch
    /// is shown.
    pub fn is_live(&self) -> bool {
        self.live.following.is_some() || self.live.scheduler.is_some()
    }

    /// What comes next from the cluster; never, if none is followed.
    pub async fn next_arrival(&mut self) -> Option<Arrival> {
        match (&mut self.live.following, &mut self.live.scheduler) {
            (Some(following), _) => following.next().await.map(Arrival::Event),
            (None, Some(scheduler)) => scheduler.next().await,
            (None, None) => std::future::pending().await,
        }
    }

    /// Takes in what came and all behind it. Returns the messages.
    pub fn take_in(&mut self, arrival: Option<Arrival>) -> Vec<Notice> {
        let notices = match (&mut self.live.following, arrival) {
            (None, arrival) => self.take_arrival(arrival),
            (Some(following), Some(Arrival::Event(event))) => {
                following.take(&mut self.session, event)
            }
            // A shadow writes nothing and holds no lease.
            (Some(_), Some(Arrival::Answered(_) | Arrival::Lead)) => Vec::new(),
            (Some(_), None) => {
                self.live.following = None;
                let text = "the cluster is no longer followed: what is shown is out of date";
                vec![Notice { serious: true, text: text.to_owned() }]
            }
        };
        self.live_changed();
        notices
    }

    /// Lets the shadow scheduler work for about `budget`; a live one only if it
    /// `runs` by itself. Gives whether there is more to do, and the message if a
    /// breakpoint stopped it.
    pub fn live_slice(&mut self, budget: Duration, runs: bool) -> (bool, Option<CommandResult>) {
        let before = self.session.timeline().steps().end();
        let (more, done) = match &mut self.live.following {
            Some(following) if self.branches.on_original() => {
                (following.work(&mut self.session, budget), None)
            }
            None if runs => self.run_live(budget),
            _ => (false, None),
        };
        if self.session.timeline().steps().end() != before {
            self.live_changed();
        }
        (more, done)
    }

    /// Lets time pass. Gives when to do that again, and whether something has changed.
    pub fn live_tick(&mut self) -> (Duration, bool) {
        let before = self.session.timeline().steps().end();
        let (next, mut changed) = match (&mut self.live.following, &self.live.scheduler) {
            (Some(following), _) if self.branches.on_original() => {
                following.tick(&mut self.session);
                let shown = self.model.live.as_ref().and_then(|live| live.outage.as_ref());
                let changed = following.outage().as_ref() != shown;
                (following.next_tick(&self.session), changed)
            }
            (Some(following), _) => {
                let original = self.branches.other(ORIGINAL).unwrap_or(&self.session);
                (following.compact_queue(original), false)
            }
            (None, Some(scheduler)) => (scheduler.next_tick(), self.tick_scheduler()),
            _ => (Duration::MAX, false),
        };
        changed |= self.session.timeline().steps().end() != before;
        if changed {
            self.live_changed();
        }
        (next, changed)
    }

    /// What cannot be done while a cluster is followed.
    pub(super) fn reject_while_followed(&self, command: &Command) -> Option<CommandResult> {
        let (schedules, frozen) = match (&self.live.following, &self.live.scheduler) {
            // A branch goes its own way.
            _ if !self.branches.on_original() => return None,
            (Some(following), _) => (false, following.is_frozen()),
            (None, Some(_)) => (true, false),
            (None, None) => return None,
        };
        let text = match command {
            Command::ContinueHere => "the past of a live cluster cannot be changed",
            Command::Advance(_) if schedules => "time passes by itself on a live cluster",
            Command::GoToTime(micros) if schedules && self.is_to_come(*micros) => {
                "this moment is still to come: time passes by itself on a live cluster"
            }
            Command::Advance(_) if !frozen => {
                "time passes by itself on a live cluster; Z freezes it"
            }
            _ => return None,
        };
        Some(CommandResult::error(text))
    }

    fn is_to_come(&self, micros: i64) -> bool {
        self.model.start.0.saturating_add(micros) > self.session.world().now().0
    }

    pub(super) fn freeze(&mut self) -> CommandResult {
        let (frozen, waiting) = match (&mut self.live.following, &mut self.live.scheduler) {
            (Some(following), _) => {
                following.freeze(!following.is_frozen());
                (following.is_frozen(), following.waiting())
            }
            (None, Some(scheduler)) => {
                scheduler.freeze(!scheduler.is_frozen());
                (scheduler.is_frozen(), scheduler.waiting())
            }
            (None, None) => return CommandResult::default(),
        };
        let text = match (frozen, waiting) {
            (true, _) => "frozen: updates are queued; Z resumes".to_owned(),
            (false, 0) => "resumed; no updates were queued".to_owned(),
            (false, waiting) => format!("resumed with {waiting} queued updates"),
        };
        self.live_changed();
        CommandResult::info(text)
    }

    pub(super) fn dump(&self) -> CommandResult {
        let title = "Scheduler cache and queues".to_owned();
        CommandResult::window(WindowContent::Lines(title, debugger::dump(&self.session)))
    }

    /// Takes over whether what is shown is the live cluster, and whether a live scheduler is held.
    pub(super) fn place_changed(&mut self) {
        let (away, scheduling) = (!self.branches.on_original(), self.scheduling_model());
        if let Some(live) = &mut self.model.live {
            (live.away, live.scheduling) = (away, scheduling);
        }
    }

    /// Why no scheduler of the cluster is running, in a sentence.
    fn no_scheduler(&self) -> Option<String> {
        let world = self.session.world();
        world.schedulers().first_absence(world.now())
    }

    pub(super) fn live_changed(&mut self) {
        self.model.live = match (&self.live.following, &self.live.scheduler) {
            (Some(following), _) => Some(LiveModel {
                frozen: following.is_frozen(),
                outage: following.outage(),
                no_scheduler: self.no_scheduler(),
                waiting: following.waiting(),
                decisions: following.shadow().decisions().to_vec(),
                ..LiveModel::default()
            }),
            (None, Some(scheduler)) => {
                Some(LiveModel { waiting: scheduler.waiting(), ..LiveModel::default() })
            }
            (None, None) => self.model.live.take().filter(|live| live.recorded),
        };
        self.world_changed();
    }
}
