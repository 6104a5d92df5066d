//! Scoring the feasible nodes and choosing one (S-016…S-019).

use std::sync::Arc;

use crate::Scheduler;
use crate::cycle::Cycle;
use crate::cycle::kept::{Kept, KeptColumn, Key};
use crate::cycle::select::{self, Others};
use crate::host::SchedulerHost;
use crate::interventions::by_hand;
use kubestep_api::intern::Symbol;
use kubestep_config::ExtensionPoint;
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::node::{NodeId, NodeInfo};
use kubestep_framework::plugin::{CycleContext, Plugin};
use kubestep_framework::record::column::Column;
use kubestep_framework::status::Status;

/// A raw score that is not known.
const UNKNOWN: i64 = i64::MIN;

impl Scheduler {
    /// Scores the feasible nodes and gives the name of the best. The error ends the cycle.
    pub(crate) fn prioritize(
        &mut self,
        cycle: &mut Cycle,
        host: &mut dyn SchedulerHost,
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
        let name = |at: usize| record.feasible.get(at).map(|node| record.nodes.name(*node));
        let winner = select::winner(&tied, record.tie_break, record.cycle).and_then(name);
        let winner = by_hand::chosen(record).or(winner).unwrap_or_default();
        self.remember_choice(cycle, winner, || Others::of(record));
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
            let given = (!self.extenders.is_empty()).then_some(cycle.nodes.as_slice());
            let profile = framework.name();
            let scorer = Scorer { cx, state: &state, ids: feasible, given, profile };
            let raw = |plugin: &dyn Plugin| scorer.raw(plugin, &mut kept);
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
    ids: &'a [NodeId],
    /// The same nodes as extenders gave them, if there are extenders.
    given: Option<&'a [Arc<NodeInfo>]>,
    profile: Symbol,
}

impl Scorer<'_> {
    fn raw(&self, plugin: &dyn Plugin, kept: &mut Kept) -> Result<Vec<i64>, Status> {
        if let Some(scores) = plugin.scores(&self.cx, self.state, self.ids) {
            return Ok(scores);
        }
        let score = |node: &Arc<NodeInfo>| plugin.score(&self.cx, self.state, node);
        // An extender may have made up nodes of its own; what is said of them is not kept.
        match (self.given, plugin.score_key(self.cx.pod)) {
            (Some(given), _) => given.iter().map(score).collect(),
            (None, Some(pod)) => self.kept(plugin, pod, kept),
            (None, None) => {
                self.ids.iter().filter_map(|id| self.cx.snapshot.get(*id)).map(score).collect()
            }
        }
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
        let mut raw = column.gather(self.ids, UNKNOWN);
        for (id, raw) in self.ids.iter().zip(&mut raw).filter(|(_, raw)| **raw == UNKNOWN) {
            let Some(node) = self.cx.snapshot.get(*id) else { continue };
            *raw = plugin.score(&self.cx, self.state, node)?;
            column.set(*id, *raw);
        }
        kept.put(key, KeptColumn::Scores(column));
        Ok(raw)
    }
}
