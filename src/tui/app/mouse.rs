//! The mouse, when it is switched on: wheel, rows, headers, views. Never required.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

use super::{App, Effect};
use crate::tui::action_error::ActionError;
use crate::tui::command::Command;
use crate::tui::model::{CyclePosition, Model};
use crate::tui::view::{self, ViewId};
use crate::tui::widget::breadcrumbs;
use crate::tui::widget::grid::GridHit;
use crate::tui::widget::status_line::Severity;
use kubestep_config::ExtensionPoint;
use kubestep_debug::Position as Frame;

/// Rows a turn of the wheel moves.
const WHEEL: isize = 3;

impl App {
    /// `on`, `off`, or the other of the two.
    pub fn switch_mouse(&mut self, argument: &str) -> Result<Effect, ActionError> {
        let on = match argument {
            "on" => true,
            "off" => false,
            "" => !self.mouse_on,
            _ => return Err(format!("{argument:?} is neither on nor off").into()),
        };
        self.mouse_on = on;
        let words = if on { "mouse on; hold shift to select text" } else { "mouse off" };
        self.notify(Severity::Info, words);
        Ok(Effect::Mouse(on))
    }

    /// A mouse event; `None` if it changes nothing.
    pub fn mouse(&mut self, event: MouseEvent, model: &Model) -> Option<Effect> {
        let mut effect = Effect::None;
        match event.kind {
            MouseEventKind::ScrollDown => self.move_rows(model, WHEEL),
            MouseEventKind::ScrollUp => self.move_rows(model, -WHEEL),
            MouseEventKind::Down(MouseButton::Left) => {
                effect = self.click(event.column, event.row, model);
            }
            _ => return None,
        }
        Some(effect)
    }

    fn click(&mut self, x: u16, y: u16, model: &Model) -> Effect {
        if let Some(window) = self.windows.last_mut() {
            if let Some(GridHit::Line(line, _)) = window.grid.hit(x, y) {
                let step = line as isize - window.grid.selected_line() as isize;
                self.move_in_window(step);
            }
            return Effect::None;
        }
        if y == 0 {
            let mode = self.mode(model).0;
            if let Some(tab) = view::tabs(self.view).hit(x, self.size.0, &mode) {
                return self.go_to(view::tab_views(self.view)[tab], model);
            }
            return Effect::None;
        }
        if y == 1 && self.breadcrumbs {
            let crumb = breadcrumbs::hit(x, self.size.0, &model.crumbs(), &model.clock());
            return crumb.map_or(Effect::None, |crumb| self.go_to_crumb(crumb, model));
        }
        let source = self.source(model);
        let grid = self.grid(self.view);
        match grid.hit(x, y) {
            Some(GridHit::Header(column)) => {
                grid.column = column;
                grid.cycle_sort();
            }
            Some(GridHit::Line(line, column)) => {
                grid.column = column.unwrap_or(grid.column);
                grid.select(&*source, line);
                self.row_selected();
            }
            None => {}
        }
        Effect::None
    }

    /// Out to what a breadcrumb names: the cycle, the point or the plugin.
    fn go_to_crumb(&mut self, crumb: usize, model: &Model) -> Effect {
        let Some(position) = model.position else { return Effect::None };
        let frame = position.frame;
        let outer = match (crumb, frame.point) {
            (0, _) | (_, None) => Frame::START,
            (1, Some(point)) => Frame::new(point, None, None),
            (2, Some(point)) => Frame::new(point, frame.plugin, None),
            (_, Some(point)) => Frame::new(point, frame.plugin, frame.node),
        };
        self.show(match (crumb, frame.point) {
            (0 | 1, _) => ViewId::Cycle,
            (_, Some(ExtensionPoint::Filter)) => ViewId::Filter,
            (_, Some(ExtensionPoint::Score)) => ViewId::Scores,
            _ => ViewId::Cycle,
        });
        match outer == frame {
            true => Effect::None,
            false => Effect::Session(Command::GoTo(CyclePosition { frame: outer, ..position })),
        }
    }
}
