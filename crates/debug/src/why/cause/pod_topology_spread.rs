//! PodTopologySpread: the constraint, the node's domain and its skew. The ledger of all domains is
//! part of the pod's answer, not of every node's.

use serde::Serialize;

use super::{Cause, CauseText, Outlook, RejectedCase};
use kubestep_api::intern::Symbol;
use kubestep_api::words;
use kubestep_api::{Name, Pod};
use kubestep_plugins::pod_topology_spread::{SpreadFilterState, SpreadReason};

/// A constraint that the pod would violate on the node.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SpreadCause {
    /// The index of the constraint among the ledgers of the answer.
    pub constraint: usize,
    /// The node label whose values are the domains.
    pub topology_key: Symbol,
    /// Whether it is a default constraint of the profile, because the pod has none.
    pub of_profile: bool,
    /// The arithmetic; `None` if the node lacks the label.
    pub skew: Option<Skew>,
}

/// The arithmetic of a skew.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Skew {
    /// The node's value of the constraint's topology key.
    pub domain: Name,
    /// The number of matching pods in it.
    pub count: i64,
    /// 1 if the pod itself matches.
    pub own: i64,
    /// The minimum number of matching pods over the domains, as the plugin compares it.
    pub least: i64,
    /// Whether the minimum is 0 because there are fewer domains than `minDomains`.
    pub too_few_domains: bool,
    /// `count + own − least`.
    pub skew: i64,
    /// `maxSkew` of the constraint; the node is rejected if `skew` is greater.
    pub max_skew: i64,
}

impl CauseText for SpreadCause {
    fn gist(&self) -> String {
        let (key, constraint) = (self.topology_key, self.describe_constraint());
        match self.skew {
            Some(_) => format!("{constraint} over {key} would exceed maxSkew"),
            None => format!("{constraint} over {key}: the node has no such label"),
        }
    }

    fn text(&self) -> String {
        let Some(skew) = self.skew else { return self.gist() };
        format!(
            "{} over {}: skew would be {}, maxSkew is {} ({})",
            self.describe_constraint(),
            self.topology_key,
            skew.skew,
            skew.max_skew,
            skew.counts()
        )
    }
}

impl Skew {
    /// `zone-a has 1 pod, with this pod 2; the smallest count is 0`.
    fn counts(&self) -> String {
        let pods = words::count(usize::try_from(self.count).unwrap_or(0), "pod");
        let with = match self.own {
            0 => "this pod does not count".to_owned(),
            own => format!("with this pod {}", self.count + own),
        };
        let few = if self.too_few_domains { ", for fewer domains than minDomains" } else { "" };
        format!("{} has {pods}, {with}; the smallest count is {}{few}", self.domain, self.least)
    }
}

impl SpreadCause {
    fn describe_constraint(&self) -> &'static str {
        if self.of_profile { "the profile's default spread" } else { "spread" }
    }
}

/// Whether the constraints are the profile's defaults: they apply only to a pod without constraints
/// of its own, hard or soft.
pub(in crate::why) fn are_of_profile(pod: &Pod) -> bool {
    pod.spec.topology_spread_constraints.is_empty()
}

pub(super) fn explain(case: &RejectedCase<'_>) -> Vec<Cause> {
    let Some(state) = case.state.read::<SpreadFilterState>() else { return Vec::new() };
    let reasons = state.reasons(case.node.id);
    reasons.filter_map(|(at, reason)| cause(case, state, at, reason)).collect()
}

fn cause(
    case: &RejectedCase<'_>,
    state: &SpreadFilterState,
    at: usize,
    reason: SpreadReason,
) -> Option<Cause> {
    let constraint = state.constraints().list.get(at)?;
    let (topology_key, max_skew) = (constraint.key, constraint.max_skew);
    let of_profile = are_of_profile(&case.probe.pod().pod);
    if reason == SpreadReason::NoLabel {
        let cause = SpreadCause { constraint: at, topology_key, of_profile, skew: None };
        return Some(Cause::new(cause, 1.0, Outlook::Mismatch));
    }
    let (count, tally) = (state.count_at(at, case.node.id)?, state.tally(at)?);
    let skew = count + tally.own - tally.least;
    let skew = Skew {
        domain: case.node.label(topology_key).unwrap_or_default(),
        count,
        own: tally.own,
        least: tally.least,
        too_few_domains: tally.too_few,
        skew,
        max_skew,
    };
    let missing = (skew.skew - max_skew) as f64;
    let cause = SpreadCause { constraint: at, topology_key, of_profile, skew: Some(skew) };
    Some(Cause::new(cause, missing, Outlook::Cluster))
}
