//! Who schedules a cluster: its leases, and what explain says if nobody renews them.

use std::process::Command;

use kubestep_api::Kind;
use serde_json::{Value, json};

use crate::standin::StandIn;

fn server(renewed: &str) -> std::sync::Arc<StandIn> {
    let server = StandIn::start();
    let capacity = json!({"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}});
    server.put(Kind::Node, "a", json!({"status": capacity}));
    server.put(Kind::Pod, "web", json!({"spec": {"schedulerName": "default-scheduler"}}));
    server.put_lease(
        "kube-scheduler",
        json!({"holderIdentity": "cp-1_1", "leaseDurationSeconds": 15,
            "acquireTime": "2020-01-01T00:00:00.000000Z", "renewTime": renewed}),
    );
    server
}

fn kubestep(server: &StandIn, words: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_kubestep"))
        .args(words.split(' '))
        .arg("--kubeconfig")
        .arg(server.kubeconfig())
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_lease_that_nobody_renews_is_the_first_line_of_explain() {
    // The stand-in says that it is midnight.
    let server = server("2025-12-31T23:51:00.000000Z");
    let told = kubestep(&server, "explain web");
    let first = told.lines().next().unwrap();
    assert!(
        first.starts_with(
            "no scheduler runs: cp-1_1 holds the lease kube-system/kube-scheduler and renewed it 9m ago"
        ),
        "{told}"
    );
    let json: Value = serde_json::from_str(&kubestep(&server, "explain web -o json")).unwrap();
    assert_eq!(json["problems"][0]["kind"], "noScheduler");
    // A capture keeps the lease.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c.json");
    kubestep(&server, &format!("capture -o {}", file.display()));
    let told = Command::new(env!("CARGO_BIN_EXE_kubestep"))
        .args(["explain", "web", "-f"])
        .arg(&file)
        .output()
        .unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(told.starts_with("no scheduler runs: cp-1_1 holds the lease"), "{told}");
    let redacted = kubestep(&server, "capture --redact -o -");
    assert!(!redacted.contains("cp-1_1"));
}

#[test]
fn a_lease_that_is_renewed_is_no_cause() {
    let server = server("2999-01-01T00:00:00.000000Z");
    let told = kubestep(&server, "explain web");
    assert!(told.starts_with("default/web "), "{told}");
}
