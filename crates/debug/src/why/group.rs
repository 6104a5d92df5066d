//! A pod group that cannot be scheduled: its pods are placed only if enough of them fit together,
//! so the status of a node for one pod alone does not explain the rejection.

use super::model::{PodProblem, ProblemKind};
use crate::message::brief;
use kubestep_api::Pod;
use kubestep_api::intern::Symbol;
use kubestep_cluster::World;
use kubestep_config::Feature;
use kubestep_config::versions::Switch;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::pod_groups::pod_group_of;
use kubestep_framework::record::{CycleRecord, Outcome};

/// The result of scheduling the group in a copy of the cluster.
pub(crate) struct GroupSimulation {
    /// Namespace and name of the group.
    pub group: NamespacedName,
    /// The number of pods that must be placed together.
    pub needed: usize,
    /// The number of pods that have a node, or found one in the copy.
    pub found: usize,
    /// A node that one of them found.
    pub node: Option<Symbol>,
    /// A pod that found none, and its message.
    pub refused: Option<(NamespacedName, String)>,
}

impl GroupSimulation {
    /// Schedules the group of a pod in a copy. `None` if the pod has no group, the group is not
    /// scheduled at all or, up to 1.35, pod by pod, or it gets its nodes.
    pub fn in_vain(world: &World, pod: &Pod) -> Option<GroupSimulation> {
        let scheduler = world.scheduler();
        let features = scheduler.features();
        let has_cycle =
            features.enabled(Feature::GangScheduling) && features.has(Switch::PodGroupCycles);
        let group = pod_group_of(pod).filter(|_| has_cycle)?;
        let object = scheduler.objects().pod_groups.get(&group)?;
        let needed = object.spec.scheduling_policy.gang.as_ref()?.min_count;
        let before = scheduler.pod_group(group).map_or(0, |state| state.scheduled());
        let mut copy = world.clone();
        copy.scheduler_mut().take_finished();
        let key = NamespacedName::new(pod.metadata.namespace, pod.metadata.name);
        let first = copy.step_ahead(key)?;
        let others = copy.scheduler_mut().take_finished();
        let records: Vec<&CycleRecord> = std::iter::once(first.as_ref()).chain(&others).collect();
        if records.iter().any(|record| is_placed(record) || record.preemption.is_some()) {
            return None;
        }
        let finders = || records.iter().filter(|record| !record.feasible.is_empty());
        let refused = records.iter().find(|record| record.feasible.is_empty());
        Some(GroupSimulation {
            group,
            needed: usize::try_from(needed).unwrap_or(0),
            found: before + finders().count(),
            node: finders().find_map(|record| Some(record.nodes.name(*record.feasible.first()?))),
            refused: refused.map(|record| (record.pod, record.message.clone())),
        })
    }

    /// The result as a problem of the pod.
    pub fn problem(self) -> PodProblem {
        let GroupSimulation { group, needed, found, .. } = self;
        let advice = match self.refused {
            Some((pod, said)) => format!("{pod} fits no node: {}", brief(&said)),
            None => "free capacity for the other pods, or lower the group's minCount".to_owned(),
        };
        let text = format!(
            "its pod group {group} needs {needed} pods at once, and only {found} of them fit a node"
        );
        PodProblem { kind: ProblemKind::Quorum, blocking: true, text, advice }
    }
}

fn is_placed(record: &CycleRecord) -> bool {
    matches!(record.outcome, Outcome::Scheduled | Outcome::Waiting)
}
