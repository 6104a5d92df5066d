//! What the Deployment controller and the ReplicaSet controller do in a rollout.
//!
//! Upstream: `rolling.go` and `recreate.go` in `pkg/controller/deployment`, `ActivePodsWithRanks`
//! in `pkg/controller/controller_utils.go`.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::{Member, Owners, Rollout, RolloutAction};
use kubestep_api::{Name, PodPhase, Time, Uid};
use kubestep_framework::pod::NamespacedName;

/// The annotation that says which pods a ReplicaSet deletes first: those of the lowest cost.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Deletes the old pods, then creates the new ones.
pub(super) fn recreate(rollout: &Rollout) -> Vec<RolloutAction> {
    let old = rollout.members.iter().filter(|(_, member)| !member.updated);
    let deleted: Vec<RolloutAction> = old.map(|(key, _)| RolloutAction::Delete(*key)).collect();
    match deleted.is_empty() {
        true => create(rollout.replicas.saturating_sub(rollout.members.len())),
        false => deleted,
    }
}

/// Creates as many new pods as the surge allows; otherwise deletes as many old pods as may be
/// unavailable.
pub(super) fn roll(
    rollout: &Rollout,
    surge: usize,
    unavailable: usize,
    now: Time,
) -> Vec<RolloutAction> {
    let counts = rollout.counts(now);
    let (wanted, all) = (rollout.replicas, rollout.members.len());
    let room = (wanted + surge).saturating_sub(all);
    let created = create(room.min(wanted.saturating_sub(counts.updated)));
    if !created.is_empty() || counts.old == 0 {
        return created;
    }
    let least = wanted - unavailable.min(wanted);
    let updated_unavailable = counts.updated - counts.updated_available;
    let most = all.saturating_sub(least + updated_unavailable);
    let spare = counts.available.saturating_sub(least);
    if most == 0 { Vec::new() } else { scale_down(rollout, most, spare, now) }
}

fn create(count: usize) -> Vec<RolloutAction> {
    vec![RolloutAction::Create(Name::EMPTY); count]
}

/// Deletes old pods: up to `most` that are not available, and `spare` of any kind.
fn scale_down(
    rollout: &Rollout,
    mut most: usize,
    mut spare: usize,
    now: Time,
) -> Vec<RolloutAction> {
    let Owners::ReplicaSets { old, .. } = &rollout.owners else { return Vec::new() };
    let order = Order::new(rollout, now);
    let sets: Vec<Vec<Candidate<'_>>> = old.iter().map(|set| order.of(rollout, set.uid)).collect();
    let mut taken = vec![0; sets.len()];
    for (taken, set) in taken.iter_mut().zip(&sets) {
        let broken = set.iter().filter(|(_, member)| !rollout.is_available(member, now)).count();
        *taken = broken.min(most);
        most -= *taken;
    }
    for (taken, set) in taken.iter_mut().zip(&sets) {
        let more = spare.min(set.len() - *taken);
        *taken += more;
        spare -= more;
    }
    let deleted = sets.iter().zip(taken).flat_map(|(set, taken)| &set[..taken]);
    deleted.map(|(key, _)| RolloutAction::Delete(**key)).collect()
}

type Candidate<'a> = (&'a NamespacedName, &'a Member);

/// The order in which a ReplicaSet deletes its pods.
struct Order {
    /// How many pods of the workload are on each node.
    on_node: BTreeMap<Name, usize>,
    now: Time,
}

impl Order {
    fn new(rollout: &Rollout, now: Time) -> Order {
        let mut on_node = BTreeMap::new();
        for member in rollout.members.values() {
            *on_node.entry(member.pod.spec.node_name).or_insert(0) += 1;
        }
        Order { on_node, now }
    }

    /// The pods of a ReplicaSet, those to be deleted first at the front.
    fn of<'a>(&self, rollout: &'a Rollout, set: Uid) -> Vec<Candidate<'a>> {
        let members = rollout.members.iter();
        let mut pods: Vec<_> = members.filter(|(_, member)| member.owner == set).collect();
        pods.sort_by(|(_, a), (_, b)| self.compare(a, b));
        pods
    }

    /// Pods without a node come first, then pending ones, those with a low deletion cost, those on
    /// nodes with many pods of the workload, and the newer ones.
    fn compare(&self, a: &Member, b: &Member) -> Ordering {
        let key = |member: &Member| {
            let pod = &member.pod;
            let on_node = self.on_node.get(&pod.spec.node_name).copied().unwrap_or(0);
            (
                !pod.spec.node_name.is_empty(),
                pod.status.phase != PodPhase::Pending,
                deletion_cost(member),
                std::cmp::Reverse(on_node),
            )
        };
        key(a).cmp(&key(b)).then_with(|| self.compare_ages(a, b))
    }

    /// Ages count by their order of magnitude: within one, the UID decides, as if by chance.
    fn compare_ages(&self, a: &Member, b: &Member) -> Ordering {
        let created = |member: &Member| member.pod.metadata.creation_timestamp;
        let by_uid = || a.pod.metadata.uid.cmp(&b.pod.metadata.uid);
        match (created(a), created(b)) {
            (Some(first), Some(second)) if first == second => by_uid(),
            (Some(first), Some(second)) => {
                self.magnitude(first).cmp(&self.magnitude(second)).then_with(by_uid)
            }
            (first, second) => first.is_some().cmp(&second.is_some()).then_with(by_uid),
        }
    }

    /// The logarithm of the age in nanoseconds.
    fn magnitude(&self, created: Time) -> i64 {
        let age = self.now.0.saturating_sub(created.0).saturating_mul(1_000);
        age.checked_ilog2().map_or(-1, i64::from)
    }
}

fn deletion_cost(member: &Member) -> i32 {
    let cost = member.pod.metadata.annotations.get_str(DELETION_COST);
    cost.and_then(|cost| cost.parse().ok()).unwrap_or(0)
}
