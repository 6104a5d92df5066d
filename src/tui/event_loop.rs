//! The event loop: waits for keys, signals, timers and the live cluster, lets the interface take a turn, draws.
//!
//! Nothing runs while nothing happens: there are no ticks. Keys draw at once, after everything typed so far
//! is taken in, so that held keys and resize storms cost one frame; what the running session changes draws
//! at most every 33 ms. A long run is cut into slices between which keys are read.

use std::future;
use std::io;
use std::path::Path;
use std::task::Poll;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use crossterm::event::{Event as TerminalEvent, EventStream, KeyEventKind};
use futures::StreamExt;
use tokio::time::sleep_until;

use super::app::Effect;
use super::background::LateAnswer;
use super::command::{Command, WhatIfCommand};
use super::command_result::EditorText;
use super::data_source::DataSource;
use super::driver::{DECIDING, SchedulerExit};
use super::editor;
use super::interface::{Interface, Redraw, Turn};
use super::key::KeyPress;
use super::screenshot;
use super::settings::InterfaceSettings;
use super::signals::{DumpSignal, Signals};
use super::terminal::TerminalScreen;
use super::widget::status_line::Severity;
use crate::tui::action_error::ActionError;
use kubestep_debug::Session;
use kubestep_debug::edit::Edit;
use kubestep_live::scheduling::Arrival;
use kubestep_output::file::replace;

/// Between frames while the session runs.
const RUN_FRAME: Duration = Duration::from_millis(33);
/// Events taken in before a frame is drawn all the same.
const BATCH: usize = 256;

/// What the debugger is opened on.
pub struct OpenedInput {
    pub session: Session,
    /// The name of its input.
    pub source: String,
    /// What feeds the session.
    pub data_source: DataSource,
}

/// Runs the debugger until it is closed; gives the exit code, and what a live scheduler left. `notices` are
/// messages at the start. Breakpoints and watches are written to the file `breakpoints` at the end, if they
/// changed.
///
/// # Errors
/// The terminal cannot be used, the theme is broken, or the file cannot be written.
pub fn run(
    debugged: OpenedInput,
    settings: InterfaceSettings,
    notices: Vec<String>,
    breakpoints: Option<&Path>,
) -> anyhow::Result<(i32, SchedulerExit)> {
    let OpenedInput { session, source, data_source } = debugged;
    let mut interface = Interface::new(settings.appearance, settings.keymap, session, source)?;
    let notices = settings.warnings.into_iter().chain(notices);
    notices.for_each(|notice| interface.app.notify(Severity::Warning, notice));
    interface.app.start();
    interface.driver.measure();
    let runtime = kubestep_live::runtime::new()?;
    open(&mut interface, data_source);
    let before = interface.driver.breakpoints_text();
    let (code, interface) = runtime.block_on(async {
        let mut event_loop = EventLoop::new(interface)?;
        let code = event_loop.run().await?;
        io::Result::Ok((code, event_loop.interface))
    })?;
    let driver = interface.driver;
    let changed = before != driver.breakpoints_text();
    if let Some(path) = breakpoints.filter(|path| changed || !path.exists()) {
        let text = driver.breakpoints_over(path)?;
        replace(path, &text).with_context(|| format!("cannot save {}", path.display()))?;
    }
    Ok((code, driver.left()))
}

/// Connects the session to what feeds it.
fn open(interface: &mut Interface, data_source: DataSource) {
    match data_source {
        DataSource::Nothing => {}
        DataSource::Live(following) => interface.driver.follow(*following),
        DataSource::Scheduling(scheduler) => {
            interface.driver.schedule_for(*scheduler);
            interface.app.hint(format!("nothing is scheduled yet: {DECIDING}"));
        }
        DataSource::Recording { start, decisions, speed } => {
            interface.driver.play_back(start, decisions);
            speed.into_iter().for_each(|speed| interface.app.play_at(speed));
        }
    }
}

/// What the loop waits for.
enum LoopEvent {
    /// A key, the mouse, a paste, or another size.
    Terminal(TerminalEvent),
    /// A signal that ends the program: its exit code.
    Exit(i32),
    /// The signal that asks for a dump.
    Dump,
    /// The live cluster; `None` if it is not followed any more.
    Arrival(Option<Arrival>),
    /// Work of the driver is due.
    Work,
    /// A frame is due.
    Frame,
}

struct EventLoop {
    interface: Interface,
    screen: TerminalScreen,
    events: EventStream,
    signals: Signals,
    dump_signal: DumpSignal,
    late_answer: LateAnswer,
    last_frame: Instant,
}

impl EventLoop {
    fn new(interface: Interface) -> io::Result<EventLoop> {
        let signals = Signals::new()?;
        let screen = TerminalScreen::enter()?;
        let mut this = EventLoop {
            interface,
            screen,
            events: EventStream::new(),
            signals,
            dump_signal: DumpSignal::new()?,
            late_answer: LateAnswer::default(),
            last_frame: Instant::now(),
        };
        let (width, height) = crossterm::terminal::size()?;
        this.interface.resize(width, height);
        this.interface.ask_for(Redraw::Full);
        this.interface.follow_cluster();
        Ok(this)
    }

    async fn run(&mut self) -> io::Result<i32> {
        loop {
            self.draw_if_due()?;
            let event = self.next_event().await?;
            if let Some(code) = self.event(event).await? {
                return Ok(code);
            }
        }
    }

    async fn next_event(&mut self) -> io::Result<LoopEvent> {
        let draw_at = self.last_frame + RUN_FRAME;
        let work_at = self.interface.work_at();
        let (data, follows) =
            (self.interface.redraw() == Redraw::Data, self.interface.driver.follows());
        Ok(tokio::select! {
            biased;
            code = self.signals.exit_code() => LoopEvent::Exit(code),
            event = self.events.next() => match event {
                Some(event) => LoopEvent::Terminal(event?),
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            },
            () = self.dump_signal.requested() => LoopEvent::Dump,
            () = sleep_until(draw_at.into()), if data => LoopEvent::Frame,
            () = wait_until(work_at) => LoopEvent::Work,
            arrival = self.interface.driver.next_arrival(), if follows => LoopEvent::Arrival(arrival),
        })
    }

    /// Lets the interface take its turn; the exit code when it was the last.
    async fn event(&mut self, event: LoopEvent) -> io::Result<Option<i32>> {
        match event {
            LoopEvent::Exit(code) => return Ok(Some(code)),
            LoopEvent::Terminal(event) => return self.take_in(event).await,
            LoopEvent::Dump => {
                // A dump is always possible.
                let _ = self.interface.perform(Command::Dump);
            }
            LoopEvent::Frame => self.interface.ask_for(Redraw::Now),
            LoopEvent::Work => self.interface.work(),
            LoopEvent::Arrival(arrival) => self.interface.arrival(arrival),
        }
        Ok(None)
    }

    /// Takes in an event and all that wait behind it.
    async fn take_in(&mut self, first: TerminalEvent) -> io::Result<Option<i32>> {
        let mut next = Some(first);
        for _ in 0..BATCH {
            let Some(event) = next.take() else { break };
            if let Some(code) = self.terminal_event(event)? {
                return Ok(Some(code));
            }
            next = self.ready_event().await.transpose()?;
        }
        match next {
            Some(event) => self.terminal_event(event),
            None => Ok(None),
        }
    }

    /// An event that is there already. Polled with the loop's own waker: the stream keeps the first waker
    /// it sees until an event comes, so polling with another one would put the loop to sleep for good.
    async fn ready_event(&mut self) -> Option<io::Result<TerminalEvent>> {
        future::poll_fn(|cx| match self.events.poll_next_unpin(cx) {
            Poll::Ready(event) => Poll::Ready(event),
            Poll::Pending => Poll::Ready(None),
        })
        .await
    }

    fn terminal_event(&mut self, event: TerminalEvent) -> io::Result<Option<i32>> {
        let turn = match event {
            TerminalEvent::Key(key) if self.late_answer.takes(&key, Instant::now()) => {
                return Ok(None);
            }
            TerminalEvent::Key(key) if key.kind != KeyEventKind::Release => {
                self.interface.key(KeyPress::from(key))
            }
            TerminalEvent::Mouse(mouse) => self.interface.mouse(mouse),
            TerminalEvent::Paste(text) => {
                self.interface.paste(&text);
                Turn::default()
            }
            TerminalEvent::Resize(width, height) => {
                self.interface.resize(width, height);
                Turn::default()
            }
            _ => Turn::default(),
        };
        self.do_turn(turn)
    }

    /// Does what a turn asks of the terminal.
    fn do_turn(&mut self, turn: Turn) -> io::Result<Option<i32>> {
        match turn.effect {
            Some(Effect::Quit(code)) => return Ok(Some(code)),
            Some(Effect::Suspend) => {
                self.screen.suspend()?;
                self.interface.ask_for(Redraw::Full);
            }
            Some(Effect::Copy(text)) => self.copy(&text)?,
            Some(Effect::Save(file)) => self.save(&file),
            Some(Effect::Mouse(on)) => self.screen.set_mouse(on)?,
            _ => {}
        }
        if let Some(text) = turn.editor {
            self.edit(text)?;
        }
        Ok(None)
    }

    fn copy(&mut self, text: &str) -> io::Result<()> {
        let app = &mut self.interface.app;
        match self.screen.copy(text)? {
            Ok(bytes) => app.notify(Severity::Info, format!("copied {bytes} bytes (OSC 52)")),
            Err(problem) => app.notify(Severity::Error, problem.to_string()),
        }
        Ok(())
    }

    fn save(&mut self, file: &str) {
        let saved = screenshot::save(&mut self.interface, Path::new(file));
        let app = &mut self.interface.app;
        match saved {
            Ok(()) => app.notify(Severity::Info, format!("saved {file}")),
            Err(problem) => app.notify(Severity::Error, format!("cannot save {file}: {problem}")),
        }
    }

    /// Gives the terminal to an editor, again with what is wrong until it is right or cancelled.
    fn edit(&mut self, object: EditorText) -> io::Result<()> {
        let (mut text, mut problem) = (object.yaml, None);
        loop {
            // Keys are the editor's meanwhile, so nothing of ours may read them.
            // A stream reads only once it is asked.
            self.events = EventStream::new();
            let edited = self.screen.lend(|| editor::edit(&text, problem.as_deref()))?;
            self.interface.ask_for(Redraw::Full);
            let app = &mut self.interface.app;
            match edited {
                Ok(Some(edited)) => text = edited,
                Ok(None) => {
                    app.notify(Severity::Info, format!("{} is unchanged", object.name));
                    return Ok(());
                }
                Err(error) => {
                    app.notify(Severity::Error, error.to_string());
                    return Ok(());
                }
            }
            match self.put(&text) {
                Ok(_) => return Ok(()),
                Err(error) => problem = Some(error.to_string()),
            }
        }
    }

    /// Puts the objects of a text in place; what is wrong with it, if anything.
    fn put(&mut self, text: &str) -> Result<Turn, ActionError> {
        let edits = Edit::put_all("edited", text).map_err(|error| error.to_string())?;
        self.interface.perform(Command::WhatIf(WhatIfCommand::Edits(edits)))
    }

    fn draw_if_due(&mut self) -> io::Result<()> {
        let redraw = self.interface.redraw();
        let waits = redraw == Redraw::Data && self.last_frame.elapsed() < RUN_FRAME;
        if waits || redraw == Redraw::None {
            return Ok(());
        }
        if redraw == Redraw::Full {
            self.screen.clear()?;
        }
        let interface = &mut self.interface;
        self.screen.draw(|frame| interface.draw(frame))?;
        self.interface.drawn();
        self.last_frame = Instant::now();
        Ok(())
    }
}

/// Waits until a time, or for good. What is due already waits until timers and signals were looked at, which
/// the runtime does only when it is idle.
async fn wait_until(time: Option<Instant>) {
    match time {
        None => future::pending().await,
        Some(time) if time <= Instant::now() => tokio::task::yield_now().await,
        Some(time) => sleep_until(time.into()).await,
    }
}
