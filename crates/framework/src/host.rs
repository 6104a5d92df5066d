//! The host: what the engine requests from outside, which are writes to the API and calls to
//! extenders.
//!
//! The engine has no I/O of its own. A simulation answers at once from memory. A live scheduler
//! sends the write to the API server and returns [`Poll::Pending`] until it has the answer; the
//! same request, made again, returns that answer. Writes whose answer upstream ignores return no
//! answer here either.

use std::fmt::Display;
use std::task::Poll;

use crate::pod::NamespacedName;
use kubestep_api::intern::Symbol;
use kubestep_api::{
    Condition, Kind, Name, NodeAllocatableResourceClaimStatus, Object,
    PodExtendedResourceClaimStatus, ResourceClaim, Uid,
};

/// A change of a pod's status, as one PATCH.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct PodStatusPatch {
    /// The condition to set.
    pub condition: Option<Condition>,
    /// The nominated node to set; `Some("")` clears it, `None` leaves it unchanged.
    pub nominated_node: Option<Name>,
}

/// The object that caused an event.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RelatedObject {
    /// Whether it is a pod group; otherwise it is a pod.
    pub is_group: bool,
    /// Its namespace and name.
    pub key: NamespacedName,
    /// Its UID.
    pub uid: Uid,
}

/// An API event (events.k8s.io) about a decision.
#[derive(Clone, PartialEq, Debug)]
pub struct ApiEvent {
    /// The pod that the event is about.
    pub regarding: NamespacedName,
    /// The UID of that pod.
    pub uid: Uid,
    /// The object that caused the event.
    pub related: Option<RelatedObject>,
    /// The reporting scheduler: the name of the profile.
    pub reporter: Symbol,
    /// `type` of the event: `Normal` or `Warning`.
    pub kind: &'static str,
    /// Why the event is written, for example `FailedScheduling`.
    pub reason: &'static str,
    /// What the scheduler did, for example `Scheduling`.
    pub action: &'static str,
    /// The text of the event, for people.
    pub note: String,
}

/// A call of an HTTP extender.
#[derive(Clone, PartialEq, Debug)]
pub struct ExtenderCall {
    /// The index of the extender in the effective order.
    pub extender: usize,
    /// `filter`, `prioritize`, `bind` or `preempt` — the configured verb.
    pub verb: Symbol,
    /// The body of the request, as JSON.
    pub body: serde_json::Value,
}

/// Why a request failed, in the words of the API server or the extender, which statuses show.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HostError {
    /// The object was changed since the version on which the update is based.
    #[error("{0}")]
    Conflict(String),
    /// The request failed for another reason; sending it again may not help.
    #[error("{0}")]
    Failed(String),
}

impl HostError {
    /// Whether the same change may succeed on the newest version.
    pub fn is_conflict(&self) -> bool {
        matches!(self, HostError::Conflict(_))
    }

    /// The same error, introduced by what was being done.
    pub fn context(self, what: impl Display) -> HostError {
        match self {
            HostError::Conflict(text) => HostError::Conflict(format!("{what}: {text}")),
            HostError::Failed(text) => HostError::Failed(format!("{what}: {text}")),
        }
    }
}

impl From<String> for HostError {
    fn from(text: String) -> HostError {
        HostError::Failed(text)
    }
}

/// The engine's interface to the outside.
pub trait Host {
    /// Binds a pod to a node.
    fn bind(&mut self, pod: NamespacedName, uid: Uid, node: Name) -> Poll<Result<(), HostError>>;
    /// Changes a pod's status.
    fn patch_pod_status(
        &mut self,
        pod: NamespacedName,
        patch: PodStatusPatch,
    ) -> Result<(), HostError>;
    /// Sets the condition, if there is one, and deletes the pod. `Ok(false)`: it was already
    /// deleted.
    fn evict(
        &mut self,
        pod: NamespacedName,
        uid: Uid,
        condition: Option<Condition>,
    ) -> Poll<Result<bool, HostError>>;
    /// The current object on the server, which may be newer than the scheduler's.
    fn get(&self, kind: Kind, key: NamespacedName) -> Option<Object>;
    /// Updates an object (volume, claim, …) for the pod with that UID and returns the server's
    /// version. Several pods may update one object at the same time.
    fn update(&mut self, pod: Uid, object: Object) -> Poll<Result<Object, HostError>>;
    /// Whether an update of the object was sent and has no answer yet: another one would be based
    /// on an outdated version.
    fn is_being_updated(&self, _kind: Kind, _key: NamespacedName) -> bool {
        false
    }
    /// Updates an object without waiting for the answer. The error is one that is known at once.
    fn send(&mut self, object: Object) -> Result<(), HostError>;
    /// Creates an object for the pod with that UID and returns the server's version.
    fn create(&mut self, pod: Uid, object: Object) -> Poll<Result<Object, HostError>>;
    /// Removes the user with that UID from `reservedFor` of a claim, as one PATCH.
    fn release_claim(&mut self, claim: &ResourceClaim, user: Uid) -> Result<(), HostError>;
    /// Removes a finalizer from a claim, and deletes it.
    fn delete_claim(&mut self, claim: &ResourceClaim, finalizer: Symbol) -> Result<(), HostError>;
    /// Sets a condition of a pod group, as one PATCH.
    fn set_group_condition(
        &mut self,
        group: NamespacedName,
        condition: Condition,
    ) -> Result<(), HostError>;
    /// Writes into a pod's status which claim its extended resources use, as one PATCH.
    fn set_extended_resource_claim(
        &mut self,
        pod: NamespacedName,
        status: PodExtendedResourceClaimStatus,
    ) -> Poll<Result<(), HostError>>;
    /// Writes into a pod's status which node resources its claims use, as one PATCH.
    fn set_node_resource_claims(
        &mut self,
        pod: NamespacedName,
        statuses: Vec<NodeAllocatableResourceClaimStatus>,
    ) -> Result<(), HostError>;
    /// Writes an API event.
    fn event(&mut self, event: ApiEvent);
    /// Calls an extender and returns the response body.
    fn call_extender(&mut self, call: ExtenderCall) -> Result<serde_json::Value, HostError>;
    /// Calls an extender to bind a pod and returns the response body.
    fn bind_by_extender(
        &mut self,
        call: ExtenderCall,
    ) -> Poll<Result<serde_json::Value, HostError>> {
        Poll::Ready(self.call_extender(call))
    }
    /// Whether controllers outside the engine are running, so that changes may still arrive from
    /// them.
    fn others_may_act(&self) -> bool {
        false
    }
}
