//! What the StatefulSet controller does in a rollout.
//!
//! Upstream: `updateStatefulSet` and `updateStatefulSetAfterInvariantEstablished` in
//! `pkg/controller/statefulset/stateful_set_control.go`.

use super::{Action, Member, Rollout};
use kubestep_api::Time;
use kubestep_api::intern::Symbol;

/// The limits of a StatefulSet's strategy; see [`super::Strategy::Ordinal`].
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub partition: usize,
    pub unavailable: Option<usize>,
    pub ordered: bool,
}

/// Creates missing pods from the lowest ordinal up; once all are available, deletes old pods from
/// the highest ordinal down.
pub(super) fn next(rollout: &Rollout, limits: Limits, now: Time) -> Vec<Action> {
    let mut slots: Vec<Symbol> = rollout.blueprints.keys().copied().collect();
    slots.sort_by_key(|slot| ordinal(*slot));
    let mut pods: Vec<Option<&Member>> = vec![None; slots.len()];
    for member in rollout.members.values() {
        if let Ok(at) = slots.binary_search_by_key(&ordinal(member.slot), |slot| ordinal(*slot)) {
            pods[at] = Some(member);
        }
    }
    create(rollout, &slots, &pods, limits.ordered, now).unwrap_or_else(|| {
        let pods: Vec<&Member> = pods.into_iter().flatten().collect();
        match limits.unavailable {
            None => delete_one(rollout, &pods, limits.partition, now),
            Some(most) => delete_several(rollout, &pods, limits.partition, most, now),
        }
    })
}

/// The ordinal of a pod, from its name.
fn ordinal(pod: Symbol) -> u64 {
    pod.rsplit_once('-').and_then(|(_, number)| number.parse().ok()).unwrap_or(0)
}

/// The missing pods; with ordered creation the first one, and none before all lower ones are
/// available. `None` if old pods may be deleted.
fn create(
    rollout: &Rollout,
    slots: &[Symbol],
    pods: &[Option<&Member>],
    ordered: bool,
    now: Time,
) -> Option<Vec<Action>> {
    let mut missing = Vec::new();
    for (slot, pod) in slots.iter().zip(pods) {
        match pod {
            None => missing.push(Action::Create(*slot)),
            Some(member) if ordered && !rollout.is_available(member, now) => return Some(missing),
            Some(_) => {}
        }
        if ordered && !missing.is_empty() {
            return Some(missing);
        }
    }
    (!missing.is_empty()).then_some(missing)
}

/// Deletes the old pod of the highest ordinal, unless a pod above it is unavailable.
fn delete_one(rollout: &Rollout, pods: &[&Member], partition: usize, now: Time) -> Vec<Action> {
    for member in pods.iter().skip(partition).rev() {
        if !member.updated {
            return vec![delete(member)];
        }
        if !rollout.is_available(member, now) {
            break;
        }
    }
    Vec::new()
}

/// Deletes old pods until `most` are unavailable.
fn delete_several(
    rollout: &Rollout,
    pods: &[&Member],
    partition: usize,
    most: usize,
    now: Time,
) -> Vec<Action> {
    let unavailable = pods.iter().filter(|member| !rollout.is_available(member, now)).count();
    let old = pods.iter().skip(partition).rev().filter(|member| !member.updated);
    old.take(most.saturating_sub(unavailable)).map(|member| delete(member)).collect()
}

fn delete(member: &Member) -> Action {
    Action::Delete(crate::disruption::key_of(&member.pod))
}
