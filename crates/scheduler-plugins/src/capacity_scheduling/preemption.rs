//! Which pods CapacityScheduling preempts.
//!
//! Upstream: `preemptor` in `pkg/capacityscheduling/capacity_scheduling.go`.

use kubestep_framework::api::Name;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{CapacityScheduling, PLUGIN, QuotaRequests, list};
use crate::capacity_scheduling::quota::{Excess, Quotas};
use kubestep_framework::api::intern::Symbol;
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::go_sort;
use kubestep_framework::node::NodeInfo;
use kubestep_framework::plugin::CycleContext;
use kubestep_framework::pod::{NamespacedName, PodInfo};
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
    /// Its namespace would use more than its min, by so much: pods of lower priority there.
    OwnNamespace(Vec<Excess>),
    /// Its min was borrowed: pods of other namespaces that use more than theirs.
    Borrowers,
}

impl Rule {
    fn of(cx: &CycleContext<'_>, quotas: &Quotas, requests: &QuotaRequests) -> Rule {
        let Some(quota) = quotas.of(cx.pod.key().namespace) else { return Rule::WithoutQuota };
        match quota.over_min_with(&requests.in_quota) {
            none if none.is_empty() => Rule::Borrowers,
            over => Rule::OwnNamespace(over),
        }
    }

    fn allows(&self, cx: &CycleContext<'_>, quotas: &Quotas, victim: &PodInfo) -> bool {
        let (namespace, own) = (victim.key().namespace, cx.pod.key().namespace);
        match (self, quotas.of(namespace)) {
            (Rule::WithoutQuota, None) => may_preempt(cx.pod, victim),
            (Rule::OwnNamespace(_), Some(_)) => namespace == own && may_preempt(cx.pod, victim),
            (Rule::Borrowers, Some(quota)) => namespace != own && quota.is_over_min(),
            _ => false,
        }
    }

    /// Which pods the rule allows, and why, in a sentence.
    fn describe(&self, namespace: Symbol, quotas: &Quotas, requests: &QuotaRequests) -> String {
        match self {
            Rule::WithoutQuota => format!(
                "namespace {namespace} has no elastic quota, so the pod may preempt pods of \
                 lower priority in namespaces without one"
            ),
            Rule::OwnNamespace(over) => format!(
                "namespace {namespace} would be over the min of its elastic quota ({}), so the pod \
                 may preempt pods of lower priority in the same namespace",
                describe_all(over)
            ),
            Rule::Borrowers => {
                let quota = quotas.of(namespace);
                let uses = quota.map(|quota| quota.describe_min(&requests.in_quota));
                let uses = uses.filter(|uses| !uses.is_empty());
                let uses = uses.map(|uses| format!(" ({uses})")).unwrap_or_default();
                format!(
                    "namespace {namespace} stays within the min of its elastic quota{uses}, so the \
                     pod may preempt pods, of any priority, of namespaces that are over theirs"
                )
            }
        }
    }
}

fn describe_all(excess: &[Excess]) -> String {
    excess.iter().map(Excess::describe).collect::<Vec<_>>().join("; ")
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
        && (allows(&rule)
            || (matches!(rule, Rule::Borrowers) && allows(&Rule::OwnNamespace(Vec::new()))))
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

    fn victim_rule(&self, cx: &CycleContext<'_>, state: &CycleState) -> Option<String> {
        let (quotas, requests) = (state.read::<Quotas>()?, state.read::<QuotaRequests>()?);
        let rule = Rule::of(cx, quotas, requests);
        Some(rule.describe(cx.pod.key().namespace, quotas, requests))
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
        if potential.pods.is_empty() {
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
        let found = search.select_victims_with(node, potential.pods.clone(), fits, reprieve)?;
        Ok(Victims { reasons: potential.reasons(node.name), ..found })
    }
}

/// The pods on a node that may be preempted, with the facts that the choice is based on.
struct PotentialVictims {
    /// In the order of the choice, the least important first.
    pods: Vec<Arc<PodInfo>>,
    /// The other namespaces that are over their min, by so much.
    over_min: BTreeMap<Symbol, Vec<Excess>>,
    /// Pods of these namespaces that stay: without the others, their namespace is within its min.
    spared: Vec<NamespacedName>,
}

impl PotentialVictims {
    /// The facts, a sentence each.
    fn reasons(&self, node: Name) -> Vec<String> {
        let over = |(namespace, excess): (&Symbol, &Vec<Excess>)| {
            format!("namespace {namespace} is over its min: {}", describe_all(excess))
        };
        let names: Vec<NamespacedName> = self.pods.iter().map(|pod| pod.key()).collect();
        let mut reasons: Vec<String> = self.over_min.iter().map(over).collect();
        reasons.push(format!("may be preempted on {node}: {}", list(&names)));
        if !self.spared.is_empty() {
            let of: BTreeSet<Symbol> = self.spared.iter().map(|pod| pod.namespace).collect();
            let is = if of.len() == 1 { "its namespace is" } else { "their namespaces are" };
            let spared = list(&self.spared);
            reasons.push(format!("not {spared}: without the pods above, {is} within min"));
        }
        reasons
    }
}

/// The pods on `node` that may be preempted. Those of one namespace stop when what remains of it is
/// not over its min.
fn potential_victims(
    cx: &CycleContext<'_>,
    quotas: &Quotas,
    requests: &QuotaRequests,
    node: &NodeInfo,
) -> PotentialVictims {
    let (rule, mut quotas) = (Rule::of(cx, quotas, requests), quotas.clone());
    let borrowed = matches!(rule, Rule::Borrowers);
    let (mut over_min, mut spared) = (BTreeMap::new(), Vec::new());
    let mut pods: Vec<_> = node.pods.iter().cloned().collect();
    go_sort::sort(&mut pods, |a, b| !is_more_important(a, b, cx.now));
    pods.retain(|pod| {
        let (allowed, namespace) = (rule.allows(cx, &quotas, pod), pod.key().namespace);
        if allowed {
            if let Some(quota) = quotas.of(namespace).filter(|_| borrowed) {
                over_min.entry(namespace).or_insert_with(|| quota.over_min());
            }
            quotas.remove(&pod.pod);
        } else if over_min.contains_key(&namespace) {
            spared.push(pod.key());
        }
        allowed
    });
    PotentialVictims { pods, over_min, spared }
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
