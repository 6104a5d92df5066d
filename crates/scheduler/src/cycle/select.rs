//! The scored nodes that did not win, best first, in the order in which upstream's heap yields them.
//! Upstream: the list that `selectHost` in `schedule_one.go` returns beside the winner.
//!
//! Only batching needs them, and rarely, so they are sorted only then, with the same moves as Go's
//! `container/heap`, unless another tie break is set. The winner itself: [`crate::answers::best`].

use std::sync::Arc;

use kubestep_api::Name;
use kubestep_framework::record::nodes::NodeList;
use kubestep_framework::record::scores::Scores;
use kubestep_framework::record::{CycleRecord, NodeNames};
use kubestep_framework::tie_break::TieBreak;

/// The nodes of a cycle that did not win, best first; sorted when the first is requested.
#[derive(Clone)]
pub(crate) struct RankedNodes(Arc<RankingStage>);

#[derive(Clone)]
enum RankingStage {
    ScoredNodes(ScoredNodes),
    Heap(ScoreHeap, NodesByPosition),
    Sorted(std::vec::IntoIter<usize>, NodesByPosition),
}

/// The feasible nodes by position.
#[derive(Clone)]
struct NodesByPosition {
    ids: NodeList,
    names: Arc<NodeNames>,
}

/// What the order is computed from.
#[derive(Clone)]
struct ScoredNodes {
    totals: Scores,
    tie_break: TieBreak,
    cycle: u64,
    nodes: NodesByPosition,
}

impl RankedNodes {
    /// The nodes that did not win in a cycle that scored. `None` if there are none.
    pub fn of(record: &CycleRecord) -> Option<RankedNodes> {
        let nodes = NodesByPosition { ids: record.feasible.clone(), names: record.nodes.clone() };
        let scored = ScoredNodes {
            totals: record.score.totals.clone(),
            tie_break: record.tie_break,
            cycle: record.cycle,
            nodes,
        };
        (scored.totals.len() > 1).then(|| RankedNodes(Arc::new(RankingStage::ScoredNodes(scored))))
    }

    /// Whether none is left.
    pub fn is_empty(&self) -> bool {
        match &*self.0 {
            RankingStage::ScoredNodes(scored) => scored.totals.len() <= 1,
            RankingStage::Heap(heap, _) => heap.0.is_empty(),
            RankingStage::Sorted(sorted, _) => sorted.len() == 0,
        }
    }
}

impl Iterator for RankedNodes {
    type Item = Name;

    fn next(&mut self) -> Option<Name> {
        let stage = Arc::make_mut(&mut self.0);
        if let RankingStage::ScoredNodes(scored) = stage {
            *stage = scored.without_winner();
        }
        let (at, nodes) = match stage {
            RankingStage::ScoredNodes(_) => return None,
            RankingStage::Heap(heap, nodes) => (heap.pop()?, nodes),
            RankingStage::Sorted(sorted, nodes) => (sorted.next()?, nodes),
        };
        nodes.ids.get(at).map(|node| nodes.names.name(*node))
    }
}

impl ScoredNodes {
    fn without_winner(&mut self) -> RankingStage {
        let nodes =
            NodesByPosition { ids: self.nodes.ids.clone(), names: self.nodes.names.clone() };
        let totals = self.totals.values();
        match self.tie_break.ranking(&totals, self.cycle) {
            None => {
                let mut heap = ScoreHeap::new(&totals);
                let _winner = heap.pop();
                RankingStage::Heap(heap, nodes)
            }
            Some(ranking) => {
                let mut sorted = ranking.into_iter();
                let _winner = sorted.next();
                RankingStage::Sorted(sorted, nodes)
            }
        }
    }
}

/// Positions of nodes with their totals; pops the best first.
#[derive(Clone)]
struct ScoreHeap(Vec<(i64, usize)>);

impl ScoreHeap {
    /// A heap over all positions of `totals`, built like `heap.Init`.
    fn new(totals: &[i64]) -> ScoreHeap {
        let mut heap = ScoreHeap(totals.iter().copied().zip(0..).collect());
        for at in (0..totals.len() / 2).rev() {
            heap.down(at, totals.len());
        }
        heap
    }

    /// Pops the best position.
    fn pop(&mut self) -> Option<usize> {
        let last = self.0.len().checked_sub(1)?;
        self.0.swap(0, last);
        self.down(0, last);
        self.0.pop().map(|(_, at)| at)
    }

    fn less(&self, a: usize, b: usize) -> bool {
        self.0[a].0 > self.0[b].0
    }

    /// Moves the element at `at` down within the first `len` elements.
    fn down(&mut self, mut at: usize, len: usize) {
        loop {
            let left = 2 * at + 1;
            if left >= len {
                return;
            }
            let right = left + 1;
            let child = if right < len && self.less(right, left) { right } else { left };
            if !self.less(child, at) {
                return;
            }
            self.0.swap(at, child);
            at = child;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::answers::best::winner;
    use kubestep_framework::node::NodeId;

    /// The winner and the others, by position.
    fn all(totals: &[i64], tie_break: TieBreak, cycle: u64) -> Vec<usize> {
        let ids: Vec<NodeId> = (0..totals.len() as u32).map(NodeId).collect();
        let names = ids.iter().map(|id| Name::new(&id.0.to_string())).collect();
        let mut record = CycleRecord { tie_break, cycle, ..CycleRecord::default() };
        record.nodes = Arc::new(NodeNames { order: ids.clone(), names });
        record.feasible = ids.into();
        record.score.totals = totals.to_vec().into();
        let winner = winner(&record.score.totals.values(), tie_break, cycle);
        let winner = winner.map(|winner| winner.position);
        let others = RankedNodes::of(&record).into_iter().flatten();
        winner.into_iter().chain(others.map(|name| name.text().parse().unwrap())).collect()
    }

    fn upstream(totals: &[i64]) -> Vec<usize> {
        all(totals, TieBreak::Upstream, 1)
    }

    #[test]
    fn the_first_wins_if_it_is_a_maximum() {
        assert_eq!(upstream(&[5, 5, 5])[0], 0);
        assert_eq!(upstream(&[5, 1, 5, 5])[0], 0);
    }

    #[test]
    fn the_heap_decides_among_others() {
        // heap.Init moves position 4 (the child of 1) up past position 2's equal total.
        assert_eq!(upstream(&[1, 2, 9, 3, 9])[0], 4);
        assert_eq!(upstream(&[1, 9, 9])[0], 1);
    }

    #[test]
    fn other_tie_breaks_do_not_ask_the_heap() {
        let totals = [1, 2, 9, 3, 9];
        assert_eq!(all(&totals, TieBreak::First, 1), [2, 4, 3, 1, 0]);
        assert_eq!(all(&totals, TieBreak::Seed(0), 1), [4, 2, 3, 1, 0]);
    }

    #[test]
    fn totals_come_out_in_descending_order() {
        let totals = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5];
        let popped: Vec<i64> = upstream(&totals).into_iter().map(|at| totals[at]).collect();
        assert_eq!(popped, [9, 6, 5, 5, 5, 4, 3, 3, 2, 1, 1]);
    }

    #[test]
    fn a_copy_goes_on_as_the_original() {
        let mut record = CycleRecord {
            feasible: (0..4).map(NodeId).collect(),
            nodes: Arc::new(NodeNames {
                order: Vec::new(),
                names: ["a", "b", "c", "d"].map(Name::new).to_vec(),
            }),
            ..CycleRecord::default()
        };
        record.score.totals = vec![1, 4, 2, 3].into();
        let mut others = RankedNodes::of(&record).unwrap();
        let untouched = others.clone();
        assert_eq!(others.next(), Some("d".into()));
        let rest: Vec<Name> = others.clone().collect();
        assert_eq!(rest, others.collect::<Vec<_>>());
        assert_eq!(untouched.collect::<Vec<_>>(), ["d", "c", "a"].map(Name::new));
    }

    proptest! {
        #[test]
        fn the_winner_is_the_one_that_the_full_order_has_in_front(
            totals in prop::collection::vec(0i64..4, 1..200),
            seed in 0u64..9,
        ) {
            let heap = ScoreHeap::new(&totals).pop();
            let winner = |tie_break| winner(&totals, tie_break, 3).map(|winner| winner.position);
            prop_assert_eq!(winner(TieBreak::Upstream), heap);
            for tie_break in [TieBreak::First, TieBreak::Seed(seed)] {
                let first = tie_break.ranking(&totals, 3).map(|ranking| ranking[0]);
                prop_assert_eq!(winner(tie_break), first);
            }
        }
    }
}
