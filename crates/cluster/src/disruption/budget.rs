//! The disruption controller: how many pods of each disruption budget may be evicted.
//!
//! Whether a pod is ready is not read from clusters. The status that a budget has in the input
//! says how many of its pods are not healthy; that number stays, and a pod that leaves or comes
//! counts as healthy.
//!
//! Upstream: `trySync` and `getExpectedPodCount` in `pkg/controller/disruption/disruption.go`.

use std::collections::BTreeMap;

use super::runs;
use crate::api_server::ApiServer;
use kubestep_api::intern::Symbol;
use kubestep_api::selector::Selector;
use kubestep_api::{
    IntOrString, Name, Object, OwnerReference, Pod, PodDisruptionBudget, PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus, Time, Uid,
};
use kubestep_framework::objects::Objects;
use kubestep_framework::pod::NamespacedName;
use kubestep_scheduler::Change;

/// The annotation of a ReplicaSet with the number of replicas of its Deployment.
pub(crate) const DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";

/// A budget that had fewer healthy pods than it needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BudgetViolation {
    /// Namespace and name of the budget.
    pub budget: NamespacedName,
    /// How many healthy pods it needs.
    pub needed: i32,
    /// The lowest number of healthy pods.
    pub lowest: i32,
    /// The number of healthy pods now.
    pub healthy: i32,
    /// When it had too few for the first time.
    pub since: Time,
}

/// All budgets, with the pods that each covers.
#[derive(Clone, Default, Debug)]
pub(super) struct Budgets {
    budgets: BTreeMap<NamespacedName, Budget>,
    /// Those whose status is out of date.
    due: Vec<NamespacedName>,
}

#[derive(Clone, Debug)]
struct Budget {
    spec: PodDisruptionBudgetSpec,
    selector: Selector,
    /// Pods that it covers, and those of them that run.
    pods: i32,
    running: i32,
    /// By the UID of the controller.
    controllers: BTreeMap<Uid, Controller>,
    /// Running pods that were not healthy when the disruptions began.
    unhealthy: i32,
    /// What it needs if its specification does not say.
    needed_otherwise: i32,
    healthy_at_first: i32,
    violation: Option<BudgetViolation>,
}

/// The covered pods of one controller.
#[derive(Clone, Debug)]
struct Controller {
    owner: OwnerReference,
    namespace: Symbol,
    pods: i32,
    most: i32,
}

/// A change that budgets depend on.
pub(super) enum BudgetInput<'a> {
    Pod(Option<&'a Pod>, Option<&'a Pod>),
    Budget(&'a PodDisruptionBudget),
    Deleted(&'a PodDisruptionBudget),
}

impl<'a> BudgetInput<'a> {
    /// `None` if no budget depends on the change.
    pub fn of(change: &'a Change) -> Option<BudgetInput<'a>> {
        use Object::{Pod, PodDisruptionBudget};
        match change {
            Change::Add(Pod(new)) => Some(BudgetInput::Pod(None, Some(new))),
            Change::Delete(Pod(old)) => Some(BudgetInput::Pod(Some(old), None)),
            Change::Update { old: Pod(old), new: Pod(new) } => {
                let same = old.metadata.labels == new.metadata.labels
                    && old.is_terminal() == new.is_terminal()
                    && runs(old) == runs(new);
                (!same).then(|| BudgetInput::Pod(Some(old), Some(new)))
            }
            Change::Add(PodDisruptionBudget(new)) => Some(BudgetInput::Budget(new)),
            Change::Update { old: PodDisruptionBudget(old), new: PodDisruptionBudget(new) } => {
                (old.spec != new.spec).then(|| BudgetInput::Budget(new))
            }
            Change::Delete(PodDisruptionBudget(old)) => Some(BudgetInput::Deleted(old)),
            _ => None,
        }
    }
}

impl Budgets {
    /// The budgets as they are now.
    pub fn new(api: &ApiServer, now: Time) -> Budgets {
        let mut budgets = Budgets::default();
        let all = api.objects.pod_disruption_budgets.values();
        let made = all.filter_map(|object| Some((budget_key(object), Budget::new(object)?)));
        budgets.budgets = made.collect();
        for pod in api.objects.pods.values() {
            let key = pod.metadata.namespace;
            for (_, budget) in in_namespace_mut(&mut budgets.budgets, key) {
                budget.count(pod, 1);
            }
        }
        for (key, budget) in &mut budgets.budgets {
            if let Some(object) = api.objects.pod_disruption_budgets.get(key) {
                budget.begin(&object.status);
            }
            budget.check(*key, &api.objects, now);
        }
        budgets.due = budgets.budgets.keys().copied().collect();
        budgets
    }

    /// Whether one of the budgets depends on the change.
    pub fn concerns(&self, observed: &BudgetInput<'_>) -> bool {
        match observed {
            BudgetInput::Pod(old, new) => old.iter().chain(new).any(|pod| {
                let mut covering = self.of(pod);
                covering.next().is_some()
            }),
            _ => true,
        }
    }

    /// Takes a change into account.
    pub fn observe(&mut self, observed: &BudgetInput<'_>, objects: &Objects, now: Time) {
        match observed {
            BudgetInput::Deleted(budget) => drop(self.budgets.remove(&budget_key(budget))),
            BudgetInput::Budget(object) => {
                let key = budget_key(object);
                let Some(mut budget) = Budget::new(object) else { return };
                objects.pods.values().for_each(|pod| budget.count_if_near(pod, key));
                budget.begin(&object.status);
                budget.check(key, objects, now);
                self.budgets.insert(key, budget);
                self.due.push(key);
            }
            BudgetInput::Pod(old, new) => {
                let namespace = old.or(*new).map(|pod| pod.metadata.namespace).unwrap_or_default();
                for (key, budget) in in_namespace_mut(&mut self.budgets, namespace) {
                    let before = old.is_some_and(|pod| budget.count(pod, -1));
                    let after = new.is_some_and(|pod| budget.count(pod, 1));
                    if before || after {
                        self.due.push(*key);
                    }
                }
            }
        }
    }

    /// Whether the status of a budget is out of date.
    pub(crate) fn are_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// The budgets whose status is out of date; they count as updated from now on.
    pub fn take_due(&mut self) -> Vec<NamespacedName> {
        let mut due = std::mem::take(&mut self.due);
        due.sort_unstable();
        due.dedup();
        due
    }

    /// The budgets that cover a pod, by name.
    pub fn of<'a>(&'a self, pod: &'a Pod) -> impl Iterator<Item = NamespacedName> + 'a {
        let namespace = pod.metadata.namespace;
        let near = self.budgets.range(NamespacedName::new(namespace, Name::EMPTY)..);
        let near = near.take_while(move |(key, _)| key.namespace == namespace);
        near.filter(|(_, budget)| budget.selector.matches(&pod.metadata.labels))
            .map(|(key, _)| *key)
    }

    /// The budgets that had too few healthy pods, by name.
    pub fn violations(&self) -> Vec<BudgetViolation> {
        self.budgets.values().filter_map(|budget| budget.violation).collect()
    }
}

impl ApiServer {
    /// Writes the status of budgets.
    pub(super) fn update_budgets(&mut self, keys: &[NamespacedName]) {
        for key in keys {
            let Some(object) = self.objects.pod_disruption_budgets.get(key).cloned() else {
                continue;
            };
            let now = self.now;
            let Some(disruptions) = &mut self.disruptions else { return };
            let budgets = &mut std::sync::Arc::make_mut(disruptions).budgets.budgets;
            let Some(budget) = budgets.get_mut(key) else { continue };
            let status = budget.check(*key, &self.objects, now);
            let status = with_counts(&object.status, &status);
            if status != object.status {
                let mut object = object.as_ref().clone();
                object.status = status;
                self.put(object.into());
            }
        }
    }
}

/// The status with other counts.
fn with_counts(
    status: &PodDisruptionBudgetStatus,
    counts: &BudgetCounts,
) -> PodDisruptionBudgetStatus {
    PodDisruptionBudgetStatus {
        disruptions_allowed: counts.allowed,
        current_healthy: counts.healthy,
        desired_healthy: counts.needed,
        expected_pods: counts.expected,
        disrupted_pods: BTreeMap::new(),
        ..status.clone()
    }
}

/// The numbers of a budget's status.
struct BudgetCounts {
    expected: i32,
    needed: i32,
    healthy: i32,
    allowed: i32,
}

impl Budget {
    /// A budget that covers no pods yet; `None` if its selector is invalid.
    fn new(object: &PodDisruptionBudget) -> Option<Budget> {
        Some(Budget {
            spec: object.spec.clone(),
            selector: Selector::new(object.spec.selector.as_ref()).ok()?,
            pods: 0,
            running: 0,
            controllers: BTreeMap::new(),
            unhealthy: 0,
            needed_otherwise: 0,
            healthy_at_first: 0,
            violation: None,
        })
    }

    /// Takes over what the status says about the pods that are covered now.
    fn begin(&mut self, status: &PodDisruptionBudgetStatus) {
        let is_known = status.current_healthy > 0 || status.observed_generation > 0;
        if is_known {
            self.unhealthy = (self.running - status.current_healthy).max(0);
        }
        self.healthy_at_first = self.running - self.unhealthy;
        self.needed_otherwise = self.healthy_at_first - status.disruptions_allowed;
    }

    fn count_if_near(&mut self, pod: &Pod, key: NamespacedName) {
        if pod.metadata.namespace == key.namespace {
            self.count(pod, 1);
        }
    }

    /// Adds or removes a pod of the budget's namespace. `false` if it does not cover the pod.
    fn count(&mut self, pod: &Pod, by: i32) -> bool {
        if pod.is_terminal() || !self.selector.matches(&pod.metadata.labels) {
            return false;
        }
        self.pods += by;
        self.running += if runs(pod) { by } else { 0 };
        if let Some(owner) = pod.metadata.controller() {
            let namespace = pod.metadata.namespace;
            let controller = self.controllers.entry(owner.uid).or_insert_with(|| Controller {
                owner: owner.clone(),
                namespace,
                pods: 0,
                most: 0,
            });
            controller.pods += by;
            controller.most = controller.most.max(controller.pods);
        }
        true
    }

    /// The numbers of the status. Remembers if there are too few healthy pods.
    fn check(&mut self, key: NamespacedName, objects: &Objects, now: Time) -> BudgetCounts {
        let (expected, needed) = self.expected(objects);
        let healthy = (self.running - self.unhealthy).max(0);
        let allowed = if expected <= 0 { 0 } else { (healthy - needed).max(0) };
        let is_violated = healthy < needed && healthy < self.healthy_at_first;
        if is_violated && self.violation.is_none() {
            self.violation =
                Some(BudgetViolation { budget: key, needed, lowest: healthy, healthy, since: now });
        }
        if let Some(violation) = &mut self.violation {
            (violation.lowest, violation.healthy) = (violation.lowest.min(healthy), healthy);
        }
        BudgetCounts { expected, needed, healthy, allowed }
    }

    /// How many pods the controllers of its pods should have. The ReplicaSets of a Deployment count
    /// as one.
    fn scale(&self, objects: &Objects) -> i32 {
        let mut deployments = BTreeMap::new();
        let mut scale = 0;
        for controller in self.controllers.values() {
            match controller.deployment(objects) {
                Some((uid, replicas)) => drop(deployments.insert(uid, replicas)),
                None => scale += controller.scale(objects),
            }
        }
        scale + deployments.values().sum::<i32>()
    }

    /// How many pods there should be, and how many of them healthy.
    fn expected(&self, objects: &Objects) -> (i32, i32) {
        let scale = || self.scale(objects);
        match (self.spec.max_unavailable, self.spec.min_available) {
            (Some(most), _) => {
                let scale = scale();
                (scale, (scale - scaled(most, scale)).max(0))
            }
            (None, Some(IntOrString::Int(least))) => (self.pods, least),
            (None, Some(least)) => {
                let scale = scale();
                (scale, scaled(least, scale))
            }
            (None, None) => (self.pods, self.needed_otherwise),
        }
    }
}

impl Controller {
    /// The Deployment of a ReplicaSet, by its UID, and how many pods it should have.
    fn deployment(&self, objects: &Objects) -> Option<(Uid, i32)> {
        let key = NamespacedName::new(self.namespace, self.owner.name);
        let set = objects.replica_sets.get(&key).filter(|_| self.owner.kind == "ReplicaSet")?;
        let replicas = set.metadata.annotations.get_str(DESIRED_REPLICAS)?.parse().ok()?;
        Some((set.metadata.controller()?.uid, replicas))
    }

    /// How many pods the controller should have: as its object says, else as many as it had.
    fn scale(&self, objects: &Objects) -> i32 {
        let key = NamespacedName::new(self.namespace, self.owner.name);
        let replicas = match self.owner.kind.as_str() {
            "ReplicaSet" => objects.replica_sets.get(&key).and_then(|set| set.spec.replicas),
            "StatefulSet" => objects.stateful_sets.get(&key).and_then(|set| set.spec.replicas),
            "ReplicationController" => {
                let found = objects.replication_controllers.get(&key);
                found.and_then(|controller| controller.spec.replicas)
            }
            _ => None,
        };
        replicas.unwrap_or(self.most)
    }
}

/// The number, or that share of `of`, rounded up.
pub(crate) fn scaled(number: IntOrString, of: i32) -> i32 {
    match number {
        IntOrString::Int(number) => number,
        IntOrString::Text(text) => {
            let percent: i64 = text.trim_end_matches('%').parse().unwrap_or(0);
            let share = (percent * i64::from(of)).div_euclid(100);
            let rest = (percent * i64::from(of)).rem_euclid(100);
            i32::try_from(share + i64::from(rest > 0)).unwrap_or(i32::MAX)
        }
    }
}

fn budget_key(budget: &PodDisruptionBudget) -> NamespacedName {
    NamespacedName::new(budget.metadata.namespace, budget.metadata.name)
}

fn in_namespace_mut(
    budgets: &mut BTreeMap<NamespacedName, Budget>,
    namespace: Symbol,
) -> impl Iterator<Item = (&NamespacedName, &mut Budget)> {
    let near = budgets.range_mut(NamespacedName::new(namespace, Name::EMPTY)..);
    near.take_while(move |(key, _)| key.namespace == namespace)
}
