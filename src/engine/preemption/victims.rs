//! Who must go on one node: take all lower-priority pods off, see whether the pod then fits,
//! and put back as many as possible, the most important first.
//!
//! Upstream: `SelectVictimsOnNode` in
//! `pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go`, `MoreImportantPod`
//! in `pkg/scheduler/util/utils.go`.

use std::sync::Arc;

use crate::api::Time;
use crate::engine::framework::cycle_state::CycleState;
use crate::engine::framework::plugin::CycleContext;
use crate::engine::framework::runtime::Framework;
use crate::engine::go_sort;
use crate::engine::node::NodeInfo;
use crate::engine::pod::PodInfo;
use crate::engine::preemption::budgets::Budgets;
use crate::engine::preemption::eligibility::may_preempt;
use crate::engine::status::Status;

/// When a pod started; `now` for one that has not.
pub fn start_time(pod: &PodInfo, now: Time) -> Time {
    pod.pod.status.start_time.unwrap_or(now)
}

/// Whether `a` is more important than `b`: higher priority, then the older one (PR-032).
pub fn is_more_important(a: &PodInfo, b: &PodInfo, now: Time) -> bool {
    let (first, second) = (a.priority(), b.priority());
    first > second || (first == second && start_time(a, now) < start_time(b, now))
}

/// What a search works with on every node.
#[derive(Clone, Copy)]
pub struct Search<'a> {
    /// The cycle, for the pod that wants a place.
    pub cx: CycleContext<'a>,
    /// The profile.
    pub framework: &'a Framework,
    /// The cycle's state; each node is tried on a copy.
    pub state: &'a CycleState,
    /// The disruption budgets.
    pub budgets: &'a Budgets,
}

/// The pods that must go, the most important first, and how many evictions violate a budget.
pub type Victims = (Vec<Arc<PodInfo>>, i64);

impl Search<'_> {
    /// The smallest set of victims on `node` that this greedy search finds. An empty set means
    /// that the pod fits as it is.
    ///
    /// # Errors
    /// Why evicting pods does not help on this node (PR-030, PR-031).
    pub fn select_victims(&self, node: &NodeInfo) -> Result<Victims, Status> {
        let lower = |pod: &&Arc<PodInfo>| may_preempt(self.cx.pod, pod);
        let mut potential: Vec<Arc<PodInfo>> = node.pods.iter().filter(lower).cloned().collect();
        if potential.is_empty() {
            return Err(Status::unresolvable("No preemption victims found for incoming pod"));
        }
        let mut trial = Trial { search: self, state: self.state.clone(), node: node.clone() };
        for pod in &potential {
            trial.remove(pod)?;
        }
        let status = trial.filter();
        if !status.is_success() {
            return Err(status);
        }
        self.sort_by_importance(&mut potential);
        let (violating, others) = self.budgets.split(potential);
        let both = !violating.is_empty() && !others.is_empty();
        let mut victims = trial.reprieve(violating)?;
        let violations = victims.len() as i64;
        victims.extend(trial.reprieve(others)?);
        if both {
            self.sort_by_importance(&mut victims); // PR-035
        }
        Ok((victims, violations))
    }

    fn sort_by_importance(&self, pods: &mut [Arc<PodInfo>]) {
        go_sort::sort(pods, |a, b| is_more_important(a, b, self.cx.now));
    }
}

/// A copy of a node, and of the cycle's state, on which pods come and go.
struct Trial<'a> {
    search: &'a Search<'a>,
    state: CycleState,
    node: NodeInfo,
}

impl Trial<'_> {
    fn filter(&self) -> Status {
        let Search { cx, framework, .. } = self.search;
        framework.run_filter_with_nominated(cx, &self.state, &self.node)
    }

    fn remove(&mut self, pod: &Arc<PodInfo>) -> Result<(), Status> {
        self.node.remove_pod(pod.uid());
        let Search { cx, framework, .. } = self.search;
        succeeded(framework.run_remove_pod(cx, &mut self.state, pod, &self.node))
    }

    fn add(&mut self, pod: &Arc<PodInfo>) -> Result<(), Status> {
        self.node.add_pod(pod.clone());
        let Search { cx, framework, .. } = self.search;
        succeeded(framework.run_add_pod(cx, &mut self.state, pod, &self.node))
    }

    /// Puts the pods back one by one and gives back those that cannot stay (PR-034).
    fn reprieve(&mut self, pods: Vec<Arc<PodInfo>>) -> Result<Vec<Arc<PodInfo>>, Status> {
        let mut victims = Vec::new();
        for pod in pods {
            self.add(&pod)?;
            if !self.filter().is_success() {
                self.remove(&pod)?;
                victims.push(pod);
            }
        }
        Ok(victims)
    }
}

fn succeeded(status: Status) -> Result<(), Status> {
    if status.is_success() { Ok(()) } else { Err(Status::error(&status.message())) }
}
