//! Which pods an event of a node or of a pod with a node can concern. With queueing hints the hints
//! alone decide; without them (up to 1.31, and with the gate off), pods are sorted out before.
//!
//! Upstream: `preCheckForNode`, `addPodToCache` and `onStorageClassAdd` in
//! `pkg/scheduler/eventhandlers.go` of 1.31.

use crate::Scheduler;
use kubestep_api::{Object, Pod, Time, VolumeBindingMode};
use kubestep_config::Feature;
use kubestep_config::versions::Switch;
use kubestep_framework::events::{Action, ClusterEvent, EventObjects};
use kubestep_framework::pod::PodInfo;

impl Scheduler {
    fn has_hints(&self) -> bool {
        self.cluster.features.enabled(Feature::SchedulerQueueingHints)
    }

    /// Whether nodes and storage classes are checked before hints are asked: up to 1.31 always.
    fn checks_first(&self) -> bool {
        !self.has_hints() || !self.cluster.features.has(Switch::EventsByChange)
    }

    /// Requeues pods after a change of a node; without hints only those that the node can take.
    pub(crate) fn move_after_node_change(
        &mut self,
        event: ClusterEvent,
        objects: &EventObjects,
        now: Time,
    ) {
        let cx = self.cluster.queue_context(now);
        let node = match &objects.new {
            Some(Object::Node(node)) if self.checks_first() => {
                self.cache.nodes().find(|info| info.name == node.metadata.name)
            }
            _ => None,
        };
        let Some(node) = node.cloned() else {
            return self.queue.move_all(&cx, event, objects, None);
        };
        let frameworks = self.profiles.frameworks.clone();
        let admits = |pod: &PodInfo| {
            let framework = frameworks.get(&pod.pod.spec.scheduler_name);
            framework.is_none_or(|framework| {
                framework.instances().iter().all(|plugin| plugin.admits(&cx, pod, &node))
            })
        };
        self.queue.move_all(&cx, event, objects, Some(&admits));
    }

    /// Requeues pods after a change of a pod with a node; without hints only those with terms or
    /// constraints about other pods, unless the pod now requests less.
    pub(crate) fn move_after_pod_change(
        &mut self,
        event: ClusterEvent,
        objects: &EventObjects,
        pod: &Pod,
        now: Time,
    ) {
        let cx = self.cluster.queue_context(now);
        if self.has_hints() {
            self.queue.move_all(&cx, event, objects, None);
        } else if event.action.overlaps(Action::UPDATE_POD_SCALE_DOWN) {
            let update = ClusterEvent::new(event.resource, Action::UPDATE);
            self.queue.move_all(&cx, update, objects, None);
        } else {
            self.queue.move_related(&cx, event, objects, pod);
        }
    }

    /// Whether a new storage class is no event: without hints, only one that binds late is.
    pub(crate) fn ignores_class(&self, action: Action, objects: &EventObjects) -> bool {
        let late = Some(VolumeBindingMode::WaitForFirstConsumer);
        match &objects.new {
            Some(Object::StorageClass(class)) if action == Action::ADD && self.checks_first() => {
                class.volume_binding_mode != late
            }
            _ => false,
        }
    }
}
