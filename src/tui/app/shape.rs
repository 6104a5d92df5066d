//! What is folded, grouped or mapped in each view.

use super::App;
use crate::tui::action;
use crate::tui::layout::WidthTier;
use crate::tui::model::{Model, QueuedPod};
use crate::tui::view::{ViewId, ViewShape};
use kubestep_api::Kind;
use kubestep_framework::pod::NamespacedName;

/// Of more nodes, the pane beside the rows leaves the answer to `W`, so that no key waits for it.
const ANSWERED_UP_TO: usize = 2_000;

impl App {
    /// The pod whose answer belongs to the details and is not there yet.
    pub fn wanted_answer(&self, model: &Model) -> Option<NamespacedName> {
        let pod = self.answered_pod(model)?;
        let known = model.answer.as_ref().is_some_and(|answer| answer.pod == pod);
        (!known && self.has_time_for_answers(model)).then_some(pod)
    }

    /// A queued pod on the screen whose row does not have its cause yet.
    pub fn wanted_cause(&self, model: &Model) -> Option<NamespacedName> {
        if self.view != ViewId::Queues
            || model.inspected.is_some()
            || !self.has_time_for_answers(model)
        {
            return None;
        }
        let rows = self.grids.get(&self.view)?.rows_from_top(self.size.1.into());
        let mut pods = rows.filter_map(|row| model.queued.get(row));
        let wanted = |pod: &&QueuedPod| {
            !pod.reason.is_empty() && !model.causes.contains_key(&pod.info.key())
        };
        pods.find(wanted).map(|pod| pod.info.key())
    }

    /// Whether nothing else goes on, and the cluster is small enough.
    fn has_time_for_answers(&self, model: &Model) -> bool {
        let large = model.cycles.last().is_some_and(|c| c.nodes.order.len() > ANSWERED_UP_TO);
        let busy = self.running || self.playing || model.going_back.is_some();
        !large && !busy && self.windows.is_empty()
    }

    /// The pod that the answer in the details is about: that of the selected row, in the views and at the
    /// widths that have room for it. Rows that are not there leave room at any width.
    pub(in crate::tui) fn answered_pod(&self, model: &Model) -> Option<NamespacedName> {
        use ViewId::{Cycle, Filter, Pods, Preemption, Queues, Scores, Timeline, Waiting};
        let tier = WidthTier::of(self.size.0);
        let is_empty = self.grids.get(&self.view).is_some_and(|grid| grid.total() == 0);
        let shown = match self.view {
            // Before the first cycle the few lines tell what one is looking at.
            Queues => tier == WidthTier::Wide || !model.cycles.is_empty(),
            Cycle => tier == WidthTier::Wide,
            Filter | Pods | Preemption | Scores | Timeline | Waiting => {
                tier > WidthTier::Compact || is_empty
            }
            _ => false,
        };
        if !shown || model.inspected.is_some() {
            return None;
        }
        let is_of_cycle = matches!(self.view, Filter | Preemption | Scores);
        if is_of_cycle || self.view == Queues && model.queued.is_empty() {
            return model.cycle().map(|cycle| cycle.pod);
        }
        let key = action::subject(self, model).filter(|key| key.kind == Kind::Pod)?;
        Some(NamespacedName::new(key.namespace, key.name))
    }

    /// How a view shows its rows.
    pub fn shape(&mut self, view: ViewId) -> &mut ViewShape {
        self.shapes.entry(view).or_default()
    }

    /// That of the view on screen; flat while rows are filtered or sorted, which is about each.
    pub(super) fn current_shape(&self) -> ViewShape {
        let mut shape = self.shapes.get(&self.view).cloned().unwrap_or_default();
        let grid = self.grids.get(&self.view);
        shape.flat = grid.is_some_and(|grid| !grid.filter.is_empty() || grid.sort.is_some());
        shape
    }
}
