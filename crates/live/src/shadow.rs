//! Runs the embedded scheduler in parallel with the cluster's own: it schedules every pending pod
//! as soon as it appears, against its simulated API server, and nothing it writes leaves this
//! process.
//!
//! Its writes overlay the server's state until the cluster's scheduler has decided about the same
//! pod, or has not done so in time. Then the two decisions are compared and the server's state is
//! restored, so that the next decisions start from the same cluster.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::compare::{self, ClusterDecision, ComparedDecision};
use crate::feed::Delta;
use crate::updates::{self, ClusterUpdate, ClusterUpdates};
use kubestep_api::{Kind, Object, ObjectKey, Pod, Time, Uid};
use kubestep_debug::{Input, Session};
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::QueueName;

/// How long a decision waits for that of the cluster's scheduler, in microseconds.
const PATIENCE: i64 = 30_000_000;
/// The same for a pod that the cluster's scheduler rejected before.
const PATIENCE_WITH_REFUSED: i64 = 3_000_000;
/// How many decisions are kept.
const REMEMBERED: usize = 2_000;
/// Who parked a pod that the cluster's scheduler has not decided about.
const NOBODY: &str = "cluster: no decision yet";
/// Who parked a pod that the cluster's scheduler rejected.
const REFUSED: &str = "cluster: rejected by its scheduler";

/// An object that differs from the server's because the embedded scheduler wrote it.
#[derive(Clone, Debug)]
struct OverlaidObject {
    /// The server's version; `None`: the server does not have it.
    theirs: Option<Object>,
    /// UID of the pod on whose behalf it was written.
    cause: Uid,
    since: Time,
}

impl OverlaidObject {
    /// How long the decision waits for that of the cluster's scheduler.
    fn patience(&self) -> i64 {
        match &self.theirs {
            Some(Object::Pod(pod)) if ClusterDecision::between(None, pod).is_some() => {
                PATIENCE_WITH_REFUSED
            }
            _ => PATIENCE,
        }
    }
}

/// The embedded scheduler in parallel with the cluster's: its own decisions on a copy of the
/// cluster.
#[derive(Debug, Default)]
pub struct Shadow {
    overlay: BTreeMap<ObjectKey, OverlaidObject>,
    /// The newest compared cycle of each pod, by UID.
    compared: HashMap<Uid, u64>,
    decisions: Vec<Arc<ComparedDecision>>,
    /// Operations that are not applied yet.
    updates: Vec<ClusterUpdate>,
    /// The objects that `updates` concern.
    touched: HashSet<NamespacedName>,
    now: Time,
    /// Whether all decisions are kept.
    remembers_all: bool,
}

impl Shadow {
    /// A shadow that keeps all decisions.
    pub(crate) fn remembering_all() -> Shadow {
        Shadow { remembers_all: true, ..Shadow::default() }
    }

    /// When the next decision is undone, unless the cluster's scheduler shares it: after that time
    /// [`Shadow::tick`] undoes it.
    pub(crate) fn next_return(&self) -> Option<Time> {
        self.overlay.values().map(|ours| Time(ours.since.0 + ours.patience() + 1)).min()
    }

    /// The compared decisions, oldest first.
    pub fn decisions(&self) -> &[Arc<ComparedDecision>] {
        &self.decisions
    }

    /// How many objects differ from the server's because the embedded scheduler wrote them.
    pub fn overlaid(&self) -> usize {
        self.overlay.len()
    }

    /// The server's version of an object, without the embedded scheduler's writes.
    pub fn theirs(&self, session: &Session, kind: Kind, key: NamespacedName) -> Option<Object> {
        match self.overlay.get(&object_key(kind, key)) {
            Some(overlaid) => overlaid.theirs.clone(),
            None => session.world().api().get(kind, key),
        }
    }

    /// Whether an object was taken from the server or written by the embedded scheduler.
    pub(crate) fn knows(&self, session: &Session, kind: Kind, key: NamespacedName) -> bool {
        self.overlay.contains_key(&object_key(kind, key))
            || session.world().api().get(kind, key).is_some()
    }

    /// Applies changes of the cluster that arrived at `now`.
    pub fn take(&mut self, session: &mut Session, deltas: Vec<Delta>, now: Time) {
        self.now = now;
        for delta in deltas {
            match delta {
                Delta::Put(object) if self.is_irrelevant(session, &object) => {}
                Delta::Put(Object::Pod(pod)) => self.pod(session, Object::Pod(pod)),
                Delta::Put(object) => {
                    // The server's version applies immediately: no decision is made about volumes
                    // and claims.
                    self.overlay.remove(&object.key());
                    self.updates.push(ClusterUpdate::Accept(object));
                }
                Delta::Delete { kind, key } => self.deleted(session, kind, key),
            }
        }
        self.flush(session);
    }

    /// Advances the clock: fires timers of the scheduler, and undoes decisions that waited too
    /// long.
    pub fn tick(&mut self, session: &mut Session, now: Time) {
        self.now = now;
        for cause in self.expired() {
            self.give_back(session, cause, NOBODY);
        }
        let due = session.next_timer().is_some_and(|timer| timer.due <= now);
        if due || !self.updates.is_empty() {
            self.flush_at(session, true);
        }
    }

    /// Lets the embedded scheduler run cycles for about `budget`. Returns whether there is more to
    /// do.
    pub fn work(&mut self, session: &mut Session, budget: Duration) -> bool {
        // Before the first event only the session has a time.
        self.now = self.now.max(session.world().now());
        let start = Instant::now();
        while self.cycle(session) {
            if start.elapsed() >= budget {
                return true;
            }
        }
        false
    }

    /// Compares with the decisions of the cluster's scheduler from before the start.
    pub fn catch_up(&mut self, session: &mut Session, now: Time) {
        self.now = now;
        let pods = session.world().api().objects().pods.keys();
        let mut known: Vec<(NamespacedName, Uid, ClusterDecision)> = pods
            .filter_map(|key| {
                let pod = self.server_pod(session, *key)?;
                Some((*key, pod.metadata.uid, ClusterDecision::between(None, &pod)?))
            })
            .collect();
        known.sort_unstable_by_key(|(key, ..)| *key);
        for (key, uid, theirs) in known {
            self.compare(session, key, uid, &theirs);
            self.give_back(session, uid, REFUSED);
        }
        self.flush(session);
    }

    /// Whether the server's version of an object can be skipped.
    fn is_irrelevant(&self, session: &Session, object: &Object) -> bool {
        let there = self.theirs(session, object.kind(), NamespacedName::of(object));
        updates::is_irrelevant(session, &self.updates, there.as_ref(), object)
    }

    fn pod(&mut self, session: &mut Session, object: Object) {
        let Object::Pod(pod) = &object else { return };
        let key = NamespacedName::of(&object);
        // A pending change of the object has to be applied before the versions are compared.
        if !self.touched.insert(key) {
            self.flush(session);
            self.touched.insert(key);
        }
        let name = pod.spec.scheduler_name;
        let serves = session.world().scheduler().frameworks().contains_key(&name);
        if pod.spec.node_name.is_empty() && !serves {
            self.updates.push(ClusterUpdate::Serve(name));
        }
        let before = self.server_pod(session, key);
        if let Some(theirs) = ClusterDecision::between(before.as_deref(), pod) {
            let uid = pod.metadata.uid;
            self.try_before(session, key, uid);
            self.compare(session, key, uid, &theirs);
            let overlaid = self.note_theirs(object.clone());
            self.give_back(session, uid, REFUSED);
            if !overlaid {
                self.updates.push(ClusterUpdate::Accept(object));
            }
            return;
        }
        // The overlay stays until the cluster's scheduler decides.
        if !self.note_theirs(object.clone()) {
            self.updates.push(ClusterUpdate::Accept(object));
        }
    }

    /// Stores the server's version of an overlaid object. Returns whether the object is overlaid.
    fn note_theirs(&mut self, object: Object) -> bool {
        let overlaid = self.overlay.get_mut(&object.key());
        overlaid.map(|overlaid| overlaid.theirs = Some(object)).is_some()
    }

    fn deleted(&mut self, session: &mut Session, kind: Kind, key: NamespacedName) {
        self.flush(session);
        let uid = self.theirs(session, kind, key).map(|object| object.metadata().uid);
        self.overlay.remove(&object_key(kind, key));
        if let Some(uid) = uid.filter(|_| kind == Kind::Pod) {
            self.compared.remove(&uid);
            self.give_back(session, uid, NOBODY);
        }
        self.updates.push(ClusterUpdate::Forget(kind, key));
    }

    fn server_pod(&self, session: &Session, key: NamespacedName) -> Option<Arc<Pod>> {
        match self.theirs(session, Kind::Pod, key)? {
            Object::Pod(pod) => Some(pod),
            _ => None,
        }
    }

    /// Runs a cycle for a pod right before the other decision is applied, unless one has run.
    fn try_before(&mut self, session: &mut Session, key: NamespacedName, uid: Uid) {
        if self.new_cycle(session, key, uid).is_some() {
            return;
        }
        if session.world().scheduler().queue().queue_of(key) != QueueName::Active {
            self.updates.push(ClusterUpdate::Activate(key));
            self.flush(session);
        }
        while self.new_cycle(session, key, uid).is_none() && self.cycle(session) {}
    }

    /// The newest cycle of a pod, if it was not compared before.
    fn new_cycle(&self, session: &Session, key: NamespacedName, uid: Uid) -> Option<u64> {
        let newest = session.history().cycles_of(key).next_back()?;
        let seen = self.compared.get(&uid).copied().unwrap_or(0);
        (newest.uid == uid && newest.cycle > seen).then_some(newest.cycle)
    }

    fn compare(
        &mut self,
        session: &Session,
        key: NamespacedName,
        uid: Uid,
        theirs: &ClusterDecision,
    ) {
        let cycle = self.new_cycle(session, key, uid);
        let ours = cycle.and_then(|number| session.history().cycle(number));
        let (verdict, reason) = compare::compare(ours.map(AsRef::as_ref), theirs);
        if let Some(cycle) = cycle {
            self.compared.insert(uid, cycle);
        }
        let learned = ours.and_then(|ours| compare::learned(ours, theirs));
        self.decisions.push(Arc::new(ComparedDecision {
            time: self.now,
            pod: key,
            cycle,
            ours: ours.map(|ours| compare::describe_cycle(ours)).unwrap_or_default(),
            theirs: theirs.describe(),
            verdict,
            reason,
            learned: learned.map(Arc::new),
        }));
        if self.remembers_all {
            return;
        }
        let surplus = self.decisions.len().saturating_sub(REMEMBERED);
        self.decisions.drain(..surplus);
    }

    /// Restores the server's version of all objects that were written on behalf of a pod. A pod
    /// that is still pending is parked in the name of `by`: another cycle would only repeat the
    /// decision.
    fn give_back(&mut self, session: &Session, cause: Uid, by: &'static str) {
        let of_cause = |(key, overlaid): (&ObjectKey, &OverlaidObject)| {
            (overlaid.cause == cause).then_some(*key)
        };
        let keys: Vec<ObjectKey> = self.overlay.iter().filter_map(of_cause).collect();
        let mut parked = None;
        for key in keys {
            let Some(overlaid) = self.overlay.remove(&key) else { continue };
            let name = NamespacedName::new(key.namespace, key.name);
            match overlaid.theirs {
                Some(object) => {
                    if is_placed(session, name) && is_pending(&object, cause) {
                        parked = Some(name);
                    }
                    self.updates.push(ClusterUpdate::Accept(object));
                }
                None => self.updates.push(ClusterUpdate::Forget(key.kind, name)),
            }
        }
        self.updates.extend(parked.map(|pod| ClusterUpdate::Park(pod, by.into())));
    }

    /// Pods whose decision has waited too long.
    fn expired(&self) -> Vec<Uid> {
        let expired = self.overlay.values().filter(|o| self.now.0 - o.since.0 > o.patience());
        let mut causes: Vec<Uid> = expired.map(|overlaid| overlaid.cause).collect();
        causes.sort_unstable();
        causes.dedup();
        causes
    }

    /// Runs one cycle; `false` if no pod can be popped.
    fn cycle(&mut self, session: &mut Session) -> bool {
        self.flush(session);
        let ran = session.apply_in_background(Input::Cycle) == Ok(true);
        let uid = session.history().last_cycle().map(|record| record.uid).unwrap_or_default();
        self.note_writes(session, uid);
        ran
    }

    /// Applies the pending operations.
    fn flush(&mut self, session: &mut Session) {
        self.flush_at(session, false);
    }

    fn flush_at(&mut self, session: &mut Session, even_if_empty: bool) {
        if self.updates.is_empty() && !even_if_empty {
            return;
        }
        self.touched.clear();
        let updates = ClusterUpdates { now: self.now, updates: std::mem::take(&mut self.updates) };
        // Applying updates cannot fail.
        let _done = session.apply_in_background(Input::Change(Arc::new(updates)));
        self.note_writes(session, Uid::EMPTY);
    }

    /// Stores the server's versions of the objects that were just written on behalf of `cause`. A
    /// write to another pod that still exists counts as that pod's own.
    fn note_writes(&mut self, session: &mut Session, cause: Uid) {
        for write in session.take_writes() {
            let there = session.world().api().get(write.kind, write.key);
            let own = match (&there, write.kind) {
                (Some(pod), Kind::Pod) => pod.metadata().uid,
                _ => cause,
            };
            let fresh = OverlaidObject { theirs: write.before, cause: own, since: self.now };
            self.overlay.entry(object_key(write.kind, write.key)).or_insert(fresh);
        }
    }
}

fn object_key(kind: Kind, key: NamespacedName) -> ObjectKey {
    ObjectKey { kind, namespace: key.namespace, name: key.name }
}

/// Whether the embedded scheduler has the pod on a node.
fn is_placed(session: &Session, pod: NamespacedName) -> bool {
    let pod = session.world().api().objects().pod(pod);
    pod.is_some_and(|pod| !pod.spec.node_name.is_empty())
}

/// Whether this is the pod with that UID and it is pending.
fn is_pending(object: &Object, uid: Uid) -> bool {
    matches!(object, Object::Pod(pod) if pod.metadata.uid == uid && pod.spec.node_name.is_empty())
}

#[cfg(test)]
mod tests;
