//! Marks as a person uses them.

use crate::tui::app::Effect;
use crate::tui::testing::{InterfaceStory, LiveInterface, golden, model, session};
use kubestep_source::fixtures;

fn story(keys: &str) -> InterfaceStory {
    InterfaceStory::new(model()).keys(keys)
}

#[test]
fn marked_rows_have_a_glyph_and_a_word_and_are_jumped_between() {
    let mut story = story("5vjjv");
    assert_eq!(story.lines()[22], " marked, 2 in all");
    assert!(story.lines()[2].contains("3/5 ─ 2 marked"), "{}", story.lines()[2]);
    assert!(story.text().contains("Details ─ ◆ marked"));
    assert_eq!(story.lines()[4].chars().nth(1), Some('◆'));
    assert_eq!(story.lines()[5].chars().nth(1), Some(' '));
    story.golden("marks-80x24");
    let mut story = story.keys("'");
    assert!(story.lines()[2].contains("1/5"));
    let mut story = story.keys("'");
    assert!(story.lines()[2].contains("3/5"));
    let mut story = story.keys("\"v'");
    assert!(story.lines()[2].contains("3/5 ─ 1 marked"));
    let mut story = story.keys("V");
    assert!(!story.text().contains("marked ─"), "{}", story.text());
    assert_eq!(story.lines()[22], " 1 mark cleared");
    assert_eq!(story.keys("V").lines()[22], " error: no row is marked here");
}

#[test]
fn marks_stay_on_their_rows_when_the_order_changes_and_belong_to_their_view() {
    let mut story = story("5vooj3");
    assert!(!story.lines()[2].contains("marked"));
    let mut story = story.keys("5oo/node-a<Enter>");
    assert!(story.lines()[2].contains("1 of 5 ─ /node-a ─ 1 marked"), "{}", story.lines()[2]);
    assert!(story.text().contains("◆ marked"));
}

#[test]
fn what_is_marked_is_copied_together() {
    let story = story("5vjvy");
    let [Effect::Copy(text)] = story.effects.as_slice() else { panic!("{:?}", story.effects) };
    assert!(text.contains("node-a: open") && text.contains("node-b: open"), "{text}");
    assert!(!text.contains("node-c"), "{text}");
}

#[test]
fn two_nodes_are_seen_side_by_side() {
    let live = LiveInterface::new(session(fixtures::find("tour").unwrap().cluster), (120, 40));
    let mut live = live.keys("nn4vj|");
    golden(&live.draw(), "compare-nodes-120x40");
    let text = live.text();
    assert!(text.contains("b-0 and a-0 side by side for default/web-0"), "{text}");
    // What Filter saw is not what preemption left behind.
    let live = LiveInterface::new(session(fixtures::find("tour").unwrap().cluster), (120, 40));
    let mut live = live.keys("n3vj|");
    let text = live.text();
    assert!(text.contains("✗ no: Insufficient cpu"), "{text}");
    assert!(text.contains("Free before cycle 1") && text.contains("1 of 4"), "{text}");
    assert!(text.contains("Free now") && text.contains("4 of 4"), "{text}");
    assert!(live.keys("z").text().contains("≠"), "what differs");
    let error = |keys: &str| story_line(keys);
    assert!(error("3|").contains("mark a node with v"));
    assert!(error("3v|").contains("select another node"));
    assert!(error("3vjvjv|").contains("V clears all marks"));
}

fn story_line(keys: &str) -> String {
    story(keys).lines()[22].clone()
}
