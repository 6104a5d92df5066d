//! What is said about the selected row, and how many lines that has needed.

use super::App;
use crate::tui::layout::{self, WidthTier};
use crate::tui::lines::{DetailLine, wrapped};
use crate::tui::model::Model;
use crate::tui::view::{View, ViewId};

/// The most lines that the details below the rows of a view have needed since it was entered. Their
/// height follows this, so that it does not jump back and forth while the selection moves.
#[derive(Debug, Default)]
pub(super) struct DetailHeight {
    /// The view and the size of the terminal that it was measured in.
    of: Option<(ViewId, (u16, u16))>,
    lines: u16,
}

impl App {
    /// Everything about the selected row of `source`, the view on screen.
    pub(in crate::tui) fn details(&self, source: &dyn View, model: &Model) -> Vec<DetailLine> {
        let grid = self.grids.get(&self.view);
        let selected = grid.and_then(|grid| Some((grid.selected_row()?, grid.column)));
        let lines = match selected {
            Some((row, column)) => source.detail(row, column),
            None => source.detail_without_rows(),
        };
        self.with_answer(lines, model)
    }

    /// The details with the answer for the selected row's pod, once it is there: before them where the
    /// row is the pod, behind them where it is a step of its cycle.
    fn with_answer(&self, details: Vec<DetailLine>, model: &Model) -> Vec<DetailLine> {
        let pod = self.answered_pod(model);
        let answer = model.answer.as_ref().filter(|answer| Some(answer.pod) == pod);
        let Some(answer) = answer.filter(|answer| !answer.lines.is_empty()) else { return details };
        if details.is_empty() {
            return answer.lines.clone();
        }
        let parts = match self.view {
            ViewId::Queues | ViewId::Pods => [answer.lines.clone(), details],
            _ => [details, answer.lines.clone()],
        };
        parts.join(&DetailLine::text(""))
    }

    /// The lines that the details below the rows should have.
    pub(in crate::tui) fn detail_lines(&self) -> u16 {
        self.detail_height.lines
    }

    /// Takes note of how many lines the selected row needs. What a run passes through does not count:
    /// which of it is seen depends on the speed of the machine.
    pub(super) fn measure_details(&mut self, source: &dyn View, model: &Model) {
        let measured = (self.view, self.size);
        if self.detail_height.of != Some(measured) {
            self.detail_height = DetailHeight { of: Some(measured), lines: 0 };
        }
        let is_below = WidthTier::of(self.size.0) != WidthTier::Wide;
        if is_below && !self.running {
            let columns = layout::detail_columns(self.size.0);
            let lines = wrapped(&self.details(source, model), columns).len();
            let lines = u16::try_from(lines).unwrap_or(u16::MAX);
            self.detail_height.lines = self.detail_height.lines.max(lines);
        }
    }
}
