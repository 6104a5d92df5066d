//! What views draw beside the rows although it takes a moment: why a pod is where it is, and the state
//! before a preemption.

use std::borrow::Cow;
use std::sync::Arc;

use super::Driver;
use crate::report::why::{WhyDetail, decisive_cause, text};
use crate::tui::command_result::{CommandResult, WindowContent};
use crate::tui::compare::{self, NodeAtTimes};
use crate::tui::lines::DetailLine;
use crate::tui::model::{BeforePreemption, WhyAnswer};
use crate::tui::names::CommonNameParts;
use crate::tui::pod_sign;
use crate::tui::theme::Scope;
use kubestep_api::Name;
use kubestep_cluster::World;
use kubestep_debug::why::preemption::BudgetState;
use kubestep_debug::why::{Why, ask};
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::preemption::budgets::DisruptionBudgets;

impl Driver {
    /// Works out why the pod is where it is, for the pane beside the rows.
    pub fn answer(&mut self, pod: NamespacedName) {
        let why = ask(&mut self.session, pod, &[]);
        let lines = why.map(|why| lines(&why, &self.model.node_names)).unwrap_or_default();
        self.model.answer = Some(WhyAnswer { pod, lines });
        self.model.revision += 1;
    }

    /// Works out why a queued pod is pending, for its row.
    pub fn answer_row(&mut self, pod: NamespacedName) {
        let why = ask(&mut self.session, pod, &[]);
        let cause = why.and_then(|why| decisive_cause(&why)).unwrap_or_default();
        self.model.causes.insert(pod, self.model.node_names.without_end(&cause).into_owned());
        self.model.revision += 1;
    }

    /// The cluster as it was when a cycle began.
    fn world_before(&mut self, cycle: u64) -> Option<Arc<World>> {
        let timeline = self.session.timeline();
        let stop = timeline.stop_of_cycle(cycle).and_then(|stop| timeline.stops().get(stop))?;
        Some(self.session.world_at(stop.step.checked_sub(1)?))
    }

    /// Two nodes side by side, in the cycle on show.
    pub(super) fn compare_nodes(&mut self, names: [Name; 2]) -> CommandResult {
        let cycle = self.model.cycle().cloned();
        let before = cycle.as_ref().and_then(|cycle| self.world_before(cycle.cycle));
        let now = self.session.state().unwrap_or_else(|| self.session.world());
        let find = |world: &World, name| {
            world.scheduler().cache().nodes().find(|node| node.name == name).cloned()
        };
        let at_times = names.map(|name| NodeAtTimes {
            before: before.as_ref().and_then(|world| find(world, name)),
            now: find(now, name),
        });
        let pod = cycle.as_ref().map(|cycle| format!(" for {}", cycle.pod)).unwrap_or_default();
        let title = format!("{} and {} side by side{pod}", names[0], names[1]);
        let table = compare::nodes(cycle.as_deref(), names, &at_times);
        CommandResult::window(WindowContent::Table(title, table))
    }

    /// Takes over the candidate nodes as they were before the cycle on show decided to preempt.
    pub(super) fn refresh_preemption(&mut self) {
        let Some(record) = self.model.cycle().filter(|cycle| !cycle.candidates.is_empty()) else {
            return;
        };
        let (cycle, candidates) = (record.cycle, record.candidates.clone());
        if self.model.before_preemption.as_ref().is_some_and(|before| before.cycle == cycle) {
            return;
        }
        let Some(world) = self.world_before(cycle) else { return };
        let is_candidate = |name| candidates.iter().any(|candidate| candidate.node == name);
        let nodes = world.scheduler().cache().nodes().filter(|node| is_candidate(node.name));
        let all = DisruptionBudgets::new(world.api().objects());
        let mut budgets = Vec::new();
        for pod in candidates.iter().flat_map(|candidate| &candidate.victims) {
            let Some(object) = world.api().objects().pods.get(pod) else { continue };
            budgets.extend(all.of(object).map(|budget| {
                let name = NamespacedName::new(budget.metadata.namespace, budget.metadata.name);
                (*pod, BudgetState { name, allowed: budget.status.disruptions_allowed })
            }));
        }
        let nodes = nodes.cloned().collect();
        self.model.before_preemption = Some(Arc::new(BeforePreemption { cycle, nodes, budgets }));
        self.model.revision += 1;
    }
}

/// The answer with its verdict coloured: what comes before the first blank line. What the names of
/// all nodes end with is said once.
pub(super) fn lines(why: &Why, names: &CommonNameParts) -> Vec<DetailLine> {
    let common_end = names.end().to_owned();
    let whole = text(why, &WhyDetail { common_end, rest: "gw", ..WhyDetail::default() });
    let mut text = names.without_end(&whole);
    if let Cow::Owned(text) = &mut text {
        text.insert_str(text.find('\n').unwrap_or(text.len()), &names.note_of_end());
    }
    let verdict = pod_sign::headline(&why.place);
    let line = |(at, text): (usize, &str)| {
        let scope = match at {
            0 => verdict,
            _ if text.starts_with("kube-scheduler reports:") => Scope::TextDim,
            _ => Scope::Text,
        };
        DetailLine::text(text).scoped(scope)
    };
    text.lines().enumerate().map(line).collect()
}
