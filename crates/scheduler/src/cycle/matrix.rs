//! The filter matrix: every filter plugin on every node, and the verdict on each node.
//!
//! Upstream stops at the first plugin that fails. A debugger shows the others too, so every plugin
//! runs on every node independently.

use std::sync::Arc;

use rayon::prelude::*;

use crate::Scheduler;
use crate::cycle::Cycle;
use crate::cycle::kept::{Answers, KeptColumn, Key};
use kubestep_api::intern::Symbol;
use kubestep_config::ExtensionPoint;
use kubestep_framework::node::{NodeId, NodeInfo};
use kubestep_framework::plugin::{CycleContext, Plugin};
use kubestep_framework::record::column::Column;
use kubestep_framework::record::{FilterColumn, VerdictId, VerdictTable};
use kubestep_framework::runtime::filter::run_one_filter;
use kubestep_framework::status::Status;

/// Number of nodes that one thread processes at a time.
const CHUNK: usize = 256;
/// With fewer nodes, threads cost more than they save.
const PARALLEL: usize = 512;

impl Scheduler {
    /// Runs every filter plugin on every node, without nominated pods.
    pub(crate) fn fill_matrix(&mut self, cycle: &mut Cycle) {
        let framework = cycle.framework.clone();
        let mut columns = Vec::new();
        let mut refused = Vec::new();
        let (timer, asked) = (self.shared.timer.clone(), self.snapshot.placement().len());
        for plugin in framework.at(ExtensionPoint::Filter) {
            let name = plugin.name();
            if cycle.state.skips_filter(name) {
                refused.push(0);
                let verdicts = self.recorded.skipped(self.snapshot.slots());
                columns.push(FilterColumn { plugin: name, verdicts });
                continue;
            }
            let answers = timer.time(ExtensionPoint::Filter, name, || self.answers(plugin, cycle));
            timer.nodes(ExtensionPoint::Filter, name, asked, answers.refused);
            refused.push(answers.refused);
            columns.push(FilterColumn { plugin: name, verdicts: answers.column });
        }
        cycle.first_refusals = first_refusals(&columns, &refused, self.snapshot.slots());
        cycle.record.filter.plugins = columns;
    }

    /// A filter's answers about all nodes.
    fn answers(&mut self, plugin: &Arc<dyn Plugin>, cycle: &Cycle) -> Answers {
        let (profile, point, name) =
            (cycle.framework.name(), ExtensionPoint::Filter, plugin.name());
        // The answers of a plugin under fault injection are not its own, so they are not cached.
        let fails = cycle.state.fault(point, name).is_some();
        match plugin.filter_key(&cycle.queued.info).filter(|_| !fails) {
            Some(pod) => {
                self.kept_answers(plugin, cycle, Key { profile, plugin: name, point, pod })
            }
            None => self.all_answers(plugin, cycle, &self.snapshot.placement().clone()),
        }
    }

    /// The cached answers for pods like this one, brought up to date.
    fn kept_answers(&mut self, plugin: &Arc<dyn Plugin>, cycle: &Cycle, key: Key) -> Answers {
        let answers = match self.kept.take(&key) {
            Some((KeptColumn::Verdicts(mut answers), stale)) => {
                answers.column.grow(VerdictId::PASS, self.snapshot.slots());
                for id in stale {
                    let cx = self.cycle_context(cycle);
                    let ask =
                        |node: &Arc<NodeInfo>| run_one_filter(plugin, &cx, &cycle.state, node);
                    let status = self.snapshot.get(id).map(ask);
                    let verdict = status.map(|status| number(&mut self.verdicts, &status));
                    answers.set(id, verdict.unwrap_or(VerdictId::PASS));
                }
                answers
            }
            // They are cached for other placements too, so they are about all nodes.
            _ => self.all_answers(plugin, cycle, &self.snapshot.order().clone()),
        };
        self.kept.put(key, KeptColumn::Verdicts(answers.clone()));
        answers
    }

    fn all_answers(
        &mut self,
        plugin: &Arc<dyn Plugin>,
        cycle: &Cycle,
        order: &[NodeId],
    ) -> Answers {
        let cx = self.cycle_context(cycle);
        let statuses = run_on_all(plugin, &cx, cycle, order);
        let everywhere = order.len() == self.snapshot.len();
        if everywhere && statuses.iter().all(Status::is_success) {
            let column = self.recorded.passed(self.snapshot.slots());
            return Answers { column, refused: 0 };
        }
        let mut verdicts = vec![VerdictId::PASS; self.snapshot.slots()];
        if order.len() < self.snapshot.len() {
            self.mark_outside_placement(&mut verdicts);
        }
        let mut refused = 0;
        // Statuses that are built once need not be looked up for every node.
        let mut last = (&Status::SUCCESS, VerdictId::PASS);
        for (id, status) in order.iter().zip(&statuses).filter(|(_, status)| !status.is_success()) {
            if !status.is_shared_with(last.0) {
                last = (status, number(&mut self.verdicts, status));
            }
            verdicts[id.index()] = last.1;
            refused += 1;
        }
        Answers { column: Column::from_values(&verdicts), refused }
    }

    /// The verdict on a node: the first plugin that fails. As upstream, the filters run with the
    /// pods nominated to the node added and, if they pass, again without those pods.
    pub(crate) fn official_verdict(
        &mut self,
        cycle: &Cycle,
        id: NodeId,
        name: Symbol,
    ) -> VerdictId {
        let first = cycle.first_refusal(id);
        if cycle.nominated.is_empty() || cycle.nominated.for_node(name).is_empty() {
            return first;
        }
        let Some(node) = self.snapshot.get(id) else { return first };
        let cx = self.cycle_context(cycle);
        let status = cycle.framework.run_filter_with_nominated(&cx, &cycle.state, node);
        number(&mut self.verdicts, &status)
    }
}

impl Cycle {
    /// The verdict of the first filter plugin that rejects the node, each run independently.
    pub(crate) fn first_refusal(&self, id: NodeId) -> VerdictId {
        self.first_refusals.get(id.index()).copied().unwrap_or(VerdictId::PASS)
    }
}

/// The number of a status in the table, which is copied only when the status is new.
pub(crate) fn number(table: &mut Arc<VerdictTable>, status: &Status) -> VerdictId {
    match table.find(status) {
        Some(id) => id,
        None => Arc::make_mut(table).id_of(status),
    }
}

/// By slot: the verdict of the first plugin that rejects the node.
fn first_refusals(columns: &[FilterColumn], refused: &[usize], slots: usize) -> Vec<VerdictId> {
    let mut first = vec![VerdictId::PASS; slots];
    // From the last plugin to the first, so that the first plugin's verdict remains.
    for (column, refused) in columns.iter().zip(refused).rev() {
        if *refused == 0 {
            continue;
        }
        let mut left = first.as_mut_slice();
        for run in column.verdicts.runs() {
            let (first, rest) = left.split_at_mut(run.len().min(left.len()));
            for (first, verdict) in first.iter_mut().zip(run) {
                *first = if verdict.is_status() { *verdict } else { *first };
            }
            left = rest;
        }
    }
    first
}

/// Runs one plugin on all nodes, in node order; in chunks on several threads when there are many.
fn run_on_all(
    plugin: &Arc<dyn Plugin>,
    cx: &CycleContext<'_>,
    cycle: &Cycle,
    order: &[NodeId],
) -> Vec<Status> {
    let run = |id: &NodeId| match cx.snapshot.get(*id) {
        Some(node) => run_one_filter(plugin, cx, &cycle.state, node),
        None => Status::SUCCESS,
    };
    // A plugin under fault injection is called through the framework, which injects the fault.
    let fails = cycle.state.fault(ExtensionPoint::Filter, plugin.name()).is_some();
    if !fails && let Some(statuses) = plugin.filters(cx, &cycle.state, order) {
        return statuses.into_iter().map(|status| status.by(plugin.name())).collect();
    }
    match order.len() < PARALLEL {
        true => order.iter().map(run).collect(),
        false => order.par_iter().with_min_len(CHUNK).map(run).collect(),
    }
}
