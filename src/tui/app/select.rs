//! Rows and columns: which grid has the keys, moving in it, following the debugger.

use super::App;
use crate::tui::model::Model;
use crate::tui::view::{RunTarget, ViewId};
use crate::tui::widget::grid::GridState;

impl App {
    /// The state of a view's grid.
    pub(in crate::tui) fn grid(&mut self, view: ViewId) -> &mut GridState {
        self.grids.entry(view).or_default()
    }

    /// Brings grids up to date with the data: rows, order, and the debugger's position.
    pub fn refresh(&mut self, model: &Model) {
        self.stamp_messages(model);
        let view = self.view;
        let source = self.source(model);
        // Lists mark where the debugger stands: what was selected to be looked at stays selected.
        let inspected = model.inspected.filter(|_| !view.lists_cycles());
        let place = (model.position, inspected);
        // In a run pods come and go: only its end is followed.
        let of_pods = matches!(view, ViewId::Queues | ViewId::Pods);
        let runs = self.running;
        let follows = !(runs && of_pods) && self.followed.insert(view, place) != Some(place);
        let revision = self.revision(model);
        let grid = self.grid(view);
        if runs {
            grid.hold();
        }
        grid.refresh(&*source, revision);
        if !runs {
            grid.release();
        }
        if let Some((row, column)) = follows.then(|| source.current()).flatten() {
            grid.select_key(&*source, source.key(row));
            grid.column = column.unwrap_or(grid.column);
            self.detail_scroll = 0;
            self.selected_in.remove(&view);
        }
        if let Some(key) = self.row_to_select.take() {
            self.grid(view).select_key(&*source, key);
        }
        self.measure_details(&*source, model);
        self.refresh_window();
    }

    /// Moves the selection by `lines`; `isize::MIN` and `MAX` are the ends.
    pub fn move_rows(&mut self, model: &Model, lines: isize) {
        if self.move_in_window(lines) {
            return;
        }
        if self.detail_focused {
            let moved = self.detail_scroll.saturating_add_signed(lines);
            self.detail_scroll = moved.min(self.detail_room);
            return;
        }
        let source = self.source(model);
        self.grid(self.view).move_by(&*source, lines);
        self.row_selected();
    }

    /// A person selected a row of the view on screen.
    pub(super) fn row_selected(&mut self) {
        self.selected_in.insert(self.view);
        self.detail_scroll = 0;
    }

    /// Whether a person chose the row of the view on screen: by a filter, or by selecting it since the
    /// debugger was moved.
    pub(super) fn has_selected_row(&self) -> bool {
        let filtered = self.grids.get(&self.view).is_some_and(|grid| !grid.filter.is_empty());
        filtered || self.selected_in.contains(&self.view)
    }

    /// The same; where there is nothing to move to, that is said.
    pub fn move_or_say(&mut self, model: &Model, lines: isize) {
        let place = |app: &mut App| (app.filtered_grid().selected_line(), app.detail_scroll);
        let before = place(self);
        self.move_rows(model, lines);
        if place(self) == before {
            let words = match (self.filtered_grid().shown(), lines < 0) {
                (0, _) => "there is no row",
                (_, true) => "this is the beginning",
                (_, false) => "this is the end",
            };
            self.hint(words);
        }
    }

    /// How many lines the details can be scrolled, as drawn last.
    pub(in crate::tui) fn set_detail_room(&mut self, lines: usize) {
        self.detail_room = lines;
    }

    /// Moves the choice of a column, to the left if `by` is negative.
    pub fn choose_column(&mut self, model: &Model, by: isize) {
        if !self.windows.is_empty() {
            return self.hint("this window has no columns to choose; Esc closes it");
        }
        let (source, tier) = (self.source(model), self.tier());
        let grid = self.grid(self.view);
        if grid.total() == 0 {
            return self.hint("there are no rows here");
        }
        let before = grid.column;
        grid.choose_column(&*source, by, tier);
        if grid.column == before {
            self.hint(if by < 0 { "this is the first column" } else { "this is the last column" });
        }
        self.detail_scroll = 0;
    }

    /// Gives the keys to the detail pane, or back to the grid.
    pub fn switch_pane(&mut self) {
        match self.windows.is_empty() {
            true => self.detail_focused = !self.detail_focused,
            false => self.hint("this window has one pane; Esc closes it"),
        }
    }

    /// Changes order or choice of rows of the grid on screen.
    pub fn change_grid(&mut self, change: impl FnOnce(&mut GridState)) {
        match self.windows.last().is_none_or(|window| window.has_order()) {
            true if self.filtered_grid().total() == 0 => self.hint("there are no rows here"),
            true => change(self.filtered_grid()),
            false => self.hint("the rows of this window keep their order; / filters them"),
        }
    }

    /// The selected column of the view.
    pub fn selected_column(&self) -> Option<usize> {
        Some(self.grids.get(&self.view)?.column)
    }

    /// The selected row of the view's data.
    pub fn selected_row(&self) -> Option<usize> {
        self.grids.get(&self.view)?.selected_row()
    }

    /// Where one can run to from the selected row.
    pub fn selected_target(&self, model: &Model) -> Option<RunTarget> {
        let grid = self.grids.get(&self.view)?;
        self.source(model).run_to(grid.selected_row()?, grid.column)
    }

    /// Rows in a screenful of the view, as drawn last.
    pub fn page_lines(&self) -> isize {
        let grid = self.grids.get(&self.view);
        grid.map_or(1, |grid| grid.height() as isize - 1).max(1)
    }
}
