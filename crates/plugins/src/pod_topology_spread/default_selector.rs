//! The selector of default constraints: pods of the same services and the same owner.
//!
//! Upstream: `pkg/scheduler/framework/plugins/helper/spread.go`.

use kubestep_api::selector::Selector;
use kubestep_api::{LabelSelector, Labels, OwnerReference, Pod};
use kubestep_framework::objects::Objects;
use kubestep_framework::pod::NamespacedName;

/// The selector of all services that select the pod and of the controller that owns it; empty if
/// there are none.
pub(crate) fn default_selector(pod: &Pod, objects: &Objects) -> Selector {
    let mut labels = Labels::default();
    for service in Objects::in_namespace(&objects.services, pod.metadata.namespace) {
        // A service without a selector selects no pods, one with an empty selector all pods.
        let Some(selector) = &service.spec.selector else { continue };
        if Selector::from_labels(selector).matches(&pod.metadata.labels) {
            merge(&mut labels, selector);
        }
    }
    match pod.metadata.controller() {
        Some(owner) => with_owner(labels, pod, owner, objects),
        None => Selector::from_labels(&labels),
    }
}

fn merge(labels: &mut Labels, more: &Labels) {
    for (key, value) in more.iter() {
        labels.insert(key, *value);
    }
}

fn with_owner(
    mut labels: Labels,
    pod: &Pod,
    owner: &OwnerReference,
    objects: &Objects,
) -> Selector {
    let key = NamespacedName::new(pod.metadata.namespace, owner.name);
    let more = match (owner.api_version.as_str(), owner.kind.as_str()) {
        ("v1", "ReplicationController") => {
            let controller = objects.replication_controllers.get(&key);
            if let Some(selector) = controller.and_then(|found| found.spec.selector.as_ref()) {
                merge(&mut labels, selector);
            }
            None
        }
        ("apps/v1", "ReplicaSet") => {
            objects.replica_sets.get(&key).and_then(|set| compile(set.spec.selector.as_ref()))
        }
        ("apps/v1", "StatefulSet") => {
            objects.stateful_sets.get(&key).and_then(|set| compile(set.spec.selector.as_ref()))
        }
        _ => None,
    };
    let selector = Selector::from_labels(&labels);
    match more {
        Some(more) => selector.and(more.requirements().iter().cloned()),
        None => selector,
    }
}

/// The compiled selector; `None` if it is invalid, as upstream ignores it.
fn compile(selector: Option<&LabelSelector>) -> Option<Selector> {
    Selector::new(selector).ok()
}
