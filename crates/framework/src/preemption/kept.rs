//! What the dry run found on each node, kept from preemption to preemption of pods that are alike.
//!
//! The victims on a node depend on the node, on the pods nominated to it, and on what the filter
//! plugins look at in the pod, where a plugin preempts by priority alone
//! ([`PreemptionRules::goes_by_priority`](super::PreemptionRules::goes_by_priority)) and no
//! disruption budget counts. They are then looked for again only where one of these changed.

use std::sync::Arc;

use crate::node::{NodeId, NodeInfo};
use crate::plugin::CycleContext;
use crate::pod::nominated::NominatedPods;
use crate::preemption::NodeVictims;
use crate::preemption::eligibility::may_preempt;
use crate::status::{Code, Status};

/// The candidate that a node is, or why it is none.
pub type NodeDryRun = Result<Arc<NodeVictims>, Status>;

/// The most distinct failures of a class that are kept; with more, everything is looked for again.
const FAILURES: usize = 1_024;

/// What is known of a node; a failure by its index.
#[derive(Clone, Debug)]
enum Known {
    Nothing,
    Candidate(Arc<NodeVictims>),
    Failure(u32),
}

/// The results by node, for one class of pods that are not nominated themselves. Copies share them
/// until one is changed.
#[derive(Clone, Default, Debug)]
pub struct KeptDryRuns {
    /// The nominations that they reflect.
    nominated: NominatedPods,
    by_slot: Arc<Vec<Known>>,
    /// Why nodes are not candidates: mostly a few statuses, each once.
    failures: Vec<Status>,
}

/// What is known of a node: a failure with its index among those that are kept.
pub(super) enum KeptResult<'a> {
    Candidate(&'a Arc<NodeVictims>),
    Failure(usize, &'a Status),
}

impl KeptDryRuns {
    /// Forgets what changed: `nodes`, and those with other nominated pods. To be called before each
    /// preemption.
    pub fn refresh(&mut self, nodes: &[NodeId], cx: &CycleContext<'_>) {
        if self.failures.len() > FAILURES {
            *self = KeptDryRuns::default();
        }
        let renominated = cx.nominated.changed_since(&self.nominated).into_iter();
        let renominated = renominated.filter_map(|name| cx.snapshot.by_name(name));
        let by_slot = Arc::make_mut(&mut self.by_slot);
        by_slot.resize(cx.snapshot.slots(), Known::Nothing);
        for node in nodes.iter().copied().chain(renominated.map(|node| node.id)) {
            by_slot.get_mut(node.index()).into_iter().for_each(|slot| *slot = Known::Nothing);
        }
        self.nominated = cx.nominated.clone();
    }

    /// What is known of a node.
    pub(super) fn get(&self, node: NodeId) -> Option<KeptResult<'_>> {
        match self.by_slot.get(node.index())? {
            Known::Nothing => None,
            Known::Candidate(candidate) => Some(KeptResult::Candidate(candidate)),
            Known::Failure(at) => {
                let at = *at as usize;
                Some(KeptResult::Failure(at, self.failures.get(at)?))
            }
        }
    }

    /// Keeps the result of a node, unless it is an error or may depend on the time: a pod that has
    /// not started counts as started now, so only one that started before now stays older.
    pub(super) fn keep(&mut self, cx: &CycleContext<'_>, node: &NodeInfo, result: &NodeDryRun) {
        let mut victims = node.pods.iter().filter(|pod| may_preempt(cx.pod, pod));
        if victims.any(|pod| pod.pod.status.start_time.is_some_and(|start| start >= cx.now)) {
            return;
        }
        let known = match result {
            Ok(candidate) => Known::Candidate(candidate.clone()),
            Err(status) if status.code() == Code::Error => return,
            Err(status) => Known::Failure(self.index_of(status)),
        };
        if let Some(slot) = Arc::make_mut(&mut self.by_slot).get_mut(node.id.index()) {
            *slot = known;
        }
    }

    fn index_of(&mut self, failure: &Status) -> u32 {
        let known = self.failures.iter().position(|known| known == failure);
        let at = known.unwrap_or_else(|| {
            self.failures.push(failure.clone());
            self.failures.len() - 1
        });
        at as u32
    }

    /// About how many bytes it takes at most.
    pub fn bytes(&self) -> usize {
        self.by_slot.len() * (size_of::<Known>() + size_of::<NodeVictims>())
    }
}

#[cfg(test)]
mod tests {
    use kubestep_api::Name;
    use std::cell::Cell;

    use super::*;
    use crate::cycle_state::CycleState;
    use crate::pod::PodInfo;
    use crate::preemption::PreemptionRules;
    use crate::preemption::budgets::DisruptionBudgets;
    use crate::preemption::dry_run::dry_run;
    use crate::preemption::victims::{VictimSearch, Victims};
    use crate::testing::{Cluster, PodBuilder, cpu_fit, info, node, pod};
    use kubestep_api::Time;
    use kubestep_api::intern::Symbol;

    /// The default rules, which count the nodes that are tried.
    #[derive(Default)]
    struct Counting(Cell<usize>);

    impl PreemptionRules for Counting {
        fn plugin(&self) -> Symbol {
            Symbol::EMPTY
        }
        fn candidates(&self, nodes: usize) -> usize {
            nodes
        }
        fn select_victims(
            &self,
            search: &VictimSearch<'_>,
            node: &NodeInfo,
        ) -> Result<Victims, Status> {
            self.0.set(self.0.get() + 1);
            search.select_victims(node, node.pods.iter().cloned().collect())
        }
    }

    /// The candidates for a preemptor, and how many nodes were tried for them. The debug build
    /// tries the others too, to compare.
    fn run(
        cluster: &Cluster,
        preemptor: &Arc<PodInfo>,
        changed: &[NodeId],
        kept: &mut KeptDryRuns,
    ) -> (Vec<Name>, usize) {
        let (framework, rules) = (cpu_fit(), Counting::default());
        let (cx, mut state) = (cluster.cx(preemptor), CycleState::default());
        framework.run_pre_filter(&cx, &mut state);
        let budgets = DisruptionBudgets::default();
        let search = VictimSearch { cx, framework: &framework, state: &state, budgets: &budgets };
        kept.refresh(changed, &cx);
        let order = cluster.snapshot.order().iter();
        let known = order.filter(|id| kept.get(**id).is_some()).count();
        let found = dry_run(&search, &rules, cluster.snapshot.order(), Some(kept));
        let compared = if cfg!(debug_assertions) { known } else { 0 };
        let candidates = found.candidates.iter().map(|candidate| candidate.node).collect();
        (candidates, rules.0.get() - compared)
    }

    fn names(names: &[&str]) -> Vec<Name> {
        names.iter().map(|name| Name::new(name)).collect()
    }

    fn preemptor(name: &str) -> Arc<PodInfo> {
        info(pod(name).priority(1).requests("cpu", "3"))
    }

    #[test]
    fn only_nodes_that_changed_are_tried_again() {
        let victim = |on: &str| pod(&format!("on-{on}")).requests("cpu", "4").on(on).started(1);
        let nodes = ["n1", "n2", "n3"];
        let mut cluster = Cluster::new(nodes.map(node), nodes.map(victim));
        cluster.now = Time(5_000_000);
        let mut kept = KeptDryRuns::default();
        assert_eq!(run(&cluster, &preemptor("a"), &[], &mut kept), (names(&nodes), 3));
        assert_eq!(run(&cluster, &preemptor("b"), &[], &mut kept), (names(&nodes), 0));
        assert_eq!(run(&cluster, &preemptor("c"), &[NodeId(1)], &mut kept), (names(&nodes), 1));
        cluster.nominated.push("n1".into(), preemptor("b"));
        let others = names(&["n2", "n3"]);
        assert_eq!(run(&cluster, &preemptor("d"), &[], &mut kept), (others.clone(), 1));
        assert_eq!(run(&cluster, &preemptor("e"), &[], &mut kept), (others, 0));
        cluster.nominated.remove("n1".into(), 0);
        assert_eq!(run(&cluster, &preemptor("f"), &[], &mut kept), (names(&nodes), 1));
    }

    #[test]
    fn what_depends_on_the_time_is_not_kept() {
        let victim = || pod("v").requests("cpu", "4").on("n1");
        // Which of two pods is older changes when a start time in the future has come.
        for (victim, tried) in [(victim(), 0), (victim().started(4), 0), (victim().started(5), 1)] {
            let mut cluster = Cluster::new([node("n1")], [victim]);
            cluster.now = Time(5_000_000);
            let mut kept = KeptDryRuns::default();
            assert_eq!(run(&cluster, &preemptor("a"), &[], &mut kept), (names(&["n1"]), 1));
            assert_eq!(run(&cluster, &preemptor("b"), &[], &mut kept), (names(&["n1"]), tried));
        }
    }

    #[test]
    fn of_too_many_failures_none_is_kept() {
        let mut cluster = Cluster::new([node("n1")], [pod("v").priority(1).on("n1")]);
        cluster.now = Time(5_000_000);
        let (preemptor, mut kept) = (preemptor("a"), KeptDryRuns::default());
        let cx = cluster.cx(&preemptor);
        kept.refresh(&[], &cx);
        for number in 0..=FAILURES {
            let failure = Status::unschedulable(&format!("failure {number}"));
            kept.keep(&cx, cluster.node("n1"), &Err(failure));
        }
        assert!(kept.get(NodeId(0)).is_some());
        kept.refresh(&[], &cx);
        assert!(kept.get(NodeId(0)).is_none() && kept.failures.is_empty());
    }
}
