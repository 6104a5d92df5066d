//! Which workload a pod belongs to, as a person would name it.

use kubestep_api::intern::Symbol;
use kubestep_api::{Name, Pod};
use kubestep_framework::objects::Objects;
use kubestep_framework::pod::NamespacedName;

use super::replicas::TEMPLATE_HASH;

/// The kind and name of the controller that a person would edit: the Deployment of a ReplicaSet,
/// otherwise the pod's own controller. `None` if it has none.
pub fn workload_of(objects: &Objects, pod: &Pod) -> Option<(Symbol, Name)> {
    let owner = pod.metadata.controller()?;
    let above = (owner.kind == "ReplicaSet").then(|| deployment(objects, pod, owner.name));
    Some(above.flatten().unwrap_or((owner.kind, owner.name)))
}

/// The controller of a ReplicaSet, by the set's owner reference or else by the labels of its pods.
fn deployment(objects: &Objects, pod: &Pod, set: Name) -> Option<(Symbol, Name)> {
    let key = NamespacedName::new(pod.metadata.namespace, set);
    if let Some(found) = objects.replica_sets.get(&key) {
        let owner = found.metadata.controller()?;
        return Some((owner.kind, owner.name));
    }
    let hash = pod.metadata.labels.get_str(TEMPLATE_HASH)?;
    let (set, hash) = (set.text(), hash.text());
    let name = set.strip_suffix(hash.as_str())?.strip_suffix('-')?;
    Some(("Deployment".into(), name.into()))
}
