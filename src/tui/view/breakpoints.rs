//! Breakpoints and watches: what each is, whether it is on, how often it was hit, and the
//! watched values at the position.

use std::fmt::Write as _;

use super::{OnEnter, View};
use crate::tui::glyph::BREAKPOINT;
use crate::tui::layout::WidthTier;
use crate::tui::lines::DetailLine;
use crate::tui::model::{BreakpointRow, Model};
use crate::tui::theme::Scope;
use crate::tui::widget::grid::{CellWriter, GridColumn, GridSource};

/// The rows of the breakpoints and watches.
pub struct BreakpointsView<'a>(pub &'a Model);

impl BreakpointsView<'_> {
    fn item(&self, row: usize) -> Option<&BreakpointRow> {
        self.0.breakpoints.get(row)
    }
}

/// Hits as a number, open to the top while cycles were not looked at.
fn hits(item: &BreakpointRow) -> String {
    let more = if item.unseen > 0 { "+" } else { "" };
    format!("{}{more}", item.hits)
}

impl GridSource for BreakpointsView<'_> {
    fn rows(&self) -> usize {
        self.0.breakpoints.len()
    }

    fn columns(&self) -> usize {
        7
    }

    fn column(&self, column: usize) -> GridColumn {
        match column {
            0 => GridColumn::text("no.", 6),
            1 => GridColumn::text("kind", 6),
            2 => GridColumn::text("state", 6),
            3 => GridColumn::text("act", 5),
            4 => GridColumn::number("hits", 7),
            5 => GridColumn::number("in all", 7).shown_from(WidthTier::Standard),
            _ => GridColumn::prose_in(self, column, "location, or watched value", 24),
        }
    }

    fn cell(&self, row: usize, column: usize, out: &mut CellWriter) {
        let Some(item) = self.item(row) else { return };
        let dim = if item.enabled { Scope::Text } else { Scope::TextDim };
        match column {
            0 => {
                let sign = if item.enabled && !item.is_watch { BREAKPOINT } else { " " };
                out.set(sign, Scope::Breakpoint);
                let _ = write!(out, " {}", item.id);
            }
            1 => out.set(if item.is_watch { "watch" } else { "break" }, dim),
            2 => out.set(if item.enabled { "on" } else { "off" }, dim),
            3 => out.set(item.act, dim),
            4 => out.set(&item.so_far.to_string(), dim),
            5 => out.set(&hits(item), dim),
            _ => {
                out.set(&item.text, dim);
                if item.is_watch {
                    let _ = write!(out, " = {}", item.value);
                }
            }
        }
    }

    fn key(&self, row: usize) -> u64 {
        self.item(row).map_or(0, |item| u64::from(item.id))
    }

    fn is_failure(&self, row: usize) -> bool {
        self.item(row).is_some_and(|item| item.problem.is_some())
    }
}

impl View for BreakpointsView<'_> {
    fn title(&self) -> String {
        "Breakpoints and watches".into()
    }

    fn empty(&self) -> String {
        "No breakpoint: b sets one at the selected row of any view, :break LOCATION anywhere."
            .into()
    }

    fn detail(&self, row: usize, _column: usize) -> Vec<DetailLine> {
        let Some(item) = self.item(row) else { return Vec::new() };
        let word = if item.is_watch { "watch" } else { "break" };
        let mut lines = vec![DetailLine::heading(format!("{word} {}", item.text))];
        if !item.enabled {
            lines.push(DetailLine::text("switched off").scoped(Scope::TextDim));
        }
        let counted = format!("{} up to here, {} in the recording", item.so_far, hits(item));
        lines.push(DetailLine::field("hits", counted));
        if item.unseen > 0 {
            let words =
                format!("{} cycles without a recorded matrix; running evaluates them", item.unseen);
            lines.push(DetailLine::field("not seen", words));
        }
        if item.is_watch {
            lines.push(DetailLine::field("value here", &item.value));
        }
        lines.extend(item.changes.iter().map(|change| DetailLine::field("changed", change)));
        if let Some(problem) = &item.problem {
            let words = format!("the condition could not be evaluated: {problem}");
            lines.push(DetailLine::text(words).scoped(Scope::VerdictError));
        }
        lines.extend(item.last.iter().map(|last| DetailLine::field("last hit", last)));
        lines
    }

    fn open(&self, row: usize, _column: usize) -> OnEnter {
        let edit = |item: &BreakpointRow| format!("break-edit {} {}", item.id, item.text);
        self.item(row).map_or(OnEnter::Describe, |item| OnEnter::Prompt(edit(item)))
    }
}
