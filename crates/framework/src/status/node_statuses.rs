//! Why each node was rejected: explicit statuses, and one for all other nodes.
//!
//! Also the message built from them: `0/3 nodes are available: …`. Upstream: `NodeToStatus`,
//! `Diagnosis` and `FitError` in `pkg/scheduler/framework/types.go`.

use std::sync::Arc;

use indexmap::IndexMap;

use crate::node::NodeId;
use crate::snapshot::Snapshot;
use crate::status::{Code, Status};
use kubestep_api::Name;
use kubestep_api::intern::Symbol;

/// A status per node; nodes without one share the absent status.
///
/// Thousands of nodes share a few statuses, so each distinct one is stored once and counted.
#[derive(Clone, Debug)]
pub struct NodeStatuses {
    /// By slot: 0 for the absent status, otherwise 1 + the index in `distinct`.
    numbers: Arc<Vec<u16>>,
    distinct: Vec<Distinct>,
    /// Names that are not nodes of the snapshot, with the index of their status.
    unknown: Vec<(Name, u16)>,
    explicit: usize,
    absent: Status,
}

/// A status that some nodes have.
#[derive(Clone, Debug)]
struct Distinct {
    status: Status,
    nodes: usize,
}

impl Default for NodeStatuses {
    fn default() -> NodeStatuses {
        let absent = Status::with_reasons(Code::UnschedulableAndUnresolvable, Vec::new());
        let (numbers, distinct, unknown) = Default::default();
        NodeStatuses { numbers, distinct, unknown, explicit: 0, absent }
    }
}

impl NodeStatuses {
    /// Sets the status of a node.
    pub fn set(&mut self, node: NodeId, status: Status) {
        let number = self.number_of(&status);
        self.set_number(node, number);
    }

    /// The number of a status, for [`NodeStatuses::set_number`]: 1 + its index in `distinct`.
    pub fn number_of(&mut self, status: &Status) -> u16 {
        let known = self.distinct.iter().position(|known| known.status == *status);
        let at = known.unwrap_or_else(|| {
            self.distinct.push(Distinct { status: status.clone(), nodes: 0 });
            self.distinct.len() - 1
        });
        // More distinct statuses than a u16 holds would need as many nodes, each with its own.
        u16::try_from(at + 1).unwrap_or(u16::MAX)
    }

    /// Sets the status of a node by its number.
    pub fn set_number(&mut self, node: NodeId, number: u16) {
        let numbers = Arc::make_mut(&mut self.numbers);
        if numbers.len() <= node.index() {
            numbers.resize(node.index() + 1, 0);
        }
        let before = std::mem::replace(&mut numbers[node.index()], number);
        self.recount(before, number);
    }

    /// Sets the status of a node that is only in an extender's answer: it counts like any other.
    pub fn set_unknown(&mut self, name: Name, status: &Status) {
        let index = self.number_of(status);
        let known = self.unknown.iter_mut().find(|(unknown_node, _)| *unknown_node == name);
        let before = known.map(|(_, known)| std::mem::replace(known, index));
        if before.is_none() {
            self.unknown.push((name, index));
        }
        self.recount(before.unwrap_or(0), index);
    }

    fn recount(&mut self, before: u16, index: u16) {
        match self.at_mut(before) {
            Some(distinct) => distinct.nodes -= 1,
            None => self.explicit += 1,
        }
        if let Some(distinct) = self.at_mut(index) {
            distinct.nodes += 1;
        }
    }

    fn at_mut(&mut self, index: u16) -> Option<&mut Distinct> {
        self.distinct.get_mut(usize::from(index).checked_sub(1)?)
    }

    /// Sets the status of all nodes without an explicit one.
    pub fn set_absent(&mut self, status: Status) {
        self.absent = status;
    }

    /// The status of all nodes without an explicit one.
    pub fn absent(&self) -> &Status {
        &self.absent
    }

    /// The status of a node.
    pub fn get(&self, node: NodeId) -> &Status {
        self.own(node).unwrap_or(&self.absent)
    }

    /// The status that a node has of its own.
    pub fn own(&self, node: NodeId) -> Option<&Status> {
        let index = self.numbers.get(node.index()).copied().unwrap_or(0);
        let distinct = usize::from(index).checked_sub(1).and_then(|at| self.distinct.get(at))?;
        Some(&distinct.status)
    }

    /// About how many bytes it takes.
    pub fn size(&self) -> usize {
        size_of_val(&self.numbers[..]) + size_of_val(&self.distinct[..])
    }

    /// Number of explicit statuses.
    pub fn len(&self) -> usize {
        self.explicit
    }

    /// Whether there are no explicit statuses.
    pub fn is_empty(&self) -> bool {
        self.explicit == 0
    }

    /// Whether a status, explicit or absent, has `code`.
    pub fn has_code(&self, code: Code) -> bool {
        self.absent.code() == code || self.distinct.iter().any(|known| known.status.code() == code)
    }

    /// The nodes whose status, explicit or absent, has `code`, in node order.
    pub fn with_code(&self, code: Code, snapshot: &Snapshot) -> Vec<NodeId> {
        if !self.has_code(code) {
            return Vec::new();
        }
        // By number, so that a large cluster is asked in one pass over small numbers.
        let of_distinct = self.distinct.iter().map(|known| known.status.code() == code);
        let has: Vec<bool> = [self.absent.code() == code].into_iter().chain(of_distinct).collect();
        let number = |node: &NodeId| self.numbers.get(node.index()).copied().unwrap_or(0);
        let has_code = |node: &NodeId| has.get(usize::from(number(node))).is_some_and(|has| *has);
        snapshot.order().iter().copied().filter(has_code).collect()
    }

    /// The message about all `nodes` nodes, without the message of PostFilter.
    pub(crate) fn fit_message(&self, nodes: usize) -> String {
        let mut counts: IndexMap<Symbol, usize> = IndexMap::new();
        for distinct in self.distinct.iter().filter(|distinct| distinct.nodes > 0) {
            for reason in distinct.status.reasons() {
                *counts.entry(*reason).or_default() += distinct.nodes;
            }
        }
        if self.len() < nodes {
            for reason in self.absent.reasons() {
                *counts.entry(*reason).or_default() += nodes - self.len();
            }
        }
        // Sorted as strings, so "10 x" comes before "2 y".
        let mut entries: Vec<String> =
            counts.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        entries.sort();
        match entries.is_empty() {
            true => fit_prefix(nodes),
            false => format!("{} {}.", fit_prefix(nodes), entries.join(", ")),
        }
    }
}

/// `0/N nodes are available:`
fn fit_prefix(nodes: usize) -> String {
    format!("0/{nodes} nodes are available:")
}

/// Why a pod did not fit: everything the failure handler needs.
#[derive(Clone, Default, Debug)]
pub struct Diagnosis {
    /// Why each node was rejected.
    pub statuses: NodeStatuses,
    /// The plugins that rejected nodes or the pod, in the order in which they first did.
    pub unschedulable_plugins: Vec<Symbol>,
    /// Those of them that returned Pending.
    pub pending_plugins: Vec<Symbol>,
    /// The message of PreFilter, if it rejected the pod.
    pub pre_filter_message: String,
    /// The message of PostFilter.
    pub post_filter_message: String,
}

impl Diagnosis {
    /// Records the plugin of a rejection.
    pub fn add_plugin_status(&mut self, status: &Status) {
        if status.plugin().is_empty() {
            return;
        }
        if status.is_rejected() {
            add_once(&mut self.unschedulable_plugins, status.plugin());
        }
        if status.code() == Code::Pending {
            add_once(&mut self.pending_plugins, status.plugin());
        }
    }

    /// The message about `nodes` nodes, as written into the pod's condition.
    pub fn message(&self, nodes: usize) -> String {
        let mut message = match self.pre_filter_message.is_empty() {
            true => self.statuses.fit_message(nodes),
            false => format!("{} {}.", fit_prefix(nodes), self.pre_filter_message),
        };
        if !self.post_filter_message.is_empty() {
            message.push(' ');
            message.push_str(&self.post_filter_message);
        }
        message
    }
}

/// Appends `plugin` unless it is in the list.
pub fn add_once(plugins: &mut Vec<Symbol>, plugin: Symbol) {
    if !plugins.contains(&plugin) {
        plugins.push(plugin);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejection(reasons: &[&str]) -> Status {
        let reasons = reasons.iter().map(|reason| Symbol::new(reason)).collect();
        Status::with_reasons(Code::Unschedulable, reasons)
    }

    #[test]
    fn reasons_are_counted_and_sorted_as_text() {
        let mut statuses = NodeStatuses::default();
        for node in 0..10 {
            statuses.set(NodeId(node), rejection(&["x"]));
        }
        statuses.set(NodeId(10), rejection(&["y", "x"]));
        assert_eq!(statuses.fit_message(11), "0/11 nodes are available: 1 y, 11 x.");
        statuses.set_absent(rejection(&["z"]));
        assert_eq!(statuses.fit_message(13), "0/13 nodes are available: 1 y, 11 x, 2 z.");
    }

    #[test]
    fn a_node_that_is_not_there_counts_once() {
        let mut statuses = NodeStatuses::default();
        statuses.set_unknown("s".into(), &rejection(&["x"]));
        statuses.set_unknown("s".into(), &rejection(&["y"]));
        statuses.set(NodeId(0), rejection(&["y"]));
        assert_eq!(statuses.len(), 2);
        assert_eq!(statuses.fit_message(1), "0/1 nodes are available: 2 y.");
    }

    #[test]
    fn without_reasons_nothing_follows() {
        assert_eq!(NodeStatuses::default().fit_message(2), "0/2 nodes are available:");
    }

    #[test]
    fn what_pre_filter_said_replaces_the_counts() {
        let diagnosis = Diagnosis {
            pre_filter_message: "not today".into(),
            post_filter_message: "not found".into(),
            ..Diagnosis::default()
        };
        assert_eq!(diagnosis.message(3), "0/3 nodes are available: not today. not found");
    }
}
