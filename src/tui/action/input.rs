//! From keys to actions: sequences of keys, the command line, and what the prompt is answered with.

use super::completion::{CANDIDATES, Completion};
use super::keymap::{KeyMatch, Keymap};
use super::presets::{PRESETS, Preset};
use super::{Action, ActionKind, Argument, COUNT, GROUPS, ViewSet, all, command_line, find};
use crate::tui::app::{App, Effect, HelpRow};
use crate::tui::key::{self, KeyPress};
use crate::tui::model::{Model, NeededNames};
use crate::tui::prompt::{Prompt, Purpose};
use crate::tui::view::ViewId;
use crate::tui::widget::hints::KeyHint;
use crate::tui::widget::status_line::Severity;
use kubestep_api::words::count;

/// The most command lines that are remembered.
const COMMANDS: usize = 200;

/// Completions listed at once: a third of the screen.
fn listed(app: &App) -> usize {
    usize::from(app.size().1 / 3).clamp(4, 16)
}

/// The highest count before a key, so that no typo runs for hours.
const MOST: u32 = 99_999;

/// Keys while something is typed, and while a window is open, which names its own on its frame.
const COMMAND_KEYS: &[(&str, &str)] =
    &[("Enter", "run"), ("Tab", "complete"), ("Up", "earlier"), ("Esc", "cancel")];
const FILTER_KEYS: &[(&str, &str)] = &[("Enter", "keep"), ("Esc", "cancel")];
const WINDOW_KEYS: &[(&str, &str)] = &[("Esc", "close the window")];

fn hint_of((key, text): &(&str, &str)) -> KeyHint {
    KeyHint { key: (*key).to_owned(), text: (*text).to_owned() }
}

/// Whether the clock goes on playing after an action's key.
fn keeps_playing(action: &Action, model: &Model) -> bool {
    match action.kind {
        ActionKind::Look | ActionKind::Pace => true,
        ActionKind::Move | ActionKind::Edit => false,
        ActionKind::Other => model.scheduling().is_some(),
    }
}

/// What is completed, as a command line without the colon, with the number of its first bytes that
/// are not in the prompt; `None` for a filter.
fn command_text(prompt: &Prompt) -> Option<(String, usize)> {
    let (typed, _) = prompt.completable();
    match prompt.purpose {
        Purpose::Command => Some((typed.to_owned(), 0)),
        Purpose::Argument { command, .. } => {
            Some((format!("{command} {typed}"), command.len() + 1))
        }
        Purpose::Filter => None,
    }
}

/// The completions of what is typed, for the list above the prompt.
#[derive(Clone, Debug, Default)]
pub struct Suggestions {
    /// The suggested rest of the line.
    pub ghost: String,
    /// Lines with what each does.
    pub lines: Vec<(String, String)>,
    /// Index of the line that Tab has chosen.
    pub chosen: Option<usize>,
    /// How many more lines there are, in words; empty if there are none.
    pub more: String,
}

/// The keys, and what was typed of an unfinished sequence.
pub struct KeyInput {
    keymap: Keymap,
    pending: Vec<KeyPress>,
    /// A count that was typed before a key.
    count: Option<u32>,
    commands: Vec<String>,
    completion: Completion,
}

impl KeyInput {
    /// No key typed yet, and no history of commands.
    pub fn new(keymap: Keymap) -> KeyInput {
        KeyInput {
            keymap,
            pending: Vec::new(),
            count: None,
            commands: Vec::new(),
            completion: Completion::default(),
        }
    }

    /// A key was pressed: changes the interface's state, and gives what else should happen.
    pub fn key(&mut self, app: &mut App, key: KeyPress, model: &Model) -> Effect {
        app.clear_status();
        match app.prompt().is_some() {
            true => self.prompt_key(app, key, model),
            false => self.bound_key(app, key, model),
        }
    }

    /// Brings the values that are completed up to date.
    pub fn refresh(&mut self, app: &App, model: &Model) {
        self.completion.refresh(app, model);
    }

    fn bound_key(&mut self, app: &mut App, key: KeyPress, model: &Model) -> Effect {
        if let Some(count) = self.counted(key, app.view()) {
            self.count = Some(count);
            app.hint(format!("{count} times: a key that moves or steps"));
            return Effect::None;
        }
        self.pending.push(key);
        match self.keymap.find(&self.pending, app.view()) {
            KeyMatch::Pending(_) => Effect::None,
            KeyMatch::None => {
                self.count = None;
                let keys = std::mem::take(&mut self.pending);
                app.hint(self.unbound_text(&keys));
                Effect::None
            }
            KeyMatch::Action(action) => {
                self.pending.clear();
                match self.count.take().filter(|_| action.argument == COUNT) {
                    Some(count) => {
                        app.keep_playing(keeps_playing(action, model));
                        self.run(app, action, &count.to_string(), model)
                    }
                    None => self.invoke(app, action, model),
                }
            }
        }
    }

    /// The count with another digit: Alt-5, or 5 where that key does nothing else.
    fn counted(&self, key: KeyPress, view: ViewId) -> Option<u32> {
        let (digit, plain) = key.digit().filter(|_| self.pending.is_empty())?;
        let is_free = !plain || self.keymap.find(&[key], view) == KeyMatch::None;
        let count = self.count.unwrap_or(0) * 10 + digit;
        (is_free && count > 0).then_some(count.min(MOST))
    }

    /// Keys that do nothing here: where they do something, if anywhere.
    fn unbound_text(&self, keys: &[KeyPress]) -> String {
        let shown = key::show_sequence(keys);
        let works = |action: &Action| format!("{} works in: {}", action.name, action.views_text());
        let found: Vec<String> = self.keymap.in_other_views(keys).map(works).collect();
        match found.is_empty() {
            false => format!("{shown}: {}", found.join("; ")),
            true => format!("nothing is bound to {shown}; ? lists the keys"),
        }
    }

    /// Invokes an action without an argument; one that needs an argument asks for it.
    fn invoke(&mut self, app: &mut App, action: &'static Action, model: &Model) -> Effect {
        app.keep_playing(keeps_playing(action, model));
        match action.argument {
            Argument::Required(what) => {
                app.ask(Purpose::Argument { command: action.name, what }, "");
                Effect::None
            }
            _ => self.run(app, action, "", model),
        }
    }

    fn run(&mut self, app: &mut App, action: &Action, argument: &str, model: &Model) -> Effect {
        if matches!(action.kind, ActionKind::Move | ActionKind::Pace) {
            app.set_running(false);
        }
        if action.kind == ActionKind::Move {
            // A window answers for the moment that is left.
            app.close_windows();
        }
        match action.run(app, model, argument) {
            Ok(effect) => self.settle(app, effect, model),
            Err(problem) => app.fail(problem),
        }
    }

    /// Does what concerns the keys and the table; gives the rest back.
    fn settle(&mut self, app: &mut App, effect: Effect, model: &Model) -> Effect {
        match effect {
            Effect::Invoke(name) => match find(name) {
                Some(action) => self.invoke(app, action, model),
                None => Effect::None,
            },
            Effect::Help { palette } => {
                self.open_help(app, palette);
                Effect::None
            }
            Effect::Keys(name) => {
                self.use_keys(app, &name);
                Effect::None
            }
            other => other,
        }
    }

    fn prompt_key(&mut self, app: &mut App, key: KeyPress, model: &Model) -> Effect {
        let Some(prompt) = app.prompt_mut() else { return Effect::None };
        let purpose = prompt.purpose;
        let command = command_text(prompt).map(|(_, before)| before);
        match key.to_string().as_str() {
            "Esc" | "Ctrl-c" => app.cancel_prompt(),
            "Enter" => return self.answer(app, model),
            "Backspace" if prompt.text().is_empty() => drop(app.close_prompt()),
            back @ ("Tab" | "BackTab") if command.is_some() => {
                self.complete(app, back == "BackTab")
            }
            "Right" if command.is_some() && prompt.is_at_end() => self.take_ghost(app),
            // While filtering, rows can be chosen without leaving the prompt.
            "Up" | "Down" if purpose == Purpose::Filter => {
                app.move_rows(model, if key.to_string() == "Up" { -1 } else { 1 });
            }
            "Up" | "Down" => prompt.recall(&self.recalled(purpose), key.to_string() == "Up"),
            _ => app.edit_prompt(key),
        }
        Effect::None
    }

    /// Completes the line: to its only completion, after which the next word can be typed, or to the
    /// next of several.
    fn complete(&self, app: &mut App, back: bool) {
        let typed = app.prompt().filter(|prompt| prompt.completing().is_none());
        let lines =
            typed.and_then(command_text).map(|(line, before)| self.completions(&line, before));
        let Some(prompt) = app.prompt_mut() else { return };
        match lines.as_deref() {
            Some([only]) => KeyInput::accept(prompt, only),
            _ => prompt.complete(|_| lines.unwrap_or_default(), back),
        }
    }

    /// Takes the suggested rest of the line.
    fn take_ghost(&self, app: &mut App) {
        let ghost = self.suggestions(app).ghost;
        let Some(prompt) = app.prompt_mut().filter(|_| !ghost.is_empty()) else { return };
        let line = format!("{}{ghost}", prompt.text());
        KeyInput::accept(prompt, &line);
    }

    /// Puts a completed line into the prompt, with a blank where another word can follow.
    fn accept(prompt: &mut Prompt, line: &str) {
        prompt.put(line);
        let goes_on = prompt.is_at_end()
            && command_text(prompt).is_some_and(|(line, _)| command_line::goes_on(&line));
        if goes_on {
            prompt.put(&format!("{line} "));
        }
    }

    fn answer(&mut self, app: &mut App, model: &Model) -> Effect {
        let Some(prompt) = app.close_prompt() else { return Effect::None };
        let text = prompt.text().trim();
        match prompt.purpose {
            Purpose::Command => self.run_command(app, text, model),
            Purpose::Filter => match app.answer_filter(text, model) {
                Ok(effect) => self.settle(app, effect, model),
                Err(problem) => app.fail(problem),
            },
            Purpose::Argument { command, what } if text.is_empty() => {
                app.fail(format!("{command} needs {what}"))
            }
            Purpose::Argument { command, .. } => {
                self.remember(format!("{command} {text}"));
                match find(command) {
                    Some(action) => self.run(app, action, text, model),
                    None => Effect::None,
                }
            }
        }
    }

    /// Keeps a line for recalling it, unless it is the last one.
    fn remember(&mut self, line: String) {
        if !line.is_empty() && self.commands.last() != Some(&line) {
            self.commands.push(line);
            let excess = self.commands.len().saturating_sub(COMMANDS);
            self.commands.drain(..excess);
        }
    }

    /// The lines that a prompt recalls: of an argument's, what followed its command.
    fn recalled(&self, purpose: Purpose) -> Vec<String> {
        let Purpose::Argument { command, .. } = purpose else { return self.commands.clone() };
        let argument =
            |line: &String| line.strip_prefix(command)?.strip_prefix(' ').map(str::to_owned);
        self.commands.iter().filter_map(argument).collect()
    }

    fn run_command(&mut self, app: &mut App, line: &str, model: &Model) -> Effect {
        self.remember(line.to_owned());
        self.run_line(app, line, model)
    }

    /// Does what a command line says.
    pub fn run_line(&mut self, app: &mut App, line: &str, model: &Model) -> Effect {
        match command_line::parse(line, app.view()) {
            Ok(Some(invocation)) => self.run(app, invocation.action, &invocation.argument, model),
            Ok(None) => Effect::None,
            Err(problem) => app.fail(problem.to_string()),
        }
    }

    /// The names that complete what is typed, if any do.
    pub fn needed_names(&self, app: &App) -> Option<NeededNames> {
        let (line, _) = app.prompt().and_then(command_text)?;
        command_line::needed_names(&line)
    }

    /// What a line can be completed to, without its first `before` bytes.
    fn completions(&self, line: &str, before: usize) -> Vec<String> {
        let lines = command_line::completions(line, &self.completion).into_iter();
        lines.filter_map(|line| line.get(before..).map(str::to_owned)).collect()
    }

    /// The completions of what is typed.
    pub fn suggestions(&self, app: &App) -> Suggestions {
        let Some(prompt) = app.prompt() else { return Suggestions::default() };
        let Some((line, before)) = command_text(prompt) else { return Suggestions::default() };
        let (lines, chosen) = match prompt.completing() {
            Some((lines, at)) => (lines.to_vec(), Some(at)),
            None => (self.completions(&line, before), None),
        };
        let (typed, _) = prompt.completable();
        let rest = lines.first().filter(|_| !typed.is_empty() && chosen.is_none());
        let ghost = rest.and_then(|first| first.strip_prefix(typed)).unwrap_or_default().to_owned();
        // A page of them, with the chosen one on it.
        let listed = listed(app);
        let first = chosen.map_or(0, |at| at / listed * listed);
        let more = match lines.len().saturating_sub(first + listed) {
            0 => String::new(),
            more if lines.len() >= CANDIDATES => format!("at least {more} more completions"),
            more => count(more, "more completion"),
        };
        let page = lines.into_iter().skip(first).take(listed);
        let about = |text: String| {
            let about = command_line::about(&format!("{}{text}", &line[..before]));
            (text, about)
        };
        Suggestions {
            ghost,
            lines: page.map(about).collect(),
            chosen: chosen.map(|at| at - first),
            more,
        }
    }

    /// The hints of the last line, and help, which always fits.
    pub fn hints(&self, app: &App, model: &Model) -> (Vec<KeyHint>, KeyHint) {
        let view = app.view();
        let keys_of_input = match app.prompt() {
            Some(_) if app.completes() => Some(COMMAND_KEYS),
            Some(_) => Some(FILTER_KEYS),
            None => app.has_window().then_some(WINDOW_KEYS),
        };
        if let Some((last, keys)) = keys_of_input.and_then(<[_]>::split_last) {
            return (keys.iter().map(hint_of).collect(), hint_of(last));
        }
        let valid = all().filter(|action| !action.hint.is_empty() && action.views.has(view));
        let valid = valid.filter(|action| match action.name {
            "why" => view.offers_why(),
            "fix" => view.offers_why() && model.has_pending(),
            _ => true,
        });
        // What works only here is least known, so it comes first.
        let (here, everywhere): (Vec<_>, Vec<_>) =
            valid.partition(|action| action.views != ViewSet::ALL);
        let hint = |action: &'static Action| {
            let key = self.keymap.keys_of(action).next()?;
            Some(KeyHint { key, text: action.hint.to_owned() })
        };
        let hints = here.into_iter().chain(everywhere).filter_map(hint).collect();
        let help = find("help").and_then(|help| self.keymap.keys_of(help).next());
        (hints, KeyHint { key: help.unwrap_or_else(|| ":help".into()), text: "help".into() })
    }

    /// After the beginning of a key sequence: the keys that could follow.
    pub fn continuations(&self, view: ViewId) -> Vec<KeyHint> {
        if self.pending.is_empty() {
            return Vec::new();
        }
        let KeyMatch::Pending(next) = self.keymap.find(&self.pending, view) else {
            return Vec::new();
        };
        let hint = |(key, action): &(KeyPress, &Action)| KeyHint {
            key: key.to_string(),
            text: action.help.to_owned(),
        };
        next.iter().map(hint).collect()
    }

    /// The keys typed so far of a sequence.
    pub fn pending_text(&self) -> String {
        key::show_sequence(&self.pending)
    }

    /// Opens the window of keys and commands.
    fn open_help(&self, app: &mut App, palette: bool) {
        if palette {
            app.close_windows();
        }
        let preset = match self.keymap.preset().name {
            "vi" => String::new(),
            other => format!(" ({other})"),
        };
        let title = format!("Keys and commands{preset}, {} first", app.view().title());
        app.open_help(&title, self.help_rows(app.view()));
        if palette {
            app.open_palette();
        }
    }

    /// Rows of the help as seen from `view`: what works only there comes first, then all groups.
    fn help_rows(&self, view: ViewId) -> Vec<HelpRow> {
        let own: Vec<&'static Action> =
            all().filter(|action| action.views.has(view) && action.views != ViewSet::ALL).collect();
        let title = format!("Only in {}", view.title());
        let mut rows = self.help_group(&title, &own, view);
        for group in GROUPS {
            let others = group.actions.iter().filter(|action| !own.contains(action));
            rows.extend(self.help_group(group.title, &others.collect::<Vec<_>>(), view));
        }
        rows
    }

    /// A heading and its actions, unless there are none.
    fn help_group(&self, title: &str, actions: &[&'static Action], view: ViewId) -> Vec<HelpRow> {
        let heading = (!actions.is_empty()).then(|| HelpRow::heading(title));
        let rows = actions.iter().map(|action| self.help_row(action, view));
        heading.into_iter().chain(rows).collect()
    }

    fn help_row(&self, action: &'static Action, view: ViewId) -> HelpRow {
        let own = if self.keymap.is_overridden(action) { " (your keys)" } else { "" };
        let (valid, views) = (action.views.has(view), action.views_text());
        let works = if valid { String::new() } else { format!(" [{views}]") };
        HelpRow {
            name: action.name,
            keys: self.keymap.keys_of(action).take(2).collect::<Vec<_>>().join(" "),
            usage: format!(":{}{}", action.name, action.argument.usage()),
            help: format!("{}{own}{works}", action.help),
            search: action.search,
            valid,
            views,
        }
    }

    /// Uses a preset of keys; without a name, lists the presets.
    fn use_keys(&mut self, app: &mut App, name: &str) {
        let words = |preset: &Preset| {
            let mark = if preset.name == self.keymap.preset().name { ", in use" } else { "" };
            format!("{} ({}{mark})", preset.name, preset.about)
        };
        let list: Vec<String> = PRESETS.iter().map(words).collect();
        let list = list.join("; ");
        if name.is_empty() {
            return app.notify(Severity::Info, format!("keys: {list}"));
        }
        let Some(preset) = Preset::find(name) else {
            let text = format!("there are no keys {name:?}; there are {list}");
            return app.notify(Severity::Error, text);
        };
        let (keymap, warnings) = self.keymap.switched(preset);
        self.keymap = keymap;
        app.notify(Severity::Info, format!("keys: {name}, {}; ? lists them", preset.about));
        warnings.into_iter().for_each(|warning| app.notify(Severity::Warning, warning));
    }
}
