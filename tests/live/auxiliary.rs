//! Objects that no scheduler reads, but that help to explain: from a server, from a capture of it,
//! and while the server is followed.

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kubestep_api::Kind;
use kubestep_live::auxiliary;
use serde_json::json;

use crate::standin::StandIn;

fn server() -> Arc<StandIn> {
    let server = StandIn::start();
    let capacity = json!({"allocatable": {"cpu": "1", "memory": "8Gi", "pods": "10"}});
    server.put(Kind::Node, "a", json!({"status": capacity}));
    let gated = json!({"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]});
    server.put(Kind::Pod, "web", json!({"spec": gated}));
    server.put_unread(
        "/apis/kueue.x-k8s.io/v1beta1/workloads",
        json!({
            "metadata": {"name": "w", "namespace": "default", "annotations": {"a": "SECRET"},
                "ownerReferences": [{"kind": "Pod", "name": "web"}]},
            "spec": {"queueName": "team-a", "podSets": [{"count": 1}]},
            "status": {"conditions": [
                {"type": "QuotaReserved", "status": "False", "message": "no quota for cpu"}
            ]},
        }),
    );
    server.put_unread("/apis/karpenter.sh/v1/nodepools", json!({"metadata": {"name": "general"}}));
    server
}

fn kubestep(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_kubestep")).args(arguments).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_workload_of_kueue_explains_its_gate_from_a_server_and_from_its_capture() {
    let server = server();
    let kubeconfig = server.kubeconfig();
    let kubeconfig = kubeconfig.to_str().unwrap();
    let cause = "Kueue has not admitted its Workload w (queue team-a): no quota for cpu";
    let reported = kubestep(&["explain", "web", "--kubeconfig", kubeconfig]);
    assert!(reported.contains(cause), "{reported}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c.json");
    let file = file.to_str().unwrap();
    kubestep(&["capture", "--kubeconfig", kubeconfig, "-o", file]);
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.contains("NodePool") && !text.contains("SECRET"), "{text}");
    let reported = kubestep(&["explain", "web", "-f", file]);
    assert!(reported.contains(cause), "{reported}");
    let redacted = kubestep(&["capture", "--kubeconfig", kubeconfig, "--redact", "-o", "-"]);
    assert!(!redacted.contains("team-a"), "{redacted}");
}

#[test]
fn they_are_read_while_a_cluster_is_followed() {
    let server = server();
    let followed = auxiliary::follow(server.target());
    let end = Instant::now() + Duration::from_secs(60);
    let read = loop {
        if let Some(read) = followed.take() {
            break read;
        }
        assert!(Instant::now() < end, "nothing was read");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(read.provisioning.node_pools[0].metadata.name, "general");
    assert_eq!(read.controllers.workloads[0].spec.queue_name, "team-a");
    assert!(followed.take().is_none());
}
