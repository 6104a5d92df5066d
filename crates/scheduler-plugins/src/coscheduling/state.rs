//! What Coscheduling keeps between cycles: the pods of each group, and when groups were permitted,
//! failed or went into backoff.
//!
//! Upstream: `PodGroupManager` in `pkg/coscheduling/core/core.go`.

use kubestep_framework::api::Name;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::coscheduling::group::{PODGROUPS, group_of};
use kubestep_framework::api::{Duration, Pod, Time, Uid};
use kubestep_framework::objects::{CustomObjects, Objects};
use kubestep_framework::plugin::{QueueContext, QueueOrder};
use kubestep_framework::pod::{NamespacedName, QueuedPodInfo};
use kubestep_framework::shared::PluginState;

/// The pods of each group.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Members(BTreeMap<NamespacedName, Group>);

impl PluginState for Members {}

#[derive(Clone, Default, PartialEq, Debug)]
struct Group {
    /// The UIDs of all pods by name.
    all: BTreeMap<Name, Uid>,
    /// The names of those that have a node, or were given one at Permit.
    assigned: BTreeSet<Name>,
}

impl Members {
    /// Sees a pod. One that is `added` with a node counts as assigned; one that is bound later was
    /// given its node at Permit.
    pub fn see(&mut self, pod: &Pod, added: bool) {
        let Some(key) = group_of(pod) else { return };
        let (name, group) = (pod.metadata.name, self.0.entry(key).or_default());
        group.all.insert(name, pod.metadata.uid);
        if added && !pod.spec.node_name.is_empty() {
            group.assigned.insert(name);
        }
    }

    /// Takes a pod whose label changed out of the group.
    pub fn leave(&mut self, group: Option<NamespacedName>, pod: &Pod) {
        if let Some(group) = group.and_then(|group| self.0.get_mut(&group)) {
            group.all.remove(&pod.metadata.name);
        }
    }

    /// Forgets a pod that was deleted.
    pub fn delete(&mut self, pod: &Pod) {
        let Some(key) = group_of(pod) else { return };
        let Some(group) = self.0.get_mut(&key) else { return };
        group.all.remove(&pod.metadata.name);
        if !pod.spec.node_name.is_empty() {
            group.assigned.remove(&pod.metadata.name);
        }
        if group.all.is_empty() && group.assigned.is_empty() {
            self.0.remove(&key);
        }
    }

    /// Gives a pod a node; returns the number of pods that have one.
    pub fn assign(&mut self, group: NamespacedName, pod: Name) -> usize {
        let group = self.0.entry(group).or_default();
        group.assigned.insert(pod);
        group.assigned.len()
    }

    /// Takes the node away from a pod.
    pub fn unassign(&mut self, group: NamespacedName, pod: Name) {
        if let Some(group) = self.0.get_mut(&group) {
            group.assigned.remove(&pod);
        }
    }

    /// The number of pods that have a node.
    pub fn assigned(&self, group: NamespacedName) -> usize {
        self.0.get(&group).map_or(0, |group| group.assigned.len())
    }

    /// The number of pods.
    pub fn count(&self, group: NamespacedName) -> usize {
        self.0.get(&group).map_or(0, |group| group.all.len())
    }

    /// The names of the pods.
    pub fn names(&self, group: NamespacedName) -> impl Iterator<Item = Name> {
        self.0.get(&group).into_iter().flat_map(|group| group.all.keys().copied())
    }

    /// The names of the pods without a node.
    pub fn pending(&self, group: NamespacedName) -> impl Iterator<Item = Name> {
        let group = self.0.get(&group).into_iter();
        group.flat_map(|group| {
            group.all.keys().filter(|name| !group.assigned.contains(*name)).copied()
        })
    }

    /// The UIDs of the pods.
    pub fn uids(&self, group: NamespacedName) -> impl Iterator<Item = Uid> {
        self.0.get(&group).into_iter().flat_map(|group| group.all.values().copied())
    }

    /// The number of pods with scheduling gates.
    pub fn gated(&self, group: NamespacedName, objects: &Objects) -> usize {
        let is_gated = |name: &Name| {
            let pod = objects.pod(NamespacedName::new(group.namespace, *name));
            pod.is_some_and(|pod| !pod.spec.scheduling_gates.is_empty())
        };
        self.names(group).filter(is_gated).count()
    }
}

/// What happened to groups, and when.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct GroupTimes {
    /// Until when the resources of a group need no check.
    permitted: BTreeMap<NamespacedName, Time>,
    /// Until when a group is in backoff.
    backed_off: BTreeMap<NamespacedName, Time>,
    /// The pod that found no node, for which a group went into backoff.
    failing: BTreeMap<NamespacedName, NamespacedName>,
    /// The last failure of a group since it was scheduled.
    failed: Arc<BTreeMap<NamespacedName, Time>>,
}

impl PluginState for GroupTimes {}

impl GroupTimes {
    /// Notes that the resources of a group are free, until `end` at the latest.
    pub(crate) fn permitted(&mut self, group: NamespacedName, end: Time, now: Time) {
        if !self.is_permitted(group, now) {
            self.permitted.insert(group, end);
        }
    }

    /// Whether the resources of a group need no check.
    pub(crate) fn is_permitted(&self, group: NamespacedName, now: Time) -> bool {
        self.permitted.get(&group).is_some_and(|end| now <= *end)
    }

    /// Puts a group into backoff, unless it is: its `pod` found no node.
    pub(crate) fn back_off(
        &mut self,
        pod: NamespacedName,
        group: NamespacedName,
        backoff: Duration,
        now: Time,
    ) {
        if self.backoff_end(group, now).is_none() {
            self.backed_off.insert(group, now + backoff);
            self.failing.insert(group, pod);
        }
    }

    /// The pod for which a group went into backoff.
    pub(crate) fn failing(&self, group: NamespacedName) -> Option<NamespacedName> {
        self.failing.get(&group).copied()
    }

    /// When the backoff of a group ends; `None` if it is in none.
    pub fn backoff_end(&self, group: NamespacedName, now: Time) -> Option<Time> {
        self.backed_off.get(&group).copied().filter(|end| now <= *end)
    }

    /// Notes that a group failed.
    pub fn failed(&mut self, group: NamespacedName, now: Time) {
        self.permitted.remove(&group);
        Arc::make_mut(&mut self.failed).insert(group, now);
    }

    /// Notes that enough pods of a group have a node.
    pub fn succeeded(&mut self, group: NamespacedName) {
        if self.failed.contains_key(&group) {
            Arc::make_mut(&mut self.failed).remove(&group);
        }
    }
}

/// The order of the active queue: by priority, then by the last failure or the creation of the
/// group (of a pod without one: its first attempt), then by name.
#[derive(Default)]
pub struct GroupOrder {
    groups: CustomObjects,
    failed: Arc<BTreeMap<NamespacedName, Time>>,
}

impl GroupOrder {
    /// The order as of now.
    pub fn new(cx: &QueueContext<'_>) -> GroupOrder {
        let times = cx.shared.plugins.get::<GroupTimes>();
        let failed = times.map(|times| times.failed.clone()).unwrap_or_default();
        GroupOrder { groups: cx.objects.custom_objects(PODGROUPS), failed }
    }

    fn time(&self, pod: &QueuedPodInfo) -> Time {
        let attempt = pod.initial_attempt.unwrap_or(pod.timestamp);
        let Some(group) = group_of(&pod.info.pod) else { return attempt };
        let failed = self.failed.get(&group).copied();
        failed.unwrap_or_else(|| match self.groups.get(&group) {
            Some(object) => object.metadata.creation_timestamp.unwrap_or_default(),
            None => attempt,
        })
    }
}

impl QueueOrder for GroupOrder {
    fn less(&self, a: &QueuedPodInfo, b: &QueuedPodInfo) -> bool {
        let (first, second) = (Reverse(a.info.priority()), Reverse(b.info.priority()));
        if first != second {
            return first < second;
        }
        let (before, after) = (self.time(a), self.time(b));
        before < after || (before == after && name(a) < name(b))
    }
}

/// `namespace/name`, the last criterion of the order.
fn name(pod: &QueuedPodInfo) -> String {
    pod.key().to_string()
}
