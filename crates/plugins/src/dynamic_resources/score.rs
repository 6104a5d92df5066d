//! Score: prefers nodes where earlier alternatives of prioritized lists were allocated.

use std::collections::BTreeSet;

use kubestep_api::intern::Symbol;
use kubestep_api::{AllocationResult, ResourceClaim};
use kubestep_framework::node::NodeInfo;
use kubestep_framework::status::Status;

use super::filter;
use super::state::{ClaimOfPod, ClaimState};

/// The maximum number of alternatives in a request.
const MAX_ALTERNATIVES: i64 = 8;

/// The score of a node: 8 for each allocated first alternative, 7 for each second… Unless
/// `knows_allocated`, all claims count as allocated in this cycle.
///
/// # Errors
/// Filter stored fewer allocations for the node than there are claims to allocate.
pub fn score(state: &ClaimState, node: &NodeInfo, knows_allocated: bool) -> Result<i64, Status> {
    let Some(found) = filter::allocation_on(state, node) else { return Ok(0) };
    let mut new = found.results.iter();
    let mut score = 0;
    for claim in &state.claims {
        let before = claim.claim.status.allocation.as_ref().filter(|_| knows_allocated);
        let Some(allocation) = before.or_else(|| new.next()) else {
            return Err(too_few(found.results.len(), knows_allocated));
        };
        score += score_claim(&claim.claim, allocation);
    }
    Ok(score)
}

/// Whether all scores are 0: Filter allocated all claims on each node, and no request of theirs has
/// alternatives.
pub(super) fn are_zero(state: &ClaimState) -> bool {
    let has_list = |claim: &ClaimOfPod| {
        claim.claim.spec.devices.requests.iter().any(|request| request.exactly.is_none())
    };
    state.found().at_once && !state.claims.iter().any(has_list)
}

fn too_few(count: usize, knows_allocated: bool) -> Status {
    let needing = if knows_allocated { " needing allocation" } else { "" };
    Status::error(format!(
        "number of allocations {count} is smaller than number of claims{needing}"
    ))
}

fn score_claim(claim: &ResourceClaim, allocation: &AllocationResult) -> i64 {
    let results = &allocation.devices.results;
    let taken: BTreeSet<Symbol> = results.iter().map(|result| result.request).collect();
    let lists = claim.spec.devices.requests.iter().filter(|request| request.exactly.is_none());
    let mut score = 0;
    for request in lists {
        for (rank, sub) in (0..).zip(&request.first_available) {
            let name = Symbol::new(&format!("{}/{}", request.name, sub.name));
            score += if taken.contains(&name) { MAX_ALTERNATIVES - rank } else { 0 };
        }
    }
    score
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::dynamic_resources::state::{ClaimOfPod, NodeAllocation};
    use kubestep_framework::node::NodeId;

    /// A claim with prioritized lists of these names, each with two alternatives.
    fn claim(lists: &[&str], allocated: &[&str]) -> ClaimOfPod {
        let alternatives = json!([{"name": "a"}, {"name": "b"}]);
        let requests: Vec<Value> = lists
            .iter()
            .map(|name| json!({"name": name, "firstAvailable": alternatives}))
            .chain([json!({"name": "plain", "exactly": {}})])
            .collect();
        let mut claim = json!({"spec": {"devices": {"requests": requests}}});
        if !allocated.is_empty() {
            claim["status"]["allocation"] = allocation(allocated);
        }
        ClaimOfPod::new(Arc::new(serde_json::from_value(claim).unwrap()))
    }

    fn allocation(requests: &[&str]) -> Value {
        let results: Vec<Value> = requests.iter().map(|name| json!({"request": name})).collect();
        json!({"devices": {"results": results}})
    }

    fn node(name: &str) -> NodeInfo {
        NodeInfo::new(NodeId(0), name.into())
    }

    fn state(claims: Vec<ClaimOfPod>, found: &[&[&str]]) -> ClaimState {
        let mut state = ClaimState::default();
        state.claims = claims;
        let result = |requests: &&[&str]| serde_json::from_value(allocation(requests)).unwrap();
        let results = Arc::new(found.iter().map(result).collect());
        let found = NodeAllocation { results, ..NodeAllocation::default() };
        state.found().allocations.insert("n".into(), Arc::new(found));
        state
    }

    #[test]
    fn earlier_alternatives_count_more_each_once() {
        let score =
            |claims, found: &[&[&str]]| super::score(&state(claims, found), &node("n"), true);
        assert_eq!(score(vec![claim(&["x"], &[])], &[&["plain"]]), Ok(0));
        assert_eq!(score(vec![claim(&["x"], &[])], &[&["x/a", "x/a"]]), Ok(8));
        assert_eq!(score(vec![claim(&["x", "y"], &[])], &[&["x/b", "y/a"]]), Ok(15));
        let both = vec![claim(&["x"], &[]), claim(&["y"], &["y/b"])];
        assert_eq!(score(both, &[&["x/b"]]), Ok(14));
    }

    #[test]
    fn a_node_without_allocation_scores_nothing_and_too_few_are_an_error() {
        let claims = vec![claim(&["x"], &[]), claim(&["y"], &[])];
        let state = state(claims, &[&["x/a"]]);
        assert_eq!(score(&state, &node("other"), true), Ok(0));
        assert_eq!(
            score(&state, &node("n"), true).unwrap_err().message(),
            "number of allocations 1 is smaller than number of claims needing allocation"
        );
    }

    #[test]
    fn older_patch_releases_take_every_claim_for_a_new_one() {
        let both = || vec![claim(&["x"], &["x/a"]), claim(&["y"], &[])];
        let found = state(both(), &[&["y/b"]]);
        assert_eq!(score(&found, &node("n"), true), Ok(8 + 7));
        assert_eq!(
            score(&found, &node("n"), false).unwrap_err().message(),
            "number of allocations 1 is smaller than number of claims"
        );
    }
}
