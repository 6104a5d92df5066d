//! Which node wins among the scored: what upstream's heap yields (S-019), unless ties are to
//! be broken otherwise.
//!
//! Among equal totals the winner depends on how Go's `container/heap` moves elements, so its
//! moves are followed exactly.

use crate::engine::tie_break::TieBreak;

/// Positions of nodes, best first.
pub(super) enum Ranking<'a> {
    /// As upstream's heap yields them; the rest is put in order only when it is asked for.
    Upstream(ScoreHeap<'a>),
    /// As another tie-break has them.
    Sorted(std::vec::IntoIter<usize>),
}

impl<'a> Ranking<'a> {
    /// All positions of `totals` in cycle number `cycle`.
    pub fn new(totals: &'a [i64], tie_break: TieBreak, cycle: u64) -> Ranking<'a> {
        match tie_break.ranking(totals, cycle) {
            None => Ranking::Upstream(ScoreHeap::new(totals)),
            Some(sorted) => Ranking::Sorted(sorted.into_iter()),
        }
    }
}

impl Iterator for Ranking<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        match self {
            Ranking::Upstream(heap) => heap.pop(),
            Ranking::Sorted(sorted) => sorted.next(),
        }
    }
}

/// Positions of nodes, best first out.
pub(super) struct ScoreHeap<'a> {
    totals: &'a [i64],
    heap: Vec<usize>,
}

impl<'a> ScoreHeap<'a> {
    /// A heap over all positions of `totals`, built as `heap.Init` does.
    pub fn new(totals: &'a [i64]) -> ScoreHeap<'a> {
        let mut heap = ScoreHeap { totals, heap: (0..totals.len()).collect() };
        for at in (0..totals.len() / 2).rev() {
            heap.down(at, totals.len());
        }
        heap
    }

    /// Takes the best position out.
    pub fn pop(&mut self) -> Option<usize> {
        let last = self.heap.len().checked_sub(1)?;
        self.heap.swap(0, last);
        self.down(0, last);
        self.heap.pop()
    }

    fn less(&self, a: usize, b: usize) -> bool {
        self.totals[self.heap[a]] > self.totals[self.heap[b]]
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
            self.heap.swap(at, child);
            at = child;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(totals: &[i64]) -> Vec<usize> {
        Ranking::new(totals, TieBreak::Upstream, 1).collect()
    }

    #[test]
    fn the_first_wins_if_it_is_a_maximum() {
        assert_eq!(all(&[5, 5, 5])[0], 0);
        assert_eq!(all(&[5, 1, 5, 5])[0], 0);
    }

    #[test]
    fn the_heap_decides_among_others() {
        // heap.Init moves position 4 (the child of 1) up past position 2's equal total.
        assert_eq!(all(&[1, 2, 9, 3, 9])[0], 4);
        assert_eq!(all(&[1, 9, 9])[0], 1);
    }

    #[test]
    fn other_tie_breaks_do_not_ask_the_heap() {
        let totals = [1, 2, 9, 3, 9];
        let all = |tie_break| Ranking::new(&totals, tie_break, 1).collect::<Vec<_>>();
        assert_eq!(all(TieBreak::First), [2, 4, 3, 1, 0]);
        assert_eq!(all(TieBreak::Seed(0)), [4, 2, 3, 1, 0]);
    }

    #[test]
    fn totals_come_out_in_descending_order() {
        let totals = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5];
        let popped: Vec<i64> = all(&totals).into_iter().map(|at| totals[at]).collect();
        assert_eq!(popped, [9, 6, 5, 5, 5, 4, 3, 3, 2, 1, 1]);
    }
}
