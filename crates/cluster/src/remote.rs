//! Writes for an API server that is elsewhere: the scheduler's requests wait in an outbox until
//! somebody carries them there, and its answers are kept until the scheduler asks again.
//!
//! Nothing in here waits or sends, so that a cluster with an API server elsewhere is still one
//! that can be copied and done again. What a watch tells, not the answer to a write, changes
//! the objects; an answer is only read where the scheduler asks for the newest version.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use std::sync::Arc;
use std::task::Poll;

use kubestep_api::intern::Symbol;
use kubestep_api::{Condition, Kind, NodeAllocatableResourceClaimStatus, Object};
use kubestep_api::{ObjectKey, PodExtendedResourceClaimStatus, ResourceClaim, ResourceVersion};
use kubestep_framework::host::{ApiEvent, ExtenderCall, PodStatusPatch};
use kubestep_framework::pod::NamespacedName;

/// A pod as it has to be for a write to be about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PodRef {
    /// Its name.
    pub key: NamespacedName,
    /// Its UID.
    pub uid: Symbol,
}

/// A write.
#[derive(Clone, PartialEq, Debug)]
pub enum Request {
    /// Binds a pod to a node.
    Bind {
        /// The pod.
        pod: PodRef,
        /// The node.
        node: Symbol,
    },
    /// Lets an extender bind a pod.
    ExtenderBind {
        /// The pod.
        pod: PodRef,
        /// What to ask the extender.
        call: ExtenderCall,
    },
    /// Sets a condition of a pod and its nominated node.
    PodStatus {
        /// The pod.
        pod: PodRef,
        /// What to set.
        patch: PodStatusPatch,
    },
    /// Sets a condition, if there is one, and deletes the pod.
    Evict {
        /// The pod.
        pod: PodRef,
        /// The condition.
        condition: Option<Condition>,
    },
    /// Says in a pod's status which claim stands for its extended resources.
    ExtendedResourceClaim {
        /// The pod.
        pod: PodRef,
        /// What to say.
        status: PodExtendedResourceClaimStatus,
    },
    /// Says in a pod's status what its claims take of the node's own resources.
    NodeResourceClaims {
        /// The pod.
        pod: PodRef,
        /// What to say.
        statuses: Vec<NodeAllocatableResourceClaimStatus>,
    },
    /// Changes an object from one version to another, unless somebody else was faster.
    Update {
        /// As it is known.
        before: Object,
        /// As it is to be.
        after: Object,
    },
    /// Makes an object.
    Create(Object),
    /// Removes a user from `reservedFor` of a claim, whatever else changed in it.
    ReleaseClaim {
        /// The claim's name.
        key: NamespacedName,
        /// The claim's UID.
        uid: Symbol,
        /// The user's UID.
        user: Symbol,
    },
    /// Removes a finalizer from a claim, and deletes it.
    DeleteClaim {
        /// As it is known.
        claim: Arc<ResourceClaim>,
        /// The finalizer.
        finalizer: Symbol,
    },
    /// Sets a condition of a pod group, whatever else changed in it.
    GroupCondition {
        /// The group's name.
        key: NamespacedName,
        /// The group's UID.
        uid: Symbol,
        /// The condition.
        condition: Condition,
    },
    /// An event for people.
    Event {
        /// What it says.
        event: ApiEvent,
        /// The version of the pod that it is about.
        version: ResourceVersion,
    },
}

impl Request {
    /// What is written, in a few words.
    pub fn words(&self) -> String {
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

/// A request on its way, with the number that its answer has to name.
#[derive(Clone, PartialEq, Debug)]
pub struct Outgoing {
    /// Counted from one.
    pub ticket: u64,
    /// What is to be written.
    pub request: Request,
}

/// What became of a write that went well.
#[derive(Clone, PartialEq, Debug)]
pub enum Written {
    /// It is done.
    Done,
    /// The object was not there any more.
    Gone,
    /// It is done, and this is the object now.
    Object(Object),
    /// Somebody else was faster.
    Conflict {
        /// The server's words.
        problem: String,
        /// The object as they left it.
        newest: Object,
    },
}

/// An answer: what became of it, or what went wrong, in the server's words.
pub type Answer = Result<Written, String>;

/// What is asked about, with the asking pod where several may ask about one object: asked again,
/// it is the same question.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Question {
    /// Whether a pod is bound, by UID.
    Bind(Symbol),
    /// Whether a pod is evicted, by UID.
    Evict(Symbol),
    /// Whether an object is updated, for the pod of that UID.
    Update(Symbol, ObjectKey),
    /// Whether an object of a kind is made, for the pod of that UID.
    Create(Symbol, Kind),
    /// Whether a pod's status names its claim, by UID.
    Claim(Symbol),
}

#[derive(Clone, Debug)]
struct Asked {
    ticket: u64,
    request: Request,
    answer: Option<Answer>,
}

/// Writes on their way to an API server, and what is known of objects before a watch shows it.
#[derive(Clone, Debug, Default)]
pub(super) struct Remote {
    tickets: u64,
    outbox: Vec<Outgoing>,
    asked: HashMap<Question, Asked>,
    /// Who waits for the answer of a ticket.
    waiting: HashMap<u64, Question>,
    /// Objects as answers told them, until a watch has told so much.
    newer: BTreeMap<ObjectKey, Object>,
}

impl Remote {
    /// Sends a request whose answer nobody waits for.
    pub fn send(&mut self, request: Request) -> u64 {
        self.tickets += 1;
        self.outbox.push(Outgoing { ticket: self.tickets, request });
        self.tickets
    }

    /// Sends a request the first time, and gives the answer once there is one.
    pub fn ask(&mut self, question: Question, request: Request) -> Poll<Answer> {
        if let Some(asked) = self.asked.get_mut(&question)
            && is_same(&asked.request, &request)
        {
            let Some(answer) = asked.answer.take() else { return Poll::Pending };
            self.asked.remove(&question);
            return Poll::Ready(answer);
        }
        let ticket = self.send(request.clone());
        self.waiting.insert(ticket, question);
        self.asked.insert(question, Asked { ticket, request, answer: None });
        Poll::Pending
    }

    /// Takes an answer in. Gives the question that was asked with that ticket. Its answer is
    /// dropped if something else was asked in its place, but others may wait for it to be there.
    pub fn answer(&mut self, ticket: u64, answer: Answer) -> Option<Question> {
        if let Ok(Written::Object(object) | Written::Conflict { newest: object, .. }) = &answer {
            self.newer.insert(object.key(), object.clone());
        }
        let question = self.waiting.remove(&ticket)?;
        if let Some(asked) = self.asked.get_mut(&question)
            && asked.ticket == ticket
        {
            asked.answer = Some(answer);
        }
        Some(question)
    }

    /// Whether an update of an object was sent and is not answered yet.
    pub fn is_updating(&self, key: ObjectKey) -> bool {
        let of_object =
            |question: &Question| matches!(question, Question::Update(_, of) if *of == key);
        self.waiting.values().any(of_object)
    }

    /// The requests since the last call.
    pub fn take_outbox(&mut self) -> Vec<Outgoing> {
        std::mem::take(&mut self.outbox)
    }

    /// The requests since the last time they were taken.
    pub fn outbox(&self) -> &[Outgoing] {
        &self.outbox
    }

    /// The oldest request that somebody waits for, or that was not taken yet.
    pub fn next_open(&mut self) -> Option<Outgoing> {
        let asked = self.waiting.iter().filter_map(|(ticket, question)| {
            let asked = self.asked.get(question).filter(|asked| asked.ticket == *ticket)?;
            Some(Outgoing { ticket: *ticket, request: asked.request.clone() })
        });
        let open = self.outbox.iter().cloned().chain(asked).min_by_key(|open| open.ticket)?;
        self.outbox.retain(|other| other.ticket != open.ticket);
        Some(open)
    }

    /// The objects as answers told them and no watch has yet.
    pub fn take_newer(&mut self) -> Vec<Object> {
        std::mem::take(&mut self.newer).into_values().collect()
    }

    /// How many requests were made that have no answer yet and are waited for.
    pub fn unanswered(&self) -> usize {
        self.waiting.len()
    }

    /// Hears of an object, or that it is gone with `None`: answers that are older do not count
    /// any more.
    pub fn heard(&mut self, key: ObjectKey, object: Option<&Object>) {
        let Some(newer) = self.newer.get(&key) else { return };
        if object.is_none_or(|heard| !is_newer(newer, heard)) {
            self.newer.remove(&key);
        }
    }

    /// Whether an answer told a version of an object of which nothing was heard yet.
    pub fn awaits(&self, key: ObjectKey) -> bool {
        self.newer.contains_key(&key)
    }

    /// The newest version: as an answer told it, or as it is stored. What was made elsewhere is
    /// there as soon as the answer says so.
    pub fn newest(&self, key: ObjectKey, stored: Option<Object>) -> Option<Object> {
        match (self.newer.get(&key), stored) {
            (Some(newer), Some(stored)) if !is_newer(newer, &stored) => Some(stored),
            (Some(newer), _) => Some(newer.clone()),
            (None, stored) => stored,
        }
    }
}

/// Whether it is the same write. Times in conditions may differ: it is written once.
fn is_same(asked: &Request, request: &Request) -> bool {
    match (asked, request) {
        (Request::Evict { pod, .. }, Request::Evict { pod: other, .. }) => pod == other,
        (Request::Update { after, .. }, Request::Update { after: other, .. }) => after == other,
        (asked, request) => asked == request,
    }
}

/// Whether one version of an object is newer than another. Versions are numbers that grow.
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

    fn question(pod: &str) -> Question {
        Question::Update(pod.into(), claim("1", "").key())
    }

    #[test]
    fn asked_again_it_is_sent_once_and_answered_once() {
        let (mut remote, pod) = (Remote::default(), question("a"));
        assert!(remote.ask(pod, update("v")).is_pending());
        assert!(remote.ask(pod, update("v")).is_pending());
        let sent = remote.take_outbox();
        assert_eq!(sent, [Outgoing { ticket: 1, request: update("v") }]);
        assert_eq!(remote.answer(1, Err("no".into())), Some(pod));
        assert_eq!(remote.ask(pod, update("v")), Poll::Ready(Err("no".into())));
        assert!(remote.ask(pod, update("v")).is_pending());
        assert_eq!(remote.take_outbox()[0].ticket, 2);
    }

    #[test]
    fn each_pod_gets_the_answer_to_its_own_update_of_the_same_object() {
        let (mut remote, [a, b]) = (Remote::default(), ["a", "b"].map(question));
        for _ in 0..3 {
            assert!(remote.ask(a, update("v")).is_pending());
            assert!(remote.ask(b, update("w")).is_pending());
        }
        assert_eq!(remote.take_outbox().len(), 2);
        assert_eq!(remote.answer(1, Ok(Written::Done)), Some(a));
        assert!(remote.ask(b, update("w")).is_pending());
        assert_eq!(remote.ask(a, update("v")), Poll::Ready(Ok(Written::Done)));
        assert_eq!(remote.answer(2, Err("no".into())), Some(b));
        assert_eq!(remote.ask(b, update("w")), Poll::Ready(Err("no".into())));
        assert_eq!(remote.take_outbox(), [], "nothing was sent twice");
    }

    #[test]
    fn the_answer_to_what_a_pod_no_longer_asks_is_dropped_and_ends_the_update() {
        let (mut remote, pod) = (Remote::default(), question("a"));
        assert!(remote.ask(pod, update("v")).is_pending());
        assert!(remote.ask(pod, update("w")).is_pending());
        assert!(remote.is_updating(claim("1", "").key()));
        assert_eq!(remote.answer(1, Ok(Written::Done)), Some(pod));
        assert!(remote.ask(pod, update("w")).is_pending());
        assert!(remote.is_updating(claim("1", "").key()));
        assert_eq!(remote.answer(2, Ok(Written::Done)), Some(pod));
        assert_eq!(remote.ask(pod, update("w")), Poll::Ready(Ok(Written::Done)));
        assert!(!remote.is_updating(claim("1", "").key()));
    }

    #[test]
    fn an_answer_counts_until_a_watch_has_told_as_much() {
        let (mut remote, key) = (Remote::default(), claim("1", "").key());
        let volume = |remote: &Remote, stored| match remote.newest(key, Some(stored)) {
            Some(Object::PersistentVolumeClaim(claim)) => claim.spec.volume_name.to_string(),
            other => panic!("{other:?}"),
        };
        let ticket = remote.send(update("v"));
        remote.answer(ticket, Ok(Written::Object(claim("10", "v"))));
        assert_eq!(volume(&remote, claim("9", "old")), "v");
        remote.heard(key, Some(&claim("9", "old")));
        assert_eq!(volume(&remote, claim("9", "old")), "v");
        assert!(remote.newest(key, None).is_some(), "no watch has told of it");
        remote.heard(key, Some(&claim("11", "new")));
        assert_eq!(volume(&remote, claim("11", "new")), "new");
        assert_eq!(remote.newest(key, None), None);
    }
}
