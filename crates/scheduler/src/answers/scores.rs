//! The raw scores of a score plugin for the feasible nodes.

use std::sync::Arc;

use super::cache::{AnswerCache, AnswerKey, CachedColumn};
use super::raw_scores::RawScores;
use kubestep_api::intern::Symbol;
use kubestep_config::ExtensionPoint;
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::node::NodeInfo;
use kubestep_framework::plugin::{CycleContext, Plugin};
use kubestep_framework::record::nodes::NodeList;
use kubestep_framework::status::Status;

/// Asks the score plugins of a profile about the feasible nodes.
pub(crate) struct AnswerScorer<'a> {
    pub profile: Symbol,
    pub cx: CycleContext<'a>,
    pub state: &'a CycleState,
    pub ids: &'a NodeList,
    /// The same nodes as the extenders returned them, if there are extenders.
    pub returned: Option<&'a [Arc<NodeInfo>]>,
    pub cache: &'a mut AnswerCache,
}

impl AnswerScorer<'_> {
    /// The raw scores of one plugin, in the order of the nodes. The error ends the cycle.
    pub fn raw(&mut self, plugin: &dyn Plugin) -> Result<Vec<i64>, Status> {
        let score = |node: &Arc<NodeInfo>| plugin.score(&self.cx, self.state, node);
        // Nodes that an extender returned are without their pods, and it may have invented some.
        if let Some(returned) = self.returned {
            return returned.iter().map(score).collect();
        }
        if let Some(scores) = plugin.scores(&self.cx, self.state, &self.ids.slice()) {
            return Ok(scores);
        }
        match plugin.score_key(self.cx.pod) {
            Some(pod) => self.cached(plugin, pod),
            None => self.ids.iter().filter_map(|id| self.cx.snapshot.get(*id)).map(score).collect(),
        }
    }

    /// The scores that the cache has for pods with this key; the plugin computes the others.
    fn cached(&mut self, plugin: &dyn Plugin, pod: String) -> Result<Vec<i64>, Status> {
        let point = ExtensionPoint::Score;
        let key = AnswerKey { profile: self.profile, plugin: plugin.name(), point, pod };
        let cached = self.cache.take(&key);
        let mut scores = RawScores::of_cache(cached, self.cx.snapshot.slots());
        let mut raw = Vec::with_capacity(self.ids.len());
        for node in self.ids.iter().filter_map(|id| self.cx.snapshot.get(*id)) {
            let compute = || plugin.score(&self.cx, self.state, node);
            raw.push(scores.complete(node.id, compute)?);
        }
        self.cache.put(key, CachedColumn::Scores(scores));
        Ok(raw)
    }
}
