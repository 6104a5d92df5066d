//! The members of each pod group and their scheduling state (alpha, gate GenericWorkload).
//!
//! Upstream: `pkg/scheduler/backend/cache/podgroupstate.go`.

pub mod placement;

use std::collections::BTreeMap;

use indexmap::IndexMap;

use crate::pod::NamespacedName;
use kubestep_api::Pod;
use kubestep_api::intern::Symbol;

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
    node: Symbol,
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
    members: IndexMap<Symbol, Member>,
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
    pub fn scheduled_on(&self) -> impl Iterator<Item = (NamespacedName, Symbol)> {
        let scheduled =
            self.members.values().filter(|member| member.place != MemberState::Unscheduled);
        scheduled.map(|member| (member.pod, member.node))
    }

    /// The pods that are neither assumed nor bound.
    pub fn unscheduled(&self) -> impl Iterator<Item = NamespacedName> {
        self.in_place(MemberState::Unscheduled).map(|(_, member)| member.pod)
    }

    /// The UIDs of the pods that are assumed.
    pub fn assumed(&self) -> impl Iterator<Item = Symbol> {
        self.in_place(MemberState::Assumed).map(|(uid, _)| *uid)
    }

    fn in_place(&self, place: MemberState) -> impl Iterator<Item = (&Symbol, &Member)> {
        self.members.iter().filter(move |(_, member)| member.place == place)
    }
}

/// The group that a pod names.
pub fn group_of(pod: &Pod) -> Option<NamespacedName> {
    let group = pod.spec.scheduling_group.as_ref()?;
    Some(NamespacedName::new(pod.metadata.namespace, group.pod_group_name.unwrap_or_default()))
}

/// A pod group has no pods.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("pod group state not found for pod group {0}")]
pub struct UnknownPodGroup(pub NamespacedName);

/// All groups that have pods. Pods without a group are ignored.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct PodGroups {
    groups: BTreeMap<NamespacedName, PodGroupState>,
}

impl PodGroups {
    /// The group of that name.
    ///
    /// # Errors
    /// It has no pods.
    pub fn get(&self, group: NamespacedName) -> Result<&PodGroupState, UnknownPodGroup> {
        self.groups.get(&group).ok_or(UnknownPodGroup(group))
    }

    /// Adds a pod, or replaces its state.
    pub fn add(&mut self, pod: &Pod) {
        let Some(group) = group_of(pod) else { return };
        let members = &mut self.groups.entry(group).or_default().members;
        members.insert(pod.metadata.uid, Member::new(pod));
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
        let Some(group) = group_of(pod) else { return };
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

    /// Undoes [`PodGroups::assume`].
    pub fn forget(&mut self, pod: &Pod) {
        if let Some(member) = self.member(pod) {
            member.place =
                if member.bound { MemberState::Assigned } else { MemberState::Unscheduled };
        }
    }

    fn member(&mut self, pod: &Pod) -> Option<&mut Member> {
        self.groups.get_mut(&group_of(pod)?)?.members.get_mut(&pod.metadata.uid)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{PodBuilder, key, pod};

    fn member(name: &str) -> Pod {
        pod(name).spec(json!({"schedulingGroup": {"podGroupName": "g"}}))
    }

    #[test]
    fn a_pod_goes_from_unscheduled_to_assumed_to_assigned_and_back() {
        let (a, b) = (member("a"), member("b"));
        let mut groups = PodGroups::default();
        groups.add(&a);
        groups.add(&b);
        groups.add(&pod("alone"));
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
        groups.add(&a.clone().on("n1"));
        groups.forget(&a);
        assert_eq!(groups.get(key("g")).unwrap().scheduled(), 1, "bound, so not to be forgotten");
    }

    #[test]
    fn a_group_lasts_as_long_as_its_pods() {
        let mut groups = PodGroups::default();
        groups.add(&member("a"));
        groups.remove(&member("a"));
        let missing = groups.get(key("g")).unwrap_err().to_string();
        assert_eq!(missing, "pod group state not found for pod group default/g");
        groups.update(&member("a"));
        assert!(groups.get(key("g")).is_err());
    }
}
