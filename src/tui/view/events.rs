//! What moved between the queues and why, what the queueing hints said, and the events for people, in
//! order of time.

use std::fmt::Write as _;

use super::shared::since_start;
use super::{View, shared};
use crate::tui::layout::WidthTier;
use crate::tui::lines::DetailLine;
use crate::tui::model::entry::{kind, what};
use crate::tui::model::{CyclePosition, Model};
use crate::tui::theme::Scope;
use crate::tui::widget::grid::{CellWriter, GridColumn, GridSource};
use kubestep_debug::Position as Frame;
use kubestep_debug::breakpoint::location;
use kubestep_debug::trace::{Entry, EntryId};

/// The rows of the events.
pub struct EventsView<'a>(pub &'a Model);

impl EventsView<'_> {
    fn at(&self, row: usize) -> Option<EntryId> {
        self.0.events.get(row).map(|(at, _)| EntryId(*at))
    }

    /// The number of rows that have happened at the debugger's position.
    fn past(&self) -> usize {
        let reached = self.0.entries_reached.filter(|_| self.0.inspected.is_none());
        let past = |reached| self.0.events.partition_point(|(at, _)| (*at as usize) < reached);
        reached.map_or(self.rows(), past)
    }

    /// The row of the debugger's position: the entry on which it stands; in the past, the last one that
    /// has happened.
    fn position(&self) -> Option<usize> {
        let Some(entry) = self.0.frame().and_then(|frame| frame.entry) else {
            let past = self.past();
            return (past < self.rows()).then(|| past.checked_sub(1)).flatten();
        };
        self.0.events.binary_search_by_key(&entry.0, |(at, _)| *at).ok()
    }

    fn widest_pod(&self) -> usize {
        shared::widest(self.0.events.iter().map(|(_, entry)| entry.pod()))
    }

    /// Columns of what a column shows; of very many rows, the usual ones.
    fn widest(&self, column: usize, title: &str, usual: usize) -> u16 {
        let text = |row| {
            let mut out = CellWriter::default();
            self.cell(row, column, &mut out);
            out.text
        };
        shared::widest_text(title, (0..self.rows()).map(text), usual)
    }

    fn entry(&self, row: usize) -> Option<&Entry> {
        self.0.events.get(row).map(|(_, entry)| entry.as_ref())
    }

    /// The text of a cell.
    fn write(&self, entry: &Entry, column: usize, out: &mut CellWriter) {
        // Writing into a cell cannot fail.
        let _ = match (column, entry) {
            (0, _) => write!(out, "{}", entry.pod()),
            (1, _) => write!(out, "{}", since_start(self.0, entry.time())),
            (2, _) => out.write_str(kind(entry)),
            (3, _) => out.write_str(&what(entry)),
            (4, _) => out.write_str(&cause(entry)),
            (_, Entry::Move(moved)) => out.write_str(&moved.plugin.unwrap_or_default()),
            (_, Entry::Hint(hint)) => out.write_str(&hint.plugin),
            _ => Ok(()),
        };
    }
}

/// Columns of the longest usual time, cause and plugin.
const TIME: usize = 8;
const CAUSE: usize = 26;
const PLUGIN: usize = 24;

/// The events, by their labels, that move a pod because something failed.
const FAILURES: [&str; 1] = ["ScheduleAttemptFailure"];

/// The decision or change that led to the event.
fn cause(entry: &Entry) -> String {
    match entry {
        Entry::Cycle(_) => String::new(),
        Entry::Move(moved) => moved.event.to_string(),
        Entry::Hint(hint) => hint.event.label(),
        Entry::Event(_, event) => event.action.to_owned(),
    }
}

impl GridSource for EventsView<'_> {
    fn rows(&self) -> usize {
        self.0.events.len()
    }

    fn columns(&self) -> usize {
        6
    }

    fn column(&self, column: usize) -> GridColumn {
        match column {
            0 => GridColumn::fitted("pod", 18, self.widest_pod()),
            1 => GridColumn::number("time", self.widest(column, "time", TIME)),
            2 => GridColumn::text("what", 5),
            3 => GridColumn::prose_in(self, column, "from → to, or answer", 20),
            4 => GridColumn::text("cause", self.widest(column, "cause", CAUSE)),
            // The details say it too, and the message needs the room.
            _ => GridColumn::text("plugin", self.widest(column, "plugin", PLUGIN))
                .shown_from(WidthTier::Wide),
        }
    }

    fn cell(&self, row: usize, column: usize, out: &mut CellWriter) {
        let Some(entry) = self.entry(row) else { return };
        let dim = matches!(entry, Entry::Hint(_));
        out.scope = match (row >= self.past(), dim) {
            (true, _) => Scope::Future,
            (false, true) => Scope::TextDim,
            (false, false) => Scope::Text,
        };
        self.write(entry, column, out);
    }

    /// Without the colour, which depends on what has happened.
    fn searched(&self, row: usize, column: usize, out: &mut CellWriter) {
        if let Some(entry) = self.entry(row) {
            self.write(entry, column, out);
        }
    }

    fn amount(&self, row: usize, column: usize) -> Option<i64> {
        self.entry(row).filter(|_| column == 1).map(|entry| entry.time().0)
    }

    fn is_current(&self, row: usize) -> bool {
        self.position() == Some(row)
    }

    fn has_break(&self, row: usize) -> bool {
        self.0.has_break(|| self.location(row, 0))
    }

    fn key(&self, row: usize) -> u64 {
        self.at(row).map_or(0, |id| u64::from(id.0))
    }

    /// Pods that were rejected or could not be bound, hints that failed, and warnings.
    fn is_failure(&self, row: usize) -> bool {
        match self.entry(row) {
            Some(Entry::Move(moved)) => FAILURES.contains(&moved.event.as_str()),
            Some(Entry::Hint(hint)) => hint.answer == "Error",
            Some(Entry::Event(_, event)) => event.kind == "Warning",
            Some(Entry::Cycle(_)) | None => false,
        }
    }
}

impl View for EventsView<'_> {
    fn location(&self, row: usize, _column: usize) -> Option<String> {
        match self.entry(row)? {
            Entry::Move(moved) => {
                Some(format!("pod:{} queue:{}", moved.pod, location::queue_name(moved.to)))
            }
            other => Some(format!("pod:{}", other.pod())),
        }
    }

    fn title(&self) -> String {
        "Events: queue moves and hints".into()
    }

    fn empty(&self) -> String {
        "Nothing has moved yet.".into()
    }

    fn dims_future(&self) -> bool {
        self.past() < self.rows()
    }

    fn detail(&self, row: usize, _column: usize) -> Vec<DetailLine> {
        let Some(entry) = self.entry(row) else { return Vec::new() };
        let mut lines = vec![
            DetailLine::heading(format!("{}: {}", entry.pod(), what(entry))),
            DetailLine::field("time", since_start(self.0, entry.time())),
            DetailLine::field("cause", cause(entry)),
        ];
        if let Entry::Move(moved) = entry {
            lines.extend(moved.plugin.map(|plugin| DetailLine::field("plugin", plugin)));
            let order = |by| format!("of the pods moved together: chosen by {by}");
            lines.extend(moved.order.map(|by| DetailLine::field("order", order(by))));
        }
        lines
    }

    /// The last that happened where the debugger stands at the end.
    fn current(&self) -> Option<(usize, Option<usize>)> {
        let row = self.position().or_else(|| self.rows().checked_sub(1))?;
        Some((row, None))
    }

    fn moment(&self, row: usize, _column: usize) -> Option<CyclePosition> {
        let frame = Frame::of_entry(self.at(row)?);
        Some(CyclePosition { cycle: self.0.position.map_or(0, |p| p.cycle), frame })
    }
}
