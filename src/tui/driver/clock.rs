//! The virtual clock: playing at a speed, advancing, and running until something is reached.

use std::time::{Duration, Instant};

use super::{Driver, PendingSteps, StepResult};
use crate::tui::command_result::CommandResult;
use crate::tui::model::span;
use crate::tui::speed::Speed;
use kubestep_api::Time;
use kubestep_api::words::count;
use kubestep_debug::breakpoint::Moment;
use kubestep_debug::fork::RedoneInputs;
use kubestep_debug::timer::{self, Timer};
use kubestep_debug::{ContinueOutcome, StepOutcome, StopSearch};
use kubestep_framework::pod::NamespacedName;

/// Between two cycles of the same virtual moment, at the speed of real time.
const STEP: Duration = Duration::from_millis(250);
/// How long playing without a limit may go on before a frame is drawn.
const SLICE: Duration = Duration::from_millis(15);

/// Timers that are named when time passes at once; more are counted.
const SKIPPED: usize = 20;

/// What a run is to reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Goal {
    /// Nothing can be popped.
    #[default]
    Idle,
    /// The beginning, or the stop before.
    Back,
    /// The end of what is recorded.
    End,
    /// The end of the steps that were asked for.
    Steps,
    /// The end of what is done again after an undo.
    Redo,
    /// The next cycle of a pod, whatever timers have to pass.
    Pod(NamespacedName),
    /// A moment, with all cycles and timers before it.
    Moment(Time),
}

/// What goes on until a goal is reached.
#[derive(Default)]
pub(super) struct ActiveRun {
    /// What it is to reach.
    pub goal: Goal,
    /// Number of cycles when it began.
    pub cycles_before: usize,
    /// How many recorded cycles it might have to run again when it began.
    pub unseen_before: usize,
    /// Why a live scheduler could not go on with it.
    pub rejected: Option<String>,
    /// Since when logging breakpoints have not been asked.
    pub log_from: Option<Moment>,
    /// Steps that were asked for, and are not all done.
    pub steps: Option<PendingSteps>,
    /// What is redone, as it was begun.
    pub redoing: Option<RedoneInputs>,
    /// The clock that plays.
    pub playing: PlaybackProgress,
}

/// How far playing is on the way to the next stop.
#[derive(Default)]
pub(super) struct PlaybackProgress {
    /// Virtual microseconds since the last stop.
    flowed: i64,
    /// Time since the last stop, of a person.
    waited: Duration,
}

/// What playing does next.
enum NextStop {
    /// A stop of this very moment.
    Now,
    /// Something in so many virtual microseconds.
    In(i64),
    /// Only on a command.
    Never,
}

impl Driver {
    /// Plays on after `passed` at `speed`. Gives words when nothing comes any more.
    pub fn play(&mut self, speed: Speed, passed: Duration) -> Option<String> {
        let start = Instant::now();
        self.run.playing.waited += passed;
        self.run.playing.flowed = self.run.playing.flowed.saturating_add(speed.flow(passed));
        loop {
            match self.next_to_play() {
                NextStop::Never => {
                    self.run.playing = PlaybackProgress::default();
                    return Some("idle; no timers pending".into());
                }
                NextStop::Now if self.run.playing.waited < speed.pause(STEP) => break,
                NextStop::In(gap) if self.run.playing.flowed < gap => break,
                NextStop::Now | NextStop::In(_) => {
                    let since = self.session.moment();
                    self.play_stop();
                    if let Some(words) = self.stop_played(since) {
                        return Some(words);
                    }
                }
            }
            if !speed.is_unlimited() || start.elapsed() >= SLICE {
                break;
            }
        }
        self.model.now = Time(self.session.now().0 + self.shown_flow());
        self.model.progress = Some(self.play_text(speed));
        self.model.revision += 1;
        None
    }

    /// Playing has stopped: the clock stays where it was seen.
    pub fn pause(&mut self) {
        let flowed = self.shown_flow();
        self.run.playing = PlaybackProgress::default();
        self.model.progress = None;
        if flowed > 0 && self.session.is_at_newest() {
            self.session.advance(flowed);
            self.world_changed();
        }
    }

    /// Virtual time since the last stop, at most up to the next one.
    fn shown_flow(&self) -> i64 {
        match self.next_to_play() {
            NextStop::In(gap) => self.run.playing.flowed.min(gap),
            _ => 0,
        }
    }

    fn next_to_play(&self) -> NextStop {
        let now = self.session.now();
        if let Some(next) = self.session.timeline().stops().get(self.session.stop_index() + 1) {
            let then = self.session.timeline().steps().get(next.step).map_or(now, |step| step.time);
            return if then > now { NextStop::In(then.0 - now.0) } else { NextStop::Now };
        }
        let queue = self.session.world().scheduler().queue();
        if !queue.is_idle() && self.session.livelock().is_none() {
            return NextStop::Now;
        }
        self.session.next_timer().map_or(NextStop::Never, |timer| NextStop::In(timer.due.0 - now.0))
    }

    fn play_stop(&mut self) {
        self.run.playing = PlaybackProgress::default();
        if !self.session.is_at_newest() {
            self.session.go_to_stop(self.session.stop_index() + 1);
            return self.position_changed();
        }
        if self.session.livelock().is_some() || self.session.run_cycle() == StepOutcome::Idle {
            self.session.advance_to_next_timer();
        }
        self.world_changed();
    }

    /// Goes to the first stop of a breakpoint since a moment, if there is one. Returns what to say
    /// of it.
    fn stop_played(&mut self, since: Option<Moment>) -> Option<String> {
        let now = Moment::after(self.session.entries_past());
        let words = self.stop_until(since, now)?;
        self.run.playing = PlaybackProgress::default();
        self.position_changed();
        Some(words)
    }

    fn play_text(&self, speed: Speed) -> String {
        let left = match self.next_to_play() {
            NextStop::In(gap) => gap - self.run.playing.flowed.min(gap),
            _ => return format!("{speed}; Space pauses"),
        };
        match self.session.next_timer().filter(|_| self.session.is_at_newest()) {
            Some(timer) => format!("{speed}; in {} {}", span(left), timer.describe()),
            None => format!("{speed}; the next step in {}", span(left)),
        }
    }

    /// `+`: time passes. In the past this follows what was recorded.
    pub(super) fn advance(&mut self, micros: Option<i64>) -> CommandResult {
        if !self.session.is_at_newest() {
            return self.advance_in_past(micros);
        }
        let before = self.session.now();
        let end = match (micros, self.session.next_timer()) {
            (Some(micros), _) => Time(before.0.saturating_add(micros)),
            (None, Some(timer)) => timer.due,
            (None, None) => return CommandResult::info("no timers pending"),
        };
        let due = timer::due_by(self.session.world(), end);
        let untried = self.session.world().scheduler().queue().lengths()[0];
        let since = self.newest_moment();
        self.session.advance(end.0 - before.0);
        let passed = span(end.0 - before.0);
        if let Some(done) = self.stop_advanced(since, &passed) {
            return done;
        }
        let (skipped, notes) = skipped(&due, before, end, untried);
        let words = match due.iter().find(|timer| timer.due == end).or(due.first()) {
            Some(timer) if skipped.is_empty() => format!("; {}", timer.describe()),
            _ => skipped,
        };
        let text = format!("{passed} passed{words}; {}", self.active_text());
        CommandResult { notes, ..CommandResult::info(text) }
    }

    /// What to say if a breakpoint was hit while time passed, since that moment; the position is
    /// there.
    fn stop_advanced(&mut self, since: Option<Moment>, passed: &str) -> Option<CommandResult> {
        let end = Moment::after(self.session.history().len());
        let notes = self.log_lines(since);
        match self.stop_until(since, end) {
            Some(words) => {
                let done = CommandResult::stopped(format!("{passed} passed; {words}"));
                Some(CommandResult { look_at: self.best_view(), notes, ..done })
            }
            None if notes.is_empty() => None,
            None => {
                Some(CommandResult { notes, ..CommandResult::info(format!("{passed} passed")) })
            }
        }
    }

    fn advance_in_past(&mut self, micros: Option<i64>) -> CommandResult {
        let now = self.session.now();
        if let Some(micros) = micros {
            return self.go_to_moment(Time(now.0.saturating_add(micros)));
        }
        let later = self.session.timeline().steps().iter().find(|step| step.time > now);
        match later.map(|step| step.time) {
            Some(then) => {
                let stop = self.session.timeline().first_stop_at(then);
                self.session.go_to_stop(stop);
                CommandResult::info(format!("{} later, as recorded", span(then.0 - now.0)))
            }
            None => {
                self.session.go_to_end();
                CommandResult::info("the end of the recording; + continues from here")
            }
        }
    }

    /// To a moment: within the recording, or on until it comes.
    pub(super) fn go_to_moment(&mut self, moment: Time) -> CommandResult {
        if moment <= self.session.world().now() {
            self.session.go_to_time(moment);
            let is_gone = self.session.forgotten_before().is_some_and(|first| moment < first);
            return if is_gone {
                CommandResult::info(self.beginning_text())
            } else {
                CommandResult::default()
            };
        }
        self.begin_run(Goal::Moment(moment))
    }

    /// To a pod's next cycle: a recorded one, or on until there is one.
    pub(super) fn go_to_next_of(&mut self, pod: NamespacedName) -> CommandResult {
        let newest = self.session.stop().map_or(0, |stop| stop.newest_cycle);
        let later = self.session.history().cycles_of(pod).find(|c| c.cycle > newest);
        if let Some(number) = later.map(|record| record.cycle) {
            self.session.go_to_cycle(number);
            return CommandResult::default();
        }
        match self.session.world().scheduler().queue().get(pod) {
            Some(_) => self.begin_run(Goal::Pod(pod)),
            None => CommandResult::info(format!("{pod} is not in the queue, so it is not retried")),
        }
    }

    /// To the pod's cycle before or after this one.
    pub(super) fn attempt(&mut self, back: bool) -> CommandResult {
        let Some(pod) = self.session.latest_record().map(|record| record.pod) else {
            return CommandResult::info("no cycle yet: n runs the first one");
        };
        match (self.session.go_to_attempt(back), back) {
            (true, _) => CommandResult::default(),
            (false, true) => CommandResult::info(format!("this is the first attempt of {pod}")),
            (false, false) => self.go_to_next_of(pod),
        }
    }

    pub(super) fn begin_run(&mut self, goal: Goal) -> CommandResult {
        self.run.rejected = None;
        self.run.goal = goal;
        self.run.cycles_before = self.session.history().cycle_count();
        self.run.unseen_before = self.unseen_ahead();
        self.run.log_from = self.session.moment();
        CommandResult { running: true, ..CommandResult::default() }
    }

    /// Goes on with a run for about `budget`; returns the result once it is over.
    pub fn run_slice(&mut self, budget: Duration) -> Option<CommandResult> {
        let start = Instant::now();
        let more = || start.elapsed() < budget;
        if self.run.goal == Goal::Steps {
            let done = self.walk_on(more);
            self.model.progress = self.walk_text();
            self.world_changed();
            return done;
        }
        if self.run.goal == Goal::Redo {
            let done = self.redo_on(more);
            self.world_changed();
            return done;
        }
        let came_to = match self.run.goal {
            Goal::Back => self.session.continue_back(more),
            _ => self.go_on(more),
        };
        let over = came_to != ContinueOutcome::Paused;
        let number = self.session.history().cycle_count() - self.run.cycles_before;
        self.model.progress = (!over).then(|| self.run_text(number));
        let done = self.run_result(came_to, number);
        self.world_changed();
        done
    }

    /// How far a run is that ran so many cycles.
    fn run_text(&self, number: usize) -> String {
        match self.unseen_ahead() {
            0 => format!("{} ran; Esc stops", count(number, "cycle")),
            left => {
                let all = self.run.unseen_before.max(left);
                let (done, all) = (all - left, count(all, "cycle"));
                format!("looking for a stop: {done} of {all} run again; Esc stops")
            }
        }
    }

    /// The result of a run of so many cycles; `None` while it goes on.
    fn run_result(&mut self, came_to: ContinueOutcome, number: usize) -> Option<CommandResult> {
        let over = came_to != ContinueOutcome::Paused;
        let notes = match over && self.run.goal != Goal::Back {
            true => self.log_lines(self.run.log_from),
            false => Vec::new(),
        };
        Some(match came_to {
            ContinueOutcome::Paused => return None,
            ContinueOutcome::Stopped(hit) => {
                let words = self.hit_message(&hit);
                let look_at = self.best_view();
                CommandResult { look_at, notes, ..CommandResult::stopped(words) }
            }
            ContinueOutcome::AtStart => self.step_message(StepOutcome::AtStart),
            ContinueOutcome::Idle => {
                let words = match number {
                    0 => self.end_text(),
                    _ => format!("{} ran; {}", count(number, "cycle"), self.end_text()),
                };
                CommandResult { notes, ..CommandResult::info(words) }
            }
        })
    }

    /// How many recorded cycles a run has to run again, at most, to know whether to stop.
    fn unseen_ahead(&self) -> usize {
        let here = self.session.moment();
        let before = self.session.unseen_until(here);
        match self.run.goal {
            Goal::Back => before,
            _ => {
                let all = Moment::after(self.session.history().len());
                self.session.unseen_until(all) - before
            }
        }
    }

    /// Through what is recorded, then on towards the goal, until a breakpoint stops it.
    fn go_on(&mut self, mut more: impl FnMut() -> bool) -> ContinueOutcome {
        let mut after = self.session.moment();
        let (mut over, mut ran) = (false, false);
        loop {
            match self.session.stop_after(after, None, &mut more) {
                StopSearch::Found(hit) => return self.session.stopped(hit),
                StopSearch::Paused => return ContinueOutcome::Paused,
                StopSearch::None => {}
            }
            if self.run.goal != Goal::End {
                // No breakpoint blocks what was decided.
                self.send();
            }
            if over {
                if self.run.goal == Goal::Idle {
                    // The last of the pods, if a group was tried.
                    self.session.go_to_end();
                }
                return ContinueOutcome::Idle;
            }
            if ran && !more() {
                return ContinueOutcome::Paused;
            }
            self.session.go_to_end();
            after = Moment::after(self.session.history().len());
            (over, ran) = (!self.run_on(), true);
        }
    }

    /// One step towards the goal; `false` when it is reached, or cannot be.
    fn run_on(&mut self) -> bool {
        if self.run.goal == Goal::End {
            return false;
        }
        let ran = self.new_cycle();
        let here = self.session.record().filter(|_| ran).map(|record| record.pod);
        if matches!(self.run.goal, Goal::Pod(pod) if here == Some(pod)) {
            return false;
        }
        if ran && self.session.livelock().is_none() {
            return true;
        }
        let due = self.session.next_timer().map(|timer| timer.due);
        match (self.run.goal, due) {
            (Goal::Idle | Goal::Back | Goal::End | Goal::Steps, _) => false,
            // A live scheduler's time passes by itself.
            _ if self.schedules_live() => false,
            (Goal::Moment(moment), due) if due.is_none_or(|due| due > moment) => {
                self.session.advance(moment.0 - self.session.now().0);
                false
            }
            (Goal::Pod(pod), _) if self.session.world().scheduler().queue().get(pod).is_none() => {
                false
            }
            (_, None) => false,
            (_, Some(_)) => self.session.advance_to_next_timer().is_some(),
        }
    }

    /// Runs a cycle; live if this session schedules.
    fn new_cycle(&mut self) -> bool {
        if !self.schedules_live() {
            return self.session.run_cycle() == StepOutcome::NewCycle;
        }
        match self.decide_next() {
            StepResult::Rejected(text) => {
                self.run.rejected = Some(text);
                false
            }
            went => went.is_new_cycle(),
        }
    }

    fn end_text(&self) -> String {
        let here = self.session.record();
        if let Some(text) = &self.run.rejected {
            return text.clone();
        }
        match self.run.goal {
            Goal::End => "this is the newest state: c runs until nothing is left to schedule, \
                          Space schedules continuously"
                .into(),
            Goal::Pod(pod) => match here.filter(|record| record.pod == pod) {
                Some(record) => {
                    format!("attempt {} of {pod}: {}", record.attempt, record.outcome.as_str())
                }
                None => format!("{pod} is not retried; {}", self.idle_text()),
            },
            _ => self.idle_text(),
        }
    }

    /// Why nothing runs now, and what would.
    pub(super) fn idle_text(&self) -> String {
        let state = self.session.livelock().map_or("idle".into(), |livelock| livelock.to_string());
        match self.session.next_timer() {
            Some(timer) => {
                let left = span((timer.due.0 - self.session.world().now().0).max(0));
                match self.schedules_live() {
                    true => format!("{state}; in {left} {}", timer.describe()),
                    false => format!("{state}; + advances {left}: {}", timer.describe()),
                }
            }
            None if self.session.livelock().is_some() => state,
            None => "idle; no timers pending".into(),
        }
    }

    fn active_text(&self) -> String {
        match self.session.world().scheduler().queue().lengths()[0] {
            0 => "no pod is active".into(),
            1 => "1 pod is active".into(),
            n => format!("{n} pods are active"),
        }
    }
}

/// What time that passed at once went over: words for the status line, and all of it in lines.
/// Each timer is done at the end as if it had been due then, and no pod is tried in between.
fn skipped(due: &[Timer], before: Time, end: Time, untried: usize) -> (String, Vec<String>) {
    let early: Vec<&Timer> = due.iter().filter(|timer| timer.due < end).collect();
    let mut lines: Vec<String> = early
        .iter()
        .take(SKIPPED)
        .map(|timer| {
            format!("skipped after {}: {}", span(timer.due.0 - before.0), timer.describe())
        })
        .collect();
    let more = early.len().saturating_sub(SKIPPED);
    lines.extend((more > 0).then(|| format!("skipped: {more} more timers")));
    let pods = if untried == 1 { "1 active pod was" } else { "active pods were" };
    lines.extend((untried > 0).then(|| format!("skipped: {pods} not tried meanwhile")));
    let words = match early.as_slice() {
        [] => String::new(),
        [one] => format!(", skipping a timer: {}; :moment stops at it", one.describe()),
        all => format!(", skipping {} timers (M lists them); :moment stops at each", all.len()),
    };
    (words, lines)
}
