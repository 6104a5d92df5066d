//! All pods of the cluster, with where each is.

use std::fmt::Write as _;

use super::cycle::outcome_lines;
use super::{Open, View, ViewId};
use crate::api::Labels;
use crate::engine::pod::NamespacedName;
use crate::tui::layout::Tier;
use crate::tui::lines::Line;
use crate::tui::model::{Model, PodRow, Position};
use crate::tui::theme::Scope;
use crate::tui::widget::grid::{CellOut, Column, GridSource};

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

impl PodsView<'_> {
    fn pod(&self, row: usize) -> Option<&PodRow> {
        self.0.pods.get(row)
    }

    fn last_cycle(&self, row: usize) -> Option<Position> {
        let pod = self.pod(row)?.pod;
        let cycle = self.0.cycles.iter().rposition(|c| c.pod == pod)?;
        Some(Position { cycle, point: None, plugin: None, node: None })
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
            0 => Column::name("pod", 22, 44),
            1 => Column::name("place", 18, 30),
            2 => Column::number("prio", 8),
            3 => Column::prose("requests", 20),
            _ => Column::prose("labels", 16).from_tier(Tier::Standard),
        }
    }

    fn cell(&self, row: usize, column: usize, out: &mut CellOut) {
        let Some(pod) = self.pod(row) else { return };
        // Writing into a cell cannot fail.
        let _ = match column {
            0 => write!(out, "{}", pod.pod),
            1 => out.write_str(&pod.place),
            2 => write!(out, "{}", pod.priority),
            3 => out.write_str(&pod.requests),
            _ => {
                out.set(&labels_text(&pod.labels), Scope::TextDim);
                Ok(())
            }
        };
    }

    fn key(&self, row: usize) -> u64 {
        self.pod(row).map_or(0, |p| key_of(p.pod))
    }

    fn is_current(&self, row: usize) -> bool {
        let current = self.0.position.and_then(|p| self.0.cycles.get(p.cycle));
        self.pod(row).zip(current).is_some_and(|(pod, cycle)| pod.pod == cycle.pod)
    }

    fn is_failure(&self, row: usize) -> bool {
        self.pod(row).is_some_and(|p| p.node.is_none())
    }

    fn label(&self, row: usize, key: &str) -> Option<&str> {
        self.pod(row)?.labels.get_str(key).map(|v| v.as_str())
    }
}

impl View for PodsView<'_> {
    fn title(&self) -> String {
        let pending = self.0.pods.iter().filter(|p| p.node.is_none()).count();
        format!("Pods: {pending} without a node")
    }

    fn empty(&self) -> String {
        "The cluster has no pod.".into()
    }

    fn detail(&self, row: usize, _column: usize) -> Vec<Line> {
        let Some(pod) = self.pod(row) else { return Vec::new() };
        let mut lines = vec![Line::heading(format!("{}: {}", pod.pod, pod.place))];
        if let Some(cycle) = self.0.last_cycle_of(pod.pod) {
            lines.extend(outcome_lines(cycle));
        }
        lines.push(Line::field("requests", &pod.requests));
        lines.push(Line::field("labels", labels_text(&pod.labels)));
        lines.extend(pod.summary.iter().map(Line::text));
        lines
    }

    fn open(&self, row: usize, _column: usize) -> Open {
        match self.last_cycle(row) {
            Some(moment) => Open::Moment(moment, ViewId::Cycle),
            None => Open::Describe,
        }
    }

    fn moment(&self, row: usize, _column: usize) -> Option<Position> {
        self.last_cycle(row)
    }
}
