//! From keys to actions: sequences of keys, the command line, and what the prompt is answered with.

use super::completion::Completion;
use super::keymap::{Keymap, Match};
use super::presets::{PRESETS, Preset};
use super::{Action, Argument, Kind, ViewSet, all, command_line, find};
use crate::tui::app::{App, Effect, HelpRow};
use crate::tui::key::{self, Key};
use crate::tui::model::Model;
use crate::tui::prompt::Purpose;
use crate::tui::view::ViewId;
use crate::tui::widget::hints::KeyHint;
use crate::tui::widget::status_line::Severity;

/// Command lines remembered.
const COMMANDS: usize = 200;

/// The keys, and what was typed of an unfinished sequence.
pub struct Input {
    keymap: Keymap,
    pending: Vec<Key>,
    commands: Vec<String>,
    completion: Completion,
}

impl Input {
    /// With these keys.
    pub fn new(keymap: Keymap) -> Input {
        Input {
            keymap,
            pending: Vec::new(),
            commands: Vec::new(),
            completion: Completion::default(),
        }
    }

    /// A key was pressed: changes the interface's state, and gives what else should happen.
    pub fn key(&mut self, app: &mut App, key: Key, model: &Model) -> Effect {
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

    fn bound_key(&mut self, app: &mut App, key: Key, model: &Model) -> Effect {
        self.pending.push(key);
        match self.keymap.find(&self.pending, app.view()) {
            Match::Pending(_) => Effect::None,
            Match::None => {
                let keys = std::mem::take(&mut self.pending);
                app.tell(self.unbound_text(&keys));
                Effect::None
            }
            Match::Action(action) => {
                self.pending.clear();
                self.invoke(app, action, model)
            }
        }
    }

    /// Keys that do nothing here: where they do something, if anywhere.
    fn unbound_text(&self, keys: &[Key]) -> String {
        let shown = key::show_sequence(keys);
        match self.keymap.elsewhere(keys) {
            Some(action) => format!("{shown}: {} works in: {}", action.name, action.views_text()),
            None => format!("nothing is bound to {shown}; ? lists the keys"),
        }
    }

    /// Invokes an action without an argument; one that needs an argument asks for it.
    fn invoke(&mut self, app: &mut App, action: &'static Action, model: &Model) -> Effect {
        app.keep_playing(match action.kind {
            Kind::Look | Kind::Pace => true,
            Kind::Move | Kind::Edit => false,
            Kind::Other => model.scheduling().is_some(),
        });
        match action.argument {
            Argument::Required(what) => {
                app.ask(Purpose::Argument { command: action.name, what }, "");
                Effect::None
            }
            _ => self.run(app, action, "", model),
        }
    }

    fn run(&mut self, app: &mut App, action: &Action, argument: &str, model: &Model) -> Effect {
        if matches!(action.kind, Kind::Move | Kind::Pace) {
            app.set_running(false);
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

    fn prompt_key(&mut self, app: &mut App, key: Key, model: &Model) -> Effect {
        let Some(prompt) = app.prompt_mut() else { return Effect::None };
        let purpose = prompt.purpose;
        let is_command = purpose == Purpose::Command;
        match key.to_string().as_str() {
            "Esc" | "Ctrl-c" => drop(app.close_prompt()),
            "Enter" => return self.answer(app, model),
            "Backspace" if prompt.text().is_empty() => drop(app.close_prompt()),
            "Tab" | "BackTab" if is_command => {
                let complete = |text: &str| command_line::completions(text, &self.completion);
                prompt.complete(complete, key.to_string() == "BackTab");
            }
            "Up" | "Down" if is_command => prompt.recall(&self.commands, key.to_string() == "Up"),
            // While filtering, rows can be chosen without leaving the prompt.
            "Up" | "Down" if purpose == Purpose::Filter => {
                app.move_rows(model, if key.to_string() == "Up" { -1 } else { 1 });
            }
            _ => app.edit_prompt(key),
        }
        Effect::None
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
            Purpose::Argument { command, .. } => match find(command) {
                Some(action) => self.run(app, action, text, model),
                None => Effect::None,
            },
        }
    }

    fn run_command(&mut self, app: &mut App, line: &str, model: &Model) -> Effect {
        if !line.is_empty() && self.commands.last().is_none_or(|last| last != line) {
            self.commands.push(line.to_owned());
            let excess = self.commands.len().saturating_sub(COMMANDS);
            self.commands.drain(..excess);
        }
        match command_line::parse(line, app.view()) {
            Ok(Some(invocation)) => self.run(app, invocation.action, &invocation.argument, model),
            Ok(None) => Effect::None,
            Err(problem) => app.fail(problem.to_string()),
        }
    }

    /// The suggested rest of the typed line.
    pub fn ghost(&self, app: &App) -> String {
        let prompt = app.prompt().filter(|p| p.purpose == Purpose::Command && !p.text().is_empty());
        let Some(prompt) = prompt else { return String::new() };
        let candidates = command_line::completions(prompt.text(), &self.completion);
        let rest = candidates.first().and_then(|c| c.strip_prefix(prompt.text()));
        rest.unwrap_or_default().to_owned()
    }

    /// The hints of the last line, and help, which always fits.
    pub fn hints(&self, view: ViewId) -> (Vec<KeyHint>, KeyHint) {
        let valid = all().filter(|action| !action.hint.is_empty() && action.views.has(view));
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
        let Match::Pending(next) = self.keymap.find(&self.pending, view) else {
            return Vec::new();
        };
        let hint = |(key, action): &(Key, &Action)| KeyHint {
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
            app.ask(Purpose::Filter, "");
        }
    }

    /// Rows of the help as seen from `view`: what works only there comes first.
    fn help_rows(&self, view: ViewId) -> Vec<HelpRow> {
        let row = |action: &'static Action| {
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
        };
        let rank = |action: &&Action| match (action.views.has(view), action.views) {
            (true, ViewSet::ALL) => 1,
            (true, _) => 0,
            (false, _) => 2,
        };
        let mut actions: Vec<_> = all().collect();
        actions.sort_by_key(rank);
        actions.into_iter().map(row).collect()
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
            return app.say(Severity::Info, format!("keys: {list}"));
        }
        let Some(preset) = Preset::find(name) else {
            let text = format!("there are no keys {name:?}; there are {list}");
            return app.say(Severity::Error, text);
        };
        let (keymap, warnings) = self.keymap.switched(preset);
        self.keymap = keymap;
        app.say(Severity::Info, format!("keys: {name}, {}; ? lists them", preset.about));
        warnings.into_iter().for_each(|warning| app.say(Severity::Warning, warning));
    }
}
