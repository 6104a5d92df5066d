//! Scoring the feasible nodes and choosing one (S-016…S-019).

use std::sync::Arc;

use crate::config::ExtensionPoint;
use crate::engine::column::Column;
use crate::engine::framework::cycle_state::CycleState;
use crate::engine::framework::plugin::{CycleContext, Plugin};
use crate::engine::host::Host;
use crate::engine::node::NodeInfo;
use crate::engine::scheduler::Scheduler;
use crate::engine::scheduler::by_hand;
use crate::engine::scheduler::cycle::Cycle;
use crate::engine::scheduler::kept::{Kept, KeptColumn, Key};
use crate::engine::scheduler::select::Ranking;
use crate::engine::status::Status;
use crate::intern::Symbol;

/// A raw score that is not known.
const UNKNOWN: i64 = i64::MIN;

impl Scheduler {
    /// Scores the feasible nodes and gives the name of the best. The error ends the cycle.
    pub(super) fn prioritize(
        &mut self,
        cycle: &mut Cycle,
        host: &mut dyn Host,
    ) -> Result<Symbol, Status> {
        let has_scores = !cycle.framework.at(ExtensionPoint::Score).is_empty();
        if has_scores || !self.extenders.is_empty() {
            self.run_scores(cycle)?;
            self.add_extender_scores(cycle, host);
        } else {
            cycle.record.score.totals = vec![1; cycle.record.feasible.len()];
        }
        let tied = cycle.record.score.tied_best();
        if tied.len() > 1 {
            cycle.record.tie = tied.iter().map(|at| cycle.record.feasible[*at]).collect();
        }
        let record = &cycle.record;
        let mut ranking = Ranking::new(&record.score.totals, record.tie_break, record.cycle);
        let name = |at: usize| record.feasible.get(at).map(|node| record.nodes.name(*node));
        let winner = ranking.next().and_then(name).unwrap_or_default();
        let winner = by_hand::chosen(record).unwrap_or(winner);
        self.remember_choice(cycle, winner, || ranking.filter_map(name).collect());
        Ok(winner)
    }

    fn run_scores(&mut self, cycle: &mut Cycle) -> Result<(), Status> {
        let framework = cycle.framework.clone();
        let mut state = std::mem::take(&mut cycle.state);
        let mut record = std::mem::take(&mut cycle.record.score);
        let mut kept = std::mem::take(&mut self.kept);
        let cx = self.cycle_context(cycle);
        let feasible = &cycle.record.feasible;
        let (answers, mut status) = framework.run_pre_score(&cx, &mut state, feasible);
        record.pre_score = answers;
        if status.is_success() {
            let scorer =
                Scorer { cx, state: &state, nodes: &cycle.nodes, profile: framework.name() };
            // An extender may have made up nodes of its own; what is said of them is not kept.
            let keeps = self.extenders.is_empty();
            let raw = |plugin: &dyn Plugin| match plugin.score_key(cx.pod).filter(|_| keeps) {
                Some(pod) => scorer.kept(plugin, pod, &mut kept),
                None => scorer.all(plugin),
            };
            status = framework.run_score(&cx, &state, feasible, raw, &mut record);
        }
        cycle.state = state;
        cycle.record.score = record;
        self.kept = kept;
        if status.is_success() { Ok(()) } else { Err(status) }
    }
}

/// Asks score plugins about the feasible nodes.
struct Scorer<'a> {
    cx: CycleContext<'a>,
    state: &'a CycleState,
    nodes: &'a [Arc<NodeInfo>],
    profile: Symbol,
}

impl Scorer<'_> {
    fn all(&self, plugin: &dyn Plugin) -> Result<Vec<i64>, Status> {
        self.nodes.iter().map(|node| plugin.score(&self.cx, self.state, node)).collect()
    }

    /// The scores that are kept for pods like this one; unknown ones are asked for.
    fn kept(&self, plugin: &dyn Plugin, pod: String, kept: &mut Kept) -> Result<Vec<i64>, Status> {
        let point = ExtensionPoint::Score;
        let key = Key { profile: self.profile, plugin: plugin.name(), point, pod };
        let mut column = match kept.take(&key) {
            Some((KeptColumn::Scores(mut column), stale)) => {
                column.grow(UNKNOWN, self.cx.snapshot.slots());
                stale.iter().for_each(|node| column.set(*node, UNKNOWN));
                column
            }
            _ => Column::filled(UNKNOWN, self.cx.snapshot.slots()),
        };
        let mut raw = Vec::with_capacity(self.nodes.len());
        for node in self.nodes {
            let score = match column.get(node.id).filter(|score| *score != UNKNOWN) {
                Some(score) => score,
                None => {
                    let score = plugin.score(&self.cx, self.state, node)?;
                    column.set(node.id, score);
                    score
                }
            };
            raw.push(score);
        }
        kept.put(key, KeptColumn::Scores(column));
        Ok(raw)
    }
}
