//! Which pods CapacityScheduling preempts.
//!
//! Upstream: `preemptor` in `pkg/capacityscheduling/capacity_scheduling.go`.

use std::sync::Arc;

use super::{CapacityScheduling, PLUGIN, QuotaRequests};
use crate::capacity_scheduling::quota::Quotas;
use kubestep_framework::api::intern::Symbol;
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::go_sort;
use kubestep_framework::node::NodeInfo;
use kubestep_framework::plugin::CycleContext;
use kubestep_framework::pod::PodInfo;
use kubestep_framework::preemption::PreemptionRules;
use kubestep_framework::preemption::eligibility::{may_preempt, rejection_while_terminating};
use kubestep_framework::preemption::victims::{
    Reprieve, VictimSearch, VictimTrial, Victims, is_more_important,
};
use kubestep_framework::status::Status;
use kubestep_framework::status::node_statuses::NodeStatuses;

/// Which pods the cycle's pod may preempt.
enum Rule {
    /// It has no quota: pods of lower priority without one.
    WithoutQuota,
    /// Its namespace would use more than its min: pods of lower priority there.
    OwnNamespace,
    /// Its min was borrowed: pods of other namespaces that use more than theirs.
    Borrowers,
}

impl Rule {
    fn of(cx: &CycleContext<'_>, quotas: &Quotas, requests: &QuotaRequests) -> Rule {
        match quotas.of(cx.pod.key().namespace) {
            None => Rule::WithoutQuota,
            Some(quota) if quota.is_over_min_with(&requests.in_quota) => Rule::OwnNamespace,
            Some(_) => Rule::Borrowers,
        }
    }

    fn allows(&self, cx: &CycleContext<'_>, quotas: &Quotas, victim: &PodInfo) -> bool {
        let (namespace, own) = (victim.key().namespace, cx.pod.key().namespace);
        match (self, quotas.of(namespace)) {
            (Rule::WithoutQuota, None) => may_preempt(cx.pod, victim),
            (Rule::OwnNamespace, Some(_)) => namespace == own && may_preempt(cx.pod, victim),
            (Rule::Borrowers, Some(quota)) => namespace != own && quota.is_over_min(),
            _ => false,
        }
    }
}

/// Whether a terminating pod makes room for the cycle's pod.
fn makes_room(
    cx: &CycleContext<'_>,
    quotas: &Quotas,
    requests: &QuotaRequests,
    pod: &PodInfo,
) -> bool {
    let rule = Rule::of(cx, quotas, requests);
    // Also with a borrowed min, less important pods of its own namespace do.
    let allows = |rule: &Rule| rule.allows(cx, quotas, pod);
    pod.pod.is_terminating()
        && (allows(&rule) || (matches!(rule, Rule::Borrowers) && allows(&Rule::OwnNamespace)))
}

impl PreemptionRules for CapacityScheduling {
    fn plugin(&self) -> Symbol {
        PLUGIN.name.into()
    }

    fn candidates(&self, nodes: usize) -> usize {
        nodes
    }

    fn starts_anywhere(&self) -> bool {
        false
    }

    fn rejection(
        &self,
        cx: &CycleContext<'_>,
        state: &CycleState,
        statuses: &NodeStatuses,
    ) -> Option<&'static str> {
        let (Some(quotas), Some(requests)) = (state.read(), state.read()) else {
            return Some("not eligible due to failed to read from cycleState");
        };
        rejection_while_terminating(cx, statuses, |pod| makes_room(cx, quotas, requests, pod))
    }

    fn select_victims(
        &self,
        search: &VictimSearch<'_>,
        node: &NodeInfo,
    ) -> Result<Victims, Status> {
        let cx = &search.cx;
        let (Some(quotas), Some(requests)) =
            (search.state.read::<Quotas>(), search.state.read::<QuotaRequests>())
        else {
            return Err(Status::unschedulable("Failed to read preFilterState from cycleState"));
        };
        let potential = potential_victims(cx, quotas, requests, node);
        if potential.is_empty() {
            let pod = cx.pod.key().name;
            let text = format!("No victims found on node {} for preemptor pod {pod}", node.name);
            return Err(Status::unresolvable(&text));
        }
        let namespace = cx.pod.key().namespace;
        let fits = |trial: &VictimTrial<'_>| {
            let status = trial.filter();
            match status.is_success() && exceeds(trial, namespace, &requests.pod, &requests.pod) {
                true => Status::unschedulable("global quota max exceeded"),
                false => status,
            }
        };
        let reprieve =
            |trial: &mut VictimTrial<'_>, pod: &Arc<PodInfo>| -> Result<Reprieve, Status> {
                let answer = trial.reprieve(pod)?;
                if !exceeds(trial, namespace, &requests.in_quota, &requests.in_all) {
                    return Ok(answer);
                }
                // As upstream, an error if the pod did not fit either.
                trial.remove(pod)?;
                Ok(Reprieve::Rejected)
            };
        search.select_victims_with(node, potential, fits, reprieve)
    }
}

/// The pods on `node` that may be preempted. Those of one namespace stop when what remains of it is
/// not over its min.
fn potential_victims(
    cx: &CycleContext<'_>,
    quotas: &Quotas,
    requests: &QuotaRequests,
    node: &NodeInfo,
) -> Vec<Arc<PodInfo>> {
    let (rule, mut quotas) = (Rule::of(cx, quotas, requests), quotas.clone());
    let mut pods = node.pods.clone();
    go_sort::sort(&mut pods, |a, b| !is_more_important(a, b, cx.now));
    pods.retain(|pod| {
        let allowed = rule.allows(cx, &quotas, pod);
        if allowed {
            quotas.remove(&pod.pod);
        }
        allowed
    });
    pods
}

/// Whether the quota of the cycle's pod would be over max with `in_quota`, or all together over
/// their mins with `in_all`.
fn exceeds(
    trial: &VictimTrial<'_>,
    namespace: Symbol,
    in_quota: &kubestep_framework::resource::Resource,
    in_all: &kubestep_framework::resource::Resource,
) -> bool {
    let Some(quotas) = trial.state.read::<Quotas>() else { return false };
    quotas.of(namespace).is_some_and(|quota| {
        !quota.over_max(in_quota).is_empty() || !quotas.over_total_min(in_all).is_empty()
    })
}
