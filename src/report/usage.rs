//! The utilization of the nodes at one moment: by node and in total.

use std::collections::BTreeSet;

use kubestep_api::Name;
use kubestep_api::intern::Symbol;
use kubestep_cluster::World;
use kubestep_framework::resource::Resource;

/// The utilization of the nodes at one moment.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Usage {
    /// The nodes in the order of the scheduler's cache.
    pub nodes: Vec<NodeUsage>,
}

/// The utilization of a node, in the units of [`Resource::amount`].
#[derive(Clone, PartialEq, Debug)]
pub struct NodeUsage {
    /// Name of the node.
    pub name: Name,
    /// `status.allocatable` of the node.
    pub allocatable: Resource,
    /// The requests of its pods, including pods that are not bound yet.
    pub requested: Resource,
    /// The number of its pods.
    pub pods: i64,
}

impl NodeUsage {
    /// The allocatable and requested amount of a resource.
    pub fn amounts(&self, resource: Symbol) -> (i64, i64) {
        match resource.as_str() {
            "pods" => (self.allocatable.allowed_pods, self.pods),
            _ => (self.allocatable.amount(resource), self.requested.amount(resource)),
        }
    }
}

impl Usage {
    /// The current utilization of the cluster. Nodes that have pods but no object are excluded.
    pub fn of(world: &World) -> Usage {
        let nodes = world.scheduler().cache().nodes().filter(|node| node.node.is_some());
        let usage = |node: &std::sync::Arc<kubestep_framework::node::NodeInfo>| NodeUsage {
            name: node.name,
            allocatable: node.allocatable.clone(),
            requested: node.requested.clone(),
            pods: node.pods.len() as i64,
        };
        Usage { nodes: nodes.map(usage).collect() }
    }

    /// The allocatable and requested amount of a resource, over all nodes.
    pub fn total(&self, resource: Symbol) -> (i64, i64) {
        self.nodes.iter().map(|node| node.amounts(resource)).fold((0, 0), |sum, amounts| {
            (sum.0.saturating_add(amounts.0), sum.1.saturating_add(amounts.1))
        })
    }

    /// CPU, memory and pods, and other resources of which something is requested here or in
    /// `other`.
    pub fn resources(&self, other: &Usage) -> Vec<Symbol> {
        let scalars = self.nodes.iter().flat_map(|node| &node.allocatable.scalars);
        let mut more: BTreeSet<Symbol> = scalars.map(|(name, _)| *name).collect();
        more.insert("ephemeral-storage".into());
        let is_used = |name: &Symbol| self.total(*name).1 != 0 || other.total(*name).1 != 0;
        let always = ["cpu", "memory", "pods"].map(Symbol::new);
        always.into_iter().chain(more.into_iter().filter(is_used)).collect()
    }
}

/// The exact amount of a resource as a quantity: `1500m`, `256Mi`, `1000001`.
pub fn exact(resource: &str, amount: i64) -> String {
    match resource {
        "cpu" if amount % 1_000 == 0 => (amount / 1_000).to_string(),
        "cpu" => format!("{amount}m"),
        "memory" | "ephemeral-storage" => exact_bytes(amount),
        name if name.starts_with("hugepages-") => exact_bytes(amount),
        _ => amount.to_string(),
    }
}

fn exact_bytes(bytes: i64) -> String {
    const UNITS: [(&str, i64); 4] =
        [("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)];
    let fitting = UNITS.iter().find(|(_, size)| bytes != 0 && bytes % size == 0);
    fitting.map_or(bytes.to_string(), |(unit, size)| format!("{}{unit}", bytes / size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_lose_nothing() {
        let amounts = [("cpu", 1_500), ("cpu", 2_000), ("memory", 3 << 29), ("memory", 1_000)];
        let shown = amounts.map(|(name, amount)| exact(name, amount));
        assert_eq!(shown, ["1500m", "2", "1536Mi", "1000"]);
        assert_eq!(exact("hugepages-2Mi", 4 << 20), "4Mi");
        assert_eq!((exact("pods", 1_024), exact("memory", 0)), ("1024".into(), "0".into()));
    }
}
