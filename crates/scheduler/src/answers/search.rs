//! The search for feasible nodes, kept from cycle to cycle for similar pods.
//!
//! Which nodes pass all filters changes little between two such cycles: only the nodes whose
//! verdicts differ are looked at. Where the search starts and how many nodes it wants may be
//! different each time, so the nodes that pass are kept as a set of positions in the node order. A
//! search that stops early finds a window on that order.

use std::sync::Arc;

use hashbrown::HashMap;

use kubestep_framework::node::NodeId;
use kubestep_framework::record::column::{Column, Range};
use kubestep_framework::record::nodes::{NodeList, NodeWindow};
use kubestep_framework::record::{FilterColumn, VerdictId, VerdictTable};
use kubestep_framework::snapshot::Snapshot;
use kubestep_framework::snapshot::positions::PositionSet;
use kubestep_framework::status::Code;
use kubestep_framework::status::node_statuses::Diagnosis;

use super::matrix::first_rejections;
use super::recent::Recent;

/// About how many bytes a search takes per node.
const NODE_BYTES: usize = 12;

/// What a search found: which nodes it evaluated, and those that passed.
#[derive(Clone, Debug)]
pub(crate) struct SearchResult {
    pub evaluated: NodeList,
    pub feasible: NodeList,
    /// The positions in the node order of all nodes that pass.
    pub passing: PositionSet,
    /// By slot: the verdict on the node.
    pub verdicts: Column<VerdictId>,
    /// Number of nodes that passed or were rejected.
    pub processed: usize,
    /// Why all nodes were rejected, once it was computed.
    pub diagnosis: Option<Arc<Diagnosis>>,
}

/// A search with its input: where it started and how many nodes it wanted.
#[derive(Clone, Debug)]
struct PreviousSearch {
    start: usize,
    wanted: usize,
    found: SearchResult,
}

/// The nodes that pass the filters for one class of pods.
#[derive(Clone, Debug)]
pub(crate) struct FeasibleSearch {
    /// The verdicts of the filter plugins that `first` reflects.
    columns: Vec<Column<VerdictId>>,
    /// By slot: the verdict of the first filter plugin that rejects the node, each run alone.
    pub first: Column<VerdictId>,
    /// How many nodes have each verdict.
    counts: HashMap<VerdictId, usize>,
    order: Arc<Vec<NodeId>>,
    /// The positions in the node order of the nodes that pass.
    passing: PositionSet,
    last: Option<PreviousSearch>,
}

/// The searches by class of pods.
#[derive(Clone, Default, Debug)]
pub(crate) struct Searches(Recent<FeasibleSearch>);

impl Searches {
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The search of a class of pods, brought up to date with the verdicts of its plugins about
    /// all nodes; `rejected` has the number of rejections by plugin.
    pub fn update(
        &mut self,
        class: &str,
        columns: &[FilterColumn],
        rejected: &[usize],
        snapshot: &Snapshot,
    ) -> &mut FeasibleSearch {
        let new = || FeasibleSearch::new(columns, rejected, snapshot);
        let search = self.0.entry(class, snapshot.slots() * NODE_BYTES, new);
        search.update(columns, rejected, snapshot);
        debug_assert!(search.is_as_computed_again(columns, rejected, snapshot));
        search
    }

    /// The verdicts of the plugins in the last search of a class of pods.
    pub fn columns(&self, class: &str) -> &[Column<VerdictId>] {
        self.0.get(class).map_or(&[], |search| &search.columns)
    }

    /// The search of a class of pods.
    pub fn get_mut(&mut self, class: &str) -> Option<&mut FeasibleSearch> {
        self.0.get_mut(class)
    }
}

impl FeasibleSearch {
    fn new(columns: &[FilterColumn], rejected: &[usize], snapshot: &Snapshot) -> FeasibleSearch {
        let verdicts = first_rejections(columns, rejected, snapshot.slots());
        let in_order: Vec<VerdictId> =
            snapshot.order().iter().map(|id| verdicts[id.index()]).collect();
        let passing = PositionSet::of(in_order.len(), |at| in_order[at] == VerdictId::PASS);
        FeasibleSearch {
            columns: columns.iter().map(|column| column.verdicts.clone()).collect(),
            first: Column::from_values(&verdicts),
            counts: counts(&in_order),
            order: snapshot.order().clone(),
            passing,
            last: None,
        }
    }

    fn update(&mut self, columns: &[FilterColumn], rejected: &[usize], snapshot: &Snapshot) {
        let is_same = Arc::ptr_eq(&self.order, snapshot.order())
            && self.first.len() == snapshot.slots()
            && self.columns.len() == columns.len();
        let pairs = || self.columns.iter().zip(columns);
        let changed = |(before, now): (&Column<VerdictId>, &FilterColumn)| {
            now.verdicts.count_differences(before)
        };
        // So many are cheaper to compute again.
        if !is_same || pairs().map(changed).sum::<usize>() > 16 + snapshot.len() / 4 {
            *self = FeasibleSearch::new(columns, rejected, snapshot);
            return;
        }
        let mut slots = Vec::new();
        pairs().for_each(|(before, now)| now.verdicts.differences(before, &mut slots));
        let pairs = self.columns.iter_mut().zip(columns);
        pairs.for_each(|(before, column)| *before = column.verdicts.clone());
        let rejecting = || columns.iter().zip(rejected).filter(|(_, count)| **count > 0);
        for id in slots {
            let mut verdicts = rejecting().filter_map(|(column, _)| column.verdicts.get(id));
            let first = verdicts.find(|verdict| verdict.is_status()).unwrap_or(VerdictId::PASS);
            self.set(id, first, snapshot.ranks());
        }
    }

    /// Sets the verdict on a node.
    fn set(&mut self, id: NodeId, verdict: VerdictId, ranks: &[u32]) {
        let before = self.first.get(id).unwrap_or(VerdictId::PASS);
        let rank = ranks.get(id.index()).map_or(usize::MAX, |rank| *rank as usize);
        if before == verdict || rank >= self.order.len() {
            return;
        }
        self.last = None;
        self.first.set(id, verdict);
        if let Some(count) = self.counts.get_mut(&before) {
            *count -= 1;
        }
        *self.counts.entry(verdict).or_default() += 1;
        self.passing.set(rank, verdict == VerdictId::PASS);
    }

    /// Whether it is the same as one that is made now.
    fn is_as_computed_again(
        &self,
        columns: &[FilterColumn],
        rejected: &[usize],
        snapshot: &Snapshot,
    ) -> bool {
        let again = FeasibleSearch::new(columns, rejected, snapshot);
        let count = |search: &FeasibleSearch, verdict: &VerdictId| {
            search.counts.get(verdict).copied().unwrap_or(0)
        };
        let mut verdicts = self.counts.keys().chain(again.counts.keys());
        let is_same = |id: &NodeId| self.first.get(*id) == again.first.get(*id);
        self.passing == again.passing
            && verdicts.all(|verdict| count(self, verdict) == count(&again, verdict))
            && snapshot.order().iter().all(is_same)
    }

    /// How many nodes do not pass.
    pub(crate) fn rejected(&self) -> usize {
        self.order.len() - self.passing.len()
    }

    /// Whether an error is among the verdicts. It ends the cycle at its node.
    pub(crate) fn has_errors(&self, table: &VerdictTable) -> bool {
        let is_error = |id: &VerdictId| table.get(*id).is_some_and(|s| s.code() == Code::Error);
        self.counts.iter().any(|(id, count)| *count > 0 && is_error(id))
    }

    /// Visits the nodes from a position in the node order until `wanted` and one more pass.
    pub fn find(&mut self, start: usize, wanted: usize, snapshot: &Snapshot) -> SearchResult {
        if let Some(last) = &self.last
            && (last.start, last.wanted) == (start, wanted)
        {
            return last.found.clone();
        }
        let nodes = self.order.len();
        let end = self.position_after(start, wanted);
        let distance = |end: usize| if end < start { end + nodes - start } else { end - start };
        let processed = end.map_or(nodes, distance);
        // The node with which the search ends is evaluated, but neither passes nor is rejected.
        let evaluated = processed + usize::from(end.is_some());
        let evaluated = NodeWindow::new(self.order.clone(), start, evaluated).into();
        let feasible = match end {
            None => self.all_passing(start).into(),
            Some(_) => NodeList::among(&self.order, &self.passing, start, wanted),
        };
        let verdicts = match processed == nodes && nodes == snapshot.slots() {
            true => self.first.clone(),
            false => self.first.within(Range {
                ranks: snapshot.ranks().clone(),
                nodes,
                start,
                len: processed,
                outside: VerdictId::ENOUGH_FOUND,
                free: VerdictId::CYCLE_ENDED,
            }),
        };
        let passing = self.passing.clone();
        let found =
            SearchResult { evaluated, feasible, passing, verdicts, processed, diagnosis: None };
        self.last = Some(PreviousSearch { start, wanted, found: found.clone() });
        found
    }

    /// Keeps why all nodes were rejected in the last search.
    pub(crate) fn keep_diagnosis(&mut self, diagnosis: &Diagnosis) {
        if let Some(last) = &mut self.last {
            last.found.diagnosis = Some(Arc::new(diagnosis.clone()));
        }
    }

    /// The position of the node that passes after the first `wanted` that do, from a position in
    /// the node order on. `None` if no more pass.
    fn position_after(&self, start: usize, wanted: usize) -> Option<usize> {
        let passing = self.passing.len();
        let rank = self.passing.rank(start) + Some(wanted).filter(|wanted| *wanted < passing)?;
        self.passing.select(if rank < passing { rank } else { rank - passing })
    }

    /// All nodes that pass, from a position in the node order on.
    fn all_passing(&self, start: usize) -> Vec<NodeId> {
        let mut nodes = Vec::with_capacity(self.passing.len());
        for (from, to) in [(start, self.order.len()), (0, start)] {
            let runs = self.passing.runs(from, to);
            runs.for_each(|(from, to)| nodes.extend_from_slice(&self.order[from..to]));
        }
        nodes
    }
}

/// How often each verdict occurs.
fn counts(verdicts: &[VerdictId]) -> HashMap<VerdictId, usize> {
    // Most verdicts have small numbers: those are counted without a look into the map.
    let mut small = [0; 256];
    let mut counts = HashMap::new();
    for verdict in verdicts {
        match small.get_mut(verdict.0 as usize) {
            Some(count) => *count += 1,
            None => *counts.entry(*verdict).or_default() += 1,
        }
    }
    let small = (0..).map(VerdictId).zip(small);
    counts.extend(small.filter(|(_, count)| *count > 0));
    counts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use kubestep_framework::node::NodeInfo;

    const REJECTED: VerdictId = VerdictId(9);

    fn columns(verdicts: &[bool]) -> ([FilterColumn; 1], [usize; 1]) {
        let verdict = |passes: &bool| if *passes { VerdictId::PASS } else { REJECTED };
        let values: Vec<VerdictId> = verdicts.iter().map(verdict).collect();
        let rejected = values.iter().filter(|verdict| verdict.is_status()).count();
        let column = Column::from_values(&values);
        ([FilterColumn { plugin: "Test".into(), verdicts: column }], [rejected])
    }

    fn snapshot(nodes: usize) -> Snapshot {
        let node = |at: usize| NodeInfo::new(NodeId(at as u32), format!("n{at}").as_str().into());
        Snapshot::of((0..nodes).map(node).collect())
    }

    /// The search node by node: evaluated, feasible, processed.
    fn visited(verdicts: &[bool], start: usize, wanted: usize) -> (Vec<u32>, Vec<u32>, usize) {
        let (mut evaluated, mut feasible, mut processed) = (Vec::new(), Vec::new(), 0);
        for at in (start..verdicts.len()).chain(0..start) {
            evaluated.push(at as u32);
            if verdicts[at] && feasible.len() == wanted {
                break;
            }
            processed += 1;
            feasible.extend(verdicts[at].then_some(at as u32));
        }
        (evaluated, feasible, processed)
    }

    proptest! {
        #[test]
        fn a_kept_search_finds_what_visiting_each_node_finds(
            rounds in prop::collection::vec(
                (prop::collection::vec(any::<bool>(), 150), 0_usize..150, 0_usize..150), 1..6,
            ),
            nodes in 1_usize..150,
        ) {
            let snapshot = snapshot(nodes);
            let mut searches = Searches::default();
            for (verdicts, start, wanted) in rounds {
                let (verdicts, start) = (&verdicts[..nodes], start % nodes);
                let (columns, rejected) = columns(verdicts);
                let search = searches.update("class", &columns, &rejected, &snapshot);
                let found = search.find(start, wanted, &snapshot);
                let (evaluated, feasible, processed) = visited(verdicts, start, wanted);
                let numbers = |ids: &NodeList| ids.iter().map(|id| id.0).collect::<Vec<_>>();
                prop_assert_eq!(numbers(&found.evaluated), evaluated.clone());
                prop_assert_eq!(numbers(&found.feasible), feasible);
                prop_assert_eq!(found.processed, processed);
                for (slot, passes) in verdicts.iter().enumerate() {
                    let is_processed = evaluated[..processed].contains(&(slot as u32));
                    let expected = match (is_processed, passes) {
                        (false, _) => VerdictId::ENOUGH_FOUND,
                        (true, true) => VerdictId::PASS,
                        (true, false) => REJECTED,
                    };
                    prop_assert_eq!(found.verdicts.get(NodeId(slot as u32)), Some(expected));
                }
            }
        }
    }
}
