//! What the last cycle recorded per node. The next record shares the parts that are equal, which
//! are most, so that thousands of records need little memory and little time to write.

use std::sync::Arc;

use kubestep_framework::node::NodeId;
use kubestep_framework::record::VerdictId;
use kubestep_framework::record::column::Column;

/// The lists and columns of the last cycle.
#[derive(Clone, Default)]
pub(crate) struct Recorded {
    official: Column<VerdictId>,
    /// The column of a plugin that skipped.
    skipped: Column<VerdictId>,
    /// The column of a plugin that passes all nodes.
    passed: Column<VerdictId>,
    evaluated: Arc<[NodeId]>,
    feasible: Arc<[NodeId]>,
}

impl Recorded {
    /// The verdicts on the nodes, by slot.
    pub fn official(&mut self, verdicts: &[VerdictId]) -> Column<VerdictId> {
        self.official = Column::like(&self.official, verdicts);
        self.official.clone()
    }

    /// The column of a plugin that skipped.
    pub fn skipped(&mut self, slots: usize) -> Column<VerdictId> {
        filled(&mut self.skipped, VerdictId::SKIPPED, slots)
    }

    /// The column of a plugin that passes all nodes.
    pub fn passed(&mut self, slots: usize) -> Column<VerdictId> {
        filled(&mut self.passed, VerdictId::PASS, slots)
    }

    /// The nodes evaluated, in order.
    pub fn evaluated(&mut self, nodes: &[NodeId]) -> Arc<[NodeId]> {
        shared(&mut self.evaluated, nodes)
    }

    /// The feasible nodes, in order.
    pub fn feasible(&mut self, nodes: &[NodeId]) -> Arc<[NodeId]> {
        shared(&mut self.feasible, nodes)
    }
}

fn filled(last: &mut Column<VerdictId>, verdict: VerdictId, slots: usize) -> Column<VerdictId> {
    if last.len() != slots {
        *last = Column::filled(verdict, slots);
    }
    last.clone()
}

fn shared(last: &mut Arc<[NodeId]>, nodes: &[NodeId]) -> Arc<[NodeId]> {
    if **last != *nodes {
        *last = Arc::from(nodes);
    }
    last.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_the_same_is_shared_and_nothing_else() {
        let mut recorded = Recorded::default();
        let (two, three) = ([NodeId(1), NodeId(0)], [NodeId(1), NodeId(0), NodeId(2)]);
        let first = recorded.evaluated(&two);
        assert!(Arc::ptr_eq(&first, &recorded.evaluated(&two)));
        assert_eq!(*recorded.evaluated(&three), three);
        assert_eq!((&*first, &*recorded.evaluated(&[])), (&two[..], &[][..]));
        assert_eq!(recorded.skipped(2).iter().collect::<Vec<_>>(), [VerdictId::SKIPPED; 2]);
        assert_eq!(recorded.passed(3).iter().collect::<Vec<_>>(), [VerdictId::PASS; 3]);
        assert_eq!(recorded.passed(1).len(), 1);
    }
}
