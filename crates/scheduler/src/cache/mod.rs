//! The scheduler's cache: nodes, bound pods, and assumed pods whose binding is not confirmed yet.
//!
//! Upstream: `pkg/scheduler/backend/cache/cache.go`. Assumed pods do not expire, as in 1.36.

mod images;
mod node_tree;
mod refresh;

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;

use images::Images;
use kubestep_api::{Name, Node, Pod, Uid};
use kubestep_config::FeatureGates;
use kubestep_framework::node::{NodeId, NodeInfo};
use kubestep_framework::objects::shards::Shards;
use kubestep_framework::pod::{NamespacedName, PodInfo};
use node_tree::NodeTree;

/// Why the cache does not accept a change, in upstream's words. It is as before then.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CacheError {
    /// The node is not in the cache.
    #[error("node {0} is not found")]
    UnknownNode(Name),
    /// The node is in another zone than its labels name. It is removed nevertheless.
    #[error("node {0:?} in group was not found")]
    OtherZone(Name),
    /// The pod to assume is in the cache already.
    #[error("pod {uid}({key}) is in the cache, so can't be assumed")]
    Present {
        /// The UID of the pod.
        uid: Uid,
        /// Its namespace and name.
        key: NamespacedName,
    },
    /// The pod to forget is assumed on another node.
    #[error("pod {uid}({key}) was assumed on {given} but assigned to {recorded}")]
    OtherNode {
        /// The UID of the pod.
        uid: Uid,
        /// Its namespace and name.
        key: NamespacedName,
        /// The node of the pod to forget.
        given: Name,
        /// The node in the cache.
        recorded: Name,
    },
    /// The pod to forget is bound.
    #[error("pod {uid}({key}) wasn't assumed so cannot be forgotten")]
    NotAssumed {
        /// The UID of the pod.
        uid: Uid,
        /// Its namespace and name.
        key: NamespacedName,
    },
    /// The pod to update is only assumed.
    #[error("assumed pod {uid}({key}) should not be updated")]
    Assumed {
        /// The UID of the pod.
        uid: Uid,
        /// Its namespace and name.
        key: NamespacedName,
    },
    /// The pod to update is not in the cache.
    #[error("pod {uid}({key}) is not added to scheduler cache, so cannot be updated")]
    NotAdded {
        /// The UID of the pod.
        uid: Uid,
        /// Its namespace and name.
        key: NamespacedName,
    },
    /// The pod to remove is not in the cache.
    #[error("pod {uid}({key}) is not found in scheduler cache, so cannot be removed from it")]
    NotFound {
        /// The UID of the pod.
        uid: Uid,
        /// Its namespace and name.
        key: NamespacedName,
    },
}

fn key_of(pod: &Pod) -> NamespacedName {
    NamespacedName::new(pod.metadata.namespace, pod.metadata.name)
}

/// A pod in the cache.
#[derive(Clone, Debug)]
struct CachedPod {
    pod: Arc<PodInfo>,
    assumed: bool,
}

/// Nodes and the pods on them.
#[derive(Clone, Default, Debug)]
pub struct Cache {
    /// By slot. A slot keeps its node name until the snapshot has dropped the node.
    nodes: Vec<Option<Arc<NodeInfo>>>,
    slots: Arc<HashMap<Name, NodeId>>,
    free: Vec<NodeId>,
    tree: Arc<NodeTree>,
    images: Images,
    pods: Shards<Uid, CachedPod>,
    /// Slots of deleted nodes and ghosts with their former names. They are freed once the snapshot
    /// no longer uses them.
    vanished: BTreeMap<NodeId, Name>,
    /// Slots that changed since the last refresh of the snapshot, in order of change.
    changed: Vec<NodeId>,
    generation: u64,
}

impl Cache {
    /// Adds or replaces a node. Pods that were bound to that name earlier are on it.
    pub(crate) fn add_node(&mut self, node: Arc<Node>) {
        self.put_node(node, |tree, _, new| tree.add(new));
    }

    pub(crate) fn update_node(&mut self, node: Arc<Node>) {
        self.put_node(node, |tree, old, new| match old {
            Some(old) => tree.update(old, new),
            None => tree.add(new),
        });
    }

    fn put_node(&mut self, node: Arc<Node>, place: impl Fn(&mut NodeTree, Option<&Node>, &Node)) {
        let id = self.slot(node.metadata.name);
        let old = self.node_mut(id).node.clone();
        if let Some(old) = &old {
            self.images.remove_node(old);
        }
        place(Arc::make_mut(&mut self.tree), old.as_deref(), &node);
        self.images.add_node(&node);
        self.node_mut(id).set_node(node);
    }

    /// Removes a node. While pods are on it, it stays as a ghost: an entry without a node object.
    ///
    /// # Errors
    /// The node is not in the cache, or not in the zone that its labels name.
    pub(crate) fn remove_node(&mut self, node: &Node) -> Result<(), CacheError> {
        let name = node.metadata.name;
        let missing = || CacheError::UnknownNode(name);
        let id = *self.slots.get(&name).ok_or_else(missing)?;
        let info = self.nodes[id.index()].as_ref().filter(|info| info.node.is_some());
        let held = info.ok_or_else(missing)?.node.clone();
        self.node_mut(id).node = None;
        self.drop_if_unused(id);
        if !Arc::make_mut(&mut self.tree).remove(node) {
            return Err(CacheError::OtherZone(name));
        }
        if let Some(held) = held {
            self.images.remove_node(&held);
        }
        Ok(())
    }

    /// Puts a pod on its node before the binding is confirmed.
    ///
    /// # Errors
    /// The pod is already in the cache.
    pub(crate) fn assume_pod(&mut self, pod: Arc<PodInfo>) -> Result<(), CacheError> {
        if self.pods.contains_key(&pod.uid()) {
            return Err(CacheError::Present { uid: pod.uid(), key: pod.key() });
        }
        self.insert_pod(pod, true);
        Ok(())
    }

    /// Removes an assumed pod. An unknown pod is not an error.
    ///
    /// # Errors
    /// The pod is assumed on another node, or not assumed at all.
    pub(crate) fn forget_pod(&mut self, pod: &PodInfo) -> Result<(), CacheError> {
        let (uid, key) = (pod.uid(), pod.key());
        let Some(state) = self.pods.get(&uid) else { return Ok(()) };
        let (given, recorded) = (pod.pod.spec.node_name, state.pod.pod.spec.node_name);
        if given != recorded {
            return Err(CacheError::OtherNode { uid, key, given, recorded });
        }
        if !state.assumed {
            return Err(CacheError::NotAssumed { uid, key });
        }
        self.take_pod(uid);
        Ok(())
    }

    /// Adds a bound pod. If it was assumed, this confirms it.
    pub fn add_pod(&mut self, pod: Arc<PodInfo>) {
        let known = self.pods.get(&pod.uid()).map(|state| state.assumed);
        match known {
            Some(false) => {} // already added: upstream only logs it
            Some(true) => {
                self.take_pod(pod.uid());
                self.insert_pod(pod, false);
            }
            None => self.insert_pod(pod, false),
        }
    }

    /// Replaces a bound pod. The new object may have another UID.
    ///
    /// # Errors
    /// The pod is not in the cache, or it is only assumed.
    pub(crate) fn update_pod(&mut self, old: &Pod, pod: Arc<PodInfo>) -> Result<(), CacheError> {
        let (uid, key) = (old.metadata.uid, key_of(old));
        match self.pods.get(&uid) {
            None => Err(CacheError::NotAdded { uid, key }),
            Some(state) if state.assumed => Err(CacheError::Assumed { uid, key }),
            Some(_) => {
                self.take_pod(uid);
                self.insert_pod(pod, false);
                Ok(())
            }
        }
    }

    /// Removes a pod, bound or assumed.
    ///
    /// # Errors
    /// The pod is not in the cache.
    pub fn remove_pod(&mut self, pod: &Pod) -> Result<Arc<PodInfo>, CacheError> {
        let uid = pod.metadata.uid;
        let key = key_of(pod);
        self.take_pod(uid).ok_or(CacheError::NotFound { uid, key })
    }

    /// Whether the pod is assumed.
    pub(crate) fn is_assumed(&self, uid: Uid) -> bool {
        self.pods.get(&uid).is_some_and(|state| state.assumed)
    }

    /// The pod with that UID.
    pub fn pod(&self, uid: Uid) -> Option<&Arc<PodInfo>> {
        self.pods.get(&uid).map(|state| &state.pod)
    }

    /// Number of nodes, including ghosts.
    pub fn node_count(&self) -> usize {
        self.nodes.iter().flatten().count()
    }

    /// Number of pods, including assumed ones.
    pub fn pod_count(&self) -> usize {
        self.pods.len()
    }

    /// All nodes by slot, including ghosts.
    pub fn nodes(&self) -> impl Iterator<Item = &Arc<NodeInfo>> {
        self.nodes.iter().flatten()
    }

    /// The slots that changed since the last refresh of the snapshot, with their nodes.
    pub fn changed(&self) -> impl Iterator<Item = (NodeId, Option<&Arc<NodeInfo>>)> {
        let mut changed = self.changed.clone();
        changed.sort_unstable();
        changed.dedup();
        changed.into_iter().map(|id| (id, self.node(id)))
    }

    /// The node in a slot.
    pub fn node(&self, id: NodeId) -> Option<&Arc<NodeInfo>> {
        self.nodes.get(id.index())?.as_ref()
    }

    /// The node with that name.
    pub fn node_by_name(&self, name: Name) -> Option<&Arc<NodeInfo>> {
        self.node(*self.slots.get(&name)?)
    }

    /// Recomputes the requests of all pods after the feature gates changed, because some gates
    /// decide what a pod counts for on its node. All slots stay the same.
    pub fn recount(&mut self, features: &FeatureGates) {
        for at in 0..self.nodes.len() {
            let held = self.nodes[at].iter().flat_map(|node| node.pods.iter());
            let with_features =
                |pod: &Arc<PodInfo>| PodInfo::with_features(pod.pod.clone(), features);
            let pods: Vec<_> = held.map(with_features).map(Arc::new).collect();
            if pods.is_empty() {
                continue;
            }
            let node = self.node_mut(NodeId(at as u32));
            pods.iter().for_each(|pod| drop(node.remove_pod(pod.uid())));
            pods.iter().for_each(|pod| node.add_pod(pod.clone()));
            for pod in pods {
                let assumed = self.pods.get(&pod.uid()).is_some_and(|state| state.assumed);
                self.pods.insert(pod.uid(), CachedPod { pod, assumed });
            }
        }
    }

    fn insert_pod(&mut self, pod: Arc<PodInfo>, assumed: bool) {
        let id = self.slot(pod.pod.spec.node_name);
        self.node_mut(id).add_pod(pod.clone());
        self.pods.insert(pod.uid(), CachedPod { pod, assumed });
    }

    fn take_pod(&mut self, uid: Uid) -> Option<Arc<PodInfo>> {
        let state = self.pods.remove(&uid)?;
        let id = self.slot(state.pod.pod.spec.node_name);
        self.node_mut(id).remove_pod(uid);
        self.drop_if_unused(id);
        Some(state.pod)
    }

    /// The slot of a node name, allocated if needed. Afterwards it holds at least an empty node.
    fn slot(&mut self, name: Name) -> NodeId {
        let known = self.slots.get(&name).copied();
        let id = known.or_else(|| self.free.pop()).unwrap_or_else(|| {
            self.nodes.push(None);
            NodeId(self.nodes.len() as u32 - 1)
        });
        if known.is_none() {
            Arc::make_mut(&mut self.slots).insert(name, id);
        }
        self.nodes[id.index()].get_or_insert_with(|| Arc::new(NodeInfo::new(id, name)));
        id
    }

    /// Mutable access to the node in a slot, which marks it as changed.
    fn node_mut(&mut self, id: NodeId) -> &mut NodeInfo {
        self.generation += 1;
        self.changed.push(id);
        let node =
            self.nodes[id.index()].get_or_insert_with(|| Arc::new(NodeInfo::new(id, Name::EMPTY)));
        let node = Arc::make_mut(node);
        node.generation = self.generation;
        node
    }

    /// Drops a node that has neither an object nor pods.
    fn drop_if_unused(&mut self, id: NodeId) {
        let unused = |node: &mut Arc<NodeInfo>| node.node.is_none() && node.pods.is_empty();
        if let Some(node) = self.nodes[id.index()].take_if(unused) {
            self.vanished.insert(id, node.name);
            self.changed.push(id);
        }
    }
}

#[cfg(test)]
mod tests;
