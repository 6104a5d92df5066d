//! Scoring the feasible nodes and selecting one.
//!
//! Upstream: `prioritizeNodes` and `selectHost` in `pkg/scheduler/schedule_one.go`.

use std::sync::Arc;

use super::schedule_pod::SchedulePod;
use super::select::RankedNodes;
use super::{Cycle, CycleParts};
use crate::answers::best::{self, Winner};
use crate::answers::class_scores::{self, ScoreCycle};
use crate::answers::scores::AnswerScorer;
use crate::interventions;
use kubestep_api::Name;
use kubestep_config::ExtensionPoint;
use kubestep_config::types::Extender;
use kubestep_config::versions::Switch;
use kubestep_framework::extender;
use kubestep_framework::node::NodeInfo;
use kubestep_framework::plugin::Plugin;
use kubestep_framework::record::nodes::{NodeList, NodeWindow};
use kubestep_framework::record::scores::Scores;
use kubestep_framework::record::{CycleRecord, ExtenderColumn};
use kubestep_framework::runtime::scoring::CachedScores;
use kubestep_framework::status::Status;

impl SchedulePod<'_> {
    /// Scores the feasible nodes and returns the name of the best. The error ends the cycle.
    pub(super) fn prioritize(&mut self) -> Result<Name, Status> {
        let has_scores = self.cycle.framework.runs_any_at(ExtensionPoint::Score);
        let mut winner = None;
        if has_scores || !self.profiles.extenders.is_empty() {
            winner = self.run_scores()?;
            self.add_extender_scores();
        } else {
            let record = &mut self.cycle.record;
            record.score.totals = Scores::Same { value: 1, len: record.feasible.len() };
        }
        let selected = select_host(&mut self.cycle.record, winner);
        let cycle = &*self.cycle;
        let (batches, others) = (&mut self.algorithm.batches, || RankedNodes::of(&cycle.record));
        batches.remember(self.cluster, cycle, self.popped, selected, others);
        Ok(selected)
    }

    /// Runs PreScore, Score and Normalize. Returns the winner if it is known without comparing the
    /// totals.
    fn run_scores(&mut self) -> Result<Option<Winner>, Status> {
        let CycleParts { framework, cx, state, returned, passing, record, .. } =
            self.cycle.parts(self.cluster);
        // Up to 1.32, nodes are scored as the snapshot has them, whatever the extenders returned.
        let as_returned =
            !self.profiles.extenders.is_empty() && cx.features.has(Switch::ScoredAsFiltered);
        let CycleRecord { feasible, score: scores, tie_break, cycle: number, start_index, .. } =
            record;
        let (answers, mut status) = framework.run_pre_score(&cx, state, feasible);
        let records = &mut self.algorithm.answers.records;
        scores.pre_score = records.answers(ExtensionPoint::PreScore, answers);
        let mut winner = None;
        if status.is_success() {
            let answers = &mut self.algorithm.answers;
            let of_snapshot = |node: &Arc<NodeInfo>| {
                cx.snapshot.get(node.id).is_some_and(|own| Arc::ptr_eq(own, node))
            };
            scores.as_returned = as_returned && !returned.iter().all(of_snapshot);
            let (tie_break, number) = (*tie_break, *number);
            let start = start_index.checked_rem(cx.snapshot.len()).unwrap_or(0);
            let window = passing.as_ref().map(|passing| {
                NodeWindow::among(cx.snapshot.order().clone(), passing, start, feasible.len())
            });
            debug_assert!(window.iter().all(|it| NodeList::from(it.clone()) == *feasible));
            let searched = window.as_ref().zip(passing.as_ref());
            let cycle =
                ScoreCycle { framework, cx: &cx, state, feasible, searched, tie_break, number };
            let found = match self.profiles.extenders.is_empty() {
                true => answers.class_scores.update(cycle, &mut answers.cache),
                false => None,
            };
            winner = found.as_ref().and_then(|found| found.winner);
            let kept = found.map(|found| found.scores);
            let kept = kept.unwrap_or_else(|| CachedScores::none(feasible.len()));
            debug_assert!(class_scores::are_as_computed_again(&kept, cycle));
            let by_kept = kept.totals.clone();
            let mut scorer = AnswerScorer {
                profile: framework.name(),
                cx,
                state,
                ids: feasible,
                returned: as_returned.then_some(returned),
                cache: &mut answers.cache,
            };
            let raw = |plugin: &dyn Plugin| scorer.raw(plugin);
            status = framework.run_score(&cx, state, feasible, kept, raw, scores);
            // Other plugins may have added to the totals.
            winner = winner.filter(|_| scores.totals.is_shared_with(&by_kept));
        }
        if status.is_success() { Ok(winner) } else { Err(status) }
    }

    /// Adds the extenders' scores to the totals; their errors are ignored.
    fn add_extender_scores(&mut self) {
        if self.profiles.extenders.is_empty() {
            return;
        }
        let Cycle { queued, returned, record, .. } = &mut *self.cycle;
        let pod = &queued.info.pod;
        for (index, extender) in self.profiles.extenders.iter().enumerate() {
            if !extender::is_interested(extender, pod) {
                continue;
            }
            let answer = extender::prioritize((index, extender), pod, returned, self.host);
            if let Ok(given) = answer {
                record.score.extenders.push(column(extender, &given, returned));
            }
        }
        let score = &mut record.score;
        let totals = score.totals.values();
        let add =
            |(at, total): (usize, &i64)| total.wrapping_add(score.by_extenders(at).unwrap_or(0));
        score.totals = Scores::from(totals.iter().enumerate().map(add).collect::<Vec<i64>>());
    }
}

/// What an extender answered about `nodes`; a node that it names twice gets the sum.
fn column(extender: &Extender, given: &[(Name, i64)], nodes: &[Arc<NodeInfo>]) -> ExtenderColumn {
    let mut scores: Vec<Option<i64>> = vec![None; nodes.len()];
    for (name, score) in given {
        if let Some(at) = nodes.iter().position(|node| node.name == *name) {
            scores[at] = Some(scores[at].unwrap_or(0).wrapping_add(*score));
        }
    }
    ExtenderColumn { extender: extender::name(extender), weight: extender.weight, scores }
}

/// Selects one of the nodes with the best total; an intervention may choose among them.
fn select_host(record: &mut CycleRecord, known: Option<Winner>) -> Name {
    let winner = || best::winner(&record.score.totals.values(), record.tie_break, record.cycle);
    debug_assert!(known.is_none() || known == winner());
    let Some(Winner { position, tied }) = known.or_else(winner) else { return Name::EMPTY };
    record.tied = if tied > 1 { tied } else { 0 };
    let selected = record.feasible.get(position).map(|node| record.nodes.name(*node));
    interventions::chosen(record).or(selected).unwrap_or_default()
}
