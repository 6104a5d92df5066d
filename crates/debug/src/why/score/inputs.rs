//! What each plugin computed its score from.

use super::{ScoreFactor, ScoredCase};
use kubestep_api::PreferredSchedulingTerm;
use kubestep_api::selector::PreferredTerms;
use kubestep_config::versions::Switch;
use kubestep_framework::resource::amount;
use kubestep_plugins::dynamic_resources::found_devices;
use kubestep_plugins::image_locality::held_images;
use kubestep_plugins::inter_pod_affinity::DomainWeights;
use kubestep_plugins::node_affinity::{NodeAffinityArgs, preferred_terms};
use kubestep_plugins::node_resources::balanced_allocation::{
    NodeResourcesBalancedAllocationArgs, balances,
};
use kubestep_plugins::node_resources::fit::{Amounts, NodeResourcesFitArgs, score_amounts};
use kubestep_plugins::pod_topology_spread::ScoreState;
use kubestep_plugins::taint_toleration::avoided_taints;

/// The untolerated PreferNoSchedule taints.
pub(super) fn taint_toleration(case: &ScoredCase<'_>) -> Vec<ScoreFactor> {
    let Some(node) = &case.node.node else { return Vec::new() };
    let taints = avoided_taints(node, case.probe.pod(), case.probe.cx().features);
    taints
        .map(|taint| ScoreFactor::new("taint", format!("{}={}", taint.key, taint.value)))
        .collect()
}

/// Each preference with its weight, and whether the node meets it.
pub(super) fn node_affinity(case: &ScoredCase<'_>) -> Vec<ScoreFactor> {
    let Some(node) = &case.node.node else { return Vec::new() };
    let args = case.probe.args().read::<NodeAffinityArgs>();
    let added = args.added_affinity.as_ref();
    let added = added
        .map_or(&[][..], |added| &added.preferred_during_scheduling_ignored_during_execution[..]);
    let input = |(at, (from, term)): (usize, (&str, &PreferredSchedulingTerm))| {
        let alone = PreferredTerms::new(std::slice::from_ref(term)).ok()?;
        let (labels, name) = (&node.metadata.labels, node.metadata.name);
        let (weight, met) = alone.verdicts(labels, name).next()?;
        let value = if met { format!("{weight}") } else { format!("0 of {weight}") };
        Some(ScoreFactor::new(format!("{from} {}", at + 1), value))
    };
    let own = preferred_terms(&case.probe.pod().pod).iter().map(|term| ("preference", term));
    let added = added.iter().map(|term| ("preference of the profile", term));
    own.enumerate().chain(added.enumerate()).filter_map(input).collect()
}

/// The allocation of each scored resource including the pod.
pub(super) fn node_resources_fit(case: &ScoredCase<'_>) -> Vec<ScoreFactor> {
    let (cx, args) = (case.probe.cx(), case.probe.args().read::<NodeResourcesFitArgs>());
    score_amounts(&cx, &args, case.node).iter().map(fit_input).collect()
}

fn fit_input(amounts: &Amounts) -> ScoreFactor {
    let show = |value| amount::of(&amounts.resource, value);
    let value = format!(
        "{} of {} with the pod, weight {}",
        show(amounts.requested),
        show(amounts.allocatable),
        amounts.weight
    );
    ScoreFactor::new(amounts.resource, value)
}

/// How NodeResourcesFit combines its inputs.
pub(super) fn fit_formula(case: &ScoredCase<'_>) -> &'static str {
    let args = case.probe.args().read::<NodeResourcesFitArgs>();
    match args.scoring_strategy.strategy.as_str() {
        "MostAllocated" => {
            "MostAllocated: mean over the resources, by weight, of 100 × requested ÷ allocatable, each \
             rounded down"
        }
        "RequestedToCapacityRatio" => {
            "RequestedToCapacityRatio: mean over the resources, by weight, of the configured curve \
             at 100 × requested ÷ allocatable, each rounded down"
        }
        _ => {
            "LeastAllocated: mean over the resources, by weight, of 100 × (allocatable − \
             requested) ÷ allocatable, each rounded down"
        }
    }
}

/// The fraction of each resource in use including the pod, and how balanced they are.
pub(super) fn node_resources_balanced_allocation(case: &ScoredCase<'_>) -> Vec<ScoreFactor> {
    let (cx, args) =
        (case.probe.cx(), case.probe.args().read::<NodeResourcesBalancedAllocationArgs>());
    let (amounts, with_pod, without) = balances(&cx, &args, case.node);
    let share = |used: i64, all: i64| (used as f64 * 100.0 / all as f64).min(100.0);
    let shares = amounts.iter().map(|amounts| {
        let without = share(amounts.allocated, amounts.allocatable);
        let with_pod = share(amounts.requested, amounts.allocatable);
        let name = format!("{} in use", amounts.resource);
        ScoreFactor::new(name, format!("{with_pod:.1}% with the pod, {without:.1}% without"))
    });
    let mut inputs: Vec<ScoreFactor> = shares.collect();
    inputs.push(ScoreFactor::new("balance with the pod", with_pod));
    if cx.features.has(Switch::BalancedAllocationGain) {
        inputs.push(ScoreFactor::new("balance without it", without));
    }
    inputs
}

/// The matching pods in the node's domains.
pub(super) fn pod_topology_spread(case: &ScoredCase<'_>) -> Vec<ScoreFactor> {
    let Some(state) = case.scored.state.read::<ScoreState>() else { return Vec::new() };
    let Some(parts) = state.parts(case.node) else {
        return vec![ScoreFactor::new("left out", "the node lacks a topology key")];
    };
    let inputs = parts.into_iter().map(|part| {
        let (pods, weight, max_skew) = (part.pods, part.weight, part.max_skew);
        let value = format!("{pods} pods × {weight:.2} + ({max_skew} − 1)");
        ScoreFactor::new(part.key, value)
    });
    inputs.collect()
}

/// What each pod contributes to the node's domains.
pub(super) fn inter_pod_affinity(case: &ScoredCase<'_>) -> Vec<ScoreFactor> {
    let Some(weights) = case.scored.state.read::<DomainWeights>() else { return Vec::new() };
    let parts = weights.parts(case.node).into_iter();
    parts.map(|(key, domain, weight)| ScoreFactor::new(format!("{key}={domain}"), weight)).collect()
}

/// The pod's images that are already on the node.
pub(super) fn image_locality(case: &ScoredCase<'_>) -> Vec<ScoreFactor> {
    let cx = case.probe.cx();
    let total = cx.snapshot.len();
    let held = held_images(&cx, case.node).into_iter().map(|(image, scaled)| {
        let (size, nodes) = (amount::bytes(image.size), image.num_nodes);
        let scaled = amount::bytes(scaled);
        ScoreFactor::new(image.name, format!("{size} × {nodes}/{total} nodes = {scaled}"))
    });
    let mut inputs: Vec<ScoreFactor> = held.collect();
    if inputs.is_empty() {
        inputs.push(ScoreFactor::new("images", "none of the pod's images is on the node"));
    }
    inputs
}

/// The devices that would be allocated to the pod's claims on the node.
pub(super) fn dynamic_resources(case: &ScoredCase<'_>) -> Vec<ScoreFactor> {
    let found = found_devices(&case.scored.state, case.node);
    found.into_iter().map(|(request, device)| ScoreFactor::new(request, device)).collect()
}
