//! Hypothetical nodes of each source, on small clusters.

mod thirty;

use super::*;
use crate::edit::tests::{edit, world};
use kubestep_api::{AutoscalerStatus, NodeGroup, Provisioning};
use serde_json::json;

const NODES: &str = "
{kind: Node, metadata: {name: a-1, labels: {eks.amazonaws.com/nodegroup: a, kubernetes.io/hostname: a-1}},
 spec: {unschedulable: true, taints: [{key: node.kubernetes.io/unschedulable, effect: NoSchedule}]},
 status: {allocatable: {cpu: '4', memory: 8Gi, pods: '10'}}}
---
{kind: Node, metadata: {name: a-2, labels: {eks.amazonaws.com/nodegroup: a, kubernetes.io/hostname: a-2}},
 status: {allocatable: {cpu: '4', memory: 8Gi, pods: '10'}}}
---
{kind: Node, metadata: {name: b-1, labels: {eks.amazonaws.com/nodegroup: b}},
 spec: {taints: [{key: gpu, effect: NoSchedule}]},
 status: {allocatable: {cpu: '8', memory: 8Gi, pods: '10'}}}
---
";
const LOGS: &str = "
{kind: Pod, metadata: {name: logs-x, namespace: default, ownerReferences: [{kind: DaemonSet, name: logs,
 apiVersion: apps/v1, uid: u, controller: true}]}, spec: {nodeName: a-2, containers: [{name: c,
 resources: {requests: {cpu: '1'}}}]}}
---
";

fn pod(name: &str, cpu: &str) -> String {
    format!(
        "{{kind: Pod, metadata: {{name: {name}, namespace: default}}, spec: {{containers: \
         [{{name: c, resources: {{requests: {{cpu: '{cpu}'}}}}}}]}}}}\n---\n"
    )
}

fn key(name: &str) -> NamespacedName {
    NamespacedName::new("default".into(), name.into())
}

fn ask(world: &World, name: &str) -> NewNodes {
    new_nodes(world, key(name), &mut |_, _| true).unwrap()
}

/// The nodes that are tried, each with what rejects it.
fn summaries(answer: &NewNodes) -> Vec<String> {
    let one = |new: &NewNode| {
        let plugins: Vec<&str> = new.verdict.blockers.iter().map(|b| b.plugin.as_str()).collect();
        let closed = new.closed.as_deref().map(|why| format!(" ({why})")).unwrap_or_default();
        format!("{}: {}{closed}", new.origin.id(), plugins.join(", "))
    };
    answer.nodes.iter().map(one).collect()
}

#[test]
fn a_copy_of_a_node_is_schedulable_and_has_its_daemon_sets() {
    let mut world = world(&format!("{NODES}{LOGS}{}", pod("big", "3500m")));
    world.run(10);
    let answer = ask(&world, "big");
    // The other node of that group is cordoned, and has no DaemonSet pod.
    assert_eq!(summaries(&answer), ["node/a-2: NodeResourcesFit", "node/b-1: TaintToleration"]);
    assert_eq!(answer.nodes[0].daemons, [key("logs-a-2-copy-1")]);
    edit("delete node a-2").apply(&mut world).unwrap();
    let answer = ask(&world, "big");
    assert_eq!(summaries(&answer), ["node/a-1: ", "node/b-1: TaintToleration"]);
    assert_eq!((answer.nodes[0].takes, answer.pending), (Some(1), 1));
    assert_eq!(world.api().nodes().count(), 2, "the cluster itself is as it was");
}

#[test]
fn an_added_copy_runs_the_daemon_sets_of_the_original() {
    let mut world = world(&format!("{NODES}{LOGS}"));
    edit("add 2 nodes like a-2").apply(&mut world).unwrap();
    let logs = world.api().objects().pod(key("logs-a-2-copy-2")).unwrap();
    assert_eq!(logs.spec.node_name, "a-2-copy-2");
}

fn group(name: &str, cpu: &str, taints: serde_json::Value) -> NodeGroup {
    let node = json!({"metadata": {"name": format!("template-node-for-{name}"),
        "labels": {"pool": name}}, "spec": {"taints": taints},
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "10"}}});
    let logs = json!({"metadata": {"name": "logs"}, "spec": {"containers": [
        {"name": "c", "resources": {"requests": {"cpu": "500m"}}}]}});
    let read = json!({"Node": node, "Pods": [logs]});
    NodeGroup { name: name.into(), ..serde_json::from_value(read).unwrap() }
}

#[test]
fn groups_of_cluster_autoscaler_say_which_one_would_grow() {
    let startup = "startup-taint.cluster-autoscaler.kubernetes.io/setup";
    let status: AutoscalerStatus = serde_json::from_value(json!({"nodeGroups": [
        {"name": "full", "health": {"maxSize": 3, "cloudProviderTarget": 3}},
        {"name": "broken", "health": {"maxSize": 3}, "scaleUp": {"status": "Backoff",
            "backoffInfo": {"errorCode": "QUOTA_EXCEEDED", "errorMessage": "no quota"}}},
        {"name": "open", "health": {"maxSize": 3, "cloudProviderTarget": 1}},
    ]}))
    .unwrap();
    let mut world = world(&pod("big", "3500m"));
    world.set_provisioning(Provisioning {
        node_groups: vec![
            group("full", "4", json!([])),
            group("broken", "4", json!([])),
            group("open", "4", json!([{"key": startup, "effect": "NoSchedule"}])),
            group("small", "3800m", json!([])),
            group("gpu", "8", json!([{"key": "gpu", "effect": "NoSchedule"}])),
        ],
        autoscaler: Some(status),
        ..Provisioning::default()
    });
    world.run(10);
    let answer = ask(&world, "big");
    assert_eq!(
        summaries(&answer),
        [
            "group/open: ",
            "group/full:  (at its maximum size: 3 of 3 nodes)",
            "group/broken:  (in backoff: QUOTA_EXCEEDED: no quota)",
            "group/small: NodeResourcesFit",
            "group/gpu: TaintToleration",
        ]
    );
    assert_eq!(answer.nodes[0].startup_taints[0].key, startup);
    assert_eq!(answer.nodes[0].room, Some(2));
    let applied = edit("add 1 node of group/full").apply(&mut world).unwrap();
    assert_eq!(applied.notes.len(), 2, "{:?}", applied.notes);
    run(&mut world, &mut || true);
    assert_eq!(world.api().objects().pod(key("big")).unwrap().spec.node_name, "full-new-1");
    let error = edit("add 1 node of group/opn").apply(&mut world).unwrap_err();
    assert!(error.0.contains("did you mean \"group/open\""), "{error}");
}

#[test]
fn the_mix_takes_the_lowest_price_for_each_pod() {
    let types = json!([
        {"name": "small", "architecture": "amd64", "operatingSystems": ["linux"],
         "resources": {"cpu": "2", "memory": "4Gi"}, "offerings": [{"Price": 1.0, "Requirements": []}]},
        {"name": "large", "architecture": "amd64", "operatingSystems": ["linux"],
         "resources": {"cpu": "9", "memory": "4Gi"}, "offerings": [{"Price": 3.0, "Requirements": []}]},
    ]);
    let pool = json!({"metadata": {"name": "general"}, "spec": {"limits": {"cpu": "100"}}});
    let pods: String = (0..5).map(|n| pod(&format!("w{n}"), "1500m")).collect();
    let mut world = world(&(pods + &pod("huge", "20")));
    world.set_provisioning(Provisioning {
        node_pools: vec![serde_json::from_value(pool).unwrap()],
        instance_types: serde_json::from_value(types).unwrap(),
        ..Provisioning::default()
    });
    world.run(20);
    let found = supply(&world, &mut |_, _| true);
    let offer = |one: &NodeOffer| (one.origin.details(), one.takes.len(), one.nodes, one.pods);
    let offers: Vec<_> = found.offers.iter().map(offer).collect();
    assert_eq!(
        offers,
        [("large".into(), 5, Some(1), Some(5)), ("small".into(), 1, Some(5), Some(5))]
    );
    let plan: Vec<&str> = found.plan.iter().map(|one| one.edit.as_str()).collect();
    assert_eq!(plan, ["add 1 node of nodepool/general/large"]);
    assert_eq!((found.price, found.unmet.len()), (Some(3.0), 1));
    let nearest = found.unmet[0].nearest.as_ref().unwrap();
    assert!(nearest.causes[0].starts_with("NodeResourcesFit: "), "{nearest:?}");
}

/// The limit is the pool's: nodes of other types count, whether karpenter reports what there is or not.
#[test]
fn the_mix_keeps_the_limits_of_a_pool() {
    let types = json!([
        {"name": "cpus", "architecture": "amd64", "operatingSystems": ["linux"],
         "resources": {"cpu": "4", "memory": "2Gi"}, "offerings": [{"Price": 1.0, "Requirements": []}]},
        {"name": "memory", "architecture": "amd64", "operatingSystems": ["linux"],
         "resources": {"cpu": "4", "memory": "64Gi"}, "offerings": [{"Price": 2.0, "Requirements": []}]},
    ]);
    for (status, limit, bought) in [
        (json!({}), "4", 1),
        (json!({}), "8", 2),
        (json!({"resources": {"cpu": "0"}, "nodes": 0}), "4", 1),
        (json!({"resources": {"cpu": "4"}, "nodes": 1}), "8", 1),
        (json!({"resources": {"cpu": "4"}, "nodes": 1}), "12", 2),
    ] {
        let spec = json!({"limits": {"cpu": limit}});
        let pool = json!({"metadata": {"name": "general"}, "spec": spec, "status": status});
        let large = pod("large", "1").replace("cpu: '1'", "cpu: '1', memory: 32Gi");
        let mut world = world(&(pod("small", "3") + &large));
        world.set_provisioning(Provisioning {
            node_pools: vec![serde_json::from_value(pool.clone()).unwrap()],
            instance_types: serde_json::from_value(types.clone()).unwrap(),
            ..Provisioning::default()
        });
        world.run(20);
        let found = supply(&world, &mut |_, _| true);
        let nodes: usize = found.plan.iter().map(|one| one.count).sum();
        assert_eq!((nodes, found.unmet.len()), (bought, 2 - bought), "{pool}: {found:?}");
        let full = found.unmet.iter().filter_map(|one| one.nearest.as_ref());
        assert!(full.flat_map(|one| &one.causes).all(|cause| cause.contains("limit")), "{found:?}");
    }
}
