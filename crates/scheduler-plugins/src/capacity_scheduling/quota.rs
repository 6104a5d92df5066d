//! The ElasticQuota of a namespace, and what its pods use.
//!
//! Upstream: `pkg/capacityscheduling/elasticquota.go`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use kubestep_framework::api::custom::{Custom, CustomKind, CustomKindInfo, KindNames};
use kubestep_framework::api::intern::Symbol;
use kubestep_framework::api::{Pod, ResourceList, Uid};
use kubestep_framework::resource::{Resource, amount};
use kubestep_framework::shared::PluginState;

pub(crate) const ELASTIC_QUOTAS: CustomKind = CustomKind::new(&INFO);

static INFO: CustomKindInfo = CustomKindInfo::of::<ElasticQuota>(
    KindNames {
        name: "ElasticQuota",
        plural: "elasticquotas",
        group: "scheduling.x-k8s.io",
        namespaced: true,
    },
    &["v1alpha1"],
    "elasticquotas.v1alpha1.scheduling.x-k8s.io",
    "CapacityScheduling",
    "no namespace has an elastic quota",
);

/// The guaranteed and the largest use of a namespace.
#[derive(Deserialize, Debug, Default)]
#[serde(default)]
pub struct ElasticQuota {
    /// What is guaranteed, and what may be borrowed.
    pub spec: ElasticQuotaSpec,
}

/// The amounts of a quota.
#[derive(Clone, Deserialize, Debug, Default)]
#[serde(default)]
pub struct ElasticQuotaSpec {
    /// What the namespace is guaranteed; nothing if absent.
    pub min: Option<ResourceList>,
    /// What it may use at most; no limit if absent. A resource that is not in the list has limit 0
    /// if it is CPU, memory or ephemeral storage, and none otherwise.
    pub max: Option<ResourceList>,
}

impl Custom for ElasticQuota {
    const KIND: CustomKind = ELASTIC_QUOTAS;
}

/// What a pod requests: the sum of its containers or the largest init container, and the overhead.
pub fn requested(pod: &Pod) -> Resource {
    let mut sum = Resource::default();
    let lists = pod.spec.containers.iter().filter_map(|it| it.resources.requests.as_ref());
    lists.for_each(|list| sum.add_list(list));
    for list in pod.spec.init_containers.iter().filter_map(|it| it.resources.requests.as_ref()) {
        raise(&mut sum, &Resource::from_list(list));
    }
    pod.spec.overhead.iter().for_each(|list| sum.add_list(list));
    sum
}

fn raise(sum: &mut Resource, other: &Resource) {
    sum.milli_cpu = sum.milli_cpu.max(other.milli_cpu);
    sum.memory = sum.memory.max(other.memory);
    sum.ephemeral_storage = sum.ephemeral_storage.max(other.ephemeral_storage);
    for (name, amount) in &other.scalars {
        sum.add_scalar(*name, (amount - sum.scalar(*name)).max(0));
    }
}

/// A quota with the pods that count in it.
#[derive(Clone, PartialEq, Debug)]
pub struct Quota {
    min: Resource,
    max: Resource,
    used: Resource,
    /// UIDs of the pods that count in `used`.
    pods: BTreeSet<Uid>,
}

/// A resource of which more is used, or would be, than is allowed.
#[derive(Clone, PartialEq, Debug)]
pub struct Excess {
    /// The name of the resource.
    pub name: &'static str,
    used: i64,
    requested: i64,
    limit: i64,
}

impl Excess {
    /// `cpu: 12 used + 4 requested > 14, 2 over`.
    pub fn describe(&self) -> String {
        let Excess { name, used, requested, limit } = *self;
        let amount = |it| amount::of(name, it);
        let requested = match requested {
            0 => String::new(),
            _ => format!(" + {} requested", amount(requested)),
        };
        let (used, limit, over) = (amount(used), amount(limit), self.over());
        format!("{name}: {used} used{requested} > {limit}, {over} over")
    }

    /// By how much it is more.
    pub fn over(&self) -> String {
        amount::of(self.name, self.wanted().saturating_sub(self.limit))
    }

    /// The limit that would be enough.
    pub fn enough(&self) -> String {
        amount::of(self.name, self.wanted())
    }

    fn wanted(&self) -> i64 {
        self.used.saturating_add(self.requested)
    }
}

/// The resources of which `used` and `requested` are more than `limit`; scalars only where
/// requested. A scalar that has no limit has `absent`.
fn excess(requested: &Resource, used: &Resource, limit: &Resource, absent: i64) -> Vec<Excess> {
    let fixed = ["cpu", "memory", "ephemeral-storage", "pods"];
    let fixed = fixed.map(|name| (name, limit.amount(name.into())));
    let scalars = requested.scalars.iter().map(|(name, _)| {
        let known = limit.scalars.iter().find(|(other, _)| other == name);
        (name.as_str(), known.map_or(absent, |(_, amount)| *amount))
    });
    let judge = |(name, limit): (&'static str, i64)| {
        let (used, requested) = (used.amount(name.into()), requested.amount(name.into()));
        let exceeds = requested.saturating_add(used) > limit;
        exceeds.then_some(Excess { name, used, requested, limit })
    };
    fixed.into_iter().chain(scalars).filter_map(judge).collect()
}

impl Quota {
    /// A quota in which no pod counts yet.
    pub fn new(spec: &ElasticQuotaSpec) -> Quota {
        let unlimited = Resource {
            milli_cpu: i64::MAX,
            memory: i64::MAX,
            ephemeral_storage: i64::MAX,
            ..Resource::default()
        };
        Quota {
            min: spec.min.as_ref().map(Resource::from_list).unwrap_or_default(),
            max: spec.max.as_ref().map_or(unlimited, Resource::from_list),
            used: Resource::default(),
            pods: BTreeSet::new(),
        }
    }

    /// The same pods under other limits.
    pub fn change(&mut self, spec: &ElasticQuotaSpec) {
        let Quota { min, max, .. } = Quota::new(spec);
        (self.min, self.max) = (min, max);
    }

    /// What would be over max with `request`.
    pub(crate) fn over_max(&self, request: &Resource) -> Vec<Excess> {
        excess(request, &self.used, &self.max, i64::MAX)
    }

    /// The resources of which more than min would be used with `request`.
    pub(crate) fn over_min_with(&self, request: &Resource) -> Vec<Excess> {
        excess(request, &self.used, &self.min, 0)
    }

    /// The resources of which more than min is used.
    pub(crate) fn over_min(&self) -> Vec<Excess> {
        // `excess` compares only requested scalars; all that are used count here.
        let over = excess(&self.used, &Resource::default(), &self.min, 0).into_iter();
        over.map(|excess| Excess { used: excess.requested, requested: 0, ..excess }).collect()
    }

    /// Whether more than min is used.
    pub(crate) fn is_over_min(&self) -> bool {
        !self.over_min().is_empty()
    }

    /// What is used of min, for the resources of `request`: `cpu: 1 used + 3 requested of 4`.
    pub(crate) fn describe_min(&self, request: &Resource) -> String {
        let fixed = ["cpu", "memory", "ephemeral-storage"].into_iter().map(Symbol::new);
        let names = fixed.chain(request.scalars.iter().map(|(name, _)| *name));
        let of = |name: Symbol| {
            let amounts = [&self.used, request, &self.min].map(|it| it.amount(name));
            let [used, requested, min] = amounts.map(|it| amount::of(&name, it));
            (amounts[1] > 0)
                .then(|| format!("{name}: {used} used + {requested} requested of {min}"))
        };
        names.filter_map(of).collect::<Vec<_>>().join("; ")
    }

    /// Whether the pod of that UID counts.
    pub(crate) fn counts(&self, uid: Uid) -> bool {
        self.pods.contains(&uid)
    }

    /// Counts a pod, unless it does already.
    fn add(&mut self, pod: &Pod) {
        if self.pods.insert(pod.metadata.uid) {
            self.used.accumulate(&requested(pod), 1);
        }
    }

    fn remove(&mut self, pod: &Pod) {
        if self.pods.remove(&pod.metadata.uid) {
            self.used.accumulate(&requested(pod), -1);
        }
    }
}

/// The quotas by namespace.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Quotas(pub BTreeMap<Symbol, Quota>);

impl PluginState for Quotas {}

impl Quotas {
    /// The quota of a namespace.
    pub fn of(&self, namespace: Symbol) -> Option<&Quota> {
        self.0.get(&namespace)
    }

    /// Counts a pod in the quota of its namespace.
    pub fn add(&mut self, pod: &Pod) {
        if let Some(quota) = self.0.get_mut(&pod.metadata.namespace) {
            quota.add(pod);
        }
    }

    /// No longer counts a pod.
    pub fn remove(&mut self, pod: &Pod) {
        if let Some(quota) = self.0.get_mut(&pod.metadata.namespace) {
            quota.remove(pod);
        }
    }

    /// What all quotas together would use over the sum of their min with `request`.
    pub(crate) fn over_total_min(&self, request: &Resource) -> Vec<Excess> {
        let (mut used, mut min) = (Resource::default(), Resource::default());
        for quota in self.0.values() {
            used.accumulate(&quota.used, 1);
            min.accumulate(&quota.min, 1);
            min.allowed_pods += quota.min.allowed_pods;
        }
        // Also what only other pods use counts.
        let mut request = request.clone();
        used.scalars.iter().for_each(|(name, _)| request.add_scalar(*name, 0));
        excess(&request, &used, &min, 0)
    }
}
