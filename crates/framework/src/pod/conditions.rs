//! Pod conditions: whether writing one changes anything, and what is written.
//!
//! Upstream: `UpdatePodCondition` and `CalculatePodConditionObservedGeneration` in
//! `pkg/api/v1/pod/util.go`.

use kubestep_api::{Condition, Pod, Time, find_condition};

/// What is written when `condition` is set on `pod` at `now`: the condition with its times and the
/// pod's generation, or `None` if nothing changes.
pub fn updated(pod: &Pod, condition: Condition, now: Time) -> Option<Condition> {
    let written = Condition {
        observed_generation: pod.metadata.generation,
        last_transition_time: Some(now),
        ..condition
    };
    let Some(old) = find_condition(&pod.status.conditions, written.type_) else {
        return Some(written);
    };
    let last_transition_time = match old.status == written.status {
        true => old.last_transition_time,
        false => Some(now),
    };
    let written = Condition { last_transition_time, ..written };
    let same = old.status == written.status
        && old.reason == written.reason
        && old.message == written.message
        && old.last_probe_time == written.last_probe_time
        && old.last_transition_time == written.last_transition_time;
    // A changed generation alone does not cause a write.
    if same { None } else { Some(written) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::pod;
    use kubestep_api::ConditionStatus;

    fn condition(status: ConditionStatus, message: &str) -> Condition {
        Condition { type_: "Ready".into(), status, message: message.into(), ..Condition::default() }
    }

    #[test]
    fn the_transition_time_moves_only_with_the_status() {
        let mut pod = pod("a");
        pod.metadata.generation = 3;
        let first = updated(&pod, condition(ConditionStatus::False, "one"), Time(5)).unwrap();
        assert_eq!((first.observed_generation, first.last_transition_time), (3, Some(Time(5))));
        pod.status.conditions = vec![first];
        assert_eq!(updated(&pod, condition(ConditionStatus::False, "one"), Time(6)), None);
        let second = updated(&pod, condition(ConditionStatus::False, "two"), Time(7)).unwrap();
        assert_eq!(second.last_transition_time, Some(Time(5)));
        let third = updated(&pod, condition(ConditionStatus::True, "two"), Time(8)).unwrap();
        assert_eq!(third.last_transition_time, Some(Time(8)));
    }
}
