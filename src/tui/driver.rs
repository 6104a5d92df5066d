//! Between the interface and the session: does what is asked, and draws up the picture that views show.
//!
//! The picture is brought up to date part by part, and only the parts that changed and that the view on
//! screen needs, so that a step costs the same in a small and in a large cluster.

mod answer;
mod beside;
#[cfg(test)]
mod break_tests;
pub mod breaks;
mod clock;
mod decide;
mod difference;
#[cfg(test)]
mod forget_tests;
#[cfg(test)]
mod hour_tests;
mod live;
mod outline;
mod picture;
mod real;
#[cfg(test)]
mod recording_tests;
mod rows;
mod search;
#[cfg(test)]
mod tests;
mod times;
#[cfg(test)]
mod times_tests;
mod walk;
mod whatif;
mod why;

use std::collections::BTreeMap;

use super::app::Request;
use super::model::{Model, Position, span};
use super::view::ViewId;
use super::widget::status_line::Severity;
use clock::{Goal, Playing};
use kubestep_api::Time;
use kubestep_debug::breakpoint::Moment;
use kubestep_debug::fork::{Branches, Redone};
use kubestep_debug::{Depth, Position as Frame, Ran, Restoring, Session};
use kubestep_live::{Attended, Following, Notice};
use picture::Picture;
use real::Went;
pub use real::{DECIDING, Left};
use walk::Walk;
pub use whatif::Open;

/// What doing a request led to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Something to say.
    pub message: Option<(Severity, String)>,
    /// A long run has begun: call `run_slice` until it ends.
    pub running: bool,
    /// The view in which the new position is best seen, after a step into or within a cycle.
    pub look_at: Option<ViewId>,
    /// A window to open: its title and lines.
    pub window: Option<(String, Vec<String>)>,
    /// A breakpoint stopped it, or there is nothing any more that could go on.
    pub stopped: bool,
    /// A search has begun: call `search_tick` now and then.
    pub searching: bool,
    /// What logging breakpoints have to say.
    pub notes: Vec<String>,
    /// Something to open over the view.
    pub open: Option<Open>,
    /// The waiting pods that were marked are decided about: their marks go.
    pub decided: bool,
}

/// How steps are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Forward, into what is new.
    Into,
    /// Forward, over what is new.
    Over,
    /// Backward.
    Back,
}

/// A session with its picture.
pub struct Driver {
    session: Session,
    branches: Branches,
    model: Model,
    picture: Picture,
    /// The way to an earlier state, if it is long, and where it began.
    work: Option<Restoring>,
    came_from: (usize, Frame),
    /// What a long run is to reach, and how many cycles there were when it began.
    goal: Goal,
    run_from: usize,
    /// How many recorded cycles it might have to run again.
    unseen_from: usize,
    /// Why a real scheduler could not go on with it.
    refused: Option<String>,
    playing: Playing,
    /// Steps that were asked for, and are not all done.
    walk: Option<Walk>,
    /// What is done again after an undo, as it was begun.
    redoing: Option<Redone>,
    /// The live cluster behind the session.
    following: Option<Following>,
    /// The same where the session's scheduler decides for real; what it has to say.
    attended: Option<Box<Attended>>,
    unsaid: Vec<Notice>,
    /// Whether it was told to go on by itself.
    runs: bool,
    /// Since when logging breakpoints have not been asked.
    log_from: Option<Moment>,
    /// What each breakpoint's last stop said.
    last_hits: BTreeMap<u32, String>,
    /// What is looked for beside the keys, and the last change found that helps.
    searching: Option<search::Searching>,
    found: Option<search::Answer>,
    /// What the last comparison of branches came to.
    compared: Option<difference::Compared>,
    /// How often anything was done to the cluster in any branch.
    changes: u64,
}

impl Driver {
    /// A session whose input is called `source`.
    pub fn new(session: Session, source: String) -> Driver {
        let model = Model { source, start: kubestep_cluster::START, ..Model::default() };
        let mut driver = Driver {
            session,
            branches: Branches::default(),
            model,
            picture: Picture::default(),
            work: None,
            came_from: (0, Frame::START),
            goal: Goal::default(),
            run_from: 0,
            unseen_from: 0,
            refused: None,
            playing: Playing::default(),
            walk: None,
            redoing: None,
            following: None,
            attended: None,
            unsaid: Vec::new(),
            runs: false,
            log_from: None,
            last_hits: BTreeMap::new(),
            searching: None,
            found: None,
            compared: None,
            changes: 0,
        };
        driver.world_changed();
        driver
    }

    /// Does what the interface asks for.
    pub fn perform(&mut self, request: &Request) -> Done {
        self.pause();
        let before = self.session.timeline().steps().end();
        let place = (self.session.stop_index(), self.session.position());
        if self.work.take().is_none() {
            self.came_from = place;
        }
        let branch = self.branches.name().to_owned();
        let mut done = self.dispatch(request);
        if (self.session.stop_index(), self.session.position()) != place {
            self.model.inspected = None;
        }
        if branch != self.branches.name() {
            // What was begun in one branch does not go on in another.
            (done.stopped, self.runs) = (true, false);
        }
        match self.session.timeline().steps().end() == before {
            true => self.position_changed(),
            false => self.world_changed(),
        }
        done
    }

    /// The session that is worked on.
    #[cfg(test)]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// How many steps were done to the cluster.
    #[cfg(test)]
    pub fn steps_done(&self) -> usize {
        self.session.timeline().steps().end()
    }

    fn dispatch(&mut self, request: &Request) -> Done {
        use Request::{
            Advance, Attempt, Continue, ContinueHere, Cycles, Dump, Finish, Freeze, GiveUp, GoTo,
            GoToCycle, LetRun, Next, NextOf, Step,
        };
        if let Some(refusal) = self.refused_live(request) {
            return refusal;
        }
        match request {
            Freeze => self.freeze(),
            LetRun => self.let_run(),
            Dump => self.dump(),
            Step { count, back: false } => self.steps(*count, Way::Into, Session::step_into),
            Step { count, back: true } => self.steps(*count, Way::Back, Session::back_into),
            Next { count, back: false } => self.steps(*count, Way::Over, Session::step_over),
            Next { count, back: true } => self.steps(*count, Way::Back, Session::back_over),
            Finish { count, back: false } => self.steps(*count, Way::Over, Session::step_out),
            Finish { count, back: true } => self.steps(*count, Way::Back, Session::back_out),
            Cycles { count, back } => self.cycles(*count, *back),
            Continue { back: false } if self.is_real() && !self.session.is_at_newest() => {
                self.begin_run(Goal::End)
            }
            Continue { back: false } => self.begin_run(Goal::Idle),
            Continue { back: true } => self.begin_run(Goal::Back),
            Request::Breakpoints(request) => self.breakpoints(request),
            GoTo(position) => self.go_to(*position),
            Request::Inspect(position) => self.inspect(*position),
            GoToCycle(number) => self.show_cycle(*number),
            GiveUp => self.give_up(),
            ContinueHere => self.continue_here(),
            Advance(micros) => self.advance(*micros),
            Request::Moment(micros) => {
                self.go_to_moment(Time(self.model.start.0.saturating_add(*micros)))
            }
            NextOf(pod) => self.go_to_next_of(*pod),
            Attempt { back } => self.attempt(*back),
            Request::Decide(decision, pods) => self.decide(decision, pods),
            Request::Hold(line) => self.hold(line),
            Request::WhatIf(wish) => self.what_if(wish),
            Request::Why(pod) => self.why(*pod),
            Request::Node(cycle, node) => self.why_node(*cycle, *node),
            Request::Fixes(pod) => self.fixes(*pod),
            Request::Outline(pod) => self.outline(*pod),
            Request::Fold(view, key) => self.fold(*view, *key),
        }
    }

    fn steps(&mut self, count: u32, way: Way, step: fn(&mut Session) -> Ran) -> Done {
        self.walk(Walk { left: count, count, way, step, stays: false, from: None })
    }

    fn cycles(&mut self, count: u32, back: bool) -> Done {
        let (way, step): (Way, fn(&mut Session) -> Ran) = match back {
            true => (Way::Back, Session::previous_cycle),
            false => (Way::Over, Session::next_cycle),
        };
        self.walk(Walk { left: count, count, way, step, stays: true, from: None })
    }

    /// What a move has to say: a new cycle's outcome, or why there was none.
    pub(super) fn said(&self, ran: Ran) -> Done {
        let message = match ran {
            Ran::Moved => None,
            Ran::AtEnd => Some((Severity::Info, "this is the end of the recording".into())),
            Ran::NewCycle => self.session.record().map(|record| {
                let (cycle, pod, outcome) = (record.cycle, record.pod, record.outcome.as_str());
                (Severity::Info, format!("cycle {cycle} of {pod}: {outcome}"))
            }),
            Ran::Idle => Some((Severity::Info, self.idle_words())),
            Ran::AtStart => Some((Severity::Info, self.beginning_words())),
        };
        Done { message, ..Done::default() }
    }

    /// That there is nothing before, and why.
    pub(super) fn beginning_words(&self) -> String {
        match self.session.forgotten_before() {
            None => "this is the beginning of the recording".into(),
            Some(time) => format!(
                "what came before +{} was forgotten; a larger --history-memory keeps more",
                span(time.0 - self.model.start.0)
            ),
        }
    }

    /// Where the frame is best seen: nodes of Filter and Score in their matrix, the rest in the overview.
    fn best_view(&self) -> Option<ViewId> {
        use kubestep_config::ExtensionPoint::{Filter, Score};
        let frame = self.session.position();
        match (frame.depth(), frame.point) {
            // Its pod left the queue: whatever is on screen shows that.
            _ if frame.entry < self.session.tree().cycle && frame.entry.is_some() => None,
            _ if frame.entry.is_some() => Some(ViewId::Events),
            (Depth::Cycle, _) => None,
            (Depth::Node, Some(Filter)) => Some(ViewId::Filter),
            (Depth::Node, Some(Score)) => Some(ViewId::Scores),
            _ => Some(ViewId::Cycle),
        }
    }

    /// Back to where the long way began.
    fn give_up(&mut self) -> Done {
        let (stop, frame) = self.came_from;
        self.session.go_to_stop(stop);
        self.session.go_to(frame);
        Done {
            message: Some((Severity::Info, "stopped; back where it began".into())),
            ..Done::default()
        }
    }

    fn continue_here(&mut self) -> Done {
        let steps = self.session.timeline().steps().end();
        let kept = self.branches.cut(&mut self.session);
        let later = steps - self.session.timeline().steps().end();
        let later = if later == 1 { "1 later step".into() } else { format!("{later} later steps") };
        let text = match kept {
            None => "there is nothing after this; what you do now is the future".to_owned(),
            Some(name) => format!(
                "a new future begins here; the {later} are kept: :branch {name} goes back to them"
            ),
        };
        self.future_forgotten();
        let notes = self.given_up();
        Done { message: Some((Severity::Info, text)), notes, ..Done::default() }
    }

    fn inspect(&mut self, position: Option<Position>) -> Done {
        let number = |position: Position| {
            Some((self.model.cycles.get(position.cycle)?.cycle, position.frame))
        };
        self.model.inspected = position.and_then(number);
        Done::default()
    }

    fn go_to(&mut self, position: Position) -> Done {
        self.model.inspected = None;
        if let Some(entry) = position.frame.entry {
            self.session.go_to_entry(entry);
            return Done::default();
        }
        if let Some(record) = self.model.cycles.get(position.cycle) {
            self.session.go_to_cycle(record.cycle);
            self.session.go_to(position.frame);
        }
        Done::default()
    }

    fn show_cycle(&mut self, number: u64) -> Done {
        let forgotten = self.session.history().has_forgotten(number);
        let message = match self.session.go_to_cycle(number) {
            true => None,
            false if forgotten && number > 0 => Some((Severity::Error, self.beginning_words())),
            false => Some((Severity::Error, format!("no cycle {number} is recorded"))),
        };
        Done { message, ..Done::default() }
    }
}

/// A breakpoint stopped it.
fn stopped(words: String) -> Done {
    Done { message: Some((Severity::Warning, words)), stopped: true, ..Done::default() }
}
