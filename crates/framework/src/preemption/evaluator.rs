//! One preemption attempt, from the eligibility check to the selected candidate.
//!
//! Upstream: `Evaluator.Preempt` in `pkg/scheduler/framework/preemption/preemption.go`.

use std::sync::Arc;

use indexmap::IndexSet;

use crate::cycle_state::CycleState;
use crate::plugin::{CycleContext, PostFilterAnswer, PostFilterContext, Preemption};
use crate::pod::PodInfo;
use crate::preemption::budgets::DisruptionBudgets;
use crate::preemption::dry_run::{DryRun, dry_run};
use crate::preemption::pick::pick;
use crate::preemption::victims::VictimSearch;
use crate::preemption::{NodeVictims, PreemptionRules, extenders};
use crate::status::node_statuses::NodeStatuses;
use crate::status::{Code, Status};
use crate::tie_break::pick_index;
use kubestep_api::Name;

/// Looks for a node where the cycle's pod fits after evicting pods, by the rules of a plugin. The
/// status is upstream's, without the plugin's prefix.
pub fn preempt(
    rules: &dyn PreemptionRules,
    cx: &mut PostFilterContext<'_>,
    state: &CycleState,
) -> PostFilterAnswer {
    let pod = match latest(&cx.cycle) {
        Ok(pod) => pod,
        Err(status) => return status.into(),
    };
    let cycle = CycleContext { pod: &pod, ..cx.cycle };
    if let Some(reason) = rules.rejection(&cycle, state, cx.statuses) {
        return Status::unschedulable(reason).into();
    }
    if cycle.snapshot.is_empty() {
        return Status::error("no nodes available").into();
    }
    let victim_rule = rules.victim_rule(&cycle, state).map(Arc::from);
    let found = find_candidates(rules, cycle, cx, state);
    let candidates = found.candidates.iter().map(|candidate| candidate.record()).collect();
    let dry_run = Some(Arc::new(found.statuses.clone()));
    let answer = decide(found, rules, &cycle, cx);
    PostFilterAnswer { candidates, dry_run, victim_rule, ..answer }
}

/// What follows from the dry run.
fn decide(
    found: DryRun,
    rules: &dyn PreemptionRules,
    cycle: &CycleContext<'_>,
    cx: &mut PostFilterContext<'_>,
) -> PostFilterAnswer {
    if found.candidates.is_empty() {
        return no_candidates(found, cycle);
    }
    match extenders::restrict(cx, cycle, found.candidates) {
        Err(text) => Status::error(&text).into(),
        Ok(candidates) => match pick(&candidates, cycle.now) {
            Some(best) => nominate(rules, best),
            None => Status::unschedulable("no candidate node for preemption").into(),
        },
    }
}

/// The current object of the pod, which may be newer than the cycle's.
fn latest(cx: &CycleContext<'_>) -> Result<Arc<PodInfo>, Status> {
    let key = cx.pod.key();
    match cx.objects.pod(key) {
        Some(pod) if Arc::ptr_eq(pod, &cx.pod.pod) => Ok(cx.pod.clone()),
        Some(pod) => Ok(Arc::new(cx.pod.updated(pod.clone(), cx.features))),
        None => Err(Status::error(format!("pod {:?} not found", key.name))),
    }
}

/// Only nodes with the status Unschedulable can become candidates; on the others preemption can't
/// help.
fn find_candidates(
    rules: &dyn PreemptionRules,
    cycle: CycleContext<'_>,
    cx: &mut PostFilterContext<'_>,
    state: &CycleState,
) -> DryRun {
    let mut nodes = cx.statuses.with_code(Code::Unschedulable, cycle.snapshot);
    if rules.starts_anywhere() {
        let first = pick_index(cycle.random, nodes.len());
        nodes.rotate_left(first);
    }
    let budgets = DisruptionBudgets::new(cycle.objects);
    let search = VictimSearch { cx: cycle, framework: cx.framework, state, budgets: &budgets };
    let is_kept =
        rules.goes_by_priority() && budgets.is_empty() && Arc::ptr_eq(cycle.pod, cx.cycle.pod);
    dry_run(&search, rules, &nodes, cx.kept.as_deref_mut().filter(|_| is_kept))
}

/// The answer without candidates: the nomination is cleared, and the message counts the reasons.
/// Errors of the search take precedence over the reasons.
fn no_candidates(found: DryRun, cx: &CycleContext<'_>) -> PostFilterAnswer {
    if !found.errors.is_empty() {
        return Status::error(aggregate(&found.errors)).into();
    }
    let mut statuses: NodeStatuses = found.statuses;
    statuses.set_absent(Status::unresolvable("Preemption is not helpful for scheduling"));
    let message = statuses.fit_message(cx.snapshot.len());
    PostFilterAnswer { nominate: Some(Name::EMPTY), ..Status::unschedulable(&message).into() }
}

/// Several errors as one text: without duplicates, in brackets if they differ.
fn aggregate(errors: &[String]) -> String {
    let distinct: IndexSet<&str> = errors.iter().map(String::as_str).collect();
    let joined = distinct.iter().copied().collect::<Vec<_>>().join(", ");
    if distinct.len() == 1 { joined } else { format!("[{joined}]") }
}

/// The answer that nominates the node of the best candidate.
fn nominate(rules: &dyn PreemptionRules, best: &NodeVictims) -> PostFilterAnswer {
    PostFilterAnswer {
        status: Status::SUCCESS,
        nominate: Some(best.node),
        preemption: Some(Preemption {
            plugin: rules.plugin(),
            is_asynchronous: rules.is_asynchronous(),
            node: best.node,
            victims: best.pods.clone(),
            candidate: best.record(),
            message_prefix: rules.message_prefix(),
        }),
        ..PostFilterAnswer::default()
    }
}
