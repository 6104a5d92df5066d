//! Who schedules a cluster: its leases, and what explain says if nobody renews them.

use std::process::Command;

use kubestep_api::Kind;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::control_plane::{ControlPlane, assets, free_port};
use crate::objects::{create, node, pod};
use crate::running::Running;
use crate::standin::StandIn;
use crate::terminal::{Terminal, kubestep as terminal_of};

/// How often leases are read from a cluster that is followed, with some time for the answer.
const REFRESH: Duration = Duration::from_secs(12);

fn put_lease(server: &StandIn, renewed: &str) {
    server.put_lease(
        "kube-scheduler",
        json!({"holderIdentity": "cp-1_1", "leaseDurationSeconds": 15,
            "acquireTime": "2020-01-01T00:00:00.000000Z", "renewTime": renewed}),
    );
}

fn server(renewed: &str) -> std::sync::Arc<StandIn> {
    let server = StandIn::start();
    let capacity = json!({"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}});
    server.put(Kind::Node, "a", json!({"status": capacity}));
    server.put(Kind::Pod, "web", json!({"spec": {"schedulerName": "default-scheduler"}}));
    put_lease(&server, renewed);
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
    let reported = kubestep(&server, "explain web");
    let first = reported.lines().next().unwrap();
    assert!(
        first.starts_with(
            "no scheduler runs: cp-1_1 holds the lease kube-system/kube-scheduler and renewed it 9m ago"
        ),
        "{reported}"
    );
    let json: Value = serde_json::from_str(&kubestep(&server, "explain web -o json")).unwrap();
    assert_eq!(json["problems"][0]["kind"], "noScheduler");
    // A capture keeps the lease.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c.json");
    kubestep(&server, &format!("capture -o {}", file.display()));
    let reported = Command::new(env!("CARGO_BIN_EXE_kubestep"))
        .args(["explain", "web", "-f"])
        .arg(&file)
        .output()
        .unwrap();
    let reported = String::from_utf8(reported.stdout).unwrap();
    assert!(reported.starts_with("no scheduler runs: cp-1_1 holds the lease"), "{reported}");
    let redacted = kubestep(&server, "capture --redact -o -");
    assert!(!redacted.contains("cp-1_1"));
}

#[test]
fn a_lease_that_is_renewed_is_no_cause() {
    let server = server("2999-01-01T00:00:00.000000Z");
    let reported = kubestep(&server, "explain web");
    assert!(reported.starts_with("default/web "), "{reported}");
}

#[test]
fn a_lease_that_expires_is_the_first_line_of_an_answer_within_one_refresh() {
    let server = server("2999-01-01T00:00:00.000000Z");
    let kubeconfig = server.kubeconfig();
    let line = ["--kubeconfig", kubeconfig.to_str().unwrap()];
    let mut terminal = Terminal::start(terminal_of(&line), 120, 30);
    terminal.wait_for("LIVE (shadow)");
    terminal.send("6");
    terminal.wait_for("web");
    assert!(!terminal.text().contains("no scheduler runs"));
    put_lease(&server, "2025-12-31T23:51:00.000000Z");
    let expired = Instant::now();
    terminal.wait_for("no scheduler");
    assert!(expired.elapsed() < REFRESH, "after {:?}", expired.elapsed());
    terminal.send("W");
    terminal.wait("the first line of the answer", |screen| {
        let rows: Vec<String> = screen.rows(0, 120).collect();
        let title = rows.iter().position(|row| row.contains("Why default/web?"));
        title.is_some_and(|at| rows[at + 1].contains("no scheduler runs: cp-1_1 holds the lease"))
    });
    terminal.send("q");
    terminal.send("q");
    assert_eq!(terminal.exit_code(), 0);
}

#[test]
#[cfg_attr(not(with_api_server), ignore = "needs KUBEBUILDER_ASSETS")]
fn real_a_lease_that_nobody_renews_is_the_first_line_of_explain() {
    let plane = ControlPlane::start();
    create(&plane, vec![node("node-a", "4")]);
    let program = assets().join("kube-scheduler");
    assert!(program.is_file(), "KUBEBUILDER_ASSETS names a folder without kube-scheduler");
    let mut command = Command::new(program);
    command.arg("--kubeconfig").arg(plane.kubeconfig("admin"));
    command.args(["--leader-elect-lease-duration=5s", "--leader-elect-renew-deadline=3s"]);
    command.args(["--leader-elect-retry-period=1s", "--bind-address=127.0.0.1"]);
    command.arg(format!("--secure-port={}", free_port()));
    let scheduler = Running::of(command);
    create(&plane, vec![pod("first", "1")]);
    let until = Instant::now() + Duration::from_secs(60);
    while crate::objects::pending(&plane) > 0 {
        assert!(Instant::now() < until, "{}", scheduler.output());
        std::thread::sleep(Duration::from_millis(200));
    }
    let explain = || {
        let output = Command::new(env!("CARGO_BIN_EXE_kubestep"))
            .args(["explain", "second"])
            .env("KUBECONFIG", plane.kubeconfig("admin"))
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    // Killed, it does not release its lease.
    drop(scheduler);
    create(&plane, vec![pod("second", "1")]);
    std::thread::sleep(Duration::from_secs(6));
    let reported = explain();
    assert!(reported.starts_with("no scheduler runs: "), "{reported}");
    assert!(
        reported.lines().next().unwrap().contains("the lease kube-system/kube-scheduler"),
        "{reported}"
    );
}
