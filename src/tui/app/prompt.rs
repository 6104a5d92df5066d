//! The prompt: opening it, editing it, and the filter that is typed into it.

use super::{App, Effect};
use crate::tui::action_error::ActionError;
use crate::tui::filter::RowFilter;
use crate::tui::key::KeyPress;
use crate::tui::model::Model;
use crate::tui::prompt::{Prompt, Purpose};
use crate::tui::widget::grid::GridState;

impl App {
    pub fn ask(&mut self, purpose: Purpose, text: &str) {
        self.prompt = Some(Prompt::new(purpose, text));
    }

    pub fn prompt(&self) -> Option<&Prompt> {
        self.prompt.as_ref()
    }

    /// Whether something is typed that is completed: a command, or an argument.
    pub fn completes(&self) -> bool {
        self.prompt.as_ref().is_some_and(|prompt| prompt.purpose != Purpose::Filter)
    }

    /// The open prompt, to change it.
    pub fn prompt_mut(&mut self) -> Option<&mut Prompt> {
        self.prompt.as_mut()
    }

    /// Closes the prompt, and the palette with its own.
    pub fn cancel_prompt(&mut self) {
        let closed = self.close_prompt();
        let of_rows = closed.is_some_and(|prompt| prompt.purpose == Purpose::Filter);
        if of_rows && self.windows.last().is_some_and(|window| window.is_palette) {
            self.windows.pop();
        }
    }

    /// Closes the prompt and returns it, if one was open.
    pub fn close_prompt(&mut self) -> Option<Prompt> {
        self.prompt.take()
    }

    /// `/`: asks, with the present filter to edit; `:filter TEXT` filters at once.
    pub fn filter(&mut self, argument: &str) {
        if argument.is_empty() {
            let present = self.filtered_grid().filter.text().to_owned();
            self.ask(Purpose::Filter, &present);
        } else {
            self.filter_by(argument);
        }
    }

    /// The grid that a filter applies to: the open window's, else the view's.
    pub(super) fn filtered_grid(&mut self) -> &mut GridState {
        match self.windows.last_mut() {
            Some(window) => &mut window.grid,
            None => self.grids.entry(self.view).or_default(),
        }
    }

    /// Rows that the filter leaves, and all rows.
    pub(in crate::tui) fn filter_count(&mut self) -> (usize, usize) {
        let grid = self.filtered_grid();
        (grid.shown(), grid.total())
    }

    /// Filters by `text`; a text that is not understood yet leaves the filter as it was.
    pub(super) fn filter_by(&mut self, text: &str) {
        if let Ok(filter) = RowFilter::parse(text) {
            self.filtered_grid().filter = filter;
        }
    }

    /// Text was pasted: it goes into the prompt, and nowhere without one.
    pub fn paste(&mut self, text: &str) {
        if let Some(prompt) = &mut self.prompt {
            prompt.paste(text);
            self.prompt_changed();
        }
    }

    /// Edits the prompt's text as a readline would.
    pub fn edit_prompt(&mut self, key: KeyPress) {
        if self.prompt.as_mut().is_some_and(|prompt| prompt.edit(key)) {
            self.prompt_changed();
        }
    }

    fn prompt_changed(&mut self) {
        let Some(prompt) = &self.prompt else { return };
        if prompt.purpose == Purpose::Filter {
            let text = prompt.text().to_owned();
            self.filter_by(&text);
        }
    }

    /// The filter's prompt was closed with this text. In the palette that runs what the filter found.
    pub fn answer_filter(&mut self, text: &str, model: &Model) -> Result<Effect, ActionError> {
        let filter = RowFilter::parse(text).map_err(|problem| problem.to_string())?;
        if !self.windows.is_empty() {
            return Ok(self.choose_in_window().unwrap_or(Effect::None));
        }
        match filter.has_labels() && !self.source(model).has_labels() {
            true => Err("rows of this view have no labels; -l works on nodes and pods".into()),
            false => Ok(Effect::None),
        }
    }
}
