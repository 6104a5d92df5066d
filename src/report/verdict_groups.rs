//! Rows with the same verdicts as one.

use std::collections::HashMap;
use std::hash::{Hash as _, Hasher as _};

use kubestep_framework::node::NodeId;
use kubestep_framework::record::column::Column as Verdicts;
use kubestep_framework::record::{CycleRecord, VerdictId};
use kubestep_framework::status::Status;

/// Nodes with the same verdict of every plugin.
pub struct VerdictGroup {
    /// The same for the same verdicts.
    pub key: u64,
    /// The nodes, in the order of the cycle.
    pub nodes: Vec<NodeId>,
}

/// A large odd number: what is multiplied by it differs in all bits. Thousands of nodes are grouped for
/// a frame, which is too much for a hasher that withstands attacks.
const PRIME: u64 = 0x517c_c1b7_2722_0a95;

fn hash_of(name: &str) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

/// Nodes by what every plugin and the scheduler said of them: those that pass first, then the most.
/// Only the columns `shown` can differ from node to node.
pub fn groups_of(cycle: &CycleRecord, shown: &[usize]) -> Vec<VerdictGroup> {
    let filter = &cycle.filter;
    let plugins = shown.iter().filter_map(|at| filter.plugins.get(*at));
    let columns = plugins.map(|plugin| &plugin.verdicts).chain([&filter.verdicts]);
    let columns: Vec<&Verdicts<VerdictId>> = columns.collect();
    let mut places: HashMap<u64, usize> = HashMap::new();
    let mut groups: Vec<VerdictGroup> = Vec::new();
    for node in &cycle.nodes.order {
        let extender = filter.by_extender(*node).map(Status::plugin);
        let extender = extender.map_or(0, |name| hash_of(&name));
        let verdicts = columns.iter().map(|column| column.get(*node));
        let verdicts = verdicts.map(|id| id.map_or(u64::MAX, |id| u64::from(id.0)));
        let key =
            verdicts.fold(extender, |hash, id| (hash.rotate_left(5) ^ id).wrapping_mul(PRIME));
        let place = *places.entry(key).or_insert(groups.len());
        if place == groups.len() {
            groups.push(VerdictGroup { key, nodes: Vec::new() });
        }
        groups[place].nodes.push(*node);
    }
    let passes = |group: &VerdictGroup| {
        let first = group.nodes.first();
        first.and_then(|node| filter.verdicts.get(*node)) == Some(VerdictId::PASS)
    };
    groups.sort_by_key(|group| (!passes(group), std::cmp::Reverse(group.nodes.len())));
    groups
}
