//! The search for candidates: nodes where the pod would fit after evicting pods.
//!
//! Upstream: `findCandidates` and `DryRunPreemption` in
//! `pkg/scheduler/framework/preemption/preemption.go`.

use std::sync::Arc;

use crate::node::{NodeId, NodeInfo};
use crate::preemption::kept::{KeptDryRuns, KeptResult, NodeDryRun};
use crate::preemption::victims::{VictimSearch, Victims};
use crate::preemption::{NodeVictims, PreemptionRules};
use crate::status::node_statuses::NodeStatuses;
use crate::status::{Code, Status};

/// The result of a search over nodes.
#[derive(Default, Debug)]
pub struct DryRun {
    /// Nodes without a violated budget, then those with one, each in node order.
    pub candidates: Vec<Arc<NodeVictims>>,
    /// Why the other nodes that were tried are not candidates.
    pub statuses: NodeStatuses,
    /// Errors on some of the nodes.
    pub errors: Vec<String>,
}

/// Looks at `nodes` in order until there are enough candidates by the `rules`, at least one of them
/// without a violated budget. What is `kept` of a node is not looked for again.
pub fn dry_run(
    search: &VictimSearch<'_>,
    rules: &dyn PreemptionRules,
    nodes: &[NodeId],
    mut kept: Option<&mut KeptDryRuns>,
) -> DryRun {
    let wanted = rules.candidates(nodes.len());
    let mut found = DryRun::default();
    let (mut clean, mut violating) = (Vec::new(), Vec::new());
    let mut numbers = Vec::new();
    for id in nodes {
        let result = match kept.as_deref().and_then(|kept| kept.get(*id)) {
            Some(KeptResult::Failure(at, status)) => {
                debug_assert!(is_as_tried(search, rules, *id, &Err(status.clone())), "{id:?}");
                let number = number_of(&mut numbers, at, || found.statuses.number_of(status));
                found.statuses.set_number(*id, number);
                continue;
            }
            Some(KeptResult::Candidate(candidate)) => {
                let result = Ok(candidate.clone());
                debug_assert!(is_as_tried(search, rules, *id, &result), "{id:?}");
                result
            }
            None => {
                let Some(node) = search.cx.snapshot.get(*id) else { continue };
                let result = tried(search, rules, node);
                if let Some(kept) = kept.as_deref_mut() {
                    kept.keep(&search.cx, node, &result);
                }
                result
            }
        };
        match result {
            Ok(candidate) => {
                let keeps_budgets = candidate.pdb_violations == 0;
                let list = if keeps_budgets { &mut clean } else { &mut violating };
                if list.len() < wanted {
                    list.push(candidate);
                }
                if !clean.is_empty() && clean.len() + violating.len() >= wanted {
                    break;
                }
            }
            Err(status) => {
                if status.code() == Code::Error {
                    found.errors.push(status.message());
                }
                found.statuses.set(*id, status);
            }
        }
    }
    found.candidates = clean;
    found.candidates.append(&mut violating);
    found
}

/// The number of a kept failure among the statuses of a search, by its index among those kept.
fn number_of(numbers: &mut Vec<u16>, at: usize, new: impl FnOnce() -> u16) -> u16 {
    if numbers.len() <= at {
        numbers.resize(at + 1, 0);
    }
    if numbers[at] == 0 {
        numbers[at] = new();
    }
    numbers[at]
}

fn tried(search: &VictimSearch<'_>, rules: &dyn PreemptionRules, node: &NodeInfo) -> NodeDryRun {
    let Victims { pods, pdb_violations, reasons } = rules.select_victims(search, node)?;
    match pods.is_empty() {
        true => Err(no_victims(&node.name.text())),
        false => Ok(Arc::new(NodeVictims { node: node.name, pods, pdb_violations, reasons })),
    }
}

/// Whether trying gives the same.
fn is_as_tried(
    search: &VictimSearch<'_>,
    rules: &dyn PreemptionRules,
    id: NodeId,
    known: &NodeDryRun,
) -> bool {
    search.cx.snapshot.get(id).is_some_and(|node| tried(search, rules, node) == *known)
}

/// The status of a candidate without victims, which is an error.
pub(crate) fn no_victims(node: &str) -> Status {
    Status::error(format!("expected at least one victim pod on node {node:?}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cycle_state::CycleState;
    use crate::preemption::budgets::DisruptionBudgets;
    use crate::registry::Registry;
    use crate::testing::{Cluster, PodBuilder, cpu_fit, framework_of, info, node, object, pod};
    use kubestep_api::intern::Symbol;

    /// The default rules, with this number of candidates.
    struct Wanted(usize);

    impl PreemptionRules for Wanted {
        fn plugin(&self) -> Symbol {
            Symbol::EMPTY
        }
        fn candidates(&self, _: usize) -> usize {
            self.0
        }
    }

    /// Five full nodes; on those in `guarded` the victim has a budget that allows nothing. The
    /// candidates for `wanted`, with their violations.
    fn run(guarded: &[&str], wanted: usize) -> (Vec<(String, i64)>, DryRun) {
        let nodes = ["n1", "n2", "n3", "n4", "n5"];
        let victim = |name: &&str| {
            let victim = pod(&format!("on-{name}")).requests("cpu", "4").on(name);
            if guarded.contains(name) { victim.label("app", "web") } else { victim }
        };
        let cluster = Cluster::new(nodes.map(node), nodes.iter().map(victim)).with(object(json!({
            "kind": "PodDisruptionBudget", "metadata": {"name": "b", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}},
        })));
        let preemptor = info(pod("p").priority(1).requests("cpu", "1"));
        let framework = cpu_fit();
        let (cx, mut state) = (cluster.cx(&preemptor), CycleState::default());
        framework.run_pre_filter(&cx, &mut state);
        let budgets = DisruptionBudgets::new(cx.objects);
        let search = VictimSearch { cx, framework: &framework, state: &state, budgets: &budgets };
        let found = dry_run(&search, &Wanted(wanted), cluster.snapshot.order(), None);
        let named =
            |candidate: &Arc<NodeVictims>| (candidate.node.to_string(), candidate.pdb_violations);
        (found.candidates.iter().map(named).collect(), found)
    }

    fn named(candidates: &[(&str, i64)]) -> Vec<(String, i64)> {
        candidates.iter().map(|(node, violations)| (node.to_string(), *violations)).collect()
    }

    #[test]
    fn the_search_ends_with_enough_candidates() {
        assert_eq!(run(&[], 2).0, named(&[("n1", 0), ("n2", 0)]));
        // Candidates without a violation come first, in any order of nodes.
        let (candidates, _) = run(&["n1", "n3"], 4);
        assert_eq!(candidates, named(&[("n2", 0), ("n4", 0), ("n1", 1), ("n3", 1)]));
    }

    #[test]
    fn at_least_one_candidate_keeps_the_budgets() {
        let (candidates, _) = run(&["n1", "n2", "n3"], 2);
        assert_eq!(candidates, named(&[("n4", 0), ("n1", 1), ("n2", 1)]));
        let (candidates, found) = run(&["n1", "n2", "n3", "n4", "n5"], 1);
        assert_eq!(candidates, named(&[("n1", 1)]));
        assert!(found.statuses.is_empty() && found.errors.is_empty());
    }

    #[test]
    fn a_node_where_nobody_has_to_go_is_an_error() {
        let cluster = Cluster::new([node("n1")], [pod("v").on("n1")]);
        let preemptor = info(pod("p").priority(1));
        let framework = framework_of(&Registry::default());
        let (cx, state, budgets) =
            (cluster.cx(&preemptor), CycleState::default(), DisruptionBudgets::default());
        let search = VictimSearch { cx, framework: &framework, state: &state, budgets: &budgets };
        let found = dry_run(&search, &Wanted(1), cluster.snapshot.order(), None);
        assert_eq!(found.errors, ["expected at least one victim pod on node \"n1\""]);
        assert_eq!(found.statuses.get(NodeId(0)).code(), Code::Error);
    }
}
