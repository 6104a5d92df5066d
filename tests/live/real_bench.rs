//! `kubestep bench --against`, with a real API server and the real kube-scheduler: see
//! [`crate::control_plane`].

use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::control_plane::{ControlPlane, assets, free_port};
use crate::running::Running;

const SUITE: &str = "\
- name: Basic
  workloadTemplate:
  - {opcode: createNodes, count: 5}
  - {opcode: createPods, count: 3, namespace: first}
  - {opcode: createPods, countParam: $pods, collectMetrics: true}
  - {opcode: deletePods, namespace: first}
  workloads:
  - name: small
    params: {pods: 30}
";

fn kube_scheduler(plane: &ControlPlane) -> Running {
    let mut command = Command::new(assets().join("kube-scheduler"));
    command.arg("--kubeconfig").arg(plane.kubeconfig("admin"));
    command.args(["--leader-elect=false", "--bind-address=127.0.0.1"]);
    command.arg(format!("--secure-port={}", free_port()));
    Running::of(command)
}

fn bench(plane: &ControlPlane, folder: &TempDir, more: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_kubestep"))
        .arg("bench")
        .arg(folder.path())
        .args(["--label", "", "-o", "json", "--against"])
        .arg(plane.kubeconfig("admin"))
        .args(more)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
#[cfg_attr(not(with_api_server), ignore = "needs KUBEBUILDER_ASSETS")]
fn a_workload_runs_against_kube_scheduler_and_is_removed() {
    let plane = ControlPlane::start();
    let _scheduler = kube_scheduler(&plane);
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("performance-config.yaml"), SUITE).unwrap();
    // Nothing is created without confirmation.
    let (code, _, errors) = bench(&plane, &folder, &[]);
    assert_eq!(code, Some(2), "{errors}");
    assert!(errors.contains("--yes-create-objects"), "{errors}");
    assert_eq!(plane.kubectl("get nodes -o name", ""), "");
    let (code, output, errors) = bench(&plane, &folder, &["--yes-create-objects"]);
    assert_eq!(code, Some(0), "{output}{errors}");
    let report: Value = serde_json::from_str(&output).unwrap();
    let measured = &report["workloads"][0]["runs"][0]["measurements"][0];
    assert_eq!(measured["scheduled"], 30, "{report}");
    assert_eq!(measured["busySeconds"], Value::Null);
    for kind in ["nodes", "pods -A"] {
        assert_eq!(plane.kubectl(&format!("get {kind} -o name"), ""), "", "{kind}");
    }
}
