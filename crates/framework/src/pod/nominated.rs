//! Pods that are nominated to nodes, as one cycle sees them.
//!
//! Filters take them into account. Upstream: `NominatedPodsForNode` in
//! `pkg/scheduler/backend/queue/nominator.go`.

use std::sync::Arc;

use indexmap::IndexMap;

use crate::pod::PodInfo;
use kubestep_api::intern::Symbol;

/// Nominated pods by node, in the order nominated. As upstream, pods in flight are stubs: name,
/// namespace and UID only, with priority 0.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct NominatedPods {
    by_node: IndexMap<Symbol, Vec<Arc<PodInfo>>>,
}

impl NominatedPods {
    /// Adds a pod at the end of its node's list.
    pub fn push(&mut self, node: Symbol, pod: Arc<PodInfo>) {
        self.by_node.entry(node).or_default().push(pod);
    }

    /// The pods nominated to `node`.
    pub fn for_node(&self, node: Symbol) -> &[Arc<PodInfo>] {
        self.by_node.get(&node).map_or(&[], Vec::as_slice)
    }

    /// Whether no pod is nominated anywhere.
    pub fn is_empty(&self) -> bool {
        self.by_node.is_empty()
    }

    /// All nodes with their nominated pods.
    pub fn iter(&self) -> impl Iterator<Item = (Symbol, &[Arc<PodInfo>])> {
        self.by_node.iter().map(|(node, pods)| (*node, pods.as_slice()))
    }
}
