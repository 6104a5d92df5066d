//! Every view as a golden frame at its widths, and stories through them.

use std::sync::Arc;

use crate::debug::Position as Frame;
use crate::debug::decision::Decision;
use crate::tui::app::Request;
use crate::tui::color::Depth;
use crate::tui::glyph::Charset;
use crate::tui::model::{Model, Position};
use crate::tui::sanitize;
use crate::tui::testing::{Story, filter_frame, model, pod};
use crate::tui::view::ViewId;

fn at(size: (u16, u16)) -> Story {
    Story::with(model(), size, "dark", Depth::Rgb, Charset::Unicode)
}

/// Standing at the end of the second cycle, the one with scores.
fn second_cycle() -> Model {
    let position = Position { cycle: 1, frame: Frame::START };
    Model { position: Some(position), at_end: true, idle: true, ..model() }
}

#[test]
fn every_view_in_eighty_columns() {
    for view in ViewId::every() {
        let name = format!("{}-80x24", view.title().to_lowercase());
        at((80, 24)).keys(view.keys()).golden(&name);
    }
}

#[test]
fn the_matrix_and_the_queues_on_wider_terminals() {
    at((120, 40)).keys("3").golden("filter-120x40");
    at((200, 50)).keys("3").golden("filter-200x50");
    at((200, 50)).keys("2").golden("queues-200x50");
}

#[test]
fn scores_show_every_number_the_ranks_and_the_tie() {
    let mut story = Story::new(second_cycle()).keys("4llll");
    story.golden("scores-tie-80x24");
    let lines = story.lines();
    assert_eq!(lines[5], "  node-a     1    362 = tie                  0→100→300         62→62→62");
    assert_eq!(lines[6], "  node-b     1    362 ★ chosen of tie        0→100→300         62→62→62");
    assert_eq!(lines[7], "  node-d     3     91                            1→0→0         91→91→91");
}

#[test]
fn nodes_never_asked_say_why() {
    let text = Story::new(second_cycle()).keys("3Gll").text();
    assert!(text.contains("· NodeResourcesFit on node-e: not evaluated"), "{text}");
    assert!(text.contains("enough feasible nodes were found before this one"), "{text}");
}

#[test]
fn a_node_with_two_failures_shows_both() {
    let text = Story::new(model()).keys("3Gd").text();
    assert!(
        text.contains("official      UnschedulableAndUnresolvable by NodeUnschedulable"),
        "{text}"
    );
    assert!(text.contains("NodeResourcesFit: Insufficient cpu"), "{text}");
}

#[test]
fn an_empty_session_says_what_to_do_in_every_view() {
    for view in ViewId::every() {
        let mut story = Story::new(Model::default()).keys(view.keys());
        let text = story.lines()[3..17].join("\n");
        assert!(
            text.contains("No ") || text.contains("has no") || text.contains("Nothing"),
            "{text}"
        );
    }
}

#[test]
fn enter_on_a_cycle_goes_to_it() {
    let story = Story::new(model()).keys("1j<Enter>");
    let position = Position { cycle: 1, frame: Frame::START };
    assert_eq!(story.requests(), [Request::GoTo(position)]);
    assert_eq!(story.app.view(), ViewId::Cycle);
}

#[test]
fn run_here_goes_to_the_selected_cell() {
    let story = Story::new(model()).keys("3jt");
    let position = Position { cycle: 0, frame: filter_frame(2) };
    assert_eq!(story.requests(), [Request::GoTo(position)]);
}

#[test]
fn waiting_pods_are_allowed_by_plugin_and_rejected_with_a_message() {
    let pod = pod("api-1");
    let story = Story::new(model()).keys("7aA:allow ManualPermit<Enter>xtoo many<Enter>");
    let plugin = Some("ManualPermit".into());
    assert_eq!(
        story.requests(),
        [
            Request::Decide(Decision::Allow(plugin), vec![pod]),
            Request::Decide(Decision::Allow(None), vec![pod]),
            Request::Decide(Decision::Allow(plugin), vec![pod]),
            Request::Decide(Decision::Reject("too many".into()), vec![pod]),
        ]
    );
}

#[test]
fn a_rejection_needs_its_message() {
    let mut story = Story::new(model()).keys("7x<Enter>");
    assert!(story.requests().is_empty());
    assert_eq!(story.lines()[22], " error: reject needs MESSAGE");
}

#[test]
fn hostile_names_reach_no_terminal() {
    let mut hostile = model();
    hostile.source = "\x1b]0;owned\x07".into();
    let pod = Arc::make_mut(&mut hostile.pods[0].pod);
    pod.metadata.labels.insert("app".into(), "\u{202e}x\x1b[2J".into());
    pod.metadata.name = "a\u{200b}\nb".into();
    pod.spec.scheduler_name = "\x1b[31m\tred".into();
    hostile.queued[0].reason = "\x1b[31mred".into();
    for keys in ["6", "6d", "2d", "26<Ctrl-w>"] {
        let buffer = Story::with(hostile.clone(), (160, 40), "dark", Depth::Rgb, Charset::Unicode)
            .keys(keys)
            .draw();
        for cell in &buffer.content {
            assert!(cell.symbol().chars().all(sanitize::is_safe), "{:?}", cell.symbol());
        }
        let text: String = buffer.content.iter().map(|c| c.symbol()).collect();
        assert!(text.contains("\\u{1b}]0;owned\\u{7}"));
    }
}

#[test]
fn ascii_mode_draws_no_byte_beyond_it() {
    for view in ViewId::every() {
        let keys = format!("{}{}", view.keys(), if view == ViewId::Pods { "d" } else { "" });
        let mut story =
            Story::with(model(), (200, 50), "dark", Depth::Rgb, Charset::Ascii).keys(&keys);
        assert!(story.text().is_ascii(), "{}", story.text());
    }
}

#[test]
fn without_colours_the_selection_still_shows() {
    Story::with(model(), (80, 24), "dark", Depth::None, Charset::Unicode)
        .keys("3j")
        .golden("filter-no-color-80x24");
}

#[test]
fn the_terminals_cursor_is_on_the_selected_cell() {
    assert_eq!(Story::new(model()).keys("3").cursor(), (58, 6));
    assert_eq!(Story::new(model()).keys("3j").cursor(), (58, 7));
    assert_eq!(Story::new(model()).keys("3:th").cursor(), (3, 22));
}

#[test]
fn what_comes_after_the_position_is_dimmed() {
    use ratatui::style::Modifier;
    let mut story = Story::new(model()).keys("3");
    let buffer = story.draw();
    let dim = |x: u16, y: u16| buffer[(x, y)].modifier.contains(Modifier::DIM);
    // NodeResourcesFit has come to node-b: its column is known for the first two, the rest is to come.
    let column = 58;
    assert_eq!([5, 6, 7, 8, 9].map(|y| dim(column, y)), [false, false, true, true, true]);
    assert!(!dim(19, 9), "NodeUnschedulable was through before");
    let buffer = story.keys("0").draw();
    let dim = |y: u16| buffer[(6, y)].modifier.contains(Modifier::DIM);
    assert_eq!((dim(11), dim(12)), (false, true));
}

#[test]
fn the_configuration_tells_what_is_changed_and_a_plugin_its_manual() {
    let mut story = at((120, 40)).keys("gc");
    let text = story.text();
    assert!(text.contains("Configuration: all is as by default"), "{text}");
    let mut story = story.keys("/imagelocality<Enter><Enter>");
    let text = story.text();
    assert!(text.contains("For example: "), "{text}");
    let mut story = story.keys("<Esc><Esc>/gangsch<Enter>");
    story.golden("configuration-gate-120x40");
    assert!(story.text().contains(":what-if feature GangScheduling=true runs with it on"));
}

#[test]
fn every_message_is_kept_with_its_time_and_how_often() {
    let mut story = Story::new(model()).keys(":cycle two<Enter>:cycle two<Enter>:cycle x<Enter>M");
    let lines = story.lines();
    assert!(lines[4].starts_with("  ✗ error      +14.5s     2 "), "{}", lines[4]);
    assert!(lines[5].contains("    1 \"x\" is not a cycle's number"), "{}", lines[5]);
    assert!(lines[2].contains("2/2"), "the newest is selected: {}", lines[2]);
    let mut story = story.keys("1:theme light<Enter>Mz");
    assert!(story.lines()[2].contains("2 of 3 ─ warnings and errors only"));
    assert!(story.keys("k").text().contains("2 times, from +14.5s to +14.5s"));
}
