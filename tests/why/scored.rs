//! Compares the raw scores that "why" computes, and explains, with those of the recorded cycle.

use std::sync::Arc;

use kubestep_cluster::World;
use kubestep_debug::why::score::as_returned;
use kubestep_framework::node::{NodeId, NodeInfo};
use kubestep_framework::pod::PodInfo;
use kubestep_framework::record::CycleRecord;
use kubestep_scheduler::what_if::Probe;

/// Compares the scores for the cluster before a cycle with those that the cycle recorded.
pub fn compare(before: &World, record: &CycleRecord) -> Result<(), String> {
    let scheduler = before.scheduler();
    let Some(pod) = before.api().objects().pod(record.pod) else { return Ok(()) };
    let info = PodInfo::with_features(pod.clone(), scheduler.features()).into();
    let Some(probe) = &Probe::new(scheduler, &info, before.now()) else { return Ok(()) };
    let info = |id: &NodeId| {
        let node = probe.snapshot().by_name(record.nodes.name(*id))?;
        if record.score.as_returned { as_returned(node) } else { Some(node.clone()) }
    };
    let nodes: Option<Vec<Arc<NodeInfo>>> = record.feasible.iter().map(info).collect();
    // An extender may have invented a node.
    let Some(nodes) = nodes.filter(|_| !record.score.plugins.is_empty()) else { return Ok(()) };
    // Filters leave in the state what some plugins score; "why" has asked them by then.
    probe.rejections();
    let place = format!("cycle {} of {}", record.cycle, record.pod);
    let scored = probe.score(&nodes).map_err(|status| format!("{place}: {status:?}"))?;
    for (explained, recorded) in scored.record.plugins.iter().zip(record.score.plugins.iter()) {
        if (explained.plugin, explained.raw.values()) != (recorded.plugin, recorded.raw.values()) {
            return Err(format!("{place}: explained {explained:?}, recorded {recorded:?}"));
        }
    }
    match scored.record.plugins.len() == record.score.plugins.len() {
        true => Ok(()),
        false => Err(format!("{place}: other plugins scored")),
    }
}
