//! Columns and lists that consecutive records share while they are equal, so that thousands of
//! records take little memory and little time to write.

use std::sync::Arc;

use hashbrown::HashMap;

use kubestep_api::Name;
use kubestep_api::intern::Symbol;
use kubestep_config::ExtensionPoint;
use kubestep_framework::node::NodeId;
use kubestep_framework::record::column::Column;
use kubestep_framework::record::nodes::NodeList;
use kubestep_framework::record::shared_list::SharedList;
use kubestep_framework::record::{NodeNames, PluginStatus, VerdictId};
use kubestep_framework::snapshot::Snapshot;

/// The columns and lists of the last record.
#[derive(Clone, Default)]
pub(crate) struct RecordPool {
    verdicts: Column<VerdictId>,
    /// By plugin: the verdicts that were computed last.
    computed: HashMap<Symbol, Column<VerdictId>>,
    /// Of a plugin that skipped.
    skipped: Column<VerdictId>,
    /// Of a plugin that lets all nodes pass.
    passed: Column<VerdictId>,
    /// Of a cycle that ended before Filter.
    ended: Column<VerdictId>,
    /// By extension point: the answers of its plugins.
    answers: [SharedList<PluginStatus>; ExtensionPoint::COUNT],
    evaluated: NodeList,
    feasible: NodeList,
    names: Arc<NodeNames>,
    /// The node order that `names` reflects.
    order: Arc<Vec<NodeId>>,
}

impl RecordPool {
    /// The column of the verdicts, by slot.
    pub fn verdicts(&mut self, verdicts: &[VerdictId]) -> Column<VerdictId> {
        self.verdicts = Column::like(&self.verdicts, verdicts);
        self.verdicts.clone()
    }

    /// The column of a plugin whose verdicts, by slot, were computed for this cycle.
    pub fn computed(&mut self, plugin: Symbol, verdicts: &[VerdictId]) -> Column<VerdictId> {
        let last = self.computed.entry(plugin).or_default();
        *last = Column::like(last, verdicts);
        last.clone()
    }

    /// The column of a plugin that skipped.
    pub fn skipped(&mut self, slots: usize) -> Column<VerdictId> {
        filled(&mut self.skipped, VerdictId::SKIPPED, slots)
    }

    /// The column of a plugin that lets all nodes pass.
    pub fn passed(&mut self, slots: usize) -> Column<VerdictId> {
        filled(&mut self.passed, VerdictId::PASS, slots)
    }

    /// The column of a cycle that ended before any node got a verdict.
    pub fn ended(&mut self, slots: usize) -> Column<VerdictId> {
        filled(&mut self.ended, VerdictId::CYCLE_ENDED, slots)
    }

    /// The answers of the plugins at an extension point.
    pub fn answers(
        &mut self,
        point: ExtensionPoint,
        answers: Vec<PluginStatus>,
    ) -> SharedList<PluginStatus> {
        SharedList::like(&mut self.answers[point.index()], answers)
    }

    /// The nodes evaluated, in order.
    pub fn evaluated(&mut self, nodes: &[NodeId]) -> NodeList {
        shared(&mut self.evaluated, nodes)
    }

    /// The feasible nodes, in order.
    pub fn feasible(&mut self, nodes: &[NodeId]) -> NodeList {
        shared(&mut self.feasible, nodes)
    }

    /// The names of the nodes.
    pub fn names(&self) -> Arc<NodeNames> {
        self.names.clone()
    }

    /// Brings the names up to date. `true` if the set or the order of nodes changed.
    pub(crate) fn update_names(&mut self, snapshot: &Snapshot) -> bool {
        if Arc::ptr_eq(&self.order, snapshot.order()) && !self.names.order.is_empty() {
            return false;
        }
        let mut names = vec![Name::EMPTY; snapshot.slots()];
        for node in snapshot.iter() {
            names[node.id.index()] = node.name;
        }
        self.order = snapshot.order().clone();
        self.names = Arc::new(NodeNames { order: snapshot.order().to_vec(), names });
        true
    }
}

fn filled(last: &mut Column<VerdictId>, verdict: VerdictId, slots: usize) -> Column<VerdictId> {
    if last.len() != slots {
        *last = Column::filled(verdict, slots);
    }
    last.clone()
}

fn shared(last: &mut NodeList, nodes: &[NodeId]) -> NodeList {
    if *last.slice() != *nodes {
        *last = nodes.into();
    }
    last.clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubestep_framework::status::Status;

    #[test]
    fn equal_lists_are_shared() {
        let mut pool = RecordPool::default();
        let (two, three) = ([NodeId(1), NodeId(0)], [NodeId(1), NodeId(0), NodeId(2)]);
        let first = pool.evaluated(&two);
        assert!(first.is_shared_with(&pool.evaluated(&two)));
        assert_eq!(pool.evaluated(&three), three.into());
        assert_eq!((first, pool.evaluated(&[])), (two.into(), [].into()));
        assert_eq!(pool.skipped(2).iter().collect::<Vec<_>>(), [VerdictId::SKIPPED; 2]);
        assert_eq!(pool.passed(3).iter().collect::<Vec<_>>(), [VerdictId::PASS; 3]);
        assert_eq!(pool.passed(1).len(), 1);
        let answers = || vec![PluginStatus::new("A".into(), Status::skip())];
        let reserve = pool.answers(ExtensionPoint::Reserve, answers());
        assert!(pool.answers(ExtensionPoint::Bind, Vec::new()).is_empty());
        assert!(reserve.is_shared_with(&pool.answers(ExtensionPoint::Reserve, answers())));
        let verdicts = [VerdictId::PASS, VerdictId(9)];
        let computed = pool.computed("A".into(), &verdicts);
        assert!(computed.is_shared_with(&pool.computed("A".into(), &verdicts)));
        assert_eq!(pool.computed("B".into(), &verdicts), computed);
    }
}
