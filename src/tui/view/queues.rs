//! The scheduling queues: which pod is where, since when, why, and when it leaves by itself.

use std::fmt::Write as _;

use super::shared::outcome_lines;
use super::{OnEnter, RunTarget, View, ViewId, shared};
use crate::tui::glyph::VerdictSign;
use crate::tui::layout::Tier;
use crate::tui::lines::DetailLine;
use crate::tui::model::{CyclePosition, Model, QueuedPod, span};
use crate::tui::theme::Scope;
use crate::tui::widget::grid::{CellOut, GridColumn, GridSource};
use kubestep_framework::record::QueueName;

/// Most columns for the plugins that rejected a pod: what they said needs the rest.
const REJECTED_BY: usize = 50;

/// The rows of the queues.
pub struct QueuesView<'a>(pub &'a Model);

impl QueuesView<'_> {
    fn pod(&self, row: usize) -> Option<&QueuedPod> {
        self.0.queued.get(row)
    }

    /// Time until the pod leaves by itself.
    fn left(&self, pod: &QueuedPod) -> Option<String> {
        pod.until.map(|until| span((until.0 - self.0.now.0).max(0)))
    }

    fn last_cycle(&self, row: usize) -> Option<CyclePosition> {
        self.0.start_of_last_cycle(self.pod(row)?.info.key())
    }
}

/// A queue's sign and name as they stand in the list: who is in none is there because no profile
/// serves it.
fn shown(queue: QueueName) -> (VerdictSign, &'static str) {
    match queue {
        QueueName::None => (VerdictSign::Error, "not served"),
        queue => (shared::queue_sign(queue), queue.as_str()),
    }
}

impl GridSource for QueuesView<'_> {
    fn rows(&self) -> usize {
        self.0.queued.len()
    }

    fn columns(&self) -> usize {
        8
    }

    fn column(&self, column: usize) -> GridColumn {
        match column {
            0 => {
                let pods = self.0.queued.iter().map(|pod| pod.info.key());
                GridColumn::fitted("pod", 20, shared::widest(pods))
            }
            1 => GridColumn::text("queue", 15),
            2 => GridColumn::number("prio", 6),
            3 => GridColumn::number("tries", 5),
            4 => GridColumn::number("since", 7).from_tier(Tier::Standard),
            5 => GridColumn::number("left", 7),
            6 => {
                let widest = self.0.queued.iter().map(|pod| names(pod).len()).max();
                GridColumn::fitted("rejected by", 14, widest.unwrap_or(0).min(REJECTED_BY))
            }
            _ => GridColumn::prose("why", 20).from_tier(Tier::Standard),
        }
    }

    fn cell(&self, row: usize, column: usize, out: &mut CellOut) {
        let Some(pod) = self.pod(row) else { return };
        let (sign, queue) = shown(pod.queue);
        // Writing into a cell cannot fail.
        let _ = match column {
            0 => write!(out, "{}", pod.info.key()),
            1 => {
                out.set(sign.glyph(), sign.scope());
                write!(out, " {queue}")
            }
            2 => write!(out, "{}", pod.info.priority()),
            3 => write!(out, "{}", pod.attempts),
            4 => write!(out, "{}", span(self.0.now.0 - pod.since.0)),
            5 => out.write_str(&self.left(pod).unwrap_or_default()),
            6 => out.write_str(&names(pod)),
            _ => {
                out.set(&pod.reason, Scope::TextDim);
                Ok(())
            }
        };
    }

    fn amount(&self, row: usize, column: usize) -> Option<i64> {
        let pod = self.pod(row)?;
        match column {
            4 => Some(self.0.now.0 - pod.since.0),
            5 => pod.until.map(|until| until.0),
            _ => None,
        }
    }

    fn has_break(&self, row: usize) -> bool {
        self.0.has_break(|| self.place(row, 0))
    }

    fn key(&self, row: usize) -> u64 {
        self.pod(row).map_or(0, |p| shared::key_of(p.info.key()))
    }

    fn is_current(&self, row: usize) -> bool {
        self.pod(row).is_some_and(|pod| self.0.is_current_pod(pod.info.key()))
    }

    fn is_failure(&self, row: usize) -> bool {
        use QueueName::{Backoff, Gated, None, Unschedulable};
        self.pod(row).is_some_and(|p| matches!(p.queue, Unschedulable | Gated | Backoff | None))
    }

    fn has_labels(&self) -> bool {
        true
    }

    fn label(&self, row: usize, key: &str) -> Option<&str> {
        self.pod(row)?.info.pod.metadata.labels.get_str(key).map(|v| v.as_str())
    }
}

fn names(pod: &QueuedPod) -> String {
    pod.rejected_by.iter().map(|p| p.as_str()).collect::<Vec<_>>().join(", ")
}

impl View for QueuesView<'_> {
    fn place(&self, row: usize, _column: usize) -> Option<String> {
        Some(format!("pod:{}", self.pod(row)?.info.key()))
    }

    fn title(&self) -> String {
        use QueueName::{Active, Backoff, Gated, InFlight, Unschedulable};
        let count = |queue| self.0.queued.iter().filter(|p| p.queue == queue).count();
        let queues = [Active, Backoff, Unschedulable, Gated, InFlight];
        let counts: Vec<String> =
            queues.iter().map(|q| format!("{} {}", q.as_str(), count(*q))).collect();
        format!("Queues: {}", counts.join(", "))
    }

    fn empty(&self) -> String {
        "No pod waits to be scheduled; 6 shows all pods.".into()
    }

    fn detail(&self, row: usize, _column: usize) -> Vec<DetailLine> {
        let Some(pod) = self.pod(row) else { return Vec::new() };
        let (sign, queue) = shown(pod.queue);
        let key = pod.info.key();
        let within = if pod.queue == QueueName::Backoff { "in " } else { "" };
        let text = format!("{} {key} is {within}{queue}", sign.glyph());
        let mut lines = vec![DetailLine::text(text).scoped(sign.scope())];
        if let Some(left) = self.left(pod) {
            // A cluster's own time passes by itself.
            let hint = match self.0.followed() {
                Some(_) => "",
                None => "; + advances to the next timer",
            };
            lines.push(DetailLine::field("leaves in", format!("{left}{hint}")));
        }
        if let Some(node) = self.0.nomination_of(key) {
            lines.push(DetailLine::field(
                "nominated",
                format!("room is reserved on {node}; 5 shows it"),
            ));
        }
        if !pod.rejected_by.is_empty() {
            lines.push(DetailLine::field("rejected by", names(pod)));
        }
        if !pod.reason.is_empty() {
            lines.push(DetailLine::field("why", &pod.reason));
        }
        if let Some(cycle) = self.0.last_cycle_of(key) {
            lines.push(DetailLine::heading(format!("Last cycle, {}", cycle.cycle)));
            lines.extend(outcome_lines(cycle));
            lines.extend(super::live_decision_lines(self.0, cycle.cycle));
        }
        lines
    }

    fn open(&self, row: usize, _column: usize) -> OnEnter {
        match self.last_cycle(row) {
            Some(moment) => OnEnter::Inspect(moment, ViewId::Cycle),
            None => OnEnter::Describe,
        }
    }

    fn moment(&self, row: usize, _column: usize) -> Option<CyclePosition> {
        self.last_cycle(row)
    }
    fn run_to(&self, row: usize, _column: usize) -> Option<RunTarget> {
        self.pod(row).map(|pod| RunTarget::NextCycleOf(pod.info.key()))
    }
}
