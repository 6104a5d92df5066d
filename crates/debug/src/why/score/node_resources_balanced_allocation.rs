//! NodeResourcesBalancedAllocation: the fraction of each resource in use including the pod, and how
//! balanced they are.

use super::{Case, Input};
use kubestep_config::versions::Switch;
use kubestep_plugins::node_resources::balanced_allocation::balances;

pub(super) fn inputs(case: &Case<'_>) -> Vec<Input> {
    let (cx, args) = (case.probe.cx(), case.probe.args().of());
    let (amounts, with_pod, without) = balances(&cx, &args, case.node);
    let share = |used: i64, all: i64| (used as f64 * 100.0 / all as f64).min(100.0);
    let shares = amounts.iter().map(|amounts| {
        let without = share(amounts.allocated, amounts.allocatable);
        let with_pod = share(amounts.requested, amounts.allocatable);
        let name = format!("{} in use", amounts.resource);
        Input::new(name, format!("{with_pod:.1}% with the pod, {without:.1}% without"))
    });
    let mut inputs: Vec<Input> = shares.collect();
    inputs.push(Input::new("balance with the pod", with_pod));
    if cx.features.has(Switch::BalancedAllocationGain) {
        inputs.push(Input::new("balance without it", without));
    }
    inputs
}
