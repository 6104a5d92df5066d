//! The screens of a followed cluster, in a pseudo-terminal, with the stand-in: the mode in the
//! first line, live changes, freezing, and the comparison of decisions.

use std::sync::Arc;

use kubestep_api::Kind;
use serde_json::json;

use crate::misbehaving::Mode;
use crate::standin::StandIn;
use crate::terminal::{Terminal, kubestep};

fn node(server: &StandIn, name: &str) {
    let allocatable = json!({"cpu": "4", "memory": "8Gi", "pods": "110"});
    server.put(Kind::Node, name, json!({"status": {"allocatable": allocatable}}));
}

fn pod(server: &StandIn, name: &str, node: Option<&str>) {
    let mut spec = json!({
        "schedulerName": "default-scheduler",
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
    });
    if let Some(node) = node {
        spec["nodeName"] = node.into();
    }
    server.put(Kind::Pod, name, json!({"metadata": {"uid": name}, "spec": spec}));
}

fn follow(server: &Arc<StandIn>) -> Terminal {
    let kubeconfig = server.kubeconfig();
    let terminal =
        Terminal::start(kubestep(&["--kubeconfig", kubeconfig.to_str().unwrap()]), 120, 30);
    terminal.wait_for("LIVE (shadow)");
    terminal
}

#[test]
fn a_live_cluster_is_followed_frozen_and_left() {
    let server = StandIn::start();
    node(&server, "node-a");
    let mut terminal = follow(&server);
    terminal.send("5");
    terminal.wait_for("node-a");
    node(&server, "node-b");
    terminal.wait_for("node-b");
    terminal.send("Z");
    terminal.wait_for("LIVE (frozen)");
    node(&server, "node-c");
    terminal.send("Z");
    terminal.wait_for("LIVE (shadow)");
    terminal.wait_for("node-c");
    // The clock follows the cluster, so playing is rejected with a message that is kept.
    terminal.send(" ");
    terminal.wait_for("time passes by itself on a live cluster");
    terminal.send("M");
    terminal.wait_for("Messages ─");
    terminal.wait_for("time passes by itself on a live cluster");
    terminal.resize(80, 24);
    terminal.wait("the mode at the right of 80 columns", |screen| {
        screen.rows(0, 80).next().is_some_and(|row| row.trim_end().ends_with("LIVE (shadow)"))
    });
    terminal.send("q");
    assert_eq!(terminal.exit_code(), 0);
    terminal.assert_restored();
}

#[test]
fn live_is_shown_only_while_the_cluster_is_followed() {
    let server = StandIn::start();
    node(&server, "node-a");
    server.misbehave(|faults| faults.watches = Some(Mode::Status(410, "")));
    let kubeconfig = server.kubeconfig();
    let mut terminal =
        Terminal::start(kubestep(&["--kubeconfig", kubeconfig.to_str().unwrap()]), 120, 30);
    terminal.wait_for("RECONNECTING (");
    terminal.wait_for("kinds: 410, retry in ");
    assert!(!terminal.text().contains("LIVE"));
    terminal.send("Z");
    terminal.wait_for("FROZEN (");
    server.misbehave(|faults| faults.watches = None);
    terminal.wait_for("LIVE (frozen)");
    terminal.send("Z");
    terminal.wait_for("LIVE (shadow)");
    terminal.send("q");
    assert_eq!(terminal.exit_code(), 0);
}

#[test]
fn a_branch_of_a_followed_cluster_goes_its_own_way_and_the_original_misses_nothing() {
    let server = StandIn::start();
    node(&server, "node-a");
    let mut terminal = follow(&server);
    terminal.send("5:fork\r");
    terminal.wait_for("[what-if-1]");
    node(&server, "node-b");
    // Now the clock is advanced manually.
    terminal.send("+");
    terminal.wait_for("no timers pending");
    assert!(!terminal.text().contains("node-b"));
    terminal.send(":branch original\r");
    terminal.wait_for("LIVE (shadow)");
    terminal.wait_for("node-b");
    terminal.send("q");
    assert_eq!(terminal.exit_code(), 0);
}

#[test]
fn a_signal_ends_it_and_names_of_the_cluster_are_only_text() {
    let server = StandIn::start();
    let labels = json!({"metadata": {"labels": {"a": "\u{1b}]0;owned\u{7}"}}});
    server.put(Kind::Node, "node-a", labels);
    let mut terminal = follow(&server);
    terminal.send("5d");
    terminal.wait_for("]0;owned");
    assert!(!String::from_utf8_lossy(&terminal.bytes()).contains("\u{1b}]0;"));
    terminal.signal("TERM");
    assert_eq!(terminal.exit_code(), 143);
    terminal.assert_restored();
}

#[test]
fn the_clusters_decisions_stand_beside_ours() {
    let server = StandIn::start();
    node(&server, "node-a");
    let mut terminal = follow(&server);
    terminal.send("L");
    terminal.wait_for("the cluster's scheduler has not decided anything yet");
    terminal.send("\x1b");
    pod(&server, "web", None);
    terminal.send("1");
    terminal.wait_for("default/web");
    pod(&server, "web", Some("node-a"));
    terminal.send("6");
    terminal.wait_for("on node-a");
    terminal.send("L");
    terminal.wait_for("Decisions of the cluster's scheduler and ours");
    terminal.wait_for("default/web");
    terminal.send("q");
    terminal.send("gc");
    terminal.wait_for("Configuration:");
    terminal.send("q");
    assert_eq!(terminal.exit_code(), 0);
    terminal.assert_restored();
}
