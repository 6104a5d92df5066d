//! The raw scores of a score plugin, kept from cycle to cycle.

use hashbrown::HashSet;

use super::cache::CachedColumn;
use kubestep_framework::node::NodeId;
use kubestep_framework::record::column::Column;

/// A raw score that was not computed yet, or does not fit into a column.
pub(super) const UNKNOWN: i32 = i32::MIN;

/// The raw scores of all nodes by one plugin. A node that changed keeps its old score until it is
/// computed again: most stay the same, and records share a column in which nothing was written.
#[derive(Clone, Debug)]
pub(crate) struct RawScores {
    column: Column<i32>,
    /// The nodes that changed since their scores were computed.
    stale: HashSet<NodeId>,
}

impl RawScores {
    /// What the cache had for so many slots, if anything, and the nodes for which it is stale.
    pub fn of_cache(cached: Option<(CachedColumn, Vec<NodeId>)>, slots: usize) -> RawScores {
        let Some((CachedColumn::Scores(mut scores), stale)) = cached else {
            return RawScores { column: Column::filled(UNKNOWN, slots), stale: HashSet::new() };
        };
        scores.column.grow(UNKNOWN, slots);
        scores.stale.extend(stale);
        scores
    }

    /// By slot; [`UNKNOWN`] where none was computed yet.
    pub fn column(&self) -> &Column<i32> {
        &self.column
    }

    /// About how many bytes it takes.
    pub fn bytes(&self) -> usize {
        self.column.len() * size_of::<i32>()
    }

    /// Whether a node changed since its score was computed.
    pub fn is_stale(&self, node: NodeId) -> bool {
        self.stale.contains(&node)
    }

    /// The score of a node, if it is known.
    pub fn get(&self, node: NodeId) -> Option<i32> {
        self.column.get(node).filter(|score| *score != UNKNOWN && !self.is_stale(node))
    }

    /// Keeps the score that was computed for a node. `None` if it does not fit into the column.
    pub fn set(&mut self, node: NodeId, score: i64) -> Option<i32> {
        let score = i32::try_from(score).unwrap_or(UNKNOWN);
        self.column.set(node, score);
        self.stale.remove(&node);
        (score != UNKNOWN).then_some(score)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cached(scores: RawScores, stale: &[NodeId]) -> Option<(CachedColumn, Vec<NodeId>)> {
        Some((CachedColumn::Scores(scores), stale.to_vec()))
    }

    #[test]
    fn a_stale_score_is_unknown_and_stays_in_the_column_until_there_is_another() {
        let (one, two) = (NodeId(1), NodeId(2));
        let mut scores = RawScores::of_cache(None, 2);
        assert_eq!(
            (scores.get(one), scores.set(one, 7), scores.get(one)),
            (None, Some(7), Some(7))
        );
        let recorded = scores.column().clone();
        let mut scores = RawScores::of_cache(cached(scores, &[one]), 2);
        assert_eq!(scores.get(one), None);
        scores.set(one, 7);
        assert_eq!(scores.get(one), Some(7));
        assert!(scores.column().is_shared_with(&recorded));
        let mut scores = RawScores::of_cache(cached(scores, &[one]), 3);
        assert_eq!((scores.set(one, 8), scores.get(two)), (Some(8), None));
        assert_eq!((scores.get(one), recorded.get(one)), (Some(8), Some(7)));
    }

    #[test]
    fn a_score_that_does_not_fit_stays_unknown() {
        let mut scores = RawScores::of_cache(None, 1);
        for score in [i64::MAX, i64::from(UNKNOWN)] {
            assert_eq!((scores.set(NodeId(0), score), scores.get(NodeId(0))), (None, None));
        }
    }
}
