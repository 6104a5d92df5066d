//! Records without their matrices: what is left when memory runs short, and how the rest is
//! put back once the cycle was run again.
//!
//! The matrices, a verdict and a score for each plugin on each node, are nearly all of a
//! record. A thin record still tells who was tried, what each extension point said and what
//! became of the pod.

use std::mem::{size_of, size_of_val, take};

use hashbrown::HashMap;

use kubestep_framework::node::NodeId;
use kubestep_framework::record::scores::Scores;
use kubestep_framework::record::{Candidate, CycleRecord, LeftOut, ScoreColumn, VerdictId};

/// The record without its matrices. Plugins stay, with empty columns.
pub fn thin(record: &CycleRecord) -> CycleRecord {
    let mut thin = record.clone();
    thin.kept_certainty = record.certainty();
    thin.left_out
        .get_or_insert(LeftOut { feasible: record.feasible.len(), tied: !record.tie.is_empty() });
    thin.verdicts = Default::default();
    for answer in &mut thin.pre_filter {
        answer.nodes.as_mut().map(take);
    }
    let filter = &mut thin.filter;
    (filter.verdicts, filter.evaluated, filter.extender) = Default::default();
    filter.plugins.iter_mut().for_each(|column| column.verdicts = Default::default());
    let score = &mut thin.score;
    score.extenders.iter_mut().for_each(|column| column.scores = Default::default());
    score.totals = Default::default();
    for column in &mut score.plugins {
        (column.raw, column.normalized) = Default::default();
    }
    (thin.feasible, thin.candidates, thin.dry_run, thin.tie) = Default::default();
    thin
}

/// A record that may be thin with the matrices of `whole`, the same cycle run again. What else
/// it tells stays: it may know how a wait at Permit ended, which `whole` does not.
pub fn fill(record: &CycleRecord, whole: &CycleRecord) -> CycleRecord {
    let matrices = whole.clone();
    CycleRecord {
        verdicts: matrices.verdicts,
        pre_filter: matrices.pre_filter,
        filter: matrices.filter,
        feasible: matrices.feasible,
        score: matrices.score,
        candidates: matrices.candidates,
        dry_run: matrices.dry_run,
        tie: matrices.tie,
        left_out: matrices.left_out,
        ..record.clone()
    }
}

/// How much memory the matrices of several records take together: what they share counts once.
#[derive(Clone, Default, Debug)]
pub struct Weights {
    /// How many columns hold each chunk, by its address.
    chunks: HashMap<usize, u32>,
    bytes: usize,
}

impl Weights {
    /// Bytes of all records that were added.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Counts a record in.
    pub fn add(&mut self, record: &CycleRecord) {
        self.bytes += own_bytes(record);
        for (chunk, bytes) in chunks(record) {
            let held = self.chunks.entry(chunk).or_default();
            *held += 1;
            self.bytes += if *held == 1 { bytes } else { 0 };
        }
    }

    /// Counts a record out that was added.
    pub fn remove(&mut self, record: &CycleRecord) {
        self.bytes -= own_bytes(record).min(self.bytes);
        for (chunk, bytes) in chunks(record) {
            let Some(held) = self.chunks.get_mut(&chunk) else { continue };
            *held -= 1;
            if *held == 0 {
                self.chunks.remove(&chunk);
                self.bytes -= bytes.min(self.bytes);
            }
        }
    }
}

/// Address and bytes of what records share: the chunks of the filter columns, lists of nodes.
fn chunks(record: &CycleRecord) -> impl Iterator<Item = (usize, usize)> + '_ {
    let columns = record.filter.plugins.iter().map(|column| &column.verdicts);
    let columns = columns.chain([&record.filter.verdicts]);
    let bytes = |(at, len): (usize, usize)| (at, len * size_of::<VerdictId>());
    let columns = columns.flat_map(|column| column.chunks()).map(bytes);
    let lists = [&record.filter.evaluated, &record.feasible].into_iter();
    let lists = lists.map(|list| (list.as_ptr().addr(), size_of_val(&list[..])));
    columns.chain(lists.filter(|(_, bytes)| *bytes > 0))
}

/// Bytes of the lists that no other record shares.
fn own_bytes(record: &CycleRecord) -> usize {
    let nodes = record.tie.capacity() * size_of::<NodeId>();
    let scores = |scores: &Scores| match scores {
        Scores::Same { .. } | Scores::Unknown { .. } => 0,
        Scores::Small(scores) => size_of_val(&scores[..]),
        Scores::Any(scores) => size_of_val(&scores[..]),
    };
    let score = &record.score;
    let column = |column: &ScoreColumn| match column.raw.is_shared_with(&column.normalized) {
        true => scores(&column.raw),
        false => scores(&column.raw) + scores(&column.normalized),
    };
    let columns: usize = score.plugins.iter().map(column).sum();
    let extenders = score.extenders.iter().map(|column| size_of_val(&column.scores[..]));
    let totals = size_of_val(&score.totals[..]) + extenders.sum::<usize>();
    let victims = |candidate: &Candidate| size_of_val(&candidate.victims[..]);
    let candidates: usize = record.candidates.iter().map(victims).sum();
    let extender = size_of_val(&record.filter.extender[..]);
    let dry_run = record.dry_run.as_ref().map_or(0, |statuses| statuses.size());
    nodes + columns + totals + candidates + size_of_val(&record.candidates[..]) + extender + dry_run
}
