//! Small clusters in which the pod `web` is pending, and the fixes proposed for it.

mod labels;
mod nodes;
mod pods;
mod resources;
mod search;

use crate::edit::Edit;
use crate::edit::tests::{bound, container, world};
use crate::fix::{Fix, Fixes, SearchLimits, fixes};
use crate::why::{self, Why};
use kubestep_cluster::World;
use kubestep_framework::testing::key;

/// A node with 4 CPUs, additional labels and that spec.
fn node(name: &str, labels: &str, spec: &str) -> String {
    format!(
        "---\n{{kind: Node, metadata: {{name: {name}, labels: {{kubernetes.io/hostname: {name}, \
         {labels}}}}}, spec: {{{spec}}}, status: {{allocatable: {{cpu: 4, memory: 8Gi, pods: \
         110}}}}}}\n"
    )
}

/// The pod `web` to be fixed.
fn web(cpu: &str, spec: &str) -> String {
    format!(
        "---\n{{kind: Pod, metadata: {{name: web, labels: {{app: web}}}}, spec: {{{spec} containers: \
         [{{name: c, resources: {{requests: {{cpu: {cpu}}}}}}}]}}}}\n"
    )
}

/// The cluster after an attempt of each pending pod.
fn settled(cluster: &str) -> World {
    let mut world = world(cluster);
    world.run(100);
    world
}

fn found(world: &World) -> Fixes {
    fixes(world, world, key("web"), SearchLimits::default(), &mut |_, _| true)
}

fn edits(fix: &Fix) -> String {
    fix.edits.iter().map(Edit::to_string).collect::<Vec<_>>().join("; ")
}

/// The edits of all proposals, in order.
fn proposed(cluster: &str) -> Vec<String> {
    found(&settled(cluster)).found.iter().map(edits).collect()
}

fn why(cluster: &str) -> Why {
    why::why(&settled(cluster), key("web")).unwrap()
}

/// The causes on a node, each with its plugin.
fn causes(cluster: &str, node: &str) -> Vec<String> {
    let why = why(cluster);
    let node = why.node(node.into()).unwrap();
    node.causes().map(|(plugin, cause)| format!("{plugin}: {}", cause.text())).collect()
}
