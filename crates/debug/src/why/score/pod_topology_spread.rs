//! PodTopologySpread: the matching pods in the node's domains.

use super::{Case, Input};
use kubestep_plugins::pod_topology_spread::ScoreState;

pub(super) fn inputs(case: &Case<'_>) -> Vec<Input> {
    let Some(state) = case.scored.state.read::<ScoreState>() else { return Vec::new() };
    let Some(parts) = state.parts(case.node) else {
        return vec![Input::new("left out", "the node lacks a topology key")];
    };
    let inputs = parts.into_iter().map(|part| {
        let (pods, weight, max_skew) = (part.pods, part.weight, part.max_skew);
        let value = format!("{pods} pods × {weight:.2} + ({max_skew} − 1)");
        Input::new(part.key, value)
    });
    inputs.collect()
}
