//! A host that records requests and returns preset answers.

use std::task::Poll;

use serde_json::Value;

use crate::host::{ApiEvent, ExtenderCall, Host, HostError, PodStatusPatch};
use crate::pod::NamespacedName;
use kubestep_api::intern::Symbol;
use kubestep_api::{
    Condition, Kind, Name, NodeAllocatableResourceClaimStatus, Object,
    PodExtendedResourceClaimStatus, ResourceClaim, Uid,
};

/// A request to a [`FakeHost`].
#[derive(Clone, PartialEq, Debug)]
pub enum Asked {
    /// To bind a pod to a node.
    Bind(NamespacedName, Name),
    /// To change a pod's status.
    Patch(NamespacedName, PodStatusPatch),
    /// To delete a pod.
    Delete(NamespacedName),
    /// To delete a claim.
    DeleteClaim(NamespacedName),
    /// To remove the user of that UID from a claim.
    ReleaseClaim(NamespacedName, Uid),
    /// To set a condition of a pod group.
    GroupCondition(NamespacedName, Condition),
    /// To write which claim a pod's extended resources use.
    SetExtendedResourceClaim(NamespacedName, PodExtendedResourceClaimStatus),
    /// To write which node resources a pod's claims use.
    SetNodeResourceClaims(NamespacedName, Vec<NodeAllocatableResourceClaimStatus>),
    /// To update an object.
    Update(Object),
    /// To create an object.
    Create(Object),
    /// To record an event.
    Event(ApiEvent),
    /// To call an extender.
    Extender(ExtenderCall),
}

/// A host that records requests and accepts all except those it is set to refuse.
#[derive(Default)]
pub struct FakeHost {
    /// The requests, in order.
    pub asked: Vec<Asked>,
    /// Names of pods and objects for which every request fails with `rejected`.
    pub refuse: Vec<Name>,
    /// Names of deleted pods: deleting one returns `false`.
    pub deleted: Vec<Name>,
    /// The objects on the server; later entries override earlier ones.
    pub stored: Vec<Object>,
    /// Answers of extenders, consumed from the front; without one the call fails.
    pub extender_answers: Vec<Result<Value, HostError>>,
    /// How many updates are asked for again before one is answered.
    pub unanswered: usize,
}

impl FakeHost {
    fn answer(&mut self, name: Name, asked: Asked) -> Result<(), HostError> {
        self.asked.push(asked);
        if self.refuse.contains(&name) {
            Err(HostError::Failed("rejected".to_owned()))
        } else {
            Ok(())
        }
    }
}

impl Host for FakeHost {
    fn bind(&mut self, pod: NamespacedName, _uid: Uid, node: Name) -> Poll<Result<(), HostError>> {
        Poll::Ready(self.answer(pod.name, Asked::Bind(pod, node)))
    }

    fn patch_pod_status(
        &mut self,
        pod: NamespacedName,
        patch: PodStatusPatch,
    ) -> Result<(), HostError> {
        self.answer(pod.name, Asked::Patch(pod, patch))
    }

    fn evict(
        &mut self,
        pod: NamespacedName,
        _uid: Uid,
        condition: Option<Condition>,
    ) -> Poll<Result<bool, HostError>> {
        if condition.is_some() {
            let patch = PodStatusPatch { condition, nominated_node: None };
            self.answer(pod.name, Asked::Patch(pod, patch))?;
        }
        self.answer(pod.name, Asked::Delete(pod))?;
        Poll::Ready(Ok(!self.deleted.contains(&pod.name)))
    }

    fn get(&self, kind: Kind, key: NamespacedName) -> Option<Object> {
        let same = |other: &&Object| other.kind() == kind && NamespacedName::of(other) == key;
        self.stored.iter().rev().find(same).cloned()
    }

    fn update(&mut self, _pod: Uid, object: Object) -> Poll<Result<Object, HostError>> {
        self.answer(object.metadata().name, Asked::Update(object.clone()))?;
        if self.unanswered > 0 {
            self.unanswered -= 1;
            return Poll::Pending;
        }
        Poll::Ready(Ok(object))
    }

    fn send(&mut self, object: Object) -> Result<(), HostError> {
        self.answer(object.metadata().name, Asked::Update(object))
    }

    fn create(&mut self, _pod: Uid, object: Object) -> Poll<Result<Object, HostError>> {
        self.answer(object.metadata().name, Asked::Create(object.clone()))?;
        Poll::Ready(Ok(object))
    }

    fn release_claim(&mut self, claim: &ResourceClaim, user: Uid) -> Result<(), HostError> {
        let key = NamespacedName::new(claim.metadata.namespace, claim.metadata.name);
        self.answer(key.name, Asked::ReleaseClaim(key, user))
    }

    fn delete_claim(&mut self, claim: &ResourceClaim, _finalizer: Symbol) -> Result<(), HostError> {
        let key = NamespacedName::new(claim.metadata.namespace, claim.metadata.name);
        self.answer(key.name, Asked::DeleteClaim(key))
    }

    fn set_group_condition(
        &mut self,
        group: NamespacedName,
        condition: Condition,
    ) -> Result<(), HostError> {
        self.answer(group.name, Asked::GroupCondition(group, condition))
    }

    fn set_extended_resource_claim(
        &mut self,
        pod: NamespacedName,
        status: PodExtendedResourceClaimStatus,
    ) -> Poll<Result<(), HostError>> {
        Poll::Ready(self.answer(pod.name, Asked::SetExtendedResourceClaim(pod, status)))
    }

    fn set_node_resource_claims(
        &mut self,
        pod: NamespacedName,
        statuses: Vec<NodeAllocatableResourceClaimStatus>,
    ) -> Result<(), HostError> {
        self.answer(pod.name, Asked::SetNodeResourceClaims(pod, statuses))
    }

    fn event(&mut self, event: ApiEvent) {
        self.asked.push(Asked::Event(event));
    }

    fn call_extender(&mut self, call: ExtenderCall) -> Result<Value, HostError> {
        self.asked.push(Asked::Extender(call));
        match self.extender_answers.is_empty() {
            true => Err(HostError::Failed("no answer".to_owned())),
            false => self.extender_answers.remove(0),
        }
    }
}
