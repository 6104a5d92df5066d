//! The mouse, when it is switched on: wheel, rows, headers, views. Never required.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

use super::{App, Effect};
use crate::tui::model::Model;
use crate::tui::widget::grid::Hit;
use crate::tui::widget::status_line::Severity;
use crate::tui::widget::tabs;

/// Rows a turn of the wheel moves.
const WHEEL: isize = 3;

impl App {
    /// `on`, `off`, or the other of the two.
    pub fn switch_mouse(&mut self, argument: &str) -> Effect {
        let on = match argument {
            "on" => true,
            "off" => false,
            "" => !self.mouse_on,
            _ => return self.fail(format!("{argument:?} is neither on nor off")),
        };
        self.mouse_on = on;
        let words = if on { "mouse on; hold shift to select text" } else { "mouse off" };
        self.say(Severity::Info, words);
        Effect::Mouse(on)
    }

    /// A mouse event; says whether anything changed.
    pub fn mouse(&mut self, event: MouseEvent, model: &Model) -> bool {
        match event.kind {
            MouseEventKind::ScrollDown => self.move_rows(model, WHEEL),
            MouseEventKind::ScrollUp => self.move_rows(model, -WHEEL),
            MouseEventKind::Down(MouseButton::Left) => self.click(event.column, event.row, model),
            _ => return false,
        }
        self.sync(model);
        true
    }

    fn click(&mut self, x: u16, y: u16, model: &Model) {
        if let Some(popup) = self.popups.last_mut() {
            if let Some(Hit::Line(line, _)) = popup.grid.hit(x, y) {
                let step = line as isize - popup.grid.selected_line() as isize;
                self.move_in_popup(step);
            }
            return;
        }
        if y == 0 {
            let mode = self.mode(model).0;
            if let Some(view) = tabs::hit(x, self.size.0, self.view, mode) {
                self.show(view);
            }
            return;
        }
        let source = self.source(model);
        let grid = self.grid(self.view);
        match grid.hit(x, y) {
            Some(Hit::Header(column)) => {
                grid.column = column;
                grid.cycle_sort();
            }
            Some(Hit::Line(line, column)) => {
                grid.column = column.unwrap_or(grid.column);
                grid.select(&*source, line);
            }
            None => {}
        }
    }
}
