//! How the group of a pod is scheduled: the policy of its PodGroup or, up to 1.35, that of a pod
//! group in its Workload.

use std::fmt;

use super::group_of;
use crate::events::EventResource;
use crate::objects::Objects;
use crate::pod::NamespacedName;
use kubestep_api::intern::Symbol;
use kubestep_api::{Pod, PodGroupSchedulingPolicy};
use kubestep_config::versions::Switch;
use kubestep_config::{Feature, FeatureGates};

/// What a pod names and does not exist.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MissingGroup {
    /// The PodGroup of `spec.schedulingGroup`.
    PodGroup(NamespacedName),
    /// Its Workload, up to 1.35.
    Workload(NamespacedName),
    /// Its pod group in the Workload, up to 1.35.
    GroupOf {
        /// The Workload, which exists.
        workload: NamespacedName,
        /// The name that no pod group of the Workload has.
        group: Symbol,
    },
}

impl fmt::Display for MissingGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MissingGroup::PodGroup(group) => write!(f, "pod group {group}"),
            MissingGroup::Workload(workload) => write!(f, "workload {workload}"),
            MissingGroup::GroupOf { workload, group } => {
                write!(f, "pod group {group} of workload {workload}")
            }
        }
    }
}

/// The policy of the pod's group; `None` if the pod names no group.
pub fn policy_of<'a>(
    pod: &Pod,
    objects: &'a Objects,
    features: &FeatureGates,
) -> Option<Result<&'a PodGroupSchedulingPolicy, MissingGroup>> {
    let group = group_of(pod, features)?;
    if !features.has(Switch::PodGroupCycles) {
        return Some(policy_in_workload(pod, objects));
    }
    let object = objects.pod_groups.get(&group).ok_or(MissingGroup::PodGroup(group));
    Some(object.map(|object| &object.spec.scheduling_policy))
}

fn policy_in_workload<'a>(
    pod: &Pod,
    objects: &'a Objects,
) -> Result<&'a PodGroupSchedulingPolicy, MissingGroup> {
    let (name, group) = match &pod.spec.workload_ref {
        Some(reference) => (reference.name, reference.pod_group),
        None => Default::default(),
    };
    let key = NamespacedName::new(pod.metadata.namespace, name);
    let workload = objects.workloads.get(&key).ok_or(MissingGroup::Workload(key))?;
    let mut groups = workload.spec.pod_group_templates.iter();
    let found = groups.find(|template| template.name == group);
    let missing = MissingGroup::GroupOf { workload: key, group };
    found.map(|template| &template.scheduling_policy).ok_or(missing)
}

/// The `minCount` of a gang; `None` for groups with another policy.
pub fn min_count(policy: &PodGroupSchedulingPolicy) -> Option<usize> {
    let gang = policy.gang.as_ref()?;
    Some(usize::try_from(gang.min_count).unwrap_or(0))
}

/// The kind that the policies are in, as a resource of events; `None` if the scheduler does not
/// watch it, because GenericWorkload is off.
pub fn watched_resource(features: &FeatureGates) -> Option<EventResource> {
    let has_cycles = features.has(Switch::PodGroupCycles);
    let resource = if has_cycles { EventResource::PodGroup } else { EventResource::Workload };
    features.enabled(Feature::GenericWorkload).then_some(resource)
}
