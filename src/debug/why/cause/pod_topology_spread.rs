//! PodTopologySpread: the constraint, the node's domain and its skew. The ledger of all domains
//! is told once for the pod, not for every node.

use serde::Serialize;

use super::{Case, Cause, Outlook, Words};
use crate::engine::plugins::pod_topology_spread::FilterState;
use crate::intern::Symbol;

/// A constraint that the pod would break on the node.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SpreadCause {
    /// Which constraint: its place among the ledgers of the answer.
    pub constraint: usize,
    /// The node label whose values are the domains.
    pub topology_key: Symbol,
    /// The arithmetic; absent if the node lacks that label.
    pub skew: Option<Skew>,
}

/// The arithmetic of a skew.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Skew {
    /// The node's domain.
    pub domain: Symbol,
    /// Matching pods there.
    pub count: i64,
    /// 1 if the pod itself matches.
    pub own: i64,
    /// The least number of matching pods in any domain, as it is compared.
    pub least: i64,
    /// Whether that is 0 because there are fewer domains than `minDomains`.
    pub too_few_domains: bool,
    /// `count + own − least`.
    pub skew: i64,
    /// How much it may be.
    pub max_skew: i64,
}

impl Words for SpreadCause {
    fn gist(&self) -> String {
        match self.skew {
            Some(_) => format!("spread over {} would be too uneven", self.topology_key),
            None => format!("the node has no {}, which the spread goes by", self.topology_key),
        }
    }

    fn words(&self) -> String {
        let Some(skew) = self.skew else { return self.gist() };
        let Skew { domain, count, own, least, max_skew, .. } = skew;
        let least_of = match skew.too_few_domains {
            true => format!("{least} least (fewer domains than minDomains)"),
            false => format!("{least} least"),
        };
        format!(
            "spread over {}: {domain} has {count} + {own} for the pod − {least_of} = {} skew, \
             at most {max_skew}",
            self.topology_key, skew.skew
        )
    }
}

pub(super) fn explain(case: &Case<'_>) -> Vec<Cause> {
    let Some(state) = case.state.read::<FilterState>() else { return Vec::new() };
    let places = 0..state.constraints().list.len();
    places.filter_map(|at| cause(case, state, at)).collect()
}

fn cause(case: &Case<'_>, state: &FilterState, at: usize) -> Option<Cause> {
    let constraint = state.constraints().list.get(at)?;
    let (topology_key, max_skew) = (constraint.key, constraint.max_skew);
    let Some(count) = state.count_at(at, case.node.id) else {
        let cause = SpreadCause { constraint: at, topology_key, skew: None };
        return Some(Cause::new(cause, 1.0, Outlook::Never));
    };
    let tally = state.tally(at)?;
    let skew = count + tally.own - tally.least;
    if skew <= max_skew {
        return None;
    }
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
    let cause = SpreadCause { constraint: at, topology_key, skew: Some(skew) };
    Some(Cause::new(cause, missing, Outlook::Cluster))
}
