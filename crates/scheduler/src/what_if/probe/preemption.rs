//! What preemption would find for the pod: every candidate, and why the other nodes are not
//! candidates.

use std::sync::Arc;

use super::Probe;
use kubestep_api::Name;
use kubestep_api::intern::Symbol;
use kubestep_config::ExtensionPoint;
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::node::NodeId;
use kubestep_framework::preemption::NodeVictims;
use kubestep_framework::preemption::budgets::DisruptionBudgets;
use kubestep_framework::preemption::dry_run::dry_run;
use kubestep_framework::preemption::victims::VictimSearch;
use kubestep_framework::status::node_statuses::NodeStatuses;
use kubestep_framework::status::{Code, Status};

/// The result of a preemption dry run.
#[derive(Default, Debug)]
pub struct PreemptionProbe {
    /// The plugin that preempts.
    pub plugin: Symbol,
    /// Why the pod is not eligible to preempt; `None` if it is.
    pub rejection: Option<&'static str>,
    /// Which pods the plugin may evict and why, if that is not their priority alone.
    pub victim_rule: Option<String>,
    /// The candidates, in the order found. The search ends when there are enough.
    pub candidates: Vec<Arc<NodeVictims>>,
    /// The other nodes that were tried, and why they are not candidates.
    pub others: Vec<(Name, Status)>,
    /// Nodes that reject the pod for a reason that preemption does not help against.
    pub unresolvable: Vec<Name>,
}

impl Probe {
    /// Dry-runs preemption. `None` if the profile has no preemption, or if the pod fits on a node,
    /// so that PostFilter would not run.
    pub fn preemption(&self) -> Option<PreemptionProbe> {
        let plugins = self.framework.at(ExtensionPoint::PostFilter);
        let rules = plugins.iter().find_map(|plugin| plugin.preemption())?;
        let statuses = self.statuses()?;
        let cx = self.cx();
        // A plugin that rejects in PreFilter still follows the pods that a dry run takes away.
        let mut state = CycleState::default();
        self.framework.run_pre_filter(&cx, &mut state);
        let mut found = PreemptionProbe {
            plugin: rules.plugin(),
            rejection: rules.rejection(&cx, &state, &statuses),
            ..PreemptionProbe::default()
        };
        let resolvable = statuses.with_code(Code::Unschedulable, &self.snapshot);
        let is_resolvable = |id: NodeId| statuses.get(id).code() == Code::Unschedulable;
        let unresolvable = self.snapshot.iter().filter(|node| !is_resolvable(node.id));
        found.unresolvable = unresolvable.map(|node| node.name).collect();
        if found.rejection.is_some() {
            return Some(found);
        }
        found.victim_rule = rules.victim_rule(&cx, &state);
        let budgets = DisruptionBudgets::new(cx.objects);
        let (framework, state) = (&*self.framework, &state);
        let search = VictimSearch { cx, framework, state, budgets: &budgets };
        let run = dry_run(&search, rules, &resolvable, None);
        let is_candidate = |name: Name| run.candidates.iter().any(|found| found.node == name);
        for node in resolvable.iter().filter_map(|id| self.snapshot.get(*id)) {
            let status = run.statuses.get(node.id);
            if !is_candidate(node.name) && !status.is_success() {
                found.others.push((node.name, status.clone()));
            }
        }
        found.candidates = run.candidates;
        Some(found)
    }

    /// The statuses of all nodes as in a cycle; `None` if a node fits.
    fn statuses(&self) -> Option<NodeStatuses> {
        let mut statuses = NodeStatuses::default();
        if let Some(rejected) = self.answers.iter().find(|answer| answer.status.is_rejected()) {
            statuses.set_absent(rejected.status.clone());
            return Some(statuses);
        }
        let left = |name: Name| {
            let only = self.answers.iter().filter_map(|answer| answer.nodes.as_ref());
            only.into_iter().all(|nodes| nodes.contains(&name))
        };
        statuses.set_absent(Status::unresolvable("narrowed"));
        for node in self.snapshot.iter().filter(|node| left(node.name)) {
            let status = self.framework.run_filter_with_nominated(&self.cx(), &self.state, node);
            if status.is_success() {
                return None;
            }
            statuses.set(node.id, status);
        }
        Some(statuses)
    }
}
