//! The members of each pod group and their scheduling state (alpha, gate GenericWorkload).
//!
//! Upstream: `pkg/scheduler/backend/cache/podgroupstate.go`.

pub mod policy;

use std::collections::BTreeMap;
use std::sync::Arc;

use indexmap::IndexMap;

use crate::pod::{NamespacedName, PodInfo};
pub use crate::snapshot::Placement;
use kubestep_api::{Duration, Name, Pod, Time, Uid};
use kubestep_config::FeatureGates;
use kubestep_config::versions::Switch;

/// A placement with the nodes that were found for pods of the group in it (alpha, gate
/// TopologyAwareWorkloadScheduling).
#[derive(Clone, Debug)]
pub struct Proposal<'a> {
    /// The nodes among which the pods were tried.
    pub placement: &'a Placement,
    /// The pods for which a node was found, with their nodes.
    pub assignments: Vec<(Arc<PodInfo>, Name)>,
}

/// The scheduling state of a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum MemberState {
    Unscheduled,
    Assumed,
    Assigned,
}

/// A pod of a group.
#[derive(Clone, PartialEq, Debug)]
struct Member {
    pod: NamespacedName,
    /// Whether the object has a node.
    bound: bool,
    place: MemberState,
    /// The node that it is bound to or assumed on.
    node: Name,
}

impl Member {
    fn new(pod: &Pod) -> Member {
        let bound = !pod.spec.node_name.is_empty();
        let place = if bound { MemberState::Assigned } else { MemberState::Unscheduled };
        let node = pod.spec.node_name;
        let pod = NamespacedName::new(pod.metadata.namespace, pod.metadata.name);
        Member { pod, bound, place, node }
    }
}

/// The pods of one group, by UID, in order of arrival.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct PodGroupState {
    members: IndexMap<Uid, Member>,
    /// When the pods that wait at Permit are rejected, up to 1.35.
    deadline: Option<Time>,
}

impl PodGroupState {
    /// Number of pods in any state.
    pub fn all(&self) -> usize {
        self.members.len()
    }

    /// Number of pods that are assumed or bound.
    pub fn scheduled(&self) -> usize {
        self.members.values().filter(|member| member.place != MemberState::Unscheduled).count()
    }

    /// The pods that are assumed or bound, with their nodes.
    pub fn scheduled_on(&self) -> impl Iterator<Item = (NamespacedName, Name)> {
        let scheduled =
            self.members.values().filter(|member| member.place != MemberState::Unscheduled);
        scheduled.map(|member| (member.pod, member.node))
    }

    /// The pods that are neither assumed nor bound.
    pub fn unscheduled(&self) -> impl Iterator<Item = NamespacedName> {
        self.in_place(MemberState::Unscheduled).map(|(_, member)| member.pod)
    }

    /// The UIDs of the pods that are assumed.
    pub fn assumed(&self) -> impl Iterator<Item = Uid> {
        self.in_place(MemberState::Assumed).map(|(uid, _)| *uid)
    }

    fn in_place(&self, place: MemberState) -> impl Iterator<Item = (&Uid, &Member)> {
        self.members.iter().filter(move |(_, member)| member.place == place)
    }
}

/// The group that a pod names, in the API of the version. Up to 1.35 it is `WORKLOAD/GROUP`, or
/// `WORKLOAD/GROUP/REPLICA`; none of these names contains a slash.
pub fn group_of(pod: &Pod, features: &FeatureGates) -> Option<NamespacedName> {
    if features.has(Switch::PodGroupCycles) {
        return pod_group_of(pod);
    }
    let reference = pod.spec.workload_ref.as_ref()?;
    let mut name = format!("{}/{}", reference.name, reference.pod_group);
    if !reference.pod_group_replica_key.is_empty() {
        name = format!("{name}/{}", reference.pod_group_replica_key);
    }
    Some(NamespacedName::new(pod.metadata.namespace, Name::new(&name)))
}

/// The PodGroup that a pod names.
pub fn pod_group_of(pod: &Pod) -> Option<NamespacedName> {
    let group = pod.spec.scheduling_group.as_ref()?;
    Some(NamespacedName::new(pod.metadata.namespace, group.pod_group_name.unwrap_or_default()))
}

/// A pod group has no pods.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("pod group state not found for pod group {0}")]
pub struct UnknownPodGroup(pub NamespacedName);

/// All groups that have pods. Pods that were not added are ignored.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct PodGroups {
    groups: BTreeMap<NamespacedName, PodGroupState>,
    /// The group of each pod, by its UID.
    group_of: BTreeMap<Uid, NamespacedName>,
}

impl PodGroups {
    /// The group of that name.
    ///
    /// # Errors
    /// It has no pods.
    pub fn get(&self, group: NamespacedName) -> Result<&PodGroupState, UnknownPodGroup> {
        self.groups.get(&group).ok_or(UnknownPodGroup(group))
    }

    /// Adds a pod to its group, or replaces its state.
    pub fn add(&mut self, group: NamespacedName, pod: &Pod) {
        let members = &mut self.groups.entry(group).or_default().members;
        members.insert(pod.metadata.uid, Member::new(pod));
        self.group_of.insert(pod.metadata.uid, group);
    }

    /// Updates an unscheduled pod.
    pub fn update(&mut self, pod: &Pod) {
        let Some(member) = self.member(pod) else { return };
        let bound = !pod.spec.node_name.is_empty();
        if bound && !member.bound {
            member.place = MemberState::Assigned;
            member.node = pod.spec.node_name;
        }
        member.bound = bound;
    }

    /// Removes a deleted pod, and the group if it was the last one.
    pub fn remove(&mut self, pod: &Pod) {
        let Some(group) = self.group_of.remove(&pod.metadata.uid) else { return };
        let Some(state) = self.groups.get_mut(&group) else { return };
        state.members.shift_remove(&pod.metadata.uid);
        if state.members.is_empty() {
            self.groups.remove(&group);
        }
    }

    /// Marks the pod as assumed.
    pub fn assume(&mut self, pod: &Pod) {
        if let Some(member) = self.member(pod) {
            member.place = if member.bound { MemberState::Assigned } else { MemberState::Assumed };
            member.node = pod.spec.node_name;
        }
    }

    /// Undoes [`PodGroups::assume`]: the pod counts as unscheduled again unless it is bound.
    pub fn forget(&mut self, pod: &Pod) {
        if let Some(member) = self.member(pod) {
            member.place =
                if member.bound { MemberState::Assigned } else { MemberState::Unscheduled };
        }
    }

    /// How long a pod that comes to Permit now waits there, up to 1.35: until the deadline of its
    /// group, which is `timeout` after the first pod came.
    pub fn time_at_permit(
        &mut self,
        group: NamespacedName,
        timeout: Duration,
        now: Time,
    ) -> Duration {
        let Some(state) = self.groups.get_mut(&group) else { return timeout };
        let deadline = state.deadline.filter(|deadline| *deadline >= now);
        let deadline = deadline.unwrap_or(now + timeout);
        state.deadline = Some(deadline);
        deadline - now
    }

    fn member(&mut self, pod: &Pod) -> Option<&mut Member> {
        let group = self.group_of.get(&pod.metadata.uid)?;
        self.groups.get_mut(group)?.members.get_mut(&pod.metadata.uid)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{PodBuilder, key, pod};
    use kubestep_config::KubeVersion;

    fn member(name: &str) -> Pod {
        pod(name).spec(json!({"schedulingGroup": {"podGroupName": "g"}}))
    }

    #[test]
    fn a_pod_goes_from_unscheduled_to_assumed_to_assigned_and_back() {
        let (a, b) = (member("a"), member("b"));
        let mut groups = PodGroups::default();
        groups.add(key("g"), &a);
        groups.add(key("g"), &b);
        groups.assume(&a);
        let state = groups.get(key("g")).unwrap();
        assert_eq!((state.all(), state.scheduled()), (2, 1));
        assert_eq!(state.unscheduled().collect::<Vec<_>>(), [key("b")]);
        assert_eq!(state.assumed().collect::<Vec<_>>(), [a.metadata.uid]);
        groups.forget(&a);
        assert_eq!(groups.get(key("g")).unwrap().scheduled(), 0);
        groups.assume(&b.clone().on("n2"));
        let nodes: Vec<_> = groups.get(key("g")).unwrap().scheduled_on().collect();
        assert_eq!(nodes, [(key("b"), "n2".into())]);
        groups.forget(&b);
        groups.add(key("g"), &a.clone().on("n1"));
        groups.forget(&a);
        assert_eq!(groups.get(key("g")).unwrap().scheduled(), 1, "bound, so not to be forgotten");
    }

    #[test]
    fn a_pod_names_its_group_in_the_api_of_its_version() {
        let reference = json!({"name": "w", "podGroup": "g", "podGroupReplicaKey": "1"});
        let both = json!({"schedulingGroup": {"podGroupName": "g"}, "workloadRef": reference});
        let group = |minor| {
            let version = KubeVersion::of_minor(minor).unwrap();
            group_of(&pod("a").spec(both.clone()), &FeatureGates::of(version))
        };
        let of_workload = |name: &str| NamespacedName::new("default".into(), name.into());
        assert_eq!((group(35), group(36)), (Some(of_workload("w/g/1")), Some(key("g"))));
        let reference = json!({"name": "w", "podGroup": "g"});
        let without = pod("a").spec(json!({"workloadRef": reference}));
        let gates = FeatureGates::of(KubeVersion::of_minor(35).unwrap());
        assert_eq!(group_of(&without, &gates), Some(of_workload("w/g")));
        assert_eq!(group_of(&pod("a"), &gates), None);
    }

    /// Upstream's podGroupInfo.SchedulingTimeout: all pods of an attempt have one deadline.
    #[test]
    fn the_pods_of_a_workload_wait_for_one_deadline() {
        let mut groups = PodGroups::default();
        groups.add(key("g"), &member("a"));
        let mut left = |second| {
            let now = Time(0) + Duration::from_secs(second);
            groups.time_at_permit(key("g"), Duration::from_secs(300), now)
        };
        let left = [left(0), left(100), left(300), left(301)];
        assert_eq!(left, [300, 200, 0, 300].map(Duration::from_secs));
    }

    #[test]
    fn a_group_lasts_as_long_as_its_pods() {
        let mut groups = PodGroups::default();
        groups.add(key("g"), &member("a"));
        groups.remove(&member("a"));
        let missing = groups.get(key("g")).unwrap_err().to_string();
        assert_eq!(missing, "pod group state not found for pod group default/g");
        groups.update(&member("a"));
        assert!(groups.get(key("g")).is_err());
    }
}
