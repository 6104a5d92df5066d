//! The prompt: opening it, its keys, and what happens when it is answered.

use super::{App, ArgumentValues, Effect};
use crate::tui::action::{self, Preset};
use crate::tui::action::{
    Action, Argument, Breakpoints, Execution, General, Invocation, Key, Spec, Waiting, spec,
};
use crate::tui::command::{self, Arguments};
use crate::tui::filter::Filter;
use crate::tui::model::Model;
use crate::tui::prompt::{Prompt, Purpose};
use crate::tui::widget::grid::GridState;

/// Command lines remembered.
const COMMANDS: usize = 200;

impl Arguments for ArgumentValues {
    fn values(&self, spec: &Spec, typed: &str) -> Vec<String> {
        let fitting = |values: &mut dyn Iterator<Item = String>| -> Vec<String> {
            values.filter(|value| value.starts_with(typed)).collect()
        };
        match spec.action {
            Action::General(General::Theme) => fitting(&mut self.themes.iter().cloned()),
            Action::General(General::Keys) => fitting(&mut Preset::names().map(str::to_owned)),
            Action::Execution(Execution::Cycle) => {
                fitting(&mut self.cycles.iter().rev().map(u64::to_string))
            }
            Action::Waiting(Waiting::Allow) => fitting(&mut self.plugins.iter().cloned()),
            Action::Breakpoints(Breakpoints::Break) => fitting(&mut self.places.iter().cloned()),
            Action::Breakpoints(Breakpoints::Watch) => {
                action::breakpoints::subjects(&self.nodes, &self.pods, typed)
            }
            _ => Vec::new(),
        }
    }
}

impl App {
    /// Opens the prompt.
    pub fn ask(&mut self, purpose: Purpose, text: &str) {
        self.prompt = Some(Prompt::new(purpose, text));
    }

    /// The open prompt.
    pub(in crate::tui) fn prompt(&self) -> Option<&Prompt> {
        self.prompt.as_ref()
    }

    /// `/`: asks, with the present filter to edit; `:filter TEXT` filters at once.
    pub fn filter(&mut self, model: &Model, argument: &str) {
        if argument.is_empty() {
            let present = self.filtered_grid().filter.text().to_owned();
            self.ask(Purpose::Filter, &present);
        } else {
            self.filter_by(argument);
            self.sync(model);
        }
    }

    /// The grid that a filter applies to: the open window's, else the view's.
    pub(super) fn filtered_grid(&mut self) -> &mut GridState {
        match self.popups.last_mut() {
            Some(popup) => &mut popup.grid,
            None => {
                let view = self.view;
                self.grids.entry(view).or_default()
            }
        }
    }

    /// Rows that the filter leaves, and rows there are.
    pub(in crate::tui) fn filter_count(&mut self) -> (usize, usize) {
        let grid = self.filtered_grid();
        (grid.shown(), grid.total())
    }

    /// Filters by `text`; a text that is not understood yet leaves the filter as it was.
    pub(super) fn filter_by(&mut self, text: &str) {
        if let Ok(filter) = Filter::parse(text) {
            self.filtered_grid().filter = filter;
        }
    }

    /// Text was pasted: it goes into the prompt, and nowhere without one.
    pub fn paste(&mut self, text: &str, model: &Model) {
        if let Some(prompt) = &mut self.prompt {
            prompt.paste(text);
            self.prompt_changed();
            self.sync(model);
        }
    }

    pub(super) fn prompt_key(&mut self, key: Key, model: &Model) -> Effect {
        let Some(prompt) = &mut self.prompt else { return Effect::None };
        let is_command = prompt.purpose == Purpose::Command;
        match key.to_string().as_str() {
            "Esc" | "Ctrl-c" => self.prompt = None,
            "Enter" => return self.answer(model),
            "Backspace" if prompt.text().is_empty() => self.prompt = None,
            "Tab" | "BackTab" if is_command => {
                let values = &self.argument_values;
                let complete = |text: &str| command::completions(text, values);
                prompt.complete(complete, key.to_string() == "BackTab");
            }
            "Up" | "Down" if is_command => prompt.recall(&self.commands, key.to_string() == "Up"),
            // While filtering, rows can be chosen without leaving the prompt.
            "Up" | "Down" if prompt.purpose == Purpose::Filter => {
                self.move_rows(model, if key.to_string() == "Up" { -1 } else { 1 });
            }
            _ if prompt.edit(key) => self.prompt_changed(),
            _ => {}
        }
        Effect::None
    }

    fn prompt_changed(&mut self) {
        let Some(prompt) = &self.prompt else { return };
        if prompt.purpose == Purpose::Filter {
            let text = prompt.text().to_owned();
            self.filter_by(&text);
        }
    }

    fn answer(&mut self, model: &Model) -> Effect {
        let Some(prompt) = self.prompt.take() else { return Effect::None };
        let text = prompt.text().trim().to_owned();
        match prompt.purpose {
            Purpose::Command => self.run_command(&text, model),
            Purpose::Filter => match Filter::parse(&text) {
                // In the palette, Enter runs what the filter found.
                Ok(_) if !self.popups.is_empty() => {
                    self.sync(model);
                    self.choose_in_popup(model).unwrap_or(Effect::None)
                }
                Ok(filter) if filter.has_labels() && !self.source(model).has_labels() => {
                    let words = "rows of this view have no labels; -l works on nodes and pods";
                    self.fail(words.into())
                }
                Ok(_) => Effect::None,
                Err(problem) => self.fail(problem.to_string()),
            },
            Purpose::Argument(action) if text.is_empty() => {
                let what = spec(action);
                self.fail(format!("{} needs {}", what.name, argument_name(what)))
            }
            Purpose::Argument(action) => self.apply(&Invocation { action, argument: text }, model),
        }
    }

    fn run_command(&mut self, line: &str, model: &Model) -> Effect {
        if !line.is_empty() && self.commands.last().is_none_or(|last| last != line) {
            self.commands.push(line.to_owned());
            let excess = self.commands.len().saturating_sub(COMMANDS);
            self.commands.drain(..excess);
        }
        match command::parse(line, self.view) {
            Ok(Some(invocation)) => self.apply(&invocation, model),
            Ok(None) => Effect::None,
            Err(problem) => self.fail(problem.to_string()),
        }
    }

    /// The suggested rest of the typed line.
    pub(in crate::tui) fn ghost(&self) -> String {
        let Some(prompt) = self.prompt.as_ref().filter(|p| !p.text().is_empty()) else {
            return String::new();
        };
        if prompt.purpose != Purpose::Command {
            return String::new();
        }
        let candidates = command::completions(prompt.text(), &self.argument_values);
        let rest = candidates.first().and_then(|c| c.strip_prefix(prompt.text()));
        rest.unwrap_or_default().to_owned()
    }

    pub(super) fn refresh_arguments(&mut self, model: &Model) {
        let types = self.prompt.as_ref().is_some_and(|p| p.purpose == Purpose::Command);
        let values = &mut self.argument_values;
        if !types || values.as_of == Some(model.revision) {
            return;
        }
        values.as_of = Some(model.revision);
        values.places = action::breakpoints::places(model);
        values.nodes = model.cycles.last().map(|cycle| cycle.nodes.clone()).unwrap_or_default();
        let known = values.cycles.last().zip(values.cycles.len().checked_sub(1));
        if known.is_some_and(|(last, at)| model.cycles.get(at).is_none_or(|c| c.cycle != *last)) {
            // Some were forgotten: another future.
            values.cycles.clear();
            values.pods.clear();
        }
        let new = model.cycles.get(values.cycles.len()..).unwrap_or_default();
        values.cycles.extend(new.iter().map(|cycle| cycle.cycle));
        values.pods.extend(new.iter().map(|cycle| cycle.pod));
        values.plugins.clear();
        for (plugin, _) in model.waiting.iter().flat_map(|w| &w.plugins) {
            if !values.plugins.iter().any(|p| p == plugin.as_str()) {
                values.plugins.push(plugin.to_string());
            }
        }
    }
}

/// The word for an action's argument.
pub(in crate::tui) fn argument_name(spec: &Spec) -> &'static str {
    match spec.argument {
        Argument::None => "",
        Argument::Optional(name) | Argument::Required(name) => name,
    }
}
