//! The answers of plugins about nodes.
//!
//! [`matrix`] asks every filter plugin about every node, [`scores`] asks the score plugins about
//! the feasible nodes; both reuse what the [`cache`] keeps from earlier cycles, of score plugins
//! their [`raw_scores`]. [`nominated`] keeps the verdicts with nominated pods counted in, [`search`]
//! which nodes pass, [`class_scores`] their scores, and [`best`] and [`best_window`] who has the
//! best total. [`dry_runs`] keeps what preemption would evict. [`records`] lets consecutive records
//! share the columns that are equal.

pub(crate) mod best;
mod best_window;
pub(crate) mod cache;
pub(crate) mod class_scores;
mod dry_runs;
pub(crate) mod matrix;
mod nominated;
mod raw_scores;
mod recent;
pub(crate) mod records;
pub(crate) mod scores;
pub(crate) mod search;

use std::sync::Arc;

use crate::profiles::Frameworks;
use cache::AnswerCache;
use class_scores::AllClassScores;
use kubestep_config::ExtensionPoint;
use kubestep_framework::node::NodeId;
use kubestep_framework::record::{VerdictId, VerdictTable};
use kubestep_framework::snapshot::Snapshot;
use kubestep_framework::status::Status;
use records::RecordPool;
use search::Searches;

/// What plugins answered about nodes, kept from cycle to cycle.
#[derive(Clone, Default)]
pub(crate) struct PluginAnswers {
    pub cache: AnswerCache,
    /// The distinct statuses that filter plugins gave.
    pub verdicts: Arc<VerdictTable>,
    pub records: RecordPool,
    pub searches: Searches,
    pub class_scores: AllClassScores,
}

impl PluginAnswers {
    /// Forgets all answers, and what was computed from them.
    pub fn clear(&mut self) {
        self.cache.clear();
        self.searches.clear();
        self.class_scores.clear();
    }

    /// The number of a status. The table is copied only when a status is new.
    pub(crate) fn verdict_id(&mut self, status: &Status) -> VerdictId {
        match self.verdicts.find(status) {
            Some(id) => id,
            None => Arc::make_mut(&mut self.verdicts).id_of(status),
        }
    }

    /// Notes which nodes of the snapshot changed since the last cycle.
    pub(crate) fn snapshot_changed(
        &mut self,
        changed: &[NodeId],
        snapshot: &Snapshot,
        profiles: &Frameworks,
    ) {
        self.cache.note(changed, snapshot.len());
        if self.records.update_names(snapshot) {
            self.forget_node_counts(profiles);
        }
    }

    /// Forgets the scores that depend on the number of nodes.
    fn forget_node_counts(&mut self, profiles: &Frameworks) {
        let plugins = profiles.values().flat_map(|framework| framework.at(ExtensionPoint::Score));
        let counting = plugins.filter(|plugin| plugin.counts_nodes()).map(|plugin| plugin.name());
        self.cache.forget(&counting.collect::<Vec<_>>());
    }
}
