//! Records without their matrices: what is left when memory runs short, and how the rest is
//! put back once the cycle was run again.
//!
//! The matrices, a verdict and a score for each plugin on each node, are nearly all of a
//! record. A thin record still tells who was tried, what each extension point said and what
//! became of the pod.

use std::mem::size_of_val;

use hashbrown::HashMap;

use kubestep_framework::record::scores::Scores;
use kubestep_framework::record::shared_list::SharedList;
use kubestep_framework::record::{
    Candidate, CycleRecord, FilterColumn, OmittedLists, PluginStatus, ScoreColumn,
};

/// What the last record that became thin kept of its lists. Most thin records share them.
#[derive(Clone, Default, Debug)]
pub struct ThinLists {
    pre_filter: SharedList<PluginStatus>,
    filter: SharedList<FilterColumn>,
    score: SharedList<ScoreColumn>,
}

/// The record without its matrices. Plugins stay, with empty columns.
pub fn thin(record: &CycleRecord, last: &mut ThinLists) -> CycleRecord {
    let mut thin = record.clone();
    drop_matrices(&mut thin, last);
    thin
}

/// Drops the matrices of a record. What it keeps of its lists is shared with the last one.
pub fn drop_matrices(record: &mut CycleRecord, last: &mut ThinLists) {
    record.stored_certainty = record.certainty();
    record.omitted.get_or_insert(OmittedLists { feasible: record.feasible.len() });
    record.verdicts = Default::default();
    if record.pre_filter.iter().any(|answer| answer.nodes.is_some()) {
        let without_nodes = |answer: &PluginStatus| PluginStatus { nodes: None, ..answer.clone() };
        let answers = record.pre_filter.iter().map(without_nodes).collect();
        record.pre_filter = SharedList::like(&mut last.pre_filter, answers);
    }
    let filter = &mut record.filter;
    (filter.verdicts, filter.evaluated, filter.extender) = Default::default();
    let empty = |FilterColumn { plugin, .. }: &FilterColumn| FilterColumn {
        plugin: *plugin,
        verdicts: Default::default(),
    };
    let columns = filter.plugins.iter().map(empty).collect();
    filter.plugins = SharedList::like(&mut last.filter, columns);
    let score = &mut record.score;
    score.extenders.iter_mut().for_each(|column| column.scores = Default::default());
    score.totals = Default::default();
    let empty = |ScoreColumn { plugin, weight, .. }: &ScoreColumn| ScoreColumn {
        plugin: *plugin,
        weight: *weight,
        raw: Default::default(),
        normalized: Default::default(),
    };
    let columns = score.plugins.iter().map(empty).collect();
    score.plugins = SharedList::like(&mut last.score, columns);
    (record.feasible, record.candidates, record.dry_run) = Default::default();
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
        omitted: matrices.omitted,
        ..record.clone()
    }
}

/// How much memory the matrices of several records take together: what they share counts once.
#[derive(Clone, Default, Debug)]
pub struct MatrixMemory {
    /// How many holders each list and each chunk has, by its address.
    holders: HashMap<usize, u32>,
    bytes: usize,
    nodes: usize,
}

impl MatrixMemory {
    /// Bytes of all records that were added.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The number of nodes of all records that were added.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Counts a record in.
    pub fn add(&mut self, record: &CycleRecord) {
        self.nodes += record.nodes.order.len();
        self.bytes += own_bytes(record);
        visit_shared(record, &mut |address, bytes| self.hold(address, bytes));
    }

    /// Counts a record out that was added.
    pub fn remove(&mut self, record: &CycleRecord) {
        self.nodes -= record.nodes.order.len().min(self.nodes);
        self.bytes -= own_bytes(record).min(self.bytes);
        visit_shared(record, &mut |address, bytes| self.release(address, bytes));
    }

    /// Counts a holder in. `true` if it is the first.
    fn hold(&mut self, address: usize, bytes: usize) -> bool {
        let holders = self.holders.entry(address).or_default();
        *holders += 1;
        self.bytes += if *holders == 1 { bytes } else { 0 };
        *holders == 1
    }

    /// Counts a holder out. `true` if it was the last.
    fn release(&mut self, address: usize, bytes: usize) -> bool {
        let Some(holders) = self.holders.get_mut(&address) else { return false };
        *holders -= 1;
        let is_last = *holders == 0;
        if is_last {
            self.holders.remove(&address);
            self.bytes -= bytes.min(self.bytes);
        }
        is_last
    }
}

/// Visits the lists that records share: those of nodes, and the columns of filters and scores with
/// what they consist of.
fn visit_shared(record: &CycleRecord, visit: &mut impl FnMut(usize, usize) -> bool) {
    record.filter.evaluated.visit_parts(visit);
    record.feasible.visit_parts(visit);
    let filters = record.filter.plugins.iter().map(|column| &column.verdicts);
    filters.chain([&record.filter.verdicts]).for_each(|column| column.visit_parts(visit));
    let scores = record.score.plugins.iter().flat_map(|column| [&column.raw, &column.normalized]);
    for scores in scores.chain([&record.score.totals]) {
        if let Scores::OfNodes { column, .. } = scores {
            column.visit_parts(visit);
        }
    }
}

/// Bytes of the lists that no other record shares.
fn own_bytes(record: &CycleRecord) -> usize {
    let scores = |scores: &Scores| match scores {
        Scores::Same { .. } | Scores::OfNodes { .. } | Scores::Unknown { .. } => 0,
        Scores::Small(scores) => size_of_val(&scores[..]),
        Scores::Medium(scores) => size_of_val(&scores[..]),
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
    let victims = |candidate: &Candidate| {
        let reasons: usize = candidate.reasons.iter().map(|reason| reason.capacity()).sum();
        size_of_val(&candidate.victims[..]) + size_of_val(&candidate.reasons[..]) + reasons
    };
    let candidates: usize = record.candidates.iter().map(victims).sum();
    let extender = size_of_val(&record.filter.extender[..]);
    let dry_run = record.dry_run.as_ref().map_or(0, |statuses| statuses.size());
    columns + totals + candidates + size_of_val(&record.candidates[..]) + extender + dry_run
}
