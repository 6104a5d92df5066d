//! The API server of the simulated cluster: it stores the objects, and keeps changes until the
//! world delivers them. [`super::host`] handles the scheduler's writes.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::disruption::Disruptions;
use crate::faults::Faults;
use crate::moments::Moments;
use crate::remote::{Outgoing, Remote, RequestKey, RequestResult, WriteOutcome};
use crate::schedulers::Schedulers;
use kubestep_api::admission::identify;
use kubestep_api::{
    ControllerReports, Kind, Name, Node, Object, ObjectKey, Pod, Provisioning, Time, defaults,
};
use kubestep_framework::host::{ApiEvent, ExtenderCall};
use kubestep_framework::objects::Objects;
use kubestep_framework::pod::NamespacedName;
use kubestep_scheduler::Change;

/// Calls an extender and returns its answer.
pub type ExtenderFn =
    Arc<dyn Fn(&ExtenderCall, &Objects) -> Result<serde_json::Value, String> + Send + Sync>;

/// A write that originated in the simulation.
#[derive(Clone, Debug)]
pub struct Write {
    /// Kind of the written object.
    pub kind: Kind,
    /// Its namespace and name.
    pub key: NamespacedName,
    /// The object before the write; `None`: it did not exist.
    pub before: Option<Object>,
}

/// The objects of the cluster, as the API server stores them.
#[derive(Clone, Default)]
pub struct ApiServer {
    pub(super) objects: Objects,
    nodes: Arc<HashMap<Name, Arc<Node>>>,
    changes: VecDeque<Change>,
    pub(super) events: Vec<ApiEvent>,
    deleted_pods: Vec<NamespacedName>,
    extenders: Option<ExtenderFn>,
    revision: u64,
    status_patches_keep_version: bool,
    writes: Option<Vec<Write>>,
    pub(super) now: Time,
    pub(super) faults: Faults,
    /// `Some` if the objects are only a mirror of a remote API server.
    pub(super) remote: Option<Remote>,
    pub(super) moments: Moments,
    /// Drained and lost nodes, and the controllers that react to them; `None` before the first.
    pub(super) disruptions: Option<Arc<Disruptions>>,
    /// What is known of the schedulers of the real cluster.
    pub(super) schedulers: Arc<Schedulers>,
    /// Where new nodes come from.
    pub(super) provisioning: Arc<Provisioning>,
    /// What controllers in front of the scheduler report.
    pub(super) controllers: Arc<ControllerReports>,
}

impl ApiServer {
    /// All objects except nodes.
    pub fn objects(&self) -> &Objects {
        &self.objects
    }

    /// The node of that name.
    pub fn node(&self, name: Name) -> Option<&Arc<Node>> {
        self.nodes.get(&name)
    }

    /// All nodes, in unspecified order.
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

    /// Sends the scheduler's writes to a remote API server from now on.
    pub(super) fn be_remote(&mut self) {
        self.remote.get_or_insert_default();
    }

    /// Makes this the API server from now on; writes are no longer recorded.
    pub(super) fn be_local(&mut self) {
        (self.remote, self.writes) = (None, None);
    }

    /// Whether this is the API server itself, not a mirror of a remote one.
    pub fn is_local(&self) -> bool {
        self.remote.is_none()
    }

    /// Whether a remote answer contained a version of an object that no watch has reported yet.
    pub fn awaits(&self, key: ObjectKey) -> bool {
        self.remote.as_ref().is_some_and(|remote| remote.awaits(key))
    }

    /// The writes for the remote API server that were not taken yet.
    pub fn outbox(&self) -> &[Outgoing] {
        self.remote.as_ref().map(Remote::outbox).unwrap_or_default()
    }

    /// Takes the writes for the remote API server since the last call.
    pub fn take_outbox(&mut self) -> Vec<Outgoing> {
        self.remote.as_mut().map(Remote::take_outbox).unwrap_or_default()
    }

    /// Stores the answer to a remote write. Returns the question that it answers.
    pub(super) fn answered(
        &mut self,
        ticket: u64,
        mut answer: RequestResult,
    ) -> Option<RequestKey> {
        let key = match &mut answer {
            Ok(WriteOutcome::Object(object) | WriteOutcome::Conflict { newest: object, .. }) => {
                // As for objects from a watch; otherwise the next update would remove the defaults.
                defaults::apply(object);
                Some(object.key())
            }
            _ => None,
        };
        let question = self.remote.as_mut()?.answer(ticket, answer);
        // The watch may have been faster and have reported a newer version or the deletion.
        if let Some(key) = key {
            let stored = self.get(key.kind, NamespacedName::new(key.namespace, key.name));
            let is_new = matches!(question, Some(RequestKey::Create(..)));
            let observed = stored.is_some() || !is_new;
            if let Some(remote) = self.remote.as_mut().filter(|_| observed) {
                remote.observe(key, stored.as_ref());
            }
        }
        question
    }

    /// How many remote writes the scheduler waits for.
    pub fn unanswered(&self) -> usize {
        self.remote.as_ref().map_or(0, Remote::unanswered)
    }

    /// How many writes to the remote API server binding cycles wait for, those included that follow.
    pub fn binding_cycle_writes(&self) -> usize {
        self.remote.as_ref().map_or(0, Remote::binding_cycle_writes)
    }

    /// Sets the function that calls extenders.
    pub fn set_extenders(&mut self, extenders: ExtenderFn) {
        self.extenders = Some(extenders);
    }

    /// The function that calls extenders, if there is one.
    pub fn extenders(&self) -> Option<&ExtenderFn> {
        self.extenders.as_ref()
    }

    /// Removes the function that calls extenders, because the configuration has other ones now.
    pub(super) fn forget_extenders(&mut self) {
        self.extenders = None;
    }

    /// Sets the time that objects are stamped with.
    pub(super) fn set_now(&mut self, now: Time) {
        self.now = now;
    }

    /// The faults that writes and extender calls meet.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// The injected faults, to be changed.
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

    /// Stores an object and assigns a new resource version.
    pub fn put(&mut self, mut object: Object) {
        self.revision += 1;
        if self.remote.is_some() {
            return self.store(object); // the remote API server assigns versions
        }
        object.metadata_mut().resource_version = self.revision.into();
        self.store(object);
    }

    /// Stores an object with its resource version unchanged.
    fn store(&mut self, object: Object) {
        let old = self.place(&object);
        self.note_write(&object, old.as_ref());
        self.changes.push_back(match old {
            Some(old) => Change::Update { old, new: object },
            None => Change::Add(object),
        });
    }

    /// Replaces an object and returns the previous one.
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

    /// Records the simulation's writes from now on.
    pub(super) fn note_writes(&mut self) {
        self.writes.get_or_insert_default();
    }

    /// The simulation's writes since the last call, if they are recorded.
    pub fn take_writes(&mut self) -> Vec<Write> {
        self.writes.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Stores the version of an object that another API server has. State that only this simulation
    /// had is discarded: a pod that has another node or UID there is deleted and added again.
    pub(super) fn accept(&mut self, object: Object) {
        if let Some(remote) = &mut self.remote {
            remote.observe(object.key(), Some(&object));
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

    /// Removes an object that another API server has deleted.
    pub(super) fn forget(&mut self, kind: Kind, key: NamespacedName) {
        if let Some(remote) = &mut self.remote {
            remote.observe(object_key(kind, key), None);
        }
        let writes = self.writes.take();
        if self.remove(kind, key) && kind == Kind::Pod {
            self.deleted_pods.pop();
        }
        self.writes = writes;
    }

    /// Deletes an object; `false` if it does not exist.
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

    /// Whether the scheduler's own writes to a pod give it a new resource version, as with a real
    /// API server. The queue then sees the nomination of a preemptor at once, and the nominated
    /// node is tried first. On by default; only the API server behind the recorded cycles differs.
    pub fn set_status_patches_count(&mut self, count: bool) {
        self.status_patches_keep_version = !count;
    }

    /// Assigns a unique name to an object with `generateName`, and a UID.
    pub(super) fn name(&self, object: &mut Object) {
        let revision = self.revision + 1;
        let metadata = object.metadata_mut();
        if metadata.name.is_empty() && !metadata.generate_name.is_empty() {
            // Upstream's suffix is five random characters.
            let name = format!("{}{revision:05}", metadata.generate_name);
            metadata.name = Name::new(&name);
        }
        identify(object);
    }

    /// Changes a pod, which gives it a new resource version. In the recorded cycles it keeps its
    /// version, so that the queue, which ignores updates without a new version, continues with the
    /// pod as it was popped.
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

/// Whether no update can lead from `old` to `new`: the UID differs, or a bound pod is on another
/// node.
fn is_another(old: &Object, new: &Object) -> bool {
    let moved = match (old, new) {
        (Object::Pod(old), Object::Pod(new)) => {
            !old.spec.node_name.is_empty() && old.spec.node_name != new.spec.node_name
        }
        _ => false,
    };
    moved || old.metadata().uid != new.metadata().uid
}

/// The server's message for a pod that does not exist.
pub(super) fn not_found(key: NamespacedName) -> String {
    format!("pods {:?} not found", key.name)
}

pub(super) fn object_key(kind: Kind, key: NamespacedName) -> ObjectKey {
    ObjectKey { kind, namespace: key.namespace, name: key.name }
}
