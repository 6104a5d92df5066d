//! A live scheduler behind the session: when it decides, when what it decided is sent, and when
//! all of it is held.
//!
//! Stepping into a cycle holds it: it is decided, and what it wants written leaves only once the
//! debugger steps on beyond its end. Stepping over a cycle sends at once, unless a breakpoint
//! stops in it. While the position is in the past, in a held cycle or in a branch, nothing is
//! decided and updates are queued.

use std::time::{Duration, Instant};

use super::{Driver, StepMode};
use crate::tui::command_result::CommandResult;
use crate::tui::model::{HoldReason, SchedulingModel};
use crate::tui::widget::status_line::Severity;
use kubestep_debug::breakpoint::Moment;
use kubestep_debug::fork::ORIGINAL;
use kubestep_debug::{Position, Session, StepOutcome};
use kubestep_live::scheduling::{Arrival, LeaderStatus};
use kubestep_live::{InteractiveScheduler, Notice};

/// Keys that make the live scheduler decide.
pub const DECIDING: &str =
    "s steps into a cycle, n runs one, Space schedules continuously or pauses";

/// The result of a step.
pub(super) enum StepResult {
    /// The position moved, or a cycle ran.
    Ran(StepOutcome),
    /// Writes were sent: these, in a few words.
    Sent(String),
    /// Nothing may be decided, and why.
    Rejected(String),
}

impl StepResult {
    /// Whether a cycle ran.
    pub fn is_new_cycle(&self) -> bool {
        matches!(self, StepResult::Ran(StepOutcome::NewCycle))
    }

    /// Whether there is no use in stepping on.
    pub fn is_end(&self) -> bool {
        matches!(
            self,
            StepResult::Rejected(_) | StepResult::Ran(StepOutcome::Idle | StepOutcome::AtStart)
        )
    }
}

impl Driver {
    /// Lets the session, which acts, schedule the live cluster.
    pub fn schedule_for(&mut self, scheduler: InteractiveScheduler) {
        self.live.scheduler = Some(Box::new(scheduler));
        self.session.forget_past();
        self.model.start = self.session.world().now();
        self.live_changed();
    }

    /// Whether the session on screen is the one that schedules the live cluster.
    pub fn schedules_live(&self) -> bool {
        self.live.scheduler.is_some() && self.session.acts()
    }

    /// Why nothing is decided and updates are queued.
    pub(super) fn held(&self) -> Option<HoldReason> {
        let scheduler = self.live.scheduler.as_ref()?;
        if !self.session.acts() {
            return Some(HoldReason::Branch);
        }
        if scheduler.is_frozen() {
            return Some(HoldReason::Frozen);
        }
        if !self.session.unsent().is_empty() {
            return Some(HoldReason::Cycle);
        }
        let at_head = self.session.is_at_newest() && self.session.position() == Position::START;
        (!at_head).then_some(HoldReason::Past)
    }

    /// The state of the live scheduler, for the views.
    pub(super) fn scheduling_model(&self) -> Option<SchedulingModel> {
        let scheduler = self.live.scheduler.as_ref()?;
        Some(SchedulingModel {
            context: scheduler.context().to_owned(),
            dry_run: scheduler.is_dry_run(),
            leader_status: scheduler.leader_status().clone(),
            held: self.held(),
        })
    }

    /// One step. Beyond what is recorded a live scheduler sends what is held, or else decides:
    /// in the present a step leads into the next cycle, not into updates that have just arrived.
    pub(super) fn one_step(
        &mut self,
        way: StepMode,
        step: fn(&mut Session) -> StepOutcome,
    ) -> StepResult {
        let went = self.step_on(way, step);
        if way == StepMode::Into && went.is_new_cycle() {
            self.session.enter();
        }
        went
    }

    fn step_on(&mut self, way: StepMode, step: fn(&mut Session) -> StepOutcome) -> StepResult {
        let at_update = self.session.record().is_none();
        if way != StepMode::Back && at_update && self.schedules_live() && self.held().is_none() {
            return self.decide_next();
        }
        match step(&mut self.session) {
            StepOutcome::AtEnd => self.step_live(),
            ran => StepResult::Ran(ran),
        }
    }

    fn step_live(&mut self) -> StepResult {
        let sends = !self.session.unsent().is_empty();
        self.session.go_to_end();
        match self.send() {
            Some(words) => {
                self.session.go_to_end();
                StepResult::Sent(words)
            }
            None if sends => StepResult::Rejected(self.stays_held()),
            None => self.decide_next(),
        }
    }

    /// Why a cycle stays held.
    fn stays_held(&mut self) -> String {
        let why = self.live.scheduler.as_mut().and_then(|scheduler| scheduler.may_write().err());
        let why = why.map(|why| why.to_string()).unwrap_or_default();
        format!("{} stays held; {why}", self.cycle_text())
    }

    /// Decides about the next pod of the live cluster.
    pub(super) fn decide_next(&mut self) -> StepResult {
        let Some(scheduler) = &mut self.live.scheduler else {
            return StepResult::Ran(StepOutcome::Idle);
        };
        if let Err(held) = scheduler.may_write() {
            return StepResult::Rejected(held.to_string());
        }
        self.live.pending_notices.extend(scheduler.catch_up(&mut self.session));
        match scheduler.decide(&mut self.session) {
            Ok(true) => StepResult::Ran(StepOutcome::NewCycle),
            Ok(false) => StepResult::Ran(StepOutcome::Idle),
            Err(held) => StepResult::Rejected(held.to_string()),
        }
    }

    /// Sends what a live scheduler wants written, unless that has to wait. Returns it in a few
    /// words.
    pub(super) fn send(&mut self) -> Option<String> {
        let scheduler = self.live.scheduler.as_mut().filter(|_| self.session.acts())?;
        // Without the lease it never may again: then it fails, and one can look on.
        let waits = scheduler.may_write().is_err() && !scheduler.leader_status().is_lost();
        if waits { None } else { scheduler.send(&mut self.session) }
    }

    /// The message of a step: of a live cycle, what of it is held or was sent.
    pub(super) fn live_step_message(
        &self,
        went: &StepResult,
        sent: Option<String>,
    ) -> CommandResult {
        let held = self.session.describe_unsent();
        match went {
            StepResult::Rejected(text) => CommandResult::error(text.clone()),
            StepResult::Sent(words) => CommandResult::info(format!("sent: {words}")),
            StepResult::Ran(StepOutcome::NewCycle) if !held.is_empty() => {
                CommandResult::info(format!(
                    "{} is held: {held}; }} sends it, as does stepping past its end",
                    self.cycle_text()
                ))
            }
            StepResult::Ran(StepOutcome::NewCycle) if sent.is_some() => {
                let sent = sent.unwrap_or_default();
                CommandResult::info(format!("{} is decided and sent: {sent}", self.cycle_text()))
            }
            StepResult::Ran(ran) => self.step_message(*ran),
        }
    }

    fn cycle_text(&self) -> String {
        let record = self.session.latest_record();
        record.map(|record| format!("cycle {} of {}", record.cycle, record.pod)).unwrap_or_default()
    }

    /// From now on it decides by itself; what was held is sent.
    pub(super) fn let_run(&mut self) -> CommandResult {
        if !self.session.unsent().is_empty() && !self.session.is_at_newest() {
            let text = "a cycle is held: c goes to it, } sends what it wants written".to_owned();
            return CommandResult { stopped: true, ..CommandResult::error(text) };
        }
        let sends = !self.session.unsent().is_empty();
        let sent = self.send().map(|words| format!("; sent: {words}"));
        if sends && sent.is_none() {
            return CommandResult { stopped: true, ..CommandResult::error(self.stays_held()) };
        }
        let sent = sent.unwrap_or_default();
        self.session.go_to_end();
        self.live.runs = true;
        match self.live.scheduler.as_mut().map(|scheduler| scheduler.may_write()) {
            Some(Err(held)) => {
                let text = format!("scheduling resumes when that is allowed{sent}; {held}");
                CommandResult::of(Severity::Warning, text)
            }
            _ => CommandResult::info(format!("scheduling continuously; Space pauses{sent}")),
        }
    }

    /// Lets a live scheduler decide for about `budget`. Gives whether there is more to do, and
    /// the message if a breakpoint stopped it.
    pub(super) fn run_live(&mut self, budget: Duration) -> (bool, Option<CommandResult>) {
        let start = Instant::now();
        while self.live.runs && self.held().is_none() && start.elapsed() < budget {
            let since = self.newest_moment();
            if !self.decide_next().is_new_cycle() {
                return (false, None);
            }
            if let Some(words) = self.stop_until(since, self.newest_moment()) {
                return (false, Some(CommandResult::stopped(words)));
            }
            self.send();
        }
        (self.live.runs && self.held().is_none(), None)
    }

    /// The end of what is recorded.
    pub(super) fn newest_moment(&self) -> Option<Moment> {
        Moment::after(self.session.history().len())
    }

    /// Lets time pass for a live scheduler. Gives whether something has changed.
    pub(super) fn tick_scheduler(&mut self) -> bool {
        let held = self.held().is_some();
        let Some(scheduler) = &mut self.live.scheduler else { return false };
        let shown = self.model.live.as_ref().map_or(0, |live| live.waiting);
        let led = *scheduler.leader_status() == LeaderStatus::Leads;
        let (changed, notices) = scheduler.tick(&mut self.session, held);
        if held {
            scheduler.compact_queue(self.branches.other(ORIGINAL).unwrap_or(&self.session));
        }
        self.live.pending_notices.extend(notices);
        if !led && *scheduler.leader_status() == LeaderStatus::Leads {
            self.live.pending_notices.push(Notice { serious: false, text: DECIDING.into() });
        }
        changed || held && scheduler.waiting() != shown
    }

    /// Takes in what came from the cluster. Returns the messages.
    pub(super) fn take_arrival(&mut self, arrival: Option<Arrival>) -> Vec<Notice> {
        let Some(scheduler) = &mut self.live.scheduler else { return Vec::new() };
        match arrival {
            Some(arrival) => scheduler.take(&mut self.session, arrival),
            None => {
                scheduler.freeze(true);
                let text = "the cluster is no longer followed: nothing is scheduled".to_owned();
                vec![Notice { serious: true, text }]
            }
        }
    }

    /// Why no live decision can be made manually at the moment.
    pub(super) fn reject_manual_run(&mut self) -> Option<CommandResult> {
        let held = self.held();
        let text = match held {
            _ if !self.schedules_live() => return None,
            Some(HoldReason::Past | HoldReason::Branch) => {
                "this is the past: c returns to the newest state, :fork tries it here".to_owned()
            }
            Some(HoldReason::Cycle) => format!("{} is held: }} sends it first", self.cycle_text()),
            _ => self.live.scheduler.as_mut()?.may_write().err()?.to_string(),
        };
        Some(CommandResult::error(text))
    }

    /// Takes the notices that came while something else went on.
    pub fn take_pending_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.live.pending_notices)
    }

    /// The end of a live scheduler: what it wanted written and was never sent, and whether its
    /// lease was lost.
    pub fn left(&self) -> SchedulerExit {
        let here = self.session.acts().then_some(&self.session);
        let original = here.or_else(|| self.branches.other(ORIGINAL));
        let unsent = original.map(Session::describe_unsent).unwrap_or_default();
        let leader_status = self.live.scheduler.as_ref().map(|scheduler| scheduler.leader_status());
        SchedulerExit { unsent, lost: leader_status.is_some_and(LeaderStatus::is_lost) }
    }
}

/// What a live scheduler left undone when the debugger was closed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchedulerExit {
    /// What was held and is not written, in a few words; empty: nothing.
    pub unsent: String,
    /// Whether the lease was lost.
    pub lost: bool,
}

#[cfg(test)]
mod tests;
