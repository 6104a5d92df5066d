//! Stories of looking for a change and doing it.

use crate::tui::testing::LiveInterface;

#[test]
fn what_was_found_is_done_in_a_branch_and_compared() {
    let mut live = LiveInterface::wide("fragmented").keys("c2X");
    let text = live.text();
    assert!(text.contains("What would make default/report fit?"), "{text}");
    assert!(text.contains("1. resize pod default/report cpu=1.5"), "{text}");
    assert!(text.contains("Enter apply"), "{text}");
    let mut live = live.keys("<Enter>");
    assert!(live.lines()[1].contains("[what-if-1]"), "{}", live.text());
    assert!(live.text().contains("c runs on, D compares"), "{}", live.text());
    let mut live = live.keys("cD");
    assert!(live.text().contains("default/report"), "{}", live.text());
    assert!(live.text().contains("gets a node"), "{}", live.text());
}

#[test]
fn a_change_is_done_where_it_was_asked_for() {
    let live = LiveInterface::wide("fragmented").keys("c2X");
    // In between another view is shown; the answer is there on the way back.
    let mut live = live.keys("<Esc>C1G<Enter>c2X");
    assert!(!live.interface.driver.is_searching());
    assert!(live.text().contains("1. resize pod default/report"), "{}", live.text());
    let mut live = live.keys("<Esc>");
    assert!(live.interface.driver.session().is_at_newest());
    live = live.keys("X<Enter>");
    assert!(live.lines()[1].contains("[what-if-1]"), "{}", live.text());
}

#[test]
fn a_search_is_stopped_and_keys_are_answered_meanwhile() {
    let mut live = LiveInterface::wide("fragmented").keys_at_once("c2X");
    if live.interface.driver.is_searching() {
        live = live.keys_at_once("1");
        assert!(live.text().contains("recorded cycles"), "{}", live.text());
        live = live.keys_at_once("<Esc>");
        assert!(!live.interface.app.is_searching());
    }
    // What it has found until then is shown all the same.
    let mut live = live.keys("6");
    assert!(!live.interface.driver.is_searching());
    live = live.keys("<Esc>2X");
    assert!(live.text().contains("What would make default/report fit?"), "{}", live.text());
}

/// The search stops at six kinds of changes; the last line goes on.
#[test]
fn more_changes_are_searched_where_the_list_ends() {
    let mut live = LiveInterface::wide("spread-skew").keys("c2X");
    assert!(live.text().contains("not tried; Enter continues the search"), "{}", live.text());
    assert!(!live.text().contains("  7. "), "{}", live.text());
    live = live.keys("G<Enter>");
    assert!(live.text().contains("  7. "), "{}", live.text());
}

/// A change has several lines, and one step leads over them.
#[test]
fn one_step_leads_to_the_next_change() {
    for keys in ["X<Enter>", "Xjk<Enter>"] {
        let mut live = LiveInterface::wide("fragmented").keys("c2").keys(keys);
        assert!(live.text().contains("resize pod default/report cpu=1.5;"), "{}", live.text());
    }
    let mut live = LiveInterface::wide("fragmented").keys("c2Xjjk<Enter>");
    assert!(live.text().contains("delete pod default/filler-0;"), "{}", live.text());
}

#[test]
fn a_held_pod_needs_a_decision_and_no_change() {
    let mut live = LiveInterface::wide("held-at-permit").keys("n:fix release-1<Enter>");
    let text = live.text();
    assert!(text.contains("No change was searched for: ManualPermit holds it at Permit"), "{text}");
    assert!(text.contains("7 shows the waiting pods, to allow or reject them."), "{text}");
}

#[test]
fn nodes_that_could_be_created_are_tried_and_proposed() {
    let mut live = LiveInterface::wide("node-pools").keys("c2:new-nodes<Enter>");
    let text = live.text();
    assert!(text.contains("Which new node would take default/checkout?"), "{text}");
    assert!(text.contains("NodePool spare: m.large"), "{text}");
    let mut live = live.keys("<Esc>X");
    assert!(live.text().contains("add 1 node of nodepool/spare/"), "{}", live.text());
}
