//! How many more pods of a workload would fit, and what rejects the next one.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubestep_api::intern::Symbol;
use kubestep_api::{Kind, Name, Object, PreemptionPolicy};
use kubestep_cluster::World;
use kubestep_cluster::workload::ExpandedWorkload;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::{CycleRecord, Outcome, QueueName};

/// How many more pods of a workload fit.
#[derive(Clone, PartialEq, Debug)]
pub struct Capacity {
    /// Kind, namespace and name: `Deployment shop/web`.
    pub workload: String,
    /// How many more pods would fit without preemption.
    pub fit: usize,
    /// The nodes, and how many pods on each.
    pub nodes: BTreeMap<Name, usize>,
    /// What rejects the next pod; `None` if the limit was reached.
    pub stopped: Option<CapacityLimit>,
}

/// Why a pod did not fit any more.
#[derive(Clone, PartialEq, Debug)]
pub struct CapacityLimit {
    /// The scheduler's message, without its part on preemption.
    pub message: String,
    /// The plugins that rejected nodes, each with the number of nodes; empty if Filter was not
    /// reached.
    pub plugins: Vec<(Symbol, usize)>,
}

/// Creates pods of the workload in a copy of the cluster, one after another from replica number
/// `from`, until one stays pending or `limit` is reached.
pub fn capacity(world: &World, workload: &ExpandedWorkload, from: usize, limit: usize) -> Capacity {
    let mut world = world.clone();
    let mut found =
        Capacity { workload: workload.name.clone(), fit: 0, nodes: BTreeMap::new(), stopped: None };
    while found.fit < limit {
        let mut objects = workload.replica(from + found.fit);
        objects.iter_mut().for_each(spare_others);
        let pod = objects.iter().find(|object| object.kind() == Kind::Pod).map(NamespacedName::of);
        kubestep_cluster::load::add(&mut world, objects);
        let Some(pod) = pod else { return found };
        match attempt(&mut world, pod) {
            Ok(node) => *found.nodes.entry(node).or_default() += 1,
            Err(stop) => {
                found.stopped = Some(stop);
                return found;
            }
        }
        found.fit += 1;
    }
    found
}

/// Disables preemption, as only free capacity counts.
fn spare_others(object: &mut Object) {
    if let Object::Pod(pod) = object {
        Arc::make_mut(pod).spec.preemption_policy = Some(PreemptionPolicy::Never);
    }
}

/// Runs cycles until the pod had one. Returns its node, or what rejected it.
fn attempt(world: &mut World, pod: NamespacedName) -> Result<Name, CapacityLimit> {
    while may_be_tried(world, pod) {
        let Some(record) = world.step() else { break };
        if record.pod != pod {
            continue;
        }
        return match (record.outcome, record.node) {
            (Outcome::Scheduled | Outcome::Waiting, Some(node)) => Ok(node),
            _ => Err(stop(&record)),
        };
    }
    let queued = world.scheduler().queue().get(pod);
    let message = match queued.and_then(|queued| queued.gating_message) {
        Some(gate) => gate.to_string(),
        None => "it is not tried: no profile serves its scheduler name".to_owned(),
    };
    Err(CapacityLimit { message, plugins: Vec::new() })
}

/// Whether the pod can be popped while the clock stands still. Pods popped from the backoff queue
/// early may be tried without end.
fn may_be_tried(world: &World, pod: NamespacedName) -> bool {
    let queue = world.scheduler().queue();
    queue.lengths()[0] > 0 || queue.queue_of(pod) == QueueName::Backoff
}

fn stop(record: &CycleRecord) -> CapacityLimit {
    // PostFilter's message is about preemption, which is disabled here.
    let said = record
        .post_filter
        .iter()
        .filter_map(|answer| record.message.find(&*answer.status.message()));
    let end = said.filter(|at| *at > 0).min().unwrap_or(record.message.len());
    let message = record.message[..end].trim_end();
    let mut plugins: Vec<(Symbol, usize)> = Vec::new();
    for node in &record.nodes.order {
        let verdict = record.filter.verdicts.get(*node).and_then(|id| record.verdicts.get(id));
        let Some(status) = verdict.filter(|status| !status.is_success()) else { continue };
        match plugins.iter_mut().find(|(plugin, _)| *plugin == status.plugin()) {
            Some((_, nodes)) => *nodes += 1,
            None => plugins.push((status.plugin(), 1)),
        }
    }
    plugins.sort_by_key(|(plugin, nodes)| (std::cmp::Reverse(*nodes), *plugin));
    CapacityLimit { message: message.to_owned(), plugins }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use kubestep_cluster::workload::{WorkloadInputs, expand};
    use kubestep_config as config;
    use kubestep_config::FeatureGates;
    use kubestep_framework::testing::object;

    fn world(nodes: usize) -> World {
        let (registry, gates) = (kubestep_plugins::registry(), FeatureGates::default());
        let config = config::resolve(None, &gates, &registry.descriptors()).unwrap();
        let mut world = World::new(&config, gates, &registry).unwrap();
        for number in 0..nodes {
            world.create(object(json!({
                "kind": "Node", "metadata": {"name": format!("n{number}")},
                "status": {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "10"}},
            })));
        }
        world
    }

    fn workload(spec: serde_json::Value) -> ExpandedWorkload {
        let value = json!({"kind": "Pod", "metadata": {"name": "web"}, "spec": spec});
        expand(&value, &WorkloadInputs { replicas: None, nodes: &[] }).unwrap().unwrap()
    }

    fn half_a_core() -> serde_json::Value {
        json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": "500m"}}}]})
    }

    #[test]
    fn pods_are_counted_until_one_does_not_fit() {
        let (world, pod) = (world(2), workload(half_a_core()));
        let found = capacity(&world, &pod, 0, 100);
        let nodes: Vec<_> = found.nodes.iter().map(|(name, pods)| (*name, *pods)).collect();
        assert_eq!((found.fit, nodes), (8, vec![("n0".into(), 4), ("n1".into(), 4)]));
        let message = "0/2 nodes are available: 2 Insufficient cpu.".to_owned();
        let plugins = vec![("NodeResourcesFit".into(), 2)];
        assert_eq!(found.stopped, Some(CapacityLimit { message, plugins }));
        let limited = capacity(&world, &pod, 0, 3);
        assert_eq!((limited.fit, limited.stopped), (3, None));
        assert_eq!(world.api().objects().pods.len(), 0, "the cluster itself is as it was");
    }

    #[test]
    fn others_are_spared() {
        let mut world = world(1);
        let mut small = half_a_core();
        small["nodeName"] = json!("n0");
        let placed = json!({"kind": "Pod", "metadata": {"name": "low", "namespace": "default",
            "uid": "low"}, "spec": small});
        world.create(object(placed));
        let mut important = half_a_core();
        important["priority"] = json!(1000);
        assert_eq!(capacity(&world, &workload(important), 0, 100).fit, 3);
    }

    #[test]
    fn a_pod_that_is_not_tried_says_why() {
        let mut gated = half_a_core();
        gated["schedulingGates"] = json!([{"name": "wait"}]);
        let reported = |spec| capacity(&world(1), &workload(spec), 0, 100).stopped.unwrap().message;
        assert_eq!(reported(gated), "waiting for scheduling gates: [wait]");
        let mut other = half_a_core();
        other["schedulerName"] = json!("other");
        assert_eq!(reported(other), "it is not tried: no profile serves its scheduler name");
    }
}
