//! The debugger on a recording: the same keys, on what a live cluster did.

use crate::tui::testing::LiveInterface;

/// Two nodes and four pods, of which the cluster's scheduler placed one as ours does, broke a tie
/// for another in its own way, and rejected a third that ours places.
const LAB: &str = include_str!("../../../tests/recordings/lab.jsonl");

fn lab() -> LiveInterface {
    LiveInterface::recording(LAB, (100, 30))
}

#[test]
fn a_recording_is_stepped_through_in_both_directions() {
    let mut live = lab();
    assert!(live.lines()[0].ends_with("REPLAY"), "{}", live.text());
    assert!(live.lines()[1].contains("before the first cycle"), "{}", live.lines()[1]);
    let mut seen = vec![live.lines()[1].clone()];
    for _ in 0..12 {
        live = live.keys("n");
        seen.push(live.lines()[1].clone());
    }
    seen.dedup();
    let all = seen.join("\n");
    for reported in ["Pod default/tied", "cycle 1 default/tied", "cycle 3 default/strange"] {
        assert!(all.contains(reported), "{reported}:\n{all}");
    }
    for expected in seen.iter().rev().skip(1) {
        live = live.keys("N");
        assert_eq!(live.lines()[1], *expected);
    }
    let mut live = live.keys("c");
    assert!(live.lines()[1].contains("+8s"), "{}", live.lines()[1]);
    let mut live = live.keys("@4s<Enter>6");
    assert!(live.lines()[1].contains("+4s"), "{}", live.lines()[1]);
    assert!(!live.text().contains("default/strange"), "it came later: {}", live.text());
}

#[test]
fn what_the_clusters_scheduler_decided_stands_beside_ours() {
    let mut live = lab().keys("cL");
    live.golden("recording-decisions-100x30");
    let text = live.text();
    for reported in ["default/tied: tie", "default/clear: same", "default/strange: different"] {
        assert!(text.contains(reported), "{reported}:\n{text}");
    }
    let mut live = live.keys("<Esc>:cycle 3<Enter>0d");
    live.golden("recording-cycle-100x30");
    assert!(live.text().contains("2 are somehow wrong"), "{}", live.text());
}

#[test]
fn breakpoints_stop_in_what_is_recorded() {
    let mut live = lab().keys(":break pod:strange<Enter>c");
    assert!(live.lines()[22 + 6].contains("breakpoint 1"), "{}", live.text());
    assert!(live.lines()[1].contains("cycle 3 default/strange"), "{}", live.lines()[1]);
    let mut live = live.keys("C");
    assert!(live.lines()[1].contains("before the first cycle"), "{}", live.lines()[1]);
}

#[test]
fn a_branch_off_a_recording_leaves_it_as_it_is() {
    let live = lab().keys(":cycle 3<Enter>:what-if cordon node a<Enter>");
    let mut live = live.keys(":next-cycle<Enter>6");
    assert!(live.lines()[1].contains("[what-if-1]"), "{}", live.lines()[1]);
    assert!(live.text().contains("strange"), "{}", live.text());
    let mut live = live.keys(":branch original<Enter>1");
    assert!(!live.lines()[1].contains("[what-if-1]"), "{}", live.lines()[1]);
    assert!(
        live.text().contains("default/late"),
        "all that was recorded is there: {}",
        live.text()
    );
}
