//! Pending pods for people: equal pods together, each group with its decisive cause.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use crate::report::outcome::{Pending, conditions};
use crate::report::why::decisive_cause;
use kubestep_api::Pod;
use kubestep_debug::Session;
use kubestep_debug::why::ask_now;

/// Groups that are explained; the others have the scheduler's message only.
const EXPLAINED: usize = 20;

/// How many nodes may be looked at for all explanations of a report together, so that a large one
/// stays fast.
#[derive(Clone, Copy, Debug)]
pub struct NodeAllowance(usize);

impl Default for NodeAllowance {
    fn default() -> NodeAllowance {
        NodeAllowance(200_000)
    }
}

impl NodeAllowance {
    /// Takes `nodes`, if any are left: the last one who takes some may take more.
    fn take(&mut self, nodes: usize) -> bool {
        let is_allowed = self.0 > 0;
        self.0 = self.0.saturating_sub(nodes);
        is_allowed
    }
}

/// Pending pods that differ only in their names, and whose explanations are alike.
#[derive(Clone, PartialEq, Debug)]
pub struct PendingGroup {
    /// Their indices among the pending pods, in order.
    pub pods: Vec<usize>,
    /// The decisive cause, as `kubestep explain` begins with it.
    pub cause: Option<String>,
}

/// The groups of pods that are equal and have the same result, in the order of their first pods.
pub fn groups(session: &Session, pending: &[Pending]) -> Vec<PendingGroup> {
    let objects = session.world().api().objects();
    let mut groups: Vec<(Option<&Arc<Pod>>, PendingGroup)> = Vec::new();
    let mut known: HashMap<u64, Vec<usize>> = HashMap::new();
    for (at, entry) in pending.iter().enumerate() {
        let pod = objects.pod(entry.pod);
        let indices = known.entry(hash(entry, pod)).or_default();
        let same = indices.iter().copied().find(|index| {
            let (other, group) = &groups[*index];
            are_equal(entry, &pending[group.pods[0]]) && is_same_pod(pod, *other)
        });
        match same {
            Some(index) => groups[index].1.pods.push(at),
            None => {
                indices.push(groups.len());
                groups.push((pod, PendingGroup { pods: vec![at], cause: None }));
            }
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// Finds the causes of the largest groups, as far as `allowed`.
pub fn explain(
    session: &mut Session,
    pending: &[Pending],
    groups: &mut [PendingGroup],
    allowed: &mut NodeAllowance,
) {
    let nodes = session.world().scheduler().cache().node_count();
    let mut largest: Vec<&mut PendingGroup> = groups.iter_mut().collect();
    largest.sort_by_key(|group| Reverse(group.pods.len()));
    for group in largest.into_iter().take(EXPLAINED) {
        if !allowed.take(nodes) {
            return;
        }
        let first = group.pods.first().and_then(|at| pending.get(*at));
        let answer = first.and_then(|entry| ask_now(session, entry.pod));
        group.cause = answer.as_ref().and_then(decisive_cause);
    }
}

impl PendingGroup {
    /// The cause, and kube-scheduler's words unless they are the cause, a line each. `first` is the
    /// first pod of the group.
    pub fn reasons(&self, first: &Pending) -> Vec<String> {
        let reason = &first.reason;
        match self.cause.as_ref().filter(|cause| *cause != reason) {
            Some(cause) if first.is_quoted => {
                vec![cause.clone(), format!("kube-scheduler reports: {reason}")]
            }
            Some(cause) => vec![cause.clone()],
            None => vec![reason.clone()],
        }
    }
}

fn hash(entry: &Pending, pod: Option<&Arc<Pod>>) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&entry.reason, entry.place.as_str()).hash(&mut hasher);
    pod.map(|pod| (pod.metadata.namespace, &pod.metadata.labels, &pod.spec)).hash(&mut hasher);
    hasher.finish()
}

fn are_equal(one: &Pending, other: &Pending) -> bool {
    let conditions = |entry: &Pending| conditions(entry.certainty.as_deref());
    (one.place, &one.reason) == (other.place, &other.reason) && conditions(one) == conditions(other)
}

fn is_same_pod(one: Option<&Arc<Pod>>, other: Option<&Arc<Pod>>) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return false };
    let (a, b) = (&one.metadata, &other.metadata);
    let nominated = |pod: &Pod| pod.status.nominated_node_name;
    (a.namespace, &a.labels) == (b.namespace, &b.labels)
        && nominated(one) == nominated(other)
        && one.spec == other.spec
}
