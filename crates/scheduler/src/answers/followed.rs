//! Verdicts that depend on other nodes, followed from cycle to cycle: the plugin compares what it
//! counted in two cycles and runs again only for the nodes of domains whose counts matter.

use std::mem::take;
use std::sync::Arc;

use super::PluginAnswers;
use super::cache::FilterAnswers;
use super::matrix::{FilterCycle, run_on_all};
use super::recent::Recent;
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::node::NodeId;
use kubestep_framework::plugin::{AnswerBasis, Plugin};

/// About how many bytes the verdicts of a group take per node, with the counts behind them.
const NODE_BYTES: usize = 16;

/// The verdicts by profile, plugin and group.
pub(super) type AllFollowed = Recent<Followed>;

/// The verdicts of a filter plugin in the last cycle of a group of pods.
#[derive(Clone, Default)]
pub(super) struct Followed {
    /// What the plugin answered from.
    state: CycleState,
    order: Arc<Vec<NodeId>>,
    answers: FilterAnswers,
}

impl PluginAnswers {
    /// The verdicts about all nodes: those of the last cycle of the group, changed where the plugin
    /// finds that they may differ.
    pub(super) fn followed_answers(
        &mut self,
        plugin: &Arc<dyn Plugin>,
        cycle: FilterCycle<'_>,
        basis: AnswerBasis,
    ) -> FilterAnswers {
        let group = [cycle.framework.name().as_str(), plugin.name().as_str(), &basis.group];
        let (group, bytes) = (group.join("\n"), cycle.cx.snapshot.slots() * NODE_BYTES);
        let order = cycle.cx.snapshot.order();
        let last = take(self.followed.entry(&group, bytes, Followed::default));
        let is_same = Arc::ptr_eq(&last.order, order)
            && last.answers.column.len() == cycle.cx.snapshot.slots();
        let changes = is_same.then(|| plugin.filter_changes(&last.state, &basis.state));
        // So many are cheaper to ask about together.
        let changes = changes.flatten().filter(|nodes| nodes.len() <= order.len() / 2);
        let answers = match changes {
            Some(nodes) => self.changed_answers(plugin, cycle, last.answers, &nodes),
            None => self.all_answers(plugin, cycle, order),
        };
        debug_assert!(self.are_as_asked_again(plugin, cycle, &answers));
        *self.followed.entry(&group, bytes, Followed::default) =
            Followed { state: basis.state, order: order.clone(), answers: answers.clone() };
        answers
    }

    /// The answers, after asking again about some nodes.
    fn changed_answers(
        &mut self,
        plugin: &Arc<dyn Plugin>,
        cycle: FilterCycle<'_>,
        mut answers: FilterAnswers,
        nodes: &[NodeId],
    ) -> FilterAnswers {
        let verdicts = self.verdict_ids(&run_on_all(plugin, cycle, nodes));
        nodes.iter().zip(verdicts).for_each(|(id, verdict)| answers.set(*id, verdict));
        answers
    }

    /// Whether the plugin gives the same answers when it is asked about all nodes.
    fn are_as_asked_again(
        &mut self,
        plugin: &Arc<dyn Plugin>,
        cycle: FilterCycle<'_>,
        answers: &FilterAnswers,
    ) -> bool {
        let again = self.all_answers(plugin, cycle, cycle.cx.snapshot.order());
        let mut order = cycle.cx.snapshot.order().iter();
        answers.rejected == again.rejected
            && order.all(|id| answers.column.get(*id) == again.column.get(*id))
    }
}
