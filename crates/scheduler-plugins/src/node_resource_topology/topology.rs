//! The NodeResourceTopology of a node: its NUMA zones and how its kubelet aligns resources.
//!
//! Upstream: `noderesourcetopology-api`, `pkg/noderesourcetopology/nodeconfig` and
//! `pkg/noderesourcetopology/pluginhelpers.go`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use kubestep_framework::api::custom::{Custom, CustomKind, CustomKindInfo, KindNames};
use kubestep_framework::api::intern::Symbol;
use kubestep_framework::api::{Quantity, ResourceList};

/// The kind. Its object has the name of the node.
pub(crate) const TOPOLOGIES: CustomKind = CustomKind::new(&INFO);

static INFO: CustomKindInfo = CustomKindInfo::of::<NodeResourceTopology>(
    KindNames {
        name: "NodeResourceTopology",
        plural: "noderesourcetopologies",
        group: "topology.node.k8s.io",
        namespaced: false,
    },
    &["v1alpha2", "v1alpha1"],
    "noderesourcetopologies.v1alpha2.topology.node.k8s.io",
    "NodeResourceTopologyMatch",
    "NUMA zones of nodes are ignored",
)
.about_nodes(of_empty_node);

/// Everything that is allocatable in a zone is available.
fn of_empty_node(fields: &mut Map<String, Value>) {
    let zones = fields.get_mut("zones").and_then(Value::as_array_mut);
    let resources =
        zones.into_iter().flatten().filter_map(|zone| zone.get_mut("resources")?.as_array_mut());
    for resource in resources.flatten() {
        if let Some(allocatable) = resource.get("allocatable").cloned() {
            resource["available"] = allocatable;
        }
    }
}

/// The zones of a node and the settings of its topology manager.
#[derive(Deserialize, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeResourceTopology {
    /// Policy and scope in one word, the older form; only the first counts.
    pub topology_policies: Vec<String>,
    /// The zones, in the order of the object.
    pub zones: Vec<Zone>,
    /// Settings by name, the newer form.
    pub attributes: Vec<Attribute>,
}

/// A part of a node.
#[derive(Deserialize, Debug, Default)]
#[serde(default)]
pub struct Zone {
    /// `node-0` for NUMA zone 0.
    pub name: String,
    /// `Node` for a NUMA zone.
    #[serde(rename = "type")]
    pub type_: String,
    /// Distances to the zones of the node, itself included.
    pub costs: Vec<Cost>,
    /// Amounts of resources in the zone.
    pub resources: Vec<ZoneResource>,
    /// What else is known of it, by name.
    pub attributes: Vec<Attribute>,
}

/// The distance to a zone.
#[derive(Deserialize, Debug, Default)]
#[serde(default)]
pub struct Cost {
    /// The other zone, by name.
    pub name: String,
    /// The distance as the kernel reports it; 10 is local.
    pub value: i64,
}

/// An amount of a resource in a zone.
#[derive(Deserialize, Debug, Default)]
#[serde(default)]
pub struct ZoneResource {
    /// The resource, by name.
    pub name: Symbol,
    /// What pods can have.
    pub allocatable: Quantity,
    /// What is free, as the exporter reported it.
    pub available: Quantity,
}

/// A setting of the topology manager.
#[derive(Deserialize, Debug, Default)]
#[serde(default)]
pub struct Attribute {
    /// `topologyManagerPolicy` or `topologyManagerScope`.
    pub name: String,
    /// The value, as text.
    pub value: String,
}

/// The value of the first attribute with that name.
pub(super) fn attribute<'a>(attributes: &'a [Attribute], name: &str) -> Option<&'a str> {
    let found = attributes.iter().find(|attribute| attribute.name == name);
    found.map(|attribute| attribute.value.as_str())
}

impl Custom for NodeResourceTopology {
    const KIND: CustomKind = TOPOLOGIES;
}

/// What resources must come from one zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ManagerScope {
    /// Those of a container.
    Container,
    /// Those of the whole pod.
    Pod,
}

/// How the kubelet's topology manager is set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TopologyManager {
    /// What is aligned together.
    pub scope: ManagerScope,
    /// Whether the policy is `single-numa-node`; the others reject nothing here.
    pub is_single_numa_node: bool,
    /// The largest number of NUMA zones that it supports.
    pub max_numa_nodes: i64,
}

const MAX_NUMA_NODES: i64 = 8;
const LIMIT_NUMA_NODES: i64 = 1024;

impl NodeResourceTopology {
    /// The value of a setting.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        attribute(&self.attributes, name)
    }

    /// How much of a resource pods can have in the zone with that number.
    pub fn allocatable(&self, id: usize, resource: Symbol) -> Quantity {
        let zone = self.zones.iter().find(|zone| numa_id(&zone.name) == Some(id));
        let mut resources = zone.into_iter().flat_map(|zone| &zone.resources);
        let found = resources.find(|other| other.name == resource);
        found.map(|found| found.allocatable.clone()).unwrap_or_default()
    }

    /// How the topology manager is set; settings that are not valid do not count.
    pub(crate) fn topology_manager(&self) -> TopologyManager {
        let mut manager = TopologyManager {
            scope: ManagerScope::Container,
            is_single_numa_node: false,
            max_numa_nodes: MAX_NUMA_NODES,
        };
        if let Some((policy, scope)) = self.topology_policies.first().and_then(|it| policy_of(it)) {
            (manager.is_single_numa_node, manager.scope) = (policy == "SingleNUMANode", scope);
        }
        for Attribute { name, value } in &self.attributes {
            match (name.as_str(), value.as_str()) {
                ("topologyManagerScope", "container") => manager.scope = ManagerScope::Container,
                ("topologyManagerScope", "pod") => manager.scope = ManagerScope::Pod,
                ("topologyManagerPolicy", "single-numa-node") => manager.is_single_numa_node = true,
                ("topologyManagerPolicy", "none" | "best-effort" | "restricted") => {
                    manager.is_single_numa_node = false;
                }
                ("topologyManagerMaxNUMANodes", text) => {
                    let value = text.parse().ok().filter(|value: &i64| *value > 1);
                    let value = value.map(|value| value.min(LIMIT_NUMA_NODES));
                    manager.max_numa_nodes = value.unwrap_or(manager.max_numa_nodes);
                }
                _ => {}
            }
        }
        manager
    }

    /// The NUMA zones with what is free in them.
    pub(crate) fn numa_zones(&self) -> Vec<NumaZone> {
        let zones = self.zones.iter().filter(|zone| zone.type_ == "Node");
        zones.filter_map(|zone| Some(NumaZone::new(numa_id(&zone.name)?, zone))).collect()
    }
}

/// `SingleNUMANodePodLevel` as policy and scope.
fn policy_of(text: &str) -> Option<(&str, ManagerScope)> {
    let pod = text.strip_suffix("PodLevel").map(|policy| (policy, ManagerScope::Pod));
    let container = || text.strip_suffix("ContainerLevel").map(|it| (it, ManagerScope::Container));
    let known = ["SingleNUMANode", "BestEffort", "Restricted"];
    pod.or_else(container).filter(|(policy, _)| known.contains(policy))
}

/// The number of a zone: 1 of `node-1`. There are at most 64.
fn numa_id(name: &str) -> Option<usize> {
    name.strip_prefix("node-")?.parse().ok().filter(|id| *id < 64)
}

/// A NUMA zone as the plugin computes with it.
#[derive(Clone, Debug)]
pub struct NumaZone {
    /// Number of the zone, 0 to 63.
    pub id: usize,
    /// What pods can still take of each resource.
    pub free: ResourceList,
    /// The distances to zones, by their numbers.
    pub costs: BTreeMap<usize, i64>,
}

impl NumaZone {
    fn new(id: usize, zone: &Zone) -> NumaZone {
        let mut free = ResourceList::default();
        for resource in &zone.resources {
            free.insert(resource.name, resource.available.clone());
        }
        let cost = |cost: &Cost| Some((numa_id(&cost.name)?, cost.value));
        NumaZone { id, free, costs: zone.costs.iter().filter_map(cost).collect() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn manager(topology: Value) -> (ManagerScope, bool, i64) {
        let topology: NodeResourceTopology = serde_json::from_value(topology).unwrap();
        let TopologyManager { scope, is_single_numa_node, max_numa_nodes } =
            topology.topology_manager();
        (scope, is_single_numa_node, max_numa_nodes)
    }

    #[test]
    fn settings_come_from_policies_and_attributes() {
        let attributes = |list: &[(&str, &str)]| {
            let list = list.iter().map(|(name, value)| json!({"name": name, "value": value}));
            json!({"attributes": list.collect::<Vec<_>>()})
        };
        for (topology, expected) in [
            (json!({}), (ManagerScope::Container, false, 8)),
            (json!({"topologyPolicies": ["SingleNUMANodePodLevel"]}), (ManagerScope::Pod, true, 8)),
            (
                json!({"topologyPolicies": ["SingleNUMANodeContainerLevel", "BestEffort"]}),
                (ManagerScope::Container, true, 8),
            ),
            (json!({"topologyPolicies": ["RestrictedPodLevel"]}), (ManagerScope::Pod, false, 8)),
            (json!({"topologyPolicies": ["SingleNUMANode"]}), (ManagerScope::Container, false, 8)),
            (
                attributes(&[
                    ("topologyManagerScope", "pod"),
                    ("topologyManagerPolicy", "single-numa-node"),
                ]),
                (ManagerScope::Pod, true, 8),
            ),
            (
                attributes(&[
                    ("topologyManagerScope", "all"),
                    ("topologyManagerMaxNUMANodes", "4096"),
                ]),
                (ManagerScope::Container, false, 1024),
            ),
            (
                attributes(&[("topologyManagerMaxNUMANodes", "1")]),
                (ManagerScope::Container, false, 8),
            ),
        ] {
            assert_eq!(manager(topology.clone()), expected, "{topology}");
        }
        let both = json!({
            "topologyPolicies": ["SingleNUMANodePodLevel"],
            "attributes": [{"name": "topologyManagerScope", "value": "container"}],
        });
        assert_eq!(manager(both), (ManagerScope::Container, true, 8));
    }
}
