//! Extenders in the scheduling cycle: filtering after the plugins, scores beside theirs.

use std::sync::Arc;

use crate::Scheduler;
use crate::cycle::Cycle;
use crate::host::SchedulerHost;
use kubestep_framework::extender;
use kubestep_framework::node::{NodeId, NodeInfo};
use kubestep_framework::status::Status;
use kubestep_framework::status::node_statuses::Diagnosis;

impl Scheduler {
    /// Asks the extenders one after the other, each about what the one before left (S-015).
    pub(crate) fn nodes_that_pass_extenders(
        &mut self,
        cycle: &mut Cycle,
        feasible: Vec<NodeId>,
        diagnosis: &mut Diagnosis,
        host: &mut dyn SchedulerHost,
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
                Err(_) if extender.ignorable => continue,
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

    /// Whether some extender filters or scores, so that one feasible node is not enough (CFG-163).
    pub(crate) fn extenders_want_all_nodes(&self) -> bool {
        let wants = |extender: &kubestep_config::types::Extender| {
            !extender.filter_verb.is_empty() || !extender.prioritize_verb.is_empty()
        };
        self.extenders.iter().any(wants)
    }

    /// Adds the extenders' scores to the totals; their errors are ignored (S-017).
    pub(crate) fn add_extender_scores(&mut self, cycle: &mut Cycle, host: &mut dyn SchedulerHost) {
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

/// Gives a node that is not in the snapshot a place among the names: upstream binds to whatever
/// name an extender's `Nodes` carry.
fn name_stranger(cycle: &mut Cycle, node: &mut Arc<NodeInfo>) {
    if node.id != extender::STRANGER {
        return;
    }
    let names = &mut Arc::make_mut(&mut cycle.record.nodes).names;
    Arc::make_mut(node).id = NodeId(names.len() as u32);
    names.push(node.name);
}
