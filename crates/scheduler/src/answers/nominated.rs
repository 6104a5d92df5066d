//! The kept search with the pods counted in that are nominated to nodes.
//!
//! They change the verdicts on their nodes alone, so the search is the kept one with the verdicts on
//! those of these nodes that it evaluates.

use super::PluginAnswers;
use super::matrix::FilterCycle;
use super::search::SearchResult;
use kubestep_framework::node::NodeId;
use kubestep_framework::plugin::CycleContext;
use kubestep_framework::record::VerdictId;
use kubestep_framework::record::nodes::NodeList;

impl PluginAnswers {
    /// Visits the nodes from a position in the node order until `wanted` and one more pass, as the
    /// search of a class of pods knows them. `None` if there is no such search, or if a verdict is
    /// an error, which ends the cycle at its node.
    pub(crate) fn find(
        &mut self,
        cycle: FilterCycle<'_>,
        class: &str,
        start: usize,
        wanted: usize,
    ) -> Option<SearchResult> {
        let snapshot = cycle.cx.snapshot;
        let kept = self.searches.get_mut(class)?;
        if cycle.cx.nominated.is_empty() {
            let has_errors = kept.has_errors(&self.verdicts);
            return (!has_errors).then(|| kept.find(start, wanted, snapshot));
        }
        let (mut search, mut nodes) = (kept.clone(), nodes_with_nominated(&cycle.cx));
        loop {
            if search.has_errors(&self.verdicts) {
                return None;
            }
            let found = search.find(start, wanted, snapshot);
            let evaluated = take_evaluated(&mut nodes, &found.evaluated, snapshot.ranks());
            if evaluated.is_empty() {
                return Some(found);
            }
            // A rejection lets the search go on to further nodes.
            for id in evaluated {
                let alone = search.first.get(id).unwrap_or(VerdictId::PASS);
                let verdict = self.verdict_with_nominated(cycle, id, alone);
                search.set(id, verdict, snapshot.ranks());
            }
        }
    }
}

/// The nodes to which pods are nominated.
fn nodes_with_nominated(cx: &CycleContext<'_>) -> Vec<NodeId> {
    let nodes = cx.nominated.iter().filter_map(|(name, _)| cx.snapshot.by_name(name));
    nodes.map(|node| node.id).collect()
}

/// Takes out the nodes that a search evaluates, in the order in which it does.
fn take_evaluated(nodes: &mut Vec<NodeId>, evaluated: &NodeList, ranks: &[u32]) -> Vec<NodeId> {
    let Some(window) = evaluated.window() else { return Vec::new() };
    let turn = |id: &NodeId| window.index(*ranks.get(id.index())? as usize);
    let mut taken: Vec<NodeId> = nodes.extract_if(.., |id| turn(id).is_some()).collect();
    taken.sort_unstable_by_key(turn);
    taken
}
