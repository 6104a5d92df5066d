//! Which pods to evict on one node: remove all pods of lower priority, check whether the pod fits,
//! and put back as many as possible, the most important first.
//!
//! Upstream: `SelectVictimsOnNode` in
//! `pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go`, `MoreImportantPod` in
//! `pkg/scheduler/util/utils.go`.

use std::sync::Arc;

use crate::cycle_state::CycleState;
use crate::go_sort;
use crate::node::NodeInfo;
use crate::plugin::{CycleContext, Handle};
use crate::pod::PodInfo;
use crate::preemption::budgets::DisruptionBudgets;
use crate::status::Status;
use kubestep_api::Time;

/// When a pod started; `now` for one that has not.
pub fn start_time(pod: &PodInfo, now: Time) -> Time {
    pod.pod.status.start_time.unwrap_or(now)
}

/// Whether `a` is more important than `b`: it has a higher priority, or started earlier.
pub fn is_more_important(a: &PodInfo, b: &PodInfo, now: Time) -> bool {
    let (first, second) = (a.priority(), b.priority());
    first > second || (first == second && is_older(a, b, now))
}

/// Whether `a` started before `b`. Upstream reads the clock once for each pod that has not started,
/// and first for `a`: of two such pods, the first argument is always the older.
fn is_older(a: &PodInfo, b: &PodInfo, now: Time) -> bool {
    let neither = a.pod.status.start_time.is_none() && b.pod.status.start_time.is_none();
    neither || start_time(a, now) < start_time(b, now)
}

/// What a search needs on every node.
#[derive(Clone, Copy)]
pub struct VictimSearch<'a> {
    /// The cycle of the preempting pod.
    pub cx: CycleContext<'a>,
    /// The profile whose filters decide.
    pub framework: &'a dyn Handle,
    /// The cycle's state; each node is tried on a copy.
    pub state: &'a CycleState,
    /// How many evictions each disruption budget still allows.
    pub budgets: &'a DisruptionBudgets,
}

/// The victims on a node.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Victims {
    /// The pods, the most important first.
    pub pods: Vec<Arc<PodInfo>>,
    /// Number of evictions that violate a disruption budget.
    pub pdb_violations: i64,
    /// Why the plugin may evict them, one fact each, as found when it selected them; empty if only
    /// lower priority decides.
    pub reasons: Vec<String>,
}

impl VictimSearch<'_> {
    /// The smallest set of victims among `potential`, pods on `node`, that this greedy search
    /// finds. An empty set means that the pod fits without preemption.
    ///
    /// # Errors
    /// Why preemption does not help on this node: the pod does not fit even without all of them.
    pub fn select_victims(
        &self,
        node: &NodeInfo,
        potential: Vec<Arc<PodInfo>>,
    ) -> Result<Victims, Status> {
        let reprieve = |trial: &mut VictimTrial<'_>, pod: &Arc<PodInfo>| trial.reprieve(pod);
        self.select_victims_with(node, potential, |trial| trial.filter(), reprieve)
    }

    /// The same with the rules of a plugin: `fits` checks the node without all of `potential`, and
    /// `reprieve` puts a pod back and takes it away again if it cannot stay.
    ///
    /// # Errors
    /// As [`VictimSearch::select_victims`].
    pub fn select_victims_with(
        &self,
        node: &NodeInfo,
        mut potential: Vec<Arc<PodInfo>>,
        fits: impl Fn(&VictimTrial<'_>) -> Status,
        reprieve: impl Fn(&mut VictimTrial<'_>, &Arc<PodInfo>) -> Result<Reprieve, Status>,
    ) -> Result<Victims, Status> {
        let mut trial = VictimTrial { search: self, state: self.state.clone(), node: node.clone() };
        for pod in &potential {
            trial.remove(pod)?;
        }
        let status = fits(&trial);
        if !status.is_success() {
            return Err(status);
        }
        self.sort_by_importance(&mut potential);
        let (violating, others) = self.budgets.split(potential);
        let both = !violating.is_empty() && !others.is_empty();
        let (mut victims, mut violations) = (Vec::new(), 0);
        let with_budget = violating.into_iter().map(|pod| (pod, 1));
        for (pod, violation) in with_budget.chain(others.into_iter().map(|pod| (pod, 0))) {
            let answer = reprieve(&mut trial, &pod)?;
            if answer == Reprieve::DoesNotFit {
                violations += violation;
            }
            if answer != Reprieve::Stays {
                victims.push(pod);
            }
        }
        if both {
            self.sort_by_importance(&mut victims); // violating and other victims in one order
        }
        Ok(Victims { pods: victims, pdb_violations: violations, reasons: Vec::new() })
    }

    /// Sorts pods, the most important first.
    pub(crate) fn sort_by_importance(&self, pods: &mut [Arc<PodInfo>]) {
        go_sort::sort(pods, |a, b| is_more_important(a, b, self.cx.now));
    }
}

/// What became of a pod that was put back on the node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reprieve {
    /// It stays: the preempting pod fits with it.
    Stays,
    /// It is a victim: the preempting pod does not fit with it.
    DoesNotFit,
    /// It is a victim for a reason of the plugin. It does not count against disruption budgets.
    Rejected,
}

/// A copy of a node and of the cycle's state, on which pods are removed and put back.
pub struct VictimTrial<'a> {
    search: &'a VictimSearch<'a>,
    /// The state, as AddPod and RemovePod left it.
    pub state: CycleState,
    /// The node with the pods that are on it now.
    pub node: NodeInfo,
}

impl VictimTrial<'_> {
    /// Whether the preempting pod fits on the node as it is now.
    pub fn filter(&self) -> Status {
        let VictimSearch { cx, framework, .. } = self.search;
        framework.run_filter_with_nominated(cx, &self.state, &self.node)
    }

    /// Removes a pod.
    ///
    /// # Errors
    /// The pod is not on the node, or a plugin fails.
    pub fn remove(&mut self, pod: &Arc<PodInfo>) -> Result<(), Status> {
        if self.node.remove_pod(pod.uid()).is_none() {
            let (name, node) = (pod.key().name, self.node.name);
            return Err(Status::error(format!(
                "no corresponding pod {name} in pods of node {node}"
            )));
        }
        let VictimSearch { cx, framework, .. } = self.search;
        succeeded(framework.run_remove_pod(cx, &mut self.state, pod, &self.node))
    }

    /// Puts a pod back.
    ///
    /// # Errors
    /// A plugin fails.
    pub fn add(&mut self, pod: &Arc<PodInfo>) -> Result<(), Status> {
        self.node.add_pod(pod.clone());
        let VictimSearch { cx, framework, .. } = self.search;
        succeeded(framework.run_add_pod(cx, &mut self.state, pod, &self.node))
    }

    /// Puts a pod back, and removes it again if the preempting pod does not fit with it.
    ///
    /// # Errors
    /// A plugin fails.
    pub fn reprieve(&mut self, pod: &Arc<PodInfo>) -> Result<Reprieve, Status> {
        self.add(pod)?;
        if self.filter().is_success() {
            return Ok(Reprieve::Stays);
        }
        self.remove(pod)?;
        Ok(Reprieve::DoesNotFit)
    }
}

fn succeeded(status: Status) -> Result<(), Status> {
    if status.is_success() { Ok(()) } else { Err(Status::error(status.message())) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::preemption::PreemptionRules;
    use crate::status::Code;
    use crate::testing::{Cluster, NodeBuilder, PodBuilder, cpu_fit, info, node, object, pod};
    use kubestep_api::Pod;
    use kubestep_api::intern::Symbol;

    struct Rules;

    impl PreemptionRules for Rules {
        fn plugin(&self) -> Symbol {
            Symbol::EMPTY
        }
        fn candidates(&self, nodes: usize) -> usize {
            nodes
        }
    }

    fn on_node(name: &str, priority: i32, cpu: &str) -> Pod {
        pod(name).priority(priority).requests("cpu", cpu).on("n1")
    }

    /// The victims for a preemptor of priority 9 on a node with 4 CPU, and the violations.
    fn select(cluster: &Cluster, cpu: &str) -> Result<(Vec<String>, i64), Status> {
        let preemptor = info(pod("p").priority(9).requests("cpu", cpu));
        let framework = cpu_fit();
        let (cx, mut state) = (cluster.cx(&preemptor), CycleState::default());
        assert!(framework.run_pre_filter(&cx, &mut state).status.is_success());
        let budgets = DisruptionBudgets::new(cx.objects);
        let search = VictimSearch { cx, framework: &framework, state: &state, budgets: &budgets };
        let found = Rules.select_victims(&search, cluster.node("n1"))?;
        let names = found.pods.iter().map(|pod| pod.key().name.to_string()).collect();
        Ok((names, found.pdb_violations))
    }

    fn three() -> Cluster {
        let pods = [on_node("a", 1, "1"), on_node("b", 2, "1"), on_node("c", 3, "2")];
        Cluster::new([node("n1")], pods.map(|pod| pod.label("app", "web")))
    }

    /// A budget for the pods with these labels that allows `allowed` disruptions.
    fn budget(cluster: &mut Cluster, allowed: i32, labels: serde_json::Value) {
        cluster.objects.insert(object(json!({
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "budget", "namespace": "default"},
            "spec": {"selector": {"matchLabels": labels}},
            "status": {"disruptionsAllowed": allowed},
        })));
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| name.to_string()).collect()
    }

    #[test]
    fn the_most_important_are_put_back_first() {
        assert_eq!(select(&three(), "1"), Ok((names(&["a"]), 0)));
        assert_eq!(select(&three(), "2"), Ok((names(&["b", "a"]), 0)));
        // With c on the node, nothing else would fit; without it, both others do.
        let pods = [on_node("a", 1, "1"), on_node("b", 2, "1"), on_node("c", 3, "3")];
        let cluster = Cluster::new([node("n1").offers("cpu", "5")], pods);
        assert_eq!(select(&cluster, "2"), Ok((names(&["b", "a"]), 0)));
        assert_eq!(select(&cluster, "3"), Ok((names(&["c"]), 0)));
    }

    #[test]
    fn of_pods_that_have_not_started_the_last_on_the_node_are_put_back_first() {
        let pods = ["a", "b", "c"].map(|name| on_node(name, 1, "1"));
        let cluster = Cluster::new([node("n1")], pods);
        assert_eq!(select(&cluster, "3"), Ok((names(&["b", "a"]), 0)));
    }

    #[test]
    fn equal_priorities_go_by_age() {
        let pods = [
            on_node("old", 1, "2").started(100),
            on_node("new", 1, "2").started(200),
            on_node("unstarted", 1, "1"),
        ];
        let mut cluster = Cluster::new([node("n1").offers("cpu", "5")], pods);
        cluster.now = Time(300_000_000);
        assert_eq!(select(&cluster, "3"), Ok((names(&["new", "unstarted"]), 0)));
        assert_eq!(select(&cluster, "1"), Ok((names(&["unstarted"]), 0)));
    }

    #[test]
    fn pods_that_violate_a_budget_are_put_back_before_others() {
        let mut cluster = Cluster::new(
            [node("n1")],
            [on_node("a", 1, "1").label("app", "web"), on_node("b", 2, "1"), on_node("c", 3, "2")],
        );
        budget(&mut cluster, 0, json!({"app": "web"}));
        assert_eq!(select(&cluster, "1"), Ok((names(&["b"]), 0)));
        // Both kinds of victims: they are sorted again.
        assert_eq!(select(&cluster, "4"), Ok((names(&["c", "b", "a"]), 1)));
    }

    #[test]
    fn the_budget_is_counted_down_over_all_pods_not_over_the_victims() {
        let mut cluster = three();
        budget(&mut cluster, 1, json!({"app": "web"}));
        // c uses up the budget, so b and a are put back before it.
        assert_eq!(select(&cluster, "1"), Ok((names(&["c"]), 0)));
        assert_eq!(select(&cluster, "3"), Ok((names(&["c", "a"]), 1)));
    }

    #[test]
    fn why_no_eviction_helps() {
        let cluster = Cluster::new([node("n1")], [on_node("as-important", 9, "4")]);
        let status = select(&cluster, "1").unwrap_err();
        assert_eq!(status.code(), Code::UnschedulableAndUnresolvable);
        assert_eq!(status.message(), "No preemption victims found for incoming pod");
        let pods = [on_node("as-important", 9, "3"), on_node("a", 1, "1")];
        let status = select(&Cluster::new([node("n1")], pods), "2").unwrap_err();
        assert_eq!((status.code(), status.plugin()), (Code::Unschedulable, "CpuFit".into()));
        assert_eq!(status.message(), "Insufficient cpu");
    }

    #[test]
    fn pods_nominated_to_the_node_count_in() {
        let mut cluster = three();
        let nominated = |priority| info(pod("other").priority(priority).requests("cpu", "1"));
        cluster.nominated.push("n1".into(), nominated(8));
        assert_eq!(select(&cluster, "1"), Ok((names(&["a"]), 0)));
        cluster.nominated.push("n1".into(), nominated(9));
        assert_eq!(select(&cluster, "1"), Ok((names(&["b", "a"]), 0)));
    }

    #[test]
    fn a_pod_that_fits_as_it_is_needs_no_victims() {
        let cluster = Cluster::new([node("n1")], [on_node("a", 1, "1")]);
        assert_eq!(select(&cluster, "3"), Ok((names(&[]), 0)));
    }
}
