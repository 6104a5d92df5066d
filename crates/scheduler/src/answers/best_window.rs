//! Which node of a window on the node order has the best total: a tree over the node order that is
//! kept from cycle to cycle, in which only the paths of changed totals are computed again, and which
//! knows the best of every window.

use std::cmp::Ordering;
use std::sync::Arc;

use super::best::Winner;
use kubestep_framework::node::NodeId;
use kubestep_framework::record::column::Column;
use kubestep_framework::record::nodes::NodeWindow;
use kubestep_framework::snapshot::positions::PositionSet;
use kubestep_framework::tie_break::{TieBreak, first_in_tree, pick_index};

/// Up to so many tied nodes are compared one by one.
const FEW: usize = 32;

/// The best total of some nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Best {
    total: i32,
    /// How many nodes have it.
    count: u32,
}

impl Best {
    const NONE: Best = Best { total: i32::MIN, count: 0 };

    fn or(self, other: Best) -> Best {
        match self.total.cmp(&other.total) {
            Ordering::Greater => self,
            Ordering::Less => other,
            Ordering::Equal => Best { count: self.count + other.count, ..self },
        }
    }
}

/// The best of the nodes that pass, by their totals, in every window on the node order.
#[derive(Clone, Default, Debug)]
pub(super) struct BestOfWindows {
    order: Arc<Vec<NodeId>>,
    /// The positions of the nodes that pass.
    passing: PositionSet,
    /// A binary tree: the root is at 1, the children of `at` are at `2 * at` and the next, the
    /// positions in the node order are the leaves. Empty until it is worth its cost.
    tree: Vec<Best>,
    /// How many totals were looked at without a tree.
    looked_at: usize,
}

impl BestOfWindows {
    /// Follows to the window of this cycle, on those that pass. `changed` are the positions of the
    /// nodes that have other totals than in the cycle before; the totals of the nodes in the window
    /// are up to date. A tree is made once more totals were looked at than there are nodes: for pods
    /// that do not come again, it costs more than a look at all totals.
    pub fn follow(
        &mut self,
        window: &NodeWindow,
        passing: &PositionSet,
        changed: impl Iterator<Item = usize>,
        totals: &Column<i32>,
    ) {
        if !Arc::ptr_eq(&self.order, window.order()) {
            *self = BestOfWindows { order: window.order().clone(), ..BestOfWindows::default() };
        }
        if !self.tree.is_empty() {
            let mut positions = Vec::new();
            passing.differences(&self.passing, &mut positions);
            self.passing = passing.clone();
            changed.chain(positions).for_each(|at| self.update(at, totals));
        } else if self.looked_at > self.order.len() {
            self.passing = passing.clone();
            self.plant(totals);
        }
        self.looked_at += window.len();
    }

    /// Makes the tree.
    fn plant(&mut self, totals: &Column<i32>) {
        let leaves = self.order.len().next_power_of_two();
        self.tree = vec![Best::NONE; 2 * leaves];
        for at in self.passing.members(0, self.order.len()) {
            self.tree[leaves + at] = self.leaf(at, totals);
        }
        for at in (1..leaves).rev() {
            self.tree[at] = self.tree[2 * at].or(self.tree[2 * at + 1]);
        }
    }

    fn leaf(&self, at: usize, totals: &Column<i32>) -> Best {
        let node = self.order.get(at).filter(|_| self.passing.contains(at));
        let total = node.and_then(|node| totals.get(*node));
        total.map_or(Best::NONE, |total| Best { total, count: 1 })
    }

    /// Takes over the total of the node at a position.
    fn update(&mut self, position: usize, totals: &Column<i32>) {
        let (leaf, mut at) = (self.leaf(position, totals), self.tree.len() / 2 + position);
        if self.tree.get(at).is_none_or(|before| *before == leaf) {
            return;
        }
        self.tree[at] = leaf;
        while at > 1 {
            at /= 2;
            let best = self.tree[2 * at].or(self.tree[2 * at + 1]);
            if std::mem::replace(&mut self.tree[at], best) == best {
                return;
            }
        }
    }

    /// The node of a window that wins; `None` if there is none, or no tree yet.
    pub fn winner(&self, window: &NodeWindow, tie_break: TieBreak, cycle: u64) -> Option<Winner> {
        let best = self.best_of(window, 0, window.len());
        let tied = Some(best.count as usize).filter(|tied| *tied > 0)?;
        let position = match tie_break {
            TieBreak::Upstream if tied <= FEW => {
                let tied = self.tied(window, best.total, usize::MAX);
                tied.into_iter().reduce(first_in_tree)?
            }
            TieBreak::Upstream => self.first_in_heap(window, best.total),
            TieBreak::First => *self.tied(window, best.total, 1).last()?,
            TieBreak::Seed(_) => {
                let place = pick_index(tie_break.random(cycle), tied);
                *self.tied(window, best.total, place + 1).last()?
            }
        };
        Some(Winner { position, tied })
    }

    /// The best at some indexes of a window.
    fn best_of(&self, window: &NodeWindow, from: usize, to: usize) -> Best {
        let best = |(from, to)| self.best_between(from, to);
        window.ranges(from, to).into_iter().map(best).fold(Best::NONE, Best::or)
    }

    /// The best at the positions from `from` to before `to`.
    fn best_between(&self, from: usize, to: usize) -> Best {
        let leaves = self.tree.len() / 2;
        let (mut from, mut to) = (leaves + from, leaves + to);
        let mut best = Best::NONE;
        while from < to && leaves > 0 {
            if from % 2 == 1 {
                best = best.or(self.tree[from]);
                from += 1;
            }
            if to % 2 == 1 {
                to -= 1;
                best = best.or(self.tree[to]);
            }
            (from, to) = (from / 2, to / 2);
        }
        best
    }

    /// The index in a window of the node that upstream's heap yields, if `total` is the best: the
    /// first with this total in the order parent, left, right (see [`first_in_tree`]).
    fn first_in_heap(&self, window: &NodeWindow, total: i32) -> usize {
        let mut at = 0;
        let mut level = self.first_level(window, at, 0, total).unwrap_or(0);
        while level > 0 {
            let left = 2 * at + 1;
            // Below one of the two children, the node is one level less away.
            (at, level) = match self.first_level(window, left, level - 1, total) {
                Some(level) => (left, level),
                None => (left + 1, level - 1),
            };
        }
        at
    }

    /// The first level of the heap below an index, counted from it and from level `from` on, with a
    /// node that has this total, the best one. Those on one level are side by side in the window.
    fn first_level(
        &self,
        window: &NodeWindow,
        at: usize,
        from: usize,
        total: i32,
    ) -> Option<usize> {
        let first = |level: usize| ((at + 1) << level) - 1;
        let mut levels = (from..).take_while(|level| first(*level) < window.len());
        levels.find(|level| {
            let end = (first(*level) + (1 << level)).min(window.len());
            self.best_of(window, first(*level), end).total == total
        })
    }

    /// The indexes in a window of the first `most` nodes with this total, the best one.
    fn tied(&self, window: &NodeWindow, total: i32, most: usize) -> Vec<usize> {
        let (all, mut positions) = (self.tree.len() / 2, Vec::new());
        for range in window.ranges(0, window.len()) {
            self.tied_between(range, (1, 0, all), (total, most), &mut positions);
        }
        positions.into_iter().filter_map(|position| window.index(position)).collect()
    }

    /// Adds the positions in a range that have this total, the best one, until there are `most`.
    /// `part` is a part of the tree with the positions below it.
    fn tied_between(
        &self,
        range: (usize, usize),
        part: (usize, usize, usize),
        (total, most): (i32, usize),
        positions: &mut Vec<usize>,
    ) {
        let ((from, to), (at, first, end)) = (range, part);
        if end <= from || to <= first || self.tree[at].total < total || positions.len() == most {
            return;
        }
        if end - first == 1 {
            positions.push(first);
            return;
        }
        let middle = first.midpoint(end);
        self.tied_between(range, (2 * at, first, middle), (total, most), positions);
        self.tied_between(range, (2 * at + 1, middle, end), (total, most), positions);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::answers::best::winner;

    proptest! {
        #[test]
        fn the_winner_of_a_window_is_the_one_among_its_totals(
            first in prop::collection::vec((0..4_i64, prop::bool::weighted(0.8)), 1..190),
            changes in prop::collection::vec(
                ((0..190_usize, 0..5_i64, any::<bool>()), (0..190_usize, 1..190_usize)), 1..9,
            ),
            seed in 0..9_u64,
        ) {
            let (mut totals, mut passes): (Vec<i64>, Vec<bool>) = first.into_iter().unzip();
            let all = totals.len();
            let order: Arc<Vec<NodeId>> = Arc::new((0..all as u32).rev().map(NodeId).collect());
            let by_slot = |totals: &[i64]| {
                let totals = totals.iter().rev().map(|total| *total as i32);
                Column::from_values(&totals.collect::<Vec<_>>())
            };
            let mut best = BestOfWindows { order: order.clone(), ..BestOfWindows::default() };
            for ((at, total, passing), (start, wanted)) in changes {
                let (at, start) = (at % all, start % all);
                (totals[at], passes[at]) = (total, passing);
                let members = PositionSet::of(all, |at| passes[at]);
                let window = NodeWindow::among(order.clone(), &members, start, wanted);
                best.looked_at = all + 1;
                best.follow(&window, &members, [at].into_iter(), &by_slot(&totals));
                let turn = (start..all).chain(0..start).filter(|at| passes[*at]);
                let found: Vec<i64> = turn.take(wanted).map(|at| totals[at]).collect();
                for tie_break in [TieBreak::Upstream, TieBreak::First, TieBreak::Seed(seed)] {
                    prop_assert_eq!(best.winner(&window, tie_break, 5), winner(&found, tie_break, 5));
                }
            }
        }
    }

    #[test]
    fn a_tree_is_made_once_as_many_totals_were_looked_at() {
        let order = Arc::new((0..4).map(NodeId).collect::<Vec<_>>());
        let passing = PositionSet::of(4, |at| at > 0);
        let window = NodeWindow::among(order, &passing, 2, 9);
        let (mut best, totals) = (BestOfWindows::default(), Column::from_values(&[9, 3, 1, 3]));
        for winner in [None, None, Some(Winner { position: 1, tied: 2 })] {
            best.follow(&window, &passing, [].into_iter(), &totals);
            assert_eq!(best.winner(&window, TieBreak::First, 1), winner);
        }
    }

    #[test]
    fn no_nodes_have_no_winner() {
        let none = PositionSet::default();
        let window = NodeWindow::among(Arc::default(), &none, 0, 3);
        let mut best = BestOfWindows { looked_at: 1, ..BestOfWindows::default() };
        (0..2).for_each(|_| best.follow(&window, &none, [].into_iter(), &Column::filled(0, 3)));
        assert_eq!(best.winner(&window, TieBreak::Upstream, 1), None);
    }
}
