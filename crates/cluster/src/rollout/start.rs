//! The beginning of a rollout: the workload's pods, those that it should have, and its strategy.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

use super::blueprint::TemplateChange;
use super::{
    Member, Owners, ReplicaSetRef, Rollout, RolloutState, Strategy, WorkloadKind, WorkloadName,
    stateful_set,
};
use crate::World;
use crate::disruption::{DESIRED_REPLICAS, key_of};
use crate::workload::{
    DaemonFit, MOST_REPLICAS, TEMPLATE_HASH, daemon_template, without_affinity, workload_of,
};
use kubestep_api::admission::derived_uid;
use kubestep_api::intern::Symbol;
use kubestep_api::{
    Deployment, Duration, LabelSelector, Name, Node, Pod, ReplicaSet, StatefulSet, UpdateStrategy,
};
use kubestep_config::Feature;
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

/// The pods that a workload should have.
struct DesiredPods {
    /// The pods that the new ones are copies of, by slot.
    models: BTreeMap<Name, Arc<Pod>>,
    /// The pod of a DaemonSet's template.
    daemon: Option<Arc<Pod>>,
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
        let wanted = self.wanted(workload, &pods, newest)?;
        let (spec, is_known) = self.spec(workload, &pods, &wanted)?;
        let kept = kept_slots(spec.strategy, &wanted.models);
        let new = TemplateChange { workload, owners: &owners, revision, change: &change };
        let blueprint = |(slot, model): (&Name, &Arc<Pod>)| {
            let made = match kept.get(slot) {
                Some(oldest) if *slot != model.metadata.name => new.kept(&self.api, *slot, oldest),
                Some(_) => new.kept(&self.api, *slot, model),
                None => new.changed(&self.api, *slot, model)?,
            };
            Ok((*slot, Arc::new(made)))
        };
        let blueprints = wanted.models.iter().map(blueprint).collect::<Result<_, String>>();
        let mut rollout = Rollout {
            workload,
            strategy: spec.strategy,
            replicas: spec.replicas,
            min_ready: Duration::from_secs(spec.min_ready_seconds.max(0).into()),
            owners,
            members: BTreeMap::<NamespacedName, Member>::new(),
            blueprints: blueprints.map_err(RolloutError::Template)?,
            daemon: wanted.daemon,
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

    /// The pods that the workload should have.
    fn wanted(
        &self,
        workload: WorkloadName,
        pods: &[Arc<Pod>],
        newest: &Arc<Pod>,
    ) -> Result<DesiredPods, RolloutError> {
        let of_pods: BTreeMap<Name, Arc<Pod>> =
            pods.iter().map(|pod| (slot(workload.kind, pod), pod.clone())).collect();
        Ok(match workload.kind {
            WorkloadKind::Deployment => DesiredPods {
                models: BTreeMap::from([(Name::EMPTY, newest.clone())]),
                daemon: None,
            },
            WorkloadKind::StatefulSet => {
                let set = self.api.objects().stateful_sets.get(&workload.key);
                let wanted = set.map(|set| ordinals(workload, set)).transpose()?.flatten();
                let models = match wanted {
                    None => of_pods,
                    Some(wanted) => {
                        let slots = wanted
                            .map(|number| Name::new(&format!("{}-{number}", workload.key.name)));
                        let model = |slot| of_pods.get(&slot).unwrap_or(newest).clone();
                        slots.map(|slot| (slot, model(slot))).collect()
                    }
                };
                DesiredPods { models, daemon: None }
            }
            WorkloadKind::DaemonSet => self.wanted_daemons(workload, of_pods, newest),
        })
    }

    /// The pods of a DaemonSet: those that there are, and if the set itself is known, one for each
    /// node that it fits.
    fn wanted_daemons(
        &self,
        workload: WorkloadName,
        mut models: BTreeMap<Name, Arc<Pod>>,
        newest: &Arc<Pod>,
    ) -> DesiredPods {
        let template = self.daemon_set(workload.key).and_then(daemon_template);
        if let Some(template) = &template {
            let fits = |node: &&Arc<Node>| DaemonFit::of(template, node).creates;
            for node in self.api.nodes().filter(fits) {
                models.entry(node.metadata.name).or_insert_with(|| newest.clone());
            }
        }
        let daemon = template.unwrap_or_else(|| without_affinity(newest));
        DesiredPods { models, daemon: Some(Arc::new(daemon)) }
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
        revision: Name,
    ) -> Owners {
        if workload.kind != WorkloadKind::Deployment {
            let owner = newest.metadata.controller().map(|owner| owner.uid);
            return Owners::Workload { uid: owner.unwrap_or_default(), revision };
        }
        let name = Name::new(&format!("{}-{revision}", workload.key.name));
        let uid = derived_uid(&format!("ReplicaSet {}/{name}", workload.key.namespace));
        let old = old_sets(self.api.objects(), pods);
        Owners::ReplicaSets { old, new: ReplicaSetRef { name, uid } }
    }

    /// What the workload's object says, and whether there is one.
    fn spec(
        &self,
        workload: WorkloadName,
        pods: &[Arc<Pod>],
        wanted: &DesiredPods,
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
                let replicas = wanted.models.len();
                let gates = self.scheduler().features();
                let limited = gates.enabled(Feature::MaxUnavailableStatefulSet);
                let strategy = Strategy::of_stateful_set(&spec, replicas, limited);
                let min_ready_seconds = spec.min_ready_seconds;
                (Spec { strategy, replicas, min_ready_seconds }, known.is_some())
            }
            WorkloadKind::DaemonSet => {
                let fits = |name: &&Name| {
                    let node = wanted.daemon.as_ref().zip(self.api.node(**name));
                    node.is_some_and(|(pod, node)| DaemonFit::of(pod, node).creates)
                };
                let replicas = wanted.models.keys().filter(fits).count();
                let set = self.daemon_set(workload.key);
                let (update, min_ready_seconds) = set.map(daemon_update).unwrap_or_default();
                let strategy = Strategy::of_daemon_set(&update, replicas);
                (Spec { strategy, replicas, min_ready_seconds }, set.is_some())
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

    /// A DaemonSet as written, if it is known.
    fn daemon_set(&self, key: NamespacedName) -> Option<&Value> {
        let is_it = |set: &&Value| {
            set["metadata"]["namespace"] == key.namespace.as_str()
                && set["metadata"]["name"] == key.name.text().as_str()
        };
        self.provisioning().daemon_sets.iter().find(is_it)
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
fn revision(workload: WorkloadName, number: usize) -> Name {
    let uid = derived_uid(&format!("rollout {number} of {workload}")).to_string();
    let hash: String = uid.chars().filter(char::is_ascii_hexdigit).take(10).collect();
    match workload.kind {
        WorkloadKind::StatefulSet => Name::new(&format!("{}-{hash}", workload.key.name)),
        _ => Name::new(&hash),
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

/// The update strategy and `minReadySeconds` of a DaemonSet.
fn daemon_update(set: &Value) -> (UpdateStrategy, i32) {
    let strategy = serde_json::from_value(set["spec"]["updateStrategy"].clone());
    let seconds = set["spec"]["minReadySeconds"].as_i64().unwrap_or(0);
    (strategy.unwrap_or_default(), i32::try_from(seconds).unwrap_or(0))
}

/// The slots whose pods keep the old template, those below a StatefulSet's partition; each with a
/// pod of that template.
fn kept_slots(strategy: Strategy, models: &BTreeMap<Name, Arc<Pod>>) -> BTreeMap<Name, Arc<Pod>> {
    let Strategy::Ordinal { partition, .. } = strategy else { return BTreeMap::new() };
    let mut slots: Vec<(Name, &Arc<Pod>)> = models.iter().map(|(slot, pod)| (*slot, pod)).collect();
    slots.sort_by_key(|(slot, _)| stateful_set::ordinal(*slot));
    let lowest = slots.iter().find(|(slot, pod)| pod.metadata.name == *slot);
    let Some(lowest) = lowest.map(|(_, pod)| Arc::clone(pod)) else { return BTreeMap::new() };
    slots.into_iter().take(partition).map(|(slot, _)| (slot, lowest.clone())).collect()
}

/// The ordinals of a StatefulSet's pods; `None` if it does not say how many there are.
fn ordinals(
    workload: WorkloadName,
    set: &StatefulSet,
) -> Result<Option<Range<usize>>, RolloutError> {
    let Some(replicas) = set.spec.replicas.and_then(|count| usize::try_from(count).ok()) else {
        return Ok(None);
    };
    if replicas > MOST_REPLICAS {
        return Err(RolloutError::TooMany(workload, replicas));
    }
    let start = set.spec.ordinals.as_ref().map_or(0, |ordinals| ordinals.start);
    let start = usize::try_from(start).unwrap_or(0);
    Ok(Some(start..start + replicas))
}

/// Where in the workload a pod belongs: its name in a StatefulSet, its node in a DaemonSet.
pub(super) fn slot(kind: WorkloadKind, pod: &Pod) -> Name {
    match kind {
        WorkloadKind::Deployment => Name::EMPTY,
        WorkloadKind::StatefulSet => pod.metadata.name,
        WorkloadKind::DaemonSet if pod.spec.node_name.is_empty() => daemon_node(pod),
        WorkloadKind::DaemonSet => pod.spec.node_name,
    }
}

/// The node that the affinity of a daemon pod names.
fn daemon_node(pod: &Pod) -> Name {
    let affinity = pod.spec.affinity.as_deref().and_then(|all| all.node_affinity.as_ref());
    let required =
        affinity.and_then(|of| of.required_during_scheduling_ignored_during_execution.as_ref());
    let terms = required.map(|required| required.node_selector_terms.as_slice()).unwrap_or(&[]);
    let mut fields = terms.iter().flat_map(|term| &term.match_fields);
    let named = fields.find(|field| field.key == NODE_NAME);
    named.and_then(|field| field.values.first().copied()).unwrap_or_default()
}

/// A ReplicaSet like `set` for the pods of the new template, with no pods yet.
fn copy_of(set: &ReplicaSet, new: ReplicaSetRef) -> ReplicaSet {
    let mut copy = set.clone();
    let hash =
        new.name.text().rsplit_once('-').map(|(_, hash)| Name::new(hash)).unwrap_or_default();
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
