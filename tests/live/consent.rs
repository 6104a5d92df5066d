//! The confirmation before anything is written, with and without a terminal.

use kubestep_api::Kind;
use serde_json::json;

use crate::running::{Running, until};
use crate::standin::StandIn;
use crate::terminal::{Terminal, kubestep};

/// A cluster with a pod that fits.
pub fn cluster() -> std::sync::Arc<StandIn> {
    let server = StandIn::start();
    let room = json!({"cpu": "4", "memory": "8Gi", "pods": "20"});
    server.put(Kind::Node, "node-a", json!({"status": {"allocatable": room}}));
    pod(&server, "web");
    server
}

/// Creates a pod without a node, which requests 1 CPU.
pub fn pod(server: &StandIn, name: &str) {
    let containers = json!([{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]);
    let spec = json!({"schedulerName": "default-scheduler", "containers": containers});
    server.put(Kind::Pod, name, json!({"metadata": {"uid": format!("uid-{name}")}, "spec": spec}));
}

/// Method and path of the requests that are not reads.
pub fn writes(server: &StandIn) -> Vec<String> {
    let mut requests = server.requests();
    requests.retain(|line| !line.starts_with("GET "));
    requests
}

/// `kubestep schedule` on a terminal.
pub fn schedule(server: &StandIn, arguments: &[&str]) -> Terminal {
    let kubeconfig = server.kubeconfig();
    let mut line = vec!["schedule", "--kubeconfig", kubeconfig.to_str().unwrap()];
    line.extend(arguments);
    Terminal::start(kubestep(&line), 120, 40)
}

#[test]
fn the_name_of_the_context_allows_it() {
    let server = cluster();
    let mut terminal = schedule(&server, &[]);
    terminal.wait_for("kubestep will write to the cluster lab (http://127.0.0.1:");
    terminal.wait_for("for pods whose schedulerName is default-scheduler:");
    terminal.wait_for("It schedules while it holds the lease kube-system/kube-scheduler.");
    terminal.wait_for("Write to lab? Type its name to allow it:");
    assert!(writes(&server).is_empty());
    terminal.send("lab\r");
    until("the pod is bound", || {
        server.look(|state| state.log.iter().any(|(.., pod)| pod["spec"]["nodeName"] == "node-a"))
    });
    terminal.signal("TERM");
    assert_eq!(terminal.exit_code(), 0);
}

#[test]
fn anything_else_does_not() {
    for answer in ["no", "", "y", "yes", "other"] {
        let server = cluster();
        let mut terminal = schedule(&server, &[]);
        terminal.wait_for("Write to lab?");
        terminal.send(&format!("{answer}\r"));
        terminal.wait_for("Nothing was written.");
        assert_eq!(terminal.exit_code(), 0, "{answer:?}");
        assert!(writes(&server).is_empty(), "{answer:?}: {:?}", writes(&server));
    }
}

#[test]
fn the_end_of_the_input_is_no_word() {
    let server = cluster();
    let mut terminal = schedule(&server, &["--tui"]);
    terminal.wait_for("Write to lab?");
    terminal.send("\x04");
    terminal.wait_for("Nothing was written.");
    assert_eq!(terminal.exit_code(), 0);
    assert!(writes(&server).is_empty());
}

#[test]
fn where_nobody_can_be_asked_nothing_is_written() {
    let server = cluster();
    let mut refused = Running::start_on(&server.kubeconfig(), "");
    assert_eq!(refused.end(), Some(2));
    let reported = refused.output();
    assert!(
        reported.contains("there is no terminal to ask on whether to write to lab"),
        "{reported}"
    );
    assert!(writes(&server).is_empty());
}

#[test]
fn a_dry_run_needs_no_word_and_takes_no_lease() {
    let server = cluster();
    let mut terminal = schedule(&server, &["--dry-run", "--v", "2"]);
    terminal.wait_for("kubestep will send dry-run writes (dryRun=All, nothing changes)");
    terminal.wait_for("bound default/web to node-a");
    terminal.signal("INT");
    assert_eq!(terminal.exit_code(), 0);
    assert!(!terminal.text().contains("Write to lab?"));
    let writes = writes(&server);
    assert!(writes.iter().any(|line| line.contains("/binding")), "{writes:?}");
    assert!(writes.iter().all(|line| !line.contains("/leases")), "{writes:?}");
}
