//! The nodes with what is requested of them and what is left.

use std::fmt::Write as _;
use std::sync::Arc;

use super::shared::NAMES;
use super::{View, shared};
use crate::tui::glyph::VerdictSign;
use crate::tui::layout::Tier;
use crate::tui::lines::DetailLine;
use crate::tui::model::{CyclePosition, Model};
use crate::tui::text::width;
use crate::tui::theme::Scope;
use crate::tui::widget::grid::{CellOut, GridColumn, GridSource};
use kubestep_api::Labels;
use kubestep_framework::node::NodeInfo;
use kubestep_framework::resource::Resource;
use kubestep_framework::resource::amount;

/// The rows of the nodes.
pub struct NodesView<'a>(pub &'a Model);

fn labels(node: &NodeInfo) -> Option<&Labels> {
    node.node.as_ref().map(|n| &n.metadata.labels)
}

/// Taints as kubectl writes them.
pub fn taints(node: &NodeInfo) -> Vec<String> {
    let taints = node.node.as_ref().map(|n| n.spec.taints.as_slice()).unwrap_or_default();
    let text = |taint: &kubestep_api::Taint| match taint.value.is_empty() {
        true => format!("{}:{}", taint.key, taint.effect),
        false => format!("{}={}:{}", taint.key, taint.value, taint.effect),
    };
    taints.iter().map(text).collect()
}

/// Requested share of the scarcer of cpu and memory, in percent.
fn used_percent(node: &NodeInfo) -> i64 {
    let share = |used: i64, all: i64| if all > 0 { used.saturating_mul(100) / all } else { 0 };
    let (used, all) = (&node.requested, &node.allocatable);
    share(used.milli_cpu, all.milli_cpu).max(share(used.memory, all.memory))
}

/// `requested/allocatable`.
fn ratio(name: &str, used: i64, all: i64) -> String {
    format!("{}/{}", amount::of(name, used), amount::of(name, all))
}

fn state(node: &NodeInfo) -> (&'static str, Scope) {
    match &node.node {
        None => ("! no object", VerdictSign::Error.scope()),
        Some(object) if object.spec.unschedulable => {
            ("⊘ cordoned", VerdictSign::Unresolvable.scope())
        }
        Some(_) => ("✓ open", VerdictSign::Success.scope()),
    }
}

impl NodesView<'_> {
    fn node(&self, row: usize) -> Option<&Arc<NodeInfo>> {
        self.0.nodes.get(row)
    }
}

impl GridSource for NodesView<'_> {
    fn rows(&self) -> usize {
        self.0.nodes.len()
    }

    /// The last column is there only while some node keeps room for somebody.
    fn columns(&self) -> usize {
        7 + usize::from(!self.0.nominated.is_empty())
    }

    fn column(&self, column: usize) -> GridColumn {
        match column {
            0 => {
                let names = self.0.nodes.iter().map(|node| self.0.node_names.short(&node.name));
                GridColumn::fitted("node", NAMES, names.map(width).max().unwrap_or(0))
            }
            1 => GridColumn::text("state", 11),
            2 => GridColumn::number("used%", 6),
            3 => GridColumn::number("cpu", 11),
            4 => GridColumn::number("memory", 15),
            5 => GridColumn::number("pods", 8),
            6 => GridColumn::prose("taints", 16).from_tier(Tier::Standard),
            _ => GridColumn::number("nominated", 9),
        }
    }

    fn cell(&self, row: usize, column: usize, out: &mut CellOut) {
        let Some(node) = self.node(row) else { return };
        let (used, all) = (&node.requested, &node.allocatable);
        let text = match column {
            0 => self.0.node_names.short(&node.name).to_owned(),
            1 => {
                let (text, scope) = state(node);
                out.scope = scope;
                text.to_owned()
            }
            2 => used_percent(node).to_string(),
            3 => ratio("cpu", used.milli_cpu, all.milli_cpu),
            4 => ratio("memory", used.memory, all.memory),
            5 => ratio("pods", node.pods.len() as i64, all.allowed_pods),
            6 => taints(node).join(", "),
            _ => {
                out.scope = VerdictSign::Wait.scope();
                match self.0.nominated_to(node.name).count() {
                    0 => String::new(),
                    number => number.to_string(),
                }
            }
        };
        out.text.push_str(&text);
    }

    fn searched(&self, row: usize, column: usize, out: &mut CellOut) {
        match self.node(row).filter(|_| column == 0) {
            Some(node) => out.set(&node.name, Scope::Text),
            None => self.cell(row, column, out),
        }
    }

    /// Of an amount out of another one, the first counts.
    fn amount(&self, row: usize, column: usize) -> Option<i64> {
        let node = self.node(row)?;
        match column {
            3 => Some(node.requested.milli_cpu),
            4 => Some(node.requested.memory),
            5 => Some(node.pods.len() as i64),
            _ => None,
        }
    }

    fn has_break(&self, row: usize) -> bool {
        self.0.has_break(|| self.place(row, 0))
    }

    fn key(&self, row: usize) -> u64 {
        self.node(row).map_or(0, |n| u64::from(n.id.0))
    }

    fn is_failure(&self, row: usize) -> bool {
        let open = |n: &Arc<NodeInfo>| state(n).1 == VerdictSign::Success.scope();
        self.node(row).is_some_and(|n| !open(n) || !taints(n).is_empty())
    }

    fn has_labels(&self) -> bool {
        true
    }

    fn label(&self, row: usize, key: &str) -> Option<&str> {
        labels(self.node(row)?)?.get_str(key).map(|v| v.as_str())
    }
}

impl View for NodesView<'_> {
    fn place(&self, row: usize, _column: usize) -> Option<String> {
        Some(format!("node:{}", self.node(row)?.name))
    }

    fn title(&self) -> String {
        format!("Nodes: requested of allocatable{}", self.0.node_names.note())
    }

    fn empty(&self) -> String {
        "The cluster has no node.".into()
    }

    fn detail(&self, row: usize, _column: usize) -> Vec<DetailLine> {
        let Some(node) = self.node(row) else { return Vec::new() };
        let (text, scope) = state(node);
        let mut lines = vec![DetailLine::text(format!("{text}: {}", node.name)).scoped(scope)];
        lines.extend(resource_lines(&node.requested, &node.allocatable));
        lines.extend(nominated_lines(self.0, node));
        let taints = taints(node);
        if !taints.is_empty() {
            lines.push(DetailLine::field("taints", taints.join(", ")));
        }
        lines.extend(labels(node).map(|l| DetailLine::field("labels", shared::labels_text(l))));
        lines.push(DetailLine::field("pods", pods_text(node)));
        lines
    }

    /// The cycle that last put a pod there.
    fn moment(&self, row: usize, _column: usize) -> Option<CyclePosition> {
        self.0.start_of_last_cycle_on(self.node(row)?.name)
    }
}

/// Each resource: requested, allocatable, free.
fn resource_lines(used: &Resource, all: &Resource) -> Vec<DetailLine> {
    let mut lines = Vec::new();
    for (name, allocatable) in amount::parts(all) {
        let requested = used.amount(name.into());
        let show = |amount| amount::of(name, amount);
        let free = show(allocatable.saturating_sub(requested));
        let text = format!("{} requested of {}, {free} free", show(requested), show(allocatable));
        lines.push(DetailLine::field(name, text));
    }
    lines
}

/// For whom room is kept, and what that leaves to pods of a lower priority.
fn nominated_lines(model: &Model, node: &NodeInfo) -> Vec<DetailLine> {
    let mut free = node.allocatable.clone();
    free.accumulate(&node.requested, -1);
    let mut lines = Vec::new();
    for pod in model.nominated_to(node.name) {
        let request = &pod.resource.resource;
        free.accumulate(request, -1);
        let (key, priority) = (pod.key(), pod.priority());
        let text = format!("{key} (priority {priority}): {} reserved", amount::resources(request));
        lines.push(DetailLine::field("nominated", text).scoped(VerdictSign::Wait.scope()));
    }
    if !lines.is_empty() {
        let text = format!("{} for pods of a lower priority", amount::resources(&free));
        lines.push(DetailLine::field("then free", text));
    }
    lines
}

fn pods_text(node: &NodeInfo) -> String {
    let mut text = format!("{} of {}", node.pods.len(), node.allocatable.allowed_pods);
    for (i, pod) in node.pods.iter().enumerate() {
        // Writing into a String cannot fail.
        let _ = write!(text, "{}{}", if i == 0 { ": " } else { ", " }, pod.key());
    }
    text
}
