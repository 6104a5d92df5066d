//! Marked rows: marking, jumping, and two nodes side by side.

use super::{App, Effect};
use crate::tui::action_error::ActionError;
use crate::tui::command::Command;
use crate::tui::model::Model;
use crate::tui::widget::status_line::Severity;

impl App {
    /// Marks the selected row, or takes its mark away.
    pub fn mark(&mut self, model: &Model) -> Result<Effect, ActionError> {
        if !self.windows.is_empty() {
            return Err("marks are for the rows of a view; Esc closes the window".into());
        }
        let source = self.source(model);
        let grid = self.grid(self.view);
        let Some(row) = grid.selected_row() else {
            return Err("there is no row to mark".into());
        };
        let marked = grid.toggle_mark(source.key(row));
        let count = grid.marks().len();
        let words = match (marked, count) {
            (true, 1) => "marked; ' and \" jump between marks, y copies what is marked".to_owned(),
            (true, n) => format!("marked, {n} in all"),
            (false, n) => format!("unmarked, {n} left"),
        };
        self.notify(Severity::Info, words);
        Ok(Effect::None)
    }

    /// To the next marked row shown, or the one before.
    pub fn jump_to_mark(&mut self, model: &Model, back: bool) -> Result<Effect, ActionError> {
        let source = self.source(model);
        let grid = self.grid(self.view);
        if grid.marks().is_empty() {
            return Err("no row is marked here; v marks the selected one".into());
        }
        if !grid.jump_to_mark(&*source, back) {
            return Err("no other marked row is shown; Esc drops the filter".into());
        }
        self.detail_scroll = 0;
        Ok(Effect::None)
    }

    /// Takes all marks of the view away.
    pub fn clear_marks(&mut self) -> Result<Effect, ActionError> {
        let count = self.grid(self.view).clear_marks();
        match count {
            0 => return Err("no row is marked here".into()),
            1 => self.notify(Severity::Info, "1 mark cleared"),
            n => self.notify(Severity::Info, format!("{n} marks cleared")),
        }
        Ok(Effect::None)
    }

    /// Marked rows of the view, in the order shown; the selected one if none is.
    pub fn chosen_rows(&self, model: &Model) -> Vec<usize> {
        let Some(grid) = self.grids.get(&self.view) else { return Vec::new() };
        let marked = grid.marked_rows(&*self.source(model));
        match marked.is_empty() {
            true => grid.selected_row().into_iter().collect(),
            false => marked,
        }
    }

    /// Opens the two marked nodes side by side, or the marked one and the selected.
    pub fn compare_nodes(&mut self, model: &Model) -> Result<Effect, ActionError> {
        let source = self.source(model);
        let selected = self.selected_row();
        let mut rows = match self.grids.get(&self.view) {
            Some(grid) => grid.marked_rows(&*source),
            None => Vec::new(),
        };
        if rows.len() == 1 {
            rows.extend(selected.filter(|row| *row != rows[0]));
        }
        let [a, b] = rows.as_slice() else {
            let words = match rows.len() {
                0 => "mark a node with v and select another one",
                1 => "select another node than the marked one, or mark it too",
                _ => "two nodes can be compared; V clears all marks",
            };
            return Err(words.into());
        };
        let (Some(a), Some(b)) = (source.node_of(*a, 0), source.node_of(*b, 0)) else {
            return Err("these rows are not nodes of the cycle".into());
        };
        Ok(Effect::Session(Command::CompareNodes(a, b)))
    }
}
