//! The snapshot of the cluster that one scheduling cycle works on.
//!
//! It changes only between cycles, when the scheduler's cache updates it. Everything large is
//! shared, so a copy costs a few pointers. Upstream: `pkg/scheduler/backend/cache/snapshot.go`.

pub mod pod_index;
pub mod positions;
pub mod topology;

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::node::{NodeId, NodeInfo};
use crate::pod::NamespacedName;
pub use crate::snapshot::pod_index::Listed;
use crate::snapshot::pod_index::PodIndex;
use crate::snapshot::topology::{TopologyColumn, TopologyColumns};
use kubestep_api::intern::Symbol;
use kubestep_api::{Labels, Name};

/// All nodes with their pods, as of the start of a cycle.
#[derive(Clone, Default, Debug)]
pub struct Snapshot {
    /// By slot; `None` for free slots and ghosts.
    nodes: Arc<Vec<Option<Arc<NodeInfo>>>>,
    /// Upstream's node order: round robin over the zones.
    order: Arc<Vec<NodeId>>,
    by_name: Arc<HashMap<Name, NodeId>>,
    /// Nodes with pods that have affinity, in order.
    with_affinity: Arc<Vec<NodeId>>,
    /// Nodes with pods that have required anti-affinity, in order.
    with_required_anti_affinity: Arc<Vec<NodeId>>,
    /// By slot: the position in the order; `u32::MAX` where the slot holds no node.
    ranks: Arc<Vec<u32>>,
    /// Persistent volume claims that pods in the snapshot use, with the number of nodes that have
    /// such pods. VolumeRestrictions rejects further users of a ReadWriteOncePod claim.
    used_claims: Arc<HashMap<NamespacedName, u32>>,
    pods: PodIndex,
    topology: TopologyColumns,
    /// The only nodes to consider, while a pod group is tried on a placement.
    placement: Option<Arc<Vec<NodeId>>>,
}

/// A set of nodes that a pod group might run on.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Placement {
    /// Its name, the value of the topology key; empty for all nodes.
    pub name: Name,
    /// Its nodes, in node order.
    pub nodes: Vec<Name>,
}

/// A node of a placement is not in the snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("node {0} in placement is not present in snapshot")]
pub struct UnknownNode(pub Name);

impl Snapshot {
    /// A snapshot of these nodes, in this order; slots as in the nodes' ids.
    #[cfg(any(test, feature = "testing"))]
    pub fn of(nodes: Vec<NodeInfo>) -> Snapshot {
        let mut snapshot = Snapshot::default();
        let order: Vec<NodeId> = nodes.iter().map(|node| node.id).collect();
        for node in nodes {
            snapshot.set_node(node.id, Some(Arc::new(node)));
        }
        snapshot.set_order(order.clone());
        order.into_iter().for_each(|id| snapshot.list(id));
        snapshot
    }

    /// Restricts the nodes to consider to a placement. As upstream, plugins still see all nodes;
    /// only the search for feasible nodes is restricted.
    ///
    /// # Errors
    /// A node of the placement is not in the snapshot.
    pub fn assume_placement(&mut self, placement: &Placement) -> Result<(), UnknownNode> {
        self.placement = None;
        if placement.nodes.len() == self.order.len() {
            return Ok(()); // all nodes, as upstream assumes from their number
        }
        let slot = |name: &Name| self.by_name.get(name).copied().ok_or(UnknownNode(*name));
        let nodes: Result<Vec<NodeId>, UnknownNode> = placement.nodes.iter().map(slot).collect();
        self.placement = Some(Arc::new(nodes?));
        Ok(())
    }

    /// Lifts the restriction to a placement.
    pub fn forget_placement(&mut self) {
        self.placement = None;
    }

    /// The only slots to consider, if the nodes are restricted.
    pub fn assumed_placement(&self) -> Option<&[NodeId]> {
        self.placement.as_deref().map(Vec::as_slice)
    }

    /// The slots to consider, in node order.
    pub fn placement(&self) -> &Arc<Vec<NodeId>> {
        self.placement.as_ref().unwrap_or(&self.order)
    }

    /// Whether a slot is to be considered.
    pub fn is_in_placement(&self, id: NodeId) -> bool {
        self.placement.as_ref().is_none_or(|placement| placement.contains(&id))
    }

    /// How many nodes there are, whatever the placement.
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

    /// By slot: the position in the node order; `u32::MAX` where the slot holds no node.
    pub fn ranks(&self) -> &Arc<Vec<u32>> {
        &self.ranks
    }

    /// The node in a slot.
    pub fn get(&self, id: NodeId) -> Option<&Arc<NodeInfo>> {
        self.nodes.get(id.index())?.as_ref()
    }

    /// The node of that name.
    pub fn by_name(&self, name: Name) -> Option<&Arc<NodeInfo>> {
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

    /// Number of slots that hold a node, including nodes that are not in the node order yet.
    pub fn filled_slots(&self) -> usize {
        self.by_name.len()
    }

    /// Sets the node in a slot, `None` when it was deleted. Everything derived from single nodes is
    /// updated; node order and lists are not, see [`Snapshot::set_order`] and [`Snapshot::list`].
    pub fn set_node(&mut self, id: NodeId, node: Option<Arc<NodeInfo>>) {
        self.count_claims(id, node.as_deref());
        let before = self.get(id).map(|before| before.name);
        match (before, &node) {
            (None, Some(node)) => {
                Arc::make_mut(&mut self.by_name).insert(node.name, id);
            }
            (Some(name), None) => {
                Arc::make_mut(&mut self.by_name).remove(&name);
            }
            _ => {}
        }
        self.put_node(id, node, Listed::BOTH);
    }

    /// Sets the node order, and sorts the lists of nodes with affinity accordingly.
    pub fn set_order(&mut self, order: Vec<NodeId>) {
        let mut ranks = vec![u32::MAX; self.nodes.len()];
        for (rank, id) in order.iter().enumerate() {
            ranks[id.index()] = rank as u32;
        }
        for list in [&mut self.with_affinity, &mut self.with_required_anti_affinity] {
            let list = Arc::make_mut(list);
            list.retain(|id| ranks[id.index()] != u32::MAX);
            list.sort_unstable_by_key(|id| ranks[id.index()]);
        }
        (self.order, self.ranks) = (Arc::new(order), Arc::new(ranks));
    }

    /// Adds a node to the lists of nodes with affinity to which it belongs, and removes it from the
    /// others. It must be in the node order.
    pub fn list(&mut self, id: NodeId) {
        let listed = self.get(id).map(|node| Listed::of(node)).unwrap_or_default();
        place(&mut self.with_affinity, &self.ranks, id, listed.with_affinity);
        let repels = listed.with_required_anti_affinity;
        place(&mut self.with_required_anti_affinity, &self.ranks, id, repels);
    }

    /// Updates the claim counts for a node that `after` is about to replace.
    fn count_claims(&mut self, id: NodeId, after: Option<&NodeInfo>) {
        let none = const { &BTreeMap::new() };
        let before = self.get(id).cloned();
        let old = before.as_ref().map_or(none, |node| &node.pvc_ref_counts);
        let new = after.map_or(none, |node| &node.pvc_ref_counts);
        for claim in new.keys().filter(|claim| !old.contains_key(claim)) {
            *Arc::make_mut(&mut self.used_claims).entry(*claim).or_default() += 1;
        }
        for claim in old.keys().filter(|claim| !new.contains_key(claim)) {
            let claims = Arc::make_mut(&mut self.used_claims);
            if claims.get_mut(claim).is_some_and(|nodes| {
                *nodes -= 1;
                *nodes == 0
            }) {
                claims.remove(claim);
            }
        }
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

    /// Changes a node in this snapshot alone, and returns its slot. Lists and order stay, so that,
    /// as upstream, pods with affinity on a node outside the lists are ignored.
    pub fn change_node(
        &mut self,
        name: Name,
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

    /// Each part of the snapshot that is derived from several nodes, and whether `other` shares it.
    #[cfg(any(test, feature = "testing"))]
    pub fn shared_with(&self, other: &Snapshot) -> [(&'static str, bool); 5] {
        [
            ("order", Arc::ptr_eq(&self.order, &other.order)),
            ("ranks", Arc::ptr_eq(&self.ranks, &other.ranks)),
            ("names", Arc::ptr_eq(&self.by_name, &other.by_name)),
            ("claims", Arc::ptr_eq(&self.used_claims, &other.used_claims)),
            ("terms", Arc::ptr_eq(&self.with_affinity, &other.with_affinity)),
        ]
    }

    /// Whether some pod in the snapshot uses the claim.
    pub fn is_claim_used(&self, claim: NamespacedName) -> bool {
        self.used_claims.contains_key(&claim)
    }
}

/// Adds a node to a list in node order, or removes it.
fn place(list: &mut Arc<Vec<NodeId>>, ranks: &[u32], id: NodeId, belongs: bool) {
    let rank = |id: &NodeId| ranks[id.index()];
    match (list.binary_search_by_key(&rank(&id), rank), belongs) {
        (Err(at), true) => Arc::make_mut(list).insert(at, id),
        (Ok(at), false) => drop(Arc::make_mut(list).remove(at)),
        _ => {}
    }
}

fn labels(node: Option<&NodeInfo>) -> Option<&Labels> {
    Some(&node?.node.as_ref()?.metadata.labels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Cluster, PodBuilder, info, node, pod};

    fn three() -> Snapshot {
        Cluster::new(["n1", "n2", "n3"].map(node), []).snapshot
    }

    fn placement(nodes: &[&str]) -> Placement {
        let nodes = nodes.iter().map(|node| Name::new(node)).collect();
        Placement { name: "p".into(), nodes }
    }

    fn names(snapshot: &Snapshot) -> Vec<String> {
        let nodes = snapshot.placement().iter().filter_map(|id| snapshot.get(*id));
        nodes.map(|node| node.name.to_string()).collect()
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
    fn a_placement_of_unknown_nodes_is_rejected() {
        let mut snapshot = three();
        let rejection = snapshot.assume_placement(&placement(&["n9"])).unwrap_err();
        assert_eq!(rejection.to_string(), "node n9 in placement is not present in snapshot");
        assert_eq!(names(&snapshot).len(), 3);
    }
}
