//! What the interface remembers, and the one place where it changes.
//!
//! `App` holds nothing of the session: views draw a `Model`, and whatever should happen to the session
//! leaves `update` as an [`Effect`] for the run loop.

mod ask;
mod chip;
mod look;
mod marks;
#[cfg(test)]
mod marks_tests;
mod messages;
mod mouse;
mod popup;
#[cfg(test)]
mod random_tests;
mod select;
mod shape;
#[cfg(test)]
mod silent_tests;
#[cfg(test)]
mod tests;
mod travel;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::action::{self, Action, Invocation, Key, Keymap, keymap::Match};
use super::color::Depth;
use super::driver::{Done, Open};
use super::glyph::Charset;
use super::model::{Model, Position};
use super::prompt::Prompt;
use super::speed::Speed;
use super::theme::{Library, Theme, ThemeError};
use super::view::{Shape, ViewId};
use super::widget::grid::GridState;
use super::widget::status_line::Severity;
use kubestep_api::intern::Symbol;
use kubestep_debug::decision::Decision;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::NodeNames;

pub(in crate::tui) use ask::argument_name;
pub use messages::{Message, Messages};
pub use popup::Popup;
pub(in crate::tui) use popup::decision_lines;

/// What should happen outside the interface's own state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    None,
    /// Something with the session.
    Session(Request),
    /// Draw every cell again.
    Clear,
    /// Back to the shell for now.
    Suspend,
    /// Text for the terminal's clipboard.
    Copy(String),
    /// What is on the screen, into a file.
    Save(String),
    /// Mouse events, or none.
    Mouse(bool),
    /// Leave with this exit code.
    Quit(i32),
}

/// What the session is asked to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// To the next event at any depth, `count` times.
    Step {
        /// How often.
        count: u32,
        /// Backward.
        back: bool,
    },
    /// To the next event at this depth.
    Next {
        /// How often.
        count: u32,
        /// Backward.
        back: bool,
    },
    /// To the end (or beginning) of what encloses the position.
    Finish {
        /// How often.
        count: u32,
        /// To the beginning.
        back: bool,
    },
    /// To the next cycle's first event.
    Cycles {
        /// How often.
        count: u32,
        /// Backward.
        back: bool,
    },
    /// Until nothing is left to schedule, or back to the beginning.
    Continue {
        /// Backward.
        back: bool,
    },
    /// To a moment of the recording.
    GoTo(Position),
    /// Shows a cycle and a frame of it; the debugger stays where it is. Nothing: its own again.
    Inspect(Option<Position>),
    /// To a cycle by its number.
    GoToCycle(u64),
    /// To a moment, in microseconds of virtual time since the start.
    Moment(i64),
    /// To the next cycle of a pod.
    NextOf(NamespacedName),
    /// To the next or previous cycle of the pod of this one.
    Attempt {
        /// The one before.
        back: bool,
    },
    /// Stops a long way into the past.
    GiveUp,
    /// Forgets what came after the position.
    ContinueHere,
    /// Stops following the live cluster, or goes on.
    Freeze,
    /// Lets a real scheduler decide by itself from now on.
    LetRun,
    /// Dumps what the scheduler believes, and compares it with the server's objects.
    Dump,
    /// Lets virtual time pass: microseconds, or up to the next timer.
    Advance(Option<i64>),
    /// Decides about waiting pods.
    Decide(Decision, Vec<NamespacedName>),
    /// Holds pods at Permit, or no more: the words of an edit.
    Hold(String),
    /// Something with breakpoints and watches.
    Breakpoints(BreakRequest),
    /// Something with edits or branches.
    WhatIf(action::whatif::Wish),
    /// Why a pod is where it is.
    Why(NamespacedName),
    /// The smallest changes that would make it fit.
    Fixes(NamespacedName),
    /// What a cycle found of a node, with causes and formulas.
    Node(u64, Symbol),
    /// Why a pod is where it is, as a view.
    Outline(NamespacedName),
    /// Folds a line of a view, or unfolds it.
    Fold(ViewId, u64),
}

/// What the breakpoints are asked to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BreakRequest {
    /// A breakpoint is set.
    Break(String),
    /// The breakpoint at a place is removed; if there is none it is set.
    Toggle(String),
    /// A watch is set.
    Watch(String),
    /// One is written anew.
    Edit(u32, String),
    /// One is removed.
    Remove(u32),
    /// One is switched on or off; without a word it is the other way round after.
    Switch(u32, Option<bool>),
    /// All are removed.
    Clear,
    /// All are written to a file.
    Save(String),
    /// Those of a file are added.
    Load(String),
}

/// How the interface should look, decided before it starts.
#[derive(Clone, Debug)]
pub struct Appearance {
    /// Where themes are.
    pub library: Library,
    /// The theme's name.
    pub theme: String,
    /// Colours of the terminal.
    pub depth: Depth,
    /// Glyphs.
    pub charset: Charset,
}

/// The debugger's position, and the cycle and frame that are inspected.
type Followed = (Option<Position>, Option<(u64, kubestep_debug::Position)>);

/// The interface's state.
pub struct App {
    view: ViewId,
    history: Vec<ViewId>,
    history_at: usize,
    grids: BTreeMap<ViewId, GridState>,
    shapes: BTreeMap<ViewId, Shape>,
    /// Position each view's selection has followed to, and what was inspected.
    followed: BTreeMap<ViewId, Followed>,
    /// The view from which a cycle was inspected.
    inspected_from: Option<ViewId>,
    detail_scroll: usize,
    /// How far the details can be scrolled.
    detail_room: usize,
    detail_focused: bool,
    prompt: Option<Prompt>,
    popups: Vec<Popup>,
    pending: Vec<Key>,
    keymap: Keymap,
    appearance: Appearance,
    theme: Theme,
    wide: bool,
    breadcrumbs: bool,
    mouse_on: bool,
    playing: bool,
    speed: Speed,
    running: bool,
    searching: bool,
    size: (u16, u16),
    status: Option<(Severity, String)>,
    messages: Messages,
    commands: Vec<String>,
    last_move: Option<Request>,
    argument_values: ArgumentValues,
}

/// What arguments complete to, refreshed with the model while a command is typed.
#[derive(Clone, Debug, Default)]
struct ArgumentValues {
    themes: Vec<String>,
    /// Numbers of the cycles, and the pods that they were of.
    cycles: Vec<u64>,
    pods: BTreeSet<NamespacedName>,
    nodes: Arc<NodeNames>,
    plugins: Vec<String>,
    places: Vec<String>,
    /// The model's revision that they are of.
    as_of: Option<u64>,
}

impl App {
    /// The state at the start; warnings about the theme become messages.
    pub fn new(appearance: Appearance, keymap: Keymap) -> Result<App, ThemeError> {
        let (theme, warnings) =
            Theme::load(&appearance.library, &appearance.theme, appearance.depth)?;
        let themes = appearance.library.names();
        let mut app = App {
            view: ViewId::default(),
            history: vec![ViewId::default()],
            history_at: 0,
            grids: BTreeMap::new(),
            shapes: BTreeMap::new(),
            followed: BTreeMap::new(),
            inspected_from: None,
            detail_scroll: 0,
            detail_room: 0,
            detail_focused: false,
            prompt: None,
            popups: Vec::new(),
            pending: Vec::new(),
            keymap,
            appearance,
            theme,
            wide: false,
            breadcrumbs: true,
            mouse_on: false,
            playing: false,
            speed: Speed::default(),
            running: false,
            searching: false,
            size: (80, 24),
            status: None,
            messages: Messages::default(),
            commands: Vec::new(),
            last_move: None,
            argument_values: ArgumentValues { themes, ..ArgumentValues::default() },
        };
        warnings.into_iter().for_each(|warning| app.say(Severity::Warning, warning));
        Ok(app)
    }

    /// A key was pressed.
    pub fn key(&mut self, key: Key, model: &Model) -> Effect {
        self.status = None;
        let effect = match self.prompt.is_some() {
            true => self.prompt_key(key, model),
            false => self.bound_key(key, model),
        };
        self.sync(model);
        effect
    }

    fn bound_key(&mut self, key: Key, model: &Model) -> Effect {
        self.pending.push(key);
        match self.keymap.find(&self.pending, self.view) {
            Match::Pending(_) => Effect::None,
            Match::None => {
                let keys = std::mem::take(&mut self.pending);
                self.say_unbound(&keys);
                Effect::None
            }
            Match::Action(action) => {
                self.pending.clear();
                self.invoke_by_key(action, model)
            }
        }
    }

    /// Keys that mean nothing here: where they do, if anywhere.
    fn say_unbound(&mut self, keys: &[Key]) {
        let shown = action::key::show_sequence(keys);
        let text = match self.keymap.elsewhere(keys).map(action::spec) {
            Some(spec) => {
                let views = super::command::views_of(spec);
                format!("{shown}: {} works in: {views}", spec.name)
            }
            None => format!("nothing is bound to {shown}; ? lists the keys"),
        };
        self.tell(text);
    }

    /// A key has no argument; an action that needs one asks for it.
    fn invoke_by_key(&mut self, action: Action, model: &Model) -> Effect {
        // Playing goes on until another key than those that only look around.
        let looks = matches!(action, Action::Navigation(_) | Action::Views(_));
        let plays = matches!(action, Action::Execution(a) if a.keeps_playing());
        // What a real scheduler does by itself only a move of the debugger ends.
        let moves = matches!(action, Action::Execution(_) | Action::WhatIf(_));
        self.playing &= looks || plays || model.scheduling().is_some() && !moves;
        match action::spec(action).argument {
            action::Argument::Required(_) => {
                self.ask(super::prompt::Purpose::Argument(action), "");
                Effect::None
            }
            _ => self.apply(&Invocation::from(action), model),
        }
    }

    /// Does what was invoked; the one writer of this state besides the prompt.
    pub fn update(&mut self, invocation: &Invocation, model: &Model) -> Effect {
        let effect = self.apply(invocation, model);
        self.sync(model);
        effect
    }

    fn apply(&mut self, invocation: &Invocation, model: &Model) -> Effect {
        let argument = invocation.argument.as_str();
        match invocation.action {
            Action::General(a) => action::general::apply(a, self, model, argument),
            Action::Navigation(a) => action::navigation::apply(a, self, model),
            Action::Views(a) => action::views::apply(a, self),
            Action::Execution(a) => {
                self.running = false;
                action::execution::apply(a, self, model, argument)
            }
            Action::Inspect(a) => action::inspect::apply(a, self, model),
            Action::Waiting(a) => action::waiting::apply(a, self, model, argument),
            Action::Live(a) => action::live::apply(a, self, model),
            Action::Breakpoints(a) => action::breakpoints::apply(a, self, model, argument),
            Action::Shapes(a) => action::shapes::apply(a, self, argument),
            Action::Marks(a) => action::marks::apply(a, self, model),
            Action::WhatIf(a) => action::whatif::apply(a, self, model, argument),
        }
    }

    /// Closes the top window, or leaves.
    pub fn quit(&mut self) -> Effect {
        match self.popups.pop() {
            Some(_) => Effect::None,
            None => Effect::Quit(0),
        }
    }

    /// The terminal has this size now.
    pub fn resize(&mut self, width: u16, height: u16) {
        self.size = (width, height);
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
    pub fn done(&mut self, done: Done) {
        self.running = done.running || self.running && !done.stopped;
        self.searching |= done.searching;
        self.playing &= !done.stopped;
        if done.decided {
            self.grid(ViewId::Waiting).clear_marks();
        }
        done.notes.into_iter().for_each(|note| self.say(Severity::Info, note));
        if let Some((severity, text)) = done.message {
            self.say(severity, text);
        }
        if let Some(view) = done.look_at {
            self.follow(view);
        }
        if let Some((title, lines)) = done.window {
            self.open_text(&title, &lines);
        }
        if let Some(open) = done.open {
            self.open_window(open);
        }
    }

    /// Takes over what a search came to: its window opens, unless somebody reads another one.
    pub fn done_searching(&mut self, done: Done) {
        self.searching = false;
        let reads = !self.popups.is_empty() || self.prompt.is_some();
        match done.open {
            Some(Open::Lines(..)) if reads => {
                self.say(Severity::Info, "the comparison is over; D shows it");
            }
            Some(_) if reads => {
                self.say(Severity::Info, "the search is over; X shows what it found");
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
        self.say(Severity::Info, words);
    }

    /// How fast the clock runs while playing.
    pub fn speed(&self) -> Speed {
        self.speed
    }

    /// Changes it.
    pub fn set_speed(&mut self, speed: Speed) {
        self.speed = speed;
        let how = if self.playing { "playing at" } else { "space plays at" };
        self.say(Severity::Info, format!("{how} {speed} of real time"));
    }

    /// Begins to play.
    pub fn play_at(&mut self, speed: Speed) {
        self.playing = true;
        self.set_speed(speed);
    }

    /// The session has begun: the queues come first, and several notices become one line.
    pub fn start(&mut self) {
        self.show(ViewId::Queues);
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

    /// The keys typed of an unfinished sequence.
    pub fn pending_keys(&self) -> &[Key] {
        &self.pending
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
