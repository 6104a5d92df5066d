//! Writes to a remote API server: the scheduler's requests stay in an outbox until the caller sends
//! them, and the answers are kept until the scheduler asks again.
//!
//! Nothing in this module waits or sends, so a cluster with a remote API server can still be copied
//! and replayed. Objects change when a watch reports it, not when a write is answered; an answer is
//! only read where the scheduler asks for the newest version.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use std::sync::Arc;
use std::task::Poll;

use kubestep_api::intern::Symbol;
use kubestep_api::{Condition, Kind, Name, NodeAllocatableResourceClaimStatus, Object, Uid};
use kubestep_api::{ObjectKey, PodExtendedResourceClaimStatus, ResourceClaim, ResourceVersion};
use kubestep_framework::host::{ApiEvent, ExtenderCall, PodStatusPatch};
use kubestep_framework::pod::NamespacedName;

/// A pod that a write refers to; the write fails if its UID differs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PodRef {
    /// Its namespace and name.
    pub key: NamespacedName,
    /// `metadata.uid` of the pod.
    pub uid: Uid,
}

/// A write to the API server.
#[derive(Clone, PartialEq, Debug)]
pub enum Request {
    /// Binds a pod to a node.
    Bind {
        /// The pod with the UID that it had then.
        pod: PodRef,
        /// The node to bind it to.
        node: Name,
    },
    /// Lets an extender bind a pod.
    ExtenderBind {
        /// The pod with the UID that it had then.
        pod: PodRef,
        /// The call of the extender.
        call: ExtenderCall,
    },
    /// Sets a condition of a pod and its nominated node.
    PodStatus {
        /// The pod with the UID that it had then.
        pod: PodRef,
        /// The condition and the nominated node.
        patch: PodStatusPatch,
    },
    /// Sets a condition, if given, and deletes the pod.
    Evict {
        /// The pod with the UID that it had then.
        pod: PodRef,
        /// The condition, with the reason of the eviction.
        condition: Option<Condition>,
    },
    /// Sets the claim for extended resources in a pod's status.
    ExtendedResourceClaim {
        /// The pod with the UID that it had then.
        pod: PodRef,
        /// The entry of `status.extendedResourceClaimStatus`.
        status: PodExtendedResourceClaimStatus,
    },
    /// Sets what a pod's claims use of the node's own resources in its status.
    NodeResourceClaims {
        /// The pod with the UID that it had then.
        pod: PodRef,
        /// The resources, by claim.
        statuses: Vec<NodeAllocatableResourceClaimStatus>,
    },
    /// Updates an object; fails with a conflict if another client was faster.
    Update {
        /// The version that the update is based on.
        before: Object,
        /// The object as it is to be.
        after: Object,
    },
    /// Creates an object that must not exist.
    Create(Object),
    /// Removes a user from `reservedFor` of a claim, regardless of its other changes.
    ReleaseClaim {
        /// Namespace and name of the claim.
        key: NamespacedName,
        /// UID of the claim.
        uid: Uid,
        /// UID of the pod in `reservedFor`.
        user: Uid,
    },
    /// Removes a finalizer from a claim, and deletes it.
    DeleteClaim {
        /// The claim as the scheduler knows it.
        claim: Arc<ResourceClaim>,
        /// The finalizer to remove.
        finalizer: Symbol,
    },
    /// Sets a condition of a pod group, regardless of its other changes.
    GroupCondition {
        /// Namespace and name of the group.
        key: NamespacedName,
        /// UID of the group.
        uid: Uid,
        /// The condition to set.
        condition: Condition,
    },
    /// An event for people.
    Event {
        /// The contents of the event.
        event: ApiEvent,
        /// The version of the pod that it is about.
        version: ResourceVersion,
    },
}

/// The sorts of writes that upstream's asynchronous API calls have metrics for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallType {
    /// A pod is bound.
    PodBinding,
    /// A pod's status is changed.
    PodStatusPatch,
}

impl CallType {
    /// The label of upstream's metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            CallType::PodBinding => "pod_binding",
            CallType::PodStatusPatch => "pod_status_patch",
        }
    }
}

/// What a binding cycle waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindingCycleWrite {
    /// A claim, a volume, or what a pod's status says of its claims.
    PreBind,
    /// The binding by the API server.
    Binding,
}

impl Request {
    /// What the write is in a binding cycle; `None` if it belongs to none.
    pub fn binding_cycle_write(&self) -> Option<BindingCycleWrite> {
        match self {
            Request::Bind { .. } => Some(BindingCycleWrite::Binding),
            Request::Update { .. }
            | Request::Create(_)
            | Request::ExtendedResourceClaim { .. }
            | Request::NodeResourceClaims { .. } => Some(BindingCycleWrite::PreBind),
            _ => None,
        }
    }

    /// The sort of the write; `None` if upstream makes it in another way.
    pub fn call_type(&self) -> Option<CallType> {
        match self {
            Request::Bind { .. } => Some(CallType::PodBinding),
            Request::PodStatus { .. } => Some(CallType::PodStatusPatch),
            _ => None,
        }
    }

    /// The write, in a few words.
    pub fn describe(&self) -> String {
        match self {
            Request::Bind { pod, node } => format!("bind {} to {node}", pod.key),
            Request::ExtenderBind { pod, call } => {
                format!("bind {} through extender {}", pod.key, call.extender)
            }
            Request::PodStatus { pod, patch } => match (&patch.condition, patch.nominated_node) {
                (Some(condition), _) => format!("condition {} of pod {}", condition.type_, pod.key),
                (None, Some(node)) if !node.is_empty() => {
                    format!("nominate {node} for {}", pod.key)
                }
                _ => format!("no nominated node for {}", pod.key),
            },
            Request::Evict { pod, .. } => format!("evict {}", pod.key),
            Request::ExtendedResourceClaim { pod, .. }
            | Request::NodeResourceClaims { pod, .. } => {
                format!("claims in the status of pod {}", pod.key)
            }
            Request::Update { after, .. } => format!("update {}", after.key()),
            Request::Create(object) => format!("create {}", object.key()),
            Request::ReleaseClaim { key, user, .. } => {
                format!("release ResourceClaim {key} from user {user}")
            }
            Request::DeleteClaim { claim, .. } => {
                let metadata = &claim.metadata;
                format!("delete ResourceClaim {}/{}", metadata.namespace, metadata.name)
            }
            Request::GroupCondition { key, condition, .. } => {
                format!("condition {} of PodGroup {key}", condition.type_)
            }
            Request::Event { event, .. } => format!("event about {}", event.regarding),
        }
    }
}

/// A request in flight, with the ticket that its answer refers to.
#[derive(Clone, PartialEq, Debug)]
pub struct Outgoing {
    /// Counted from 1, in the order of sending.
    pub ticket: u64,
    /// The write, with the object that it is about.
    pub request: Request,
}

/// The result of a successful write.
#[derive(Clone, PartialEq, Debug)]
pub enum WriteOutcome {
    /// The write succeeded, and returns no object.
    Done,
    /// The object no longer exists.
    Gone,
    /// The write succeeded; the new version of the object.
    Object(Object),
    /// Another client was faster.
    Conflict {
        /// `message` of the server's Status.
        problem: String,
        /// The present version of the object.
        newest: Object,
    },
}

/// The result of a write, or the server's error message.
pub type RequestResult = Result<WriteOutcome, String>;

/// Identifies a request across repeated calls, with the pod's UID where several pods may write to
/// one object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum RequestKey {
    /// Is a pod bound? By UID.
    Bind(Uid),
    /// Is a pod evicted? By UID.
    Evict(Uid),
    /// Is an object updated for the pod with this UID?
    Update(Uid, ObjectKey),
    /// Is an object of this kind created for the pod with this UID?
    Create(Uid, Kind),
    /// Does a pod's status name its claim? By UID.
    Claim(Uid),
}

#[derive(Clone, Debug)]
struct SentRequest {
    ticket: u64,
    request: Request,
    answer: Option<RequestResult>,
}

/// Writes in flight to an API server, and versions of objects that no watch has reported yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Remote {
    tickets: u64,
    outbox: Vec<Outgoing>,
    sent: HashMap<RequestKey, SentRequest>,
    /// The request that waits for the answer to a ticket.
    waiting: HashMap<u64, RequestKey>,
    /// Objects from answers, until a watch reports that version.
    newer: BTreeMap<ObjectKey, Object>,
}

impl Remote {
    /// Puts a request into the outbox; returns its ticket.
    pub fn enqueue(&mut self, request: Request) -> u64 {
        self.tickets += 1;
        self.outbox.push(Outgoing { ticket: self.tickets, request });
        self.tickets
    }

    /// Sends a request at the first call, and returns the answer once there is one.
    pub fn send(&mut self, key: RequestKey, request: Request) -> Poll<RequestResult> {
        if let Some(sent) = self.sent.get_mut(&key)
            && is_same(&sent.request, &request)
        {
            let Some(answer) = sent.answer.take() else { return Poll::Pending };
            self.sent.remove(&key);
            return Poll::Ready(answer);
        }
        let ticket = self.enqueue(request.clone());
        self.waiting.insert(ticket, key);
        self.sent.insert(key, SentRequest { ticket, request, answer: None });
        Poll::Pending
    }

    /// Stores an answer. Returns the key of the request with that ticket. If another request was
    /// sent with the key since, the answer is dropped, but other pods may wait for the update to
    /// end.
    pub fn answer(&mut self, ticket: u64, answer: RequestResult) -> Option<RequestKey> {
        if let Ok(WriteOutcome::Object(object) | WriteOutcome::Conflict { newest: object, .. }) =
            &answer
        {
            self.newer.insert(object.key(), object.clone());
        }
        let key = self.waiting.remove(&ticket)?;
        if let Some(sent) = self.sent.get_mut(&key)
            && sent.ticket == ticket
        {
            sent.answer = Some(answer);
        }
        Some(key)
    }

    /// Whether an update of an object is in flight.
    pub fn is_updating(&self, key: ObjectKey) -> bool {
        let of_object = |sent: &RequestKey| matches!(sent, RequestKey::Update(_, of) if *of == key);
        self.waiting.values().any(of_object)
    }

    /// Takes the requests since the last call.
    pub fn take_outbox(&mut self) -> Vec<Outgoing> {
        std::mem::take(&mut self.outbox)
    }

    /// The requests since they were last taken.
    pub fn outbox(&self) -> &[Outgoing] {
        &self.outbox
    }

    /// The oldest request that is waited for, or that was not taken yet.
    pub(crate) fn next_open(&mut self) -> Option<Outgoing> {
        let waiting = self.waiting.iter().filter_map(|(ticket, key)| {
            let sent = self.sent.get(key).filter(|sent| sent.ticket == *ticket)?;
            Some(Outgoing { ticket: *ticket, request: sent.request.clone() })
        });
        let open = self.outbox.iter().cloned().chain(waiting).min_by_key(|open| open.ticket)?;
        self.outbox.retain(|other| other.ticket != open.ticket);
        Some(open)
    }

    /// Takes the objects from answers that no watch has reported yet.
    pub(crate) fn take_newer(&mut self) -> Vec<Object> {
        std::mem::take(&mut self.newer).into_values().collect()
    }

    /// How many requests are waited for.
    pub fn unanswered(&self) -> usize {
        self.waiting.len()
    }

    /// How many writes of binding cycles are in flight, or follow one that is: each binding cycle waits
    /// for one write at a time, and after those of PreBind it binds.
    pub fn binding_cycle_writes(&self) -> usize {
        let sent = self.waiting.values().filter_map(|key| self.sent.get(key));
        let writes = sent.filter_map(|sent| sent.request.binding_cycle_write());
        writes.map(|write| if write == BindingCycleWrite::PreBind { 2 } else { 1 }).sum()
    }

    /// A watch reports an object (`None`: deleted): answers that are not newer are dropped.
    pub fn observe(&mut self, key: ObjectKey, object: Option<&Object>) {
        let Some(newer) = self.newer.get(&key) else { return };
        if object.is_none_or(|observed| !is_newer(newer, observed)) {
            self.newer.remove(&key);
        }
    }

    /// Whether an answer contained a version of an object that no watch has reported yet.
    pub fn awaits(&self, key: ObjectKey) -> bool {
        self.newer.contains_key(&key)
    }

    /// The newest version: from an answer, or as stored. A created object exists as soon as the
    /// answer arrives.
    pub fn newest(&self, key: ObjectKey, stored: Option<Object>) -> Option<Object> {
        match (self.newer.get(&key), stored) {
            (Some(newer), Some(stored)) if !is_newer(newer, &stored) => Some(stored),
            (Some(newer), _) => Some(newer.clone()),
            (None, stored) => stored,
        }
    }
}

/// Whether two requests are the same write. Times in conditions may differ: it is sent once.
fn is_same(sent: &Request, request: &Request) -> bool {
    match (sent, request) {
        (Request::Evict { pod, .. }, Request::Evict { pod: other, .. }) => pod == other,
        (Request::Update { after, .. }, Request::Update { after: other, .. }) => after == other,
        (sent, request) => sent == request,
    }
}

/// Whether one version of an object is newer than another. Resource versions are increasing
/// numbers.
fn is_newer(object: &Object, than: &Object) -> bool {
    let version = |object: &Object| object.metadata().resource_version.number();
    matches!((version(object), version(than)), (Some(one), Some(other)) if one > other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubestep_api::PersistentVolumeClaim;

    fn claim(version: &str, volume: &str) -> Object {
        let mut claim = PersistentVolumeClaim::default();
        claim.metadata.name = "c".into();
        claim.metadata.resource_version = version.into();
        claim.spec.volume_name = volume.into();
        claim.into()
    }

    fn update(volume: &str) -> Request {
        Request::Update { before: claim("1", ""), after: claim("1", volume) }
    }

    fn key(pod: &str) -> RequestKey {
        RequestKey::Update(pod.into(), claim("1", "").key())
    }

    #[test]
    fn a_repeated_request_is_sent_once_and_answered_once() {
        let (mut remote, pod) = (Remote::default(), key("a"));
        assert!(remote.send(pod, update("v")).is_pending());
        assert!(remote.send(pod, update("v")).is_pending());
        let sent = remote.take_outbox();
        assert_eq!(sent, [Outgoing { ticket: 1, request: update("v") }]);
        assert_eq!(remote.answer(1, Err("no".into())), Some(pod));
        assert_eq!(remote.send(pod, update("v")), Poll::Ready(Err("no".into())));
        assert!(remote.send(pod, update("v")).is_pending());
        assert_eq!(remote.take_outbox()[0].ticket, 2);
    }

    #[test]
    fn each_pod_gets_the_answer_to_its_own_update_of_the_same_object() {
        let (mut remote, [a, b]) = (Remote::default(), ["a", "b"].map(key));
        for _ in 0..3 {
            assert!(remote.send(a, update("v")).is_pending());
            assert!(remote.send(b, update("w")).is_pending());
        }
        assert_eq!(remote.take_outbox().len(), 2);
        assert_eq!(remote.answer(1, Ok(WriteOutcome::Done)), Some(a));
        assert!(remote.send(b, update("w")).is_pending());
        assert_eq!(remote.send(a, update("v")), Poll::Ready(Ok(WriteOutcome::Done)));
        assert_eq!(remote.answer(2, Err("no".into())), Some(b));
        assert_eq!(remote.send(b, update("w")), Poll::Ready(Err("no".into())));
        assert_eq!(remote.take_outbox(), [], "nothing was sent twice");
    }

    #[test]
    fn the_answer_to_what_a_pod_no_longer_asks_is_dropped_and_ends_the_update() {
        let (mut remote, pod) = (Remote::default(), key("a"));
        assert!(remote.send(pod, update("v")).is_pending());
        assert!(remote.send(pod, update("w")).is_pending());
        assert!(remote.is_updating(claim("1", "").key()));
        assert_eq!(remote.answer(1, Ok(WriteOutcome::Done)), Some(pod));
        assert!(remote.send(pod, update("w")).is_pending());
        assert!(remote.is_updating(claim("1", "").key()));
        assert_eq!(remote.answer(2, Ok(WriteOutcome::Done)), Some(pod));
        assert_eq!(remote.send(pod, update("w")), Poll::Ready(Ok(WriteOutcome::Done)));
        assert!(!remote.is_updating(claim("1", "").key()));
    }

    #[test]
    fn an_answer_counts_until_a_watch_has_reported_as_much() {
        let (mut remote, key) = (Remote::default(), claim("1", "").key());
        let volume = |remote: &Remote, stored| match remote.newest(key, Some(stored)) {
            Some(Object::PersistentVolumeClaim(claim)) => claim.spec.volume_name.to_string(),
            other => panic!("{other:?}"),
        };
        let ticket = remote.enqueue(update("v"));
        remote.answer(ticket, Ok(WriteOutcome::Object(claim("10", "v"))));
        assert_eq!(volume(&remote, claim("9", "old")), "v");
        remote.observe(key, Some(&claim("9", "old")));
        assert_eq!(volume(&remote, claim("9", "old")), "v");
        assert!(remote.newest(key, None).is_some(), "no watch has reported it");
        remote.observe(key, Some(&claim("11", "new")));
        assert_eq!(volume(&remote, claim("11", "new")), "new");
        assert_eq!(remote.newest(key, None), None);
    }
}
