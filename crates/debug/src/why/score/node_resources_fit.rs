//! NodeResourcesFit: the allocation of each scored resource including the pod.

use super::{Case, Input};
use kubestep_framework::resource::amount;
use kubestep_plugins::node_resources::fit::{Amounts, NodeResourcesFitArgs, score_amounts};

pub(super) fn inputs(case: &Case<'_>) -> Vec<Input> {
    let (cx, args) = (case.probe.cx(), case.probe.args().read::<NodeResourcesFitArgs>());
    score_amounts(&cx, &args, case.node).iter().map(input).collect()
}

fn input(amounts: &Amounts) -> Input {
    let show = |value| amount::of(&amounts.resource, value);
    let value = format!(
        "{} of {} with the pod, weight {}",
        show(amounts.requested),
        show(amounts.allocatable),
        amounts.weight
    );
    Input::new(amounts.resource, value)
}

pub(super) fn formula(case: &Case<'_>) -> &'static str {
    let args = case.probe.args().read::<NodeResourcesFitArgs>();
    match args.scoring_strategy.strategy.as_str() {
        "MostAllocated" => {
            "MostAllocated: mean over the resources, by weight, of 100 × requested ÷ allocatable"
        }
        "RequestedToCapacityRatio" => {
            "RequestedToCapacityRatio: mean over the resources, by weight, of the configured curve \
             at 100 × requested ÷ allocatable"
        }
        _ => {
            "LeastAllocated: mean over the resources, by weight, of 100 × (allocatable − \
             requested) ÷ allocatable"
        }
    }
}
