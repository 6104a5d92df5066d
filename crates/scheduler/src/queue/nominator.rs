//! Which pods are nominated to which nodes.
//!
//! Upstream: `pkg/scheduler/backend/queue/nominator.go`.

use hashbrown::HashMap;
use indexmap::IndexMap;

use kubestep_api::Pod;
use kubestep_api::intern::Symbol;
use kubestep_framework::objects::Objects;
use kubestep_framework::pod::NamespacedName;

/// A reference to a nominated pod.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct NominatedPodRef {
    /// Namespace and name of the pod.
    pub(super) key: NamespacedName,
    pub(super) uid: Symbol,
}

/// Nominated pods by node, in the order nominated, and the node by the pod's UID.
#[derive(Clone, Default)]
pub(super) struct Nominator {
    by_node: IndexMap<Symbol, Vec<NominatedPodRef>>,
    node_of: HashMap<Symbol, Symbol>,
}

impl Nominator {
    /// Nominates `pod` to `node` (which may be empty), or with `None` to the node of its own
    /// status. A pod that was deleted or is already bound is not nominated.
    pub(super) fn add(&mut self, pod: &Pod, node: Option<Symbol>, objects: &Objects) {
        let uid = pod.metadata.uid;
        self.remove(uid);
        let own = pod.status.nominated_node_name;
        let Some(node) = node.or_else(|| (!own.is_empty()).then_some(own)) else { return };
        let key = NamespacedName::new(pod.metadata.namespace, pod.metadata.name);
        if objects.pod(key).is_none_or(|listed| !listed.spec.node_name.is_empty()) {
            return;
        }
        self.node_of.insert(uid, node);
        self.by_node.entry(node).or_default().push(NominatedPodRef { key, uid });
    }

    /// Replaces `old` by `new`. If neither object carries a nomination, one that only the scheduler
    /// knows of so far is kept.
    pub(super) fn update(&mut self, old: &Pod, new: &Pod, objects: &Objects) {
        let silent = |pod: &Pod| pod.status.nominated_node_name.is_empty();
        let known = self.node_of.get(&old.metadata.uid).copied();
        let keep = if silent(old) && silent(new) { known } else { None };
        self.remove(old.metadata.uid);
        self.add(new, keep, objects);
    }

    /// Deletes the pod's nomination.
    pub(super) fn remove(&mut self, uid: Symbol) {
        let Some(node) = self.node_of.remove(&uid) else { return };
        let Some(pods) = self.by_node.get_mut(&node) else { return };
        pods.retain(|pod| pod.uid != uid);
        if pods.is_empty() {
            self.by_node.shift_remove(&node);
        }
    }

    /// Whether the pod with that UID is nominated.
    pub(super) fn contains(&self, uid: Symbol) -> bool {
        self.node_of.contains_key(&uid)
    }

    /// All nodes with their nominated pods.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Symbol, &[NominatedPodRef])> {
        self.by_node.iter().map(|(node, pods)| (*node, pods.as_slice()))
    }
}
