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
use crate::status::Status;
use kubestep_api::intern::Symbol;

/// The candidate that a node is, or why it is none.
pub type NodeDryRun = Result<Arc<NodeVictims>, Status>;

/// The results by node, for one class of pods. Copies share them until one is changed.
#[derive(Clone, Default, Debug)]
pub struct KeptDryRuns {
    /// The nominations that they reflect.
    nominated: NominatedPods,
    /// By slot; `None` where nothing is known.
    by_slot: Arc<Vec<Option<NodeDryRun>>>,
    /// The node to which the present pod itself is nominated: its own nomination does not count.
    own: Option<Symbol>,
}

impl KeptDryRuns {
    /// Forgets what changed: `nodes`, and those with other nominated pods. To be called before each
    /// preemption.
    pub fn refresh(&mut self, nodes: &[NodeId], cx: &CycleContext<'_>) {
        let renominated = cx.nominated.changed_since(&self.nominated).into_iter();
        let renominated = renominated.filter_map(|name| cx.snapshot.by_name(name));
        let by_slot = Arc::make_mut(&mut self.by_slot);
        by_slot.resize(cx.snapshot.slots(), None);
        for node in nodes.iter().copied().chain(renominated.map(|node| node.id)) {
            by_slot.get_mut(node.index()).into_iter().for_each(|slot| *slot = None);
        }
        self.nominated = cx.nominated.clone();
        let uid = cx.pod.uid();
        let mut nominations = cx.nominated.iter();
        let own = nominations.find(|(_, pods)| pods.iter().any(|pod| pod.uid() == uid));
        self.own = own.map(|(node, _)| node);
    }

    /// What is known of a node.
    pub(super) fn get(&self, node: &NodeInfo) -> Option<&NodeDryRun> {
        let known = self.by_slot.get(node.id.index())?.as_ref();
        known.filter(|_| self.own != Some(node.name))
    }

    /// Keeps the result of a node, unless it depends on the time: a pod that has not started counts
    /// as started now.
    pub(super) fn keep(&mut self, cx: &CycleContext<'_>, node: &NodeInfo, result: &NodeDryRun) {
        let mut victims = node.pods.iter().filter(|pod| may_preempt(cx.pod, pod));
        let has_started = |start: kubestep_api::Time| start <= cx.now;
        let lasts = victims.all(|pod| pod.pod.status.start_time.is_some_and(has_started));
        if lasts
            && self.own != Some(node.name)
            && let Some(slot) = Arc::make_mut(&mut self.by_slot).get_mut(node.id.index())
        {
            *slot = Some(result.clone());
        }
    }

    /// About how many bytes it takes at most.
    pub fn bytes(&self) -> usize {
        self.by_slot.len() * (size_of::<Option<NodeDryRun>>() + size_of::<NodeVictims>())
    }
}

#[cfg(test)]
mod tests {
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
            search.select_victims(node, node.pods.clone())
        }
    }

    /// The candidates for a preemptor, and how many nodes were tried for them. The debug build
    /// tries the others too, to compare.
    fn run(
        cluster: &Cluster,
        preemptor: &Arc<PodInfo>,
        changed: &[NodeId],
        kept: &mut KeptDryRuns,
    ) -> (Vec<Symbol>, usize) {
        let (framework, rules) = (cpu_fit(), Counting::default());
        let (cx, mut state) = (cluster.cx(preemptor), CycleState::default());
        framework.run_pre_filter(&cx, &mut state);
        let budgets = DisruptionBudgets::default();
        let search = VictimSearch { cx, framework: &framework, state: &state, budgets: &budgets };
        kept.refresh(changed, &cx);
        let known = |id: &&NodeId| cx.snapshot.get(**id).is_some_and(|of| kept.get(of).is_some());
        let known = cluster.snapshot.order().iter().filter(known).count();
        let found = dry_run(&search, &rules, cluster.snapshot.order(), Some(kept));
        let compared = if cfg!(debug_assertions) { known } else { 0 };
        let candidates = found.candidates.iter().map(|candidate| candidate.node).collect();
        (candidates, rules.0.get() - compared)
    }

    fn names(names: &[&str]) -> Vec<Symbol> {
        names.iter().map(|name| Symbol::new(name)).collect()
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
        let nominated = preemptor("b");
        cluster.nominated.push("n1".into(), nominated.clone());
        let others = names(&["n2", "n3"]);
        assert_eq!(run(&cluster, &preemptor("d"), &[], &mut kept), (others.clone(), 1));
        // Its own nomination does not count, so what is known of that node is of others.
        assert_eq!(run(&cluster, &nominated, &[], &mut kept), (names(&nodes), 1));
        assert_eq!(run(&cluster, &preemptor("e"), &[], &mut kept), (others, 0));
    }

    #[test]
    fn what_depends_on_the_time_is_not_kept() {
        let cluster = Cluster::new([node("n1")], [pod("v").requests("cpu", "4").on("n1")]);
        let mut kept = KeptDryRuns::default();
        for _ in 0..2 {
            assert_eq!(run(&cluster, &preemptor("a"), &[], &mut kept), (names(&["n1"]), 1));
        }
    }
}
