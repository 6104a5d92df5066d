//! Why is this pod where it is? Pending, and what blocks it, on how many nodes, and what of it
//! is near; or placed, and why there.
//!
//! [`why`] looks at a cluster at one moment, with the history that led there. It asks every
//! plugin about every node on a copy, so that it finds all that is in the way, also on nodes
//! that the scheduler did not evaluate, and also for a pod that was never tried. The pieces:
//! [`model`] what an answer is made of, [`cause`] what is behind a refusal, one file a plugin,
//! `nodes` ranking and folding, `place` and `problems` what no node can help.

pub mod cause;
pub mod model;
mod nodes;
mod place;
mod problems;
pub mod spread;

use std::sync::Arc;

use crate::api::Pod;
use crate::engine::pod::{NamespacedName, PodInfo};
use crate::engine::record::CycleRecord;
use crate::engine::scheduler::Probe;
use crate::sim::World;
use crate::trace::History;

pub use model::*;

/// Why the pod is where it is. `None` if there is no such pod. Of the history only what had
/// happened by the state of `world` counts.
pub fn why(world: &World, history: &History, pod: NamespacedName) -> Option<Why> {
    let object = world.api().objects().pod(pod)?;
    let info = info(world, pod, object);
    let attempts = attempts(world, history, object);
    let last = attempts.last();
    let probe = world.scheduler().probe(&info, world.now());
    let place = place::of(world, object);
    let examined = probe.as_ref().map(|probe| nodes::examine(probe, last.map(Arc::as_ref)));
    let nodes::Examined { ahead, nodes, groups } = examined.unwrap_or_default();
    Some(Why {
        pod,
        at: world.now(),
        problems: problems::of(world, object, &place),
        profile: probe.as_ref().map(|probe: &Probe| probe.framework().name()),
        place,
        ahead,
        spread: probe.as_ref().map(spread::ledgers).unwrap_or_default(),
        nodes,
        groups,
        attempts: attempts.iter().map(attempt).collect(),
    })
}

/// The pod as the queue parsed it, or parsed now.
fn info(world: &World, key: NamespacedName, pod: &Arc<Pod>) -> Arc<PodInfo> {
    let queued = world.scheduler().queue().get(key);
    let same = queued.filter(|queued| queued.uid() == pod.metadata.uid);
    same.map_or_else(|| Arc::new(PodInfo::new(pod.clone())), |queued| queued.info.clone())
}

/// The cycles of the pod up to the state of `world`.
fn attempts(world: &World, history: &History, pod: &Pod) -> Vec<Arc<CycleRecord>> {
    let key = NamespacedName::new(pod.metadata.namespace, pod.metadata.name);
    let so_far = world.scheduler().cycles();
    let own = |record: &&Arc<CycleRecord>| record.uid == pod.metadata.uid && record.cycle <= so_far;
    history.cycles_of(key).filter(own).cloned().collect()
}

fn attempt(record: &Arc<CycleRecord>) -> Attempt {
    Attempt {
        cycle: record.cycle,
        attempt: record.attempt,
        time: record.time,
        outcome: record.outcome.as_str(),
        node: record.node,
        nominated: record.nominated_node.filter(|node| !node.is_empty()),
        message: record.message.clone(),
    }
}
