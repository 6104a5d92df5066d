//! What the engine asks of the world around it: writes to the API and calls to extenders.
//!
//! The engine has no I/O of its own. A simulation answers at once from memory. A live scheduler
//! sends the write to the API server and says [`Poll::Pending`] until it has the answer: asked
//! the same again, it tells what became of the first time. Writes that upstream makes without
//! caring for the answer have no answer here either.

use std::fmt;
use std::task::Poll;

use crate::api::{
    Condition, Kind, NodeAllocatableResourceClaimStatus, Object, PodExtendedResourceClaimStatus,
    ResourceClaim,
};
use crate::config::ExtensionPoint;
use crate::engine::pod::NamespacedName;
use crate::engine::scheduler::Scheduler;
use crate::intern::Symbol;

/// A change of a pod's status, as one PATCH.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct PodStatusPatch {
    /// The condition to set.
    pub condition: Option<Condition>,
    /// The nominated node to set; `Some("")` clears it, `None` leaves it.
    pub nominated_node: Option<Symbol>,
}

/// An event for people (events.k8s.io), written beside a decision.
#[derive(Clone, PartialEq, Debug)]
pub struct ApiEvent {
    /// The pod it is about.
    pub regarding: NamespacedName,
    /// Its UID.
    pub uid: Symbol,
    /// The pod group on whose behalf it happened. Upstream names pods, too, but by a wrapper of
    /// no kind, which is left out.
    pub related: Option<(NamespacedName, Symbol)>,
    /// The scheduler that says it: the name of its profile.
    pub reporter: Symbol,
    /// `Normal` or `Warning`.
    pub kind: &'static str,
    /// For example `FailedScheduling`.
    pub reason: &'static str,
    /// For example `Scheduling`.
    pub action: &'static str,
    /// The text.
    pub note: String,
}

/// A call of an HTTP extender.
#[derive(Clone, PartialEq, Debug)]
pub struct ExtenderCall {
    /// Which extender, by its place in the effective order.
    pub extender: usize,
    /// `filter`, `prioritize`, `bind` or `preempt` — the configured verb.
    pub verb: Symbol,
    /// The request body.
    pub body: serde_json::Value,
}

/// Why an object was not updated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum UpdateError {
    /// It has changed since the version on which the update is based.
    Conflict(String),
    /// Anything else.
    Failed(String),
}

impl UpdateError {
    /// Whether the same change may succeed on the newest version.
    pub fn is_conflict(&self) -> bool {
        matches!(self, UpdateError::Conflict(_))
    }
}

impl From<String> for UpdateError {
    fn from(text: String) -> UpdateError {
        UpdateError::Failed(text)
    }
}

impl fmt::Display for UpdateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (UpdateError::Conflict(text) | UpdateError::Failed(text)) = self;
        f.write_str(text)
    }
}

/// What a scheduling cycle has just done to the scheduler's state, in the order of a cycle.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Milestone {
    /// Its pod left the queue.
    Popped,
    /// The plugins of an extension point ran, and what they decided is done. The pod is assumed
    /// on its node right before Reserve.
    Ran(ExtensionPoint),
    /// It failed, and its pod is back in the queue.
    Requeued,
}

/// The outside of the engine. Errors are texts, as they end up in statuses.
pub trait Host {
    /// Binds a pod to a node.
    fn bind(&mut self, pod: NamespacedName, uid: Symbol, node: Symbol) -> Poll<Result<(), String>>;
    /// Changes a pod's status.
    fn patch_pod_status(
        &mut self,
        pod: NamespacedName,
        patch: PodStatusPatch,
    ) -> Result<(), String>;
    /// Sets the condition, if there is one, and deletes the pod. `Ok(false)`: it was gone
    /// already.
    fn evict(
        &mut self,
        pod: NamespacedName,
        uid: Symbol,
        condition: Option<Condition>,
    ) -> Poll<Result<bool, String>>;
    /// An object as the server has it now, which may be newer than what the scheduler has heard.
    fn get(&self, kind: Kind, key: NamespacedName) -> Option<Object>;
    /// Updates an object (volume, claim, …) for the pod of that UID and gives back what the
    /// server made of it. Several pods may update one object at the same time.
    fn update(&mut self, pod: Symbol, object: Object) -> Poll<Result<Object, UpdateError>>;
    /// Whether an update of the object was sent and is not answered yet: another one would be
    /// based on an outdated version.
    fn is_being_updated(&self, _kind: Kind, _key: NamespacedName) -> bool {
        false
    }
    /// Updates an object without waiting for the answer. The error is one that is known at once.
    fn send(&mut self, object: Object) -> Result<(), String>;
    /// Creates an object for the pod of that UID and gives back what the server made of it.
    fn create(&mut self, pod: Symbol, object: Object) -> Poll<Result<Object, String>>;
    /// Removes the user of that UID from `reservedFor` of a claim, as one PATCH.
    fn release_claim(&mut self, claim: &ResourceClaim, user: Symbol) -> Result<(), String>;
    /// Removes a finalizer from a claim, and deletes it.
    fn delete_claim(&mut self, claim: &ResourceClaim, finalizer: Symbol) -> Result<(), String>;
    /// Sets a condition of a pod group, as one PATCH.
    fn set_group_condition(
        &mut self,
        group: NamespacedName,
        condition: Condition,
    ) -> Result<(), String>;
    /// Says in a pod's status which claim stands for its extended resources, as one PATCH.
    fn set_extended_resource_claim(
        &mut self,
        pod: NamespacedName,
        status: PodExtendedResourceClaimStatus,
    ) -> Poll<Result<(), String>>;
    /// Says in a pod's status what its claims take of the node's own resources, as one PATCH.
    fn set_node_resource_claims(
        &mut self,
        pod: NamespacedName,
        statuses: Vec<NodeAllocatableResourceClaimStatus>,
    ) -> Result<(), String>;
    /// Records an event for people.
    fn event(&mut self, event: ApiEvent);
    /// Calls an extender: the response body, or what went wrong.
    fn call_extender(&mut self, call: ExtenderCall) -> Result<serde_json::Value, String>;
    /// Lets an extender bind a pod: the response body, or what went wrong.
    fn bind_by_extender(&mut self, call: ExtenderCall) -> Poll<Result<serde_json::Value, String>> {
        Poll::Ready(self.call_extender(call))
    }
    /// A cycle, by its number, reached a milestone: a debugger can look at the scheduler here.
    fn reached(&mut self, _scheduler: &Scheduler, _cycle: u64, _milestone: Milestone) {}
    /// Whether controllers are at work elsewhere, so that what has not happened yet still may.
    fn others_may_act(&self) -> bool {
        false
    }
}
