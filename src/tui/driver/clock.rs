//! The virtual clock: playing at a speed, advancing, and running until something is reached.

use std::time::{Duration, Instant};

use super::{Done, Driver, rows};
use crate::api::Time;
use crate::debug::Ran;
use crate::engine::pod::NamespacedName;
use crate::tui::model::span;
use crate::tui::speed::Speed;
use crate::tui::widget::status_line::Severity;

/// Between two cycles of the same virtual moment, at the speed of real time.
const STEP: Duration = Duration::from_millis(250);
/// How long playing without a limit may go on before a frame is drawn.
const SLICE: Duration = Duration::from_millis(15);

/// What a run is to reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Goal {
    /// Nothing can be popped.
    #[default]
    Idle,
    /// The next cycle of a pod, whatever timers have to pass.
    Pod(NamespacedName),
    /// A moment, with all cycles and timers before it.
    Moment(Time),
}

/// How far playing is on the way to the next stop.
#[derive(Default)]
pub(super) struct Playing {
    /// Virtual microseconds since the last stop.
    flowed: i64,
    /// Time since the last stop, of a person.
    waited: Duration,
}

/// What playing does next.
enum Next {
    /// A stop of this very moment.
    Now,
    /// Something in so many virtual microseconds.
    In(i64),
    /// Nothing by itself.
    Never,
}

impl Driver {
    /// Plays on after `passed` at `speed`. Gives words when nothing comes any more.
    pub fn play(&mut self, speed: Speed, passed: Duration) -> Option<String> {
        let start = Instant::now();
        self.playing.waited += passed;
        self.playing.flowed = self.playing.flowed.saturating_add(speed.flow(passed));
        loop {
            match self.next_to_play() {
                Next::Never => {
                    self.playing = Playing::default();
                    return Some(
                        "nothing is due by itself any more; only a change would help".into(),
                    );
                }
                Next::Now if self.playing.waited < speed.pause(STEP) => break,
                Next::In(gap) if self.playing.flowed < gap => break,
                Next::Now | Next::In(_) => self.play_stop(),
            }
            if !speed.is_unlimited() || start.elapsed() >= SLICE {
                break;
            }
        }
        self.model.now = Time(self.session.now().0 + self.shown_flow());
        self.model.progress = Some(self.play_words(speed));
        self.model.revision += 1;
        None
    }

    /// Playing has stopped: the clock stays where it was seen.
    pub fn pause(&mut self) {
        let flowed = self.shown_flow();
        self.playing = Playing::default();
        self.model.progress = None;
        if flowed > 0 && self.session.is_at_newest() {
            self.session.advance(flowed);
            self.world_changed();
        }
    }

    /// Virtual time since the last stop, at most up to the next one.
    fn shown_flow(&self) -> i64 {
        match self.next_to_play() {
            Next::In(gap) => self.playing.flowed.min(gap),
            _ => 0,
        }
    }

    fn next_to_play(&self) -> Next {
        let now = self.session.now();
        if let Some(next) = self.session.timeline().stops().get(self.session.stop_index() + 1) {
            let then = self.session.timeline().steps().get(next.step).map_or(now, |step| step.time);
            return if then > now { Next::In(then.0 - now.0) } else { Next::Now };
        }
        if !rows::is_idle(self.session.world().scheduler().queue()) {
            return Next::Now;
        }
        self.session.next_timer().map_or(Next::Never, |timer| Next::In(timer.due.0 - now.0))
    }

    fn play_stop(&mut self) {
        self.playing = Playing::default();
        if !self.session.is_at_newest() {
            self.session.go_to_stop(self.session.stop_index() + 1);
            return self.position_changed();
        }
        if self.session.run_cycle() == Ran::Idle {
            self.session.advance_to_next_timer();
        }
        self.world_changed();
    }

    fn play_words(&self, speed: Speed) -> String {
        let left = match self.next_to_play() {
            Next::In(gap) => gap - self.playing.flowed.min(gap),
            _ => return format!("{speed}; space pauses"),
        };
        match self.session.next_timer().filter(|_| self.session.is_at_newest()) {
            Some(timer) => format!("{speed}; in {} {}", span(left), timer.words()),
            None => format!("{speed}; the next step comes in {}", span(left)),
        }
    }

    /// `+`: time passes. In the past this follows what was recorded.
    pub(super) fn advance(&mut self, micros: Option<i64>) -> Done {
        if !self.session.is_at_newest() {
            return self.advance_in_past(micros);
        }
        let before = self.session.now();
        let timer = self.session.next_timer();
        match (micros, &timer) {
            (Some(micros), _) => self.session.advance(micros),
            (None, Some(_)) => drop(self.session.advance_to_next_timer()),
            (None, None) => return Done::said("no timer is set: nothing is due by itself"),
        }
        let passed = span(self.session.now().0 - before.0);
        match timer.filter(|timer| timer.due <= self.session.now()) {
            Some(timer) => {
                Done::said(format!("{passed} passed; {}; {}", timer.words(), self.active_words()))
            }
            None => Done::said(format!("{passed} passed; {}", self.active_words())),
        }
    }

    fn advance_in_past(&mut self, micros: Option<i64>) -> Done {
        let now = self.session.now();
        if let Some(micros) = micros {
            return self.go_to_moment(Time(now.0.saturating_add(micros)));
        }
        let later = self.session.timeline().steps().iter().find(|step| step.time > now);
        match later.map(|step| step.time) {
            Some(then) => {
                let stop = self.session.timeline().first_stop_at(then);
                self.session.go_to_stop(stop);
                Done::said(format!("{} later, as recorded", span(then.0 - now.0)))
            }
            None => {
                self.session.go_to_end();
                Done::said("the end of what is recorded; + goes on from here")
            }
        }
    }

    /// To a moment: within the recording, or on until it comes.
    pub(super) fn go_to_moment(&mut self, moment: Time) -> Done {
        if moment <= self.session.world().now() {
            self.session.go_to_time(moment);
            return Done::default();
        }
        self.begin_run(Goal::Moment(moment))
    }

    /// To a pod's next cycle: a recorded one, or on until there is one.
    pub(super) fn go_to_next_of(&mut self, pod: NamespacedName) -> Done {
        let newest = self.session.stop().map_or(0, |stop| stop.newest_cycle);
        let later = self.session.history().cycles_of(pod).find(|c| c.cycle > newest);
        if let Some(number) = later.map(|record| record.cycle) {
            self.session.go_to_cycle(number);
            return Done::default();
        }
        match self.session.world().scheduler().queue().get(pod) {
            Some(_) => self.begin_run(Goal::Pod(pod)),
            None => Done::said(format!("{pod} is not in the queue, so it is not tried again")),
        }
    }

    /// To the pod's cycle before or after this one.
    pub(super) fn attempt(&mut self, back: bool) -> Done {
        let Some(pod) = self.session.latest_record().map(|record| record.pod) else {
            return Done::said("no cycle yet: n runs the first one");
        };
        match (self.session.go_to_attempt(back), back) {
            (true, _) => Done::default(),
            (false, true) => Done::said(format!("this is the first attempt of {pod}")),
            (false, false) => self.go_to_next_of(pod),
        }
    }

    pub(super) fn begin_run(&mut self, goal: Goal) -> Done {
        self.goal = goal;
        self.run_from = self.session.history().cycle_count();
        // From an earlier position one wants to be at the end, also when nothing is left to run.
        self.session.go_to_end();
        Done { running: true, ..Done::default() }
    }

    /// Goes on with a run for about `budget`; the words for its end once it is over.
    pub fn run_slice(&mut self, budget: Duration) -> Option<String> {
        let start = Instant::now();
        let mut over = false;
        while !over && start.elapsed() < budget {
            over = !self.run_on();
        }
        let ran = self.session.history().cycle_count() - self.run_from;
        let plural = if ran == 1 { "" } else { "s" };
        self.model.progress = (!over).then(|| format!("{ran} cycle{plural} ran; Esc stops"));
        self.world_changed();
        over.then(|| format!("{ran} cycle{plural} ran; {}", self.end_words()))
    }

    /// One step towards the goal; `false` when it is reached, or cannot be.
    fn run_on(&mut self) -> bool {
        if self.session.run_cycle() != Ran::Idle {
            let here = self.session.record().map(|record| record.pod);
            return !matches!(self.goal, Goal::Pod(pod) if here == Some(pod));
        }
        let due = self.session.next_timer().map(|timer| timer.due);
        match (self.goal, due) {
            (Goal::Idle, _) => false,
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

    fn end_words(&self) -> String {
        let here = self.session.record();
        match self.goal {
            Goal::Pod(pod) => match here.filter(|record| record.pod == pod) {
                Some(record) => {
                    format!("attempt {} of {pod}: {}", record.attempt, record.outcome.as_str())
                }
                None => format!("{pod} is not tried any more; {}", self.idle_words()),
            },
            _ => self.idle_words(),
        }
    }

    /// Why nothing runs now, and what would.
    pub(super) fn idle_words(&self) -> String {
        match self.session.next_timer() {
            Some(timer) => {
                let left = span((timer.due.0 - self.session.world().now().0).max(0));
                format!("idle; + lets {left} pass: {}", timer.words())
            }
            None => "idle, and nothing is due by itself: only a change would help".into(),
        }
    }

    fn active_words(&self) -> String {
        match self.session.world().scheduler().queue().lengths()[0] {
            0 => "no pod is active".into(),
            1 => "1 pod is active".into(),
            n => format!("{n} pods are active"),
        }
    }
}

impl Done {
    /// Nothing but words.
    pub(super) fn said(text: impl Into<String>) -> Done {
        Done { message: Some((Severity::Info, text.into())), ..Done::default() }
    }
}
