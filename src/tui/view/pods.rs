//! All pods of the cluster, with where each is.

use std::fmt::Write as _;

use super::cycle::outcome_lines;
use super::{Open, Target, View, ViewId};
use crate::tui::amount;
use crate::tui::glyph::Verdict;
use crate::tui::layout::Tier;
use crate::tui::lines::Line;
use crate::tui::model::{Model, Place, PodRow, Position};
use crate::tui::theme::Scope;
use crate::tui::widget::grid::{CellOut, Column, GridSource};
use kubestep_api::{Labels, Pod};
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::pod::requests::requested;

/// See the module.
pub struct PodsView<'a>(pub &'a Model);

/// A number that stands for a pod while the interface runs.
pub(super) fn key_of(pod: NamespacedName) -> u64 {
    key_of_text(&pod.namespace).rotate_left(17) ^ key_of_text(&pod.name)
}

/// A number that stands for a text while the interface runs (FNV-1a).
pub(super) fn key_of_text(text: &str) -> u64 {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Labels as `key=value, …`.
pub(super) fn labels_text(labels: &Labels) -> String {
    let all: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    if all.is_empty() { "none".into() } else { all.join(", ") }
}

/// A sign for a place.
fn sign(place: Place) -> (&'static str, Scope) {
    let of = |verdict: Verdict| (verdict.glyph(), verdict.scope());
    match place {
        Place::Node(_) => of(Verdict::Success),
        Place::Waiting(_) => of(Verdict::Wait),
        Place::Queue(queue) => super::queues::sign(queue),
        Place::Ended => of(Verdict::Skip),
        Place::NobodyServes => of(Verdict::Error),
    }
}

fn name(pod: &Pod) -> NamespacedName {
    NamespacedName::new(pod.metadata.namespace, pod.metadata.name)
}

impl PodsView<'_> {
    fn pod(&self, row: usize) -> Option<&PodRow> {
        self.0.pods.get(row)
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

    fn column(&self, column: usize) -> Column {
        match column {
            0 => {
                let pods = self.0.pods.iter().map(|row| name(&row.pod));
                Column::fitted("pod", 22, super::timeline::widest(pods))
            }
            1 => Column::fitted("place", 22, usize::from(self.0.node_names.widest()).clamp(22, 40)),
            2 => Column::number("prio", 8),
            3 => Column::prose("requests", 20),
            _ => Column::prose("labels", 16).from_tier(Tier::Standard),
        }
    }

    fn cell(&self, row: usize, column: usize, out: &mut CellOut) {
        let Some(row) = self.pod(row) else { return };
        let (sign, scope) = sign(row.place);
        // Writing into a cell cannot fail.
        let _ = match column {
            0 => write!(out, "{}", name(&row.pod)),
            1 => {
                out.scope = scope;
                write!(out, "{sign} {}", row.place.words())
            }
            2 => write!(out, "{}", row.pod.spec.priority.unwrap_or_default()),
            3 => out.write_str(&self.requests(&row.pod)),
            _ => {
                out.set(&labels_text(&row.pod.metadata.labels), Scope::TextDim);
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
        self.0.has_break(|| self.place(row, 0))
    }

    fn key(&self, row: usize) -> u64 {
        self.pod(row).map_or(0, |p| key_of(name(&p.pod)))
    }

    fn is_current(&self, row: usize) -> bool {
        self.pod(row).is_some_and(|row| self.0.is_current_pod(name(&row.pod)))
    }

    fn is_failure(&self, row: usize) -> bool {
        self.pod(row).is_some_and(|p| p.place.is_pending())
    }

    fn has_labels(&self) -> bool {
        true
    }

    fn label(&self, row: usize, key: &str) -> Option<&str> {
        self.pod(row)?.pod.metadata.labels.get_str(key).map(|v| v.as_str())
    }
}

impl View for PodsView<'_> {
    fn place(&self, row: usize, _column: usize) -> Option<String> {
        Some(format!("pod:{}", name(&self.pod(row)?.pod)))
    }

    fn title(&self) -> String {
        let pending = self.0.pods.iter().filter(|p| p.place.is_pending()).count();
        format!("Pods: {pending} pending")
    }

    fn empty(&self) -> String {
        "The cluster has no pod.".into()
    }

    fn detail(&self, row: usize, _column: usize) -> Vec<Line> {
        let Some(row) = self.pod(row) else { return Vec::new() };
        let (key, (sign, scope)) = (name(&row.pod), sign(row.place));
        let heading = format!("{sign} {key}: {}", row.place.words());
        let mut lines = vec![Line::text(heading).scoped(scope)];
        if let Some(node) = self.0.nomination_of(key) {
            lines.push(Line::field(
                "nominated",
                format!("{node}: its requests are reserved there; 5 shows it"),
            ));
        }
        if row.place == Place::NobodyServes {
            let scheduler = row.pod.spec.scheduler_name;
            let text = format!("no profile of the configuration is called {scheduler:?}");
            lines.push(Line::field("why", text));
        }
        if let Some(cycle) = self.0.last_cycle_of(key) {
            lines.extend(outcome_lines(cycle));
            lines.extend(super::beside(self.0, cycle.cycle));
        }
        lines.push(Line::field("labels", labels_text(&row.pod.metadata.labels)));
        lines.push(Line::heading("What the scheduler reads of its spec"));
        lines.extend(spec_lines(&row.pod));
        lines
    }

    fn open(&self, row: usize, column: usize) -> Open {
        match self.moment(row, column) {
            Some(moment) => Open::Moment(moment, ViewId::Cycle),
            None => Open::Describe,
        }
    }

    fn moment(&self, row: usize, _column: usize) -> Option<Position> {
        self.0.start_of_last_cycle(name(&self.pod(row)?.pod))
    }

    fn run_to(&self, row: usize, column: usize) -> Option<Target> {
        let pod = self.pod(row)?;
        match pod.place {
            Place::Queue(_) => Some(Target::NextOf(name(&pod.pod))),
            _ => self.moment(row, column).map(Target::Moment),
        }
    }
}

/// The spec as YAML, without what is not set.
fn spec_lines(pod: &Pod) -> Vec<Line> {
    let yaml = serde_yaml::to_string(&pod.spec).unwrap_or_else(|problem| problem.to_string());
    yaml.lines().map(Line::text).collect()
}
