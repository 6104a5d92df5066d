//! TopologyPlacementGenerator: one candidate placement of a pod group for each domain of the
//! topology key that the group requests (alpha, behind TopologyAwareWorkloadScheduling).
//!
//! If pods of the group already have a node, only their domain is a candidate. Upstream:
//! `pkg/scheduler/framework/plugins/topologyaware/topology_placement.go`. Placements are in the
//! order of their first nodes; upstream's order is that of a Go map, and so undefined.

use std::sync::Arc;

use indexmap::IndexMap;

use kubestep_api::intern::Symbol;
use kubestep_api::{Name, PodGroup};
use kubestep_config::versions::Switch;
use kubestep_config::{
    DefaultProfile, ExtensionPoint, Feature, FeatureGates, PluginChange, PluginDescriptor,
    ProfileArgs,
};
use kubestep_framework::error::PluginError;
use kubestep_framework::plugin::{GroupContext, Plugin};
use kubestep_framework::pod_groups::Placement;
use kubestep_framework::registry::Built;
use kubestep_framework::status::Status;

/// What configurations and the manual know of the plugin.
pub const PLUGIN: PluginDescriptor = PluginDescriptor {
    registers_events: false,
    signs: false,
    default_profile: DefaultProfile::Gated(Feature::TopologyAwareWorkloadScheduling),
    history: &[PluginChange::Exists(Switch::PlacementPoints)],
    doc: "the topology domains in which a pod group could be placed",
    long_doc: "Generates one candidate placement for each domain of the topology key that the pod \
               group requests.",
    example: "A group requests one rack: each value of the rack label is a candidate, with the \
              nodes that have it.",
    ..PluginDescriptor::new("TopologyPlacementGenerator", &[ExtensionPoint::PlacementGenerate])
};

/// Builds the plugin for a profile, from its arguments.
pub fn build(_: &ProfileArgs, _: &FeatureGates) -> Built {
    Ok(Arc::new(TopologyPlacementGenerator))
}

struct TopologyPlacementGenerator;

impl Plugin for TopologyPlacementGenerator {
    fn name(&self) -> Symbol {
        "TopologyPlacementGenerator".into()
    }

    /// Without a topology key, the parent placement is the only candidate.
    fn generate_placements(
        &self,
        cx: &GroupContext<'_>,
        parent: &Placement,
    ) -> Result<Vec<Placement>, Status> {
        let Some(group) = cx.objects.pod_groups.get(&cx.group) else {
            let name = cx.group.name;
            let text = format!("podgroup.scheduling.k8s.io {name:?} not found");
            return Err(Status::error(&text));
        };
        let Some(key) = topology_key(group) else { return Ok(vec![parent.clone()]) };
        let required = required_domain(cx, key).map_err(Status::error)?;
        Ok(by_domain(cx, key, required, parent))
    }
}

/// The key of the first topology constraint; upstream ignores the others.
fn topology_key(group: &PodGroup) -> Option<Symbol> {
    Some(group.spec.scheduling_constraints.as_ref()?.topology.first()?.key)
}

/// The domain of the group's pods that already have a node; `None` if no pod has one.
fn required_domain(cx: &GroupContext<'_>, key: Symbol) -> Result<Option<Name>, PluginError> {
    let mut domain = None;
    for (pod, node) in cx.shared.pod_groups.get(cx.group)?.scheduled_on() {
        let found = domain_of(cx, key, node).map_err(|why| match why {
            MissingDomain::Node => format!(
                "cannot determine domain for already scheduled pods: getting node for pod {pod}: \
                 nodeinfo not found for node name {node:?}"
            ),
            MissingDomain::Label => format!(
                "cannot determine domain for already scheduled pods: no topology domain found \
                 for pod {pod}"
            ),
        })?;
        match domain {
            Some(other) if other != found => {
                return Err(format!(
                    "cannot determine domain for already scheduled pods: more than 1 domain found \
                     for pod group: {other}, {found}"
                )
                .into());
            }
            _ => domain = Some(found),
        }
    }
    Ok(domain)
}

/// Whose domain is missing.
enum MissingDomain {
    Node,
    Label,
}

fn domain_of(cx: &GroupContext<'_>, key: Symbol, node: Name) -> Result<Name, MissingDomain> {
    let node = cx.snapshot.by_name(node).ok_or(MissingDomain::Node)?;
    node.label(key).ok_or(MissingDomain::Label)
}

/// The nodes of `parent` by domain, without nodes that lack the label.
fn by_domain(
    cx: &GroupContext<'_>,
    key: Symbol,
    required: Option<Name>,
    parent: &Placement,
) -> Vec<Placement> {
    let mut placements: IndexMap<Name, Vec<Name>> = IndexMap::new();
    for node in &parent.nodes {
        let Ok(domain) = domain_of(cx, key, *node) else { continue };
        if required.is_none_or(|required| required == domain) {
            placements.entry(domain).or_default().push(*node);
        }
    }
    placements.into_iter().map(|(name, nodes)| Placement { name, nodes }).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use kubestep_api::{Object, Pod};
    use kubestep_framework::testing::{Cluster, NodeBuilder, PodBuilder, key, node, object, pod};

    /// A group with a topology constraint on this key; without constraints if the key is empty.
    fn group(topology_key: &str) -> Object {
        let spec = match topology_key {
            "" => json!({}),
            key => json!({"schedulingConstraints": {"topology": [{"key": key}, {"key": "other"}]}}),
        };
        let metadata = json!({"name": "g", "namespace": "default"});
        object(json!({"kind": "PodGroup", "metadata": metadata, "spec": spec}))
    }

    fn member(name: &str) -> Pod {
        pod(name).spec(json!({"schedulingGroup": {"podGroupName": "g"}}))
    }

    /// Nodes as (name, label, value); pods of the group as (name, node).
    fn cluster(nodes: &[(&str, &str, &str)], bound: &[(&str, &str)]) -> Cluster {
        let nodes = nodes.iter().map(|(name, label, value)| node(name).label(label, value));
        let mut cluster = Cluster::new(nodes, []);
        let groups = &mut cluster.shared.pod_groups;
        groups.add(key("g"), &member("unscheduled"));
        bound.iter().for_each(|(name, node)| groups.add(key("g"), &member(name).on(node)));
        cluster
    }

    /// The placements within the first `parent` nodes, as `name: nodes`; or the error.
    fn placements(cluster: &Cluster, parent: usize) -> Result<Vec<String>, String> {
        let nodes = cluster.snapshot.iter().take(parent).map(|node| node.name).collect();
        let parent = Placement { name: "parent".into(), nodes };
        let cx = GroupContext {
            group: key("g"),
            snapshot: &cluster.snapshot,
            objects: &cluster.objects,
            features: &cluster.features,
            shared: &cluster.shared,
            now: cluster.now,
        };
        let placements = TopologyPlacementGenerator.generate_placements(&cx, &parent);
        let text = |placement: &Placement| {
            let nodes: Vec<String> = placement.nodes.iter().map(Name::to_string).collect();
            format!("{}: {}", placement.name, nodes.join(" "))
        };
        placements
            .map(|placements| placements.iter().map(text).collect())
            .map_err(|status| status.message())
    }

    const MIXED: &[(&str, &str, &str)] = &[
        ("n0", "t2", "d1"),
        ("n1", "t2", "d4"),
        ("n2", "t1", "d1"),
        ("n3", "t1", "d2"),
        ("n4", "t1", "d1"),
        ("n5", "t1", "d3"),
    ];

    #[test]
    fn without_a_constraint_the_parent_is_the_only_placement() {
        let cluster = cluster(&[("n1", "a", "b"), ("n2", "foo", "bar"), ("n3", "a", "b")], &[]);
        assert_eq!(placements(&cluster.with(group("")), 2).unwrap(), ["parent: n1 n2"]);
    }

    #[test]
    fn each_domain_of_the_first_key_is_a_placement() {
        let constrained = |key: &str| cluster(MIXED, &[]).with(group(key));
        assert_eq!(placements(&constrained("t1"), 6).unwrap(), ["d1: n2 n4", "d2: n3", "d3: n5"]);
        assert!(placements(&constrained("t3"), 6).unwrap().is_empty());
    }

    #[test]
    fn pods_with_a_node_fix_the_domain() {
        let bound: &[(&str, &str)] = &[("a", "n2"), ("b", "n3")];
        let nodes = [("n0", "t", "d2"), ("n1", "t", "d1"), ("n2", "t", "d1"), ("n3", "t", "d1")];
        let with_pods = cluster(&nodes, bound).with(group("t"));
        assert_eq!(placements(&with_pods, 2).unwrap(), ["d1: n1"]);
        assert!(placements(&with_pods, 1).unwrap().is_empty(), "no node of the parent is there");
    }

    #[test]
    fn pods_without_one_domain_are_an_error() {
        let error = |nodes: &[(&str, &str, &str)], bound: &[(&str, &str)]| {
            let text = placements(&cluster(nodes, bound).with(group("t")), 1).unwrap_err();
            let start = "cannot determine domain for already scheduled pods: ";
            text.strip_prefix(start).unwrap_or(&text).to_owned()
        };
        let apart = [("n1", "t", "d0"), ("n2", "t", "d1")];
        assert_eq!(
            error(&apart, &[("a", "n1"), ("b", "n2")]),
            "more than 1 domain found for pod group: d0, d1"
        );
        assert_eq!(
            error(&apart, &[("a", "n9")]),
            "getting node for pod default/a: nodeinfo not found for node name \"n9\""
        );
        assert_eq!(
            error(&[("n1", "foo", "bar")], &[("a", "n1")]),
            "no topology domain found for pod default/a"
        );
    }

    #[test]
    fn a_group_without_an_object_or_pods_is_an_error() {
        let text = "podgroup.scheduling.k8s.io \"g\" not found";
        assert_eq!(placements(&cluster(MIXED, &[]), 1).unwrap_err(), text);
        let empty = Cluster::default().with(group("t"));
        let text = "pod group state not found for pod group default/g";
        assert_eq!(placements(&empty, 1).unwrap_err(), text);
    }
}
