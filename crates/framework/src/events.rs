//! Cluster events: what can change in a cluster, and which changes a plugin registers for.
//!
//! Upstream: `pkg/scheduler/framework/events.go` and
//! `staging/src/k8s.io/kube-scheduler/framework/types.go`.

use std::fmt;
use std::ops::BitOr;
use std::sync::Arc;

use crate::error::PluginError;
use crate::plugin::QueueContext;
use crate::pod::PodInfo;
use kubestep_api::{CustomKind, Object, Uid};

/// A set of actions, as bits in upstream's order from low to high.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Action(pub u32);

impl Action {
    /// The object was added.
    pub const ADD: Action = Action(1);
    /// The object was deleted.
    pub const DELETE: Action = Action(1 << 1);
    /// A node's allocatable changed.
    pub const UPDATE_NODE_ALLOCATABLE: Action = Action(1 << 2);
    /// A node's labels changed.
    pub const UPDATE_NODE_LABEL: Action = Action(1 << 3);
    /// A node's taints changed, or it was uncordoned.
    pub const UPDATE_NODE_TAINT: Action = Action(1 << 4);
    /// The status of a node condition changed.
    pub const UPDATE_NODE_CONDITION: Action = Action(1 << 5);
    /// A node's annotations changed.
    pub const UPDATE_NODE_ANNOTATION: Action = Action(1 << 6);
    /// A node's declared features changed.
    pub const UPDATE_NODE_DECLARED_FEATURE: Action = Action(1 << 7);
    /// A pod's labels changed.
    pub const UPDATE_POD_LABEL: Action = Action(1 << 8);
    /// A pod's request for some resource decreased.
    pub const UPDATE_POD_SCALE_DOWN: Action = Action(1 << 9);
    /// A pod's tolerations changed.
    pub const UPDATE_POD_TOLERATION: Action = Action(1 << 10);
    /// A pod's last scheduling gate was removed.
    pub const UPDATE_POD_SCHEDULING_GATES_ELIMINATED: Action = Action(1 << 11);
    /// A claim was generated for a pod.
    pub const UPDATE_POD_GENERATED_RESOURCE_CLAIM: Action = Action(1 << 12);
    /// Every action, additions and deletions included.
    pub const ALL: Action = Action((1 << 13) - 1);
    /// Every update, of whatever field.
    pub const UPDATE: Action = Action(((1 << 13) - 1) & !3);

    /// Whether both sets have an action in common.
    pub fn overlaps(self, other: Action) -> bool {
        self.0 & other.0 != 0
    }

    /// The actions that are not in `other`.
    pub const fn without(self, other: Action) -> Action {
        Action(self.0 & !other.0)
    }
}

impl BitOr for Action {
    type Output = Action;
    fn bitor(self, other: Action) -> Action {
        Action(self.0 | other.0)
    }
}

const ACTION_NAMES: [(Action, &str); 15] = [
    (Action::ADD, "Add"),
    (Action::DELETE, "Delete"),
    (Action::UPDATE_NODE_ALLOCATABLE, "UpdateNodeAllocatable"),
    (Action::UPDATE_NODE_LABEL, "UpdateNodeLabel"),
    (Action::UPDATE_NODE_TAINT, "UpdateNodeTaint"),
    (Action::UPDATE_NODE_CONDITION, "UpdateNodeCondition"),
    (Action::UPDATE_NODE_ANNOTATION, "UpdateNodeAnnotation"),
    (Action::UPDATE_NODE_DECLARED_FEATURE, "UpdateNodeDeclaredFeature"),
    (Action::UPDATE_POD_LABEL, "UpdatePodLabel"),
    (Action::UPDATE_POD_SCALE_DOWN, "UpdatePodScaleDown"),
    (Action::UPDATE_POD_TOLERATION, "UpdatePodToleration"),
    (Action::UPDATE_POD_SCHEDULING_GATES_ELIMINATED, "UpdatePodSchedulingGatesEliminated"),
    (Action::UPDATE_POD_GENERATED_RESOURCE_CLAIM, "UpdatePodGeneratedResourceClaim"),
    (Action::ALL, "All"),
    (Action::UPDATE, "Update"),
];

/// The kind of object that an event is about; a variant without a comment is the API kind of its
/// name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[allow(missing_docs)]
pub enum EventResource {
    /// Any pod, in a registration; `AssignedPod` and `UnschedulablePod` match it.
    Pod,
    /// A pod that has a node.
    AssignedPod,
    /// A pod without a node.
    UnschedulablePod,
    Node,
    PersistentVolume,
    /// A persistent volume claim.
    PersistentVolumeClaim,
    /// A CSINode: the CSI drivers of a node.
    CsiNode,
    CsiDriver,
    VolumeAttachment,
    /// A CSIStorageCapacity: free storage of a class.
    CsiStorageCapacity,
    StorageClass,
    ResourceClaim,
    ResourceSlice,
    DeviceClass,
    PodGroup,
    /// A workload with pod groups, up to 1.35.
    Workload,
    /// An object of a custom kind.
    Custom(CustomKind),
    /// An object of any kind, or none.
    Wildcard,
}

impl EventResource {
    /// The name as in an event's label.
    pub fn as_str(self) -> &'static str {
        match self {
            EventResource::Pod => "Pod",
            EventResource::AssignedPod => "AssignedPod",
            EventResource::UnschedulablePod => "UnschedulablePod",
            EventResource::Node => "Node",
            EventResource::PersistentVolume => "PersistentVolume",
            EventResource::PersistentVolumeClaim => "PersistentVolumeClaim",
            EventResource::CsiNode => "storage.k8s.io/CSINode",
            EventResource::CsiDriver => "storage.k8s.io/CSIDriver",
            EventResource::VolumeAttachment => "storage.k8s.io/VolumeAttachment",
            EventResource::CsiStorageCapacity => "storage.k8s.io/CSIStorageCapacity",
            EventResource::StorageClass => "storage.k8s.io/StorageClass",
            EventResource::ResourceClaim => "resource.k8s.io/ResourceClaim",
            EventResource::ResourceSlice => "resource.k8s.io/ResourceSlice",
            EventResource::DeviceClass => "resource.k8s.io/DeviceClass",
            EventResource::PodGroup => "scheduling.k8s.io/PodGroup",
            EventResource::Workload => "scheduling.k8s.io/Workload",
            EventResource::Custom(kind) => kind.event(),
            EventResource::Wildcard => "*",
        }
    }
}

/// A change in the cluster, or a class of changes that a plugin registers for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ClusterEvent {
    /// The kind of object that changed.
    pub resource: EventResource,
    /// How it changed; several actions in a registration.
    pub action: Action,
    /// A label of its own (`UnschedulableTimeout`, `ForceActivate`); empty for the default label.
    pub custom_label: &'static str,
}

impl ClusterEvent {
    /// The flush of leftover pods after five minutes; matches every registration.
    pub const UNSCHEDULABLE_TIMEOUT: ClusterEvent = ClusterEvent {
        resource: EventResource::Wildcard,
        action: Action::ALL,
        custom_label: "UnschedulableTimeout",
    };
    /// Activation by a plugin or by the user.
    pub const FORCE_ACTIVATE: ClusterEvent = ClusterEvent {
        resource: EventResource::Wildcard,
        action: Action::ALL,
        custom_label: "ForceActivate",
    };
    /// The scheduler's configuration changed.
    pub const RECONFIGURED: ClusterEvent = ClusterEvent {
        resource: EventResource::Wildcard,
        action: Action::ALL,
        custom_label: "Reconfigured",
    };
    /// The user requeues a pod.
    pub const MANUAL: ClusterEvent = ClusterEvent {
        resource: EventResource::Wildcard,
        action: Action::ALL,
        custom_label: "Manual",
    };

    /// An event with the default label.
    pub const fn new(resource: EventResource, action: Action) -> ClusterEvent {
        ClusterEvent { resource, action, custom_label: "" }
    }

    /// Whether it matches every registration.
    pub fn is_wildcard(&self) -> bool {
        self.resource == EventResource::Wildcard && self.action == Action::ALL
    }

    /// Whether `self`, a registration, matches `incoming`: the same kind of object, a common
    /// action, and an incoming mask that is not larger than the registered one.
    pub fn matches(&self, incoming: &ClusterEvent) -> bool {
        let pod_kinds = [EventResource::AssignedPod, EventResource::UnschedulablePod];
        let resource = self.resource == EventResource::Wildcard
            || self.resource == incoming.resource
            || (self.resource == EventResource::Pod && pod_kinds.contains(&incoming.resource));
        self.is_wildcard()
            || (resource
                && self.action.overlaps(incoming.action)
                && incoming.action.0 <= self.action.0)
    }

    /// The label, as in upstream's metrics and logs: the custom label, or resource and action.
    pub fn label(&self) -> String {
        if !self.custom_label.is_empty() {
            return self.custom_label.to_owned();
        }
        let action = ACTION_NAMES.iter().find(|(action, _)| *action == self.action);
        format!("{}{}", self.resource.as_str(), action.map_or("", |(_, name)| name))
    }
}

/// A queueing hint: what a plugin's hint function returns for an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueingHint {
    /// The event may make the pod schedulable.
    Queue,
    /// The event cannot make it schedulable.
    Skip,
}

impl QueueingHint {
    /// `Queue` if the event helps, otherwise `Skip`.
    pub const fn queue_if(helps: bool) -> QueueingHint {
        if helps { QueueingHint::Queue } else { QueueingHint::Skip }
    }
}

/// The objects of an event: the old one for updates and deletions, the new one for additions and
/// updates.
#[derive(Clone, Default, Debug)]
pub struct EventObjects {
    /// The object before the change; `None` if it was added.
    pub old: Option<Object>,
    /// The object after the change; `None` if it was deleted.
    pub new: Option<Object>,
}

/// An event carries an object of another kind than it is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("expected {expected}, but got {found}")]
pub struct WrongKind {
    /// The kind that the event is about.
    pub expected: &'static str,
    /// The kind of the object.
    pub found: &'static str,
}

/// Accessors of both objects as one kind, for hint functions: `(old, new)`.
macro_rules! typed_accessors {
    ($($method:ident => $variant:ident as $type:ty),* $(,)?) => {
        impl EventObjects {$(
            #[doc = concat!("Old and new object, which must be of kind `", stringify!($variant), "`.")]
            ///
            /// # Errors
            /// They are of another kind.
            pub fn $method(&self) -> Result<(Option<&$type>, Option<&$type>), WrongKind> {
                fn typed(object: &Option<Object>) -> Result<Option<&$type>, WrongKind> {
                    match object {
                        None => Ok(None),
                        Some(Object::$variant(typed)) => Ok(Some(typed)),
                        Some(other) => Err(WrongKind {
                            expected: stringify!($variant),
                            found: other.kind().as_str(),
                        }),
                    }
                }
                let new = typed(&self.new)?;
                Ok((typed(&self.old)?, new))
            }
        )*}
    };
}

typed_accessors! {
    pods => Pod as kubestep_api::Pod,
    nodes => Node as kubestep_api::Node,
    device_classes => DeviceClass as kubestep_api::DeviceClass,
    persistent_volumes => PersistentVolume as kubestep_api::PersistentVolume,
    persistent_volume_claims => PersistentVolumeClaim as kubestep_api::PersistentVolumeClaim,
    storage_classes => StorageClass as kubestep_api::StorageClass,
    csi_nodes => CsiNode as kubestep_api::CsiNode,
    csi_drivers => CsiDriver as kubestep_api::CsiDriver,
    csi_storage_capacities => CsiStorageCapacity as kubestep_api::CsiStorageCapacity,
    volume_attachments => VolumeAttachment as kubestep_api::VolumeAttachment,
    resource_claims => ResourceClaim as kubestep_api::ResourceClaim,
    pod_groups => PodGroup as kubestep_api::PodGroup,
    workloads => Workload as kubestep_api::Workload,
}

impl EventObjects {
    /// The new version of the pod with this UID, if the event is about that pod.
    ///
    /// # Errors
    /// The objects are not pods.
    pub fn updated_pod(&self, uid: Uid) -> Result<Option<&kubestep_api::Pod>, WrongKind> {
        let (_, new) = self.pods()?;
        Ok(new.filter(|new| new.metadata.uid == uid))
    }
}

/// The rules by which plugins register for events in an older version, or without the gate
/// SchedulerQueueingHints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegistrationRules {
    /// Whether updates of nodes and pods are distinguished by what changed, as since 1.32.
    pub by_change: bool,
    /// Whether queueing hints are on.
    pub hints: bool,
}

/// Makes a newest registration an older one; `None`: by these rules the plugin does not register it.
pub type OlderRegistration = fn(RegistrationRules, Registration) -> Option<Registration>;

/// The answer of a queueing hint. An error counts as [`QueueingHint::Queue`].
pub type HintResult = Result<QueueingHint, PluginError>;

/// A queueing hint: whether an event could make a pod schedulable that the plugin rejected. It gets
/// the pod and the objects of the event.
pub type HintFn = dyn Fn(&QueueContext<'_>, &PodInfo, &EventObjects) -> HintResult + Send + Sync;

/// A class of events that could make a pod schedulable which the plugin rejected, and the hint that
/// judges each of them. Upstream: `ClusterEventWithHint`.
///
/// ```
/// use kubestep_framework::events::{Action, EventResource, QueueingHint, Registration};
///
/// // A new node helps if it is not cordoned.
/// let registration = Registration::hinted(EventResource::Node, Action::ADD, |_, _, objects| {
///     let (_, added) = objects.nodes()?;
///     Ok(QueueingHint::queue_if(added.is_some_and(|node| !node.spec.unschedulable)))
/// });
/// assert_eq!(registration.event.label(), "NodeAdd");
/// ```
#[derive(Clone)]
pub struct Registration {
    /// The class of events.
    pub event: ClusterEvent,
    /// `None`: every such event requeues the pod.
    pub hint: Option<Arc<HintFn>>,
}

impl Registration {
    /// A registration for events that `hint` judges.
    pub fn hinted<F>(resource: EventResource, action: Action, hint: F) -> Registration
    where
        F: Fn(&QueueContext<'_>, &PodInfo, &EventObjects) -> HintResult + Send + Sync + 'static,
    {
        let event = ClusterEvent::new(resource, action);
        Registration { event, hint: Some(Arc::new(hint)) }
    }

    /// A registration for events that always requeue the pod.
    pub fn always(resource: EventResource, action: Action) -> Registration {
        Registration { event: ClusterEvent::new(resource, action), hint: None }
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hinted = self.hint.is_some();
        f.debug_struct("Registration").field("event", &self.event).field("hinted", &hinted).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels() {
        let event = ClusterEvent::new(EventResource::AssignedPod, Action::DELETE);
        assert_eq!(event.label(), "AssignedPodDelete");
        let event = ClusterEvent::new(EventResource::UnschedulablePod, Action::UPDATE);
        assert_eq!(event.label(), "UnschedulablePodUpdate");
        assert_eq!(ClusterEvent::FORCE_ACTIVATE.label(), "ForceActivate");
        let mixed = ClusterEvent::new(EventResource::Node, Action::ADD | Action::UPDATE_NODE_LABEL);
        assert_eq!(mixed.label(), "Node");
    }

    #[test]
    fn matching() {
        let pod_delete = ClusterEvent::new(EventResource::Pod, Action::DELETE);
        let assigned = ClusterEvent::new(EventResource::AssignedPod, Action::DELETE);
        assert!(pod_delete.matches(&assigned));
        assert!(!assigned.matches(&pod_delete));
        let node = ClusterEvent::new(EventResource::Node, Action::ADD | Action::UPDATE_NODE_LABEL);
        assert!(node.matches(&ClusterEvent::new(EventResource::Node, Action::UPDATE_NODE_LABEL)));
        assert!(!node.matches(&ClusterEvent::new(EventResource::Node, Action::UPDATE_NODE_TAINT)));
        // A coarse incoming mask matches only a registration that is at least as coarse.
        assert!(!node.matches(&ClusterEvent::new(EventResource::Node, Action::UPDATE)));
        assert!(ClusterEvent::UNSCHEDULABLE_TIMEOUT.matches(&assigned));
    }
}
