//! Between the interface and the session: does commands, and keeps the model that views draw.
//!
//! The model is brought up to date part by part, and only the parts that changed and that the view on screen
//! needs, so that a step costs the same in a small and in a large cluster.

mod answer;
#[cfg(test)]
mod break_tests;
pub mod breaks;
mod clock;
mod decide;
mod difference;
mod disruption;
mod edits;
#[cfg(test)]
mod forget_tests;
#[cfg(test)]
mod hour_tests;
mod live;
#[cfg(test)]
mod look_tests;
#[cfg(test)]
mod recording_tests;
mod refresh;
mod reports;
mod rows;
mod scheduling;
mod search;
mod task;
#[cfg(test)]
mod tests;
mod times;
#[cfg(test)]
mod times_tests;
mod walk;
mod whatif;
mod why;

use std::collections::BTreeMap;

use super::command::Command;
use super::command_result::CommandResult;
use super::model::{CyclePosition, Model, span};
use super::view_id::ViewId;
use super::widget::status_line::Severity;
use clock::{ActiveRun, Goal};
use kubestep_api::Time;
use kubestep_debug::fork::Branches;
use kubestep_debug::{Depth, Session, StepOutcome};
use live::LiveConnection;
use refresh::{Freshness, PendingReplay};
use scheduling::StepResult;
pub use scheduling::{DECIDING, SchedulerExit};
use search::Tasks;
use walk::PendingSteps;

/// How steps are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StepMode {
    /// Forward, into what is new.
    Into,
    /// Forward, over what is new.
    Over,
    /// Backward, by any step.
    Back,
}

/// A session and the model of it that views draw.
pub struct Driver {
    session: Session,
    branches: Branches,
    model: Model,
    freshness: Freshness,
    replay: PendingReplay,
    run: ActiveRun,
    live: LiveConnection,
    tasks: Tasks,
    /// What each breakpoint's last stop said.
    last_hits: BTreeMap<u32, String>,
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
            freshness: Freshness::default(),
            replay: PendingReplay::default(),
            run: ActiveRun::default(),
            live: LiveConnection::default(),
            tasks: Tasks::default(),
            last_hits: BTreeMap::new(),
            changes: 0,
        };
        driver.world_changed();
        driver
    }

    /// Does what the interface asks for.
    pub fn perform(&mut self, command: &Command) -> CommandResult {
        self.pause();
        let before = self.session.timeline().steps().end();
        let place = (self.session.stop_index(), self.session.position());
        if self.replay.work.take().is_none() {
            self.replay.origin = place;
        }
        let branch = self.branches.name().to_owned();
        let mut done = self.dispatch(command);
        if (self.session.stop_index(), self.session.position()) != place {
            self.model.inspected = None;
        }
        if branch != self.branches.name() {
            // What was begun in one branch does not go on in another.
            (done.stopped, self.live.runs) = (true, false);
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

    fn dispatch(&mut self, command: &Command) -> CommandResult {
        use Command::{Continue, Cycles, Finish, Next, Step};
        if let Some(deferred) = self.defer(command) {
            return deferred;
        }
        if let Some(rejection) = self.reject_while_followed(command) {
            return rejection;
        }
        match command {
            Command::Freeze => self.freeze(),
            Command::RunScheduler => self.let_run(),
            Command::Dump => self.dump(),
            Step { count, back: false } => self.steps(*count, StepMode::Into, Session::step_into),
            Step { count, back: true } => self.steps(*count, StepMode::Back, Session::back_into),
            Next { count, back: false } => self.steps(*count, StepMode::Over, Session::step_over),
            Next { count, back: true } => self.steps(*count, StepMode::Back, Session::back_over),
            Finish { count, back: false } => self.steps(*count, StepMode::Over, Session::step_out),
            Finish { count, back: true } => self.steps(*count, StepMode::Back, Session::back_out),
            Cycles { count, back } => self.cycles(*count, *back),
            Continue { back: false } if self.schedules_live() && !self.session.is_at_newest() => {
                self.begin_run(Goal::End)
            }
            Continue { back: false } => self.begin_run(Goal::Idle),
            Continue { back: true } => self.begin_run(Goal::Back),
            Command::Breakpoint(command) => self.breakpoints(command),
            Command::GoTo(position) => self.go_to(*position),
            Command::Inspect(position) => self.inspect(*position),
            Command::GoToCycle(number) => self.show_cycle(*number),
            Command::CancelReplay => self.cancel_replay(),
            Command::ContinueHere => self.continue_session(),
            Command::Advance(micros) => self.advance(*micros),
            Command::GoToTime(micros) => {
                self.go_to_moment(Time(self.model.start.0.saturating_add(*micros)))
            }
            Command::NextCycleOf(pod) => self.go_to_next_of(*pod),
            Command::Attempt { back } => self.attempt(*back),
            Command::Decide(decision, pods) => self.decide(decision, pods),
            Command::Hold(line) => self.hold(line),
            Command::WhatIf(command) => self.what_if(command),
            Command::Why(pod) => self.why(*pod),
            Command::ExplainNode(cycle, node) => self.why_node(*cycle, *node),
            Command::CompareNodes(a, b) => self.compare_nodes([*a, *b]),
            Command::Fixes(pod) => self.fixes(*pod),
            Command::NewNodes(pod) => self.new_nodes(*pod),
            Command::Disruptions => self.disruptions(),
            Command::Survive(text) => self.survive(text),
            Command::Upgrade(text) => self.upgrade(text),
            Command::WhyView(pod) => self.why_view(*pod),
            Command::WhyCandidate(pod, node) => self.why_candidate(*pod, *node),
            Command::Fold(outline, key) => self.fold(*outline, *key),
        }
    }

    fn steps(
        &mut self,
        count: u32,
        way: StepMode,
        step: fn(&mut Session) -> StepOutcome,
    ) -> CommandResult {
        self.walk(PendingSteps { left: count, count, way, step, stays: false, from: None })
    }

    fn cycles(&mut self, count: u32, back: bool) -> CommandResult {
        let (way, step): (StepMode, fn(&mut Session) -> StepOutcome) = match back {
            true => (StepMode::Back, Session::previous_cycle),
            false => (StepMode::Over, Session::next_cycle),
        };
        self.walk(PendingSteps { left: count, count, way, step, stays: true, from: None })
    }

    /// The message of a move: a new cycle's outcome, or why there was none.
    pub(super) fn step_message(&self, ran: StepOutcome) -> CommandResult {
        let message = match ran {
            StepOutcome::Moved => None,
            StepOutcome::AtEnd => Some((Severity::Info, "this is the end of the recording".into())),
            StepOutcome::NewCycle => self.session.record().map(|record| {
                let (cycle, pod, outcome) = (record.cycle, record.pod, record.outcome.as_str());
                (Severity::Info, format!("cycle {cycle} of {pod}: {outcome}"))
            }),
            StepOutcome::Idle => Some((Severity::Info, self.idle_text())),
            StepOutcome::AtStart => Some((Severity::Info, self.beginning_text())),
        };
        CommandResult { message, ..CommandResult::default() }
    }

    /// That there is nothing before, and why.
    pub(super) fn beginning_text(&self) -> String {
        match self.session.forgotten_before() {
            None => "this is the beginning of the recording".into(),
            Some(time) => format!(
                "the history before +{} was dropped; a larger --history-memory keeps more",
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
    fn cancel_replay(&mut self) -> CommandResult {
        let (stop, frame) = self.replay.origin;
        self.session.go_to_stop(stop);
        self.session.go_to(frame);
        CommandResult::info("stopped; back at the position before")
    }

    fn continue_session(&mut self) -> CommandResult {
        let steps = self.session.timeline().steps().end();
        let kept = self.branches.cut(&mut self.session);
        let later = steps - self.session.timeline().steps().end();
        let later = if later == 1 { "1 later step".into() } else { format!("{later} later steps") };
        let text = match kept {
            None => "there is nothing after this position".to_owned(),
            Some(name) => format!("new branch from here; :branch {name} returns to the {later}"),
        };
        self.future_forgotten();
        let notes = self.dropped_branches();
        CommandResult { message: Some((Severity::Info, text)), notes, ..CommandResult::default() }
    }

    fn inspect(&mut self, position: Option<CyclePosition>) -> CommandResult {
        let number = |position: CyclePosition| {
            Some((self.model.cycles.get(position.cycle)?.cycle, position.frame))
        };
        self.model.inspected = position.and_then(number);
        CommandResult::default()
    }

    fn go_to(&mut self, position: CyclePosition) -> CommandResult {
        self.model.inspected = None;
        if let Some(entry) = position.frame.entry {
            self.session.go_to_entry(entry);
            return CommandResult::default();
        }
        if let Some(record) = self.model.cycles.get(position.cycle) {
            self.session.go_to_cycle(record.cycle);
            self.session.go_to(position.frame);
        }
        CommandResult::default()
    }

    fn show_cycle(&mut self, number: u64) -> CommandResult {
        let forgotten = self.session.history().has_forgotten(number);
        let message = match self.session.go_to_cycle(number) {
            true => None,
            false if forgotten && number > 0 => Some((Severity::Error, self.beginning_text())),
            false => Some((Severity::Error, format!("no cycle {number} is recorded"))),
        };
        CommandResult { message, ..CommandResult::default() }
    }
}
