//! The debugger on a scheduler that writes, in a pseudo-terminal, against the stand-in: what the
//! screen shows, and what is written when.

use std::collections::BTreeSet;

use kubestep_api::Kind;
use serde_json::json;

use crate::consent::{cluster, pod, schedule, writes};
use crate::control_plane::free_port;
use crate::running::{Running, get, until};
use crate::standin::StandIn;
use crate::terminal::Terminal;

/// The bindings of pods, in order, with repetitions.
fn bindings(server: &StandIn) -> Vec<String> {
    let posted = writes(server).into_iter().filter(|line| line.contains("/binding"));
    posted.map(|line| line.split('/').rev().nth(1).unwrap_or_default().to_owned()).collect()
}

fn attend(server: &StandIn, more: &[&str]) -> Terminal {
    let terminal = schedule(server, &[&["--tui", "--yes-write"], more].concat());
    terminal.wait_for("LIVE SCHEDULING lab: paused");
    terminal.wait_for("s steps into a cycle, n runs one, Space schedules continuously");
    terminal
}

fn holder(server: &StandIn) -> String {
    let leases = "/apis/coordination.k8s.io/v1/leases";
    let lease = server.look(|state| state.objects.get(leases)?.values().next().cloned());
    let holder = lease.unwrap_or_default()["spec"]["holderIdentity"].as_str().map(str::to_owned);
    holder.unwrap_or_default()
}

#[test]
fn the_question_comes_before_the_screen() {
    let server = cluster();
    let mut terminal = schedule(&server, &["--tui"]);
    terminal.wait_for("Write to lab? Type its name to allow it:");
    assert!(!terminal.screen(|screen| screen.alternate_screen()));
    terminal.send("lab\r");
    terminal.wait_for("LIVE SCHEDULING lab: paused");
    assert!(bindings(&server).is_empty());
    terminal.send("q");
    assert_eq!(terminal.exit_code(), 0);
    terminal.assert_restored();
}

#[test]
fn steps_are_real_are_held_and_are_written_once() {
    let server = cluster();
    let mut terminal = attend(&server, &[]);
    assert!(!holder(&server).is_empty());
    terminal.send("s");
    terminal.wait_for("cycle 1 of default/web is held: bind default/web to node-a");
    pod(&server, "late");
    terminal.wait_for("updates queued");
    assert!(bindings(&server).is_empty());
    terminal.send("}");
    terminal.wait_for("sent: bind default/web to node-a");
    until("it is bound", || bindings(&server) == ["web"]);
    terminal.wait_for("LIVE SCHEDULING lab: paused");
    terminal.send("2");
    terminal.wait_for("default/late");
    // Back through the past and forward again: nothing is written again.
    terminal.send("{");
    terminal.wait_for("HELD: ");
    // To the beginning, then into the first cycle again.
    terminal.send("{{{{{{ssssssssc");
    terminal.wait_for("this is the newest state");
    assert_eq!(bindings(&server), ["web"]);
    terminal.send(" ");
    until("the late one is bound", || bindings(&server) == ["web", "late"]);
    terminal.wait("running", |screen| {
        screen.rows(0, 120).next().is_some_and(|row| row.trim_end().ends_with("SCHEDULING lab"))
    });
    terminal.send("q");
    assert_eq!(terminal.exit_code(), 0);
    terminal.assert_restored();
    assert_eq!(holder(&server), "", "the lease is given back");
}

#[test]
fn a_branch_writes_nothing_and_news_wait_for_the_original() {
    let server = cluster();
    let mut terminal = attend(&server, &[]);
    terminal.send(":fork\r");
    terminal.wait_for("WHAT-IF: nothing is written");
    terminal.send("c");
    terminal.wait_for("1 cycle ran");
    pod(&server, "late");
    terminal.send(":branch original\r");
    terminal.wait_for("LIVE SCHEDULING lab: paused");
    terminal.send("2");
    terminal.wait_for("default/late");
    assert!(bindings(&server).is_empty());
    terminal.send("c");
    until("both are bound", || bindings(&server).len() == 2);
    terminal.send("q");
    assert_eq!(terminal.exit_code(), 0);
}

#[test]
fn what_is_held_when_one_leaves_is_said_and_not_written() {
    let server = cluster();
    let mut terminal = attend(&server, &["--leader-elect=false"]);
    terminal.send("s");
    terminal.wait_for("is held: bind default/web to node-a");
    terminal.send("q");
    assert_eq!(terminal.exit_code(), 0);
    terminal.wait_for("held and not written: bind default/web to node-a");
    assert!(bindings(&server).is_empty());
}

#[test]
fn a_lost_connection_stops_it_and_it_comes_back() {
    let server = cluster();
    let mut terminal = attend(&server, &["--leader-elect=false"]);
    server.misbehave(|faults| faults.down = true);
    terminal.wait_for("CONNECTION LOST: writes stopped");
    terminal.send("n");
    terminal.wait_for("the connection to the cluster is lost: no cycles");
    server.misbehave(|faults| faults.down = false);
    terminal.wait_for("LIVE SCHEDULING lab: paused");
    terminal.send("n");
    until("it is bound", || bindings(&server) == ["web"]);
    terminal.send("q");
    assert_eq!(terminal.exit_code(), 0);
}

#[test]
fn a_lost_lease_stops_it_for_good_and_one_can_still_look() {
    let server = cluster();
    let times = ["--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline=3s"];
    let retry = ["--leader-elect-retry-period=1s"];
    let mut terminal = attend(&server, &[&times[..], &retry[..]].concat());
    terminal.send("s");
    terminal.wait_for("is held: bind");
    let stolen = json!({
        "spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 3600},
    });
    server.put_at("/apis/coordination.k8s.io/v1/leases", "kube-system/kube-scheduler", stolen);
    terminal.wait_for("LEASE LOST: writes stopped");
    terminal.wait_for("writing stopped");
    terminal.send("}2");
    server.put(Kind::Pod, "x", json!({"metadata": {"uid": "x"}, "spec": {"containers": []}}));
    terminal.wait_for("default/x");
    terminal.send("q");
    assert_eq!(terminal.exit_code(), 5);
    assert!(bindings(&server).is_empty());
}

#[test]
fn health_and_metrics_are_served_beside_it() {
    let server = cluster();
    let port = free_port();
    let mut terminal = attend(&server, &["--http-port", &port.to_string()]);
    terminal.send("n");
    until("it is bound", || bindings(&server) == ["web"]);
    terminal.wait_for("LIVE SCHEDULING lab: paused");
    let attempts = "scheduler_schedule_attempts_total{profile=\"default-scheduler\",\
                    result=\"scheduled\"} 1";
    until("it is counted", || get(port, "/metrics").contains(attempts));
    let event = "scheduler_event_handling_duration_seconds_count{event=\"UnschedulablePodAdd\"}";
    let plugin = "scheduler_plugin_execution_duration_seconds_count{extension_point=\"Filter\",\
                  plugin=\"NodeName\",status=\"Success\"} 1";
    let bind = "scheduler_framework_extension_point_duration_seconds_count{\
                extension_point=\"Bind\"";
    let batching = "scheduler_get_node_hint_duration_seconds_count{hinted=\"no_hint\",\
                    profile=\"default-scheduler\"} 1";
    pod(&server, "another");
    for series in [event, plugin, bind, batching] {
        until(series, || get(port, "/metrics").contains(series));
    }
    assert!(get(port, "/readyz").starts_with("HTTP/1.1 200"));
    terminal.send("q");
    assert_eq!(terminal.exit_code(), 0);
}

/// The scheduler's series that a port exposes, without their values.
fn series(port: u16) -> BTreeSet<String> {
    let text = get(port, "/metrics");
    let lines = text.lines().filter(|line| line.starts_with("scheduler_"));
    lines.filter_map(|line| line.rsplit_once(' ')).map(|(series, _)| series.to_owned()).collect()
}

#[test]
fn with_and_without_the_debugger_the_same_series_are_exposed() {
    let (watched, alone) = (cluster(), cluster());
    let ports = [free_port(), free_port()];
    let mut terminal = attend(&watched, &["--http-port", &ports[0].to_string()]);
    terminal.send("n");
    until("it is bound", || bindings(&watched) == ["web"]);
    let line = format!("--yes-write --secure-port 0 --http-port {}", ports[1]);
    let mut scheduler = Running::start_on(&alone.kubeconfig(), &line);
    until("it is bound", || bindings(&alone) == ["web"]);
    let different = || {
        let [with, without] = ports.map(series);
        with.symmetric_difference(&without).cloned().collect::<Vec<_>>()
    };
    let begun = std::time::Instant::now();
    while !different().is_empty() {
        let waited = begun.elapsed() < std::time::Duration::from_secs(20);
        assert!(waited, "on one side only: {:#?}", different());
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    assert_eq!(scheduler.stop(), Some(0), "{}", scheduler.output());
    terminal.send("q");
    assert_eq!(terminal.exit_code(), 0);
}
