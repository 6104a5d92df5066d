//! Between views: showing one, the history, escaping outwards, opening a row.

use super::{App, Effect, FIRST_VIEW};
use crate::tui::action_error::ActionError;
use crate::tui::command::Command;
use crate::tui::model::{CyclePosition, Model};
use crate::tui::prompt::Purpose;
use crate::tui::view::{OnEnter, ViewId};
use crate::tui::widget::status_line::Severity;
use kubestep_debug::Position as Frame;

/// Views remembered in the history.
const HISTORY: usize = 100;

impl App {
    /// Shows a view and remembers it.
    pub fn show(&mut self, view: ViewId) {
        if view == self.view && self.windows.is_empty() {
            self.hint(format!("this is the {} view already", view.title()));
        }
        self.windows.clear();
        if view != self.view {
            self.history.truncate(self.history_at + 1);
            self.history.push(view);
            if self.history.len() > HISTORY {
                self.history.remove(0);
            }
            self.history_at = self.history.len() - 1;
            self.enter(view);
        }
    }

    /// Shows a view that was asked for by its name. Opened from a list of pods or cycles in which a row
    /// was selected, a view of one cycle shows that of the row; the debugger stays where it is.
    pub fn go_to(&mut self, view: ViewId, model: &Model) -> Effect {
        let list = self.view;
        let follows = view.is_of_cycle() && list.lists_cycles() && self.windows.is_empty();
        let row = self.selected_row().filter(|_| follows && self.has_selected_row());
        let column = self.grid(list).column;
        let cycle = row.map(|row| self.source(model).moment(row, column));
        self.show(view);
        let Some(cycle) = cycle else { return Effect::None };
        self.opened_from = Some(list);
        if cycle.is_none() {
            self.hint("the selected pod had no cycle yet: this is the debugger's position");
        }
        inspect(cycle, model)
    }

    /// Shows where the debugger went, without a trace in the history: stepping is not browsing.
    pub(super) fn follow(&mut self, view: ViewId) {
        if view != self.view && self.windows.is_empty() {
            self.history[self.history_at] = view;
            self.enter(view);
        }
    }

    fn enter(&mut self, view: ViewId) {
        self.view = view;
        if view.lists_cycles() {
            self.opened_from = None;
        }
        self.detail_scroll = 0;
        self.detail_focused = false;
        if view == ViewId::Messages {
            self.grid(view).go_to_end();
        }
    }

    /// The view before this one; again comes back.
    pub fn show_last(&mut self) {
        match self.history_at.checked_sub(1).and_then(|at| self.history.get(at)) {
            Some(last) => self.show(*last),
            None => self.hint("no view was shown before this one"),
        }
    }

    /// One back in the history.
    pub fn history_back(&mut self) {
        if self.history_at > 0 {
            self.history_at -= 1;
            self.enter(self.history[self.history_at]);
        } else {
            self.hint("this is the first view of the history");
        }
    }

    /// One forward in the history.
    pub fn history_forward(&mut self) {
        match self.history.get(self.history_at + 1) {
            Some(view) => {
                self.history_at += 1;
                self.enter(*view);
            }
            None => self.hint("this is the newest view of the history"),
        }
    }

    /// Closes what is open, from the inside out; at last the view that encloses this one.
    pub fn escape(&mut self, model: &Model) -> Effect {
        if self.running || self.playing {
            (self.running, self.playing) = (false, false);
            self.notify(Severity::Info, "stopped");
        } else if !self.filtered_grid().filter.is_empty() {
            self.filter_by("");
        } else if !self.windows.is_empty() {
            self.windows.pop();
        } else if self.detail_focused {
            self.detail_focused = false;
        } else if self.searching {
            self.searching = false;
            self.notify(Severity::Info, "the search ends in a moment");
        } else if model.inspected.is_some() {
            if let Some(from) = self.opened_from.take().filter(|from| *from != self.view) {
                self.show(from);
            }
            return Effect::Session(Command::Inspect(None));
        } else if let Some(outer) = self.came_from().or_else(|| enclosing(self.view, model)) {
            self.show(outer);
        } else {
            self.hint("this is the outermost view; q leaves");
        }
        Effect::None
    }

    /// The list from which this view of a cycle was opened; of the view of reasons, the view before
    /// it.
    fn came_from(&mut self) -> Option<ViewId> {
        if self.view.is_of_cycle() {
            return self.opened_from.take();
        }
        let last = self.history.get(self.history_at.checked_sub(1)?).copied();
        last.filter(|last| self.view == ViewId::Why && *last != ViewId::Why)
    }

    /// Goes into the selected row.
    pub fn open(&mut self, model: &Model) -> Result<Effect, ActionError> {
        if let Some(effect) = self.choose_in_window() {
            return Ok(effect);
        }
        let column = self.grid(self.view).column;
        let source = self.source(model);
        let leads = match self.selected_row() {
            Some(row) => source.open(row, column),
            None => source.open_empty().ok_or("there is no row to open")?,
        };
        drop(source);
        Ok(match leads {
            OnEnter::Describe => return self.describe(model),
            OnEnter::View(next) => {
                self.show(next);
                Effect::None
            }
            OnEnter::Prompt(command) => {
                self.ask(Purpose::Command, &command);
                Effect::None
            }
            OnEnter::Fold(key) => {
                self.shape(self.view).toggle(key);
                Effect::None
            }
            OnEnter::Run(command) => {
                if matches!(command, Command::WhyView(_) | Command::WhyCandidate(..)) {
                    self.show(ViewId::Why);
                }
                Effect::Session(command)
            }
            OnEnter::Inspect(position, next) => {
                let from = self.view;
                self.show(next);
                if model.inspected.is_none() || from.lists_cycles() {
                    self.opened_from = Some(from);
                }
                inspect(Some(position), model)
            }
        })
    }
}

/// Inspects a position; the cycle in which the debugger stands needs no inspection.
fn inspect(position: Option<CyclePosition>, model: &Model) -> Effect {
    let is_own = |position: &CyclePosition| {
        let of_cycle = position.frame == Frame::START;
        let is_same =
            |own: CyclePosition| own == *position || of_cycle && own.cycle == position.cycle;
        model.position.is_some_and(is_same)
    };
    Effect::Session(Command::Inspect(position.filter(|position| !is_own(position))))
}

/// The view that encloses another. Before the first cycle that is the view on the first screen: the
/// timeline is empty then.
fn enclosing(view: ViewId, model: &Model) -> Option<ViewId> {
    let outer = view.spec().enclosing?;
    match outer {
        ViewId::Timeline if model.cycles.is_empty() => {
            Some(FIRST_VIEW).filter(|first| *first != view)
        }
        _ => Some(outer),
    }
}
