//! Pods held at Permit: by which plugin, for how long, and what is kept for them meanwhile.

use std::fmt::Write as _;

use super::shared::outcome_lines;
use super::{View, shared};
use crate::tui::lines::DetailLine;
use crate::tui::model::{CyclePosition, Model, WaitingPod, span};
use crate::tui::pod_sign;
use crate::tui::widget::grid::{CellWriter, GridColumn, GridSource};
use kubestep_api::Labels;
use kubestep_api::Time;
use kubestep_framework::record::intervention::HOLD;
use kubestep_framework::resource::amount;

/// The rows of the pods at Permit.
pub struct WaitingView<'a>(pub &'a Model);

impl WaitingView<'_> {
    fn pod(&self, row: usize) -> Option<&WaitingPod> {
        self.0.waiting.get(row)
    }

    /// When the first of its plugins times out.
    fn until(pod: &WaitingPod) -> Option<Time> {
        pod.plugins.iter().map(|(_, deadline)| *deadline).min()
    }

    /// Time until the first of its plugins times out.
    fn left(&self, pod: &WaitingPod) -> String {
        Self::until(pod).map(|at| span((at.0 - self.0.now.0).max(0))).unwrap_or_default()
    }
}

/// The plugins that hold a pod.
fn holders(pod: &WaitingPod) -> String {
    pod.plugins.iter().map(|(plugin, _)| plugin.as_str()).collect::<Vec<_>>().join(", ")
}

impl GridSource for WaitingView<'_> {
    fn rows(&self) -> usize {
        self.0.waiting.len()
    }

    fn columns(&self) -> usize {
        5
    }

    fn column(&self, column: usize) -> GridColumn {
        match column {
            0 => {
                let pods = self.0.waiting.iter().map(|pod| pod.info.key());
                GridColumn::fitted("pod", 20, shared::widest(pods))
            }
            1 => GridColumn::fitted("node", 14, self.0.node_names.widest().into()),
            2 => GridColumn::number("left", 7),
            3 => {
                let widest = self.0.waiting.iter().map(|pod| holders(pod).len()).max();
                GridColumn::fitted("held by", 16, widest.unwrap_or(0))
            }
            _ => GridColumn::prose_in(self, column, "reserved", 16),
        }
    }

    fn cell(&self, row: usize, column: usize, out: &mut CellWriter) {
        let Some(pod) = self.pod(row) else { return };
        // Writing into a cell cannot fail.
        let _ = match column {
            0 => write!(out, "{}", pod.info.key()),
            1 => out.write_str(self.0.node_names.short(&pod.node.text())),
            2 => {
                out.scope = pod_sign::WAITING.1;
                out.write_str(&self.left(pod))
            }
            3 => out.write_str(&holders(pod)),
            _ => out.write_str(&amount::resources(&pod.info.resource.resource)),
        };
    }

    /// Of what is kept, CPU counts.
    fn amount(&self, row: usize, column: usize) -> Option<i64> {
        let pod = self.pod(row)?;
        match column {
            2 => Self::until(pod).map(|until| until.0),
            4 => Some(pod.info.resource.resource.milli_cpu),
            _ => None,
        }
    }

    fn has_break(&self, row: usize) -> bool {
        self.0.has_break(|| self.location(row, 0))
    }

    fn has_labels(&self) -> bool {
        true
    }

    fn labels(&self, row: usize) -> Option<&Labels> {
        Some(&self.pod(row)?.info.pod.metadata.labels)
    }

    fn key(&self, row: usize) -> u64 {
        self.pod(row).map_or(0, |p| shared::key_of(p.info.key()))
    }
}

impl View for WaitingView<'_> {
    fn location(&self, row: usize, _column: usize) -> Option<String> {
        Some(format!("pod:{}", self.pod(row)?.info.key()))
    }

    fn title(&self) -> String {
        match self.0.holds.as_slice() {
            [] => "Waiting at Permit".into(),
            holds => format!("Waiting at Permit; manual holds: {}", holds.join(" and ")),
        }
    }

    fn empty(&self) -> String {
        match self.0.holds.as_slice() {
            [] => "No pod waits at Permit. :hold SELECTOR holds the pods that you choose.".into(),
            _ => "No pod waits at Permit yet; :release ends the hold.".into(),
        }
    }

    fn detail(&self, row: usize, _column: usize) -> Vec<DetailLine> {
        let Some(pod) = self.pod(row) else { return Vec::new() };
        let key = pod.info.key();
        let (sign, scope) = pod_sign::WAITING;
        let heading = format!("{sign} {key} waits for {}", pod.node);
        let mut lines = vec![DetailLine::text(heading).scoped(scope)];
        for (plugin, deadline) in &pod.plugins {
            let left = span((deadline.0 - self.0.now.0).max(0));
            let whose = if *plugin == HOLD { " (manual hold)" } else { "" };
            lines.push(DetailLine::field(
                "held by",
                format!("{plugin}{whose}, times out in {left}"),
            ));
        }
        let kept = amount::resources(&pod.info.resource.resource);
        lines.push(DetailLine::field("reserved", format!("{kept} on {}", pod.node)));
        if let Some(cycle) = self.0.last_cycle_of(key) {
            lines.extend(outcome_lines(cycle));
        }
        lines
    }
    fn moment(&self, row: usize, _column: usize) -> Option<CyclePosition> {
        self.0.start_of_last_cycle(self.pod(row)?.info.key())
    }
}
