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

    /// The score of a node; `compute` gives it if it is not known. One that does not fit into the
    /// column stays unknown.
    ///
    /// # Errors
    /// Those of `compute`.
    pub fn complete<E>(
        &mut self,
        node: NodeId,
        compute: impl FnOnce() -> Result<i64, E>,
    ) -> Result<i64, E> {
        let known = self.column.get(node).filter(|score| *score != UNKNOWN);
        if let Some(score) = known.filter(|_| !self.stale.contains(&node)) {
            return Ok(score.into());
        }
        let score = compute()?;
        self.column.set(node, i32::try_from(score).unwrap_or(UNKNOWN));
        self.stale.remove(&node);
        Ok(score)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: NodeId = NodeId(1);

    fn cached(scores: RawScores, stale: &[NodeId]) -> RawScores {
        RawScores::of_cache(Some((CachedColumn::Scores(scores), stale.to_vec())), 3)
    }

    /// The score of the node, and whether it was computed.
    fn score(scores: &mut RawScores, new: i64) -> (i64, bool) {
        let mut is_computed = false;
        let compute = || {
            is_computed = true;
            Ok::<_, ()>(new)
        };
        let score = scores.complete(NODE, compute).unwrap();
        (score, is_computed)
    }

    #[test]
    fn a_stale_score_is_computed_again_and_written_only_if_it_is_another() {
        let mut scores = RawScores::of_cache(None, 2);
        assert_eq!(score(&mut scores, 7), (7, true));
        assert_eq!(score(&mut scores, 8), (7, false));
        let recorded = scores.column().clone();
        let mut scores = cached(scores, &[]);
        assert_eq!(score(&mut scores, 8), (7, false));
        let mut scores = cached(scores, &[NODE]);
        let before = scores.column().clone();
        assert_eq!(score(&mut scores, 7), (7, true));
        assert!(scores.column().is_shared_with(&before));
        let mut scores = cached(scores, &[NODE]);
        assert_eq!((score(&mut scores, 8), score(&mut scores, 9)), ((8, true), (8, false)));
        assert_eq!((scores.column().get(NODE), recorded.get(NODE)), (Some(8), Some(7)));
        assert_eq!(scores.column().get(NodeId(2)), Some(UNKNOWN), "a new slot");
    }

    #[test]
    fn a_score_that_does_not_fit_is_computed_each_time() {
        let mut scores = RawScores::of_cache(None, 2);
        for new in [i64::MAX, i64::MIN, i64::MAX] {
            assert_eq!(score(&mut scores, new), (new, true));
        }
    }

    #[test]
    fn an_error_leaves_the_score_unknown() {
        let mut scores = RawScores::of_cache(None, 2);
        assert_eq!(scores.complete(NODE, || Err("no")), Err("no"));
        assert_eq!(score(&mut scores, 7), (7, true));
    }
}
