//! Placements of a pod group: the sets of nodes that it might run on (alpha, gate
//! TopologyAwareWorkloadScheduling).

use std::sync::Arc;

use crate::pod::PodInfo;
use kubestep_api::intern::Symbol;

/// A set of nodes that a pod group might run on.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Placement {
    /// Its name, the value of the topology key; empty for all nodes.
    pub name: Symbol,
    /// Its nodes, in node order.
    pub nodes: Vec<Symbol>,
}

/// A placement with the nodes that were found for pods of the group in it.
#[derive(Clone, Debug)]
pub struct Proposal<'a> {
    /// The nodes among which the pods were tried.
    pub placement: &'a Placement,
    /// The pods for which a node was found, with their nodes.
    pub assignments: Vec<(Arc<PodInfo>, Symbol)>,
}
