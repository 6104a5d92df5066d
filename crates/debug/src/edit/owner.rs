//! The owners of pods: a controller creates its pods from a template, and recreates them.

use kubestep_api::intern::Symbol;
use kubestep_api::{OwnerReference, Pod};
use kubestep_cluster::World;
use kubestep_framework::pod::NamespacedName;

/// The annotation on the mirror pod of a static pod (`v1.MirrorPodAnnotationKey`).
const MIRROR: &str = "kubernetes.io/config.mirror";
/// The label that a Deployment's ReplicaSet sets on its pods; its value is the suffix of the set's
/// name.
const TEMPLATE_HASH: &str = "pod-template-hash";

/// Whether the pod is static: its kubelet runs it from a file, so deleting or changing its mirror
/// pod in the API has no effect.
pub(crate) fn is_static(pod: &Pod) -> bool {
    let by_node = |owner: &OwnerReference| owner.kind == "Node";
    pod.metadata.annotations.contains_key(MIRROR.into())
        || pod.metadata.owner_references.iter().any(by_node)
}

/// Whether a deleted pod would be recreated for the same node.
pub(crate) fn is_of_node(pod: &Pod) -> bool {
    let by_daemon_set = |owner: &OwnerReference| owner.kind == "DaemonSet";
    is_static(pod) || pod.metadata.owner_references.iter().any(by_daemon_set)
}

/// The controller that a person would edit, in words: `Deployment web`.
pub(crate) fn controller(world: &World, pod: &Pod) -> Option<String> {
    let owner = pod.metadata.controller().filter(|_| !is_static(pod))?;
    let deployment = (owner.kind == "ReplicaSet").then(|| deployment(world, pod, owner)).flatten();
    Some(deployment.unwrap_or_else(|| format!("{} {}", owner.kind, owner.name)))
}

/// The Deployment of a ReplicaSet, by the set's owner reference or else by the labels of its pods.
fn deployment(world: &World, pod: &Pod, set: &OwnerReference) -> Option<String> {
    let key = NamespacedName::new(pod.metadata.namespace, set.name);
    if let Some(found) = world.api().objects().replica_sets.get(&key) {
        let owner = found.metadata.controller()?;
        return Some(format!("{} {}", owner.kind, owner.name));
    }
    let hash = pod.metadata.labels.get(Symbol::new(TEMPLATE_HASH))?;
    let name = set.name.strip_suffix(hash.as_str())?.strip_suffix('-')?;
    Some(format!("Deployment {name}"))
}

/// What must be changed instead of the pod for the change to last, if the pod has an owner.
pub(super) fn note(world: &World, pod: &Pod) -> Option<String> {
    if is_static(pod) {
        return Some("it is a static pod: change its manifest on the node".to_owned());
    }
    let controller = controller(world, pod)?;
    Some(match controller.starts_with("Job ") {
        true => format!("its template is immutable: recreate {controller}"),
        false => format!("to make it last, change the template of {controller}"),
    })
}
