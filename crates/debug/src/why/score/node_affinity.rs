//! NodeAffinity: each preference with its weight, and whether the node meets it.

use super::{Case, Input};
use kubestep_api::PreferredSchedulingTerm;
use kubestep_api::selector::PreferredTerms;
use kubestep_plugins::node_affinity::{NodeAffinityArgs, preferred_terms};

pub(super) fn inputs(case: &Case<'_>) -> Vec<Input> {
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
        Some(Input::new(format!("{from} {}", at + 1), value))
    };
    let own = preferred_terms(&case.probe.pod().pod).iter().map(|term| ("preference", term));
    let added = added.iter().map(|term| ("preference of the profile", term));
    own.enumerate().chain(added.enumerate()).filter_map(input).collect()
}
