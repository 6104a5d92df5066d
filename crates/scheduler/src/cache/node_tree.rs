//! The node order: nodes by zone, round robin over the zones.
//!
//! Upstream: `pkg/scheduler/backend/cache/node_tree.go`.

use hashbrown::HashSet;

use kubestep_api::{Name, Node};

/// Region and zone of a node, together the key of its group; both are empty without labels.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct NodeZone {
    region: Name,
    zone: Name,
}

impl NodeZone {
    /// The deprecated zone labels (`failure-domain.beta.kubernetes.io/…`) take precedence over
    /// `topology.kubernetes.io/…`.
    fn of(node: &Node) -> NodeZone {
        let labels = &node.metadata.labels;
        let label = |old: &str, current: &str| {
            labels.get_str(old).or_else(|| labels.get_str(current)).copied().unwrap_or_default()
        };
        NodeZone {
            region: label(
                "failure-domain.beta.kubernetes.io/region",
                "topology.kubernetes.io/region",
            ),
            zone: label("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
        }
    }
}

/// Names of nodes by zone; zones and names in the order they were added.
#[derive(Clone, Default, Debug)]
pub struct NodeTree {
    zones: Vec<(NodeZone, Vec<Name>)>,
    /// Every (zone, name) pair, for a fast lookup.
    members: HashSet<(NodeZone, Name)>,
}

impl NodeTree {
    pub fn count(&self) -> usize {
        self.members.len()
    }

    /// Adds a node at the end of its zone. A known node keeps its position.
    pub fn add(&mut self, node: &Node) {
        let (zone, name) = (NodeZone::of(node), node.metadata.name);
        let at = match self.zones.iter().position(|(other, _)| *other == zone) {
            Some(at) => at,
            None => {
                self.zones.push((zone, Vec::new()));
                self.zones.len() - 1
            }
        };
        if self.members.insert((zone, name)) {
            self.zones[at].1.push(name);
        }
    }

    /// Removes a node from the zone that the labels of `node` name, and the zone if it is empty
    /// then. `false` if the node is not in that zone.
    pub fn remove(&mut self, node: &Node) -> bool {
        let (zone, name) = (NodeZone::of(node), node.metadata.name);
        if !self.members.remove(&(zone, name)) {
            return false;
        }
        self.zones.iter_mut().filter(|(other, _)| *other == zone).for_each(|(_, names)| {
            names.retain(|other| *other != name);
        });
        self.zones.retain(|(_, names)| !names.is_empty());
        true
    }

    /// Moves a node whose zone changed to the end of its new zone.
    pub fn update(&mut self, old: &Node, new: &Node) {
        if NodeZone::of(old) != NodeZone::of(new) {
            self.remove(old);
        }
        self.add(new);
    }

    /// All names: the first of each zone, then the second of each, and so on.
    pub fn list(&self) -> Vec<Name> {
        let deepest = self.zones.iter().map(|(_, names)| names.len()).max().unwrap_or(0);
        let mut list = Vec::with_capacity(self.members.len());
        for depth in 0..deepest {
            list.extend(self.zones.iter().filter_map(|(_, names)| names.get(depth).copied()));
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, zone: &str) -> Node {
        let mut node = Node::default();
        node.metadata.name = name.into();
        node.metadata.labels.insert("topology.kubernetes.io/zone".into(), zone.into());
        node
    }

    #[test]
    fn zones_take_turns() {
        let mut tree = NodeTree::default();
        for (name, zone) in
            [("a1", "a"), ("a2", "a"), ("a3", "a"), ("b1", "b"), ("c1", "c"), ("c2", "c")]
        {
            tree.add(&node(name, zone));
        }
        assert_eq!(tree.list(), ["a1", "b1", "c1", "a2", "c2", "a3"]);
    }

    #[test]
    fn a_zone_that_comes_back_is_last() {
        let mut tree = NodeTree::default();
        tree.add(&node("a1", "a"));
        tree.add(&node("b1", "b"));
        assert!(tree.remove(&node("a1", "a")));
        assert!(!tree.remove(&node("a1", "a")));
        tree.add(&node("a1", "a"));
        assert_eq!(tree.list(), ["b1", "a1"]);
        assert_eq!(tree.count(), 2);
    }

    #[test]
    fn a_node_that_moves_goes_to_the_end_of_its_new_zone() {
        let mut tree = NodeTree::default();
        for (name, zone) in [("a1", "a"), ("b1", "b"), ("b2", "b")] {
            tree.add(&node(name, zone));
        }
        tree.update(&node("a1", "a"), &node("a1", "b"));
        assert_eq!(tree.list(), ["b1", "b2", "a1"]);
        tree.update(&node("b1", "b"), &node("b1", "b"));
        assert_eq!(tree.list(), ["b1", "b2", "a1"]);
    }

    #[test]
    fn the_old_zone_label_wins() {
        let mut tree = NodeTree::default();
        let mut old = node("x", "new");
        old.metadata.labels.insert("failure-domain.beta.kubernetes.io/zone".into(), "old".into());
        tree.add(&old);
        assert!(tree.remove(&old));
        tree.add(&old);
        assert!(!tree.remove(&node("x", "new")));
    }
}
