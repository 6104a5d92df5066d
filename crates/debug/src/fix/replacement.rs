//! Replacements of deleted pods: a controller creates a new pod, which is scheduled like any other.

use crate::edit::owner;
use kubestep_api::{Name, Pod, PodStatus, admission};
use kubestep_cluster::World;
use kubestep_framework::pod::NamespacedName;

/// The kind whose pods keep their names.
const STATEFUL_SET: &str = "StatefulSet";

/// A pod that replaces a deleted one.
pub(super) struct ReplacementPod {
    pod: NamespacedName,
    priority: i32,
    controller: String,
}

impl ReplacementPod {
    /// Creates the replacement, if the deleted pod has a controller.
    pub fn of(world: &mut World, deleted: &Pod) -> Option<ReplacementPod> {
        let controller = owner::controller(world, deleted)?;
        let mut pod = deleted.clone();
        if deleted.metadata.controller().is_none_or(|owner| owner.kind != STATEFUL_SET) {
            pod.metadata.name = free_name(world, deleted);
        }
        let before = pod.metadata.uid;
        pod.metadata.uid = admission::derived_uid(&format!("{before} replaced"));
        pod.metadata.deletion_timestamp = None;
        pod.spec.node_name = Name::EMPTY;
        // Claims created from templates belong to the pod's name and stay.
        let claims = std::mem::take(&mut pod.status.resource_claim_statuses);
        pod.status = PodStatus { resource_claim_statuses: claims, ..PodStatus::default() };
        let (key, priority) = (
            NamespacedName::new(pod.metadata.namespace, pod.metadata.name),
            pod.spec.priority.unwrap_or(0),
        );
        world.create(pod.into());
        Some(ReplacementPod { pod: key, priority, controller })
    }

    /// The state of the replacement once `pod` has its node. `None` if nothing is gained: the
    /// replacement is pending instead of `pod`, and its priority is no lower.
    pub fn placed(&self, world: &mut World, pod: NamespacedName) -> Option<String> {
        let own = world.api().objects().pod(pod).and_then(|pod| pod.spec.priority).unwrap_or(0);
        world.step_ahead(self.pod);
        let placed = world.api().objects().pod(self.pod).map(|pod| pod.spec.node_name);
        let still = world.api().objects().pod(pod).is_some();
        match placed.filter(|node| !node.is_empty()) {
            _ if !still => None,
            Some(node) => Some(format!("{} replaces the deleted pod on {node}", self.controller)),
            None if self.priority < own => Some(format!(
                "{} replaces the deleted pod; the replacement fits no node",
                self.controller
            )),
            None => None,
        }
    }
}

fn free_name(world: &World, deleted: &Pod) -> Name {
    let (namespace, name) = (deleted.metadata.namespace, deleted.metadata.name);
    let is_free =
        |name: &Name| world.api().objects().pod(NamespacedName::new(namespace, *name)).is_none();
    let mut names = (1..).map(|number| Name::new(&format!("{name}-{number}")));
    names.find(is_free).unwrap_or(name)
}
