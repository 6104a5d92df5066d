//! Two nodes side by side: what every filter and score of the cycle at the position said of each, what was
//! free on them then and is now, and how their labels and taints differ.

use crate::report;
use std::sync::Arc;

use super::glyph::{DIFFERS, VerdictSign};
use super::theme::Scope;
use super::view::verdict;
use super::widget::grid::{CellWriter, GridColumn, GridSource};
use kubestep_api::Name;
use kubestep_framework::node::{NodeId, NodeInfo};
use kubestep_framework::record::{CycleRecord, VerdictId};
use kubestep_framework::resource::amount;

/// A text and its style.
type Cell = (String, Scope);

/// A table in a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    headings: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    fn heading(&mut self, text: &str) {
        self.rows.push(vec![(text.to_owned(), Scope::TextStrong)]);
    }

    /// A row, with a sign where its two values differ.
    fn pair(&mut self, label: impl Into<String>, a: Cell, b: Cell) {
        let sign = if a.0 == b.0 { "" } else { DIFFERS };
        let sign = (sign.to_owned(), Scope::VerdictWait);
        self.rows.push(vec![(format!("  {}", label.into()), Scope::Text), sign, a, b]);
    }
}

impl GridSource for Table {
    fn rows(&self) -> usize {
        self.rows.len()
    }
    fn columns(&self) -> usize {
        self.headings.len()
    }
    fn column(&self, column: usize) -> GridColumn {
        let title = self.headings.get(column).map(String::as_str).unwrap_or_default();
        match column {
            0 => GridColumn::name(title, 20, 31),
            1 => GridColumn::text(title, 1),
            // Both values have the same room.
            2 => GridColumn {
                width: super::widget::grid::Width::Between(22, 34),
                ..GridColumn::prose(title, 22)
            },
            _ => GridColumn::prose(title, 22),
        }
    }
    fn cell(&self, row: usize, column: usize, out: &mut CellWriter) {
        if let Some((text, scope)) = self.rows.get(row).and_then(|row| row.get(column)) {
            out.set(text, *scope);
        }
    }
    fn is_failure(&self, row: usize) -> bool {
        self.rows.get(row).and_then(|row| row.get(1)).is_some_and(|(sign, _)| !sign.is_empty())
    }
}

/// A node, as it was when the cycle on show began if there is one, and as it is at the position.
#[derive(Clone, Debug, Default)]
pub struct NodeAtTimes {
    /// When the cycle began.
    pub before: Option<Arc<NodeInfo>>,
    /// The node at the position; `None` if it does not exist there.
    pub now: Option<Arc<NodeInfo>>,
}

/// Nodes `a` and `b` in a cycle, and what is free on them.
pub fn nodes(cycle: Option<&CycleRecord>, names: [Name; 2], [a, b]: &[NodeAtTimes; 2]) -> Table {
    let headings = ["", "", &names[0].text(), &names[1].text()].map(str::to_owned).to_vec();
    let mut table = Table { headings, rows: Vec::new() };
    let before = a.before.as_deref().zip(b.before.as_deref());
    let now = a.now.as_deref().zip(b.now.as_deref());
    if let Some(cycle) = cycle {
        let slot =
            |name: Name| cycle.nodes.order.iter().copied().find(|id| cycle.nodes.name(*id) == name);
        if let (Some(a), Some(b)) = (slot(names[0]), slot(names[1])) {
            filters(&mut table, cycle, a, b);
            scores(&mut table, cycle, a, b);
        }
        if let Some((a, b)) = before {
            table.heading(&format!("Free before cycle {}", cycle.cycle));
            resources(&mut table, a, b);
        }
    }
    let changed = |(one, other): (&NodeInfo, &NodeInfo)| {
        one.requested != other.requested || one.pods.len() != other.pods.len()
    };
    let is_same = |(before, now): ((&NodeInfo, &NodeInfo), (&NodeInfo, &NodeInfo))| {
        !changed((before.0, now.0)) && !changed((before.1, now.1))
    };
    if let Some((a, b)) = now {
        if !before.is_some_and(|before| is_same((before, (a, b)))) {
            table.heading("Free now");
            resources(&mut table, a, b);
        }
        objects(&mut table, a, b);
    }
    table
}

fn filters(table: &mut Table, cycle: &CycleRecord, a: NodeId, b: NodeId) {
    table.heading(&format!("Filter in cycle {}", cycle.cycle));
    let cell = |id: Option<VerdictId>| match id {
        Some(id) => {
            let verdict = verdict::of_id(cycle, id);
            let why = match id.is_status() {
                true => format!(": {}", report::verdict::explain(cycle, id)),
                false => String::new(),
            };
            (format!("{} {}{why}", verdict.glyph(), verdict.word()), verdict.scope())
        }
        None => (VerdictSign::NotEvaluated.glyph().to_owned(), VerdictSign::NotEvaluated.scope()),
    };
    let verdicts = &cycle.filter.verdicts;
    table.pair("verdict", cell(verdicts.get(a)), cell(verdicts.get(b)));
    for column in &cycle.filter.plugins {
        let said = |node| cell(report::verdict::of_plugin(cycle, column, node));
        table.pair(column.plugin.as_str(), said(a), said(b));
    }
}

fn scores(table: &mut Table, cycle: &CycleRecord, a: NodeId, b: NodeId) {
    let place = |node: NodeId| cycle.feasible.iter().position(|id| *id == node);
    if cycle.score.plugins.is_empty() {
        return;
    }
    table.heading("Score, raw→norm→×w");
    let (a, b) = (place(a), place(b));
    for column in &cycle.score.plugins {
        let cell = |at: Option<usize>| {
            let numbers = at.and_then(|at| Some((column.raw.get(at)?, column.normalized.get(at)?)));
            match numbers {
                Some((raw, normalized)) => {
                    let weighted = normalized * column.weight;
                    (format!("{raw}→{normalized}→{weighted}"), Scope::of_score(normalized))
                }
                None => ("not scored".to_owned(), Scope::TextDim),
            }
        };
        table.pair(format!("{} ×{}", column.plugin, column.weight), cell(a), cell(b));
    }
    let total = |at: Option<usize>| match at.and_then(|at| cycle.score.totals.get(at)) {
        Some(total) => (total.to_string(), Scope::TextStrong),
        None => ("not scored".to_owned(), Scope::TextDim),
    };
    table.pair("total", total(a), total(b));
}

/// Of each resource that one of them has: what is free of the allocatable amount.
fn resources(table: &mut Table, a: &NodeInfo, b: &NodeInfo) {
    let mut names: Vec<&str> =
        amount::parts(&a.allocatable).into_iter().map(|(name, _)| name).collect();
    let others = amount::parts(&b.allocatable);
    names.extend(others.into_iter().map(|(name, _)| name));
    let mut seen = Vec::new();
    for name in names {
        if seen.contains(&name) {
            continue;
        }
        seen.push(name);
        let cell = |node: &NodeInfo| {
            let all = node.allocatable.amount(name.into());
            let free = all.saturating_sub(node.requested.amount(name.into()));
            (format!("{} of {}", amount::of(name, free), amount::of(name, all)), Scope::Text)
        };
        table.pair(name, cell(a), cell(b));
    }
    let pods = |node: &NodeInfo| {
        let all = node.allocatable.allowed_pods;
        let free = all.saturating_sub(node.pods.len() as i64);
        (format!("{free} of {all}"), Scope::Text)
    };
    table.pair("pods", pods(a), pods(b));
}

/// Taints, and those labels that differ.
fn objects(table: &mut Table, a: &NodeInfo, b: &NodeInfo) {
    table.heading("Taints and labels");
    let taints = |node: &NodeInfo| match super::view::taints(node).as_slice() {
        [] => ("none".to_owned(), Scope::TextDim),
        list => (list.join(", "), Scope::Text),
    };
    table.pair("taints", taints(a), taints(b));
    let labels = |node: &NodeInfo| -> Vec<(String, String)> {
        let object = node.node.as_ref();
        let labels = object.into_iter().flat_map(|node| node.metadata.labels.iter());
        labels.map(|(key, value)| (key.to_string(), value.to_string())).collect()
    };
    let (a, b) = (labels(a), labels(b));
    let mut keys: Vec<&String> = a.iter().chain(&b).map(|(key, _)| key).collect();
    keys.sort_unstable();
    keys.dedup();
    let value = |list: &[(String, String)], key: &str| {
        let found = list.iter().find(|(other, _)| other == key).map(|(_, value)| value.clone());
        found.map_or(("not set".to_owned(), Scope::TextDim), |value| (value, Scope::Text))
    };
    for key in keys {
        let (a, b) = (value(&a, key), value(&b, key));
        if a != b {
            table.pair(key.as_str(), a, b);
        }
    }
}
