//! The interface as a person uses it, key by key.

use super::FIRST_VIEW;
use crate::tui::action::INTERRUPTED;
use crate::tui::app::Effect;
use crate::tui::command::Command;
use crate::tui::model::{CyclePosition, Model};
use crate::tui::testing::{InterfaceStory, filter_frame, model};
use crate::tui::view::ViewId;

fn story(keys: &str) -> InterfaceStory {
    InterfaceStory::new(model()).keys(keys)
}

#[test]
fn letters_step_forward_capitals_back_and_counts_are_commands() {
    use Command::{Continue, Cycles, Finish, Next, Step};
    let story = story("sSnNfFcC}{:next 5<Enter>.");
    assert_eq!(
        story.requests(),
        [
            Step { count: 1, back: false },
            Step { count: 1, back: true },
            Next { count: 1, back: false },
            Next { count: 1, back: true },
            Finish { count: 1, back: false },
            Finish { count: 1, back: true },
            Continue { back: false },
            Continue { back: true },
            Cycles { count: 1, back: false },
            Cycles { count: 1, back: true },
            Next { count: 5, back: false },
            Next { count: 5, back: false },
        ]
    );
}

#[test]
fn commands_with_arguments_become_requests() {
    let story = story(":cycle 2<Enter>:advance 30s<Enter>+");
    let advance = |time| Command::Advance(time);
    assert_eq!(story.requests(), [Command::GoToCycle(2), advance(Some(30_000_000)), advance(None)]);
}

#[test]
fn mistakes_are_said_and_kept() {
    let mut story = story(":cycle two<Enter>");
    assert_eq!(story.lines()[22], " error: \"two\" is not a cycle's number");
    let mut story = story.keys("j");
    assert_eq!(story.lines()[22], "");
    assert!(story.keys("M").text().contains("\"two\" is not a cycle's number"));
}

#[test]
fn a_filter_applies_while_typing_and_leaves_in_two_steps() {
    let mut story = story("3/node-c");
    assert_eq!(story.lines()[22].trim_end(), format!("{:<76}1/5", "/node-c"));
    assert!(story.lines()[2].contains("1 of 5 ─ /node-c"), "{}", story.lines()[2]);
    let mut story = story.keys("<Esc>");
    assert!(story.lines()[2].contains("1 of 5 ─ /node-c"));
    let mut story = story.keys("<Esc>");
    assert!(story.lines()[2].contains("/5 ─"), "{}", story.lines()[2]);
    assert!(!story.lines()[2].contains("/node-c"));
}

#[test]
fn a_label_selector_filters_nodes_everywhere() {
    let mut nodes = story("5/-l zone=two<Enter>");
    assert!(nodes.lines()[2].contains("3 of 5 ─ /-l zone=two"));
    let mut matrix = story("3:filter -l zone=one<Enter>");
    assert!(matrix.lines()[2].contains("2 of 5 ─ /-l zone=one"));
}

#[test]
fn failures_only_is_a_key_and_back() {
    let mut story = story("0z");
    assert!(story.lines()[2].contains("6 of 16 ─ failures only"), "{}", story.lines()[2]);
    assert!(!story.keys("z").lines()[2].contains("failures only"));
}

#[test]
fn escape_leads_outwards() {
    let story = story("3");
    assert_eq!(story.app.view(), ViewId::Filter);
    let story = story.keys("<Esc>");
    assert_eq!(story.app.view(), ViewId::Cycle);
    let story = story.keys("<Esc>");
    assert_eq!(story.app.view(), ViewId::Timeline);
    assert_eq!(story.keys("<Esc>").app.view(), ViewId::Timeline);
}

#[test]
fn views_have_a_history() {
    let story = story("123-");
    assert_eq!(story.app.view(), ViewId::Queues);
    let story = story.keys("[[");
    assert_eq!(story.app.view(), ViewId::Queues);
    let story = story.keys("[");
    assert_eq!(story.app.view(), ViewId::Timeline);
    assert_eq!(story.keys("]]").app.view(), ViewId::Filter);
}

#[test]
fn themes_switch_by_key_and_by_name() {
    let mut story = story("T");
    assert_eq!(story.app.theme().name(), "light");
    story = story.keys(":theme mono<Enter>");
    assert_eq!(story.app.theme().name(), "mono");
    let mut story = story.keys(":theme nope<Enter>");
    assert_eq!(story.app.theme().name(), "mono");
    assert!(story.lines()[22].starts_with(" error: there is no theme \"nope\""));
}

#[test]
fn commands_complete_and_show_what_would_come() {
    let mut story = story(":them");
    assert_eq!(story.lines()[22], ":theme");
    let mut story = story.keys("<Tab>hi<Tab>");
    assert_eq!(story.lines()[22], ":theme high-contrast");
    let story = story.keys("<Enter>");
    assert_eq!(story.app.theme().name(), "high-contrast");
    let mut story = story.keys(":<Up>");
    assert_eq!(story.lines()[22], ":theme high-contrast");
    // An edit that was not understood need not be typed again.
    let mut story = story.keys("<Esc>Eresize pod x<Enter>E<Up>");
    assert_eq!(story.lines()[22], "what-if edit: resize pod x");
    assert_eq!(story.keys("<Esc>:<Up>").lines()[22], ":what-if resize pod x");
}

#[test]
fn help_lists_this_views_keys_first_filters_and_runs() {
    let mut help = story("7?");
    assert!(help.text().contains("Keys and commands, Waiting first"));
    assert!(
        help.lines()[22]
            .starts_with(" Allow the selected or all marked pods for their first plugin")
    );
    let first = help.lines().iter().position(|l| l.contains(":allow")).unwrap();
    let step = help.lines().iter().position(|l| l.contains(":step ")).unwrap();
    assert!(first < step);
    let story = help.keys("/step-back<Enter>");
    assert_eq!(story.requests(), [Command::Step { count: 1, back: true }]);
    let mut story = story.keys("j");
    assert!(!story.text().contains("Keys and commands"));
}

#[test]
fn help_is_grouped_and_found_by_the_words_people_use() {
    let mut help = story("7?");
    let text = help.text();
    assert!(text.contains("Only in Waiting") && text.contains("Debugger"), "{text}");
    let mut found = help.keys("/uncordon");
    let text = found.text();
    assert!(text.contains(":menu") && text.contains(":what-if EDIT"), "{text}");
    assert!(!text.contains("Debugger") && !text.contains(":step"), "{text}");
    let mut found = InterfaceStory::new(model()).keys("<Ctrl-p>pending");
    assert!(found.text().contains(":why") && found.text().contains(":fix"), "{}", found.text());
    for (word, command) in [("cpu", ":menu"), ("stuck", ":why"), ("namespace", ":filter")] {
        let text = InterfaceStory::new(model()).keys(&format!("?/{word}")).text();
        assert!(text.contains(command), "{word}: {text}");
    }
}

#[test]
fn a_count_stands_before_a_key() {
    let mut story = story("5<Alt-3>j");
    assert!(story.lines()[2].contains("4/5"), "{}", story.lines()[2]);
    let mut story = story.keys("<Alt-2>k");
    assert!(story.lines()[2].contains("2/5"), "{}", story.lines()[2]);
    let story = story.keys("<Alt-1><Alt-2>s<Alt-4>7s");
    let step = |count| Command::Step { count, back: false };
    assert_eq!(story.requests(), [step(12), step(1)], "a key without a count drops it");
    // Where digits show no views they are counts, as in vim.
    let mut story = InterfaceStory::new(model()).keys(":keys vim<Enter>g53j");
    assert_eq!(story.app.view(), ViewId::Nodes);
    assert!(story.lines()[2].contains("4/5"), "{}", story.lines()[2]);
    let story = story.keys("20n");
    assert_eq!(story.requests(), [Command::Next { count: 20, back: false }]);
}

#[test]
fn the_palette_is_the_help_with_its_filter_open() {
    let story = story("<Ctrl-p>timeline<Enter>");
    assert_eq!(story.app.view(), ViewId::Timeline);
    // Escape leaves it at once; in the help it leaves the filter first.
    assert!(!story.keys("<Ctrl-p>cor<Esc>").text().contains("Keys and commands"));
    assert!(InterfaceStory::new(model()).keys("?/cor<Esc>").text().contains("─ /cor ─"));
}

#[test]
fn help_says_where_an_action_works() {
    let mut story = story("?/:reject<Enter>");
    assert_eq!(story.lines()[22], " error: reject works in: Waiting (7)");
}

#[test]
fn the_beginning_of_a_sequence_shows_what_may_follow() {
    let mut story = story("3Gg");
    assert!(story.text().contains("│ g First row"), "{}", story.text());
    let mut story = story.keys("g");
    assert!(!story.text().contains("First row"));
    assert!(story.lines()[2].contains("1/5"));
}

#[test]
fn describe_shows_the_whole_message() {
    let mut story = story("0d");
    story.golden("describe-80x24");
    let text = story.text();
    assert!(text.contains("found for incoming pod, 3 Preemption is not"), "{text}");
    assert!(!story.keys("q").text().contains("3 Preemption is not"));
}

#[test]
fn the_detail_pane_takes_the_keys_and_scrolls() {
    let mut story = story("0<Tab>");
    assert!(story.lines()[16].contains("Details ─ 6 more lines ─"), "{}", story.lines()[16]);
    let mut story = story.keys("jj");
    assert!(story.lines()[16].contains("Details ─ 4 more lines ─"), "{}", story.lines()[16]);
    let mut story = story.keys("G");
    assert!(
        story.lines()[21].contains("5 of 5 nodes, starting at node 0"),
        "{}",
        story.lines()[20]
    );
    assert!(story.keys("<Tab>j").lines()[2].contains("9/16"));
}

#[test]
fn quit_closes_a_window_first() {
    let story = story("?q");
    assert_eq!(story.effects, []);
    let story = story.keys("q");
    assert_eq!(story.effects, [Effect::Quit(0)]);
    assert_eq!(InterfaceStory::new(model()).keys("<Ctrl-c>").effects, [Effect::Quit(INTERRUPTED)]);
}

#[test]
fn suspend_and_redraw_leave_as_effects() {
    assert_eq!(story("<Ctrl-z><Ctrl-l>").effects, [Effect::Suspend, Effect::Clear]);
}

#[test]
fn a_prompt_swallows_keys_and_ctrl_c_closes_it() {
    let story = story(":q<Ctrl-c>");
    assert_eq!(story.effects, []);
    assert_eq!(story.keys("q").effects, [Effect::Quit(0)]);
}

#[test]
fn pasted_text_goes_into_the_prompt_only() {
    let mut story = story("");
    story.app.paste("quit\n");
    assert!(!story.text().contains("quit\n"));
    let mut story = story.keys("3/");
    story.app.paste("node-c\r\n");
    story.refresh();
    assert!(story.lines()[2].contains("1 of 5"));
    story.app.paste(&"x".repeat(1 << 20));
    let text = story.text();
    assert!(text.contains("a line takes 4096 characters"), "{text}");
}

#[test]
fn the_mode_is_a_word() {
    let chip = |model: Model, keys: &str| {
        InterfaceStory::new(model).keys(keys).lines()[0].split(' ').next_back().unwrap().to_owned()
    };
    let at_end = Model { at_end: true, ..model() };
    assert_eq!(chip(model(), ""), "REPLAY");
    assert_eq!(chip(at_end.clone(), ""), "PAUSED");
    assert_eq!(chip(Model { idle: true, ..at_end.clone() }, ""), "IDLE");
    assert_eq!(chip(at_end.clone(), "<Space>"), "PLAYING");
    assert_eq!(chip(at_end.clone(), "<Space>j"), "PLAYING");
    assert_eq!(chip(at_end, "<Space>s"), "PAUSED");
}

#[test]
fn the_selection_follows_the_debugger() {
    let mut story = story("3GG");
    assert!(story.lines()[2].contains("5/5"));
    story.model.position = Some(CyclePosition { cycle: 0, frame: filter_frame(2) });
    story.model.revision += 1;
    story.refresh();
    assert!(story.lines()[2].contains("3/5"), "{}", story.lines()[2]);
    assert_eq!(story.lines()[8].chars().next(), Some('▶'));
}

#[test]
fn breadcrumbs_and_wide_columns_are_switches() {
    let mut narrow = story("1");
    assert!(!narrow.lines()[3].contains("message"));
    assert!(narrow.keys("<Ctrl-w>llllll").text().contains("passed"));
    let mut story = story("<Ctrl-g>");
    assert!(story.lines()[1].starts_with("─ Cycle 1"));
}

#[test]
fn a_small_terminal_gets_a_sentence_and_recovers() {
    let mut story = story("3").resized(40, 10);
    assert_eq!(story.lines()[0], "kubestep needs 60×15; this is 40×10.");
    let mut story = story.resized(60, 15);
    assert!(story.text().contains("node-a"));
}

#[test]
fn random_keys_and_sizes_never_panic() {
    let all: Vec<char> =
        " sSnNfFcC}{.jkhlGgzoiTMq?:/dD-[]0123456789aAx+t\u{1b}\n\t".chars().collect();
    for seed in 1..=6_u64 {
        let mut state = seed;
        let mut next = |n: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % n
        };
        let mut story = story("");
        for _ in 0..300 {
            let keys = match all[next(all.len())] {
                '\u{1b}' => "<Esc>".to_owned(),
                '\n' => "<Enter>".to_owned(),
                '\t' => "<Tab>".to_owned(),
                ' ' => "<Space>".to_owned(),
                c => c.to_string(),
            };
            story = story.keys(&keys);
            if next(10) == 0 {
                story = story.resized(1 + next(220) as u16, 1 + next(60) as u16);
            }
        }
        story = story.keys("<Esc><Esc><Esc><Esc>").resized(80, 24);
        story.effects.clear();
        assert_eq!(story.keys("qqqqq").effects.first(), Some(&Effect::Quit(0)), "seed {seed}");
    }
}

#[test]
fn a_decision_is_copied_as_text_or_markdown() {
    let story = story("3yY");
    let [Effect::Copy(text), Effect::Copy(markdown)] = story.effects.as_slice() else {
        panic!("{:?}", story.effects)
    };
    assert!(text.starts_with("Filter of shop/web-7f in cycle 1\n✗ NodeResourcesFit on node-b"));
    assert!(text.contains("all nodes: 2/5 pass: Insufficient cpu (3)\n"));
    assert!(markdown.starts_with("## Filter of shop/web-7f in cycle 1\n\n"));
    assert!(markdown.contains("- **all nodes**: 2/5 pass"));
}

#[test]
fn saving_asks_for_the_file() {
    let mut story = story("<Ctrl-s>");
    assert_eq!(story.lines()[22], "save file:");
    assert_eq!(story.keys("a.svg<Enter>").effects, [Effect::Save("a.svg".into())]);
}

#[test]
fn the_mouse_chooses_rows_columns_and_views_once_it_is_on() {
    use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
    let mut story = story("3:mouse on<Enter>");
    assert_eq!(story.effects, [Effect::Mouse(true)]);
    let mouse = |story: &mut InterfaceStory, kind, column, row| {
        let event = MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE };
        story.app.mouse(event, &story.model);
        story.lines()
    };
    let click = MouseEventKind::Down(MouseButton::Left);
    let lines = mouse(&mut story, click, 20, 9);
    assert!(lines[2].contains("4/5"), "{}", lines[2]);
    assert!(lines.join("").contains("NodeUnschedulable on node-d"), "{lines:?}");
    let lines = mouse(&mut story, MouseEventKind::ScrollUp, 20, 9);
    assert!(lines[2].contains("1/5"), "{}", lines[2]);
    let lines = mouse(&mut story, click, 3, 4);
    assert!(lines[4].starts_with("  node▲"), "{}", lines[4]);
    // The point in the breadcrumbs: out to it.
    let event = MouseEvent { kind: click, column: 26, row: 1, modifiers: KeyModifiers::NONE };
    let effect = story.app.mouse(event, &story.model);
    let out = kubestep_debug::Position::new(kubestep_config::ExtensionPoint::Filter, None, None);
    let position = CyclePosition { cycle: 0, frame: out };
    assert_eq!(effect, Some(Effect::Session(Command::GoTo(position))));
    mouse(&mut story, click, 12, 0);
    assert_eq!(story.app.view(), ViewId::Timeline);
    assert_eq!(story.keys(":mouse off<Enter>").effects.last(), Some(&Effect::Mouse(false)));
}

#[test]
fn escape_before_the_first_cycle_leads_to_the_first_screen() {
    let empty = || InterfaceStory::new(Model { cycles: Vec::new(), position: None, ..model() });
    assert_eq!(empty().keys("<Esc>").app.view(), FIRST_VIEW);
    assert_eq!(empty().keys("5<Esc>").app.view(), FIRST_VIEW);
    assert_eq!(InterfaceStory::new(model()).keys("5<Esc>").app.view(), ViewId::Timeline);
}
