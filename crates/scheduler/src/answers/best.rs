//! Which node has the best total, with upstream's choice among equals: by a look at all of them, or
//! kept from cycle to cycle in a tree over the list of nodes, in which only the paths of changed
//! totals are computed again. Upstream: `selectHost` in `schedule_one.go`.
//!
//! Among equal totals the winner depends on how Go's `container/heap` moves elements, but it can be
//! computed without moving any.

use std::sync::Arc;

use kubestep_framework::node::NodeId;
use kubestep_framework::record::column::Column;
use kubestep_framework::record::scores::range;
use kubestep_framework::tie_break::{TieBreak, first_in_tree, pick_index};

/// The position of nodes that are not in the list.
const ABSENT: u32 = u32::MAX;

/// The best total of a list of nodes, and who has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Best {
    total: i32,
    /// How many nodes have it.
    count: u32,
    /// The position of the one among them that upstream's heap yields.
    first: u32,
}

impl Best {
    const NONE: Best = Best { total: i32::MIN, count: 0, first: ABSENT };

    fn or(self, other: Best) -> Best {
        match (self.count, other.count) {
            (_, 0) => self,
            (0, _) => other,
            _ if self.total > other.total => self,
            _ if self.total < other.total => other,
            _ => {
                let first = first_in_tree(self.first as usize, other.first as usize);
                Best { total: self.total, count: self.count + other.count, first: first as u32 }
            }
        }
    }
}

/// The node that wins a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Winner {
    /// Its position among the feasible nodes.
    pub position: usize,
    /// How many nodes have the best total.
    pub tied: usize,
}

/// The winner among nodes with these totals. `None` if there are none.
pub(crate) fn winner(totals: &[i64], tie_break: TieBreak, cycle: u64) -> Option<Winner> {
    let (_, best) = range(totals)?;
    let tied = totals.iter().filter(|total| **total == best).count();
    let mut positions = (0..totals.len()).filter(|at| totals[*at] == best);
    let position = match tie_break {
        // The root of the heap wins over all others.
        TieBreak::Upstream if totals[0] == best => Some(0),
        TieBreak::Upstream => positions.reduce(first_in_tree),
        TieBreak::First => positions.next(),
        TieBreak::Seed(_) => positions.nth(pick_index(tie_break.random(cycle), tied)),
    };
    Some(Winner { position: position?, tied })
}

/// The best of a list of nodes by their totals.
#[derive(Clone, Default, Debug)]
pub(crate) struct BestTotals {
    /// The list of the last cycle.
    last: Arc<[NodeId]>,
    /// The list that the tree is about.
    nodes: Arc<[NodeId]>,
    /// By slot: the position in the list.
    positions: Vec<u32>,
    /// A binary tree: the root is at 1, the children of `at` are at `2 * at` and the next, the
    /// nodes of the list are the leaves, in order.
    tree: Vec<Best>,
}

impl BestTotals {
    /// Whether it is about this list of nodes.
    pub fn is_of(&self, nodes: &Arc<[NodeId]>) -> bool {
        Arc::ptr_eq(&self.nodes, nodes) && !self.tree.is_empty()
    }

    /// Whether a node is in the list.
    pub fn contains(&self, node: NodeId) -> bool {
        self.positions.get(node.index()).is_some_and(|position| *position != ABSENT)
    }

    /// Follows to the nodes of this cycle, of which `changed` have other totals than in the cycle
    /// before. A tree is made when the same list comes a second time: made for a list that does not
    /// come again, it costs more than a look at all totals.
    pub fn follow(&mut self, nodes: &Arc<[NodeId]>, changed: &[NodeId], totals: &Column<i32>) {
        if self.is_of(nodes) {
            self.update(changed, totals);
        } else if Arc::ptr_eq(&self.last, nodes) {
            self.replace(nodes, totals);
        } else {
            self.nodes = Arc::default();
            self.tree.clear();
        }
        self.last = nodes.clone();
    }

    /// Starts again with another list of nodes.
    fn replace(&mut self, nodes: &Arc<[NodeId]>, totals: &Column<i32>) {
        let leaves = nodes.len().next_power_of_two();
        self.positions.clear();
        self.positions.resize(totals.len(), ABSENT);
        self.tree.clear();
        self.tree.resize(2 * leaves, Best::NONE);
        let totals = totals.gather(nodes, i32::MIN);
        for (at, (node, total)) in (0..).zip(nodes.iter().zip(totals)) {
            self.positions[node.index()] = at;
            self.tree[leaves + at as usize] = Best { total, count: 1, first: at };
        }
        for at in (1..leaves).rev() {
            self.tree[at] = self.tree[2 * at].or(self.tree[2 * at + 1]);
        }
        self.nodes = nodes.clone();
    }

    /// Takes over the totals of nodes that changed.
    fn update(&mut self, changed: &[NodeId], totals: &Column<i32>) {
        let leaves = self.tree.len() / 2;
        for node in changed {
            let position = self.positions.get(node.index()).copied().unwrap_or(ABSENT);
            if position == ABSENT {
                continue;
            }
            let total = totals.get(*node).unwrap_or(i32::MIN);
            let mut at = leaves + position as usize;
            self.tree[at] = Best { total, count: 1, first: position };
            while at > 1 {
                at /= 2;
                self.tree[at] = self.tree[2 * at].or(self.tree[2 * at + 1]);
            }
        }
    }

    /// The node that wins; `None` if there is none.
    pub fn winner(&self, tie_break: TieBreak, cycle: u64) -> Option<Winner> {
        let root = *self.tree.get(1).filter(|root| root.count > 0)?;
        let tied = root.count as usize;
        let position = match tie_break {
            TieBreak::Upstream => root.first as usize,
            TieBreak::First => self.tied(0),
            TieBreak::Seed(_) => self.tied(pick_index(tie_break.random(cycle), tied)),
        };
        Some(Winner { position, tied })
    }

    /// The position of one of the nodes with the best total, by its rank among them.
    fn tied(&self, mut rank: usize) -> usize {
        let leaves = self.tree.len() / 2;
        let mut at = 1;
        while at < leaves {
            let left = self.tree[2 * at];
            let count = if left.total == self.tree[1].total { left.count as usize } else { 0 };
            at *= 2;
            if rank >= count {
                rank -= count;
                at += 1;
            }
        }
        at - leaves
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_winner_is_the_one_among_all_totals(
            first in prop::collection::vec(0..4_i64, 1..70),
            changes in prop::collection::vec((0..70_usize, 0..4_i64), 0..9),
            seed in 0..9_u64,
        ) {
            let mut totals = first;
            let nodes: Arc<[NodeId]> = (0..totals.len() as u32).rev().map(NodeId).collect();
            let by_slot = |totals: &[i64]| {
                let totals = totals.iter().rev().map(|total| *total as i32);
                Column::from_values(&totals.collect::<Vec<_>>())
            };
            let mut best = BestTotals::default();
            best.follow(&nodes, &[], &by_slot(&totals));
            prop_assert!(!best.is_of(&nodes));
            best.follow(&nodes, &[], &by_slot(&totals));
            for (at, total) in changes {
                let at = at % totals.len();
                totals[at] = total;
                best.follow(&nodes, &[nodes[at], NodeId(99)], &by_slot(&totals));
                for tie_break in [TieBreak::Upstream, TieBreak::First, TieBreak::Seed(seed)] {
                    prop_assert_eq!(best.winner(tie_break, 5), winner(&totals, tie_break, 5));
                }
            }
        }
    }

    #[test]
    fn no_nodes_have_no_winner() {
        let mut best = BestTotals::default();
        assert_eq!(best.winner(TieBreak::Upstream, 1), None);
        let none: Arc<[NodeId]> = [].into();
        best.follow(&none, &[], &Column::filled(0, 3));
        best.follow(&none, &[], &Column::filled(0, 3));
        assert_eq!(best.winner(TieBreak::Upstream, 1), None);
    }
}
