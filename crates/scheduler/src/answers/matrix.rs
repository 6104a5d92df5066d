//! The filter matrix: the verdict of every filter plugin about every node.
//!
//! Upstream stops at the first plugin that fails; a debugger wants to see the rest too, so all
//! plugins run on all nodes, each alone.

use std::mem::take;
use std::sync::Arc;

use rayon::prelude::*;

use super::PluginAnswers;
use super::cache::{AnswerKey, CachedColumn, FilterAnswers};
use kubestep_config::ExtensionPoint;
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::node::{NodeId, NodeInfo};
use kubestep_framework::plugin::{CycleContext, Plugin};
use kubestep_framework::record::column::Column;
use kubestep_framework::record::{FilterColumn, VerdictId};
use kubestep_framework::runtime::Framework;
use kubestep_framework::runtime::filter::run_one_filter;
use kubestep_framework::snapshot::Snapshot;
use kubestep_framework::status::Status;

/// Nodes that one thread takes at a time.
const CHUNK: usize = 256;
/// Below this many nodes, threads cost more than they save.
const PARALLEL: usize = 512;

/// The verdicts of the filter plugins, nominated pods not counted in.
pub(crate) struct FilterMatrix {
    /// By plugin, in the order of the profile.
    pub columns: Vec<FilterColumn>,
    /// By slot: the verdict of the first plugin that rejects the node. `None` if only some nodes
    /// are searched: [`first_rejection`] gives the verdict on one node.
    pub first_rejections: Option<Column<VerdictId>>,
    pub keys: SearchKeys,
}

/// Cache keys of a search: what the verdicts depend on in the pod, by the plugins' filter keys.
#[derive(Clone, Default)]
pub(crate) struct SearchKeys {
    /// `None` if only some nodes are searched.
    pub class: Option<String>,
    /// The same with nominated pods counted in. `None` if no pod is nominated, or if the verdicts
    /// depend on more than the class, the node and the pods nominated to it.
    pub nominated: Option<String>,
}

/// The cycle in which filter plugins are asked.
#[derive(Clone, Copy)]
pub(crate) struct FilterCycle<'a> {
    pub framework: &'a Framework,
    pub cx: CycleContext<'a>,
    pub state: &'a CycleState,
}

/// What [`Plugin::is_idle`] promises.
fn passes_every_node(
    plugin: &Arc<dyn Plugin>,
    FilterCycle { cx, state, .. }: FilterCycle<'_>,
) -> bool {
    cx.snapshot.iter().all(|node| plugin.filter(&cx, state, node).is_success())
}

impl PluginAnswers {
    /// Runs every filter plugin on every node. `searches_all`: the search that follows is not
    /// restricted to some nodes.
    pub(crate) fn filter_matrix(
        &mut self,
        cycle: FilterCycle<'_>,
        searches_all: bool,
    ) -> FilterMatrix {
        let FilterCycle { framework, cx, state } = cycle;
        let mut columns = Vec::new();
        // Columns that are not kept from cycle to cycle.
        let mut computed = Vec::new();
        let mut rejected = Vec::new();
        let mut class = framework.name().to_string();
        // Which plugins run, for verdicts with nominated pods; `None` once one has no key.
        let mut running = (!cx.nominated.is_empty()).then(|| cx.pod.priority().to_string());
        let (timer, asked) = (&cx.shared.timer, cx.snapshot.placement().len());
        let point = ExtensionPoint::Filter;
        for plugin in framework.at(ExtensionPoint::Filter) {
            let name = plugin.name();
            if state.skips_filter(name) {
                rejected.push(0);
                let verdicts = self.records.skipped(cx.snapshot.slots());
                columns.push(FilterColumn { plugin: name, verdicts });
                continue;
            }
            let is_everywhere = cx.snapshot.assumed_placement().is_none();
            if is_everywhere && state.fault(point, name).is_none() && plugin.is_idle(state) {
                debug_assert!(passes_every_node(plugin, cycle), "{name} is not idle");
                let verdicts = timer.time(point, name, || self.records.passed(cx.snapshot.slots()));
                timer.nodes(point, name, asked, 0);
                rejected.push(0);
                columns.push(FilterColumn { plugin: name, verdicts });
                continue;
            }
            let key = plugin.filter_key(cx.pod);
            class.push('\n');
            match &key {
                Some(key) => class.push_str(key),
                None => {
                    class.extend([format!("{:p}", cx.pod.class)]);
                    computed.push(columns.len());
                }
            }
            running = running.filter(|_| key.is_some() && state.fault(point, name).is_none());
            running.iter_mut().for_each(|names| names.extend([" ", name.as_str()]));
            let ask = || self.answers(plugin, cycle, key);
            let answers = timer.time(point, name, ask);
            timer.nodes(point, name, asked, answers.rejected);
            rejected.push(answers.rejected);
            columns.push(FilterColumn { plugin: name, verdicts: answers.column });
        }
        let snapshot = cx.snapshot;
        if !searches_all || snapshot.assumed_placement().is_some() {
            return FilterMatrix { columns, first_rejections: None, keys: SearchKeys::default() };
        }
        for (at, last) in self.searches.columns(&class).iter().enumerate() {
            if computed.contains(&at) {
                columns[at].verdicts = take(&mut columns[at].verdicts).shared_with(last);
            }
        }
        let search = self.searches.update(&class, &columns, &rejected, snapshot);
        let first_rejections = Some(search.first.clone());
        let nominated = running.map(|running| format!("{running}\n{class}"));
        let keys = SearchKeys { class: Some(class), nominated };
        FilterMatrix { columns, first_rejections, keys }
    }

    /// The verdicts of a plugin about all nodes.
    fn answers(
        &mut self,
        plugin: &Arc<dyn Plugin>,
        cycle: FilterCycle<'_>,
        key: Option<String>,
    ) -> FilterAnswers {
        let FilterCycle { framework, cx, state } = cycle;
        let (profile, point, name) = (framework.name(), ExtensionPoint::Filter, plugin.name());
        // A plugin that is made to fail does not give its own answer: nothing to cache.
        let fails = state.fault(point, name).is_some();
        match key.filter(|_| !fails) {
            Some(pod) => {
                self.cached_answers(plugin, cycle, AnswerKey { profile, plugin: name, point, pod })
            }
            None => self.all_answers(plugin, cycle, cx.snapshot.placement()),
        }
    }

    /// The verdicts that the cache has for pods like this one, brought up to date.
    fn cached_answers(
        &mut self,
        plugin: &Arc<dyn Plugin>,
        cycle: FilterCycle<'_>,
        key: AnswerKey,
    ) -> FilterAnswers {
        let FilterCycle { cx, state, .. } = cycle;
        let answers = match self.cache.take(&key) {
            Some((CachedColumn::Verdicts(mut answers), stale)) => {
                answers.column.grow(VerdictId::PASS, cx.snapshot.slots());
                for id in stale {
                    let ask = |node: &Arc<NodeInfo>| run_one_filter(plugin, &cx, state, node);
                    let status = cx.snapshot.get(id).map(ask);
                    let verdict = status.map(|status| self.verdict_id(&status));
                    answers.set(id, verdict.unwrap_or(VerdictId::PASS));
                }
                answers
            }
            // Kept for other placements too, so about all nodes.
            _ => self.all_answers(plugin, cycle, cx.snapshot.order()),
        };
        self.cache.put(key, CachedColumn::Verdicts(answers.clone()));
        answers
    }

    fn all_answers(
        &mut self,
        plugin: &Arc<dyn Plugin>,
        cycle: FilterCycle<'_>,
        order: &[NodeId],
    ) -> FilterAnswers {
        let snapshot = cycle.cx.snapshot;
        let mut verdicts = match self.verdicts_by_slot(plugin, cycle) {
            Some(verdicts) => verdicts,
            None => self.verdicts_one_by_one(plugin, cycle, order),
        };
        if order.len() < snapshot.len() {
            mark_outside_placement(snapshot, &mut verdicts);
        }
        let rejected = verdicts.iter().filter(|verdict| verdict.is_status()).count();
        if rejected == 0 && order.len() == snapshot.len() {
            return FilterAnswers { column: self.records.passed(snapshot.slots()), rejected };
        }
        FilterAnswers { column: self.records.computed(plugin.name(), &verdicts), rejected }
    }

    /// The verdicts of a plugin that answers about all nodes at once.
    fn verdicts_by_slot(
        &mut self,
        plugin: &Arc<dyn Plugin>,
        cycle: FilterCycle<'_>,
    ) -> Option<Vec<VerdictId>> {
        let FilterCycle { cx, state, .. } = cycle;
        // A plugin that is made to fail fails node by node.
        if state.fault(ExtensionPoint::Filter, plugin.name()).is_some() {
            return None;
        }
        let found = plugin.filters(&cx, state)?;
        let number = |status: Status| self.verdict_id(&status.by(plugin.name()));
        let numbers: Vec<VerdictId> = found.statuses.into_iter().map(number).collect();
        let number = |index: u16| numbers.get(usize::from(index)).copied();
        let number = |index: &u16| number(*index).unwrap_or(VerdictId::PASS);
        let mut verdicts: Vec<VerdictId> = found.by_slot.iter().map(number).collect();
        if cx.snapshot.len() < verdicts.len() {
            let slots = verdicts.iter_mut().zip(cx.snapshot.ranks().iter());
            let free = slots.filter(|(_, rank)| **rank == u32::MAX);
            free.for_each(|(verdict, _)| *verdict = VerdictId::PASS);
        }
        Some(verdicts)
    }

    /// By slot, the verdicts of a plugin that answers about one node at a time.
    fn verdicts_one_by_one(
        &mut self,
        plugin: &Arc<dyn Plugin>,
        cycle: FilterCycle<'_>,
        order: &[NodeId],
    ) -> Vec<VerdictId> {
        let mut verdicts = vec![VerdictId::PASS; cycle.cx.snapshot.slots()];
        // Consecutive rejections often share one status: look its number up once.
        let mut last = (Status::SUCCESS, VerdictId::PASS);
        for (id, status) in order.iter().zip(run_on_all(plugin, cycle, order)) {
            if !status.is_shared_with(&last.0) {
                let number = self.verdict_id(&status);
                last = (status, number);
            }
            verdicts[id.index()] = last.1;
        }
        verdicts
    }

    /// The verdict about a node with the pods nominated to it counted in: that of the first
    /// plugin that fails. Without such pods it is `alone`.
    pub(crate) fn verdict_with_nominated(
        &mut self,
        cycle: FilterCycle<'_>,
        id: NodeId,
        alone: VerdictId,
    ) -> VerdictId {
        let FilterCycle { framework, cx, state } = cycle;
        let Some(node) = cx.snapshot.get(id).filter(|_| !cx.nominated.is_empty()) else {
            return alone;
        };
        if cx.nominated.for_node(node.name).is_empty() {
            return alone;
        }
        self.verdict_id(&framework.run_filter_with_nominated(&cx, state, node))
    }
}

/// Marks the nodes that the current placement leaves out: they are not evaluated.
pub(crate) fn mark_outside_placement(snapshot: &Snapshot, verdicts: &mut [VerdictId]) {
    let Some(placement) = snapshot.assumed_placement() else { return };
    let mut outside = vec![true; verdicts.len()];
    placement.iter().for_each(|id| outside[id.index()] = false);
    for (verdict, outside) in verdicts.iter_mut().zip(outside) {
        if outside {
            *verdict = VerdictId::OUTSIDE_PLACEMENT;
        }
    }
}

/// The verdict of the first plugin that rejects the node.
pub(crate) fn first_rejection(columns: &[FilterColumn], id: NodeId) -> VerdictId {
    let mut verdicts = columns.iter().filter_map(|column| column.verdicts.get(id));
    verdicts.find(|verdict| verdict.is_status()).unwrap_or(VerdictId::PASS)
}

/// The same of all nodes, by slot.
pub(super) fn first_rejections(
    columns: &[FilterColumn],
    rejected: &[usize],
    slots: usize,
) -> Vec<VerdictId> {
    let mut first = vec![VerdictId::PASS; slots];
    // From the last plugin to the first, so that the first overwrites the others.
    for (column, rejected) in columns.iter().zip(rejected).rev() {
        if *rejected == 0 {
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

/// One plugin on one node after the other; in chunks on several threads when there are many.
fn run_on_all(plugin: &Arc<dyn Plugin>, cycle: FilterCycle<'_>, order: &[NodeId]) -> Vec<Status> {
    let FilterCycle { cx, state, .. } = cycle;
    let run = |id: &NodeId| match cx.snapshot.get(*id) {
        Some(node) => run_one_filter(plugin, &cx, state, node),
        None => Status::SUCCESS,
    };
    match order.len() < PARALLEL || plugin.filters_in_order() {
        true => order.iter().map(run).collect(),
        false => order.par_iter().with_min_len(CHUNK).map(run).collect(),
    }
}
