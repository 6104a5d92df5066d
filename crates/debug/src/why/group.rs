//! A pod group that cannot be scheduled: its pods are placed only if enough of them fit together,
//! so the status of a node for one pod alone does not explain the rejection.
//!
//! A group is a PodGroup of Kubernetes, or what a plugin places together ([`JointPods`]).

use super::model::{PodProblem, ProblemKind};
use crate::message::brief;
use kubestep_api::words::count;
use kubestep_api::{Kind, Name, ObjectKey, Pod};
use kubestep_cluster::World;
use kubestep_config::Feature;
use kubestep_config::versions::Switch;
use kubestep_framework::plugin::JointPods;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::pod_groups::pod_group_of;
use kubestep_framework::record::{CycleRecord, Outcome};
use kubestep_scheduler::what_if;

/// The field of a PodGroup with the number of pods that must be placed together.
const SIZE: &str = "spec.schedulingPolicy.gang.minCount";

/// The field of a group with the number of pods that must be placed together.
#[derive(Clone, Copy)]
pub(crate) struct GroupSize {
    /// Kind, namespace and name of the group.
    pub group: ObjectKey,
    /// The path of the field.
    pub field: &'static str,
}

impl GroupSize {
    /// That of the pod's group.
    pub fn of(world: &World, pod: &Pod) -> Option<GroupSize> {
        let native = pod_group_of(pod).map(GroupSize::of_pod_group);
        native.or_else(|| joint_pods(world, pod).map(|joint| GroupSize::of_joint(&joint)))
    }

    fn of_pod_group(group: NamespacedName) -> GroupSize {
        let NamespacedName { namespace, name } = group;
        GroupSize { group: ObjectKey { kind: Kind::PodGroup, namespace, name }, field: SIZE }
    }

    fn of_joint(joint: &JointPods) -> GroupSize {
        GroupSize { group: joint.group, field: joint.size_field }
    }

    /// The name of the field, without its path.
    fn name(self) -> &'static str {
        self.field.rsplit('.').next().unwrap_or(self.field)
    }
}

/// The pods that a plugin places together with this one or not at all.
pub(crate) fn joint_pods(world: &World, pod: &Pod) -> Option<JointPods> {
    what_if::joint_pods(world.scheduler(), pod, world.now())
}

/// The cluster when the plugin that places the pod's group no longer rejects it for a failure of
/// before. `None` if it does not.
pub(crate) fn after_rejection(world: &World, pod: &Pod) -> Option<World> {
    let end = joint_pods(world, pod)?.rejected_until?;
    let mut later = world.clone();
    later.advance(end.0 - world.now().0 + 1);
    Some(later)
}

/// The problem that a plugin's group has too few pods.
pub(crate) fn incomplete(world: &World, pod: &Pod) -> Option<PodProblem> {
    let joint = joint_pods(world, pod)?;
    let there = joint.placed + joint.pending.len();
    let missing = joint.needed.checked_sub(there).filter(|missing| *missing > 0)?;
    let (size, ObjectKey { namespace, name, .. }) = (GroupSize::of_joint(&joint), joint.group);
    let needed = joint.needed;
    Some(PodProblem {
        kind: ProblemKind::Quorum,
        blocking: true,
        text: format!("its pod group {namespace}/{name} has {there} of the {needed} pods it needs"),
        advice: format!(
            "create {} of the group, or lower its {}",
            count(missing, "more pod"),
            size.name()
        ),
    })
}

/// The result of scheduling the group in a copy of the cluster.
pub(crate) struct GroupSimulation {
    /// The group, and where its size is.
    pub size: GroupSize,
    /// The number of pods that must be placed together.
    pub needed: usize,
    /// The number of pods that have a node, or found one in the copy.
    pub found: usize,
    /// A node that one of them found.
    pub node: Option<Name>,
    /// A pod that found none, and its message.
    pub rejected: Option<(NamespacedName, String)>,
}

impl GroupSimulation {
    /// Schedules the group of a pod in a copy. `None` if the pod has no group, the group is not
    /// scheduled at all or, up to 1.35, pod by pod, or it gets its nodes.
    pub fn in_vain(world: &World, pod: &Pod) -> Option<GroupSimulation> {
        GroupSimulation::in_one_cycle(world, pod).or_else(|| GroupSimulation::by_plugin(world, pod))
    }

    /// That of a PodGroup, which one cycle schedules.
    fn in_one_cycle(world: &World, pod: &Pod) -> Option<GroupSimulation> {
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
        let rejected = records.iter().find(|record| record.feasible.is_empty());
        Some(GroupSimulation {
            size: GroupSize::of_pod_group(group),
            needed: usize::try_from(needed).unwrap_or(0),
            found: before + finders().count(),
            node: finders().find_map(|record| found(record)),
            rejected: rejected.map(|record| (record.pod, record.message.clone())),
        })
    }

    /// That of a plugin's group that is complete, pod by pod until one finds no node.
    fn by_plugin(world: &World, pod: &Pod) -> Option<GroupSimulation> {
        joint_pods(world, pod)?;
        let mut copy = after_rejection(world, pod).unwrap_or_else(|| world.clone());
        let joint = joint_pods(&copy, pod)?;
        if joint.placed + joint.pending.len() < joint.needed {
            return None;
        }
        let mut tried = GroupSimulation {
            size: GroupSize::of_joint(&joint),
            needed: joint.needed,
            found: joint.placed,
            node: None,
            rejected: None,
        };
        let key = NamespacedName::new(pod.metadata.namespace, pod.metadata.name);
        let others = joint.pending.into_iter().filter(|other| *other != key);
        for pod in std::iter::once(key).chain(others) {
            let Some(record) = copy.step_ahead(pod) else { continue };
            if record.preemption.is_some() {
                return None;
            }
            let Some(node) = found(&record) else {
                tried.rejected = Some((pod, record.message.clone()));
                break;
            };
            tried.node.get_or_insert(node);
            tried.found += 1;
        }
        (tried.found < tried.needed).then_some(tried)
    }

    /// The result as a problem of the pod.
    pub fn problem(self) -> PodProblem {
        let GroupSimulation { size, needed, found, .. } = self;
        let advice = match self.rejected {
            Some((pod, said)) => {
                let placed = if found > 0 { "with these placed, " } else { "" };
                format!("{placed}{pod} fits no node: {}", brief(&said))
            }
            None => {
                format!("free capacity for the other pods, or lower the group's {}", size.name())
            }
        };
        let ObjectKey { namespace, name, .. } = size.group;
        let text = format!(
            "its pod group {namespace}/{name} needs {needed} pods at once, and only {found} of them \
             fit"
        );
        PodProblem { kind: ProblemKind::Quorum, blocking: true, text, advice }
    }
}

/// A node that the cycle found.
fn found(record: &CycleRecord) -> Option<Name> {
    Some(record.nodes.name(*record.feasible.first()?))
}

fn is_placed(record: &CycleRecord) -> bool {
    matches!(record.outcome, Outcome::Scheduled | Outcome::Waiting)
}
