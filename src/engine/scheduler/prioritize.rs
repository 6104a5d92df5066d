//! Scoring the feasible nodes and choosing one (S-016…S-019).

use crate::config::ExtensionPoint;
use crate::engine::host::Host;
use crate::engine::scheduler::Scheduler;
use crate::engine::scheduler::cycle::Cycle;
use crate::engine::scheduler::select::ScoreHeap;
use crate::engine::status::Status;
use crate::intern::Symbol;

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
        let mut heap = ScoreHeap::new(&cycle.record.score.totals);
        let record = &cycle.record;
        let name = |at: usize| record.feasible.get(at).map(|node| record.nodes.name(*node));
        let winner = heap.pop().and_then(name).unwrap_or_default();
        let others = || std::iter::from_fn(|| heap.pop()).filter_map(name).collect();
        self.remember_choice(cycle, winner, others);
        Ok(winner)
    }

    fn run_scores(&mut self, cycle: &mut Cycle) -> Result<(), Status> {
        let framework = cycle.framework.clone();
        let mut state = std::mem::take(&mut cycle.state);
        let mut record = std::mem::take(&mut cycle.record.score);
        let (mut class, _) = self.classes.take(&cycle.class);
        let cx = self.cycle_context(cycle);
        let feasible = &cycle.record.feasible;
        let (answers, mut status) = framework.run_pre_score(&cx, &mut state, feasible);
        record.pre_score = answers;
        if status.is_success() {
            let nodes = (cycle.nodes.as_slice(), feasible.as_slice());
            status = framework.run_score(&cx, &state, nodes, &mut class.scores, &mut record);
        }
        // An extender may have made up nodes of its own; what was said of them is not kept.
        if self.extenders.is_empty() {
            self.classes.put(cycle.class.clone(), class);
        }
        cycle.state = state;
        cycle.record.score = record;
        if status.is_success() { Ok(()) } else { Err(status) }
    }
}
