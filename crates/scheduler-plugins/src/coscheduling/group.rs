//! The PodGroup of scheduling.x-k8s.io, and the check of its `minResources`.
//!
//! Upstream: `apis/scheduling/v1alpha1/types.go`, `CheckClusterResource` in
//! `pkg/coscheduling/core/core.go`.

use std::collections::BTreeMap;

use serde::Deserialize;

use kubestep_framework::api::custom::{Custom, CustomKind, CustomKindInfo, KindNames};
use kubestep_framework::api::intern::Symbol;
use kubestep_framework::api::{Pod, Quantity, QuantityFormat, ResourceList};
use kubestep_framework::node::NodeInfo;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::resource::{Resource, amount, is_scalar_name};
use kubestep_framework::snapshot::Snapshot;

/// The label of a pod that names its group.
const GROUP_LABEL: &str = "scheduling.x-k8s.io/pod-group";

pub(crate) const PODGROUPS: CustomKind = CustomKind::new(&INFO);

static INFO: CustomKindInfo = CustomKindInfo::of::<PodGroup>(
    KindNames {
        name: "PodGroup",
        plural: "podgroups",
        group: "scheduling.x-k8s.io",
        namespaced: true,
    },
    &["v1alpha1"],
    "podgroups.v1alpha1.scheduling.x-k8s.io",
    "Coscheduling",
    "pods of pod groups are rejected at Permit",
);

/// Pods that are scheduled together.
#[derive(Deserialize, Debug, Default)]
#[serde(default)]
pub struct PodGroup {
    /// What the user wants.
    pub spec: PodGroupSpec,
}

/// What the user wants of a group.
#[derive(Deserialize, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct PodGroupSpec {
    /// The number of pods that must have a node before any is bound.
    pub min_member: Option<i32>,
    /// What must be free in the whole cluster before a pod of the group is tried.
    pub min_resources: Option<ResourceList>,
    /// How long a pod waits in Permit.
    pub schedule_timeout_seconds: Option<i32>,
}

impl Custom for PodGroup {
    const KIND: CustomKind = PODGROUPS;
}

impl PodGroup {
    /// The number of pods that must have a node before any is bound.
    pub(crate) fn min_member(&self) -> i32 {
        self.spec.min_member.unwrap_or(0)
    }
}

/// The group that the pod's label names.
pub fn group_of(pod: &Pod) -> Option<NamespacedName> {
    let name = *pod.metadata.labels.get_str(GROUP_LABEL).filter(|name| !name.is_empty())?;
    Some(NamespacedName::new(pod.metadata.namespace, name))
}

/// The amounts of `minResources` that are not free.
pub struct MissingResources(BTreeMap<&'static str, Quantity>);

impl MissingResources {
    /// `2 CPU, 4Gi memory`.
    pub fn describe(&self) -> String {
        let amount = |(name, missing): (&&'static str, &Quantity)| {
            let units = if *name == "cpu" { missing.milli_value() } else { missing.value() };
            format!("{} {name}", amount::of(name, units))
        };
        self.0.iter().map(amount).collect::<Vec<_>>().join(", ")
    }

    /// As Go prints a map of quantities.
    pub(crate) fn as_go(&self) -> String {
        let entry =
            |(name, missing): (&&str, &Quantity)| format!("{name}:{}", missing.as_go_struct());
        format!("map[{}]", self.0.iter().map(entry).collect::<Vec<_>>().join(" "))
    }
}

/// `None`: the group has no `minResources`. `Some(None)`: all nodes together have them free, apart
/// from what the group's own pods use.
pub(crate) fn missing_resources(
    snapshot: &Snapshot,
    group: &PodGroup,
    key: NamespacedName,
) -> Option<Option<MissingResources>> {
    let mut wanted = group.spec.min_resources.clone()?;
    let members = Quantity::new(i64::from(group.min_member()), QuantityFormat::DecimalSi);
    wanted.insert(Symbol::new("pods"), members);
    let mut missing: BTreeMap<_, _> =
        wanted.iter().map(|(name, quantity)| (name.as_str(), quantity.clone())).collect();
    for node in snapshot.iter() {
        let free = free_without(node, key);
        missing.retain(|name, quantity| {
            quantity.sub(&counted(&free, name));
            quantity.sign().is_gt()
        });
        if missing.is_empty() {
            return Some(None);
        }
    }
    Some(Some(MissingResources(missing)))
}

fn counted(free: &Resource, name: &str) -> Quantity {
    let amount = free.amount(name.into());
    match name {
        "cpu" => Quantity::new_milli(amount, QuantityFormat::DecimalSi),
        "memory" | "ephemeral-storage" | "pods" => Quantity::new(amount, QuantityFormat::BinarySi),
        _ if is_scalar_name(name) => Quantity::new(amount, QuantityFormat::DecimalSi),
        _ => Quantity::default(),
    }
}

/// What is free on a node without the pods of the group.
fn free_without(node: &NodeInfo, group: NamespacedName) -> Resource {
    let mut free = node.allocatable.clone();
    free.accumulate(&node.requested, -1);
    free.allowed_pods -= node.pods.len() as i64;
    for pod in node.pods.iter().filter(|pod| group_of(&pod.pod) == Some(group)) {
        free.accumulate(&pod.resource.resource, 1);
        free.allowed_pods += 1;
    }
    free
}
