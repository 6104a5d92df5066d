//! The free resources of each node at any moment of the recording.
//!
//! A cycle changes one or a few nodes, so only the amounts that changed are stored, with the entry
//! since which they apply. Conditions and watches read them, forward and backward.

use std::sync::Arc;

use hashbrown::HashMap;

use kubestep_api::{Name, Node};
use kubestep_framework::node::{NodeId, NodeInfo};
use kubestep_framework::objects::shards::Shards;
use kubestep_framework::resource::Resource;

/// The amounts of a node, and its object.
#[derive(Clone, PartialEq, Debug)]
pub struct NodeAmounts {
    /// Allocatable minus requested. The number of pods is included, under the name `pods`.
    pub free: Resource,
    /// `status.allocatable` of the node.
    pub allocatable: Resource,
    /// The number of pods on it.
    pub pods: usize,
    /// The node; `None` for a deleted one that still has pods.
    pub object: Option<Arc<Node>>,
}

impl NodeAmounts {
    /// The amounts of a node.
    pub fn of(node: &NodeInfo) -> NodeAmounts {
        let pods = node.pods.len();
        let mut free = node.allocatable.clone();
        free.accumulate(&node.requested, -1);
        free.allowed_pods -= pods as i64;
        let (allocatable, object) = (node.allocatable.clone(), node.node.clone());
        NodeAmounts { free, allocatable, pods, object }
    }

    /// What its pods request.
    pub fn requested(&self) -> Resource {
        let mut requested = self.allocatable.clone();
        requested.accumulate(&self.free, -1);
        requested.allowed_pods = self.pods as i64;
        requested
    }
}

/// The versions of a node's amounts, each with the number of entries from which on it applies;
/// `None` once the node was deleted.
type Changes = Vec<(usize, Option<NodeAmounts>)>;

/// What applies to a node after some numbers of entries.
pub(crate) struct NodeVersion<'a> {
    /// The first of these numbers.
    pub since: usize,
    /// The number from which on another version applies; `None`: none so far.
    pub until: Option<usize>,
    pub amounts: &'a NodeAmounts,
}

/// The amounts of all nodes through the recording. A copy, for a branch, shares what does not
/// change after it.
#[derive(Clone, Default, Debug)]
pub struct Ledger {
    nodes: Shards<Name, Arc<Changes>>,
    /// The name of the last node with each id.
    names: Arc<HashMap<NodeId, Name>>,
}

impl Ledger {
    /// Stores the amounts of a node as they are after the first `len` entries.
    pub fn note(&mut self, id: NodeId, node: Option<&NodeInfo>, len: usize) {
        let Some(name) = node.map(|node| node.name).or_else(|| self.names.get(&id).copied()) else {
            return;
        };
        if self.names.get(&id) != Some(&name) {
            Arc::make_mut(&mut self.names).insert(id, name);
        }
        let amounts = node.map(NodeAmounts::of);
        let last = self.nodes.get(&name).and_then(|changes| changes.last());
        if last.is_some_and(|(_, before)| *before == amounts) {
            return;
        }
        let changes = Arc::make_mut(self.nodes.get_or_default(name));
        match changes.last_mut() {
            Some((at, before)) if *at >= len => *before = amounts,
            _ => {
                if changes.len() == changes.capacity() {
                    // Most nodes have few versions, and each takes 200 bytes.
                    changes.reserve_exact(1 + changes.len() / 2);
                }
                changes.push((len, amounts));
            }
        }
    }

    /// Drops what was stored after the first `len` entries.
    pub fn truncate(&mut self, len: usize) {
        let is_later = |changes: &Changes| changes.last().is_some_and(|(at, _)| *at > len);
        let later = self.nodes.iter().filter(|(_, changes)| is_later(changes));
        let later: Vec<Name> = later.map(|(name, _)| *name).collect();
        for name in later {
            let Some(changes) = self.nodes.get_mut(&name) else { continue };
            let keep = changes.partition_point(|(at, _)| *at <= len);
            match Arc::get_mut(changes) {
                Some(own) => own.truncate(keep),
                None => *changes = Arc::new(changes[..keep].to_vec()),
            }
        }
    }

    /// Drops what applied only before the first `len` entries.
    pub fn forget(&mut self, len: usize) {
        let is_old = |changes: &Changes| match &changes[..] {
            [(at, None)] => *at <= len,
            [_, (second, _), ..] => *second <= len,
            _ => false,
        };
        let old = self.nodes.iter().filter(|(_, changes)| is_old(changes));
        let old: Vec<Name> = old.map(|(name, _)| *name).collect();
        for name in old {
            let Some(changes) = self.nodes.get_mut(&name) else { continue };
            let held = changes.partition_point(|(at, _)| *at <= len).saturating_sub(1);
            Arc::make_mut(changes).drain(..held);
            if matches!(&changes[..], [(at, None)] if *at <= len) {
                self.nodes.remove(&name);
            }
        }
    }

    /// The number of stored amounts, of all nodes.
    pub fn count(&self) -> usize {
        self.nodes.values().map(|changes| changes.len()).sum()
    }

    /// The amounts of a node after the first `len` entries; `None` if it did not exist.
    pub fn after(&self, node: Name, len: usize) -> Option<&NodeAmounts> {
        self.version_after(node, len).map(|version| version.amounts)
    }

    /// Like [`Ledger::after`], with the numbers of entries from which and to which they apply.
    pub(crate) fn version_after(&self, node: Name, len: usize) -> Option<NodeVersion<'_>> {
        let changes = self.nodes.get(&node)?;
        // The newest is asked for most often.
        let at = match changes.last() {
            Some((at, _)) if *at <= len => changes.len() - 1,
            _ => changes.partition_point(|(at, _)| *at <= len).checked_sub(1)?,
        };
        let (since, amounts) = &changes[at];
        let until = changes.get(at + 1).map(|(at, _)| *at);
        Some(NodeVersion { since: *since, until, amounts: amounts.as_ref()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(cpu: i64) -> NodeInfo {
        let mut node = NodeInfo::new(NodeId(0), "n".into());
        node.allocatable.milli_cpu = cpu;
        node
    }

    fn cpu(ledger: &Ledger, len: usize) -> Option<i64> {
        ledger.after("n".into(), len).map(|amounts| amounts.free.milli_cpu)
    }

    #[test]
    fn every_moment_has_the_amounts_it_had() {
        let mut ledger = Ledger::default();
        for (len, milli) in [(0, 4), (3, 3), (3, 2), (5, 2), (7, 1)] {
            ledger.note(NodeId(0), Some(&node(milli)), len);
        }
        ledger.note(NodeId(0), None, 9);
        let seen: Vec<_> = (0..=9).map(|len| cpu(&ledger, len)).collect();
        let expected = [4, 4, 4, 2, 2, 2, 2, 1, 1].map(Some).into_iter().chain([None]);
        assert_eq!(seen, expected.collect::<Vec<_>>());
        let versions = [6, 3].map(|len| ledger.version_after("n".into(), len).unwrap());
        assert_eq!(versions.map(|version| version.since), [3, 3]);
        ledger.truncate(4);
        assert_eq!(cpu(&ledger, 9), Some(2));
        assert_eq!(cpu(&Ledger::default(), 0), None);
    }

    #[test]
    fn what_is_forgotten_leaves_what_held_then() {
        let mut ledger = Ledger::default();
        for (len, milli) in [(0, 4), (3, 3), (5, 2), (7, 1)] {
            ledger.note(NodeId(0), Some(&node(milli)), len);
        }
        ledger.forget(5);
        let seen: Vec<_> = (4..=7).map(|len| cpu(&ledger, len)).collect();
        assert_eq!((seen, ledger.count()), (vec![None, Some(2), Some(2), Some(1)], 2));
        ledger.note(NodeId(0), None, 9);
        ledger.forget(8);
        assert_eq!((cpu(&ledger, 8), cpu(&ledger, 9), ledger.count()), (Some(1), None, 2));
        ledger.forget(9);
        assert_eq!(ledger.count(), 0, "the node is deleted");
    }

    #[test]
    fn pods_count_against_what_is_free() {
        let mut info = node(1000);
        info.allocatable.allowed_pods = 10;
        info.requested.milli_cpu = 300;
        let amounts = NodeAmounts::of(&info);
        assert_eq!((amounts.free.milli_cpu, amounts.free.allowed_pods), (700, 10));
        assert_eq!(amounts.requested().milli_cpu, 300);
    }
}
