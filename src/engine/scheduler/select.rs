//! Which node wins among the scored: what upstream's heap yields (S-019).
//!
//! Among equal totals the winner depends on how Go's `container/heap` moves elements, so its
//! moves are followed exactly.

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
        let mut heap = ScoreHeap::new(totals);
        std::iter::from_fn(|| heap.pop()).collect()
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
    fn totals_come_out_in_descending_order() {
        let totals = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5];
        let popped: Vec<i64> = all(&totals).into_iter().map(|at| totals[at]).collect();
        assert_eq!(popped, [9, 6, 5, 5, 5, 4, 3, 3, 2, 1, 1]);
    }
}
