//! Rollouts: the pods of a Deployment, StatefulSet or DaemonSet are replaced by pods of another
//! template, as its strategy says.
//!
//! A rollout decides which pods to create and to delete next from the pods that there are, each
//! time one of them changes: `deployment.rs`, `stateful_set.rs`, `daemon_set.rs`. `start.rs` finds
//! the pods of a workload, `blueprint.rs` prepares the new ones. The scheduler places them in
//! scheduling cycles.
//! As in all disruptions, a deleted pod has no grace period, and a pod is ready once it is bound;
//! it is available after `minReadySeconds`.

mod blueprint;
mod daemon_set;
mod deployment;
mod start;
mod stateful_set;
mod strategy;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::World;
use crate::api_server::ApiServer;
use crate::disruption::claims::OwnClaims;
use crate::disruption::{key_of, runs};
use kubestep_api::admission::derived_uid;
use kubestep_api::{Duration, Kind, Name, Object, Pod, Time, Uid};
use kubestep_framework::pod::NamespacedName;
use kubestep_scheduler::Change;

pub(crate) use blueprint::Blueprint;
pub use start::RolloutError;
pub use strategy::Strategy;

/// A kind of workload that has rollouts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs)]
pub enum WorkloadKind {
    Deployment,
    StatefulSet,
    DaemonSet,
}

impl WorkloadKind {
    /// The kind as in manifests: `Deployment`.
    pub fn as_str(self) -> &'static str {
        match self {
            WorkloadKind::Deployment => "Deployment",
            WorkloadKind::StatefulSet => "StatefulSet",
            WorkloadKind::DaemonSet => "DaemonSet",
        }
    }

    /// The kind of that name, as kubectl accepts it.
    pub fn by_name(text: &str) -> Option<WorkloadKind> {
        match text.to_ascii_lowercase().as_str() {
            "deployment" | "deployments" | "deploy" => Some(WorkloadKind::Deployment),
            "statefulset" | "statefulsets" | "sts" => Some(WorkloadKind::StatefulSet),
            "daemonset" | "daemonsets" | "ds" => Some(WorkloadKind::DaemonSet),
            _ => None,
        }
    }
}

/// A workload whose pods a rollout can replace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorkloadName {
    /// Deployment, StatefulSet or DaemonSet.
    pub kind: WorkloadKind,
    /// Its namespace and name.
    pub key: NamespacedName,
}

/// Kind, namespace and name: `Deployment shop/web`.
impl fmt::Display for WorkloadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.as_str(), self.key)
    }
}

/// The update of a workload's pods.
#[derive(Clone, Debug)]
pub struct Rollout {
    workload: WorkloadName,
    strategy: Strategy,
    replicas: usize,
    /// `minReadySeconds`.
    min_ready: Duration,
    owners: Owners,
    /// The workload's pods, old and new.
    members: BTreeMap<NamespacedName, Member>,
    /// What the pod of each slot is like that the workload should have. A StatefulSet's pods below
    /// the partition keep the old template.
    blueprints: BTreeMap<Name, Arc<Blueprint>>,
    /// The pod of a DaemonSet's template, for the nodes that it fits.
    daemon: Option<Arc<Pod>>,
    steps: Vec<RolloutStep>,
    started: Time,
    state: RolloutState,
    is_due: bool,
}

/// How far a rollout is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RolloutState {
    /// It goes on, or waits for a pod.
    UnderWay,
    /// It was complete at that time.
    Complete(Time),
    /// Another rollout of the same workload began.
    Superseded,
}

/// A pod that a rollout created or deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RolloutStep {
    /// The virtual time of creation or deletion.
    pub at: Time,
    /// Namespace and name of the pod.
    pub pod: NamespacedName,
    /// The node of a deleted pod, empty if it had none; `None`: the pod was created.
    pub deleted_from: Option<Name>,
}

/// How many pods a workload has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PodCounts {
    /// With the new template.
    pub updated: usize,
    /// With the new template, and available.
    pub updated_available: usize,
    /// With an older template.
    pub old: usize,
    /// Of either, and available.
    pub available: usize,
}

/// Which pods belong to a rollout.
#[derive(Clone, Debug)]
enum Owners {
    /// A Deployment's ReplicaSets, the older ones in the order of their creation.
    ReplicaSets { old: Vec<ReplicaSetRef>, new: ReplicaSetRef },
    /// The workload itself; a label distinguishes its templates.
    Workload { uid: Uid, revision: Name },
}

#[derive(Clone, Copy, Debug)]
struct ReplicaSetRef {
    name: Name,
    uid: Uid,
}

/// The label with the revision of a StatefulSet's or DaemonSet's template.
const REVISION: &str = "controller-revision-hash";

/// A pod of the workload.
#[derive(Clone, Debug)]
struct Member {
    pod: Arc<Pod>,
    updated: bool,
    /// The UID of its controller.
    owner: Uid,
    /// Its ordinal's name in a StatefulSet, its node in a DaemonSet.
    slot: Name,
    /// Since when it is ready.
    ready: Option<Time>,
}

/// What a rollout does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RolloutAction {
    /// Creates the new pod of a slot.
    Create(Name),
    Delete(NamespacedName),
}

impl Rollout {
    /// The workload whose pods are replaced.
    pub fn workload(&self) -> WorkloadName {
        self.workload
    }

    /// How its pods are replaced.
    pub fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// How many pods it should have.
    pub fn replicas(&self) -> usize {
        self.replicas
    }

    /// How many of them should get the new template: not those below a partition.
    pub fn to_update(&self) -> usize {
        match self.strategy {
            Strategy::Ordinal { partition, .. } => self.replicas.saturating_sub(partition),
            Strategy::OnDelete { .. } => 0,
            _ => self.replicas,
        }
    }

    /// The pods that were created and deleted, in order.
    pub fn steps(&self) -> &[RolloutStep] {
        &self.steps
    }

    /// The virtual time at which it began.
    pub fn started(&self) -> Time {
        self.started
    }

    /// How far it is.
    pub fn state(&self) -> RolloutState {
        self.state
    }

    /// The pods at a time.
    pub fn counts(&self, now: Time) -> PodCounts {
        let count = |matches: &dyn Fn(&Member) -> bool| {
            self.members.values().filter(|member| matches(member)).count()
        };
        PodCounts {
            updated: count(&|member| member.updated),
            updated_available: count(&|member| member.updated && self.is_available(member, now)),
            old: count(&|member| !member.updated),
            available: count(&|member| self.is_available(member, now)),
        }
    }

    /// The new pods that have no node, by name.
    pub fn unplaced(&self) -> impl Iterator<Item = NamespacedName> + '_ {
        let waits = |member: &Member| member.updated && member.pod.spec.node_name.is_empty();
        self.members.iter().filter(move |(_, member)| waits(member)).map(|(key, _)| *key)
    }

    /// How much has happened; a larger number means progress. A step counts more than the pod that
    /// it may make unavailable.
    pub(crate) fn progress(&self, now: Time) -> usize {
        2 * self.steps.len() + self.counts(now).available
    }

    /// When the next pod becomes available; `None` if that does not depend on time.
    pub(crate) fn next_available(&self, now: Time) -> Option<Time> {
        self.waits(now).map(|(at, _)| at).min()
    }

    /// When each pod becomes available that is ready and not available yet.
    pub fn waits(&self, now: Time) -> impl Iterator<Item = (Time, NamespacedName)> + '_ {
        let waits = self.min_ready > Duration::ZERO && self.state == RolloutState::UnderWay;
        let members = self.members.iter().filter(move |_| waits);
        let ends = members.filter_map(|(key, member)| Some((self.available_at(member)?, *key)));
        ends.filter(move |(end, _)| *end > now)
    }

    fn available_at(&self, member: &Member) -> Option<Time> {
        member.ready.map(|ready| ready + self.min_ready)
    }

    fn is_available(&self, member: &Member, now: Time) -> bool {
        self.available_at(member).is_some_and(|at| at <= now)
    }

    /// Whether the pod has the new template; `None` if it is not one of the workload's.
    fn is_updated(&self, pod: &Pod) -> Option<bool> {
        if pod.is_terminal() || pod.is_terminating() {
            return None;
        }
        let owner = pod.metadata.controller()?.uid;
        match &self.owners {
            Owners::ReplicaSets { new, .. } if new.uid == owner => Some(true),
            Owners::ReplicaSets { old, .. } => {
                old.iter().any(|set| set.uid == owner).then_some(false)
            }
            Owners::Workload { uid, revision } => (*uid == owner)
                .then(|| pod.metadata.labels.get_str(REVISION).is_some_and(|own| own == revision)),
        }
    }

    /// Takes a pod into account. `now` is `None` for the pods that there are at the beginning.
    fn observe(&mut self, pod: &Arc<Pod>, now: Option<Time>) {
        let key = key_of(pod);
        let Some(updated) = self.is_updated(pod) else { return };
        let ready = self.members.get(&key).and_then(|member| member.ready);
        let ready = ready.or_else(|| runs(pod).then(|| now.unwrap_or(Time(0))));
        let member = Member {
            updated,
            owner: pod.metadata.controller().map(|owner| owner.uid).unwrap_or_default(),
            slot: start::slot(self.workload.kind, pod),
            ready,
            pod: pod.clone(),
        };
        self.members.insert(key, member);
        self.is_due = true;
    }

    fn forget(&mut self, key: NamespacedName) {
        self.is_due |= self.members.remove(&key).is_some();
    }

    /// What is to be done now; nothing if a pod has to become available first.
    fn next(&self, api: &ApiServer, now: Time) -> Vec<RolloutAction> {
        match self.strategy {
            Strategy::Recreate => deployment::recreate(self),
            Strategy::Rolling { surge, unavailable } => {
                deployment::roll(self, surge, unavailable, now)
            }
            Strategy::Ordinal { partition, unavailable, ordered } => {
                let limits =
                    stateful_set::OrdinalLimits { partition, unavailable, ordered, updates: true };
                stateful_set::next(self, limits, now)
            }
            Strategy::Nodes { surge, unavailable } => {
                daemon_set::next(self, api, Some((surge, unavailable)), now)
            }
            Strategy::OnDelete { .. } if self.workload.kind == WorkloadKind::DaemonSet => {
                daemon_set::next(self, api, None, now)
            }
            Strategy::OnDelete { ordered } => {
                let (partition, unavailable) = (0, None);
                let limits =
                    stateful_set::OrdinalLimits { partition, unavailable, ordered, updates: false };
                stateful_set::next(self, limits, now)
            }
        }
    }

    /// Whether nothing is left to be done, if nothing is to be done now.
    fn is_complete(&self, now: Time) -> bool {
        let counts = self.counts(now);
        let all = counts.old + counts.updated;
        match self.strategy {
            // Nodes may be lost on the way.
            Strategy::Nodes { .. } => counts.old == 0 && counts.updated_available == counts.updated,
            Strategy::OnDelete { .. } => {
                self.workload.kind == WorkloadKind::DaemonSet || all == self.replicas
            }
            _ => {
                counts.updated_available >= self.to_update()
                    && counts.old <= self.replicas - self.to_update()
                    && all >= self.replicas
            }
        }
    }

    /// What the workload's controller creates in the place of a pod that is deleted; `None` if the
    /// pod does not belong to a workload whose pods have their own places.
    pub(crate) fn successor(&self, pod: &Pod) -> Option<&Arc<Blueprint>> {
        let Owners::Workload { uid, .. } = &self.owners else { return None };
        let is_of = pod.metadata.controller().is_some_and(|owner| owner.uid == *uid);
        let slot = start::slot(self.workload.kind, pod);
        self.blueprints.get(&slot).filter(|_| is_of && self.state != RolloutState::Superseded)
    }
}

impl ApiServer {
    /// Passes a delivered change to the rollouts.
    pub(crate) fn observe_rollouts(&mut self, change: &Change) {
        let Some(disruptions) = &mut self.disruptions else { return };
        let (pod, is_deleted) = match change {
            Change::Add(Object::Pod(pod)) | Change::Update { new: Object::Pod(pod), .. } => {
                (pod, pod.is_terminal() || pod.is_terminating())
            }
            Change::Delete(Object::Pod(pod)) => (pod, true),
            _ => return,
        };
        let key = key_of(pod);
        let concerns = |rollout: &Rollout| {
            rollout.members.contains_key(&key) || rollout.is_updated(pod).is_some()
        };
        if !disruptions.rollouts.iter().any(concerns) {
            return;
        }
        for rollout in &mut Arc::make_mut(disruptions).rollouts {
            match is_deleted {
                true => rollout.forget(key),
                false => rollout.observe(pod, Some(self.now)),
            }
        }
    }

    /// The rollout that is to act next, and what it does.
    fn next_of_rollouts(&mut self) -> Option<(usize, Vec<RolloutAction>)> {
        let due = |rollout: &Rollout| rollout.is_due && rollout.state == RolloutState::UnderWay;
        loop {
            let at = self.disruptions.as_ref()?.rollouts.iter().position(due)?;
            let actions = self.disruptions.as_ref()?.rollouts[at].next(self, self.now);
            if !actions.is_empty() {
                return Some((at, actions));
            }
            let now = self.now;
            let rollout = &mut self.disruptions(now).rollouts[at];
            rollout.is_due = false;
            if rollout.is_complete(now) {
                rollout.state = RolloutState::Complete(now);
            }
        }
    }
}

impl World {
    /// Lets rollouts go on. `false` if all wait.
    pub(crate) fn continue_rollouts(&mut self) -> bool {
        let Some((at, actions)) = self.api.next_of_rollouts() else { return false };
        for action in actions {
            let step = match action {
                RolloutAction::Create(slot) => self.create_updated(at, slot),
                RolloutAction::Delete(pod) => self.delete_old(pod),
            };
            let now = self.now;
            self.api.disruptions(now).rollouts[at].steps.extend(step);
        }
        self.deliver();
        self.write_replica_sets(at);
        true
    }

    /// Lets rollouts look at pods that have become available.
    pub(crate) fn wake_rollouts(&mut self) {
        let waits = |rollout: &Rollout| rollout.min_ready > Duration::ZERO;
        let any = self.disruptions().is_some_and(|all| all.rollouts.iter().any(waits));
        if any {
            let now = self.now;
            self.api.disruptions(now).rollouts.iter_mut().for_each(|rollout| rollout.is_due = true);
        }
    }

    fn create_updated(&mut self, at: usize, slot: Name) -> Option<RolloutStep> {
        let rollout = self.disruptions()?.rollouts.get(at)?;
        let blueprint = rollout.blueprints.get(&slot)?.clone();
        let workload = rollout.workload;
        let mut object = Object::from(blueprint.pod.clone());
        self.api.name(&mut object);
        let Object::Pod(pod) = object else { return None };
        let mut pod = Arc::unwrap_or_clone(pod);
        let key = key_of(&pod);
        let number = self.disruptions()?.rollouts.len();
        pod.metadata.uid = derived_uid(&format!("{key} of rollout {number} of {workload}"));
        pod.metadata.creation_timestamp = Some(self.creation_time());
        for claim in blueprint.claims(&self.api, &mut pod) {
            self.api.put(claim);
        }
        let object = pod.into();
        self.stamp(&object);
        self.api.put(object);
        Some(RolloutStep { at: self.now, pod: key, deleted_from: None })
    }

    fn delete_old(&mut self, key: NamespacedName) -> Option<RolloutStep> {
        let pod = self.api.objects().pod(key)?.clone();
        let claims = OwnClaims::of(&self.api, &pod);
        self.api.remove(Kind::Pod, key);
        self.api.release_claims(&pod, &claims);
        Some(RolloutStep { at: self.now, pod: key, deleted_from: Some(pod.spec.node_name) })
    }

    /// Writes how many pods each ReplicaSet of the workload should have.
    fn write_replica_sets(&mut self, at: usize) {
        let Some(rollout) = self.disruptions().and_then(|all| all.rollouts.get(at)) else { return };
        let Owners::ReplicaSets { old, new } = &rollout.owners else { return };
        let mut changed = Vec::new();
        for set in old.iter().chain([new]) {
            let key = NamespacedName::new(rollout.workload.key.namespace, set.name);
            let pods = rollout.members.values().filter(|member| member.owner == set.uid).count();
            let Some(set) = self.api.objects().replica_sets.get(&key) else { continue };
            let replicas = i32::try_from(pods).ok();
            if set.spec.replicas != replicas {
                let mut set = set.as_ref().clone();
                set.spec.replicas = replicas;
                changed.push(set);
            }
        }
        changed.into_iter().for_each(|set| self.api.put(set.into()));
    }
}
