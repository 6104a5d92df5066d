//! The API server of the simulated cluster: it keeps the objects, and remembers what changed
//! until the world delivers it. How it takes the scheduler's writes is in [`super::host`].

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::faults::Faults;
use crate::moments::Moments;
use crate::remote::{Answer, Outgoing, Question, Remote, Written};
use kubestep_api::admission::identify;
use kubestep_api::intern::Symbol;
use kubestep_api::{Kind, Node, Object, ObjectKey, Pod, Time, defaults};
use kubestep_framework::host::{ApiEvent, ExtenderCall};
use kubestep_framework::objects::Objects;
use kubestep_framework::pod::NamespacedName;
use kubestep_scheduler::Change;

/// Answers the calls of extenders.
pub type ExtenderFn =
    Arc<dyn Fn(&ExtenderCall, &Objects) -> Result<serde_json::Value, String> + Send + Sync>;

/// An object that was written by somebody of the simulation.
#[derive(Clone, Debug)]
pub struct Write {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub key: NamespacedName,
    /// The object before; `None`: it was not there.
    pub before: Option<Object>,
}

/// The objects of the cluster as the API server has them.
#[derive(Clone, Default)]
pub struct ApiServer {
    pub(super) objects: Objects,
    nodes: Arc<HashMap<Symbol, Arc<Node>>>,
    changes: VecDeque<Change>,
    pub(super) events: Vec<ApiEvent>,
    deleted_pods: Vec<NamespacedName>,
    extenders: Option<ExtenderFn>,
    revision: u64,
    status_patches_keep_version: bool,
    writes: Option<Vec<Write>>,
    pub(super) now: Time,
    pub(super) faults: Faults,
    /// Set where the objects are only a copy of what an API server elsewhere has.
    pub(super) remote: Option<Remote>,
    pub(super) moments: Moments,
}

impl ApiServer {
    /// All objects but nodes.
    pub fn objects(&self) -> &Objects {
        &self.objects
    }

    /// The node of that name.
    pub fn node(&self, name: Symbol) -> Option<&Arc<Node>> {
        self.nodes.get(&name)
    }

    /// All nodes, in no order that means anything.
    pub fn nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.nodes.values()
    }

    /// The object of that kind and name.
    pub fn get(&self, kind: Kind, key: NamespacedName) -> Option<Object> {
        match kind {
            Kind::Node => self.node(key.name).cloned().map(Object::Node),
            _ => self.objects.get(kind, key),
        }
    }

    /// From now on the scheduler's writes are for an API server elsewhere.
    pub(super) fn be_remote(&mut self) {
        self.remote.get_or_insert_default();
    }

    /// From now on this is the API server, and nobody's writes are told.
    pub(super) fn be_here(&mut self) {
        (self.remote, self.writes) = (None, None);
    }

    /// Whether this is the API server, and no copy of one elsewhere.
    pub fn is_here(&self) -> bool {
        self.remote.is_none()
    }

    /// Whether an answer from elsewhere told a version of an object that was not heard of yet.
    pub fn awaits(&self, key: ObjectKey) -> bool {
        self.remote.as_ref().is_some_and(|remote| remote.awaits(key))
    }

    /// The writes for an API server elsewhere that were not taken yet.
    pub fn outbox(&self) -> &[Outgoing] {
        self.remote.as_ref().map(Remote::outbox).unwrap_or_default()
    }

    /// Takes the writes for an API server elsewhere since the last call.
    pub fn take_outbox(&mut self) -> Vec<Outgoing> {
        self.remote.as_mut().map(Remote::take_outbox).unwrap_or_default()
    }

    /// Takes the answer to a write elsewhere in. Gives the question that it answers.
    pub(super) fn answered(&mut self, ticket: u64, mut answer: Answer) -> Option<Question> {
        let key = match &mut answer {
            Ok(Written::Object(object) | Written::Conflict { newest: object, .. }) => {
                // As of objects that a watch reports, or the next update would undo them.
                defaults::apply(object);
                Some(object.key())
            }
            _ => None,
        };
        let question = self.remote.as_mut()?.answer(ticket, answer);
        // A watch may have been faster: it told a newer version, or that the object is gone.
        if let Some(key) = key {
            let stored = self.get(key.kind, NamespacedName::new(key.namespace, key.name));
            let is_new = matches!(question, Some(Question::Create(..)));
            let heard = stored.is_some() || !is_new;
            if let Some(remote) = self.remote.as_mut().filter(|_| heard) {
                remote.heard(key, stored.as_ref());
            }
        }
        question
    }

    /// How many writes elsewhere the scheduler waits for.
    pub fn unanswered(&self) -> usize {
        self.remote.as_ref().map_or(0, Remote::unanswered)
    }

    /// Says who answers the calls of extenders.
    pub fn set_extenders(&mut self, extenders: ExtenderFn) {
        self.extenders = Some(extenders);
    }

    /// Who answers the calls of extenders, if anybody does.
    pub fn extenders(&self) -> Option<&ExtenderFn> {
        self.extenders.as_ref()
    }

    /// Nobody answers the calls of extenders any more: there are others now.
    pub(super) fn forget_extenders(&mut self) {
        self.extenders = None;
    }

    /// The time that objects are stamped with.
    pub(super) fn set_now(&mut self, now: Time) {
        self.now = now;
    }

    /// What is made to fail.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// What is made to fail, to be changed.
    pub fn faults_mut(&mut self) -> &mut Faults {
        &mut self.faults
    }

    /// The next change that was not delivered yet.
    pub(super) fn next_change(&mut self) -> Option<Change> {
        self.changes.pop_front()
    }

    /// The events for people since the last call.
    pub fn take_events(&mut self) -> Vec<ApiEvent> {
        std::mem::take(&mut self.events)
    }

    /// The pods deleted since the last call, in order.
    pub fn take_deleted_pods(&mut self) -> Vec<NamespacedName> {
        std::mem::take(&mut self.deleted_pods)
    }

    /// Stores an object, as new or in place of the one of its name.
    pub fn put(&mut self, mut object: Object) {
        self.revision += 1;
        if self.remote.is_some() {
            return self.store(object); // its version is that of the API server elsewhere
        }
        object.metadata_mut().resource_version = self.revision.into();
        self.store(object);
    }

    /// Stores an object with the version it has.
    fn store(&mut self, object: Object) {
        let old = self.place(&object);
        self.note_write(&object, old.as_ref());
        self.changes.push_back(match old {
            Some(old) => Change::Update { old, new: object },
            None => Change::Add(object),
        });
    }

    /// Puts an object in its place and gives what was there.
    fn place(&mut self, object: &Object) -> Option<Object> {
        match object {
            Object::Node(node) => {
                let nodes = Arc::make_mut(&mut self.nodes);
                nodes.insert(node.metadata.name, node.clone()).map(Object::Node)
            }
            other => self.objects.insert(other.clone()),
        }
    }

    fn note_write(&mut self, object: &Object, before: Option<&Object>) {
        if let Some(writes) = &mut self.writes {
            let (kind, key) = (object.kind(), NamespacedName::of(object));
            writes.push(Write { kind, key, before: before.cloned() });
        }
    }

    /// From now on it is remembered what the simulation writes.
    pub(super) fn note_writes(&mut self) {
        self.writes.get_or_insert_default();
    }

    /// What the simulation wrote since the last call, if that is remembered.
    pub fn take_writes(&mut self) -> Vec<Write> {
        self.writes.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Takes an object over from another API server, with the version it has there. What only
    /// this simulation knew of it is gone: a pod that is on another node than here, or made
    /// anew, leaves and comes back.
    pub(super) fn accept(&mut self, object: Object) {
        if let Some(remote) = &mut self.remote {
            remote.heard(object.key(), Some(&object));
        }
        let old = self.place(&object);
        match old {
            Some(old) if is_another(&old, &object) => {
                self.changes.extend([Change::Delete(old), Change::Add(object)]);
            }
            Some(old) => self.changes.push_back(Change::Update { old, new: object }),
            None => self.changes.push_back(Change::Add(object)),
        }
    }

    /// Forgets an object that another API server does not have any more.
    pub(super) fn forget(&mut self, kind: Kind, key: NamespacedName) {
        if let Some(remote) = &mut self.remote {
            remote.heard(object_key(kind, key), None);
        }
        let writes = self.writes.take();
        if self.remove(kind, key) && kind == Kind::Pod {
            self.deleted_pods.pop();
        }
        self.writes = writes;
    }

    /// Deletes an object; `false` if it is not there.
    pub fn remove(&mut self, kind: Kind, key: NamespacedName) -> bool {
        let Some(object) = self.get(kind, key) else { return false };
        match &object {
            Object::Node(node) => {
                Arc::make_mut(&mut self.nodes).remove(&node.metadata.name);
            }
            other => {
                self.objects.remove(other);
            }
        }
        if kind == Kind::Pod {
            self.deleted_pods.push(key);
        }
        self.note_write(&object, Some(&object));
        self.changes.push_back(Change::Delete(object));
        true
    }

    /// Whether the scheduler's own writes to a pod give it a new resource version, as a real
    /// API server does. The queue then takes the nomination of a preemptor in at once, and
    /// the nominated node is tried first. On unless set: only the API server behind the recorded
    /// cycles differs from a real one in this.
    pub fn set_status_patches_count(&mut self, count: bool) {
        self.status_patches_keep_version = !count;
    }

    /// Gives an object that leaves its name to the server one that no other has, and a UID.
    pub(super) fn name(&self, object: &mut Object) {
        let revision = self.revision + 1;
        let metadata = object.metadata_mut();
        if metadata.name.is_empty() && !metadata.generate_name.is_empty() {
            // Upstream's suffix is five random characters.
            let name = format!("{}{revision:05}", metadata.generate_name);
            metadata.name = Symbol::new(&name);
        }
        identify(object);
    }

    /// Changes a pod in place, which makes a new version of it. In the recorded cycles it does
    /// not, so that the queue, which ignores updates without a new version (E-006), goes on
    /// there with the pod as it was popped.
    pub(super) fn change_pod(
        &mut self,
        key: NamespacedName,
        change: impl FnOnce(&mut Pod),
    ) -> Result<(), String> {
        let pod = self.objects.pod(key).ok_or_else(|| not_found(key))?;
        let mut pod = pod.as_ref().clone();
        change(&mut pod);
        match self.status_patches_keep_version {
            true => self.store(pod.into()),
            false => self.put(pod.into()),
        }
        Ok(())
    }
}

/// Whether no update leads from one to the other.
fn is_another(old: &Object, new: &Object) -> bool {
    let moved = match (old, new) {
        (Object::Pod(old), Object::Pod(new)) => {
            !old.spec.node_name.is_empty() && old.spec.node_name != new.spec.node_name
        }
        _ => false,
    };
    moved || old.metadata().uid != new.metadata().uid
}

/// What a server says of a pod that it does not have.
pub(super) fn not_found(key: NamespacedName) -> String {
    format!("pods {:?} not found", key.name.as_str())
}

/// The key of an object of that kind.
pub(super) fn object_key(kind: Kind, key: NamespacedName) -> ObjectKey {
    ObjectKey { kind, namespace: key.namespace, name: key.name }
}
