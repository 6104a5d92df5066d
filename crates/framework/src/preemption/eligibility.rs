//! Whether a pod may preempt others, and whether it may preempt a given pod.
//!
//! Upstream: `PodEligibleToPreemptOthers` and `isPreemptionAllowed` in
//! `pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go`.

use crate::plugin::CycleContext;
use crate::pod::PodInfo;
use crate::status::Code;
use crate::status::node_statuses::NodeStatuses;
use kubestep_api::{ConditionStatus, Pod, PreemptionPolicy, find_condition};

/// The type of the condition that marks a pod as a victim.
pub(crate) const DISRUPTION_TARGET: &str = "DisruptionTarget";
/// The reason in that condition when the scheduler preempted the pod.
pub(crate) const PREEMPTION_BY_SCHEDULER: &str = "PreemptionByScheduler";

/// Why a pod of that policy does not preempt.
pub(crate) const NEVER: &str = "not eligible due to preemptionPolicy=Never.";
/// Why a pod that waits for its victims does not preempt again.
pub(crate) const VICTIM_TERMINATING: &str =
    "not eligible due to a terminating pod on the nominated node.";

/// Why the pod is not eligible to preempt others; `None` if it is. It is not if its policy is
/// Never, or while a victim on its nominated node is still terminating.
pub fn rejection(cx: &CycleContext<'_>, statuses: &NodeStatuses) -> Option<&'static str> {
    rejection_while_terminating(cx, statuses, |pod| is_terminating_victim(cx, pod))
}

/// The same with a rule of the plugin for the pods on the nominated node that are waited for.
pub fn rejection_while_terminating(
    cx: &CycleContext<'_>,
    statuses: &NodeStatuses,
    is_waited_for: impl Fn(&PodInfo) -> bool,
) -> Option<&'static str> {
    let pod = &cx.pod.pod;
    if pod.spec.preemption_policy == Some(PreemptionPolicy::Never) {
        return Some(NEVER);
    }
    if pod.status.nominated_node_name.is_empty() {
        return None;
    }
    let node = cx.snapshot.by_name(pod.status.nominated_node_name);
    let status = node.map_or(statuses.absent(), |node| statuses.get(node.id));
    if status.code() == Code::UnschedulableAndUnresolvable {
        return None;
    }
    let waits = node.is_some_and(|node| node.pods.iter().any(|pod| is_waited_for(pod)));
    waits.then_some(VICTIM_TERMINATING)
}

/// The pods on the pod's nominated node that it preempted and that are still terminating.
pub fn terminating_victims<'a>(cx: &'a CycleContext<'_>) -> impl Iterator<Item = &'a PodInfo> {
    let node = cx.snapshot.by_name(cx.pod.pod.status.nominated_node_name);
    let pods = node.into_iter().flat_map(|node| node.pods.iter()).map(|pod| &**pod);
    pods.filter(move |victim: &&PodInfo| is_terminating_victim(cx, victim))
}

fn is_terminating_victim(cx: &CycleContext<'_>, victim: &PodInfo) -> bool {
    may_preempt(cx.pod, victim) && is_terminating_by_preemption(&victim.pod)
}

/// Whether `preemptor` may evict `victim`: only lower priorities.
pub fn may_preempt(preemptor: &PodInfo, victim: &PodInfo) -> bool {
    victim.priority() < preemptor.priority()
}

/// Whether the pod is terminating because the scheduler preempted it.
fn is_terminating_by_preemption(pod: &Pod) -> bool {
    let condition = find_condition(&pod.status.conditions, DISRUPTION_TARGET.into());
    pod.is_terminating()
        && condition.is_some_and(|condition| {
            condition.status == ConditionStatus::True && condition.reason == PREEMPTION_BY_SCHEDULER
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::node::NodeId;
    use crate::status::Status;
    use crate::testing::{Cluster, PodBuilder, info, node, pod};
    use kubestep_api::{Condition, Time};

    fn leaving(name: &str) -> Pod {
        let mut victim = pod(name).priority(1).on("n1");
        victim.metadata.deletion_timestamp = Some(Time(5));
        victim.status.conditions = vec![Condition {
            type_: DISRUPTION_TARGET.into(),
            status: ConditionStatus::True,
            reason: PREEMPTION_BY_SCHEDULER.into(),
            ..Condition::default()
        }];
        victim
    }

    fn judge(preemptor: Pod, victim: Pod, status: Option<Status>) -> Option<&'static str> {
        let cluster = Cluster::new([node("n1")], [victim]);
        let mut statuses = NodeStatuses::default();
        if let Some(status) = status {
            statuses.set(NodeId(0), status);
        }
        rejection(&cluster.cx(&info(preemptor)), &statuses)
    }

    #[test]
    fn a_policy_of_never_forbids() {
        let preemptor = pod("p").priority(9).spec(json!({"preemptionPolicy": "Never"}));
        assert_eq!(judge(preemptor, pod("v"), None), Some(NEVER));
        assert_eq!(judge(pod("p"), pod("v"), None), None);
    }

    #[test]
    fn a_nominated_pod_waits_while_a_victim_leaves() {
        let rejected = || Some(Status::unschedulable("Insufficient cpu"));
        let preemptor = || pod("p").priority(9).nominated("n1");
        assert_eq!(judge(preemptor(), leaving("v"), rejected()), Some(VICTIM_TERMINATING));
        // If preemption can't help on the nominated node (also by the absent status), the pod may
        // preempt on other nodes.
        let hopeless = Status::unresolvable("node(s) had untolerated taint(s)");
        assert_eq!(judge(preemptor(), leaving("v"), Some(hopeless)), None);
        assert_eq!(judge(preemptor(), leaving("v"), None), None);
        // Not victims of an earlier preemption: a pod of the same priority, one terminating for
        // another reason, and one that is not terminating.
        assert_eq!(judge(preemptor(), leaving("v").priority(9), rejected()), None);
        let mut other = leaving("v");
        other.status.conditions[0].reason = "DeletionByTaintManager".into();
        assert_eq!(judge(preemptor(), other, rejected()), None);
        let mut staying = leaving("v");
        staying.metadata.deletion_timestamp = None;
        assert_eq!(judge(preemptor(), staying, rejected()), None);
        let missing = pod("p").priority(9).nominated("gone");
        assert_eq!(judge(missing, leaving("v"), rejected()), None);
    }
}
