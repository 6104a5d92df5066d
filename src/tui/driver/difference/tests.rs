//! Stories of comparing branches: at once, beside the keys, and stopped.

use std::fmt::Write as _;
use std::time::Duration;

use crate::tui::testing::{Live, session};

const TITLE: &str = "What differs from original in what-if-1";

#[test]
fn a_comparison_is_shown_again_until_something_is_done() {
    let mut live = Live::wide("fragmented").keys("c:what-if cordon node node-1<Enter>cD");
    assert!(live.text().contains(TITLE), "{}", live.text());
    let first = live.text();
    let mut live = live.keys("<Esc>D");
    assert_eq!(live.text(), first);
    assert!(!live.interface.driver.is_searching());
    let mut live = live.keys("<Esc>u:what-if delete pod report<Enter>cD");
    assert!(live.text().contains("on one side only"), "{}", live.text());
}

/// A branch that is far ahead of the original.
fn far_ahead() -> Live {
    let mut yaml = String::from(
        "{apiVersion: v1, kind: Node, metadata: {name: a}, status: {allocatable: {pods: '9999'}}}\n",
    );
    for pod in 0..1_500 {
        write!(
            yaml,
            "---\n{{apiVersion: v1, kind: Pod, metadata: {{name: pod-{pod}, namespace: default}}, \
             spec: {{containers: [{{name: c, image: i}}]}}}}\n"
        )
        .unwrap();
    }
    let keys = ":what-if label node a x=y<Enter>c";
    let mut live = Live::new(session(&yaml), (120, 30)).keys(keys);
    live.interface.driver.freshness.patience = Duration::ZERO;
    live
}

#[test]
fn the_other_branch_is_run_beside_the_keys() {
    let mut live = far_ahead().keys_at_once("D");
    assert!(live.interface.driver.is_searching(), "{}", live.text());
    let mut live = live.keys_at_once("5");
    assert!(live.text().contains("Nodes: requested"), "{}", live.text());
    let mut live = live.keys("6");
    assert!(live.text().contains(TITLE), "{}", live.text());
    assert!(live.text().contains("nothing differs: 1500 pods are the same"), "{}", live.text());
}

#[test]
fn a_comparison_can_be_stopped() {
    let live = far_ahead().keys_at_once("D");
    assert!(live.interface.driver.is_searching());
    let mut live = live.keys("<Esc>");
    assert!(!live.interface.driver.is_searching() && !live.interface.app.is_searching());
    assert!(live.text().contains("nothing was compared"), "{}", live.text());
    let mut live = live.keys("D");
    assert!(live.text().contains(TITLE), "{}", live.text());
}

#[test]
fn it_does_not_open_over_what_is_read() {
    let mut live = far_ahead().keys_at_once("D").keys("?");
    assert!(live.text().contains("Keys and commands"), "{}", live.text());
    assert!(live.text().contains("the comparison is over; D shows it"), "{}", live.text());
    let mut live = live.keys("<Esc>D");
    assert!(live.text().contains(TITLE), "{}", live.text());
}
