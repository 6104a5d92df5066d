//! Records without their matrices: what is left when memory runs short, and how the rest is
//! put back once the cycle was run again.
//!
//! The matrices, a verdict and a score for each plugin on each node, are nearly all of a
//! record. A thin record still tells who was tried, what each extension point said and what
//! became of the pod.

use std::mem::{size_of, size_of_val, take};

use hashbrown::HashMap;

use kubestep_framework::record::column::Column;
use kubestep_framework::record::scores::Scores;
use kubestep_framework::record::{Candidate, CycleRecord, LeftOut, ScoreColumn, VerdictId};

/// Bytes of a chunk in the list of chunks.
const CHUNK_ENTRY: usize = 16;

/// The record without its matrices. Plugins stay, with empty columns.
pub fn thin(record: &CycleRecord) -> CycleRecord {
    let mut thin = record.clone();
    thin.kept_certainty = record.certainty();
    thin.left_out.get_or_insert(LeftOut { feasible: record.feasible.len() });
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
    (thin.feasible, thin.candidates, thin.dry_run) = Default::default();
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
        left_out: matrices.left_out,
        ..record.clone()
    }
}

/// How much memory the matrices of several records take together: what they share counts once.
#[derive(Clone, Default, Debug)]
pub struct MatrixMemory {
    /// How many holders each list and each chunk has, by its address.
    holders: HashMap<usize, u32>,
    bytes: usize,
}

impl MatrixMemory {
    /// Bytes of all records that were added.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Counts a record in.
    pub fn add(&mut self, record: &CycleRecord) {
        self.bytes += own_bytes(record);
        lists(record).for_each(|list| self.hold(list));
        for column in columns(record) {
            let list = column.address();
            self.hold((list, 0));
            if self.holders.get(&list) == Some(&1) {
                column.chunks().into_iter().for_each(|chunk| self.hold(chunk));
            }
        }
    }

    /// Counts a record out that was added.
    pub fn remove(&mut self, record: &CycleRecord) {
        self.bytes -= own_bytes(record).min(self.bytes);
        lists(record).for_each(|list| self.release(list));
        for column in columns(record) {
            let list = column.address();
            self.release((list, 0));
            if !self.holders.contains_key(&list) {
                column.chunks().into_iter().for_each(|chunk| self.release(chunk));
            }
        }
    }

    fn hold(&mut self, (address, bytes): (usize, usize)) {
        let holders = self.holders.entry(address).or_default();
        *holders += 1;
        self.bytes += if *holders == 1 { bytes } else { 0 };
    }

    fn release(&mut self, (address, bytes): (usize, usize)) {
        let Some(holders) = self.holders.get_mut(&address) else { return };
        *holders -= 1;
        if *holders == 0 {
            self.holders.remove(&address);
            self.bytes -= bytes.min(self.bytes);
        }
    }
}

/// A column that records share: verdicts or scores.
#[derive(Clone, Copy)]
enum SharedColumn<'a> {
    Verdicts(&'a Column<VerdictId>),
    Scores(&'a Column<i64>),
}

impl<'a> SharedColumn<'a> {
    /// The address of the list of chunks, which is the same in records where nothing changed.
    fn address(self) -> usize {
        match self {
            SharedColumn::Verdicts(column) => column.address(),
            SharedColumn::Scores(column) => column.address(),
        }
    }

    /// Address and bytes of each chunk, with its entry in the list of chunks.
    fn chunks(self) -> Vec<(usize, usize)> {
        let bytes = |size| move |(at, len)| (at, len * size + CHUNK_ENTRY);
        match self {
            SharedColumn::Verdicts(column) => {
                column.chunks().map(bytes(size_of::<VerdictId>())).collect()
            }
            SharedColumn::Scores(column) => column.chunks().map(bytes(size_of::<i64>())).collect(),
        }
    }
}

/// The columns of filters and scores.
fn columns(record: &CycleRecord) -> impl Iterator<Item = SharedColumn<'_>> {
    let filters = record.filter.plugins.iter().map(|column| &column.verdicts);
    let filters = filters.chain([&record.filter.verdicts]).map(SharedColumn::Verdicts);
    let scores = record.score.plugins.iter().flat_map(|column| [&column.raw, &column.normalized]);
    let scores = scores.chain([&record.score.totals]).filter_map(|scores| match scores {
        Scores::OfNodes { column, .. } => Some(SharedColumn::Scores(column)),
        _ => None,
    });
    filters.chain(scores)
}

/// Address and bytes of the lists of nodes.
fn lists(record: &CycleRecord) -> impl Iterator<Item = (usize, usize)> + '_ {
    let lists = [&record.filter.evaluated, &record.feasible].into_iter();
    let lists = lists.map(|list| (list.as_ptr().addr(), size_of_val(&list[..])));
    lists.filter(|(_, bytes)| *bytes > 0)
}

/// Bytes of the lists that no other record shares.
fn own_bytes(record: &CycleRecord) -> usize {
    let scores = |scores: &Scores| match scores {
        Scores::Same { .. } | Scores::OfNodes { .. } | Scores::Unknown { .. } => 0,
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
    let totals = scores(&score.totals) + extenders.sum::<usize>();
    let victims = |candidate: &Candidate| size_of_val(&candidate.victims[..]);
    let candidates: usize = record.candidates.iter().map(victims).sum();
    let extender = size_of_val(&record.filter.extender[..]);
    let dry_run = record.dry_run.as_ref().map_or(0, |statuses| statuses.size());
    columns + totals + candidates + size_of_val(&record.candidates[..]) + extender + dry_run
}
