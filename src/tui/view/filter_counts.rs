//! What a filter plugin said over the evaluated nodes, counted.

use super::verdict;
use crate::report;
use crate::tui::glyph::VerdictSign;
use indexmap::IndexMap;
use kubestep_framework::record::{CycleRecord, FilterColumn, VerdictId};

/// The verdicts on the nodes, by slot; `None` where the slot holds no node.
pub fn verdicts_on_nodes(cycle: &CycleRecord) -> Vec<Option<VerdictId>> {
    let by_slot: Vec<VerdictId> = cycle.filter.verdicts.iter().collect();
    let order = &cycle.nodes.order;
    let mut on_nodes = vec![None; order.iter().map(|node| node.index() + 1).max().unwrap_or(0)];
    for node in order.iter() {
        on_nodes[node.index()] =
            Some(by_slot.get(node.index()).copied().unwrap_or(VerdictId::PASS));
    }
    on_nodes
}

/// A filter plugin's verdicts on the evaluated nodes, counted.
#[derive(Default)]
pub struct FilterCounts {
    /// How often each verdict that rejects was given.
    pub reasons: IndexMap<VerdictId, usize>,
    pub rejected: usize,
    skipped: usize,
    /// How many nodes it has a verdict on.
    pub asked: usize,
    /// Whether the plugin is opaque.
    pub is_unknown: bool,
}

impl FilterCounts {
    /// Whether it has nothing to check for this pod.
    pub fn is_skipped(&self) -> bool {
        self.asked > 0 && self.skipped == self.asked
    }

    /// How many of the nodes pass.
    pub fn passed(&self) -> usize {
        self.asked - self.rejected
    }

    /// On how many of the rejected nodes preemption can't help.
    pub fn unresolvable(&self, cycle: &CycleRecord) -> usize {
        let is_unresolvable =
            |id: &VerdictId| verdict::of_id(cycle, *id) == VerdictSign::Unresolvable;
        self.reasons.iter().filter(|(id, _)| is_unresolvable(id)).map(|(_, nodes)| nodes).sum()
    }

    /// Those of a column. `on_nodes` has the verdicts on the nodes, by slot.
    pub fn of(
        cycle: &CycleRecord,
        column: &FilterColumn,
        on_nodes: &[Option<VerdictId>],
    ) -> FilterCounts {
        let mut counts = FilterCounts::default();
        // A plugin's column holds all nodes, also those that were not evaluated.
        for ((own, on_node), nodes) in pairs_counted(column, on_nodes) {
            counts.is_unknown |= own == VerdictId::UNKNOWN;
            if on_node.is_not_evaluated() {
                continue;
            }
            let id = report::verdict::with_nominated(cycle, column.plugin, own, on_node);
            counts.asked += if id.is_not_evaluated() { 0 } else { nodes };
            counts.skipped += if id == VerdictId::SKIPPED { nodes } else { 0 };
            if id.is_status() {
                counts.rejected += nodes;
                *counts.reasons.entry(id).or_default() += nodes;
            }
        }
        counts
    }
}

/// How many nodes have which two verdicts: a plugin's, and the one on the node. There are few
/// different ones, and neighbours mostly have the same.
fn pairs_counted(
    column: &FilterColumn,
    on_nodes: &[Option<VerdictId>],
) -> IndexMap<(VerdictId, VerdictId), usize> {
    let mut counts = IndexMap::new();
    let (mut run, mut length) = (None, 0);
    let slots = column.verdicts.runs().flatten().zip(on_nodes);
    let pairs = slots.filter_map(|(own, on_node)| Some((*own, (*on_node)?)));
    for pair in pairs.map(Some).chain([None]) {
        if pair != run {
            if let Some(ended) = run {
                *counts.entry(ended).or_default() += length;
            }
            (run, length) = (pair, 0);
        }
        length += 1;
    }
    counts
}
