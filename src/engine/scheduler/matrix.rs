//! The filter matrix: every filter plugin on every node, and the official verdict.
//!
//! Upstream stops at the first plugin that fails; a debugger wants to see the rest too, so all
//! plugins are run on all nodes, each alone.

use std::sync::Arc;

use rayon::prelude::*;

use crate::config::ExtensionPoint;
use crate::engine::column::Column;
use crate::engine::framework::filter::run_one_filter;
use crate::engine::framework::plugin::{CycleContext, Plugin};
use crate::engine::node::NodeId;
use crate::engine::record::{FilterColumn, VerdictId, VerdictTable};
use crate::engine::scheduler::Scheduler;
use crate::engine::scheduler::cycle::Cycle;
use crate::engine::status::Status;

/// Nodes that one thread takes at a time.
const CHUNK: usize = 256;
/// Below this many nodes, threads cost more than they save.
const PARALLEL: usize = 512;

impl Scheduler {
    /// Runs every filter plugin on every node, nominated pods not counted in.
    pub(super) fn fill_matrix(&mut self, cycle: &mut Cycle) {
        let framework = cycle.framework.clone();
        let slots = self.snapshot.slots();
        let mut columns = Vec::new();
        for plugin in framework.at(ExtensionPoint::Filter) {
            let verdicts = match cycle.state.skips_filter(plugin.name()) {
                true => Column::filled(VerdictId::SKIPPED, slots),
                false => {
                    let cx = self.cycle_context(cycle);
                    let statuses = run_on_all(plugin, &cx, cycle, self.snapshot.order());
                    let table = Arc::make_mut(&mut self.verdicts);
                    column(table, self.snapshot.order(), &statuses, slots)
                }
            };
            columns.push(FilterColumn { plugin: plugin.name(), verdicts });
        }
        cycle.record.filter.plugins = columns;
    }

    /// The official verdict on a node: the first plugin that fails, pods nominated to the
    /// node counted in (FW-121).
    pub(super) fn official_status(&self, cycle: &Cycle, id: NodeId) -> Status {
        let Some(node) = self.snapshot.get(id) else { return Status::SUCCESS };
        if !cycle.nominated.for_node(node.name).is_empty() {
            let cx = self.cycle_context(cycle);
            return cycle.framework.run_filter_with_nominated(&cx, &cycle.state, node);
        }
        let verdicts = cycle.record.filter.plugins.iter();
        let mut verdicts = verdicts.filter_map(|column| column.verdicts.get(id));
        let failed = verdicts.find(|verdict| verdict.is_status());
        failed.and_then(|verdict| self.verdicts.get(verdict)).cloned().unwrap_or_default()
    }
}

/// One plugin on all nodes, in node order; in chunks on several threads when there are many.
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
    match order.len() < PARALLEL {
        true => order.iter().map(run).collect(),
        false => order.par_iter().with_min_len(CHUNK).map(run).collect(),
    }
}

fn column(
    table: &mut VerdictTable,
    order: &[NodeId],
    statuses: &[Status],
    slots: usize,
) -> Column<VerdictId> {
    let mut verdicts = vec![VerdictId::PASS; slots];
    for (id, status) in order.iter().zip(statuses) {
        verdicts[id.index()] = table.id_of(status);
    }
    Column::from_values(&verdicts)
}
