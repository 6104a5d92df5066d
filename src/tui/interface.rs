//! The interface without its terminal: inputs in, effects and frames out. The event loop, pictures of the
//! screen, benches and tests all run it.
//!
//! A turn takes one input in: a key, an event of the cluster, or a slice of the work that is under way. It ends
//! with one refresh, which brings the model and what is selected in it up to date.

use std::time::{Duration, Instant};

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::Frame;

use super::action::{KeyInput, Keymap};
use super::app::{App, Effect, LookOptions};
use super::command::Command;
use super::command_result::EditorText;
use super::driver::Driver;
use super::key::{KeyPress, parse_sequence};
use super::model::Model;
use super::render::render;
use super::theme::ThemeError;
use super::widget::hints;
use super::widget::status_line::Severity;
use crate::tui::action_error::ActionError;
use kubestep_debug::Session;
use kubestep_live::Notice;
use kubestep_live::scheduling::Arrival;

/// How long one slice of work may take before keys are looked at again.
const SLICE: Duration = Duration::from_millis(20);
/// Between two looks at the clock while playing.
const PLAY_TICK: Duration = Duration::from_millis(40);
/// Between two looks at how far a search is.
const SEARCH_TICK: Duration = Duration::from_millis(50);
/// How long the keys rest before the answer beside the rows is worked out.
const ANSWER_REST: Duration = Duration::from_millis(120);
/// The longest pause between two looks at the live cluster; nothing is due later.
const LIVE_PAUSE: Duration = Duration::from_secs(86_400);

/// How urgently the screen has to be drawn; the highest of several counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Redraw {
    /// The screen shows everything.
    None,
    /// The running session changed something: soon.
    Data,
    /// A person did something: now.
    Now,
    /// Nothing on the screen can be trusted: every cell.
    Full,
}

/// What a turn asks of the terminal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turn {
    /// An effect that the interface cannot bring about alone.
    pub effect: Option<Effect>,
    /// An object to open in the editor.
    pub editor: Option<EditorText>,
}

/// The interface over a session.
pub struct Interface {
    /// What only the interface knows: view, selection, prompt, windows.
    pub app: App,
    /// Keys, and what was typed of a sequence.
    pub input: KeyInput,
    /// The session, and the work that goes on with it.
    pub driver: Driver,
    redraw: Redraw,
    slice: Duration,
    last_tick: Instant,
    next_tick: Instant,
    search_at: Instant,
    /// When the answer beside the rows is worked out, if one is wanted.
    answer_at: Instant,
    /// When time has to pass on the live cluster, and whether its scheduler has more to do.
    live_at: Instant,
    live_more: bool,
    #[cfg(test)]
    refreshes: usize,
}

impl Interface {
    /// Over a session whose input is called `source`.
    ///
    /// # Errors
    /// The theme cannot be used.
    pub fn new(
        appearance: LookOptions,
        keymap: Keymap,
        session: Session,
        source: String,
    ) -> Result<Interface, ThemeError> {
        let now = Instant::now();
        let mut interface = Interface {
            app: App::new(appearance)?,
            input: KeyInput::new(keymap),
            driver: Driver::new(session, source),
            redraw: Redraw::Full,
            slice: SLICE,
            last_tick: now,
            next_tick: now,
            search_at: now,
            answer_at: now,
            live_at: now,
            live_more: false,
            #[cfg(test)]
            refreshes: 0,
        };
        interface.refresh();
        Ok(interface)
    }

    /// Lets a slice of work take this long.
    pub fn set_slice(&mut self, slice: Duration) {
        self.slice = slice;
    }

    /// The session as it is drawn.
    pub fn model(&self) -> &Model {
        self.driver.model()
    }

    /// A key was pressed.
    pub fn key(&mut self, key: KeyPress) -> Turn {
        self.ask_for(Redraw::Now);
        if !self.app.is_playing() {
            // The clock runs only from when playing begins.
            self.last_tick = Instant::now();
        }
        let effect = self.input.key(&mut self.app, key, self.driver.model());
        if !self.app.is_searching() {
            self.driver.stop_search();
        }
        if !self.app.is_playing() {
            self.driver.pause();
        }
        self.end(effect)
    }

    /// The mouse was used.
    pub fn mouse(&mut self, event: MouseEvent) -> Turn {
        if let Some(keys) = self.clicked_hint(event) {
            return keys.into_iter().map(|key| self.key(key)).last().unwrap_or_default();
        }
        match self.app.mouse(event, self.driver.model()) {
            Some(effect) => {
                self.ask_for(Redraw::Now);
                self.end(effect)
            }
            None => Turn::default(),
        }
    }

    /// The keys of the hint on the last line that a click is on.
    fn clicked_hint(&self, event: MouseEvent) -> Option<Vec<KeyPress>> {
        let (columns, lines) = self.app.size();
        let on_line = event.kind == MouseEventKind::Down(MouseButton::Left)
            && event.row + 1 == lines
            && self.app.prompt().is_none();
        let (hints, help) = on_line.then(|| self.input.hints(&self.app, self.driver.model()))?;
        parse_sequence(&hints::hit(event.column, columns, &hints, &help)?).ok()
    }

    /// Inserts pasted text into the prompt.
    pub fn paste(&mut self, text: &str) {
        self.app.paste(text);
        self.ask_for(Redraw::Now);
        self.refresh();
    }

    /// The terminal has this size now.
    pub fn resize(&mut self, width: u16, height: u16) {
        self.app.resize(width, height);
        self.ask_for(Redraw::Now);
        self.refresh();
    }

    /// Does a command; what is wrong with it, if anything.
    pub fn perform(&mut self, command: Command) -> Result<Turn, ActionError> {
        let result = self.driver.perform(&command);
        self.ask_for(Redraw::Now);
        match result.message {
            Some((Severity::Error, problem)) => {
                self.refresh();
                Err(problem.into())
            }
            _ => {
                self.app.done(result);
                Ok(self.end(Effect::None))
            }
        }
    }

    /// Ends a turn: does what it asks of the session, and refreshes once.
    fn end(&mut self, effect: Effect) -> Turn {
        self.answer_at = Instant::now() + ANSWER_REST;
        let mut turn = Turn::default();
        match effect {
            Effect::None => {}
            Effect::Session(command) => {
                let mut result = self.driver.perform(&command);
                turn.editor = result.editor.take();
                self.show_pending_notices();
                self.app.done(result);
                // The cluster may have been frozen, or goes on.
                self.live_more |= self.driver.follows();
                // What is typed on at once is about what a short run leads to.
                if self.app.is_running() {
                    self.run_slice();
                }
            }
            Effect::Clear => self.ask_for(Redraw::Full),
            Effect::CommandLines(lines) => self.run_lines(lines),
            other => turn.effect = Some(other),
        }
        self.refresh();
        turn
    }

    /// Does what command lines say, one after the other, as far as they succeed.
    fn run_lines(&mut self, lines: &[&str]) {
        for line in lines {
            let effect = self.input.run_line(&mut self.app, line, self.driver.model());
            self.end(effect);
            while self.app.is_running() {
                self.run_slice();
                self.refresh();
            }
            if self.app.status().is_some_and(|(severity, _)| severity == Severity::Error) {
                return;
            }
        }
    }

    /// Brings the model and what is selected in it up to date.
    pub fn refresh(&mut self) {
        #[cfg(test)]
        {
            self.refreshes += 1;
        }
        self.driver.refresh(self.app.view().spec().part);
        if let Some(needed) = self.input.needed_names(&self.app) {
            self.driver.refresh_names(needed);
        }
        self.app.refresh(self.driver.model());
        self.input.refresh(&self.app, self.driver.model());
    }

    /// Number of refreshes so far.
    #[cfg(test)]
    pub fn refreshes(&self) -> usize {
        self.refreshes
    }

    /// Draws one frame of the current model.
    pub fn draw(&mut self, frame: &mut Frame) {
        render(frame, &mut self.app, &self.input, self.driver.model());
    }

    /// How urgently it has to be drawn.
    pub fn redraw(&self) -> Redraw {
        self.redraw
    }

    /// Asks for a frame.
    pub fn ask_for(&mut self, redraw: Redraw) {
        self.redraw = self.redraw.max(redraw);
    }

    /// The screen was drawn.
    pub fn drawn(&mut self) {
        self.redraw = Redraw::None;
    }
}

/// Work that goes on between inputs.
impl Interface {
    /// When there is work to do without an input; at once if that is past.
    pub fn work_at(&self) -> Option<Instant> {
        let now = Instant::now();
        let at_once = self.driver.is_working() || self.app.is_running() || self.live_more;
        let times = [
            at_once.then_some(now),
            self.plays().then_some(self.next_tick),
            self.driver.is_searching().then_some(self.search_at),
            self.driver.is_live().then_some(self.live_at),
            self.wants_answer().then_some(self.answer_at),
        ];
        times.into_iter().flatten().min()
    }

    /// Does one slice of the work that is due first.
    pub fn work(&mut self) {
        let now = Instant::now();
        if self.plays() && self.next_tick <= now {
            self.play(now);
        } else if self.driver.is_searching() && self.search_at <= now {
            self.look_at_search(now);
        } else if self.driver.is_working() {
            self.driver.work_slice(self.slice);
            self.ask_for(Redraw::Data);
        } else if self.app.is_running() {
            self.run_slice();
        } else if self.live_more {
            self.live_slice();
        } else if self.driver.is_live() && self.live_at <= now {
            // Nothing is to be refreshed where nothing changed.
            if !self.live_tick() {
                return;
            }
        } else if self.answer_at <= now {
            self.find_answers();
        }
        self.refresh();
    }

    /// Whether the clock is played: a live scheduler's time passes by itself.
    fn plays(&self) -> bool {
        self.app.is_playing() && !self.driver.schedules_live()
    }

    fn play(&mut self, now: Instant) {
        let passed = now - self.last_tick;
        (self.last_tick, self.next_tick) = (now, now + PLAY_TICK);
        if let Some(text) = self.driver.play(self.app.speed(), passed) {
            self.app.done_playing(text);
        }
        self.ask_for(Redraw::Now);
    }

    fn run_slice(&mut self) {
        if let Some(result) = self.driver.run_slice(self.slice) {
            self.app.set_running(false);
            self.app.done(result);
            self.ask_for(Redraw::Now);
        }
        self.ask_for(Redraw::Data);
    }

    /// Whether the answer beside the rows or the cause of a row is to be worked out.
    pub fn wants_answer(&self) -> bool {
        let model = self.driver.model();
        self.app.wanted_answer(model).is_some() || self.app.wanted_cause(model).is_some()
    }

    /// Shows the answer beside the rows and the causes of rows, as far as a slice goes.
    pub fn answer(&mut self) {
        self.find_answers();
        self.refresh();
    }

    /// Works out the answer beside the rows, then the causes of rows, for about a slice.
    fn find_answers(&mut self) {
        let end = Instant::now() + self.slice;
        if let Some(pod) = self.app.wanted_answer(self.driver.model()) {
            self.driver.answer(pod);
            self.ask_for(Redraw::Data);
        }
        while let Some(pod) = self.app.wanted_cause(self.driver.model())
            && Instant::now() < end
        {
            self.driver.answer_row(pod);
            self.ask_for(Redraw::Data);
        }
    }

    fn look_at_search(&mut self, now: Instant) {
        self.search_at = now + SEARCH_TICK;
        if let Some(result) = self.driver.search_tick() {
            self.app.done_searching(result);
            self.ask_for(Redraw::Now);
            for command in self.driver.take_deferred() {
                self.end(Effect::Session(command));
            }
        }
        self.ask_for(Redraw::Data);
    }
}

/// What only sessions on a live cluster need.
impl Interface {
    /// The session follows a cluster, or schedules for it.
    pub fn follow_cluster(&mut self) {
        self.live_more = self.driver.follows();
        self.refresh();
    }

    /// Takes in what came from the cluster.
    pub fn arrival(&mut self, arrival: Option<Arrival>) {
        let notices = self.driver.take_in(arrival);
        self.notify(notices);
        self.live_more = true;
        self.live_tick();
        self.ask_for(Redraw::Data);
        self.refresh();
    }

    fn live_slice(&mut self) {
        let (more, result) = self.driver.live_slice(self.slice, self.app.is_playing());
        self.live_more = more;
        self.show_pending_notices();
        if let Some(result) = result {
            self.app.done(result);
        }
        self.live_tick();
        self.ask_for(Redraw::Data);
    }

    /// Lets time pass on the cluster; gives whether something changed.
    fn live_tick(&mut self) -> bool {
        let (pause, changed) = self.driver.live_tick();
        let pause = pause.min(LIVE_PAUSE);
        self.live_at = Instant::now() + pause;
        self.live_more |= changed || pause < Duration::from_millis(2);
        self.show_pending_notices();
        if changed {
            self.ask_for(Redraw::Data);
        }
        changed
    }

    fn show_pending_notices(&mut self) {
        let pending_notices = self.driver.take_pending_notices();
        if !pending_notices.is_empty() {
            self.ask_for(Redraw::Data);
        }
        self.notify(pending_notices);
    }

    fn notify(&mut self, notices: Vec<Notice>) {
        for notice in notices {
            let severity = if notice.serious { Severity::Warning } else { Severity::Info };
            self.app.notify(severity, notice.text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::testing::LiveInterface;
    use crossterm::event::KeyModifiers;

    #[test]
    fn a_turn_refreshes_once() {
        let mut interface = LiveInterface::demo("tour").interface;
        for key in ["s", "n", "5", "j", "/", "b", "enter", "esc", "W", "esc", "}", "1", "enter"] {
            let before = interface.refreshes();
            interface.key(key.parse().unwrap());
            assert_eq!(interface.refreshes(), before + 1, "{key}");
        }
        let before = interface.refreshes();
        interface.resize(100, 30);
        interface.paste("nowhere");
        assert_eq!(interface.refreshes(), before + 2);
        let before = interface.refreshes();
        interface.answer_at = Instant::now();
        interface.work();
        assert_eq!(interface.refreshes(), before + 1, "an answer");
    }

    #[test]
    fn what_is_selected_after_a_run_does_not_depend_on_its_speed() {
        for slice in [Duration::ZERO, Duration::from_secs(3600)] {
            let mut live = LiveInterface::demo("tour");
            live.interface.set_slice(slice);
            let mut live = live.keys("cW");
            assert!(live.text().contains("Why default/database?"), "{}", live.text());
        }
    }

    #[test]
    fn a_click_on_a_hint_is_its_key() {
        let mut live = LiveInterface::demo("tour");
        let line = live.lines()[23].clone();
        let click = |live: &mut LiveInterface, hint: &str| {
            live.interface.mouse(MouseEvent {
                kind: MouseEventKind::Down(MouseButton::Left),
                column: line.find(hint).unwrap() as u16,
                row: 23,
                modifiers: KeyModifiers::NONE,
            });
            live.text()
        };
        assert!(click(&mut live, "next").contains("cycle 1 default/payment"));
        assert!(click(&mut live, "Enter open").contains("Cycle 1 of default/payment"));
        assert!(click(&mut live, "help").contains("Keys and commands"));
        let mut live = live.keys("/");
        assert_eq!(click(&mut live, "next"), live.text(), "a prompt keeps the keys");
    }
}
