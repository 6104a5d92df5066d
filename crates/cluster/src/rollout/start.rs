//! The beginning of a rollout: the workload's pods, its strategy, and what the new pods are like.
//!
//! A new pod is a copy of a pod that there is, so that what admission added to the template, such as
//! sidecars, is part of it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::{
    Blueprint, Member, Owners, REVISION, ReplicaSetRef, Rollout, RolloutState, Strategy,
    WorkloadKind, WorkloadName,
};
use crate::World;
use crate::disruption::claims::OwnClaims;
use crate::disruption::replace::fresh;
use crate::disruption::{DESIRED_REPLICAS, key_of};
use crate::workload::{MOST_REPLICAS, TEMPLATE_HASH, for_node, suits_daemon, workload_of};
use kubestep_api::admission::{made_up_uid, merge_label_keys, unmerge_label_keys};
use kubestep_api::intern::Symbol;
use kubestep_api::{
    Deployment, LabelSelector, OwnerReference, Pod, ReplicaSet, StatefulSet, UpdateStrategy,
};
use kubestep_framework::objects::Objects;
use kubestep_framework::pod::NamespacedName;

/// The field of a node selector that names the node of a daemon pod.
const NODE_NAME: &str = "metadata.name";

/// Why a rollout cannot begin; nothing is changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RolloutError {
    /// The workload has no pods that could be copied.
    NoPods(WorkloadName),
    /// The Deployment is paused.
    Paused(WorkloadName),
    /// `spec.replicas` is this large.
    TooMany(WorkloadName, usize),
    /// The template cannot be changed like this.
    Template(String),
}

impl fmt::Display for RolloutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RolloutError::NoPods(workload) => {
                write!(
                    f,
                    "no pods of {workload} are in the input: a rollout replaces existing pods"
                )
            }
            RolloutError::Paused(workload) => {
                write!(f, "{workload} is paused: set spec.paused to false")
            }
            RolloutError::TooMany(workload, replicas) => {
                write!(f, "{workload}: spec.replicas: {replicas} is more than {MOST_REPLICAS}")
            }
            RolloutError::Template(message) => f.write_str(message),
        }
    }
}

/// What the object of a workload says about its rollouts.
struct Spec {
    strategy: Strategy,
    replicas: usize,
    min_ready_seconds: i32,
}

impl World {
    /// Replaces the pods of a workload by pods of a template that `change` changes; without a
    /// change, as `kubectl rollout restart` does. The rollout goes on as the scheduler places pods
    /// and as the clock moves. `Ok(false)` if the object of the workload is not known, so that its
    /// strategy is the default.
    ///
    /// # Errors
    /// The rollout cannot begin; nothing is changed.
    pub fn rollout(
        &mut self,
        workload: WorkloadName,
        change: impl Fn(&mut Pod) -> Result<(), String>,
    ) -> Result<bool, RolloutError> {
        let pods = self.pods_of(workload);
        let Some(newest) = pods.iter().max_by_key(|pod| age_key(pod)) else {
            return Err(RolloutError::NoPods(workload));
        };
        let number = self.disruptions().map_or(0, |all| all.rollouts().len());
        let revision = revision(workload, number);
        let owners = self.owners(workload, newest, &pods, revision);
        let models = models(workload.kind, &pods, newest);
        let blueprint = |pod: &Arc<Pod>| self.blueprint(workload, pod, &owners, revision, &change);
        let blueprints = models
            .iter()
            .map(|(slot, pod)| {
                let mut new = blueprint(pod)?;
                if workload.kind == WorkloadKind::DaemonSet {
                    new.pod = for_node(new.pod, *slot);
                }
                Ok((*slot, Arc::new(new)))
            })
            .collect::<Result<BTreeMap<_, _>, String>>()
            .map_err(RolloutError::Template)?;
        let (spec, is_known) = self.spec(workload, &pods, &blueprints)?;
        let mut rollout = Rollout {
            workload,
            strategy: spec.strategy,
            replicas: spec.replicas,
            min_ready: i64::from(spec.min_ready_seconds.max(0)) * 1_000_000,
            owners,
            members: BTreeMap::<NamespacedName, Member>::new(),
            blueprints,
            steps: Vec::new(),
            started: self.now,
            state: RolloutState::UnderWay,
            is_due: true,
        };
        pods.iter().for_each(|pod| rollout.observe(pod, None));
        self.create_replica_set(&rollout, newest);
        self.begin(rollout);
        Ok(is_known)
    }

    fn begin(&mut self, rollout: Rollout) {
        let now = self.now;
        let rollouts = &mut self.api.disruptions(now).rollouts;
        let earlier = rollouts.iter_mut().filter(|other| other.workload == rollout.workload);
        for earlier in earlier.filter(|other| other.state == RolloutState::UnderWay) {
            earlier.state = RolloutState::Superseded;
        }
        rollouts.push(rollout);
        self.settle();
    }

    /// The pods of the workload that have not ended, by name.
    fn pods_of(&self, workload: WorkloadName) -> Vec<Arc<Pod>> {
        let objects = self.api.objects();
        let wanted = Some((Symbol::new(workload.kind.as_str()), workload.key.name));
        let is_of = |pod: &&Arc<Pod>| {
            pod.metadata.namespace == workload.key.namespace
                && !pod.is_terminal()
                && !pod.is_terminating()
                && workload_of(objects, pod) == wanted
        };
        let mut pods: Vec<Arc<Pod>> = objects.pods.values().filter(is_of).cloned().collect();
        pods.sort_by_key(|pod| key_of(pod));
        pods
    }

    fn owners(
        &self,
        workload: WorkloadName,
        newest: &Pod,
        pods: &[Arc<Pod>],
        revision: Symbol,
    ) -> Owners {
        if workload.kind != WorkloadKind::Deployment {
            let owner = newest.metadata.controller().map(|owner| owner.uid);
            return Owners::Workload { uid: owner.unwrap_or_default(), revision };
        }
        let name = Symbol::new(&format!("{}-{revision}", workload.key.name));
        let uid = made_up_uid(&format!("ReplicaSet {}/{name}", workload.key.namespace));
        let old = old_sets(self.api.objects(), pods);
        Owners::ReplicaSets { old, new: ReplicaSetRef { name, uid } }
    }

    /// What the new pod is like that takes the place of `pod`.
    fn blueprint(
        &self,
        workload: WorkloadName,
        pod: &Pod,
        owners: &Owners,
        revision: Symbol,
        change: &impl Fn(&mut Pod) -> Result<(), String>,
    ) -> Result<Blueprint, String> {
        let claims = OwnClaims::of(&self.api, pod);
        let mut new = fresh(pod);
        unmerge_label_keys(&mut new);
        let label = match owners {
            Owners::ReplicaSets { .. } => TEMPLATE_HASH,
            Owners::Workload { .. } => REVISION,
        };
        new.metadata.labels.insert(label.into(), revision);
        change(&mut new)?;
        merge_label_keys(&mut new);
        if let Owners::ReplicaSets { new: set, .. } = owners {
            new.metadata.owner_references = vec![owned_by(*set, &new)].into();
        }
        let base = match owners {
            Owners::ReplicaSets { new: set, .. } => set.name,
            Owners::Workload { .. } => workload.key.name,
        };
        if workload.kind != WorkloadKind::StatefulSet {
            new.metadata.name = Symbol::EMPTY;
            new.metadata.generate_name = Symbol::new(&format!("{base}-"));
        }
        Ok(Blueprint { pod: new, claims })
    }

    /// What the workload's object says, and whether there is one.
    fn spec(
        &self,
        workload: WorkloadName,
        pods: &[Arc<Pod>],
        blueprints: &BTreeMap<Symbol, Arc<Blueprint>>,
    ) -> Result<(Spec, bool), RolloutError> {
        Ok(match workload.kind {
            WorkloadKind::Deployment => {
                let known = self.deployment(workload.key);
                if known.is_some_and(|known| known.spec.paused) {
                    return Err(RolloutError::Paused(workload));
                }
                let spec = known.map(|known| known.spec.clone()).unwrap_or_default();
                let replicas = spec.replicas.and_then(|count| usize::try_from(count).ok());
                let replicas = replicas.or_else(|| self.desired(pods)).unwrap_or(pods.len());
                if replicas > MOST_REPLICAS {
                    return Err(RolloutError::TooMany(workload, replicas));
                }
                let strategy = Strategy::of_deployment(&spec.strategy, replicas);
                let min_ready_seconds = spec.min_ready_seconds;
                (Spec { strategy, replicas, min_ready_seconds }, known.is_some())
            }
            WorkloadKind::StatefulSet => {
                let known: Option<&Arc<StatefulSet>> =
                    self.api.objects().stateful_sets.get(&workload.key);
                let spec = known.map(|known| known.spec.clone()).unwrap_or_default();
                let replicas = pods.len();
                let strategy = Strategy::of_stateful_set(&spec, replicas);
                let min_ready_seconds = spec.min_ready_seconds;
                (Spec { strategy, replicas, min_ready_seconds }, known.is_some())
            }
            WorkloadKind::DaemonSet => {
                let suits = |(name, blueprint): &(&Symbol, &Arc<Blueprint>)| {
                    let node = self.api.node(**name);
                    node.is_some_and(|node| suits_daemon(&blueprint.pod, node))
                };
                let replicas = blueprints.iter().filter(suits).count();
                let (strategy, min_ready_seconds, is_known) = self.daemon_set(workload.key);
                let strategy = Strategy::of_daemon_set(&strategy, replicas);
                (Spec { strategy, replicas, min_ready_seconds }, is_known)
            }
        })
    }

    /// How many pods a Deployment has, as its ReplicaSets say.
    fn desired(&self, pods: &[Arc<Pod>]) -> Option<usize> {
        let sets = old_sets(self.api.objects(), pods);
        let namespace = pods.first()?.metadata.namespace;
        let mut desired = sets.iter().filter_map(|set| {
            let key = NamespacedName::new(namespace, set.name);
            let set = self.api.objects().replica_sets.get(&key)?;
            set.metadata.annotations.get_str(DESIRED_REPLICAS)?.parse().ok()
        });
        desired.next()
    }

    fn deployment(&self, key: NamespacedName) -> Option<&Deployment> {
        let is_it = |one: &&Deployment| {
            one.metadata.namespace == key.namespace && one.metadata.name == key.name
        };
        self.controllers().deployments.iter().find(is_it)
    }

    /// The strategy and `minReadySeconds` of a DaemonSet, and whether it is known.
    fn daemon_set(&self, key: NamespacedName) -> (UpdateStrategy, i32, bool) {
        let is_it = |set: &&serde_json::Value| {
            set["metadata"]["namespace"] == key.namespace.as_str()
                && set["metadata"]["name"] == key.name.as_str()
        };
        let Some(set) = self.provisioning().daemon_sets.iter().find(is_it) else {
            return (UpdateStrategy::default(), 0, false);
        };
        let strategy = serde_json::from_value(set["spec"]["updateStrategy"].clone());
        let seconds = set["spec"]["minReadySeconds"].as_i64().unwrap_or(0);
        (strategy.unwrap_or_default(), i32::try_from(seconds).unwrap_or(0), true)
    }

    /// Creates the ReplicaSet of the new pods, like that of the newest pod, and writes into all of
    /// them how many pods the Deployment has.
    fn create_replica_set(&mut self, rollout: &Rollout, newest: &Pod) {
        let Owners::ReplicaSets { old, new } = &rollout.owners else { return };
        let key = |name| NamespacedName::new(rollout.workload.key.namespace, name);
        let owner = newest.metadata.controller().map(|owner| owner.name).unwrap_or_default();
        let sets = &self.api.objects().replica_sets;
        let model = sets.get(&key(owner)).map(|set| copy_of(set, *new));
        let all = old.iter().filter_map(|set| sets.get(&key(set.name)).cloned());
        let all: Vec<ReplicaSet> = all.map(Arc::unwrap_or_clone).chain(model).collect();
        for mut set in all {
            let replicas = rollout.replicas.to_string();
            set.metadata.annotations.insert(DESIRED_REPLICAS.into(), replicas.as_str().into());
            self.api.put(set.into());
        }
    }
}

/// A name for the new template.
fn revision(workload: WorkloadName, number: usize) -> Symbol {
    let uid = made_up_uid(&format!("rollout {number} of {workload}"));
    let hash: String = uid.chars().filter(char::is_ascii_hexdigit).take(10).collect();
    match workload.kind {
        WorkloadKind::StatefulSet => Symbol::new(&format!("{}-{hash}", workload.key.name)),
        _ => Symbol::new(&hash),
    }
}

/// The newest pods are last; of one second, by name.
fn age_key(pod: &Pod) -> (Option<kubestep_api::Time>, NamespacedName) {
    (pod.metadata.creation_timestamp, key_of(pod))
}

/// The ReplicaSets of the pods, the oldest first.
fn old_sets(objects: &Objects, pods: &[Arc<Pod>]) -> Vec<ReplicaSetRef> {
    let mut sets = Vec::new();
    for pod in pods {
        let Some(owner) = pod.metadata.controller() else { continue };
        let key = NamespacedName::new(pod.metadata.namespace, owner.name);
        let set = objects.replica_sets.get(&key);
        let created = set.and_then(|set| set.metadata.creation_timestamp);
        sets.push((created, owner.name, owner.uid));
    }
    sets.sort_unstable();
    sets.dedup();
    sets.into_iter().map(|(_, name, uid)| ReplicaSetRef { name, uid }).collect()
}

/// The pods that the new ones are copies of, by slot.
fn models<'a>(
    kind: WorkloadKind,
    pods: &'a [Arc<Pod>],
    newest: &'a Arc<Pod>,
) -> BTreeMap<Symbol, &'a Arc<Pod>> {
    match kind {
        WorkloadKind::Deployment => BTreeMap::from([(Symbol::EMPTY, newest)]),
        _ => pods.iter().map(|pod| (slot(kind, pod), pod)).collect(),
    }
}

/// Where in the workload a pod belongs: its name in a StatefulSet, its node in a DaemonSet.
pub(super) fn slot(kind: WorkloadKind, pod: &Pod) -> Symbol {
    match kind {
        WorkloadKind::Deployment => Symbol::EMPTY,
        WorkloadKind::StatefulSet => pod.metadata.name,
        WorkloadKind::DaemonSet if pod.spec.node_name.is_empty() => daemon_node(pod),
        WorkloadKind::DaemonSet => pod.spec.node_name,
    }
}

/// The node that the affinity of a daemon pod names.
fn daemon_node(pod: &Pod) -> Symbol {
    let affinity = pod.spec.affinity.as_deref().and_then(|all| all.node_affinity.as_ref());
    let required =
        affinity.and_then(|of| of.required_during_scheduling_ignored_during_execution.as_ref());
    let terms = required.map(|required| required.node_selector_terms.as_slice()).unwrap_or(&[]);
    let mut fields = terms.iter().flat_map(|term| &term.match_fields);
    let named = fields.find(|field| field.key == NODE_NAME);
    named.and_then(|field| field.values.first().copied()).unwrap_or_default()
}

fn owned_by(set: ReplicaSetRef, pod: &Pod) -> OwnerReference {
    let owner = pod.metadata.controller().cloned().unwrap_or_default();
    OwnerReference { name: set.name, uid: set.uid, ..owner }
}

/// A ReplicaSet like `set` for the pods of the new template, with no pods yet.
fn copy_of(set: &ReplicaSet, new: ReplicaSetRef) -> ReplicaSet {
    let mut copy = set.clone();
    let hash = new.name.rsplit_once('-').map(|(_, hash)| Symbol::new(hash)).unwrap_or_default();
    (copy.metadata.name, copy.metadata.uid) = (new.name, new.uid);
    copy.spec.replicas = Some(0);
    let selector: &mut LabelSelector = copy.spec.selector.get_or_insert_default();
    let labels = [
        &mut copy.metadata.labels,
        &mut copy.spec.template.metadata.labels,
        &mut selector.match_labels,
    ];
    for labels in labels {
        labels.insert(TEMPLATE_HASH.into(), hash);
    }
    copy
}
