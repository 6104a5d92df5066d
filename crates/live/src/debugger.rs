//! The cache debugger that kube-scheduler runs on SIGUSR2: the scheduler's view of nodes and
//! queues, and how its cache differs from the API server.

use std::collections::BTreeSet;
use std::sync::Arc;

use kubestep_api::Name;
use kubestep_api::words::count;
use kubestep_debug::Session;
use kubestep_framework::node::NodeInfo;
use kubestep_framework::pod::{NamespacedName, PodInfo};
use kubestep_scheduler::Scheduler;

/// The whole dump, line by line.
pub fn dump(session: &Session) -> Vec<String> {
    let world = session.world();
    let mut lines = vec![format!("Dump of cached node info at {}", world.now())];
    let nominated = world.scheduler().queue().nominated_pods();
    let nodes = world.scheduler().cache().nodes();
    lines.extend(nodes.flat_map(|node| of_node(node, nominated.for_node(node.name))));
    lines.push("Dump of scheduling queues".into());
    lines.extend(queues(world.scheduler()));
    lines.push("Comparison of the cache with the API server's objects".into());
    lines.extend(differences(session));
    lines
}

fn of_node(node: &NodeInfo, nominated: &[Arc<PodInfo>]) -> Vec<String> {
    let deleted = if node.node.is_none() { " (deleted)" } else { "" };
    let amounts = |resource: &kubestep_framework::resource::Resource| {
        format!("{}m cpu, {} bytes of memory", resource.milli_cpu, resource.memory)
    };
    let mut lines = vec![format!(
        "  Node {}{deleted}: requested {}; allocatable {}; {}",
        node.name,
        amounts(&node.requested),
        amounts(&node.allocatable),
        count(node.pods.len(), "pod")
    )];
    lines.extend(node.pods.iter().map(|pod| format!("    {} uid {}", pod.key(), pod.uid())));
    let kept = |pod: &Arc<PodInfo>| format!("    nominated: {} uid {}", pod.key(), pod.uid());
    lines.extend(nominated.iter().map(kept));
    lines
}

fn queues(scheduler: &Scheduler) -> Vec<String> {
    let queue = scheduler.queue();
    let parts = [
        ("active", queue.active()),
        ("backoff", queue.backoff()),
        ("unschedulable", queue.unschedulable()),
        ("gated", queue.gated()),
        ("in flight", queue.in_flight()),
    ];
    let mut lines = Vec::new();
    for (name, pods) in parts {
        lines.push(format!("  {name}: {}", count(pods.len(), "pod")));
        lines.extend(pods.iter().map(|pod| format!("    {} attempts {}", pod.key(), pod.attempts)));
    }
    lines
}

/// Objects that are only in the cache or only in the API server.
fn differences(session: &Session) -> Vec<String> {
    let (scheduler, api) = (session.world().scheduler(), session.world().api());
    let cached: BTreeSet<Name> =
        scheduler.cache().nodes().filter(|node| node.node.is_some()).map(|n| n.name).collect();
    let known: BTreeSet<Name> = api.nodes().map(|node| node.metadata.name).collect();
    let bound = api.objects().pods.iter();
    let bound = bound.filter(|(_, pod)| !pod.spec.node_name.is_empty() && !pod.is_terminal());
    let bound: BTreeSet<NamespacedName> = bound.map(|(key, _)| *key).collect();
    let nodes = scheduler.cache().nodes();
    let placed: BTreeSet<NamespacedName> =
        nodes.flat_map(|node| node.pods.iter().map(|pod| pod.key())).collect();
    let waiting: BTreeSet<NamespacedName> =
        scheduler.waiting().iter().map(|waiting| waiting.pod().key()).collect();
    let mut lines = Vec::new();
    lines.extend(known.difference(&cached).map(|node| format!("  missed node {node}")));
    lines.extend(cached.difference(&known).map(|node| format!("  redundant node {node}")));
    lines.extend(bound.difference(&placed).map(|pod| format!("  missed pod {pod}")));
    // A pod that waits at Permit is assumed in the cache without being bound.
    let redundant = placed.difference(&bound).filter(|pod| !waiting.contains(*pod));
    lines.extend(redundant.map(|pod| format!("  redundant pod {pod}")));
    if lines.is_empty() {
        lines.push("  the cache matches the API server".into());
    }
    lines
}
