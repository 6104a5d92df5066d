//! What the StatefulSet controller does in a rollout.
//!
//! Upstream: `updateStatefulSet`, `processReplica`, `processCondemned` and
//! `updateStatefulSetAfterInvariantEstablished` in `pkg/controller/statefulset/stateful_set_control.go`.

use std::cmp::Reverse;

use super::{Member, Rollout, RolloutAction};
use kubestep_api::{Name, Time};

/// The limits of a StatefulSet's strategy; see [`super::Strategy::Ordinal`].
#[derive(Clone, Copy)]
pub(super) struct OrdinalLimits {
    pub partition: usize,
    pub unavailable: Option<usize>,
    pub ordered: bool,
    /// Whether old pods are deleted.
    pub updates: bool,
}

/// The pods of a set.
struct Pods<'a> {
    /// The wanted ordinals, from the lowest up.
    slots: Vec<Name>,
    /// The pod of each.
    wanted: Vec<Option<&'a Member>>,
    /// The pods of other ordinals, from the highest down.
    surplus: Vec<&'a Member>,
}

/// Creates missing pods from the lowest ordinal up, deletes those of other ordinals from the highest
/// down, and then old pods from the highest ordinal down. With ordered creation the pods below have
/// to be available first.
pub(super) fn next(rollout: &Rollout, limits: OrdinalLimits, now: Time) -> Vec<RolloutAction> {
    let pods = Pods::of(rollout);
    let ordered = limits.ordered;
    let scaled = pods.create(rollout, ordered, now).or_else(|| pods.shrink(rollout, ordered, now));
    scaled.unwrap_or_else(|| {
        let pods: Vec<&Member> = pods.wanted.into_iter().flatten().collect();
        match limits.unavailable {
            _ if !limits.updates => Vec::new(),
            None => delete_one(rollout, &pods, limits.partition, now),
            Some(most) => delete_several(rollout, &pods, limits.partition, most, now),
        }
    })
}

/// The ordinal of a pod, from its name.
pub(super) fn ordinal(pod: Name) -> u64 {
    pod.text().rsplit_once('-').and_then(|(_, number)| number.parse().ok()).unwrap_or(0)
}

impl Pods<'_> {
    fn of(rollout: &Rollout) -> Pods<'_> {
        let mut slots: Vec<Name> = rollout.blueprints.keys().copied().collect();
        slots.sort_by_key(|slot| ordinal(*slot));
        let mut wanted: Vec<Option<&Member>> = vec![None; slots.len()];
        let mut surplus = Vec::new();
        for member in rollout.members.values() {
            match slots.binary_search_by_key(&ordinal(member.slot), |slot| ordinal(*slot)) {
                Ok(at) => wanted[at] = Some(member),
                Err(_) => surplus.push(member),
            }
        }
        surplus.sort_by_key(|member| Reverse(ordinal(member.slot)));
        Pods { slots, wanted, surplus }
    }

    /// The missing pods; with ordered creation the first one, and none before all lower ones are
    /// available. `None` if pods may be deleted.
    fn create(&self, rollout: &Rollout, ordered: bool, now: Time) -> Option<Vec<RolloutAction>> {
        let mut missing = Vec::new();
        for (slot, pod) in self.slots.iter().zip(&self.wanted) {
            match pod {
                None => missing.push(RolloutAction::Create(*slot)),
                Some(member) if ordered && !rollout.is_available(member, now) => {
                    return Some(missing);
                }
                Some(_) => {}
            }
            if ordered && !missing.is_empty() {
                return Some(missing);
            }
        }
        (!missing.is_empty()).then_some(missing)
    }

    /// The pods that the set has too many; with ordered deletion one by one, of which only the
    /// lowest unavailable one need not be available. `None` if there are none.
    fn shrink(&self, rollout: &Rollout, ordered: bool, now: Time) -> Option<Vec<RolloutAction>> {
        let highest = self.surplus.first()?;
        if !ordered {
            return Some(self.surplus.iter().map(|member| delete(member)).collect());
        }
        let unavailable = |member: &&&Member| !rollout.is_available(member, now);
        let lowest = self.surplus.iter().rev().find(unavailable);
        let waits = lowest.is_some_and(|lowest| lowest.slot != highest.slot)
            && !rollout.is_available(highest, now);
        Some(if waits { Vec::new() } else { vec![delete(highest)] })
    }
}

/// Deletes the old pod of the highest ordinal, unless a pod above it is unavailable.
fn delete_one(
    rollout: &Rollout,
    pods: &[&Member],
    partition: usize,
    now: Time,
) -> Vec<RolloutAction> {
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
) -> Vec<RolloutAction> {
    let unavailable = pods.iter().filter(|member| !rollout.is_available(member, now)).count();
    let old = pods.iter().skip(partition).rev().filter(|member| !member.updated);
    old.take(most.saturating_sub(unavailable)).map(|member| delete(member)).collect()
}

fn delete(member: &Member) -> RolloutAction {
    RolloutAction::Delete(crate::disruption::key_of(&member.pod))
}
