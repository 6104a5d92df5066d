//! The picture of the cluster that one scheduling cycle works on.
//!
//! It changes only between cycles, by [`Cache::update_snapshot`](crate::engine::cache::Cache).
//! Everything large is shared, so a copy costs a few pointers. Upstream:
//! `pkg/scheduler/backend/cache/snapshot.go`.

use std::collections::BTreeSet;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::api::Labels;
use crate::engine::framework::placement::Placement;
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
    /// The only nodes to consider, while a pod group is tried on them (C-038).
    pub(in crate::engine) placement: Option<Arc<Vec<NodeId>>>,
}

impl Snapshot {
    /// Restricts the nodes to consider. Plugins go on seeing all of them; only the search for
    /// a node keeps to the placement.
    ///
    /// # Errors
    /// A node that is not there, in upstream's words.
    pub(in crate::engine) fn assume_placement(
        &mut self,
        placement: &Placement,
    ) -> Result<(), String> {
        self.placement = None;
        if placement.nodes.len() == self.order.len() {
            return Ok(()); // no need to look which they are
        }
        let slot = |name: &Symbol| {
            let id = self.by_name.get(name).copied();
            id.ok_or_else(|| format!("node {name} in placement is not present in snapshot"))
        };
        let nodes: Result<Vec<NodeId>, String> = placement.nodes.iter().map(slot).collect();
        self.placement = Some(Arc::new(nodes?));
        Ok(())
    }

    /// The slots to consider, in node order.
    pub fn placement(&self) -> &Arc<Vec<NodeId>> {
        self.placement.as_ref().unwrap_or(&self.order)
    }

    /// Whether a slot is to be considered.
    pub fn is_in_placement(&self, id: NodeId) -> bool {
        self.placement.as_ref().is_none_or(|placement| placement.contains(&id))
    }

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::{Cluster, PodBuilder, info, node, pod};

    fn three() -> Snapshot {
        Cluster::new(["n1", "n2", "n3"].map(node), []).snapshot
    }

    fn placement(nodes: &[&str]) -> Placement {
        let nodes = nodes.iter().map(|node| Symbol::new(node)).collect();
        Placement { name: "p".into(), nodes }
    }

    fn names(snapshot: &Snapshot) -> Vec<&'static str> {
        let nodes = snapshot.placement().iter().filter_map(|id| snapshot.get(*id));
        nodes.map(|node| node.name.as_str()).collect()
    }

    #[test]
    fn a_placement_restricts_the_nodes_to_consider_and_nothing_else() {
        let mut snapshot = three();
        assert_eq!(names(&snapshot), ["n1", "n2", "n3"]);
        snapshot.assume_placement(&placement(&["n2", "n3"])).unwrap();
        assert_eq!(names(&snapshot), ["n2", "n3"]);
        assert!(!snapshot.is_in_placement(NodeId(0)) && snapshot.is_in_placement(NodeId(2)));
        assert_eq!((snapshot.len(), snapshot.iter().count()), (3, 3));
        snapshot.change_node("n2".into(), |node| node.add_pod(info(pod("a").on("n2"))));
        assert_eq!(snapshot.get(snapshot.placement()[0]).unwrap().pods.len(), 1);
        snapshot.placement = None;
        assert_eq!(names(&snapshot), ["n1", "n2", "n3"]);
    }

    #[test]
    fn a_placement_of_all_nodes_restricts_nothing() {
        let mut snapshot = three();
        snapshot.assume_placement(&placement(&["n1", "n2", "n3"])).unwrap();
        assert!(snapshot.placement.is_none());
    }

    #[test]
    fn a_placement_of_unknown_nodes_is_refused() {
        let mut snapshot = three();
        let text = "node n9 in placement is not present in snapshot";
        assert_eq!(snapshot.assume_placement(&placement(&["n9"])), Err(text.into()));
        assert_eq!(names(&snapshot).len(), 3);
    }
}
