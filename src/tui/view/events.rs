//! What moved between the queues and why, with the answers of the queueing hints, in order of time.

use std::fmt::Write as _;

use super::View;
use super::cycle::since_start;
use crate::api::Time;
use crate::engine::pod::NamespacedName;
use crate::tui::layout::Tier;
use crate::tui::lines::Line;
use crate::tui::model::Model;
use crate::tui::theme::Scope;
use crate::tui::widget::grid::{CellOut, Column, GridSource};

/// One line: a move, or a hint's answer.
#[derive(Clone, Copy)]
enum Happening {
    Move(usize),
    Hint(usize),
}

/// See the module.
pub struct EventsView<'a> {
    model: &'a Model,
    rows: Vec<Happening>,
}

impl<'a> EventsView<'a> {
    /// Moves and hints, merged by time; of one moment the hints come first, since they cause moves.
    pub fn new(model: &'a Model) -> EventsView<'a> {
        let hints = (0..model.hints.len()).map(Happening::Hint);
        let mut rows: Vec<Happening> =
            hints.chain((0..model.moves.len()).map(Happening::Move)).collect();
        rows.sort_by_key(|row| time(model, *row));
        EventsView { model, rows }
    }

    fn pod(&self, row: usize) -> Option<NamespacedName> {
        match self.rows.get(row)? {
            Happening::Move(i) => self.model.moves.get(*i).map(|m| m.pod),
            Happening::Hint(i) => self.model.hints.get(*i).map(|h| h.pod),
        }
    }

    fn write(&self, row: usize, column: usize, out: &mut CellOut) -> std::fmt::Result {
        let Some(happening) = self.rows.get(row).copied() else { return Ok(()) };
        if column == 1 {
            return write!(out, "{}", since_start(self.model, time(self.model, happening)));
        }
        match happening {
            Happening::Move(i) => match (column, self.model.moves.get(i)) {
                (2, Some(_)) => out.write_str("move"),
                (3, Some(m)) => write!(out, "{} → {}", m.from.as_str(), m.to.as_str()),
                (4, Some(m)) => out.write_str(&m.event),
                (_, Some(m)) => out.write_str(&m.plugin.unwrap_or_default()),
                _ => Ok(()),
            },
            Happening::Hint(i) => match (column, self.model.hints.get(i)) {
                (2, Some(_)) => out.write_str("hint"),
                (3, Some(h)) => write!(out, "{}: {}", h.plugin, h.answer),
                (4, Some(h)) => out.write_str(&h.event.label()),
                (_, Some(h)) => out.write_str(&h.plugin),
                _ => Ok(()),
            },
        }
    }
}

fn time(model: &Model, happening: Happening) -> Time {
    let at = match happening {
        Happening::Move(i) => model.moves.get(i).map(|m| m.time),
        Happening::Hint(i) => model.hints.get(i).map(|h| h.time),
    };
    at.unwrap_or_default()
}

impl GridSource for EventsView<'_> {
    fn rows(&self) -> usize {
        self.rows.len()
    }

    fn columns(&self) -> usize {
        6
    }

    fn column(&self, column: usize) -> Column {
        match column {
            0 => Column::name("pod", 18, 36),
            1 => Column::number("time", 8),
            2 => Column::text("what", 4),
            3 => Column::text("from → to, or answer", 26),
            4 => Column::text("event", 20),
            _ => Column::name("plugin", 12, 24).from_tier(Tier::Standard),
        }
    }

    fn cell(&self, row: usize, column: usize, out: &mut CellOut) {
        // Writing into a cell cannot fail.
        let _ = match (column, self.pod(row)) {
            (0, Some(pod)) => write!(out, "{pod}"),
            _ => self.write(row, column, out),
        };
        if column == 2 && matches!(self.rows.get(row), Some(Happening::Hint(_))) {
            out.scope = Scope::TextDim;
        }
    }

    fn is_failure(&self, row: usize) -> bool {
        matches!(self.rows.get(row), Some(Happening::Move(_)))
    }
}

impl View for EventsView<'_> {
    fn title(&self) -> String {
        "Events: queue moves and hints".into()
    }

    fn empty(&self) -> String {
        "Nothing has moved yet.".into()
    }

    fn detail(&self, row: usize, _column: usize) -> Vec<Line> {
        let text = |column| {
            let mut out = CellOut::default();
            self.cell(row, column, &mut out);
            out.text
        };
        vec![
            Line::heading(format!("{} {}", text(0), text(3))),
            Line::field("time", text(1)),
            Line::field("event", text(4)),
            Line::field("plugin", text(5)),
        ]
    }
}
