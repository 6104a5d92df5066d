//! The nodes with what is requested of them and what is left.

use std::fmt::Write as _;

use super::View;
use crate::intern::Symbol;
use crate::tui::glyph::Verdict;
use crate::tui::layout::Tier;
use crate::tui::lines::Line;
use crate::tui::model::{Model, NodeRow};
use crate::tui::theme::Scope;
use crate::tui::widget::grid::{CellOut, Column, GridSource};

/// See the module.
pub struct NodesView<'a>(pub &'a Model);

/// The value of a label of a node called `name`.
pub(super) fn label_of<'a>(model: &'a Model, name: Symbol, key: &str) -> Option<&'a str> {
    let node = model.nodes.iter().find(|n| n.name == name)?;
    node.labels.get_str(key).map(|v| v.as_str())
}

impl NodesView<'_> {
    fn node(&self, row: usize) -> Option<&NodeRow> {
        self.0.nodes.get(row)
    }
}

/// `requested/allocatable` of a resource.
fn share(node: &NodeRow, resource: &str) -> String {
    let found = node.resources.iter().find(|(name, _, _)| name.as_str() == resource);
    found.map(|(_, used, all)| format!("{used}/{all}")).unwrap_or_default()
}

impl GridSource for NodesView<'_> {
    fn rows(&self) -> usize {
        self.0.nodes.len()
    }

    fn columns(&self) -> usize {
        7
    }

    fn column(&self, column: usize) -> Column {
        match column {
            0 => Column::name("node", 16, 36),
            1 => Column::text("state", 10),
            2 => Column::number("used%", 6),
            3 => Column::number("cpu", 13),
            4 => Column::number("memory", 17),
            5 => Column::number("pods", 8),
            _ => Column::prose("taints", 16).from_tier(Tier::Standard),
        }
    }

    fn cell(&self, row: usize, column: usize, out: &mut CellOut) {
        let Some(node) = self.node(row) else { return };
        // Writing into a cell cannot fail.
        let _ = match column {
            0 => out.write_str(&node.name),
            1 => {
                match node.unschedulable {
                    true => out.set("✗ cordoned", Verdict::Unresolvable.scope()),
                    false => out.set("✓ ready", Verdict::Success.scope()),
                }
                Ok(())
            }
            2 => write!(out, "{}", node.used_percent),
            3 => out.write_str(&share(node, "cpu")),
            4 => out.write_str(&share(node, "memory")),
            5 => out.write_str(&share(node, "pods")),
            _ => out.write_str(&node.taints.join(", ")),
        };
    }

    fn key(&self, row: usize) -> u64 {
        self.node(row).map_or(0, |n| super::pods::key_of_text(&n.name))
    }

    fn is_failure(&self, row: usize) -> bool {
        self.node(row).is_some_and(|n| n.unschedulable || !n.taints.is_empty())
    }

    fn label(&self, row: usize, key: &str) -> Option<&str> {
        self.node(row)?.labels.get_str(key).map(|v| v.as_str())
    }
}

impl View for NodesView<'_> {
    fn title(&self) -> String {
        "Nodes: requested of allocatable".into()
    }

    fn empty(&self) -> String {
        "The cluster has no node.".into()
    }

    fn detail(&self, row: usize, _column: usize) -> Vec<Line> {
        let Some(node) = self.node(row) else { return Vec::new() };
        let mut lines = vec![Line::heading(node.name)];
        for (name, used, all) in &node.resources {
            lines.push(Line::field(name, format!("{used} requested of {all}")));
        }
        if node.unschedulable {
            let text = "spec.unschedulable is set (cordoned)";
            lines.push(Line::field("cordoned", text).scoped(Scope::VerdictNever));
        }
        if !node.taints.is_empty() {
            lines.push(Line::field("taints", node.taints.join(", ")));
        }
        lines.push(Line::field("labels", super::pods::labels_text(&node.labels)));
        lines
    }
}
