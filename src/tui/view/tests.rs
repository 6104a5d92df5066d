//! Every view as a golden frame at its widths, and stories through them.

use std::sync::Arc;

use crate::tui::color::ColorDepth;
use crate::tui::command::Command;
use crate::tui::glyph::Charset;
use crate::tui::model::{CyclePosition, LiveModel, Model};
use crate::tui::sanitize;
use crate::tui::testing::{InterfaceStory, LiveInterface, filter_frame, model, pod};
use crate::tui::theme::Scope;
use crate::tui::view::ViewId;
use kubestep_api::Time;
use kubestep_debug::Position as Frame;
use kubestep_debug::decision::ManualDecision as Word;
use kubestep_debug::trace::thin::{self, ThinLists};
use kubestep_framework::node::NodeId;
use kubestep_framework::record::{
    Candidate, CycleRecord, ExtenderColumn, GroupRecord, PluginStatus,
};
use kubestep_framework::status::Status;
use kubestep_framework::status::node_statuses::NodeStatuses;
use kubestep_live::{Agreement, ComparedDecision, Outage};

fn at(size: (u16, u16)) -> InterfaceStory {
    InterfaceStory::with(model(), size, "dark", ColorDepth::Rgb, Charset::Unicode)
}

/// Standing at the end of the second cycle, the one with scores.
fn second_cycle() -> Model {
    let position = CyclePosition { cycle: 1, frame: Frame::START };
    Model { position: Some(position), at_end: true, idle: true, ..model() }
}

#[test]
fn every_view_in_eighty_columns() {
    for view in ViewId::all() {
        let name = format!("{}-80x24", view.title().to_lowercase());
        at((80, 24)).keys(&view.key()).golden_with_styles(&name);
    }
}

#[test]
fn every_view_on_a_wide_terminal() {
    for view in ViewId::all() {
        let name = format!("{}-200x60", view.title().to_lowercase());
        at((200, 60)).keys(&view.key()).golden(&name);
    }
}

#[test]
fn every_view_in_the_light_theme() {
    for view in ViewId::all() {
        let name = format!("{}-120x36", view.title().to_lowercase());
        let story =
            InterfaceStory::with(model(), (120, 36), "light", ColorDepth::Rgb, Charset::Unicode);
        story.keys(&view.key()).golden_with_styles(&name);
    }
}

#[test]
fn scores_show_every_number_the_ranks_and_the_tie() {
    let mut story = InterfaceStory::new(second_cycle()).keys("4llll");
    story.golden("scores-tie-80x24");
    let lines = story.lines();
    let row = |at: usize, row: &str| assert!(lines[at].starts_with(row), "{}", lines[at]);
    row(7, "  node-b    1    362        ★ chosen █████████████████▒▒▒▒   0→100→300");
    row(8, "  node-a    1    362        = tie    █████████████████▒▒▒▒   0→100→300");
    row(9, "  node-d    3     91   −271          ▒▒▒▒▒▎                        1→0");
}

#[test]
fn nodes_never_asked_say_why() {
    let text = InterfaceStory::new(second_cycle()).keys("3Gll").text();
    assert!(text.contains("· NodeResourcesFit on node-e: not evaluated"), "{text}");
    assert!(text.contains("enough feasible nodes were found before this one"), "{text}");
}

#[test]
fn nodes_that_prefilter_left_are_counted_while_their_names_are_known() {
    let narrowed = |is_thin: bool| {
        let mut model = second_cycle();
        let record = Arc::make_mut(&mut model.cycles[1]);
        let answer = PluginStatus::new("NodeAffinity".into(), Status::SUCCESS);
        let nodes = Some(vec!["node-a".into()]);
        record.pre_filter = vec![PluginStatus { nodes, ..answer }].into();
        if is_thin {
            thin::drop_matrices(record, &mut ThinLists::default());
        }
        let text = InterfaceStory::new(model).keys("0gg").text();
        ["narrowed to 1 node: node-a", "prefilter 1", "narrowed to", "prefilter "]
            .map(|words| text.contains(words))
    };
    assert_eq!(narrowed(false), [true; 4]);
    assert_eq!(narrowed(true), [false; 4]);
}

#[test]
fn a_node_with_two_failures_shows_both() {
    let text = InterfaceStory::new(model()).keys("3Gd").text();
    assert!(text.contains("verdict       UnschedulableAndUnresolvable (preemption can"), "{text}");
    assert!(text.contains("NodeResourcesFit: Insufficient cpu"), "{text}");
}

#[test]
fn an_empty_session_says_what_to_do_in_every_view() {
    for view in ViewId::all() {
        let mut story = InterfaceStory::new(Model::default()).keys(&view.key());
        let text = story.lines()[3..17].join("\n");
        assert!(
            text.contains("No ") || text.contains("has no") || text.contains("Nothing"),
            "{text}"
        );
    }
}

#[test]
fn enter_on_a_cycle_looks_at_it() {
    let story = InterfaceStory::new(model()).keys("1j<Enter>");
    let position = CyclePosition { cycle: 1, frame: Frame::START };
    assert_eq!(story.requests(), [Command::Inspect(Some(position))]);
    assert_eq!(story.app.view(), ViewId::Cycle);
}

#[test]
fn run_here_goes_to_the_selected_cell() {
    let story = InterfaceStory::new(model()).keys("3jt");
    let position = CyclePosition { cycle: 0, frame: filter_frame(2) };
    assert_eq!(story.requests(), [Command::GoTo(position)]);
}

#[test]
fn waiting_pods_are_allowed_by_plugin_and_rejected_with_a_message() {
    let pod = pod("api-1");
    let story = InterfaceStory::new(model()).keys("7aA:allow ManualPermit<Enter>xtoo many<Enter>");
    let plugin = Some("ManualPermit".into());
    assert_eq!(
        story.requests(),
        [
            Command::Decide(Word::Allow(plugin), vec![pod]),
            Command::Decide(Word::Allow(None), vec![pod]),
            Command::Decide(Word::Allow(plugin), vec![pod]),
            Command::Decide(Word::Reject("too many".into()), vec![pod]),
        ]
    );
}

#[test]
fn a_rejection_needs_its_message() {
    let mut story = InterfaceStory::new(model()).keys("7x<Enter>");
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
        let buffer = InterfaceStory::with(
            hostile.clone(),
            (160, 40),
            "dark",
            ColorDepth::Rgb,
            Charset::Unicode,
        )
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
    for view in ViewId::all() {
        let keys = format!("{}{}", view.key(), if view == ViewId::Pods { "d" } else { "" });
        let mut story =
            InterfaceStory::with(model(), (200, 50), "dark", ColorDepth::Rgb, Charset::Ascii)
                .keys(&keys);
        assert!(story.text().is_ascii(), "{}", story.text());
    }
}

#[test]
fn without_colours_the_selection_still_shows() {
    InterfaceStory::with(model(), (80, 24), "dark", ColorDepth::None, Charset::Unicode)
        .keys("3j")
        .golden_with_styles("filter-no-color-80x24");
}

#[test]
fn the_terminals_cursor_is_on_the_selected_cell() {
    assert_eq!(InterfaceStory::new(model()).keys("3").cursor(), (53, 7));
    assert_eq!(InterfaceStory::new(model()).keys("3j").cursor(), (53, 8));
    assert_eq!(InterfaceStory::new(model()).keys("3:th").cursor(), (3, 22));
}

#[test]
fn what_comes_after_the_position_stands_back() {
    let mut story = InterfaceStory::new(model()).keys("3");
    let buffer = story.draw();
    let future = story.app.theme().style(Scope::Future).fg;
    let dim = |x: u16, y: u16| Some(buffer[(x, y)].fg) == future;
    // NodeResourcesFit has come to node-b: its column is known for the first two, the rest is to come.
    let column = 53;
    assert_eq!([6, 7, 8, 9, 10].map(|y| dim(column, y)), [false, false, true, true, true]);
    assert!(!dim(19, 10), "NodeUnschedulable was through before");
    let buffer = story.keys("0").draw();
    let dim = |y: u16| Some(buffer[(6, y)].fg) == future;
    assert_eq!((dim(12), dim(13)), (false, true));
}

#[test]
fn the_configuration_tells_what_is_changed_and_a_plugin_its_manual() {
    let mut story = at((120, 40)).keys("gc");
    let text = story.text();
    assert!(text.contains("Configuration: all defaults"), "{text}");
    let mut story = story.keys("/imagelocality<Enter><Enter>");
    let text = story.text();
    assert!(text.contains("For example: "), "{text}");
    let mut story = story.keys("<Esc><Esc>/gangsch<Enter>");
    story.golden("configuration-gate-120x40");
    assert!(story.text().contains(":what-if feature GangScheduling=true runs with it on"));
}

#[test]
fn every_message_is_kept_with_its_time_and_how_often() {
    let mut story =
        InterfaceStory::new(model()).keys(":cycle two<Enter>:cycle two<Enter>:cycle x<Enter>M");
    let lines = story.lines();
    assert!(lines[4].starts_with("  ✗ error      +14.5s     2 "), "{}", lines[4]);
    assert!(lines[5].contains("    1 \"x\" is not a cycle's number"), "{}", lines[5]);
    assert!(lines[2].contains("2/2"), "the newest is selected: {}", lines[2]);
    let mut story = story.keys("1:theme light<Enter>Mz");
    assert!(story.lines()[2].contains("2 of 3 ─ warnings and errors only"));
    assert!(story.keys("k").text().contains("2 times, from +14.5s to +14.5s"));
}

fn decision(
    pod_name: &str,
    cycle: Option<u64>,
    verdict: Agreement,
    reason: &str,
) -> Arc<ComparedDecision> {
    Arc::new(ComparedDecision {
        time: Time(20_000_000),
        pod: pod(pod_name),
        cycle,
        ours: "unschedulable".into(),
        theirs: "bound to node-c".into(),
        verdict,
        reason: reason.into(),
        learned: None,
    })
}

/// The model of a cluster that is followed.
fn followed(live: LiveModel) -> Model {
    let decisions = vec![
        decision("web-7f", Some(1), Agreement::Different, "TaintToleration refuses node-c"),
        decision("api-1", Some(2), Agreement::Tie, ""),
        decision("later-1", None, Agreement::Untried, ""),
    ];
    Model { live: Some(LiveModel { decisions, ..live }), at_end: true, ..model() }
}

#[test]
fn a_followed_cluster_says_so_in_the_first_line() {
    let mut story = InterfaceStory::new(followed(LiveModel::default())).keys("0");
    assert!(story.lines()[0].ends_with("LIVE (shadow)"), "{}", story.lines()[0]);
    story.golden("live-shadow-80x24");
    let mut story = story.keys("L");
    story.golden("live-decisions-80x24");
    let text = story.text();
    assert!(text.contains("shop/web-7f: different") && text.contains("shop/api-1: tie"), "{text}");
    let frozen = LiveModel { frozen: true, waiting: 12, ..LiveModel::default() };
    let mut story = InterfaceStory::new(followed(frozen)).keys("2");
    assert!(story.lines()[0].ends_with("LIVE (frozen)"), "{}", story.lines()[0]);
    story.golden("live-frozen-80x24");
    let outage = Outage { what: "pods".into(), reason: "410".into(), retry_in: 4 };
    let lost = LiveModel { outage: Some(outage), ..LiveModel::default() };
    let mut story = InterfaceStory::new(followed(lost)).keys("2");
    let first = "0Cycle 1Time 2Queue 3Filter 4 5 6 7 8 9  RECONNECTING (pods: 410, retry in 4s)";
    assert_eq!(story.lines()[0].trim(), first);
}

#[test]
fn where_words_do_not_fit_plugins_have_signs_and_say_what_is_hidden() {
    LiveInterface::demo("tour").keys("n3").golden("filter-of-a-story-80x24");
    let mut live = LiveInterface::demo("tour").keys("n3O");
    let lines = live.lines();
    assert!(
        lines[2].contains("more columns ▸") || lines[2].contains("more column ▸"),
        "{}",
        lines[2]
    );
    assert!(lines[4].contains("Tai…") && lines[5].contains("Tol…"), "{}", live.text());
    assert!(live.text().contains("✗ no, ⊘ unres"), "the signs are explained: {}", live.text());
    // A cell says in words what its sign means, and of which plugin it is.
    let mut live = live.keys("lllllll");
    assert!(live.text().contains("✗ NodeResourcesFit on a-0: Unschedulable"), "{}", live.text());
    let mut live = live.keys("llllllllllll");
    assert!(live.lines()[2].contains("◂ "), "{}", live.lines()[2]);
    assert!(live.text().contains("NodeDeclaredFeatures on a-0"), "{}", live.text());
    // Words are looked for all the same.
    let mut live = live.keys("/skip<Enter>");
    assert!(live.lines()[2].contains("1/6 ─ /skip"), "{}", live.text());
    let mut live = live.keys("<Esc><Ctrl-w>hhhhhhhhhhhhhhhhh");
    assert!(live.text().contains("✓ pass"), "{}", live.text());
    LiveInterface::demo("tour").resized(120, 40).keys("n3").golden("filter-of-a-story-120x40");
    // Where there is no room for whole names, their last words tell the plugins apart.
    let mut small = LiveInterface::demo("tour").resized(60, 15).keys("n3O");
    assert!(small.text().contains("Uns… Name Tol… Aff… Por… Fit  Res…"), "{}", small.text());
}

#[test]
fn columns_for_wide_terminals_are_not_chosen_unseen() {
    let mut live = LiveInterface::demo("tour").keys("c1llllllllll");
    let lines = live.lines();
    assert!(lines[4].contains("pod") && lines[4].contains("message"), "{}", lines[4]);
    assert!(lines[2].contains("Ctrl-w: 2 more columns"), "{}", lines[2]);
}

#[test]
fn nominated_pods_and_the_room_kept_for_them_are_shown_on_their_node() {
    let mut live = LiveInterface::demo("preemption-budget").keys("n5");
    live.golden("nodes-nominated-80x24");
    let mut live = live.keys("/node-1<Enter>").resized(100, 30);
    let text = live.text();
    assert!(text.contains("default/payment (priority"), "{text}");
    assert!(text.contains("reserved") && text.contains("then free"), "{text}");
    let mut live = live.keys("2");
    assert!(live.text().contains("capacity is reserved on node-1"), "{}", live.text());
    let mut live = live.keys("n5<Esc>");
    assert!(!live.text().contains("nominated"), "it has its node: {}", live.text());
    let mut dump = LiveInterface::demo("preemption-budget").resized(120, 40).keys("nK");
    assert!(dump.text().contains("nominated: default/payment"), "{}", dump.text());
    assert!(dump.text().contains("the cache matches the API server"), "{}", dump.text());
}

#[test]
fn all_marked_waiting_pods_are_decided_about_at_once() {
    let held =
        |keys: &str| LiveInterface::demo("held-at-permit").resized(100, 30).keys("c7").keys(keys);
    let mut live = held("vjva");
    assert!(live.lines()[28].contains("allowed 2 pods: 2 bound to their nodes"), "{}", live.text());
    assert!(!live.lines()[2].contains("marked"), "{}", live.lines()[2]);
    let mut live = held("vjvxnot today<Enter>");
    let text = live.text();
    assert!(text.contains("rejected default/release-1 for ManualPermit"), "{text}");
    assert!(text.contains("rejected default/release-2 for ManualPermit"), "{text}");
    let mut live = held("vjv:allow Nobody<Enter>");
    assert!(live.text().contains("is not held by \"Nobody\""), "{}", live.text());
    assert!(live.lines()[2].contains("2 marked"), "{}", live.lines()[2]);
}

/// The session at the end of its last cycle, changed.
fn with_cycle(change: impl FnOnce(&mut CycleRecord)) -> InterfaceStory {
    let mut model = second_cycle();
    change(Arc::make_mut(model.cycles.last_mut().unwrap()));
    InterfaceStory::with(model, (200, 50), "dark", ColorDepth::Rgb, Charset::Unicode)
}

/// The rows and details of a story's screen.
fn screen(story: &mut InterfaceStory) -> String {
    story.lines().join("\n")
}

#[test]
fn extenders_that_score_have_a_column_and_are_in_the_sum() {
    let extended = |record: &mut CycleRecord| {
        let scores = vec![Some(9), Some(1), None];
        let extender = "extender http://e".into();
        record.score.extenders = vec![ExtenderColumn { extender, weight: 5, scores }];
        record.score.totals = vec![812, 412, 91].into();
        record.tied = 0;
    };
    let text = screen(&mut with_cycle(extended).keys("4llllllll"));
    assert!(text.contains("9→90→450") && text.contains("1→10→50"), "{text}");
    // The details wrap the sum.
    assert!(text.contains(" = 812"), "{text}");
    let arithmetic = "extender http://e: raw 9, normalized 90, × weight 5";
    assert!(text.contains(arithmetic), "{text}");
}

#[test]
fn nodes_that_an_extender_rejects_are_rejected_and_counted() {
    let extended = |record: &mut CycleRecord| {
        let extender = "extender http://e".into();
        record.filter.extenders = vec![extender];
        record.filter.extender =
            vec![(NodeId(0), Status::unschedulable("no licence").by(extender))];
    };
    let mut story = with_cycle(extended).keys("3");
    let text = screen(&mut story);
    let row = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
    assert!(text.contains("✗ 2"), "one by a plugin, one by the extender\n{text}");
    assert_eq!(row("  node-a").matches("✗ no").count(), 2, "{text}");
    assert_eq!(row("  node-b").matches("✗ no").count(), 0, "{text}");
    assert!(text.contains("by extender http://e: no licence"), "{text}");
}

#[test]
fn the_dry_run_shows_every_node_with_its_status() {
    let preempted = |record: &mut CycleRecord| {
        let mut statuses = NodeStatuses::default();
        let none = Status::unresolvable("No preemption victims found for incoming pod");
        statuses.set(NodeId(2), none);
        record.dry_run = Some(Arc::new(statuses));
        let victims = vec![pod("batch-1")];
        let (node, reasons) = ("node-a".into(), Vec::new());
        record.candidates = vec![Candidate { node, victims, pdb_violations: 0, reasons }];
    };
    let text = screen(&mut with_cycle(preempted).keys("8"));
    let row = |name: &str| text.lines().find(|line| line.contains(name)).unwrap_or_default();
    assert!(row("  node-a").contains("candidate        1        0 shop/batch-1"), "{text}");
    assert!(row("node-c").contains("⊘ unres"), "{text}");
    assert!(row("node-c").contains("No preemption victims found for incoming pod"), "{text}");
    assert!(row("node-e").contains("not tried"), "{text}");
}

#[test]
fn a_cycle_shows_its_group_and_the_quorum() {
    let grouped = |record: &mut CycleRecord| {
        let (group, min_count) = (pod("train"), Some(3));
        let (pods, scheduled_before, placed) = (4, 1, 1);
        record.group = Some(GroupRecord { group, min_count, pods, scheduled_before, placed });
    };
    let text = screen(&mut with_cycle(grouped).keys("0"));
    assert!(text.contains("train, quorum 3: 2 of 4 pods had found a node"), "{text}");
}
