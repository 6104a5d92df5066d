//! The DaemonSet pods of a new node.
//!
//! The template of a node group brings its own. Otherwise they are made from the DaemonSets of the
//! input, and for DaemonSets that only show by their pods from one of those: a pod on a node of the
//! same pool, or without such a node any, if its node selector and tolerations suit the new node.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::karpenter::NODE_POOL;
use super::template::{NodeTemplate, TemplateOrigin};
use kubestep_api::admission::derived_uid;
use kubestep_api::{Name, Node, Object, Pod, PodStatus};
use kubestep_cluster::workload::{self, WorkloadInputs};
use kubestep_cluster::{World, load};
use kubestep_framework::pod::NamespacedName;

/// Creates the pods on the node, bound.
pub(super) fn create(world: &mut World, template: &NodeTemplate, name: Name) {
    let Some(node) = world.api().node(name).cloned() else { return };
    let pods = match &template.pods {
        Some(pods) => pods.iter().map(|pod| bound(pod, &pod.metadata.name.text(), name)).collect(),
        None => {
            let mut pods = of_manifests(world, &node);
            pods.extend(of_pods(world, &node, template));
            pods
        }
    };
    load::add(world, pods.into_iter().map(Object::from).collect());
}

/// The pods of the DaemonSets of the input.
fn of_manifests(world: &World, node: &Arc<Node>) -> Vec<Pod> {
    let surroundings = WorkloadInputs { replicas: None, nodes: std::slice::from_ref(node) };
    let manifests = world.provisioning().daemon_sets.iter();
    let expanded = manifests.filter_map(|value| workload::expand(value, &surroundings)?.ok());
    let objects = expanded.flat_map(|set| set.objects());
    let pods = objects.filter_map(|object| match object {
        Object::Pod(pod) => Some(Arc::unwrap_or_clone(pod)),
        _ => None,
    });
    pods.map(|pod| Pod { spec: on(pod.spec, node.metadata.name), ..pod }).collect()
}

fn on(mut spec: kubestep_api::PodSpec, node: Name) -> kubestep_api::PodSpec {
    spec.node_name = node;
    spec
}

/// The pods of DaemonSets that the input does not have.
fn of_pods(world: &World, node: &Node, template: &NodeTemplate) -> Vec<Pod> {
    let known: Vec<NamespacedName> =
        world.provisioning().daemon_sets.iter().map(key_of_manifest).collect();
    let siblings = siblings(world, node, template);
    let mut samples: BTreeMap<NamespacedName, &Pod> = BTreeMap::new();
    for pod in world.api().objects().pods.values() {
        let Some(set) = daemon_set(pod).filter(|set| !known.contains(set)) else { continue };
        if !siblings.is_empty() && !siblings.contains(&pod.spec.node_name) {
            continue;
        }
        let sample = samples.entry(set).or_insert(pod);
        // The order of pods is not stable.
        if pod.metadata.name < sample.metadata.name {
            *sample = pod;
        }
    }
    let is_copy = matches!(template.origin, TemplateOrigin::Like { .. });
    let samples =
        samples.into_iter().filter(|(_, pod)| is_copy || workload::suits_daemon(pod, node));
    samples.map(|(set, pod)| bound(pod, &set.name.text(), node.metadata.name)).collect()
}

/// The nodes that run the same DaemonSets: the one that is copied, or those of the same pool.
fn siblings(world: &World, node: &Node, template: &NodeTemplate) -> Vec<Name> {
    if let TemplateOrigin::Like { node, .. } = template.origin {
        return vec![node];
    }
    let Some(pool) = node.metadata.labels.get_str(NODE_POOL) else { return Vec::new() };
    let is_sibling = |other: &&Arc<Node>| {
        let of_pool = other.metadata.labels.get_str(NODE_POOL) == Some(pool);
        of_pool && other.metadata.name != node.metadata.name
    };
    world.api().nodes().filter(is_sibling).map(|node| node.metadata.name).collect()
}

/// The DaemonSet that controls the pod.
fn daemon_set(pod: &Pod) -> Option<NamespacedName> {
    let owner = pod.metadata.controller().filter(|owner| owner.kind == "DaemonSet")?;
    Some(NamespacedName::new(pod.metadata.namespace, owner.name))
}

fn key_of_manifest(value: &serde_json::Value) -> NamespacedName {
    let text = |name: &str| value["metadata"][name].as_str().filter(|text| !text.is_empty());
    let namespace = text("namespace").unwrap_or("default");
    NamespacedName::new(namespace.into(), text("name").unwrap_or_default().into())
}

/// A copy of the pod for another node.
fn bound(pod: &Pod, stem: &str, node: Name) -> Pod {
    let mut copy = pod.clone();
    copy.metadata.name = Name::new(&format!("{stem}-{node}"));
    copy.metadata.uid = derived_uid(&format!("{stem} on {node}"));
    copy.metadata.deletion_timestamp = None;
    if copy.metadata.namespace.is_empty() {
        copy.metadata.namespace = "default".into();
    }
    copy.spec.node_name = node;
    copy.status = PodStatus::default();
    copy
}
