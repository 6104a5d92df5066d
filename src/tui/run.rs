//! The event loop: waits for keys, signals and timers, updates, draws.
//!
//! Nothing runs while nothing happens: there are no ticks. Keys draw at once, after everything typed so far
//! is taken in, so that held keys and resize storms cost one frame; what the running session changes draws
//! at most every 33 ms. A long run is cut into slices between which keys are read.

use std::io;
use std::path::Path;
use std::task::Poll;
use std::time::Duration;

use anyhow::Context as _;
use crossterm::event::{Event, EventStream, KeyEventKind};
use futures::StreamExt;
use tokio::time::{Instant, sleep_until};

use super::action::Key;
use super::action::whatif::Wish;
use super::app::{App, Effect, Request};
use super::background::LateAnswer;
use super::behind::Behind;
use super::driver::{DECIDING, Driver, Left, Open};
use super::editor;
use super::picture;
use super::render::render;
use super::settings::Settings;
use super::signals::{DumpSignal, Signals};
use super::terminal::Screen;
use super::widget::status_line::Severity;
use kubestep_debug::Session;
use kubestep_debug::edit::Edit;
use kubestep_framework::pod::NamespacedName;
use kubestep_live::Notice;
use kubestep_live::attended::Arrival;
use kubestep_output::file::replace;

/// Between frames while the session runs.
const RUN_FRAME: Duration = Duration::from_millis(33);
/// How long the session runs before keys are looked at again.
const SLICE: Duration = Duration::from_millis(20);
/// Between two looks at the clock while playing.
const PLAY_TICK: Duration = Duration::from_millis(40);
/// Between two looks at how far a search is.
const SEARCH_TICK: Duration = Duration::from_millis(50);
/// How long the keys rest before the answer beside the rows is worked out.
const ANSWER_REST: Duration = Duration::from_millis(120);
/// Events taken in before a frame is drawn all the same.
const BATCH: usize = 256;

/// How urgently the screen has to be drawn; the highest of several counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Redraw {
    /// Nothing changed.
    None,
    /// The running session changed something: soon.
    Data,
    /// A person did something: now.
    Now,
    /// Nothing on the screen can be trusted: every cell.
    Full,
}

/// What is shown.
pub struct Shown {
    /// The session.
    pub session: Session,
    /// Where its input came from, in a few words.
    pub source: String,
    /// What the session goes after.
    pub behind: Behind,
}

/// Shows a session until the person leaves; gives the exit code, and how a real scheduler was
/// left. `notices` are said at the start.
/// Breakpoints and watches are written to the file `breakpoints` at the end, if they changed.
///
/// # Errors
/// The terminal cannot be used, the theme is broken, or the file cannot be written.
pub fn run(
    shown: Shown,
    settings: Settings,
    notices: Vec<String>,
    breakpoints: Option<&Path>,
) -> anyhow::Result<(i32, Left)> {
    let mut app = App::new(settings.appearance, settings.keymap)?;
    let notices = settings.warnings.into_iter().chain(notices);
    notices.for_each(|notice| app.say(Severity::Warning, notice));
    app.start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut driver = Driver::new(shown.session, shown.source);
    driver.measure();
    match shown.behind {
        Behind::Nothing => {}
        Behind::Live(following) => driver.follow(*following),
        Behind::Scheduling(attended) => {
            driver.attend(*attended);
            app.tell(format!("nothing is decided yet: {DECIDING}"));
        }
        Behind::Recording { start, decisions, speed } => {
            driver.play_back(start, decisions);
            speed.into_iter().for_each(|speed| app.play_at(speed));
        }
    }
    let before = driver.breakpoints_text();
    let (code, driver) = runtime.block_on(async {
        let mut shown = Loop::new(app, driver)?;
        let code = shown.run().await?;
        io::Result::Ok((code, shown.driver))
    })?;
    let changed = before != driver.breakpoints_text();
    if let Some(path) = breakpoints.filter(|path| changed || !path.exists()) {
        let text = driver.breakpoints_over(path).map_err(anyhow::Error::msg)?;
        replace(path, &text).with_context(|| format!("cannot save {}", path.display()))?;
    }
    Ok((code, driver.left()))
}

struct Loop {
    app: App,
    driver: Driver,
    screen: Screen,
    events: EventStream,
    signals: Signals,
    dump_signal: DumpSignal,
    late_answer: LateAnswer,
    redraw: Redraw,
    last_frame: Instant,
    last_tick: Instant,
    next_tick: Instant,
    search_at: Instant,
    /// When time has to pass on the live cluster, and whether its scheduler has more to do.
    live_tick_at: Instant,
    live_more: bool,
}

impl Loop {
    fn new(app: App, driver: Driver) -> io::Result<Loop> {
        let signals = Signals::new()?;
        let screen = Screen::enter()?;
        let now = Instant::now();
        let mut this = Loop {
            app,
            driver,
            screen,
            events: EventStream::new(),
            signals,
            dump_signal: DumpSignal::new()?,
            late_answer: LateAnswer::default(),
            redraw: Redraw::Full,
            last_frame: now,
            last_tick: now,
            next_tick: now,
            search_at: now,
            live_tick_at: now,
            live_more: false,
        };
        let (width, height) = crossterm::terminal::size()?;
        this.app.resize(width, height);
        this.live_more = this.driver.follows();
        this.sync();
        Ok(this)
    }

    async fn run(&mut self) -> io::Result<i32> {
        loop {
            self.draw_if_due()?;
            if let Some(code) = self.wait().await? {
                return Ok(code);
            }
        }
    }

    /// Waits for one thing to happen and does it; the exit code when it was the last.
    async fn wait(&mut self) -> io::Result<Option<i32>> {
        let draw_at = self.last_frame + RUN_FRAME;
        let answer_at = self.last_frame + ANSWER_REST;
        let wanted = self.app.wanted_answer(self.driver.model(self.app.view()));
        tokio::select! {
            biased;
            code = self.signals.exit_code() => return Ok(Some(code)),
            event = self.events.next() => {
                let Some(event) = event else { return Err(io::ErrorKind::UnexpectedEof.into()) };
                return self.take_in(event?).await;
            }
            () = self.dump_signal.asked() => {
                self.perform(&Request::Dump)?;
                self.ask_for(Redraw::Now);
            }
            () = sleep_until(draw_at), if self.redraw == Redraw::Data => self.redraw = Redraw::Now,
            () = sleep_until(self.next_tick), if self.plays() => self.play(),
            () = sleep_until(self.search_at), if self.driver.is_searching() => self.search_tick(),
            // Through the scheduler and not at once: timers and signals are looked at only when it is idle.
            () = tokio::task::yield_now(), if self.driver.is_working() => self.work_slice(),
            () = tokio::task::yield_now(), if self.app.is_running() => self.run_slice(),
            () = tokio::task::yield_now(), if self.live_more => self.live_slice(),
            arrival = self.driver.next_arrival(), if self.driver.follows() => self.live_arrival(arrival),
            () = sleep_until(self.live_tick_at), if self.driver.is_live() => self.live_tick(),
            () = sleep_until(answer_at), if wanted.is_some() => self.answer(wanted),
        }
        Ok(None)
    }

    /// Takes in an event and all that wait behind it.
    async fn take_in(&mut self, first: Event) -> io::Result<Option<i32>> {
        let mut next = Some(first);
        for _ in 0..BATCH {
            let Some(event) = next.take() else { break };
            if let Some(code) = self.event(event)? {
                return Ok(Some(code));
            }
            next = self.ready_event().await.transpose()?;
        }
        match next {
            Some(event) => self.event(event),
            None => Ok(None),
        }
    }

    /// An event that is there already. Polled with the loop's own waker: the stream keeps the first waker
    /// it sees until an event comes, so polling with another one would put the loop to sleep for good.
    async fn ready_event(&mut self) -> Option<io::Result<Event>> {
        std::future::poll_fn(|cx| match self.events.poll_next_unpin(cx) {
            Poll::Ready(event) => Poll::Ready(event),
            Poll::Pending => Poll::Ready(None),
        })
        .await
    }

    fn event(&mut self, event: Event) -> io::Result<Option<i32>> {
        match event {
            Event::Key(key) if self.late_answer.takes(&key, std::time::Instant::now()) => {}
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                self.ask_for(Redraw::Now);
                let model = self.driver.model(self.app.view());
                let effect = self.app.key(Key::from(key), model);
                if !self.app.is_searching() {
                    self.driver.stop_search();
                }
                self.follow_play();
                self.sync();
                return self.do_effect(effect);
            }
            Event::Paste(text) => {
                let model = self.driver.model(self.app.view());
                self.app.paste(&text, model);
                self.ask_for(Redraw::Now);
            }
            Event::Mouse(mouse) => {
                let model = self.driver.model(self.app.view());
                if let Some(effect) = self.app.mouse(mouse, model) {
                    self.ask_for(Redraw::Now);
                    self.sync();
                    return self.do_effect(effect);
                }
            }
            Event::Resize(width, height) => {
                self.app.resize(width, height);
                self.sync();
                self.ask_for(Redraw::Now);
            }
            _ => {}
        }
        Ok(None)
    }

    fn do_effect(&mut self, effect: Effect) -> io::Result<Option<i32>> {
        match effect {
            Effect::None => {}
            Effect::Quit(code) => return Ok(Some(code)),
            Effect::Clear => self.ask_for(Redraw::Full),
            Effect::Suspend => {
                self.screen.suspend()?;
                self.ask_for(Redraw::Full);
            }
            Effect::Session(request) => self.perform(&request)?,
            Effect::Copy(text) => self.copy(&text)?,
            Effect::Save(file) => self.save(&file),
            Effect::Mouse(on) => self.screen.set_mouse(on)?,
        }
        Ok(None)
    }

    fn copy(&mut self, text: &str) -> io::Result<()> {
        match self.screen.copy(text)? {
            Ok(bytes) => self.app.say(Severity::Info, format!("copied {bytes} bytes (OSC 52)")),
            Err(problem) => self.app.say(Severity::Error, problem),
        }
        Ok(())
    }

    fn save(&mut self, file: &str) {
        let model = self.driver.model(self.app.view());
        match picture::save(&mut self.app, model, Path::new(file)) {
            Ok(()) => self.app.say(Severity::Info, format!("saved {file}")),
            Err(problem) => self.app.say(Severity::Error, format!("cannot save {file}: {problem}")),
        }
    }

    fn perform(&mut self, request: &Request) -> io::Result<()> {
        let mut done = self.driver.perform(request);
        let editor = done.open.take_if(|open| matches!(open, Open::Editor(..)));
        self.say_unsaid();
        self.app.done(done);
        // The cluster may have been frozen, or goes on.
        self.live_more |= self.driver.follows();
        // What is typed on at once is about what a short run leads to.
        if self.app.is_running() {
            self.run_slice();
        }
        self.sync();
        match editor {
            Some(Open::Editor(name, text)) => self.edit(&name, &text),
            _ => Ok(()),
        }
    }

    /// Gives the terminal to an editor, again with what is wrong until it is right or given up.
    fn edit(&mut self, name: &str, text: &str) -> io::Result<()> {
        let (mut text, mut problem) = (text.to_owned(), None);
        loop {
            // Keys are the editor's meanwhile, so nothing of ours may read them.
            // A stream reads only once it is asked.
            self.events = EventStream::new();
            let edited = self.screen.lend(|| editor::edit(&text, problem.as_deref()))?;
            self.ask_for(Redraw::Full);
            match edited {
                Ok(Some(edited)) => text = edited,
                Ok(None) => {
                    self.app.say(Severity::Info, format!("{name} stays as it is"));
                    return Ok(());
                }
                Err(error) => {
                    self.app.say(Severity::Error, error.to_string());
                    return Ok(());
                }
            }
            problem = self.put(&text);
            if problem.is_none() {
                return Ok(());
            }
        }
    }

    /// Puts the objects of a text in place; what is wrong with it, if anything.
    fn put(&mut self, text: &str) -> Option<String> {
        let edits = match Edit::put_all("edited", text) {
            Ok(edits) => edits,
            Err(error) => return Some(error.to_string()),
        };
        let lines = edits.iter().map(Edit::line).collect();
        let done = self.driver.perform(&Request::WhatIf(Wish::Edits(lines)));
        match done.message {
            Some((Severity::Error, problem)) => Some(problem),
            _ => {
                self.app.done(done);
                self.sync();
                None
            }
        }
    }

    fn play(&mut self) {
        let now = Instant::now();
        let passed = now - self.last_tick;
        (self.last_tick, self.next_tick) = (now, now + PLAY_TICK);
        if let Some(words) = self.driver.play(self.app.speed(), passed) {
            self.app.done_playing(words);
        }
        self.sync();
        self.ask_for(Redraw::Now);
    }

    /// The clock runs only from when playing began, and stays where it is when it ends.
    fn follow_play(&mut self) {
        if !self.app.is_playing() {
            self.driver.pause();
            self.last_tick = Instant::now();
        }
    }

    fn work_slice(&mut self) {
        self.driver.work_slice(SLICE);
        self.sync();
        self.ask_for(Redraw::Data);
    }

    fn run_slice(&mut self) {
        if let Some(done) = self.driver.run_slice(SLICE) {
            self.app.set_running(false);
            self.app.done(done);
            self.ask_for(Redraw::Now);
        }
        self.sync();
        self.ask_for(Redraw::Data);
    }

    fn search_tick(&mut self) {
        self.search_at = Instant::now() + SEARCH_TICK;
        if let Some(done) = self.driver.search_tick() {
            self.app.done_searching(done);
            self.sync();
            self.ask_for(Redraw::Now);
        }
        self.ask_for(Redraw::Data);
    }

    /// Whether the clock is played: a real scheduler's time passes by itself.
    fn plays(&self) -> bool {
        self.app.is_playing() && !self.driver.is_real()
    }

    /// Why the selected pod is where it is, beside the rows.
    fn answer(&mut self, wanted: Option<NamespacedName>) {
        wanted.into_iter().for_each(|pod| self.driver.answer(pod));
        self.sync();
        self.ask_for(Redraw::Now);
    }

    fn live_arrival(&mut self, arrival: Option<Arrival>) {
        let notices = self.driver.take_in(arrival);
        self.notice(notices);
        self.live_more = true;
        self.live_tick();
        self.ask_for(Redraw::Data);
    }

    fn notice(&mut self, notices: Vec<Notice>) {
        for notice in notices {
            let severity = if notice.serious { Severity::Warning } else { Severity::Info };
            self.app.say(severity, notice.text);
        }
    }

    fn live_slice(&mut self) {
        let (more, done) = self.driver.live_slice(SLICE, self.app.is_playing());
        self.live_more = more;
        self.say_unsaid();
        if let Some(done) = done {
            self.app.done(done);
        }
        self.sync();
        self.live_tick();
        self.ask_for(Redraw::Data);
    }

    fn live_tick(&mut self) {
        let (pause, changed) = self.driver.live_tick();
        // A day is longer than anything that is due.
        let pause = pause.min(Duration::from_secs(86_400));
        self.live_tick_at = Instant::now() + pause;
        self.live_more |= changed || pause < Duration::from_millis(2);
        self.say_unsaid();
        if changed {
            self.sync();
            self.ask_for(Redraw::Data);
        }
    }

    fn say_unsaid(&mut self) {
        let unsaid = self.driver.take_unsaid();
        if !unsaid.is_empty() {
            self.ask_for(Redraw::Data);
        }
        self.notice(unsaid);
    }

    fn sync(&mut self) {
        let model = self.driver.model(self.app.view());
        self.app.sync(model);
    }

    fn ask_for(&mut self, redraw: Redraw) {
        self.redraw = self.redraw.max(redraw);
    }

    fn draw_if_due(&mut self) -> io::Result<()> {
        let waits = self.redraw == Redraw::Data && self.last_frame.elapsed() < RUN_FRAME;
        if waits || self.redraw == Redraw::None {
            return Ok(());
        }
        if self.redraw == Redraw::Full {
            self.screen.clear()?;
        }
        let model = self.driver.model(self.app.view());
        let app = &mut self.app;
        self.screen.draw(|frame| render(frame, app, model))?;
        self.redraw = Redraw::None;
        self.last_frame = Instant::now();
        Ok(())
    }
}
