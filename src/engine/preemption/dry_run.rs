//! The search for candidates: nodes where evicting pods would make the pod fit.
//!
//! Upstream: `findCandidates` and `DryRunPreemption` in
//! `pkg/scheduler/framework/preemption/preemption.go`.

use crate::config::types::DefaultPreemptionArgs;
use crate::engine::framework::node_statuses::NodeStatuses;
use crate::engine::node::NodeId;
use crate::engine::preemption::NodeVictims;
use crate::engine::preemption::victims::Search;
use crate::engine::status::{Code, Status};

/// What a search over nodes found.
#[derive(Default, Debug)]
pub struct DryRun {
    /// Nodes without a violated budget, then those with one, each in node order.
    pub candidates: Vec<NodeVictims>,
    /// Why the other nodes that were looked at are none.
    pub statuses: NodeStatuses,
    /// What went wrong inside on some of them.
    pub errors: Vec<String>,
}

/// How many candidates are enough among `nodes` nodes (PR-020).
pub fn wanted_candidates(args: &DefaultPreemptionArgs, nodes: usize) -> usize {
    // Upstream computes in 32 bits and lets them wrap.
    let nodes = i32::try_from(nodes).unwrap_or(i32::MAX);
    let share = nodes.wrapping_mul(args.min_candidate_nodes_percentage) / 100;
    let wanted = share.max(args.min_candidate_nodes_absolute).min(nodes);
    usize::try_from(wanted).unwrap_or(0)
}

/// Looks at `nodes` in order until `wanted` candidates are found, at least one of them without
/// a violated budget (PR-021).
pub fn dry_run(search: &Search<'_>, nodes: &[NodeId], wanted: usize) -> DryRun {
    let mut found = DryRun::default();
    let (mut clean, mut violating) = (Vec::new(), Vec::new());
    for id in nodes {
        let Some(node) = search.cx.snapshot.get(*id) else { continue };
        let status = match search.select_victims(node) {
            Ok((pods, pdb_violations)) if !pods.is_empty() => {
                let list = if pdb_violations == 0 { &mut clean } else { &mut violating };
                if list.len() < wanted {
                    list.push(NodeVictims { node: node.name, pods, pdb_violations });
                }
                if !clean.is_empty() && clean.len() + violating.len() >= wanted {
                    break;
                }
                continue;
            }
            Ok(_) => no_victims(&node.name), // PR-022
            Err(status) => status,
        };
        if status.code() == Code::Error {
            found.errors.push(status.message());
        }
        found.statuses.set(*id, status);
    }
    found.candidates = clean;
    found.candidates.append(&mut violating);
    found
}

/// A candidate must have somebody to evict.
pub fn no_victims(node: &str) -> Status {
    Status::error(&format!("expected at least one victim pod on node {node:?}"))
}
