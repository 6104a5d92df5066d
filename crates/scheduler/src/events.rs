//! Event handlers: what a change in the cluster does to listers, cache and queue (E-001…E-010).
//!
//! Upstream: `pkg/scheduler/eventhandlers.go`.

use std::sync::Arc;

use crate::Scheduler;
use crate::binding::ASSIGNED_POD_DELETE;
use crate::host::SchedulerHost;
use crate::queue::node_events::node_update_events;
use crate::queue::pod_events::pod_update_events;
use kubestep_api::intern::Symbol;
use kubestep_api::{Kind, Node, Object, Pod, Time};
use kubestep_config::Feature;
use kubestep_framework::dra::counts_shares;
use kubestep_framework::dra::taint_rules::changed_slices;
use kubestep_framework::events::{Action, ClusterEvent, EventObjects, EventResource};
use kubestep_framework::pod::{NamespacedName, PodInfo};

/// A change in the cluster, as a watch tells it.
#[derive(Clone, Debug)]
pub enum Change {
    /// An object appeared.
    Add(Object),
    /// An object changed.
    Update {
        /// Before.
        old: Object,
        /// After.
        new: Object,
    },
    /// An object is gone.
    Delete(Object),
}

impl Scheduler {
    /// Takes a change in: the listers first, then cache and queue.
    pub fn handle(&mut self, change: Change, now: Time, host: &mut dyn SchedulerHost) {
        match change {
            Change::Add(object) => self.added(object, now),
            Change::Update { old, new } => self.updated(old, new, now, host),
            Change::Delete(object) => self.deleted(&object, now, host),
        }
    }

    fn added(&mut self, object: Object, now: Time) {
        match object {
            Object::Node(node) => {
                self.cache.add_node(node.clone());
                let objects = EventObjects { old: None, new: Some(node.into()) };
                self.tell_queue(EventResource::Node, Action::ADD, &objects, now);
            }
            // Pods that ended are not watched at all (CFG-157).
            Object::Pod(pod) if pod.is_terminal() => {}
            Object::Pod(pod) => {
                self.objects.insert(pod.clone().into());
                self.pod_added(pod, now);
            }
            other => {
                self.objects.insert(other.clone());
                self.other_changed(Action::ADD, EventObjects { old: None, new: Some(other) }, now);
            }
        }
    }

    fn updated(&mut self, old: Object, new: Object, now: Time, host: &mut dyn SchedulerHost) {
        match (old, new) {
            (Object::Node(old), Object::Node(new)) => self.node_updated(&old, new, now),
            (Object::Pod(old), Object::Pod(new)) => match (old.is_terminal(), new.is_terminal()) {
                // Pods that ended are not watched at all (CFG-157).
                (true, true) => {}
                (true, false) => self.added(new.into(), now),
                (false, true) => self.deleted(&old.into(), now, host),
                (false, false) => {
                    self.objects.insert(new.clone().into());
                    self.pod_updated(&old, new, now, host);
                }
            },
            (old, new) => {
                self.objects.insert(new.clone());
                let objects = EventObjects { old: Some(old), new: Some(new) };
                self.other_changed(Action::UPDATE, objects, now);
            }
        }
    }

    fn deleted(&mut self, object: &Object, now: Time, host: &mut dyn SchedulerHost) {
        match object {
            Object::Node(node) => {
                // Before the cache forgets it (E-003).
                let objects = EventObjects { old: Some(object.clone()), new: None };
                self.tell_queue(EventResource::Node, Action::DELETE, &objects, now);
                // A node that was not there is only logged upstream.
                let _removed = self.cache.remove_node(node);
            }
            Object::Pod(pod) => {
                if self.objects.remove(object).is_some() {
                    self.pod_deleted(pod, now, host);
                }
            }
            other => {
                self.objects.remove(other);
                let objects = EventObjects { old: Some(other.clone()), new: None };
                self.other_changed(Action::DELETE, objects, now);
            }
        }
    }

    fn node_updated(&mut self, old: &Arc<Node>, new: Arc<Node>, now: Time) {
        self.cache.update_node(new.clone());
        let events = node_update_events(old, &new, &self.features);
        let objects = EventObjects { old: Some(old.clone().into()), new: Some(new.into()) };
        let (queue, cx) = self.queue_context(now);
        for event in events {
            queue.move_all(&cx, event, &objects, None);
        }
    }

    /// E-004
    fn pod_added(&mut self, pod: Arc<Pod>, now: Time) {
        if !pod.spec.node_name.is_empty() {
            self.assigned_pod_added(pod, now);
        } else if self.is_ours(&pod) {
            self.note_member(&pod);
            let info = Arc::new(PodInfo::with_features(pod.clone(), &self.features));
            let gangs = self.features.enabled(Feature::GangScheduling);
            let (queue, cx) = self.queue_context(now);
            queue.add(&cx, info);
            if gangs {
                let event = ClusterEvent::new(EventResource::UnschedulablePod, Action::ADD);
                let objects = EventObjects { old: None, new: Some(pod.into()) };
                queue.move_all(&cx, event, &objects, None);
            }
        }
    }

    fn assigned_pod_added(&mut self, pod: Arc<Pod>, now: Time) {
        self.cache.add_pod(Arc::new(PodInfo::with_features(pod.clone(), &self.features)));
        self.note_member(&pod);
        let objects = EventObjects { old: None, new: Some(pod.into()) };
        self.tell_queue(EventResource::AssignedPod, Action::ADD, &objects, now);
    }

    /// E-005
    fn pod_updated(
        &mut self,
        old: &Arc<Pod>,
        new: Arc<Pod>,
        now: Time,
        host: &mut dyn SchedulerHost,
    ) {
        if !old.spec.node_name.is_empty() {
            // A pod the cache does not know is only logged upstream.
            let info = Arc::new(PodInfo::with_features(new.clone(), &self.features));
            let _updated = self.cache.update_pod(old, info);
            if old.metadata.uid != new.metadata.uid {
                self.shared.pod_groups.remove(old);
            }
            self.note_member(&new);
            let events = pod_update_events(old, &new, &self.features);
            let objects = EventObjects { old: Some(old.clone().into()), new: Some(new.into()) };
            let (queue, cx) = self.queue_context(now);
            for event in events {
                queue.move_all(&cx, event, &objects, None);
            }
        } else if !new.spec.node_name.is_empty() {
            self.assigned_pod_added(new, now);
            if self.is_ours(old) {
                self.queue.delete(old);
            }
        } else if self.is_ours(old) {
            self.queued_pod_updated(old, new, now, host);
        }
    }

    /// E-006
    fn queued_pod_updated(
        &mut self,
        old: &Arc<Pod>,
        new: Arc<Pod>,
        now: Time,
        host: &mut dyn SchedulerHost,
    ) {
        if old.metadata.resource_version == new.metadata.resource_version {
            return;
        }
        self.shared.pod_groups.update(&new);
        if self.cache.is_assumed(new.metadata.uid) {
            if new.is_terminating() && !old.is_terminating() {
                self.assumed_pod_deleted(new.metadata.uid, now, host);
            }
            return;
        }
        let (queue, cx) = self.queue_context(now);
        queue.update(&cx, old, new.clone());
        let (before, after) = (old.status.nominated_node_name, new.status.nominated_node_name);
        if !before.is_empty() && before != after {
            self.nomination_given_up(old, now);
        }
    }

    /// E-007, E-008
    fn pod_deleted(&mut self, pod: &Arc<Pod>, now: Time, host: &mut dyn SchedulerHost) {
        if !pod.spec.node_name.is_empty() {
            // A pod the cache does not know is only logged upstream.
            let _removed = self.cache.remove_pod(pod);
            self.shared.pod_groups.remove(pod);
            let objects = EventObjects { old: Some(pod.clone().into()), new: None };
            let (queue, cx) = self.queue_context(now);
            queue.move_all(&cx, ASSIGNED_POD_DELETE, &objects, None);
        } else if self.is_ours(pod) {
            self.queue.delete(pod);
            self.shared.pod_groups.remove(pod);
            if self.cache.is_assumed(pod.metadata.uid) {
                self.assumed_pod_deleted(pod.metadata.uid, now, host);
            } else if !pod.status.nominated_node_name.is_empty() {
                self.nomination_given_up(pod, now);
            }
        }
    }

    /// A pod that is being bound was deleted: its place is free again (E-009).
    fn assumed_pod_deleted(&mut self, uid: Symbol, now: Time, host: &mut dyn SchedulerHost) {
        let Some(assumed) = self.cache.pod(uid).cloned() else { return };
        if !self.reject_waiting(uid, Symbol::EMPTY, "removed", now, host) {
            // Upstream only logs when it cannot be forgotten.
            let _forgotten = self.cache.forget_pod(&assumed);
            self.shared.pod_groups.forget(&assumed.pod);
        }
        let objects = EventObjects { old: Some(assumed.pod.clone().into()), new: None };
        let (queue, cx) = self.queue_context(now);
        queue.move_all(&cx, ASSIGNED_POD_DELETE, &objects, None);
    }

    /// Pods of at most its priority may use what a nominated pod no longer claims (E-006, E-008).
    fn nomination_given_up(&mut self, pod: &Arc<Pod>, now: Time) {
        let objects = EventObjects { old: Some(pod.clone().into()), new: None };
        let priority = pod.priority();
        let (queue, cx) = self.queue_context(now);
        let lower = |other: &PodInfo| other.priority() <= priority;
        queue.move_all(&cx, ASSIGNED_POD_DELETE, &objects, Some(&lower));
    }

    /// A change of anything but pods and nodes.
    fn other_changed(&mut self, action: Action, objects: EventObjects, now: Time) {
        let kind = objects.new.as_ref().or(objects.old.as_ref()).map(Object::kind);
        if matches!(kind, Some(Kind::DeviceClass | Kind::ResourceSlice | Kind::ResourceClaim)) {
            self.kept.clear(); // NodeResourcesFit leaves some resources to devices
        }
        if let Some(Object::ResourceClaim(claim)) = objects.new.as_ref().or(objects.old.as_ref()) {
            let key = NamespacedName::new(claim.metadata.namespace, claim.metadata.name);
            self.shared.claims.observe(&self.objects, key, counts_shares(&self.features));
        }
        self.taint_rule_changed(&objects, now);
        if let Some(resource) = kind.and_then(resource_of) {
            self.tell_queue(resource, action, &objects, now);
        }
    }

    /// A rule that taints devices changed: so did the slices of those devices (DRA-005).
    fn taint_rule_changed(&mut self, objects: &EventObjects, now: Time) {
        let rule = |object: &Option<Object>| match object {
            Some(Object::DeviceTaintRule(rule)) => Some(rule.clone()),
            _ => None,
        };
        let (old, new) = (rule(&objects.old), rule(&objects.new));
        let read = self.features.enabled(Feature::DRADeviceTaintRules);
        if !read || (old.is_none() && new.is_none()) {
            return;
        }
        for (before, after) in changed_slices(&self.objects, old.as_ref(), new.as_ref()) {
            let objects = EventObjects { old: Some(before.into()), new: Some(after.into()) };
            self.tell_queue(EventResource::ResourceSlice, Action::UPDATE, &objects, now);
        }
    }

    fn tell_queue(
        &mut self,
        resource: EventResource,
        action: Action,
        objects: &EventObjects,
        now: Time,
    ) {
        let (queue, cx) = self.queue_context(now);
        queue.move_all(&cx, ClusterEvent::new(resource, action), objects, None);
    }

    /// Enters the pod among those of its group, if it has one.
    pub(crate) fn note_member(&mut self, pod: &Pod) {
        if self.group(pod).is_some() {
            self.shared.pod_groups.add(pod);
        }
    }

    /// Whether a profile serves the pod (E-010).
    pub(crate) fn is_ours(&self, pod: &Pod) -> bool {
        self.frameworks.contains_key(&pod.spec.scheduler_name)
    }
}

/// The event resource of a kind; kinds that are only looked up have none.
fn resource_of(kind: Kind) -> Option<EventResource> {
    Some(match kind {
        Kind::PersistentVolume => EventResource::PersistentVolume,
        Kind::PersistentVolumeClaim => EventResource::PersistentVolumeClaim,
        Kind::StorageClass => EventResource::StorageClass,
        Kind::CsiNode => EventResource::CsiNode,
        Kind::CsiDriver => EventResource::CsiDriver,
        Kind::CsiStorageCapacity => EventResource::CsiStorageCapacity,
        Kind::VolumeAttachment => EventResource::VolumeAttachment,
        Kind::ResourceClaim => EventResource::ResourceClaim,
        Kind::ResourceSlice => EventResource::ResourceSlice,
        Kind::DeviceClass => EventResource::DeviceClass,
        Kind::PodGroup => EventResource::PodGroup,
        _ => return None,
    })
}
