//! A real scheduler behind the session: when it decides, when what it decided is sent, and when
//! all of it is held.
//!
//! Stepping into a cycle holds it: it is decided, and what it wants written leaves only once the
//! debugger steps on beyond its end. Stepping over a cycle sends at once, unless a breakpoint
//! stops in it. While the position is in the past, in a held cycle or in a branch, nothing is
//! decided and updates are queued.

use std::time::{Duration, Instant};

use super::{Driver, StepMode};
use crate::tui::command_result::CommandResult;
use crate::tui::model::{HoldReason, RealModel};
use crate::tui::widget::status_line::Severity;
use kubestep_debug::breakpoint::Moment;
use kubestep_debug::fork::ORIGINAL;
use kubestep_debug::{Position, Session, StepOutcome};
use kubestep_live::scheduling::{Arrival, LeaderStatus};
use kubestep_live::{InteractiveScheduler, Notice};

/// How a real scheduler is made to decide.
pub const DECIDING: &str =
    "s steps into a cycle, n runs one, Space schedules continuously or pauses";

/// What stepping on came to.
pub(super) enum StepResult {
    /// The position moved, or a cycle ran.
    Ran(StepOutcome),
    /// Writes were sent: these, in a few words.
    Sent(String),
    /// Nothing may be decided, and why.
    Refused(String),
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
            StepResult::Refused(_) | StepResult::Ran(StepOutcome::Idle | StepOutcome::AtStart)
        )
    }
}

impl Driver {
    /// Lets the session, which acts, schedule for real.
    pub fn attend(&mut self, attended: InteractiveScheduler) {
        self.live.attended = Some(Box::new(attended));
        self.session.forget_past();
        self.model.start = self.session.world().now();
        self.live_changed();
    }

    /// Whether the session on screen is the one that schedules for real.
    pub fn is_real(&self) -> bool {
        self.live.attended.is_some() && self.session.acts()
    }

    /// Why nothing is decided and updates are queued.
    pub(super) fn held(&self) -> Option<HoldReason> {
        let attended = self.live.attended.as_ref()?;
        if !self.session.acts() {
            return Some(HoldReason::Branch);
        }
        if attended.is_frozen() {
            return Some(HoldReason::Frozen);
        }
        if !self.session.unsent().is_empty() {
            return Some(HoldReason::Cycle);
        }
        let at_head = self.session.is_at_newest() && self.session.position() == Position::START;
        (!at_head).then_some(HoldReason::Past)
    }

    /// What the picture says of it.
    pub(super) fn real_model(&self) -> Option<RealModel> {
        let attended = self.live.attended.as_ref()?;
        Some(RealModel {
            context: attended.context().to_owned(),
            dry_run: attended.is_dry_run(),
            standing: attended.standing().clone(),
            held: self.held(),
        })
    }

    /// One step. Beyond what is recorded a real scheduler sends what is held, or else decides:
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
        let at_news = self.session.record().is_none();
        if way != StepMode::Back && at_news && self.is_real() && self.held().is_none() {
            return self.decide_next();
        }
        match step(&mut self.session) {
            StepOutcome::AtEnd => self.step_for_real(),
            ran => StepResult::Ran(ran),
        }
    }

    fn step_for_real(&mut self) -> StepResult {
        let sends = !self.session.unsent().is_empty();
        self.session.go_to_end();
        match self.send() {
            Some(words) => {
                self.session.go_to_end();
                StepResult::Sent(words)
            }
            None if sends => StepResult::Refused(self.stays_held()),
            None => self.decide_next(),
        }
    }

    /// Why a cycle stays held.
    fn stays_held(&mut self) -> String {
        let why = self.live.attended.as_mut().and_then(|attended| attended.may_write().err());
        let why = why.map(|why| why.to_string()).unwrap_or_default();
        format!("{} stays held; {why}", self.cycle_words())
    }

    /// Decides about the next pod for real.
    pub(super) fn decide_next(&mut self) -> StepResult {
        let Some(attended) = &mut self.live.attended else {
            return StepResult::Ran(StepOutcome::Idle);
        };
        if let Err(held) = attended.may_write() {
            return StepResult::Refused(held.to_string());
        }
        self.live.unsaid.extend(attended.catch_up(&mut self.session));
        match attended.decide(&mut self.session) {
            Ok(true) => StepResult::Ran(StepOutcome::NewCycle),
            Ok(false) => StepResult::Ran(StepOutcome::Idle),
            Err(held) => StepResult::Refused(held.to_string()),
        }
    }

    /// Sends what a real scheduler wants written, unless that has to wait. Gives it in a few
    /// words.
    pub(super) fn send(&mut self) -> Option<String> {
        let attended = self.live.attended.as_mut().filter(|_| self.session.acts())?;
        // Without the lease it never may again: then it fails, and one can look on.
        let waits = attended.may_write().is_err() && !attended.standing().is_lost();
        if waits { None } else { attended.send(&mut self.session) }
    }

    /// What stepping on has to say: of a cycle for real, what of it is held or was sent.
    pub(super) fn real_step_message(
        &self,
        went: &StepResult,
        sent: Option<String>,
    ) -> CommandResult {
        let held = self.session.unsent_words();
        match went {
            StepResult::Refused(text) => CommandResult::error(text.clone()),
            StepResult::Sent(words) => CommandResult::info(format!("sent: {words}")),
            StepResult::Ran(StepOutcome::NewCycle) if !held.is_empty() => {
                CommandResult::info(format!(
                    "{} is held: {held}; }} sends it, as does stepping past its end",
                    self.cycle_words()
                ))
            }
            StepResult::Ran(StepOutcome::NewCycle) if sent.is_some() => {
                let sent = sent.unwrap_or_default();
                CommandResult::info(format!("{} is decided and sent: {sent}", self.cycle_words()))
            }
            StepResult::Ran(ran) => self.step_message(*ran),
        }
    }

    fn cycle_words(&self) -> String {
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
        match self.live.attended.as_mut().map(|attended| attended.may_write()) {
            Some(Err(held)) => {
                let text = format!("scheduling resumes when that is allowed{sent}; {held}");
                CommandResult::of(Severity::Warning, text)
            }
            _ => CommandResult::info(format!("scheduling continuously; Space pauses{sent}")),
        }
    }

    /// Lets a real scheduler decide for about `budget`. Gives whether there is more to do, and
    /// what is to be said if a breakpoint stopped it.
    pub(super) fn run_for_real(&mut self, budget: Duration) -> (bool, Option<CommandResult>) {
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

    /// Lets time pass for a real scheduler. Gives whether something has changed.
    pub(super) fn tick_for_real(&mut self) -> bool {
        let held = self.held().is_some();
        let Some(attended) = &mut self.live.attended else { return false };
        let shown = self.model.live.as_ref().map_or(0, |live| live.waiting);
        let led = *attended.standing() == LeaderStatus::Leads;
        let (changed, notices) = attended.tick(&mut self.session, held);
        if held {
            attended.stand_by(self.branches.other(ORIGINAL).unwrap_or(&self.session));
        }
        self.live.unsaid.extend(notices);
        if !led && *attended.standing() == LeaderStatus::Leads {
            self.live.unsaid.push(Notice { serious: false, text: DECIDING.into() });
        }
        changed || held && attended.waiting() != shown
    }

    /// Takes in what came from the cluster. Gives what is to be said.
    pub(super) fn take_arrival(&mut self, arrival: Option<Arrival>) -> Vec<Notice> {
        let Some(attended) = &mut self.live.attended else { return Vec::new() };
        match arrival {
            Some(arrival) => attended.take(&mut self.session, arrival),
            None => {
                attended.freeze(true);
                let text = "the cluster is no longer followed: nothing is scheduled".to_owned();
                vec![Notice { serious: true, text }]
            }
        }
    }

    /// Why no real decision can be made manually at the moment.
    pub(super) fn reject_manual_run(&mut self) -> Option<CommandResult> {
        let held = self.held();
        let text = match held {
            _ if !self.is_real() => return None,
            Some(HoldReason::Past | HoldReason::Branch) => {
                "this is the past: c returns to the newest state, :fork tries it here".to_owned()
            }
            Some(HoldReason::Cycle) => format!("{} is held: }} sends it first", self.cycle_words()),
            _ => self.live.attended.as_mut()?.may_write().err()?.to_string(),
        };
        Some(CommandResult::error(text))
    }

    /// What was said while something else went on.
    pub fn take_unsaid(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.live.unsaid)
    }

    /// How a real scheduler is left: what it wanted written and was never sent, and whether its
    /// lease was lost.
    pub fn left(&self) -> SchedulerExit {
        let here = self.session.acts().then_some(&self.session);
        let original = here.or_else(|| self.branches.other(ORIGINAL));
        let unsent = original.map(Session::unsent_words).unwrap_or_default();
        let standing = self.live.attended.as_ref().map(|attended| attended.standing());
        SchedulerExit { unsent, lost: standing.is_some_and(LeaderStatus::is_lost) }
    }
}

/// What a real scheduler left undone when the debugger was closed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchedulerExit {
    /// What was held and is not written, in a few words; empty: nothing.
    pub unsent: String,
    /// Whether the lease was lost.
    pub lost: bool,
}

#[cfg(test)]
mod tests;
