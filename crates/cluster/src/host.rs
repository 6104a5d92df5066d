//! How the simulated API server handles the scheduler's writes: immediately in memory, unless it
//! mirrors a remote one. Then they are sent, and the scheduler gets the answer later.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::task::{Poll, ready};

use crate::api_server::{ApiServer, not_found, object_key};
use crate::disruption::RemovalCause;
use crate::remote::{PodRef, Request, RequestKey, WriteOutcome};
use crate::volume_controller;
use kubestep_api::intern::Symbol;
use kubestep_api::{
    Condition, ConditionStatus, Kind, Name, NodeAllocatableResourceClaimStatus, Object,
    PodExtendedResourceClaimStatus, PodPhase, ResourceClaim, Time, Uid,
};
use kubestep_framework::extender;
use kubestep_framework::host::{ApiEvent, ExtenderCall, Host, HostError, PodStatusPatch};
use kubestep_framework::pod::NamespacedName;
use kubestep_scheduler::Scheduler;
use kubestep_scheduler::host::{Milestone, SchedulerHost};

/// The most pods that may use a resource claim.
const MAX_CLAIM_USERS: usize = 256;

impl ApiServer {
    /// The reference to a known pod, for a remote write.
    fn pod_ref(&self, key: NamespacedName) -> Result<PodRef, String> {
        let pod = self.objects.pod(key).ok_or_else(|| not_found(key))?;
        Ok(PodRef { key, uid: pod.metadata.uid })
    }

    /// The update request from the known version of an object to the wanted one.
    fn update_of(&self, object: &Object) -> Result<Request, String> {
        let (kind, key) = (object.kind(), NamespacedName::of(object));
        let before = Host::get(self, kind, key);
        let before = before.ok_or_else(|| missing(kind, key))?;
        Ok(Request::Update { before, after: object.clone() })
    }

    /// Sends a remote write whose answer nothing waits for; `false` if the API server is local.
    fn sent(&mut self, request: impl FnOnce() -> Request) -> bool {
        match &mut self.remote {
            Some(remote) => {
                remote.enqueue(request());
                true
            }
            None => false,
        }
    }

    /// Sends a remote request and returns its answer; `None` if the API server is local.
    fn request(
        &mut self,
        key: RequestKey,
        request: Request,
    ) -> Option<Poll<Result<WriteOutcome, String>>> {
        Some(self.remote.as_mut()?.send(key, request))
    }

    pub(super) fn bind_locally(&mut self, pod: PodRef, node: Name) -> Result<(), String> {
        let PodRef { key, uid } = pod;
        let current = self.objects.pod(key).ok_or_else(|| not_found(key))?;
        if current.metadata.uid != uid {
            let found = current.metadata.uid;
            return Err(format!("pod {key} was recreated: UID {found} instead of {uid}"));
        }
        if !current.spec.node_name.is_empty() {
            let bound = current.spec.node_name;
            return Err(format!("pod {} is already assigned to node {:?}", key.name, bound));
        }
        let now = self.now.truncated_to_seconds();
        self.change_pod(key, |pod| {
            // As the API server does when a binding is created.
            let scheduled = Condition {
                type_: "PodScheduled".into(),
                status: ConditionStatus::True,
                ..Condition::default()
            };
            set_condition(&mut pod.status.conditions, scheduled, now);
            pod.spec.node_name = node;
            pod.status.phase = PodPhase::Running;
            pod.status.nominated_node_name = Name::EMPTY;
        })
    }
}

impl ApiServer {
    pub(super) fn release_locally(&mut self, key: NamespacedName, user: Uid) -> Result<(), String> {
        let mut claim = self.claim_locally(key)?;
        let users = claim.status.reserved_for.len();
        claim.status.reserved_for.retain(|other| other.uid != user);
        match claim.status.reserved_for.len() == users {
            true => Ok(()), // an empty patch gives no new version
            false => self.update_locally(claim.into()).map(drop),
        }
    }

    pub(super) fn update_locally(&mut self, object: Object) -> Result<Object, String> {
        let (kind, key) = (object.kind(), NamespacedName::of(&object));
        if ApiServer::get(self, kind, key).is_none() {
            return Err(missing(kind, key));
        }
        if let Object::ResourceClaim(claim) = &object {
            check_users(claim)?;
        }
        self.put(object);
        let written = ApiServer::get(self, kind, key).ok_or_else(|| missing(kind, key))?;
        volume_controller::react(self, &written);
        Ok(written)
    }

    fn claim_locally(&self, key: NamespacedName) -> Result<ResourceClaim, String> {
        match ApiServer::get(self, Kind::ResourceClaim, key) {
            Some(Object::ResourceClaim(claim)) => Ok(Arc::unwrap_or_clone(claim)),
            _ => Err(missing(Kind::ResourceClaim, key)),
        }
    }
}

/// Rejects what the API server's validation rejects: more pods than may use a claim, and one that
/// uses it twice.
///
/// Upstream: `validateResourceClaimStatusUpdate` in `pkg/apis/resource/validation`.
fn check_users(claim: &ResourceClaim) -> Result<(), String> {
    let users = &claim.status.reserved_for;
    let invalid = |what: String| {
        let name = claim.metadata.name;
        Err(format!(
            "ResourceClaim.resource.k8s.io \"{name}\" is invalid: status.reservedFor{what}"
        ))
    };
    if users.len() > MAX_CLAIM_USERS {
        let users = users.len();
        return invalid(format!(": Too many: {users}: must have at most {MAX_CLAIM_USERS} items"));
    }
    let mut seen = BTreeSet::new();
    match users.iter().position(|user| !seen.insert(user.uid)) {
        Some(at) => invalid(format!("[{at}]: Duplicate value: \"{}\"", users[at].uid)),
        None => Ok(()),
    }
}

/// Sets a condition. The time of its transition stays if its status does.
fn set_condition(conditions: &mut Vec<Condition>, mut condition: Condition, now: Time) {
    condition.last_transition_time = Some(now);
    match conditions.iter_mut().find(|other| other.type_ == condition.type_) {
        Some(present) => {
            if present.status == condition.status {
                condition.last_transition_time = present.last_transition_time;
            }
            *present = condition;
        }
        None => {
            // Most pods get one condition and no more.
            conditions.reserve_exact(1);
            conditions.push(condition);
        }
    }
}

fn missing(kind: Kind, key: NamespacedName) -> String {
    format!("{} {:?} not found", kind.plural(), key.name)
}

impl SchedulerHost for ApiServer {
    fn reached(&mut self, scheduler: &Scheduler, cycle: u64, milestone: Milestone) {
        self.note(scheduler, Some((cycle, milestone)));
    }
}

impl Host for ApiServer {
    fn bind(&mut self, key: NamespacedName, uid: Uid, node: Name) -> Poll<Result<(), HostError>> {
        self.faults.bind(key)?;
        let pod = PodRef { key, uid };
        match self.request(RequestKey::Bind(uid), Request::Bind { pod, node }) {
            Some(answer) => answer.map_ok(drop).map_err(HostError::from),
            None => Poll::Ready(Ok(self.bind_locally(pod, node)?)),
        }
    }

    fn patch_pod_status(
        &mut self,
        key: NamespacedName,
        patch: PodStatusPatch,
    ) -> Result<(), HostError> {
        if self.remote.is_some() {
            let pod = self.pod_ref(key)?;
            self.sent(|| Request::PodStatus { pod, patch });
            return Ok(());
        }
        let now = self.now;
        Ok(self.change_pod(key, |pod| {
            if let Some(node) = patch.nominated_node {
                pod.status.nominated_node_name = node;
            }
            if let Some(condition) = patch.condition {
                set_condition(&mut pod.status.conditions, condition, now);
            }
        })?)
    }

    fn evict(
        &mut self,
        key: NamespacedName,
        uid: Uid,
        condition: Option<Condition>,
    ) -> Poll<Result<bool, HostError>> {
        let pod = PodRef { key, uid };
        let request = Request::Evict { pod, condition: condition.clone() };
        if let Some(answer) = self.request(RequestKey::Evict(uid), request) {
            return answer.map_ok(|written| written != WriteOutcome::Gone).map_err(HostError::from);
        }
        if condition.is_some() && self.objects.pod(key).is_some() {
            self.patch_pod_status(key, PodStatusPatch { condition, nominated_node: None })?;
        }
        Poll::Ready(Ok(self.remove_from_node(key, RemovalCause::Preempted)))
    }

    fn get(&self, kind: Kind, key: NamespacedName) -> Option<Object> {
        let stored = ApiServer::get(self, kind, key);
        match &self.remote {
            Some(remote) => remote.newest(object_key(kind, key), stored),
            None => stored,
        }
    }

    fn update(&mut self, pod: Uid, object: Object) -> Poll<Result<Object, HostError>> {
        if self.remote.is_some() {
            let request = self.update_of(&object)?;
            let answer = self.request(RequestKey::Update(pod, object.key()), request);
            return object_of(answer, object);
        }
        Poll::Ready(Ok(self.update_locally(object)?))
    }

    fn is_being_updated(&self, kind: Kind, key: NamespacedName) -> bool {
        self.remote.as_ref().is_some_and(|remote| remote.is_updating(object_key(kind, key)))
    }

    fn send(&mut self, object: Object) -> Result<(), HostError> {
        if self.remote.is_some() {
            let request = self.update_of(&object)?;
            self.sent(|| request);
            return Ok(());
        }
        self.update_locally(object)?;
        Ok(())
    }

    fn create(&mut self, pod: Uid, mut object: Object) -> Poll<Result<Object, HostError>> {
        if self.remote.is_some() {
            let key = RequestKey::Create(pod, object.kind());
            let answer = self.request(key, Request::Create(object.clone()));
            return object_of(answer, object);
        }
        self.name(&mut object);
        let (kind, key) = (object.kind(), NamespacedName::of(&object));
        if self.get(kind, key).is_some() {
            let text = format!("{} {:?} already exists", kind.plural(), key.name);
            return Poll::Ready(Err(text.into()));
        }
        self.put(object);
        Poll::Ready(Ok(Host::get(self, kind, key).ok_or_else(|| not_found(key))?))
    }

    fn release_claim(&mut self, claim: &ResourceClaim, user: Uid) -> Result<(), HostError> {
        let metadata = &claim.metadata;
        let (key, uid) = (NamespacedName::new(metadata.namespace, metadata.name), metadata.uid);
        if self.sent(|| Request::ReleaseClaim { key, uid, user }) {
            return Ok(());
        }
        Ok(self.release_locally(key, user)?)
    }

    fn delete_claim(&mut self, claim: &ResourceClaim, finalizer: Symbol) -> Result<(), HostError> {
        if self.sent(|| Request::DeleteClaim { claim: Arc::new(claim.clone()), finalizer }) {
            return Ok(());
        }
        let key = NamespacedName::new(claim.metadata.namespace, claim.metadata.name);
        let mut claim = self.claim_locally(key)?;
        claim.metadata.finalizers.retain(|other| *other != finalizer);
        self.update_locally(claim.into())?;
        self.remove(Kind::ResourceClaim, key);
        Ok(())
    }

    fn set_group_condition(
        &mut self,
        key: NamespacedName,
        condition: Condition,
    ) -> Result<(), HostError> {
        let Some(Object::PodGroup(group)) = ApiServer::get(self, Kind::PodGroup, key) else {
            return Err(missing(Kind::PodGroup, key).into());
        };
        let uid = group.metadata.uid;
        if self.sent(|| Request::GroupCondition { key, uid, condition: condition.clone() }) {
            return Ok(());
        }
        let mut group = Arc::unwrap_or_clone(group);
        group.status.conditions.retain(|other| other.type_ != condition.type_);
        group.status.conditions.push(condition);
        self.update_locally(group.into())?;
        Ok(())
    }

    fn set_extended_resource_claim(
        &mut self,
        key: NamespacedName,
        status: PodExtendedResourceClaimStatus,
    ) -> Poll<Result<(), HostError>> {
        let pod = self.pod_ref(key)?;
        let request = Request::ExtendedResourceClaim { pod, status: status.clone() };
        if let Some(answer) = self.request(RequestKey::Claim(pod.uid), request) {
            return answer.map_ok(drop).map_err(HostError::from);
        }
        let status = Some(status.into());
        self.change_pod(key, |pod| pod.status.extended_resource_claim_status = status)?;
        Poll::Ready(Ok(()))
    }

    fn set_node_resource_claims(
        &mut self,
        key: NamespacedName,
        statuses: Vec<NodeAllocatableResourceClaimStatus>,
    ) -> Result<(), HostError> {
        let pod = self.objects.pod(key).ok_or_else(|| not_found(key))?;
        if pod.status.node_allocatable_resource_claim_statuses == statuses {
            return Ok(()); // an empty patch gives no new version
        }
        let pod = PodRef { key, uid: pod.metadata.uid };
        let request = || Request::NodeResourceClaims { pod, statuses: statuses.clone() };
        if self.sent(request) {
            return Ok(());
        }
        self.change_pod(key, |pod| pod.status.node_allocatable_resource_claim_statuses = statuses)?;
        Ok(())
    }

    fn event(&mut self, event: ApiEvent) {
        if self.remote.is_some() {
            let pod = self.objects.pod(event.regarding);
            let version = pod.map(|pod| pod.metadata.resource_version).unwrap_or_default();
            self.sent(|| Request::Event { event: event.clone(), version });
        }
        self.events.push(event);
    }

    /// When an extender binds a pod, the binding goes through this API server.
    fn call_extender(&mut self, call: ExtenderCall) -> Result<serde_json::Value, HostError> {
        self.faults.extender(call.extender)?;
        let Some(extenders) = self.extenders().cloned() else {
            let text = format!("extender {} cannot be reached from a snapshot", call.extender);
            return Err(text.into());
        };
        let answer = extenders(&call, &self.objects)?;
        if let Some((key, uid, node)) = extender::binding_in(&call)
            && extender::error_text(&answer).is_none()
            && self.remote.is_none()
        {
            self.faults.bind(key)?;
            self.bind_locally(PodRef { key, uid }, node)?;
        }
        Ok(answer)
    }

    /// With a remote API server the extender is called in the background, because it may be slow.
    fn bind_by_extender(
        &mut self,
        call: ExtenderCall,
    ) -> Poll<Result<serde_json::Value, HostError>> {
        let binding = extender::binding_in(&call).filter(|_| self.remote.is_some());
        let Some((key, uid, _)) = binding else { return Poll::Ready(self.call_extender(call)) };
        self.faults.extender(call.extender)?;
        let request = Request::ExtenderBind { pod: PodRef { key, uid }, call };
        let sent = self.request(RequestKey::Bind(uid), request);
        let answer = sent.unwrap_or(Poll::Pending).map_ok(|_| serde_json::Value::Null);
        answer.map_err(HostError::from)
    }

    fn others_may_act(&self) -> bool {
        self.remote.is_some()
    }
}

/// The object in the answer; without one, the object that was sent.
fn object_of(
    answer: Option<Poll<Result<WriteOutcome, String>>>,
    sent: Object,
) -> Poll<Result<Object, HostError>> {
    let Some(answer) = answer else { return Poll::Pending };
    Poll::Ready(match ready!(answer)? {
        WriteOutcome::Object(object) => Ok(object),
        WriteOutcome::Done => Ok(sent),
        WriteOutcome::Gone => Err(format!("{} not found", sent.key()).into()),
        WriteOutcome::Conflict { problem, .. } => Err(HostError::Conflict(problem)),
    })
}
