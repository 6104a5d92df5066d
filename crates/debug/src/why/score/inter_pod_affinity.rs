//! InterPodAffinity: what each pod contributes to the node's domains.

use super::{Case, Input};
use kubestep_plugins::inter_pod_affinity::Weights;

pub(super) fn inputs(case: &Case<'_>) -> Vec<Input> {
    let Some(weights) = case.scored.state.read::<Weights>() else { return Vec::new() };
    let parts = weights.parts(case.node).into_iter();
    parts.map(|(key, domain, weight)| Input::new(format!("{key}={domain}"), weight)).collect()
}
