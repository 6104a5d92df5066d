//! Compact lists of scores: most columns hold one value throughout, or small numbers.

use std::borrow::Cow;
use std::sync::Arc;

use crate::record::column::Column;
use crate::record::nodes::NodeList;

/// The maximum score of a node after normalizing.
pub const MAX_NODE_SCORE: i64 = 100;

/// An extender scores from 0 to 10, plugins from 0 to 100; its scores are multiplied by this and by
/// its weight.
pub const EXTENDER_SCORE_SCALE: i64 = MAX_NODE_SCORE / 10;

/// What the normalized score of a node depends on, besides the pod and the node. The less it is,
/// the more is kept: with a [`Plugin::score_key`](crate::plugin::Plugin::score_key), the scores of [`ScoreBasis::NodeAlone`] and
/// [`ScoreBasis::HighestScore`] are computed again only for nodes that changed. A plugin that
/// claims less than the truth gives stale scores.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ScoreBasis {
    /// On nothing else: the plugin does not normalize.
    NodeAlone,
    /// On the highest raw score of all feasible nodes.
    HighestScore,
    /// On all raw scores of the feasible nodes.
    AllScores,
    /// Also the raw score may depend on which other nodes are feasible.
    #[default]
    FeasibleNodes,
}

impl ScoreBasis {
    /// Whether the score of a node that did not change can be cached.
    pub fn is_cacheable(self) -> bool {
        matches!(self, ScoreBasis::NodeAlone | ScoreBasis::HighestScore)
    }
}

/// The lowest and the highest of these scores; `None` without any.
pub fn range<T: Copy + Ord>(scores: &[T]) -> Option<(T, T)> {
    let mut last = *scores.first()?;
    let (mut lowest, mut highest) = (last, last);
    for score in scores {
        // Equal scores are often adjacent.
        if *score != last {
            last = *score;
            (lowest, highest) = (lowest.min(last), highest.max(last));
        }
    }
    Some((lowest, highest))
}

/// An immutable list of scores. Copies share it.
#[derive(Clone, Debug)]
pub enum Scores {
    /// All scores are equal.
    Same {
        /// The score of each node.
        value: i64,
        /// How many nodes were scored.
        len: usize,
    },
    /// The scores in the order of the nodes, if all are from 0 to 255.
    Small(Arc<[u8]>),
    /// The same if all fit into 16 bits, as totals mostly do.
    Medium(Arc<[i16]>),
    /// The same if not.
    Any(Arc<[i64]>),
    /// The scores of these nodes, in a column that similar cycles share.
    OfNodes {
        /// The scores by slot.
        column: Column<i32>,
        /// The nodes, in the order of the list.
        nodes: NodeList,
    },
    /// The scores of an opaque plugin.
    Unknown {
        /// How many nodes were scored.
        len: usize,
    },
}

/// Lists with the same scores are equal, whatever their form.
impl PartialEq for Scores {
    fn eq(&self, other: &Scores) -> bool {
        self.is_shared_with(other) || (self.len() == other.len() && self.iter().eq(other.iter()))
    }
}

impl Default for Scores {
    fn default() -> Scores {
        Scores::Same { value: 0, len: 0 }
    }
}

impl From<Vec<i64>> for Scores {
    fn from(scores: Vec<i64>) -> Scores {
        Scores::from(scores.as_slice())
    }
}

impl From<&[i64]> for Scores {
    fn from(scores: &[i64]) -> Scores {
        let (lowest, highest) = range(scores).unwrap_or_default();
        if lowest == highest {
            Scores::Same { value: lowest, len: scores.len() }
        } else if lowest >= 0 && highest <= u8::MAX.into() {
            Scores::Small(scores.iter().map(|score| *score as u8).collect())
        } else if lowest >= i16::MIN.into() && highest <= i16::MAX.into() {
            Scores::Medium(scores.iter().map(|score| *score as i16).collect())
        } else {
            Scores::Any(scores.into())
        }
    }
}

impl Scores {
    /// How many nodes were scored.
    pub fn len(&self) -> usize {
        match self {
            Scores::Same { len, .. } | Scores::Unknown { len } => *len,
            Scores::Small(scores) => scores.len(),
            Scores::Medium(scores) => scores.len(),
            Scores::Any(scores) => scores.len(),
            Scores::OfNodes { nodes, .. } => nodes.len(),
        }
    }

    /// Whether both are the same list in memory.
    pub fn is_shared_with(&self, other: &Scores) -> bool {
        match (self, other) {
            (Scores::Small(one), Scores::Small(other)) => Arc::ptr_eq(one, other),
            (Scores::Medium(one), Scores::Medium(other)) => Arc::ptr_eq(one, other),
            (Scores::Any(one), Scores::Any(other)) => Arc::ptr_eq(one, other),
            (
                Scores::OfNodes { column, nodes },
                Scores::OfNodes { column: other, nodes: other_nodes },
            ) => column.is_shared_with(other) && nodes.is_shared_with(other_nodes),
            _ => false,
        }
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether they are those of an opaque plugin.
    pub fn are_unknown(&self) -> bool {
        matches!(self, Scores::Unknown { .. })
    }

    /// The score at a position; `None` beyond the end, and if it is unknown.
    pub fn get(&self, at: usize) -> Option<i64> {
        match self {
            Scores::Same { value, len } => (at < *len).then_some(*value),
            Scores::Small(scores) => scores.get(at).copied().map(i64::from),
            Scores::Medium(scores) => scores.get(at).copied().map(i64::from),
            Scores::Any(scores) => scores.get(at).copied(),
            Scores::Unknown { .. } => None,
            Scores::OfNodes { column, nodes } => column.get(*nodes.get(at)?).map(i64::from),
        }
    }

    /// All known scores in order, as a slice.
    pub fn values(&self) -> Cow<'_, [i64]> {
        match self {
            Scores::Same { value, len } => vec![*value; *len].into(),
            Scores::Small(scores) => scores.iter().copied().map(i64::from).collect(),
            Scores::Medium(scores) => scores.iter().copied().map(i64::from).collect(),
            Scores::Any(scores) => Cow::Borrowed(scores),
            Scores::OfNodes { column, nodes } => column.gather(&nodes.slice(), 0).into(),
            Scores::Unknown { .. } => Cow::Borrowed(&[]),
        }
    }

    /// All known scores in order.
    pub fn iter(&self) -> impl Iterator<Item = i64> + '_ {
        // A window finds the node at an index more slowly than the next one.
        let of_nodes = match self {
            Scores::OfNodes { .. } => self.values().into_owned(),
            _ => Vec::new(),
        };
        let others = if of_nodes.is_empty() { self.len() } else { 0 };
        (0..others).filter_map(|at| self.get(at)).chain(of_nodes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::NodeId;

    #[test]
    fn what_goes_in_comes_out() {
        for scores in [
            vec![],
            vec![7, 7, 7],
            vec![0, 100, 255],
            vec![-1, 5],
            vec![256, 0],
            vec![i16::MAX.into(), i16::MIN.into()],
            vec![40_000, 0],
            vec![0, -40_000],
        ] {
            let kept = Scores::from(scores.clone());
            assert_eq!(kept.iter().collect::<Vec<_>>(), scores);
            assert_eq!(*kept.values(), *scores);
            assert_eq!((kept.len(), kept.get(scores.len())), (scores.len(), None));
        }
    }

    #[test]
    fn scores_of_nodes_are_read_from_the_column() {
        let column = Column::from_values(&[5, 6, 7, 8]);
        let nodes: NodeList = [NodeId(3), NodeId(0)].into();
        let scores = Scores::OfNodes { column: column.clone(), nodes: nodes.clone() };
        assert_eq!((scores.len(), scores.get(0), scores.get(2)), (2, Some(8), None));
        assert_eq!(scores, Scores::from(vec![8, 5]));
        assert_ne!(scores, Scores::from(vec![8, 6]));
        assert!(scores.is_shared_with(&Scores::OfNodes { column, nodes }));
    }

    #[test]
    fn the_smallest_form_is_taken() {
        assert_eq!(Scores::from(vec![-3, -3]), Scores::Same { value: -3, len: 2 });
        assert_eq!(Scores::from(vec![0, 100]), Scores::Small([0, 100].into()));
        let is_medium = |scores| matches!(Scores::from(scores), Scores::Medium(_));
        assert!(is_medium(vec![0, 1000]) && is_medium(vec![-1, 5]));
        assert!(matches!(Scores::from(vec![0, 40_000]), Scores::Any(_)));
    }
}
