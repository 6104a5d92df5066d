//! The spread ledger: for each constraint the domains with their matching pods, the minimum, and
//! the excluded nodes with the reasons.

use indexmap::IndexMap;
use serde::Serialize;

use super::cause::pod_topology_spread::are_of_profile;
use kubestep_api::Name;
use kubestep_api::intern::Symbol;
use kubestep_framework::node::NodeInfo;
use kubestep_plugins::pod_topology_spread::{SpreadConstraint, SpreadFilterState};
use kubestep_scheduler::what_if::Probe;

/// The most nodes that are listed by name.
const NAMED: usize = 5;

/// A hard constraint and its counts.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SpreadCounts {
    /// The node label whose values are the domains.
    pub topology_key: Symbol,
    /// Whether it is a default constraint of the profile, because the pod has none.
    pub of_profile: bool,
    /// The label selector of the pods that count, in kubectl's notation.
    pub selector: String,
    /// `maxSkew` of the constraint.
    pub max_skew: i64,
    /// With fewer domains than this, the minimum counts as 0.
    pub min_domains: i64,
    /// The minimum number of matching pods over the domains, as the plugin compares it.
    pub least: i64,
    /// Whether there are fewer domains than `minDomains`.
    pub too_few_domains: bool,
    /// 1 if the pod itself matches.
    pub own: i64,
    /// The domains in node order.
    pub domains: Vec<SpreadDomain>,
    /// Excluded nodes, which form no domain and whose pods do not count, by reason.
    pub left_out: Vec<ExcludedNodes>,
}

/// A domain of a constraint.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SpreadDomain {
    /// The value of the topology key.
    pub value: Name,
    /// The number of matching pods.
    pub count: i64,
    /// The number of nodes that count.
    pub nodes: usize,
    /// The skew if the pod were placed here.
    pub skew: i64,
}

/// Nodes that are excluded for the same reason.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExcludedNodes {
    /// Why they do not count, in words.
    pub reason: String,
    /// How many nodes, those not in `nodes` included.
    pub count: usize,
    /// At most five of them, in node order.
    pub nodes: Vec<Name>,
}

/// The ledgers of the pod's hard constraints, in the order written.
pub(super) fn ledgers(probe: &Probe) -> Vec<SpreadCounts> {
    let Some(state) = probe.state().read::<SpreadFilterState>() else { return Vec::new() };
    let places = 0..state.constraints().list.len();
    places.filter_map(|at| ledger(probe, state, at)).collect()
}

fn ledger(probe: &Probe, state: &SpreadFilterState, at: usize) -> Option<SpreadCounts> {
    let (constraint, tally) = (state.constraints().list.get(at)?, state.tally(at)?);
    let counted = state.counted_nodes(&probe.cx(), at);
    let mut domains: IndexMap<Name, SpreadDomain> = IndexMap::new();
    let mut left_out: IndexMap<String, ExcludedNodes> = IndexMap::new();
    for node in probe.snapshot().iter() {
        match (counted.contains(node.id.index()), state.count_at(at, node.id)) {
            (true, Some(count)) => {
                let value = node.label(constraint.key).unwrap_or_default();
                let skew = count + tally.own - tally.least;
                let new = SpreadDomain { value, count, nodes: 0, skew };
                domains.entry(value).or_insert(new).nodes += 1;
            }
            _ => leave_out(&mut left_out, node, why_left_out(probe, state, constraint, node)),
        }
    }
    Some(SpreadCounts {
        topology_key: constraint.key,
        of_profile: are_of_profile(&probe.pod().pod),
        selector: constraint.selector.to_string(),
        max_skew: constraint.max_skew,
        min_domains: constraint.min_domains,
        least: tally.least,
        too_few_domains: tally.too_few,
        own: tally.own,
        domains: domains.into_values().collect(),
        left_out: left_out.into_values().collect(),
    })
}

fn leave_out(left_out: &mut IndexMap<String, ExcludedNodes>, node: &NodeInfo, reason: String) {
    let new = || ExcludedNodes { reason: reason.clone(), count: 0, nodes: Vec::new() };
    let entry = left_out.entry(reason.clone()).or_insert_with(new);
    entry.count += 1;
    if entry.nodes.len() < NAMED {
        entry.nodes.push(node.name);
    }
}

fn why_left_out(
    probe: &Probe,
    state: &SpreadFilterState,
    constraint: &SpreadConstraint,
    node: &NodeInfo,
) -> String {
    let keys = state.constraints().list.iter().map(|constraint| constraint.key);
    if let Some(key) = keys.into_iter().find(|key| node.label(*key).is_none()) {
        return format!("no label {key}");
    }
    let without_taints = SpreadConstraint { honors_taints: false, ..constraint.clone() };
    let (pod, constraints) = (&probe.pod().pod, state.constraints());
    let fits =
        node.node.as_ref().is_some_and(|node| constraints.includes(&without_taints, pod, node));
    match fits {
        false => "not selected by the pod's node affinity (nodeAffinityPolicy: Honor)".to_owned(),
        true => "has a taint that the pod does not tolerate (nodeTaintsPolicy: Honor)".to_owned(),
    }
}
