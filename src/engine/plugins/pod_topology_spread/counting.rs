//! How many pods each constraint counts on each node, once per cycle for all nodes.

use crate::engine::framework::plugin::CycleContext;
use crate::engine::node::NodeId;

use super::constraint::Constraints;

/// Counted pods by node slot.
#[derive(Clone, Debug)]
pub struct PodsByNode(Vec<u32>);

impl PodsByNode {
    /// How many on a node.
    pub fn on(&self, node: NodeId) -> i64 {
        self.0.get(node.index()).copied().map_or(0, i64::from)
    }
}

/// The pods that each constraint counts, by node: in the order of the constraints.
pub fn count_pods(cx: &CycleContext<'_>, constraints: &Constraints) -> Vec<PodsByNode> {
    let namespace = cx.pod.pod.metadata.namespace;
    let mut counts = vec![PodsByNode(vec![0; cx.snapshot.slots()]); constraints.list.len()];
    for (kind, places) in cx.snapshot.pod_index().pods() {
        for (constraint, counts) in constraints.list.iter().zip(&mut counts) {
            if constraint.counts(kind, namespace) {
                for (node, pods) in places {
                    counts.0[node.index()] += pods;
                }
            }
        }
    }
    counts
}
