//! What the interface remembers, and the one place where it changes.
//!
//! `App` holds nothing of the session: views draw a `Model`, and whatever should happen to the session, the
//! terminal or the keys leaves as an [`Effect`].

mod chip;
mod details;
mod look;
mod marks;
#[cfg(test)]
mod marks_tests;
mod mouse;
mod prompt;
#[cfg(test)]
mod random_tests;
mod select;
mod shape;
#[cfg(test)]
mod silent_tests;
mod status;
#[cfg(test)]
mod tests;
mod travel;
mod window;

use std::collections::{BTreeMap, BTreeSet};

use super::color::ColorDepth;
use super::command::Command;
use super::command_result::{CommandResult, WindowContent};
use super::glyph::Charset;
use super::messages::Messages;
use super::model::CyclePosition;
use super::prompt::Prompt;
use super::speed::Speed;
use super::theme::{Library, Theme, ThemeError};
use super::view::{ViewId, ViewShape};
use super::widget::grid::GridState;
use super::widget::status_line::Severity;

pub use window::{HelpRow, Window};

/// What should happen outside of the interface's own state.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    None,
    /// A command for the session.
    Session(Command),
    /// Invokes the action of that name.
    Invoke(&'static str),
    /// Runs these command lines one after the other, each to its end.
    CommandLines(&'static [&'static str]),
    /// Opens the window of keys and commands.
    Help {
        /// With its filter open.
        palette: bool,
    },
    /// Uses a preset of keys; an empty name lists the presets.
    Keys(String),
    /// Draws every cell again.
    Clear,
    /// Suspends the program, as Ctrl-Z does in a shell.
    Suspend,
    /// Copies a text to the terminal's clipboard.
    Copy(String),
    /// Saves the screen to a file.
    Save(String),
    /// Switches mouse events on or off.
    Mouse(bool),
    /// Leaves with this exit code.
    Quit(i32),
}

/// How the interface should look, decided before it starts.
#[derive(Clone, Debug)]
pub struct LookOptions {
    pub library: Library,
    pub theme: String,
    /// Colours of the terminal.
    pub depth: ColorDepth,
    /// The glyphs that the terminal shows.
    pub charset: Charset,
}

/// The debugger's position, and the cycle and frame that are inspected.
type Followed = (Option<CyclePosition>, Option<(u64, kubestep_debug::Position)>);

/// The view on the first screen.
const FIRST_VIEW: ViewId = ViewId::Cycle;

/// What only the interface knows: view, selection, filter, prompt and windows.
pub struct App {
    view: ViewId,
    history: Vec<ViewId>,
    history_at: usize,
    grids: BTreeMap<ViewId, GridState>,
    shapes: BTreeMap<ViewId, ViewShape>,
    /// The position each view's selection has followed to, and what was inspected.
    followed: BTreeMap<ViewId, Followed>,
    /// The view from which a view of one cycle was opened: Esc returns there.
    opened_from: Option<ViewId>,
    /// The views in which a person selected the row that is selected, since the debugger was moved.
    selected_in: BTreeSet<ViewId>,
    /// The row to select once the model has it, by its key.
    row_to_select: Option<u64>,
    detail_scroll: usize,
    /// How far the details can be scrolled.
    detail_room: usize,
    detail_focused: bool,
    detail_height: details::DetailHeight,
    prompt: Option<Prompt>,
    windows: Vec<Window>,
    appearance: LookOptions,
    theme: Theme,
    wide: bool,
    breadcrumbs: bool,
    mouse_on: bool,
    playing: bool,
    speed: Speed,
    running: bool,
    searching: bool,
    /// Windows that were open when the search was asked for.
    windows_at_search: usize,
    size: (u16, u16),
    status: Option<(Severity, String)>,
    messages: Messages,
    last_move: Option<Command>,
}

impl App {
    /// The state at the start; warnings about the theme become messages.
    pub fn new(appearance: LookOptions) -> Result<App, ThemeError> {
        let (theme, warnings) =
            Theme::load(&appearance.library, &appearance.theme, appearance.depth)?;
        let mut app = App {
            view: FIRST_VIEW,
            history: vec![FIRST_VIEW],
            history_at: 0,
            grids: BTreeMap::new(),
            shapes: BTreeMap::new(),
            followed: BTreeMap::new(),
            opened_from: None,
            selected_in: BTreeSet::new(),
            row_to_select: None,
            detail_scroll: 0,
            detail_room: 0,
            detail_focused: false,
            detail_height: details::DetailHeight::default(),
            prompt: None,
            windows: Vec::new(),
            appearance,
            theme,
            wide: false,
            breadcrumbs: true,
            mouse_on: false,
            playing: false,
            speed: Speed::default(),
            running: false,
            searching: false,
            windows_at_search: 0,
            size: (80, 24),
            status: None,
            messages: Messages::default(),
            last_move: None,
        };
        warnings.into_iter().for_each(|warning| app.notify(Severity::Warning, warning));
        Ok(app)
    }

    /// Closes the top window, or leaves.
    pub fn quit(&mut self) -> Effect {
        match self.windows.pop() {
            Some(_) => Effect::None,
            None => Effect::Quit(0),
        }
    }

    /// The terminal has this size now.
    pub fn resize(&mut self, width: u16, height: u16) {
        self.size = (width, height);
    }

    /// Stops playing, or lets it go on.
    pub fn keep_playing(&mut self, goes_on: bool) {
        self.playing &= goes_on;
    }

    /// Empties the status line.
    pub fn clear_status(&mut self) {
        self.status = None;
    }

    /// The names of the themes there are.
    pub fn themes(&self) -> Vec<String> {
        self.appearance.library.names()
    }

    /// Whether the session should step on its own.
    pub fn is_playing(&self) -> bool {
        self.playing
    }

    /// Whether a long run is going on.
    pub fn is_running(&self) -> bool {
        self.running
    }

    /// Takes over what a request led to.
    pub fn done(&mut self, done: CommandResult) {
        self.running = done.running || self.running && !done.stopped;
        if done.searching {
            (self.searching, self.windows_at_search) = (true, self.windows.len());
        }
        self.playing &= !done.stopped;
        if done.decided {
            self.grid(ViewId::Waiting).clear_marks();
        }
        done.notes.into_iter().for_each(|note| self.notify(Severity::Info, note));
        if let Some((severity, text)) = done.message {
            self.notify(severity, text);
        }
        if let Some(view) = done.look_at {
            self.follow(view);
        }
        self.row_to_select = done.row.or(self.row_to_select);
        if done.closes_windows {
            self.windows.clear();
        }
        if let Some(content) = done.window {
            self.open_window(content);
        }
    }

    /// Takes over the result of a search: its window opens, unless another one was opened since.
    pub fn done_searching(&mut self, done: CommandResult) {
        self.searching = false;
        let reads = self.windows.len() > self.windows_at_search || self.prompt.is_some();
        match done.window {
            Some(WindowContent::Report { line, .. }) if reads => {
                self.notify(Severity::Info, format!("the answer is ready; :{line} shows it"));
            }
            Some(_) if reads => {
                self.notify(Severity::Info, "the search is over; X shows what it found");
            }
            _ => self.done(done),
        }
    }

    /// Whether a search is wanted that is under way.
    pub fn is_searching(&self) -> bool {
        self.searching
    }

    /// Playing has come to where nothing is left, and why.
    pub fn done_playing(&mut self, words: String) {
        self.playing = false;
        self.notify(Severity::Info, words);
    }

    /// How fast the clock runs while playing.
    pub fn speed(&self) -> Speed {
        self.speed
    }

    pub fn set_speed(&mut self, speed: Speed) {
        self.speed = speed;
        let how = if self.playing { "playing at" } else { "Space plays at" };
        self.notify(Severity::Info, format!("{how} {speed} of real time"));
    }

    pub fn play_at(&mut self, speed: Speed) {
        self.playing = true;
        self.set_speed(speed);
    }

    /// The session has begun: the queues come first, and several notices become one line.
    pub fn start(&mut self) {
        self.show(ViewId::Queues);
        // Nothing was shown before.
        (self.history, self.history_at) = (vec![ViewId::Queues], 0);
        let (severity, text) = match self.messages.count() {
            0 => (Severity::Info, "s steps into the first cycle, n runs it, c runs all".into()),
            1 => return,
            n => (Severity::Warning, format!("{n} notices about input and settings; M shows them")),
        };
        self.status = Some((severity, text));
    }

    /// Whether a long run is going on; drawn as the mode.
    pub fn set_running(&mut self, running: bool) {
        self.running = running;
    }

    /// Columns and lines of the terminal.
    pub fn size(&self) -> (u16, u16) {
        self.size
    }

    /// The view on screen.
    pub fn view(&self) -> ViewId {
        self.view
    }

    /// The theme in use.
    pub fn theme(&self) -> &Theme {
        &self.theme
    }
}
