//! Selecting the candidate that does the least harm.
//!
//! Upstream: `SelectCandidate` and `pickOneNodeForPreemption` in
//! `pkg/scheduler/framework/preemption/preemption.go`, `GetEarliestPodStartTime` in
//! `pkg/scheduler/util/utils.go`.

use std::cmp::Reverse;
use std::sync::Arc;

use crate::pod::PodInfo;
use crate::preemption::NodeVictims;
use crate::preemption::victims::start_time;
use kubestep_api::Time;

/// The best candidate; `None` if there is none. A complete tie goes to the name that sorts first
/// (upstream: map order).
///
/// Upstream reads the clock again for each candidate whose most important victims have not started,
/// in the order of the names: among such candidates the last name has the latest start.
pub fn pick(candidates: &[Arc<NodeVictims>], now: Time) -> Option<&NodeVictims> {
    candidates.iter().map(AsRef::as_ref).max_by_key(|candidate: &&NodeVictims| {
        let read_last = has_not_started(candidate).then_some(candidate.node);
        (harm(candidate, now), read_last, Reverse(candidate.node))
    })
}

/// Whether none of the victims with the highest priority has a start time.
fn has_not_started(candidate: &NodeVictims) -> bool {
    most_important(candidate).all(|pod| pod.pod.status.start_time.is_none())
}

fn most_important(candidate: &NodeVictims) -> impl Iterator<Item = &Arc<PodInfo>> {
    let highest = candidate.pods.iter().map(|pod| pod.priority()).max();
    candidate.pods.iter().filter(move |pod| Some(pod.priority()) == highest)
}

/// The five figures that are compared one after the other; for each the highest is best: violated
/// budgets, highest priority, sum of priorities and number of victims, all negated, and the start
/// of the oldest of the most important victims.
pub fn harm(candidate: &NodeVictims, now: Time) -> [i64; 5] {
    [
        -candidate.pdb_violations,
        -highest_priority(candidate),
        -sum_of_priorities(candidate),
        -(candidate.pods.len() as i64),
        earliest_start(candidate, now).0,
    ]
}

/// The victims are in order of importance, so the first one's priority is the highest.
pub fn highest_priority(candidate: &NodeVictims) -> i64 {
    candidate.pods.first().map_or(0, |pod| i64::from(pod.priority()))
}

/// Each priority counts from the lowest possible one up, so that more victims are always worse.
fn sum_of_priorities(candidate: &NodeVictims) -> i64 {
    candidate.pods.iter().map(|pod| i64::from(pod.priority()) + (1 << 31)).sum()
}

/// When the oldest of the victims with the highest priority started.
pub fn earliest_start(candidate: &NodeVictims, now: Time) -> Time {
    most_important(candidate).map(|pod| start_time(pod, now)).min().unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{PodBuilder, info, pod};

    /// A candidate with victims given as (priority, start in seconds).
    fn candidate(node: &str, pdb_violations: i64, victims: &[(i32, i64)]) -> NodeVictims {
        let victim =
            |(priority, started): &(i32, i64)| info(pod("v").priority(*priority).started(*started));
        NodeVictims {
            node: node.into(),
            pods: victims.iter().map(victim).collect(),
            pdb_violations,
            reasons: Vec::new(),
        }
    }

    fn picked(candidates: &[NodeVictims]) -> String {
        let candidates: Vec<_> = candidates.iter().cloned().map(Arc::new).collect();
        pick(&candidates, Time(1_000_000_000))
            .map_or(String::new(), |candidate| candidate.node.to_string())
    }

    #[test]
    fn fewest_violations_first() {
        let a = candidate("a", 1, &[(-9, 1)]);
        let b = candidate("b", 0, &[(1000, 1), (1000, 1)]);
        assert_eq!(picked(&[a, b]), "b");
        assert_eq!(picked(&[]), "");
    }

    #[test]
    fn then_the_lowest_highest_priority() {
        let a = candidate("a", 0, &[(10, 1)]);
        let b = candidate("b", 0, &[(9, 1), (9, 1), (9, 1)]);
        assert_eq!(picked(&[a, b]), "b");
    }

    #[test]
    fn then_the_smallest_sum_counted_from_the_bottom() {
        let a = candidate("a", 0, &[(10, 1), (4, 1)]);
        let b = candidate("b", 0, &[(10, 1), (3, 1)]);
        assert_eq!(picked(&[a.clone(), b]), "b");
        // Plain sums would prefer the three victims with 10 - 9 - 9.
        let c = candidate("c", 0, &[(10, 1), (-9, 1), (-9, 1)]);
        assert_eq!(picked(&[a, c]), "a");
    }

    #[test]
    fn then_the_fewest_victims() {
        // The sums are equal: 10 + 2^31 twice, and 10 with one more victim at -2^31 + 10.
        let a = candidate("a", 0, &[(10, 1), (i32::MIN + 10, 1), (i32::MIN, 1)]);
        let b = candidate("b", 0, &[(10, 1), (i32::MIN + 10, 1)]);
        assert_eq!(picked(&[a, b]), "b");
    }

    #[test]
    fn then_the_latest_start_of_the_most_important() {
        let a = candidate("a", 0, &[(10, 50), (10, 60), (5, 1)]);
        let b = candidate("b", 0, &[(10, 55), (10, 56), (5, 2)]);
        assert_eq!(picked(&[a.clone(), b]), "b");
        // A victim without a start time counts as started now.
        let mut c = a.clone();
        c.node = "c".into();
        c.pods[0] = info(pod("new").priority(10));
        assert_eq!(picked(&[a, c]), "c");
    }

    #[test]
    fn of_victims_that_have_not_started_the_last_read_is_the_latest() {
        let unstarted = |node: &str| NodeVictims {
            node: node.into(),
            pods: vec![info(pod("v").priority(1)), info(pod("w").priority(1))],
            pdb_violations: 0,
            reasons: Vec::new(),
        };
        assert_eq!(picked(&[unstarted("a"), unstarted("c"), unstarted("b")]), "c");
        let mut half = unstarted("d");
        half.pods[1] = info(pod("w").priority(1).started(5));
        assert_eq!(picked(&[unstarted("a"), half]), "a");
    }

    #[test]
    fn last_the_name() {
        let same = ["n2", "n10", "n3"].map(|node| candidate(node, 2, &[(1, 1)]));
        assert_eq!(picked(&same), "n10");
    }
}
