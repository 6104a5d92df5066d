//! Score: how good the alternatives are that were taken of requests with several (DRA-024).

use std::collections::BTreeSet;

use crate::api::{AllocationResult, ResourceClaim};
use crate::engine::status::Status;
use crate::intern::Symbol;

use super::state::ClaimState;

/// The most alternatives that a request can have.
const MAX_ALTERNATIVES: i64 = 8;

/// The score of a node: 8 for each first alternative that was taken, 7 for each second…
///
/// # Errors
/// Filter found less for the node than there is to allocate.
pub fn score(state: &ClaimState, node: Symbol) -> Result<i64, Status> {
    let Some(found) = state.allocation_on(node) else { return Ok(0) };
    let mut new = found.results.iter();
    let mut score = 0;
    for claim in &state.claims {
        let allocation = claim.claim.status.allocation.as_ref().or_else(|| new.next());
        let Some(allocation) = allocation else {
            let count = found.results.len();
            return Err(Status::error(&format!(
                "number of allocations {count} is smaller than number of claims needing allocation"
            )));
        };
        score += score_claim(&claim.claim, allocation);
    }
    Ok(score)
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
