//! All recorded cycles, oldest first.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;

use super::shared::{outcome_lines, since_start};
use super::verdict::of_outcome;
use super::{OnEnter, View, ViewId, funnel, shared};
use crate::tui::glyph::{MORE_LEFT, MORE_RIGHT, VerdictSign};
use crate::tui::layout::WidthTier;
use crate::tui::lines::DetailLine;
use crate::tui::model::{CyclePosition, Model};
use crate::tui::theme::Scope;
use crate::tui::widget::bar::StyledParts;
use crate::tui::widget::grid::{CellWriter, GridColumn, GridSource};
use kubestep_debug::Position as Frame;
use kubestep_debug::message::brief;
use kubestep_framework::record::{CycleRecord, Outcome};

/// Instead of an outcome.
const UNDER_WAY: &str = "under way";

/// The rows of the timeline.
pub struct TimelineView<'a>(pub &'a Model);

impl TimelineView<'_> {
    fn cycle(&self, row: usize) -> Option<&Arc<CycleRecord>> {
        self.0.cycles.get(row)
    }

    /// As wide as the longest outcome; of very many cycles, as it can be.
    fn outcome_width(&self) -> u16 {
        let outcomes = self.0.cycles.iter().map(|cycle| format!("  {}", cycle.outcome.as_str()));
        shared::widest_text(&under_way_text(), outcomes, 15)
    }

    /// As wide as the longest time; of very many cycles, as it can be.
    fn time_width(&self) -> u16 {
        let times = self.0.cycles.iter().map(|cycle| since_start(self.0, cycle.time));
        shared::widest_text("time", times, 8)
    }

    /// Columns of the widest `passed/all`.
    fn passed_width(&self) -> u16 {
        let nodes = self.0.cycles.last().map_or(0, |cycle| cycle.nodes.order.len());
        (nodes.to_string().len() * 2 + 1).max(6) as u16
    }

    /// Whether the debugger stands in this cycle, before its outcome.
    fn is_under_way(&self, row: usize) -> bool {
        self.0.under_way && self.0.position.is_some_and(|position| position.cycle == row)
    }
}

/// Whether the debugger stands before a cycle.
fn is_future(model: &Model, cycle: usize) -> bool {
    !model.at_end && model.position.is_none_or(|position| cycle > position.cycle)
}

/// Of a cycle whose outcome is not known yet.
fn under_way_text() -> String {
    format!("{} {UNDER_WAY}", VerdictSign::Pending.glyph())
}

/// A sign for each cycle, coloured by its outcome, with the debugger's position in the middle
/// where not all fit into `width` columns.
pub fn strip(model: &Model, width: usize) -> StyledParts {
    let all = model.cycles.len();
    let position = model.position.map(|position| position.cycle);
    // Columns of the numbers at both ends, if not all cycles fit.
    let sides = if all <= width { 0 } else { 2 * (all.to_string().len() + 3) };
    let room = width.saturating_sub(sides).max(1);
    let middle = position.unwrap_or(all).saturating_sub(room / 2);
    let first = middle.min(all.saturating_sub(room));
    let last = (first + room).min(all);
    let mut parts = StyledParts::new();
    if first > 0 {
        parts.push((format!("{MORE_LEFT} {first} "), Scope::TextDim));
    }
    for (at, cycle) in model.cycles.iter().enumerate().take(last).skip(first) {
        let under_way = model.under_way && position == Some(at);
        let verdict = if under_way { VerdictSign::Pending } else { of_outcome(cycle.outcome) };
        let scope = match position == Some(at) {
            true => Scope::CursorCycle,
            false if is_future(model, at) => Scope::Future,
            false => verdict.scope(),
        };
        parts.push((verdict.glyph().into(), scope));
    }
    if last < all {
        parts.push((format!(" {} {MORE_RIGHT}", all - last), Scope::TextDim));
    }
    parts
}

/// What the pod preempts, what the scheduler says of it, or what its node depends on.
fn message(cycle: &CycleRecord) -> (Cow<'_, str>, Scope) {
    if let Some(words) = funnel::preempting(cycle) {
        return (Cow::Owned(words), Scope::VerdictPending);
    }
    if !cycle.message.is_empty() {
        return (brief(&cycle.message), Scope::TextDim);
    }
    match shared::uncertainty(cycle).first() {
        Some(condition) => {
            (Cow::Owned(format!("uncertain: holds {condition}")), Scope::VerdictPending)
        }
        None => (Cow::Borrowed(""), Scope::TextDim),
    }
}

impl GridSource for TimelineView<'_> {
    fn rows(&self) -> usize {
        self.0.cycles.len()
    }

    fn columns(&self) -> usize {
        8
    }

    fn column(&self, column: usize) -> GridColumn {
        match column {
            0 => GridColumn::fitted(
                "pod",
                24,
                shared::widest(self.0.cycles.iter().rev().map(|cycle| cycle.pod)),
            ),
            1 => GridColumn::number("cycle", 5),
            2 => GridColumn::number("time", self.time_width()),
            3 => GridColumn::number("attempt", 7).shown_from(WidthTier::Standard),
            4 => GridColumn::text("outcome", self.outcome_width()),
            // With parentheses around one that is only nominated.
            5 => GridColumn::fitted("node", 12, usize::from(self.0.node_names.widest()) + 2),
            6 => GridColumn::number("passed", self.passed_width()).shown_from(WidthTier::Standard),
            _ => GridColumn::prose_in(self, column, "message", 12),
        }
    }

    fn cell(&self, row: usize, column: usize, out: &mut CellWriter) {
        let Some(cycle) = self.cycle(row) else { return };
        let verdict = of_outcome(cycle.outcome);
        let under_way = self.is_under_way(row);
        // Writing into a cell cannot fail.
        let _ = match column {
            0 => write!(out, "{}", cycle.pod),
            1 => write!(out, "{}", cycle.cycle),
            2 => write!(out, "{}", since_start(self.0, cycle.time)),
            3 => write!(out, "{}", cycle.attempt),
            4 if under_way => {
                out.set(&under_way_text(), VerdictSign::Pending.scope());
                Ok(())
            }
            // What the rest of the cycle did is not known yet.
            5.. if under_way => Ok(()),
            4 => {
                out.set(verdict.glyph(), verdict.scope());
                write!(out, " {}", cycle.outcome.as_str())
            }
            5 => match (cycle.node, cycle.nominated_node) {
                (Some(node), _) => out.write_str(self.0.node_names.short(&node.text())),
                // Nominated: room is only reserved there.
                (None, Some(node)) => write!(out, "({})", self.0.node_names.short(&node.text())),
                (None, None) => Ok(()),
            },
            6 => write!(out, "{}/{}", cycle.feasible_count(), cycle.evaluated_nodes),
            _ => {
                let (words, scope) = message(cycle);
                out.set(&words, scope);
                Ok(())
            }
        };
        if is_future(self.0, row) {
            out.scope = Scope::Future;
        }
    }

    fn amount(&self, row: usize, column: usize) -> Option<i64> {
        let cycle = self.cycle(row)?;
        match column {
            2 => Some(cycle.time.0),
            6 => Some(cycle.feasible_count() as i64),
            _ => None,
        }
    }

    fn is_current(&self, row: usize) -> bool {
        self.0.position.is_some_and(|p| p.cycle == row)
    }

    fn is_failure(&self, row: usize) -> bool {
        self.cycle(row).is_some_and(|c| c.outcome != Outcome::Scheduled)
    }

    fn has_break(&self, row: usize) -> bool {
        self.0.has_break(|| self.location(row, 0))
    }

    fn key(&self, row: usize) -> u64 {
        self.cycle(row).map_or(0, |c| c.cycle)
    }
}

impl View for TimelineView<'_> {
    fn location(&self, row: usize, _column: usize) -> Option<String> {
        Some(format!("pod:{}", self.cycle(row)?.pod))
    }

    fn title(&self) -> String {
        "Timeline: recorded cycles".into()
    }

    fn banner(&self, width: u16) -> Vec<StyledParts> {
        if self.0.cycles.is_empty() { Vec::new() } else { vec![strip(self.0, usize::from(width))] }
    }

    fn dims_future(&self) -> bool {
        self.0.cycles.len().checked_sub(1).is_some_and(|last| is_future(self.0, last))
    }

    fn empty(&self) -> String {
        "No cycle yet: n runs the next one, c all of them.".into()
    }

    fn detail(&self, row: usize, _column: usize) -> Vec<DetailLine> {
        let Some(cycle) = self.cycle(row) else { return Vec::new() };
        let mut lines =
            vec![DetailLine::heading(format!("Cycle {} of {}", cycle.cycle, cycle.pod))];
        if !self.is_under_way(row) {
            lines.extend(outcome_lines(cycle));
        }
        lines.extend(super::live_decision_lines(self.0, cycle.cycle));
        lines
    }

    fn current(&self) -> Option<(usize, Option<usize>)> {
        self.0.position.map(|p| (p.cycle, None))
    }

    fn moment(&self, row: usize, _column: usize) -> Option<CyclePosition> {
        self.cycle(row)?;
        Some(CyclePosition { cycle: row, frame: Frame::START })
    }

    fn open(&self, row: usize, column: usize) -> OnEnter {
        match self.moment(row, column) {
            Some(moment) => OnEnter::Inspect(moment, ViewId::Cycle),
            None => OnEnter::Describe,
        }
    }
}
