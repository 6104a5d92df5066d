//! Event handlers: what a change in the cluster does to listers, cache and queue, and to plugins
//! that handle events themselves, as upstream's plugins add handlers to informers.
//!
//! Upstream: `pkg/scheduler/eventhandlers.go`.

use std::sync::Arc;

use crate::Scheduler;
use crate::host::SchedulerHost;
use crate::profiles::Handler;
use crate::queue::node_events::node_update_events;
use crate::queue::pod_events::{
    ASSIGNED_POD_ADD, ASSIGNED_POD_DELETE, UNSCHEDULED_POD_ADD, UNSCHEDULED_POD_DELETE,
    UNSCHEDULED_POD_UPDATE, pod_update_events,
};
use kubestep_api::intern::Symbol;
use kubestep_api::{Kind, Node, Object, Pod, Time, Uid};
use kubestep_config::Feature;
use kubestep_config::versions::Switch;
use kubestep_framework::dra::counts_shares;
use kubestep_framework::dra::taint_rules::changed_slices;
use kubestep_framework::events::{Action, ClusterEvent, EventObjects, EventResource};
use kubestep_framework::plugin::HandlerContext;
use kubestep_framework::pod::{NamespacedName, PodInfo};
use kubestep_framework::pod_groups::policy::watched_resource;

/// A change in the cluster, as a watch reports it.
#[derive(Clone, Debug)]
pub enum Change {
    /// An object was added.
    Add(Object),
    /// An object was updated.
    Update {
        /// The object as it was before the update.
        old: Object,
        /// The object as the update left it.
        new: Object,
    },
    /// An object was deleted.
    Delete(Object),
}

impl Scheduler {
    /// Handles a change: first in the listers, then in cache and queue.
    pub fn handle(&mut self, change: Change, now: Time, host: &mut dyn SchedulerHost) {
        self.run_event_handlers(&change, now);
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
                let added = ClusterEvent::new(EventResource::Node, Action::ADD);
                self.move_after_node_change(added, &objects, now);
            }
            // Terminated pods are not watched.
            Object::Pod(pod) if pod.is_terminal() => {}
            Object::Pod(pod) => {
                self.cluster.objects.insert(pod.clone().into());
                self.pod_added(pod, now);
            }
            other => {
                self.cluster.objects.insert(other.clone());
                self.other_changed(Action::ADD, EventObjects { old: None, new: Some(other) }, now);
            }
        }
    }

    fn updated(&mut self, old: Object, new: Object, now: Time, host: &mut dyn SchedulerHost) {
        match (old, new) {
            (Object::Node(old), Object::Node(new)) => self.node_updated(&old, new, now),
            (Object::Pod(old), Object::Pod(new)) => match (old.is_terminal(), new.is_terminal()) {
                // Terminated pods are not watched.
                (true, true) => {}
                (true, false) => self.added(new.into(), now),
                (false, true) => self.deleted(&old.into(), now, host),
                (false, false) => {
                    self.cluster.objects.insert(new.clone().into());
                    self.pod_updated(&old, new, now, host);
                }
            },
            (old, new) => {
                self.cluster.objects.insert(new.clone());
                let objects = EventObjects { old: Some(old), new: Some(new) };
                self.other_changed(Action::UPDATE, objects, now);
            }
        }
    }

    fn deleted(&mut self, object: &Object, now: Time, host: &mut dyn SchedulerHost) {
        match object {
            Object::Node(node) => {
                // Before the cache forgets it.
                if self.cluster.features.has(Switch::EventsByChange) {
                    let objects = EventObjects { old: Some(object.clone()), new: None };
                    self.notify_queue(EventResource::Node, Action::DELETE, &objects, now);
                }
                // Upstream only logs that a node was unknown.
                let _removed = self.cache.remove_node(node);
            }
            Object::Pod(pod) => {
                if self.cluster.objects.remove(object).is_some() {
                    self.pod_deleted(pod, now, host);
                }
            }
            other => {
                self.cluster.objects.remove(other);
                let objects = EventObjects { old: Some(other.clone()), new: None };
                self.other_changed(Action::DELETE, objects, now);
            }
        }
    }

    fn node_updated(&mut self, old: &Arc<Node>, new: Arc<Node>, now: Time) {
        self.cache.update_node(new.clone());
        let events = node_update_events(old, &new, &self.cluster.features);
        let objects = EventObjects { old: Some(old.clone().into()), new: Some(new.into()) };
        for event in events {
            self.move_after_node_change(event, &objects, now);
        }
    }

    fn pod_added(&mut self, pod: Arc<Pod>, now: Time) {
        if !pod.spec.node_name.is_empty() {
            self.assigned_pod_added(pod, now);
        } else if self.profiles.serve(&pod) {
            self.cluster.add_group_member(&pod);
            let info = Arc::new(PodInfo::with_features(pod.clone(), &self.cluster.features));
            let gangs = self.cluster.features.enabled(Feature::GangScheduling);
            let cx = self.cluster.queue_context(now);
            self.queue.add(&cx, info);
            if gangs {
                let event = ClusterEvent::new(EventResource::UnschedulablePod, Action::ADD);
                let objects = EventObjects { old: None, new: Some(pod.into()) };
                self.queue.move_all(&cx, event, &objects, None);
            }
        } else if !self.cluster.features.has(Switch::PodGroupCycles) {
            // Up to 1.35, pods of other schedulers are members, too.
            self.cluster.add_group_member(&pod);
        }
    }

    fn assigned_pod_added(&mut self, pod: Arc<Pod>, now: Time) {
        self.cache.add_pod(Arc::new(PodInfo::with_features(pod.clone(), &self.cluster.features)));
        self.cluster.add_group_member(&pod);
        let objects = EventObjects { old: None, new: Some(pod.clone().into()) };
        self.move_after_pod_change(ASSIGNED_POD_ADD, &objects, &pod, now);
    }

    fn pod_updated(
        &mut self,
        old: &Arc<Pod>,
        new: Arc<Pod>,
        now: Time,
        host: &mut dyn SchedulerHost,
    ) {
        if !old.spec.node_name.is_empty() {
            // A pod the cache does not know is only logged upstream.
            let info = Arc::new(PodInfo::with_features(new.clone(), &self.cluster.features));
            let _updated = self.cache.update_pod(old, info);
            if old.metadata.uid != new.metadata.uid {
                self.cluster.shared.pod_groups.remove(old);
            }
            self.cluster.add_group_member(&new);
            let events = pod_update_events(old, &new, &self.cluster.features);
            let new_object = Some(new.clone().into());
            let objects = EventObjects { old: Some(old.clone().into()), new: new_object };
            for event in events {
                self.move_after_pod_change(event, &objects, &new, now);
            }
        } else if !new.spec.node_name.is_empty() {
            self.assigned_pod_added(new, now);
            if self.profiles.serve(old) {
                self.queue.delete(old);
                let is_deletion = !self.cluster.features.has(Switch::BindingIsNoDeletion);
                if is_deletion && !old.status.nominated_node_name.is_empty() {
                    self.nomination_dropped(old, now);
                }
            }
        } else if self.profiles.serve(old) {
            self.queued_pod_updated(old, new, now, host);
        }
    }

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
        self.cluster.shared.pod_groups.update(&new);
        if self.cache.is_assumed(new.metadata.uid) {
            let forgets = self.cluster.features.has(Switch::DeletedAssumedPodForgotten);
            if forgets && new.is_terminating() && !old.is_terminating() {
                self.assumed_pod_deleted(new.metadata.uid, now, host);
            }
            return;
        }
        let cx = self.cluster.queue_context(now);
        self.queue.update(&cx, old, new.clone());
        let (before, after) = (old.status.nominated_node_name, new.status.nominated_node_name);
        if !before.is_empty() && before != after {
            self.nomination_dropped(old, now);
        }
    }

    fn pod_deleted(&mut self, pod: &Arc<Pod>, now: Time, host: &mut dyn SchedulerHost) {
        self.cluster.shared.pod_groups.remove(pod);
        if !pod.spec.node_name.is_empty() {
            // Upstream only logs that the cache does not know a pod.
            let _removed = self.cache.remove_pod(pod);
            let objects = EventObjects { old: Some(pod.clone().into()), new: None };
            let cx = self.cluster.queue_context(now);
            self.queue.move_all(&cx, ASSIGNED_POD_DELETE, &objects, None);
        } else if self.profiles.serve(pod) {
            self.queue.delete(pod);
            let uid = pod.metadata.uid;
            if self.cache.is_assumed(uid) && self.is_assumed_pod_watched(uid) {
                self.assumed_pod_deleted(uid, now, host);
            } else if !pod.status.nominated_node_name.is_empty() {
                self.nomination_dropped(pod, now);
            }
        }
    }

    /// Whether the deletion of an assumed pod ends its binding; up to 1.34, only at Permit.
    fn is_assumed_pod_watched(&self, uid: Uid) -> bool {
        self.cluster.features.has(Switch::DeletedAssumedPodForgotten)
            || self.waiting.is_at_permit(uid)
    }

    /// A pod that is being bound was deleted, which frees its resources.
    fn assumed_pod_deleted(&mut self, uid: Uid, now: Time, host: &mut dyn SchedulerHost) {
        let Some(assumed) = self.cache.pod(uid).cloned() else { return };
        if !self.reject_waiting(uid, Symbol::EMPTY, "removed", now, host) {
            // Upstream only logs when the pod cannot be forgotten.
            let _forgotten = self.cache.forget_pod(&assumed);
            self.cluster.shared.pod_groups.forget(&assumed.pod);
        }
        let objects = EventObjects { old: Some(assumed.pod.clone().into()), new: None };
        let cx = self.cluster.queue_context(now);
        self.queue.move_all(&cx, ASSIGNED_POD_DELETE, &objects, None);
    }

    /// Requeues pods of at most the pod's priority: they may fit where it was nominated.
    fn nomination_dropped(&mut self, pod: &Arc<Pod>, now: Time) {
        if !self.cluster.features.has(Switch::NominatedPodDeletionRequeues) {
            return;
        }
        let objects = EventObjects { old: Some(pod.clone().into()), new: None };
        let priority = pod.priority();
        let cx = self.cluster.queue_context(now);
        let lower = |other: &PodInfo| other.priority() <= priority;
        self.queue.move_all(&cx, ASSIGNED_POD_DELETE, &objects, Some(&lower));
    }

    /// Handles a change of any kind but pods and nodes.
    fn other_changed(&mut self, action: Action, objects: EventObjects, now: Time) {
        let kind = objects.new.as_ref().or(objects.old.as_ref()).map(Object::kind);
        if kind == Some(Kind::DeviceClass) {
            self.algorithm.answers.cache.clear(); // NodeResourcesFit ignores the extended resources of DRA devices
        }
        if let Some(Object::ResourceClaim(claim)) = objects.new.as_ref().or(objects.old.as_ref()) {
            let key = NamespacedName::new(claim.metadata.namespace, claim.metadata.name);
            self.cluster.shared.claims.observe(
                &self.cluster.objects,
                key,
                counts_shares(&self.cluster.features),
            );
        }
        self.taint_rule_changed(&objects, now);
        if let Some(resource) = kind.and_then(|kind| self.resource_of(kind))
            && !self.ignores_class(action, &objects)
        {
            self.notify_queue(resource, action, &objects, now);
        }
    }

    /// A change of a rule that taints devices changes the slices of those devices too.
    fn taint_rule_changed(&mut self, objects: &EventObjects, now: Time) {
        let rule = |object: &Option<Object>| match object {
            Some(Object::DeviceTaintRule(rule)) => Some(rule.clone()),
            _ => None,
        };
        let (old, new) = (rule(&objects.old), rule(&objects.new));
        let read = self.cluster.features.enabled(Feature::DRADeviceTaintRules);
        if !read || (old.is_none() && new.is_none()) {
            return;
        }
        for (before, after) in changed_slices(&self.cluster.objects, old.as_ref(), new.as_ref()) {
            let objects = EventObjects { old: Some(before.into()), new: Some(after.into()) };
            self.notify_queue(EventResource::ResourceSlice, Action::UPDATE, &objects, now);
        }
    }

    /// The event of any kind but pods, and of nodes that are created or deleted.
    fn other_labels(&self, old: Option<&Object>, new: Option<&Object>) -> Option<ClusterEvent> {
        let action = match (old, new) {
            (None, Some(_)) => Action::ADD,
            (Some(_), Some(_)) => Action::UPDATE,
            (_, None) => Action::DELETE,
        };
        let resource = match new.or(old)? {
            Object::Node(_) => EventResource::Node,
            object => self.resource_of(object.kind())?,
        };
        Some(ClusterEvent::new(resource, action))
    }

    /// The event resource of a kind. `None` for kinds that are only listed.
    fn resource_of(&self, kind: Kind) -> Option<EventResource> {
        let watched = |resource: &EventResource| match resource {
            EventResource::PodGroup | EventResource::Workload => {
                watched_resource(&self.cluster.features) == Some(*resource)
            }
            _ => true,
        };
        resource_of(kind).filter(watched)
    }

    fn notify_queue(
        &mut self,
        resource: EventResource,
        action: Action,
        objects: &EventObjects,
        now: Time,
    ) {
        let cx = self.cluster.queue_context(now);
        self.queue.move_all(&cx, ClusterEvent::new(resource, action), objects, None);
    }

    /// Reports a change to the plugins that handle events.
    pub(crate) fn run_event_handlers(&mut self, change: &Change, now: Time) {
        let handlers = self.profiles.handlers.clone();
        if handlers.is_empty() {
            return;
        }
        if let Some(objects) = watched_change(change) {
            handlers.iter().for_each(|handler| self.run_event_handler(handler, &objects, now));
        }
    }

    /// Reports all objects to the plugins that handle events and are not in `before`, as to
    /// plugins that start.
    pub(crate) fn start_event_handlers(&mut self, before: &[Symbol], now: Time) {
        let handlers = self.profiles.handlers.clone();
        let objects = self.cluster.objects.clone();
        let kinds = Kind::all_custom().chain([Kind::Pod]);
        let all: Vec<Object> = kinds
            .flat_map(|kind| {
                let mut keys = objects.keys(kind);
                keys.sort_unstable();
                keys.into_iter().filter_map(|key| objects.get(kind, key)).collect::<Vec<_>>()
            })
            .collect();
        for handler in handlers.iter().filter(|handler| !before.contains(&handler.plugin.name())) {
            for object in &all {
                let added = EventObjects { old: None, new: Some(object.clone()) };
                self.run_event_handler(handler, &added, now);
            }
        }
    }

    /// The names of the plugins that handle events.
    pub(crate) fn event_handlers(&self) -> Vec<Symbol> {
        let handlers: &Arc<[Handler]> = &self.profiles.handlers;
        handlers.iter().map(|handler| handler.plugin.name()).collect()
    }

    fn run_event_handler(&mut self, handler: &Handler, objects: &EventObjects, now: Time) {
        handler.plugin.handle_event(&mut self.handler_context(handler, now), objects);
    }

    /// What a plugin that handles events sees.
    pub(crate) fn handler_context<'a>(
        &'a mut self,
        handler: &'a Handler,
        now: Time,
    ) -> HandlerContext<'a> {
        let cluster = &mut self.cluster;
        HandlerContext {
            objects: &cluster.objects,
            features: &cluster.features,
            shared: &mut cluster.shared,
            profiles: &handler.profiles,
            now,
        }
    }

    /// The names under which `scheduler_event_handling_duration_seconds` counts a change from `old`
    /// to `new`, each once; `None` is an object that does not exist. Empty if the scheduler handles no such event, as for another scheduler's pod.
    pub fn event_labels(&self, old: Option<&Object>, new: Option<&Object>) -> Vec<String> {
        let events = match (watched_object(old), watched_object(new)) {
            (Some(Object::Node(old)), Some(Object::Node(new))) => {
                node_update_events(old, new, &self.cluster.features)
            }
            (Some(Object::Pod(old)), Some(Object::Pod(new))) => self.pod_update_labels(old, new),
            (None, Some(Object::Pod(pod))) => {
                self.pod_labels(pod, ASSIGNED_POD_ADD, UNSCHEDULED_POD_ADD)
            }
            (Some(Object::Pod(pod)), None) => {
                self.pod_labels(pod, ASSIGNED_POD_DELETE, UNSCHEDULED_POD_DELETE)
            }
            (old, new) => self.other_labels(old, new).into_iter().collect(),
        };
        events.iter().map(ClusterEvent::label).collect()
    }

    fn pod_labels(
        &self,
        pod: &Pod,
        assigned: ClusterEvent,
        unassigned: ClusterEvent,
    ) -> Vec<ClusterEvent> {
        match (pod.spec.node_name.is_empty(), self.profiles.serve(pod)) {
            (false, _) => vec![assigned],
            (true, true) => vec![unassigned],
            (true, false) => Vec::new(),
        }
    }

    fn pod_update_labels(&self, old: &Pod, new: &Pod) -> Vec<ClusterEvent> {
        let changes = || pod_update_events(old, new, &self.cluster.features);
        if !old.spec.node_name.is_empty() {
            let whole = ClusterEvent::new(EventResource::AssignedPod, Action::UPDATE);
            return std::iter::once(whole).chain(changes()).collect();
        }
        let serves = self.profiles.serve(old);
        if !new.spec.node_name.is_empty() {
            let dequeued = serves.then_some(UNSCHEDULED_POD_DELETE);
            return std::iter::once(ASSIGNED_POD_ADD).chain(dequeued).collect();
        }
        if !serves || old.metadata.resource_version == new.metadata.resource_version {
            return Vec::new();
        }
        let special = changes().into_iter().filter(|event| *event != UNSCHEDULED_POD_UPDATE);
        std::iter::once(UNSCHEDULED_POD_UPDATE).chain(special).collect()
    }
}

/// The event resource of a kind. `None` for kinds that are only listed in every version.
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
        Kind::Workload => EventResource::Workload,
        Kind::Custom(kind) => EventResource::Custom(kind),
        _ => return None,
    })
}

/// The change as an informer reports it that does not watch pods that succeeded or failed.
fn watched_change(change: &Change) -> Option<EventObjects> {
    let ended = |object: &Object| matches!(object, Object::Pod(pod) if pod.is_terminal());
    let (old, new) = match change {
        Change::Add(new) => (None, Some(new)),
        Change::Update { old, new } => (Some(old), Some(new)),
        Change::Delete(old) => (Some(old), None),
    };
    let known = |object: Option<&Object>| object.filter(|object| !ended(object)).cloned();
    let objects = EventObjects { old: known(old), new: known(new) };
    (objects.old.is_some() || objects.new.is_some()).then_some(objects)
}

/// Terminated pods are not watched.
fn watched_object(object: Option<&Object>) -> Option<&Object> {
    object.filter(|object| !matches!(object, Object::Pod(pod) if pod.is_terminal()))
}
