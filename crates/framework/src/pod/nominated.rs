//! Pods that are nominated to nodes, as one cycle sees them.
//!
//! Filters take them into account. Upstream: `NominatedPodsForNode` in
//! `pkg/scheduler/backend/queue/nominator.go`.

use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashMap};
use indexmap::IndexMap;

use crate::pod::PodInfo;
use kubestep_api::Name;

/// The pods nominated to one node, in the order nominated.
pub type NominatedToNode = Arc<Vec<Arc<PodInfo>>>;

type ByNode = IndexMap<Name, NominatedToNode, DefaultHashBuilder>;

/// Nominated pods by node, in the order nominated. As upstream, pods in flight are stubs: name,
/// namespace and UID only, with priority 0. No pod is nominated to the empty name.
///
/// A clone costs nothing, and shares what does not change.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct NominatedPods {
    by_node: Arc<ByNode>,
}

impl NominatedPods {
    /// Adds a pod at the end of its node's list.
    pub fn push(&mut self, node: Name, pod: Arc<PodInfo>) {
        let pods = Arc::make_mut(&mut self.by_node).entry(node).or_default();
        Arc::make_mut(pods).push(pod);
    }

    /// Removes the pod at a place in its node's list.
    pub fn remove(&mut self, node: Name, at: usize) {
        let by_node = Arc::make_mut(&mut self.by_node);
        let Some(pods) = by_node.get_mut(&node).filter(|pods| at < pods.len()) else { return };
        Arc::make_mut(pods).remove(at);
        if pods.is_empty() {
            by_node.shift_remove(&node);
        }
    }

    /// Replaces the pod at a place in its node's list. Nothing is copied if it is the same one.
    pub fn replace(&mut self, node: Name, at: usize, pod: Arc<PodInfo>) {
        let is_other = |old: &Arc<PodInfo>| !Arc::ptr_eq(old, &pod);
        if self.for_node(node).get(at).is_some_and(is_other)
            && let Some(pods) = Arc::make_mut(&mut self.by_node).get_mut(&node)
            && let Some(old) = Arc::make_mut(pods).get_mut(at)
        {
            *old = pod;
        }
    }

    /// The pods nominated to `node`.
    pub fn for_node(&self, node: Name) -> &[Arc<PodInfo>] {
        self.by_node.get(&node).map_or(&[], |pods| pods.as_slice())
    }

    /// To how many nodes pods are nominated.
    pub fn node_count(&self) -> usize {
        self.by_node.len()
    }

    /// Whether no pod is nominated to a node.
    pub fn is_empty(&self) -> bool {
        self.by_node.is_empty()
    }

    /// The nodes whose nominated pods are not those of `before`. Lists that are shared are not
    /// compared pod by pod.
    pub fn changed_since(&self, before: &NominatedPods) -> Vec<Name> {
        if Arc::ptr_eq(&self.by_node, &before.by_node) {
            return Vec::new();
        }
        let is_same = |(a, b): &((Name, &NominatedToNode), (Name, &NominatedToNode))| {
            a.0 == b.0 && Arc::ptr_eq(a.1, b.1)
        };
        let first = self.iter().zip(before.iter()).take_while(is_same).count();
        let shorter = self.by_node.len().min(before.by_node.len());
        let last = self.iter().rev().zip(before.iter().rev()).take_while(is_same).count();
        let last = last.min(shorter - first);
        let between = |pods: &NominatedPods| first..pods.by_node.len() - last;
        let (now, then) = (&self.by_node[between(self)], &before.by_node[between(before)]);
        let known: HashMap<&Name, &NominatedToNode> = then.iter().collect();
        let is_new = |(node, pods): &(&Name, &NominatedToNode)| {
            known.get(node).is_none_or(|before| !Arc::ptr_eq(before, pods))
        };
        let new = now.iter().filter(is_new).map(|(node, _)| *node);
        let removed = then.keys().filter(|node| !self.by_node.contains_key(*node)).copied();
        new.chain(removed).collect()
    }

    /// All nodes with their nominated pods.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (Name, &NominatedToNode)> {
        self.by_node.iter().map(|(node, pods)| (*node, pods))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{info, pod};

    const NODES: [&str; 4] = ["a", "b", "c", "d"];

    #[test]
    fn without_the_last_pod_of_a_node_nothing_is_nominated() {
        let mut nominated = NominatedPods::default();
        assert!(nominated.is_empty());
        nominated.push("n".into(), info(pod("p")));
        assert!(!nominated.is_empty());
        nominated.remove("n".into(), 0);
        assert!(nominated.is_empty());
    }

    proptest! {
        #[test]
        fn the_changed_nodes_are_those_with_other_pods(
            before in prop::collection::vec((0..NODES.len(), 0..3_usize), 0..12),
            after in prop::collection::vec((0..NODES.len(), 0..3_usize), 0..6),
        ) {
            let mut nominated = NominatedPods::default();
            let change = |nominated: &mut NominatedPods, (node, what): (usize, usize)| {
                let node = Name::new(NODES[node]);
                match what {
                    0 => nominated.push(node, info(pod("p"))),
                    1 => nominated.remove(node, 0),
                    _ => nominated.replace(node, 0, info(pod("q"))),
                }
            };
            before.into_iter().for_each(|it| change(&mut nominated, it));
            let old = nominated.clone();
            after.into_iter().for_each(|it| change(&mut nominated, it));
            let mut changed = nominated.changed_since(&old);
            changed.sort_unstable();
            let differs = |node: &Name| {
                let same = |(a, b): (&Arc<PodInfo>, &Arc<PodInfo>)| Arc::ptr_eq(a, b);
                let (old, new) = (old.for_node(*node), nominated.for_node(*node));
                old.len() != new.len() || !old.iter().zip(new).all(same)
            };
            let names = NODES.iter().map(|name| Name::new(name));
            let differing: Vec<Name> = names.filter(differs).collect();
            prop_assert_eq!(differing, changed);
            prop_assert!(old.changed_since(&old.clone()).is_empty());
        }
    }
}
