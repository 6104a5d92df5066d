//! Stories of comparing branches: at once, in the background, and stopped.

use std::fmt::Write as _;
use std::time::Duration;

use crate::tui::testing::{LiveInterface, session};

const TITLE: &str = "What differs from original in what-if-1";

#[test]
fn a_comparison_is_shown_again_until_something_is_done() {
    let mut live = LiveInterface::wide("fragmented").keys("c:what-if cordon node node-1<Enter>cD");
    assert!(live.text().contains(TITLE), "{}", live.text());
    let first = live.text();
    let mut live = live.keys("<Esc>D");
    assert_eq!(live.text(), first);
    assert!(!live.interface.driver.is_searching());
    let mut live = live.keys("<Esc>u:what-if delete pod report<Enter>cD");
    assert!(live.text().contains("on one side only"), "{}", live.text());
}

/// A branch that is far ahead of the original.
fn far_ahead() -> LiveInterface {
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
    let mut live = LiveInterface::new(session(&yaml), (120, 30)).keys(keys);
    live.interface.driver.freshness.patience = Duration::ZERO;
    live
}

#[test]
fn the_other_branch_is_run_in_the_background() {
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
    assert!(live.text().contains("stopped; there is no answer"), "{}", live.text());
    let mut live = live.keys("D");
    assert!(live.text().contains(TITLE), "{}", live.text());
}

#[test]
fn it_does_not_open_over_what_is_read() {
    let mut live = far_ahead().keys_at_once("D").keys("?");
    assert!(live.text().contains("Keys and commands"), "{}", live.text());
    assert!(
        live.text().contains("the answer is ready; :differences original shows it"),
        "{}",
        live.text()
    );
    let mut live = live.keys("<Esc>D");
    assert!(live.text().contains(TITLE), "{}", live.text());
}

/// The story at its beginning, wide enough for whole sentences.
fn upgrade() -> LiveInterface {
    let story = kubestep_source::fixtures::find("upgrade").unwrap();
    LiveInterface::new(session(story.cluster), (120, 90))
}

#[test]
fn branches_of_two_versions_name_the_change_behind_each_difference() {
    let mut live = upgrade().resized(120, 44).keys(":what-if kube-version 1.33<Enter>c");
    assert!(live.lines()[1].contains("1.33"), "{}", live.lines()[1]);
    let mut live = live.keys("D");
    crate::tui::testing::golden(&live.draw(), "versions-differences");
    let text = live.text();
    assert!(text.contains("a: original (kube-scheduler 1.36), "), "{text}");
    assert!(text.contains("Because of BalancedAllocationGain (NodeResourcesBalanced"), "{text}");
    // The other way round, the same change is the cause.
    let mut live = live.keys("<Esc>:branch original<Enter>c:differences what-if-1<Enter>");
    let text = live.text();
    assert!(text.contains("kube-scheduler 1.33 → 1.36: "), "{text}");
    assert!(text.contains("Because of BalancedAllocationGain (NodeResourcesBalanced"), "{text}");
}

#[test]
fn what_other_edits_change_is_not_because_of_the_version() {
    let keys = ":what-if kube-version 1.33<Enter>:what-if delete node memory-0<Enter>cD";
    let mut live = upgrade().keys(keys);
    let text = live.text();
    assert!(text.contains("Not because of the version: "), "{text}");
}

#[test]
fn two_branches_of_one_version_are_compared_without_causes() {
    let mut live = upgrade().keys(":what-if delete node memory-0<Enter>cD");
    let text = live.text();
    assert!(text.contains("What differs from original") && !text.contains("Because of"), "{text}");
}

#[test]
fn what_changed_between_versions_is_listed() {
    let mut live = upgrade().resized(120, 44).keys(":versions 1.35<Enter>");
    crate::tui::testing::golden(&live.draw(), "versions");
    let mut live = live.keys("<Esc>:versions<Enter>");
    assert!(live.text().contains("kube-scheduler 1.35 → 1.36"), "{}", live.text());
    let mut live = live.keys("<Esc>:what-if kube-version 1.34<Enter>:versions<Enter>");
    assert!(live.text().contains("kube-scheduler 1.36 → 1.34"), "{}", live.text());
    let mut live = live.keys("<Esc>:versions 1.31 1.32<Enter>");
    assert!(live.text().contains("kube-scheduler 1.31 → 1.32"), "{}", live.text());
    for (typed, said) in [
        (":versions latest", "is not a version"),
        (":versions 1.34", "already decides as 1.34"),
        (":what-if kube-version 1.34", "kube-scheduler is 1.34 already"),
    ] {
        let mut other = live.keys(&format!("<Esc>{typed}<Enter>"));
        assert!(other.text().contains(said), "{typed}: {}", other.text());
        live = other;
    }
}
