//! The owners of pods: a controller creates its pods from a template, and recreates them.

use kubestep_api::{OwnerReference, Pod};
use kubestep_cluster::World;
use kubestep_cluster::workload::workload_of;

/// The annotation on the mirror pod of a static pod (`v1.MirrorPodAnnotationKey`).
const MIRROR: &str = "kubernetes.io/config.mirror";
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
    let workload = workload_of(world.api().objects(), pod).filter(|_| !is_static(pod));
    workload.map(|(kind, name)| format!("{kind} {name}"))
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
