//! Rows with the same verdicts as one.

use std::collections::HashMap;
use std::hash::{Hash as _, Hasher as _};

use kubestep_framework::node::NodeId;
use kubestep_framework::record::column::Column as Verdicts;
use kubestep_framework::record::{CycleRecord, VerdictId};
use kubestep_framework::status::Status;

/// Nodes with the same verdict of every plugin.
pub struct Group {
    /// The same for the same verdicts.
    pub key: u64,
    /// In their order.
    pub nodes: Vec<NodeId>,
}

/// Nodes by what every plugin and the scheduler said of them: those that pass first, then the most.
/// Only the columns `shown` can differ from node to node.
pub fn groups_of(cycle: &CycleRecord, shown: &[usize]) -> Vec<Group> {
    let filter = &cycle.filter;
    let plugins = shown.iter().filter_map(|at| filter.plugins.get(*at));
    let columns = plugins.map(|plugin| &plugin.verdicts).chain([&filter.verdicts]);
    let columns: Vec<&Verdicts<VerdictId>> = columns.collect();
    let mut places: HashMap<u64, usize> = HashMap::new();
    let mut groups: Vec<Group> = Vec::new();
    for node in &cycle.nodes.order {
        let mut hasher = std::hash::DefaultHasher::new();
        columns.iter().for_each(|column| column.get(*node).hash(&mut hasher));
        filter.by_extender(*node).map(Status::plugin).hash(&mut hasher);
        let key = hasher.finish();
        let place = *places.entry(key).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Group { key, nodes: Vec::new() });
        }
        groups[place].nodes.push(*node);
    }
    let passes = |group: &Group| {
        let first = group.nodes.first();
        first.and_then(|node| filter.verdicts.get(*node)) == Some(VerdictId::PASS)
    };
    groups.sort_by_key(|group| (!passes(group), std::cmp::Reverse(group.nodes.len())));
    groups
}
