//! Long edits as a person sees them: progress, Esc, and keys meanwhile.

use std::fmt::Write as _;
use std::time::Duration;

use crate::tui::testing::{LiveInterface, parse_keys, session};

const NODES: usize = 400;
const LOSE: &str = ":what-if lose zone=a<Enter>";

/// Nodes in two zones, each with four pods of a ReplicaSet; edits keep no key waiting.
fn cluster() -> LiveInterface {
    cluster_of(NODES, 4)
}

fn cluster_of(nodes: usize, pods: usize) -> LiveInterface {
    let mut yaml = String::new();
    for node in 0..nodes {
        let zone = if node % 2 == 0 { "a" } else { "b" };
        write!(
            yaml,
            "---\n{{apiVersion: v1, kind: Node, metadata: {{name: n{node}, labels: \
             {{topology.kubernetes.io/zone: {zone}}}}}, status: {{allocatable: {{pods: '9'}}}}}}\n"
        )
        .unwrap();
        for pod in 0..pods {
            write!(
                yaml,
                "---\n{{apiVersion: v1, kind: Pod, metadata: {{name: web-{node}-{pod}, namespace: \
                 default, ownerReferences: [{{apiVersion: apps/v1, kind: ReplicaSet, name: web, \
                 uid: web, controller: true}}]}}, spec: {{nodeName: n{node}, containers: [{{name: \
                 c, image: i}}]}}}}\n"
            )
            .unwrap();
        }
    }
    let mut live = LiveInterface::new(session(&yaml), (140, 30));
    live.interface.driver.freshness.patience = Duration::ZERO;
    live
}

fn status(live: &mut LiveInterface) -> String {
    live.lines()[28].trim().to_owned()
}

#[test]
fn a_long_edit_shows_its_progress_and_is_applied_once_it_is_done() {
    let mut live = cluster().keys_at_once(LOSE);
    assert!(live.interface.driver.is_searching(), "{}", live.text());
    let mut progress = Vec::new();
    while live.interface.driver.is_searching() {
        live.interface.work();
        let line = status(&mut live);
        progress.extend(line.contains("lose zone=a: ").then_some(line));
    }
    assert!(progress.iter().any(|line| line.contains(" changes; Esc stops")), "{progress:?}");
    let expected = "lose zone=a; 800 pods deleted with 200 nodes; controllers recreated \
                    all of them; in branch what-if-1";
    assert_eq!(status(&mut live), expected);
    assert!(live.lines()[1].contains("[what-if-1]"), "{}", live.text());
    let mut live = live.keys("c");
    assert_eq!(live.interface.model().cycles.len(), 800, "{}", live.text());
    let mut live = live.keys("u");
    assert!(status(&mut live).starts_with("undone: lose zone=a"), "{}", live.text());
}

#[test]
fn esc_stops_a_long_edit_and_nothing_is_applied() {
    let live = cluster().keys_at_once(LOSE);
    let before = live.interface.driver.steps_done();
    let mut live = live.keys("<Esc>");
    assert!(!live.interface.driver.is_searching() && !live.interface.app.is_searching());
    assert_eq!(status(&mut live), "stopped: lose zone=a was not applied");
    assert!(!live.lines()[1].contains("[what-if"), "{}", live.text());
    assert_eq!(live.interface.driver.steps_done(), before);
    let mut live = live.keys(LOSE);
    assert!(status(&mut live).contains("in branch what-if-1"), "{}", live.text());
}

#[test]
fn what_is_typed_meanwhile_is_done_afterwards() {
    let mut live = cluster().keys_at_once(LOSE).keys_at_once("5");
    assert!(live.interface.driver.is_searching() && live.text().contains("Nodes: requested"));
    let mut live = live.keys_at_once("c");
    assert!(status(&mut live).contains("done once lose zone=a is applied"), "{}", live.text());
    // A key that is typed later waits for all of it.
    let mut live = live.keys("1");
    assert_eq!(live.interface.model().cycles.len(), 800, "{}", live.text());
    assert!(live.lines()[1].contains("[what-if-1]"), "{}", live.text());
    let typed = format!("{LOSE}c:branch original<Enter>");
    let mut live = cluster().keys_at_once(&typed).keys("1");
    assert!(!live.lines()[1].contains("[what-if"), "{}", live.text());
    let mut live = live.keys(":branch what-if-1<Enter>");
    assert!(live.lines()[1].contains("[what-if-1]"), "{}", live.text());
}

#[test]
fn esc_also_drops_what_was_typed_meanwhile() {
    let mut live = cluster().keys_at_once(LOSE).keys_at_once("c").keys("<Esc>");
    assert_eq!(status(&mut live), "stopped: lose zone=a was not applied");
    assert!(!live.interface.app.is_running() && live.interface.model().cycles.is_empty());
}

#[test]
fn of_several_edits_all_are_applied_or_none() {
    let several = "cordon node n1, and lose zone=a, and cordon node nowhere";
    let mut live = cluster().keys(&format!(":what-if {several}<Enter>"));
    assert!(status(&mut live).contains("there is no Node nowhere"), "{}", live.text());
    assert!(!live.lines()[1].contains("[what-if"), "{}", live.text());
    let both = "cordon node n1, and lose zone=a";
    let mut live = live.keys(&format!(":what-if {both}<Enter>"));
    assert!(
        status(&mut live).starts_with("cordon node n1; in branch what-if-1; lose zone=a; 800 pods"),
        "{}",
        live.text()
    );
}

/// As large as a zone of a large cluster: the edit and the run that follows show how far they are,
/// Esc stops each, and both come to their end.
#[test]
fn a_zone_of_5000_nodes_is_lost_with_progress_and_esc() {
    let mut live = cluster_of(5_000, 1).keys_at_once(LOSE).keys("<Esc>");
    assert_eq!(status(&mut live), "stopped: lose zone=a was not applied");
    let mut live = live.keys_at_once(LOSE);
    let mut progress = 0;
    while live.interface.driver.is_searching() {
        live.interface.work();
        progress += usize::from(status(&mut live).contains(" changes; Esc stops"));
    }
    assert!(progress > 0);
    assert!(status(&mut live).contains("2500 pods deleted with 2500 nodes"), "{}", live.text());
    live.interface.key(parse_keys("c")[0]);
    (0..3).for_each(|_| live.interface.work());
    assert!(live.text().contains(" ran; Esc stops"), "{}", live.text());
    live.interface.key(parse_keys("<Esc>")[0]);
    assert!(!live.interface.app.is_running(), "{}", live.text());
    let some = live.interface.model().cycles.len();
    assert!(some > 0 && some < 2_500, "{some}");
    let live = live.keys("c");
    assert_eq!(live.interface.model().cycles.len(), 2_500);
}
