//! Opportunistic batching: a pod that is like the one before it, and no longer fits where
//! that one went, tries the next best node of that one's ranking first.
//!
//! Upstream: `pkg/scheduler/framework/runtime/batch.go`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Cycle;
use super::select::RankedNodes;
use crate::cluster_state::ClusterState;
use kubestep_api::intern::Symbol;
use kubestep_api::{Duration, Name, Time};
use kubestep_config::Feature;
use kubestep_framework::stopwatch::Work;

/// How long a ranking is valid.
const MAX_AGE: Duration = Duration::from_millis(500);

/// The last successful cycle of each profile.
#[derive(Clone, Default)]
pub(crate) struct Batches(BTreeMap<Symbol, Batch>);

/// What a profile remembers of its last successful cycle.
#[derive(Clone, Default)]
struct Batch {
    ranking: Option<Ranking>,
    /// How many pods had been popped when it ran.
    popped: u64,
    /// The node selected in it.
    selected: Name,
}

/// The nodes that were neither selected nor proposed yet, best first.
#[derive(Clone)]
struct Ranking {
    signature: Arc<String>,
    nodes: RankedNodes,
    made: Time,
}

/// Why a ranking cannot be used, as upstream's metrics name it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unusable {
    /// There is no ranking to use.
    Absent,
    /// There is one, but it does not apply.
    Flushed(&'static str),
}

impl Batches {
    /// Forgets all rankings, so that nodes are scored again.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The node that the last ranking proposes for the pod, removed from the ranking. `popped`
    /// is the number of pods that have been popped.
    pub fn node_hint(
        &mut self,
        cluster: &ClusterState,
        cycle: &Cycle,
        popped: u64,
    ) -> Option<Name> {
        if !cluster.features.enabled(Feature::OpportunisticBatching) {
            return None;
        }
        let (timer, profile) = (&cluster.shared.timer, cycle.framework.name());
        let turn = || {
            let usable = self.usable_ranking(cluster, cycle, popped);
            if let Err(Unusable::Flushed(reason)) = usable {
                timer.note(Work::BatchFlush { profile, reason });
            }
            if usable.is_err() {
                timer.note(Work::BatchAttempt { profile, result: "no_hint" });
                return None;
            }
            self.0.get_mut(&profile)?.ranking.as_mut()?.nodes.next()
        };
        timer.work(turn, |hint| Work::NodeHint { profile, hinted: hint.is_some() })
    }

    /// Whether the last ranking is valid for this pod.
    fn usable_ranking(
        &self,
        cluster: &ClusterState,
        cycle: &Cycle,
        popped: u64,
    ) -> Result<(), Unusable> {
        let batch = self.0.get(&cycle.framework.name()).ok_or(Unusable::Absent)?;
        let ranking = batch.ranking.as_ref().filter(|ranking| !ranking.nodes.is_empty());
        let ranking = ranking.ok_or(Unusable::Absent)?;
        let require = |is: bool, or: &'static str| is.then_some(()).ok_or(Unusable::Flushed(or));
        require(popped == batch.popped + 1, "pod_skipped")?;
        require(cycle.signature.as_ref() == Some(&ranking.signature), "pod_incompatible")?;
        require(cycle.now - ranking.made <= MAX_AGE, "expired")?;
        // Only if the last selected node is full now, the next best node is the best one left.
        let selected = cluster.snapshot.by_name(batch.selected);
        let selected = selected.ok_or(Unusable::Flushed("node_missing"))?;
        let cx = cycle.context(cluster);
        let status = cycle.framework.run_filter(&cx, &cycle.state, selected);
        require(status.is_rejected(), "node_not_full")
    }

    /// Remembers which node a successful cycle selected, and which ones it would have taken
    /// next.
    pub fn remember(
        &mut self,
        cluster: &ClusterState,
        cycle: &Cycle,
        popped: u64,
        selected: Name,
        others: impl FnOnce() -> Option<RankedNodes>,
    ) {
        if !cluster.features.enabled(Feature::OpportunisticBatching) {
            return;
        }
        let (timer, profile) = (&cluster.shared.timer, cycle.framework.name());
        let turn = || {
            let batch = self.0.entry(profile).or_default();
            batch.popped = popped;
            batch.selected = selected;
            match cycle.record.node_hint {
                Some(hint) if hint == selected => {
                    return timer.note(Work::BatchAttempt { profile, result: "hint_used" });
                }
                Some(_) => timer.note(Work::BatchAttempt { profile, result: "hint_not_used" }),
                None => {}
            }
            let nodes = others().filter(|nodes| !nodes.is_empty());
            let reason = match (&nodes, &cycle.signature) {
                (None, _) => Some("empty_list"),
                (Some(_), None) => Some("pod_not_batchable"),
                (Some(_), Some(_)) => None,
            };
            if let Some(reason) = reason {
                timer.note(Work::BatchFlush { profile, reason });
            }
            let ranking = |(signature, nodes)| Ranking { signature, nodes, made: cycle.now };
            batch.ranking = cycle.signature.clone().zip(nodes).map(ranking);
        };
        timer.work(turn, |()| Work::StoredResults { profile });
    }
}
