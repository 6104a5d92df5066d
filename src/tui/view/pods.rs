//! All pods of the cluster, with where each is.

use std::fmt::Write as _;

use super::shared::outcome_lines;
use super::{OnEnter, RunTarget, View, ViewId, shared};
use crate::tui::layout::WidthTier;
use crate::tui::lines::DetailLine;
use crate::tui::model::{CyclePosition, Model, PodPlace, PodRow};
use crate::tui::pod_sign;
use crate::tui::text::width;
use crate::tui::theme::Scope;
use crate::tui::widget::grid::{CellWriter, GridColumn, GridSource};
use kubestep_api::{Labels, Name, Pod};
use kubestep_framework::pod::requests::requested;
use kubestep_framework::resource::amount;

/// Columns of the sign before a place.
const SIGN: usize = 2;

/// The rows of the pods.
pub struct PodsView<'a>(pub &'a Model);

fn priority(row: &PodRow) -> i32 {
    row.pod.spec.priority.unwrap_or_default()
}

fn labels_text(row: &PodRow) -> String {
    shared::labels_text(&row.pod.metadata.labels)
}

impl PodsView<'_> {
    fn pod(&self, row: usize) -> Option<&PodRow> {
        self.0.pods.get(row)
    }

    /// Where the pod is; what the names of all nodes share is in the title.
    fn place_text(&self, row: &PodRow) -> String {
        let short = |node: Name| self.0.node_names.short(&node.text()).to_owned();
        match row.place {
            PodPlace::Node(node) => format!("on {}", short(node)),
            PodPlace::Waiting(node) => format!("waits for {}", short(node)),
            place => place.describe(),
        }
    }

    /// The columns of these words.
    fn place_width(&self, row: &PodRow) -> usize {
        let short = |node: Name| width(self.0.node_names.short(&node.text()));
        match row.place {
            PodPlace::Node(node) => width("on ") + short(node),
            PodPlace::Waiting(node) => width("waits for ") + short(node),
            PodPlace::Queue(queue) => queue.as_str().len(),
            place => width(&place.describe()),
        }
    }

    /// What the pod counts for on a node.
    fn requests(&self, pod: &Pod) -> String {
        amount::resources(&requested(pod, &self.0.configuration.gates))
    }
}

impl GridSource for PodsView<'_> {
    fn rows(&self) -> usize {
        self.0.pods.len()
    }

    fn columns(&self) -> usize {
        5
    }

    fn column(&self, column: usize) -> GridColumn {
        match column {
            0 => {
                let pods = self.0.pods.iter().map(|row| row.name());
                GridColumn::fitted("pod", 22, shared::widest(pods))
            }
            1 => {
                let pods = self.0.pods.iter().take(shared::MEASURED);
                let widest = pods.map(|row| self.place_width(row)).max().unwrap_or(0);
                GridColumn::fitted("place", 16, SIGN + widest)
            }
            2 => {
                let pods = self.0.pods.iter().take(shared::MEASURED);
                let widest = pods.map(|row| priority(row).to_string().len()).max().unwrap_or(0);
                GridColumn::number("prio", widest.max(4) as u16)
            }
            3 => GridColumn::prose_in(self, column, "requests", 20),
            _ => GridColumn::prose_in(self, column, "labels", 16).shown_from(WidthTier::Standard),
        }
    }

    fn cell(&self, row: usize, column: usize, out: &mut CellWriter) {
        let Some(row) = self.pod(row) else { return };
        let (sign, scope) = pod_sign::of_place(row.place);
        // Writing into a cell cannot fail.
        let _ = match column {
            0 => write!(out, "{}", row.name()),
            1 => {
                out.scope = scope;
                write!(out, "{sign} {}", self.place_text(row))
            }
            2 => write!(out, "{}", priority(row)),
            3 => out.write_str(&self.requests(&row.pod)),
            _ => {
                out.set(&labels_text(row), Scope::TextDim);
                Ok(())
            }
        };
    }

    /// Of what is requested, CPU counts.
    fn amount(&self, row: usize, column: usize) -> Option<i64> {
        let requested = |row: &PodRow| requested(&row.pod, &self.0.configuration.gates).milli_cpu;
        self.pod(row).filter(|_| column == 3).map(requested)
    }

    fn has_break(&self, row: usize) -> bool {
        self.0.has_break(|| self.location(row, 0))
    }

    fn key(&self, row: usize) -> u64 {
        self.pod(row).map_or(0, |p| shared::key_of(p.name()))
    }

    fn is_current(&self, row: usize) -> bool {
        self.pod(row).is_some_and(|row| self.0.is_current_pod(row.name()))
    }

    fn is_failure(&self, row: usize) -> bool {
        self.pod(row).is_some_and(|p| p.place.is_pending())
    }

    fn has_labels(&self) -> bool {
        true
    }

    fn labels(&self, row: usize) -> Option<&Labels> {
        Some(&self.pod(row)?.pod.metadata.labels)
    }
}

impl View for PodsView<'_> {
    fn location(&self, row: usize, _column: usize) -> Option<String> {
        Some(format!("pod:{}", self.pod(row)?.name()))
    }

    fn current(&self) -> Option<(usize, Option<usize>)> {
        let row = (0..self.rows()).find(|row| self.is_current(*row));
        row.map(|row| (row, None))
    }

    fn title(&self) -> String {
        let pending = self.0.pods.iter().filter(|p| p.place.is_pending()).count();
        format!("Pods: {pending} pending{}", self.0.node_names.note())
    }

    fn empty(&self) -> String {
        "The cluster has no pod.".into()
    }

    fn detail(&self, row: usize, _column: usize) -> Vec<DetailLine> {
        let Some(row) = self.pod(row) else { return Vec::new() };
        let (key, (sign, scope)) = (row.name(), pod_sign::of_place(row.place));
        let heading = format!("{sign} {key}: {}", row.place.describe());
        let mut lines = vec![DetailLine::text(heading).scoped(scope)];
        if let Some(node) = self.0.nomination_of(key) {
            lines.push(DetailLine::field(
                "nominated",
                format!("capacity is reserved on {node}; 5 shows it"),
            ));
        }
        if row.place == PodPlace::Unserved {
            let scheduler = row.pod.spec.scheduler_name;
            let text = format!("no profile of the configuration is called {scheduler:?}");
            lines.push(DetailLine::field("why", text));
        }
        if let Some(cycle) = self.0.last_cycle_of(key) {
            lines.extend(outcome_lines(cycle));
            lines.extend(super::live_decision_lines(self.0, cycle.cycle));
        }
        lines.push(DetailLine::field("labels", labels_text(row)));
        lines.push(DetailLine::heading("What the scheduler reads of its spec"));
        lines.extend(spec_lines(&row.pod));
        lines
    }

    fn open(&self, row: usize, column: usize) -> OnEnter {
        match self.moment(row, column) {
            Some(moment) => OnEnter::Inspect(moment, ViewId::Cycle),
            None => OnEnter::Describe,
        }
    }

    fn moment(&self, row: usize, _column: usize) -> Option<CyclePosition> {
        self.0.start_of_last_cycle(self.pod(row)?.name())
    }

    fn run_to(&self, row: usize, column: usize) -> Option<RunTarget> {
        let pod = self.pod(row)?;
        match pod.place {
            PodPlace::Queue(_) => Some(RunTarget::NextCycleOf(pod.name())),
            _ => self.moment(row, column).map(RunTarget::Position),
        }
    }
}

/// The spec as YAML, without what is not set.
fn spec_lines(pod: &Pod) -> Vec<DetailLine> {
    let yaml = serde_yaml::to_string(&pod.spec).unwrap_or_else(|problem| problem.to_string());
    yaml.lines().map(DetailLine::text).collect()
}
