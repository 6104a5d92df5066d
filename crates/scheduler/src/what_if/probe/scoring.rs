//! Scoring nodes for the pod of a probe.

use super::Probe;
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::node::NodeId;
use kubestep_framework::plugin::Plugin;
use kubestep_framework::record::ScoreRecord;
use kubestep_framework::status::Status;

/// The scores of nodes, with the state from which they were computed.
pub struct Scored {
    /// The state after PreScore.
    pub state: CycleState,
    /// The nodes, in the order scored.
    pub nodes: Vec<NodeId>,
    /// Their scores.
    pub record: ScoreRecord,
}

impl Probe {
    /// Scores the nodes, without extenders.
    ///
    /// # Errors
    /// The status of the plugin that failed.
    pub fn score(&self, nodes: &[NodeId]) -> Result<Scored, Status> {
        let (cx, mut state) = (self.cx(), self.state.clone());
        let (pre_score, status) = self.framework.run_pre_score(&cx, &mut state, nodes);
        let mut record = ScoreRecord { pre_score, ..ScoreRecord::default() };
        if !status.is_success() {
            return Err(status);
        }
        let raw = |plugin: &dyn Plugin| {
            let infos = nodes.iter().filter_map(|id| self.snapshot.get(*id));
            infos.map(|node| plugin.score(&cx, &state, node)).collect()
        };
        let status = self.framework.run_score(&cx, &state, nodes, raw, &mut record);
        match status.is_success() {
            true => Ok(Scored { state, nodes: nodes.to_vec(), record }),
            false => Err(status),
        }
    }
}
