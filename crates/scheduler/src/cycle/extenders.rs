//! Extenders in the scheduling cycle: they filter after the plugins, and their scores are added to
//! those of the plugins.

use std::sync::Arc;

use crate::Scheduler;
use crate::cycle::Cycle;
use kubestep_framework::extender;
use kubestep_framework::host::Host;
use kubestep_framework::node::{NodeId, NodeInfo};
use kubestep_framework::status::Status;
use kubestep_framework::status::node_statuses::Diagnosis;

impl Scheduler {
    /// Calls the extenders one after the other, each with the nodes that the previous one left.
    pub(crate) fn nodes_that_pass_extenders(
        &mut self,
        cycle: &mut Cycle,
        feasible: Vec<NodeId>,
        diagnosis: &mut Diagnosis,
        host: &mut dyn Host,
    ) -> Result<Vec<NodeId>, Status> {
        let extenders = self.extenders.clone();
        if extenders.is_empty() {
            return Ok(feasible);
        }
        let pod = cycle.queued.info.pod.clone();
        let mut nodes = extender::infos(&self.snapshot, &feasible);
        for (index, extender) in extenders.iter().enumerate() {
            if nodes.is_empty() {
                break;
            }
            if !extender::is_interested(extender, &pod) {
                continue;
            }
            let filtered = match extender::filter((index, extender), &pod, &nodes, host) {
                Ok(filtered) => filtered,
                Err(_) if extender.ignorable => continue, // an ignorable extender is skipped
                Err(text) => return Err(Status::error(&text)),
            };
            for (name, status) in filtered.refused {
                let Some(node) = self.snapshot.by_name(name).map(|node| node.id) else {
                    diagnosis.statuses.set_stranger(name, &status);
                    continue;
                };
                cycle.record.filter.extender.push((node, status.clone()));
                diagnosis.statuses.set(node, status);
            }
            nodes = filtered.nodes;
        }
        if nodes.len() != feasible.len() {
            Scheduler::note_extender_rejection(diagnosis);
        }
        nodes.iter_mut().for_each(|node| name_stranger(cycle, node));
        let left = nodes.iter().map(|node| node.id).collect();
        cycle.nodes = nodes;
        Ok(left)
    }

    /// Whether some extender filters or scores. If none does and no plugin scores, the search stops
    /// at one feasible node.
    pub(crate) fn extenders_want_all_nodes(&self) -> bool {
        let wants = |extender: &kubestep_config::types::Extender| {
            !extender.filter_verb.is_empty() || !extender.prioritize_verb.is_empty()
        };
        self.extenders.iter().any(wants)
    }

    /// Adds the extenders' scores to the totals. Their errors are ignored, as upstream.
    pub(crate) fn add_extender_scores(&mut self, cycle: &mut Cycle, host: &mut dyn Host) {
        let extenders = self.extenders.clone();
        if extenders.is_empty() {
            return;
        }
        let pod = cycle.queued.info.pod.clone();
        let mut scores: Vec<Option<i64>> = vec![None; cycle.nodes.len()];
        for (index, extender) in extenders.iter().enumerate() {
            if !extender::is_interested(extender, &pod) {
                continue;
            }
            let given = extender::prioritize((index, extender), &pod, &cycle.nodes, host);
            for (name, score) in given.unwrap_or_default() {
                let Some(at) = cycle.nodes.iter().position(|node| node.name == name) else {
                    continue;
                };
                scores[at] = Some(scores[at].unwrap_or(0).wrapping_add(score));
            }
        }
        for (total, score) in cycle.record.score.totals.iter_mut().zip(&scores) {
            *total = total.wrapping_add(score.unwrap_or(0));
        }
        cycle.record.score.extenders = scores;
    }
}

/// Adds a node that is not in the snapshot to the node names: upstream binds to any name that an
/// extender returns in `Nodes`.
fn name_stranger(cycle: &mut Cycle, node: &mut Arc<NodeInfo>) {
    if node.id != extender::STRANGER {
        return;
    }
    let names = &mut Arc::make_mut(&mut cycle.record.nodes).names;
    Arc::make_mut(node).id = NodeId(names.len() as u32);
    names.push(node.name);
}
