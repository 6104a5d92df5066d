//! Copies of existing nodes: one template for each group of nodes that are alike.

use indexmap::IndexMap;

use super::template::{HOSTNAME, NodeTemplate, known_labels};
use crate::why::cause::is_kept_by_controller;
use kubestep_api::intern::Symbol;
use kubestep_api::{Name, Node, Taint};
use kubestep_cluster::World;

/// Labels that providers and their tools set to the name of a node's pool.
const POOLS: [&str; 9] = [
    "karpenter.sh/nodepool",
    "eks.amazonaws.com/nodegroup",
    "alpha.eksctl.io/nodegroup-name",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
    "agentpool",
    "kops.k8s.io/instancegroup",
    "doks.digitalocean.com/node-pool",
    "node.cluster.x-k8s.io/node-pool",
];
/// Labels by which the nodes of a pool may differ.
const WITHIN_POOLS: [&str; 4] = [
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/zone",
    "karpenter.sh/capacity-type",
    "kubernetes.io/arch",
];

/// What nodes of one group share.
#[derive(PartialEq, Eq, Hash)]
struct CommonTraits {
    labels: Vec<(Symbol, Name)>,
    /// Taints and allocatable amounts, printed.
    others: String,
}

/// A template for each group of nodes, except those of the pools `known`, in the order of nodes.
pub(super) fn templates(world: &World, known: &[Name]) -> Vec<NodeTemplate> {
    let mut groups: IndexMap<CommonTraits, Vec<&Node>> = IndexMap::new();
    let nodes = world.scheduler().cache().nodes().filter_map(|info| info.node.as_deref());
    let mut nodes: Vec<&Node> = nodes.collect();
    // A cordoned node may be without pods that the others of its group have.
    nodes.sort_unstable_by_key(|node| (node.spec.unschedulable, node.metadata.name));
    for node in nodes {
        let pool = node.metadata.labels.get_str(POOLS[0]);
        if !pool.is_some_and(|pool| known.contains(pool)) {
            groups.entry(shared(node)).or_default().push(node);
        }
    }
    let template = |(shared, nodes): (CommonTraits, Vec<&Node>)| {
        let first = nodes.first()?;
        Some(NodeTemplate::like(world.provisioning(), first, trait_lines(&shared), nodes.len()))
    };
    groups.into_iter().filter_map(template).collect()
}

fn shared(node: &Node) -> CommonTraits {
    let labels = &node.metadata.labels;
    let lasts = |taint: &&Taint| !is_kept_by_controller(taint.key);
    let taints: Vec<&Taint> = node.spec.taints.iter().filter(lasts).collect();
    let others = format!("{taints:?} {:?}", node.status.allocatable);
    let pool = known_labels(labels, &POOLS);
    let labels = match pool.first() {
        Some(pool) => {
            let within = known_labels(labels, &WITHIN_POOLS);
            std::iter::once(*pool).chain(within).collect()
        }
        None => {
            let own =
                |(key, value): &(Symbol, &Name)| *key == HOSTNAME || **value == node.metadata.name;
            labels.iter().filter(|label| !own(label)).map(|(key, value)| (key, *value)).collect()
        }
    };
    CommonTraits { labels, others }
}

/// The labels that identify a group: of its pool, its type and its zone, if there are such.
fn trait_lines(shared: &CommonTraits) -> Vec<String> {
    let is_shown = |key: Symbol| POOLS.contains(&&*key) || WITHIN_POOLS[..3].contains(&&*key);
    let reported = shared.labels.iter().filter(|(key, _)| is_shown(*key));
    reported
        .map(|(key, value)| format!("{}={value}", key.rsplit('/').next().unwrap_or(key)))
        .collect()
}
