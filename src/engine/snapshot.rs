//! The picture of the cluster that one scheduling cycle works on.
//!
//! It changes only between cycles, by [`Cache::update_snapshot`](crate::engine::cache::Cache).
//! Everything large is shared, so a copy costs a few pointers. Upstream:
//! `pkg/scheduler/backend/cache/snapshot.go`.

use std::collections::BTreeSet;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::api::Labels;
use crate::engine::node::{NodeId, NodeInfo};
use crate::engine::pod::NamespacedName;
use crate::engine::pod_index::{Listed, PodIndex};
use crate::engine::topology::{TopologyColumn, TopologyColumns};
use crate::intern::Symbol;

/// All nodes with their pods, as of the start of a cycle.
#[derive(Clone, Default, Debug)]
pub struct Snapshot {
    /// By slot; `None` where a slot holds no (real) node.
    pub(in crate::engine) nodes: Arc<Vec<Option<Arc<NodeInfo>>>>,
    /// Upstream's node order: zones in turn (C-022).
    pub(in crate::engine) order: Arc<Vec<NodeId>>,
    pub(in crate::engine) by_name: Arc<HashMap<Symbol, NodeId>>,
    /// Nodes with pods that have affinity, in order.
    pub(in crate::engine) with_affinity: Arc<Vec<NodeId>>,
    /// Nodes with pods that have required anti-affinity, in order.
    pub(in crate::engine) with_required_anti_affinity: Arc<Vec<NodeId>>,
    /// Claims that some pod in the snapshot names (VR-002).
    pub(in crate::engine) used_claims: Arc<BTreeSet<NamespacedName>>,
    pub(in crate::engine) pods: PodIndex,
    pub(in crate::engine) topology: TopologyColumns,
}

impl Snapshot {
    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there is no node.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Number of slots: columns indexed by [`NodeId`] have this length.
    pub fn slots(&self) -> usize {
        self.nodes.len()
    }

    /// The slots in node order.
    pub fn order(&self) -> &Arc<Vec<NodeId>> {
        &self.order
    }

    /// The node in a slot.
    pub fn get(&self, id: NodeId) -> Option<&Arc<NodeInfo>> {
        self.nodes.get(id.index())?.as_ref()
    }

    /// The node of that name.
    pub fn by_name(&self, name: Symbol) -> Option<&Arc<NodeInfo>> {
        self.get(*self.by_name.get(&name)?)
    }

    /// All nodes in node order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<NodeInfo>> {
        self.order.iter().filter_map(|id| self.get(*id))
    }

    /// Nodes that have pods with any pod affinity or anti-affinity.
    pub fn with_affinity(&self) -> impl Iterator<Item = &Arc<NodeInfo>> {
        self.with_affinity.iter().filter_map(|id| self.get(*id))
    }

    /// Nodes that have pods with required anti-affinity.
    pub fn with_required_anti_affinity(&self) -> impl Iterator<Item = &Arc<NodeInfo>> {
        self.with_required_anti_affinity.iter().filter_map(|id| self.get(*id))
    }

    /// Where the pods of each class are.
    pub fn pods(&self) -> &PodIndex {
        &self.pods
    }

    /// The domain of each node for a topology key.
    pub fn topology(&self, key: Symbol) -> Arc<TopologyColumn> {
        self.topology.get(key, self)
    }

    /// Puts a node's new state into its slot, `None` when it is gone. Everything that is
    /// derived from single nodes follows; the lists do not.
    pub(in crate::engine) fn set_node(&mut self, id: NodeId, node: Option<Arc<NodeInfo>>) {
        self.put_node(id, node, Listed::BOTH);
    }

    fn put_node(&mut self, id: NodeId, node: Option<Arc<NodeInfo>>, listed: Listed) {
        let slots = Arc::make_mut(&mut self.nodes);
        if slots.len() <= id.index() {
            slots.resize(id.index() + 1, None);
        }
        let before = std::mem::replace(&mut slots[id.index()], node);
        let after = slots[id.index()].as_deref();
        self.pods.replace(before.as_deref(), after, listed);
        if labels(before.as_deref()) != labels(after) {
            self.topology = TopologyColumns::default();
        }
    }

    /// Changes a node in this snapshot alone, and says which it was. Lists and order stay, so
    /// that pods with affinity on a node outside the lists are not seen there, as upstream.
    pub(in crate::engine) fn change_node(
        &mut self,
        name: Symbol,
        change: impl FnOnce(&mut NodeInfo),
    ) -> Option<NodeId> {
        let id = *self.by_name.get(&name)?;
        let mut node = NodeInfo::clone(self.get(id)?);
        change(&mut node);
        let listed = Listed {
            with_affinity: self.with_affinity.contains(&id),
            with_required_anti_affinity: self.with_required_anti_affinity.contains(&id),
        };
        self.put_node(id, Some(Arc::new(node)), listed);
        Some(id)
    }

    /// Whether some pod in the snapshot names the claim.
    pub fn is_claim_used(&self, claim: NamespacedName) -> bool {
        self.used_claims.contains(&claim)
    }
}

fn labels(node: Option<&NodeInfo>) -> Option<&Labels> {
    Some(&node?.node.as_ref()?.metadata.labels)
}
