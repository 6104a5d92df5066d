//! What gets the room of the screen: rows or details, which columns, which words.

use crate::tui::color::ColorDepth;
use crate::tui::glyph::Charset;
use crate::tui::testing::{InterfaceStory, LiveInterface, model, session_with};
use kubestep_source::fixtures;
use ratatui::style::Modifier;

fn demo(name: &str, size: (u16, u16), keys: &str) -> LiveInterface {
    LiveInterface::demo(name).resized(size.0, size.1).keys(keys)
}

/// The line on which the details begin.
fn details_at(live: &mut LiveInterface) -> usize {
    live.lines().iter().position(|line| line.starts_with("─ Details")).unwrap()
}

#[test]
fn details_are_as_high_as_their_text_and_do_not_jump() {
    let mut live = demo("tour", (120, 36), "c9gg");
    let short = details_at(&mut live);
    assert_eq!(short, 34 - 4, "three lines of text below a title");
    // The eleventh row has a message of several lines.
    let mut live = live.keys("jjjjjjjjjj");
    let long = details_at(&mut live);
    assert!(long < short, "{}", live.text());
    let mut live = live.keys("j");
    assert_eq!(details_at(&mut live), long, "the height stays while the selection moves");
    let mut live = live.keys("gg09gg");
    assert_eq!(details_at(&mut live), short, "another view forgets it");
}

#[test]
fn the_selected_row_stays_on_the_screen_while_details_grow() {
    let mut live = demo("tour", (80, 24), "c9gg");
    for _ in 0..33 {
        let selected = live.lines()[2].split(" ─ ").nth(1).unwrap().to_owned();
        let cursor = live.interface.app.grid(super::ViewId::Events);
        let (line, below) = (cursor.selected_line(), cursor.lines_below());
        assert!(line + below < cursor.total(), "{selected}: row {line} is below the screen");
        live = live.keys("j");
    }
}

#[test]
fn without_rows_the_sentence_is_whole_and_details_have_the_answer() {
    for size in [(80, 24), (120, 36)] {
        let mut live = demo("preemption-budget", size, "c8");
        while live.interface.wants_answer() {
            live.interface.answer();
        }
        let text = live.text();
        assert!(text.contains("Enter shows that."), "{text}");
        assert!(!text.contains("dry run"), "a header without rows: {text}");
        assert!(text.contains("node-1 was tried first because"), "{text}");
    }
}

#[test]
fn events_give_the_room_to_what_happened() {
    let text = demo("preemption-budget", (80, 24), "c9").text();
    assert!(text.contains(" ScheduleAttemptFailure"), "{text}");
    assert!(text.contains("Preempted by pod") && !text.contains("Preempted: Pre"), "{text}");
    let text = demo("preemption-budget", (200, 60), "c9").text();
    assert!(text.contains("Successfully assigned default/payment to node-1 "), "{text}");
}

#[test]
fn a_default_is_shown_where_the_value_differs() {
    let cluster = fixtures::find("tour").unwrap().cluster;
    let session = session_with(cluster, "OpportunisticBatching=false");
    let mut live = LiveInterface::new(session, (120, 36)).keys("cgcz");
    let text = live.text();
    let row = live.lines().into_iter().find(|line| line.contains(" OpportunisticBatching "));
    assert!(row.unwrap().contains(" ≠ on "), "{text}");
    let lines = live.keys("zgg").lines();
    let row = lines.iter().find(|line| line.contains("podInitialBackoffSeconds")).unwrap();
    assert!(!row.contains("default"), "{row}");
    assert!(row.contains("Backoff after the first failed attempt"), "{row}");
}

#[test]
fn skipped_plugins_are_cut_between_names() {
    let text = demo("tour", (80, 24), "nnnnn0").text();
    assert!(text.contains("NodePorts, VolumeRestrictions and 7 more"), "{text}");
}

#[test]
fn what_comes_after_the_position_is_dimmed_in_lists() {
    let mut live = demo("tour", (120, 36), "cNNN1");
    assert!(live.lines()[2].contains("dimmed: after this step"), "{}", live.text());
    let mut live = demo("tour", (120, 36), "cCnnn9");
    assert!(live.lines()[2].contains("dimmed: after this step"), "{}", live.text());
    let current: Vec<String> =
        live.lines().into_iter().filter(|line| line.starts_with('▶')).collect();
    let [current] = current.as_slice() else { panic!("{current:?}") };
    assert!(current.contains("default/web-1"), "{current}");
    let text = demo("tour", (120, 36), "c1").text();
    assert!(!text.contains("dimmed"), "{text}");
}

#[test]
fn columns_that_are_left_out_are_announced_in_every_view() {
    let notes = [
        ("1", "─ +2 ─"),
        ("2", "─ +2 ─"),
        ("3", " +1 ─"),
        ("5", "─ Ctrl-w ─"),
        ("6", "Ctrl-w: 1 more column"),
        ("9", "─ +1 ─"),
    ];
    for (key, note) in notes {
        let mut live = demo("tour", (80, 24), "cNNN").keys(key);
        assert!(live.lines()[2].contains(note), "{}", live.lines()[2]);
    }
}

#[test]
fn outlines_fold_as_other_views_and_separate_a_status_from_its_message() {
    let text = demo("tour", (120, 36), "nnnnngw").text();
    assert!(text.contains("▾ Queue") && text.contains("▸ 2 nodes"), "{text}");
    assert!(text.contains("attempt 1, cycle 5: Unschedulable: 0/6 nodes"), "{text}");
}

#[test]
fn hints_ask_why_only_where_there_are_pods() {
    for (keys, asks) in [("6", true), ("9", true), ("M", false), ("gc", false), ("gt", false)] {
        let mut live = demo("tour", (120, 36), "nnnnn").keys(keys);
        let hints = live.lines()[35].clone();
        assert_eq!(hints.contains("W why"), asks, "{keys}: {hints}");
    }
    let text = demo("tour", (120, 36), "c9ggjjjjjjjW").text();
    assert!(text.contains("Why default/payment?"), "the pod of the row: {text}");
}

#[test]
fn the_strip_marks_the_cycle_itself_also_without_colours() {
    for (theme, depth) in
        [("dark", ColorDepth::Rgb), ("dark", ColorDepth::None), ("mono", ColorDepth::None)]
    {
        let charset = Charset::Unicode;
        let mut story = InterfaceStory::with(model(), (80, 24), theme, depth, charset).keys("1");
        let buffer = story.draw();
        let strip: Vec<_> = (2..6).map(|x| &buffer[(x, 3)]).collect();
        let signs: String = strip.iter().map(|cell| cell.symbol()).collect();
        assert_eq!(signs, "✗◷  ");
        let marked = |at: usize| strip[at].modifier.contains(Modifier::REVERSED);
        assert_eq!([0, 1].map(marked), [true, false]);
    }
}
