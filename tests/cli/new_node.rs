//! `explain --new-node` and `run --new-node`: nodes that could be created.

use serde_json::{Value, json};

use crate::harness::Call;

/// Thirty pods, pools and a catalogue.
fn karpenter() -> Call {
    Call::new()
        .file("pods.yaml", include_str!("new_node/pods.yaml"))
        .file("pools.yaml", include_str!("new_node/pools.yaml"))
        .file("catalogue.json", include_str!("new_node/catalogue.json"))
}

const INPUT: &str = "-f pods.yaml -f pools.yaml --instance-types catalogue.json";

#[test]
fn nodes_of_pools() {
    for pod in ["web", "arm-in-a", "train-intolerant", "pinned-large", "gated"] {
        karpenter().says(&format!("new_node/{pod}"), &format!("explain {pod} {INPUT} --new-node"));
    }
}

#[test]
fn every_node_with_its_verdict() {
    Call::new().says("new_node/wide", "explain checkout --demo node-pools --new-node -o wide");
    Call::new().says("new_node/json", "explain checkout --demo node-pools --new-node -o json");
    Call::new().says("new_node/fix", "explain checkout --demo node-pools --fix");
}

#[test]
fn nodes_for_all_pending_pods() {
    Call::new().says("new_node/run", "run --demo node-pools --new-node");
    Call::new().says("new_node/run-json", "run --demo node-pools --new-node -o json");
    Call::new().says("new_node/run-csv", "run --demo node-pools --new-node -o csv");
    let edit = "add 1 node of nodepool/spare/m.large/zone-a/on-demand";
    Call::new().says("new_node/run-edit", &format!("run --demo node-pools --edit '{edit}'"));
    Call::new()
        .says("new_node/run-edit-unknown", "run --demo node-pools --edit 'add 1 node of group/x'");
}

#[test]
fn the_catalogue_is_known_by_its_content() {
    let call = karpenter();
    let by_option = call.run(&format!("explain web {INPUT} --new-node -o json"));
    let by_file =
        call.run("explain web -f pods.yaml -f pools.yaml -f catalogue.json --new-node -o json");
    assert_eq!(by_option.stdout, by_file.stdout);
    assert!(by_file.stderr.contains("catalogue.json is a catalogue of instance types"));
}

fn template(name: &str, cpu: &str) -> Value {
    let node = json!({"metadata": {"name": format!("template-node-for-{name}")},
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "10"}}});
    json!({"Node": node, "Pods": []})
}

/// Which group would grow: by the template nodes, the report, and the sizes in it.
#[test]
fn groups_of_cluster_autoscaler() {
    let pod = json!({"metadata": {"name": "web", "namespace": "shop"}, "spec": {"containers":
        [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]}});
    let groups = json!({"small": template("small", "2"), "large": template("large", "4"),
        "full": template("full", "4"), "broken": template("broken", "4")});
    let snapshot = json!({"NodeList": [], "UnscheduledPodsCanBeScheduled": [pod],
        "StartTimestamp": "2026-01-01T00:00:00Z", "EndTimestamp": "2026-01-01T00:00:01Z",
        "TemplateNodes": groups});
    let call = Call::new().bytes("snapshotz.json", snapshot.to_string().as_bytes());
    let call = call.file("status.yaml", STATUS);
    let line = "explain web -f snapshotz.json --instance-types status.yaml --new-node";
    call.says("new_node/groups", line);
    let fix = "explain web -f snapshotz.json --instance-types status.yaml --fix";
    call.says("new_node/groups-fix", fix);
}

const STATUS: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: cluster-autoscaler-status, namespace: kube-system}
data:
  status: |
    time: 2026-01-01 00:00:00 +0000 UTC
    autoscalerStatus: Running
    nodeGroups:
    - name: large
      health: {status: Healthy, cloudProviderTarget: 1, minSize: 0, maxSize: 5}
      scaleUp: {status: NoActivity}
    - name: full
      health: {status: Healthy, cloudProviderTarget: 3, minSize: 0, maxSize: 3}
      scaleUp: {status: NoActivity}
    - name: broken
      health: {status: Healthy, cloudProviderTarget: 1, minSize: 0, maxSize: 3}
      scaleUp:
        status: Backoff
        backoffInfo: {errorCode: QUOTA_EXCEEDED, errorMessage: no quota for 4 CPUs}
";
