//! What is drawn, folded and grouped: in every form, also where there are many nodes.

use std::fmt::Write as _;

use super::View as _;
use super::queues::QueuesView;
use crate::tui::color::ColorDepth;
use crate::tui::glyph::Charset;
use crate::tui::lines::as_text;
use crate::tui::model::Model;
use crate::tui::testing::{InterfaceStory, LiveInterface, model, session};
use kubestep_source::fixtures;
use ratatui::buffer::Cell;
use ratatui::style::Modifier;

/// 60 nodes in three zones, every third tainted, with two pods to schedule: a small one and one that
/// is larger than a node.
fn many() -> String {
    let mut text = String::new();
    for at in 0..60 {
        let zone = ["a", "b", "c"][at % 3];
        let taint = match at % 3 {
            0 => "taints: [{key: gpu, effect: NoSchedule}]",
            _ => "unschedulable: false",
        };
        let _ = writeln!(
            text,
            "apiVersion: v1\nkind: Node\nmetadata: {{name: node-{at:02}, labels: \
             {{topology.kubernetes.io/zone: zone-{zone}}}}}\nspec: {{{taint}}}\nstatus: \
             {{allocatable: {{cpu: '4', memory: 8Gi, pods: '10'}}}}\n---"
        );
    }
    for (name, cpu, priority) in [("small", "1", 2), ("large", "40", 1)] {
        let _ = writeln!(
            text,
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: default}}\nspec: \
             {{priority: {priority}, containers: [{{name: c, resources: {{requests: {{cpu: \
             '{cpu}'}}}}}}]}}\n---"
        );
    }
    text
}

fn of_many(size: (u16, u16), keys: &str) -> LiveInterface {
    LiveInterface::new(session(&many()), size).keys(keys)
}

#[test]
fn identical_rows_of_many_nodes_are_one_and_enter_unfolds_it() {
    let mut live = of_many((120, 40), "n3");
    let text = live.text();
    assert!(
        text.contains("▸ 40 nodes     ✓ pass") && text.contains("▸ 20 nodes     ⊘ unres"),
        "{text}"
    );
    assert!(live.lines()[2].contains("1/2"), "{text}");
    assert!(live.text().contains("40 nodes with the same verdicts"), "{text}");
    let mut live = live.keys("<Enter>");
    assert!(
        live.lines()[2].contains("1/42") && live.text().contains("▾ 40 nodes"),
        "{}",
        live.text()
    );
    assert!(live.keys("j").text().contains("  node-01"));
    // A node that no other is like is not folded.
    let mut live = of_many((120, 40), ":cordon node node-05<Enter>n3");
    let text = live.text();
    assert!(text.contains("\n  node-05        ⊘ unres"), "{text}");
    assert!(text.contains("▸ 39 nodes") && !text.contains("▸ 1 node"), "{text}");
    // What is filtered or sorted is every single node.
    let mut live = of_many((120, 40), "n3/node-07<Enter>");
    assert!(live.lines()[2].contains("1 of 60"), "{}", live.text());
    assert!(of_many((120, 40), "n3lo").lines()[2].contains("/60"));
}

#[test]
fn nodes_are_grouped_by_a_label_with_sums() {
    let mut live = of_many((120, 40), "nn5:group-by zone<Enter>");
    let text = live.text();
    assert!(text.contains("▸ zone-a (20)") && text.contains("▸ zone-c (20)"), "{text}");
    assert!(text.contains("1/80") && text.contains("0/80"), "the sums: {text}");
    let mut live = live.keys("<Enter>j");
    assert!(
        live.text().contains("▾ zone-a (20)") && live.text().contains("node-03"),
        "{}",
        live.text()
    );
    // Groups are sorted by their sums.
    let mut live = live.keys("ggllo");
    assert!(live.lines()[2].contains("/3"), "{}", live.text());
    assert!(live.keys("o:group-by none<Enter>").lines()[2].contains("/60"));
}

#[test]
fn the_map_has_a_cell_for_each_node_and_names_that_of_the_cursor() {
    let mut live = of_many((120, 40), "n5H");
    assert!(
        live.lines()[2].contains("map (H)") && live.text().contains("zone-b"),
        "{}",
        live.text()
    );
    assert!(live.text().contains("node-00: open"), "{}", live.text());
    let mut live = live.keys("jl");
    assert!(
        live.text().contains("node-04: open"),
        "the second of the second zone: {}",
        live.text()
    );
    // The edits and marks of the selected cell are about its node.
    assert!(live.keys("m").text().contains("cordon node node-04"));
    let mut live = of_many((120, 40), "n3H");
    assert!(live.text().contains("✓ passes  ✗ rejected"), "{}", live.text());
    assert!(live.keys("H").lines()[2].contains("1/2"), "rows again");
    assert!(of_many((120, 40), "n4H").text().contains("★ chosen"));
}

#[test]
fn the_funnel_shows_how_many_nodes_are_left() {
    let mut live = of_many((120, 40), "n0");
    assert!(
        live.lines()[3].contains("60 nodes ██████████ ▸ filter 40 ███████ ▸ scored 40"),
        "{}",
        live.text()
    );
    assert!(live.lines()[3].contains("▸ ★ node-"), "{}", live.text());
    let mut live = live.keys("n");
    assert!(live.lines()[3].contains("▸ filter 0 ▸ ✗ Unschedulable"), "{}", live.text());
    let selected = live.text();
    assert!(selected.contains("NodeResourcesFit at Filter: 0/60 pass"), "what decided: {selected}");
    // Before Filter is through, what it found is not known.
    let mut live = of_many((120, 40), "sss0");
    assert!(!live.lines()[3].contains("filter"), "{}", live.text());
}

#[test]
fn skipped_plugins_are_one_line_that_unfolds() {
    let mut live = LiveInterface::demo("tour").keys("n0");
    let folded = live.text();
    assert!(folded.contains("▸ 10 skipped"), "{folded}");
    let mut live = live.keys("ggjj<Enter>");
    assert!(
        live.text().contains("▾ 10 skipped") || live.text().contains("VolumeZone"),
        "{}",
        live.text()
    );
    assert!(live.keys("OO").text().contains("▸ 10 skipped"));
}

#[test]
fn preemption_has_a_bar_before_and_one_after() {
    let mut live = LiveInterface::demo("tour").resized(120, 44).keys("n8");
    let text = live.text();
    assert!(text.contains("cpu now") && text.contains("█ default/payment"), "{text}");
    assert!(text.contains("Candidate b-0, chosen"), "the cursor is on the node chosen: {text}");
    assert!(live.keys("1").text().contains("preempting batch-1 on b-0"));
}

#[test]
fn on_wide_terminals_the_answer_stands_beside_the_rows() {
    let mut live = LiveInterface::demo("affinity-typo").resized(200, 50).keys("c2");
    let wanted = |live: &LiveInterface| live.interface.app.wanted_answer(live.interface.model());
    assert!(wanted(&live).is_some() && live.interface.work_at().is_some());
    live.interface.answer();
    let text = live.text();
    assert!(text.contains("is pending:") && text.contains("you mean \"ssd\""), "{text}");
    assert_eq!(wanted(&live), None, "it is worked out once");
    assert_eq!(
        wanted(&LiveInterface::demo("affinity-typo").keys("c6")),
        None,
        "the terminal is narrow"
    );
}

#[test]
fn on_narrow_terminals_the_details_of_a_queued_pod_begin_with_the_answer() {
    let mut live = LiveInterface::demo("affinity-typo").resized(120, 36).keys("c2");
    live.interface.answer();
    assert!(live.text().contains("you mean \"ssd\""), "{}", live.text());
    // Its row has the cause, too; before it is worked out, the scheduler's words.
    let mut live = LiveInterface::demo("anti-affinity-deadlock").resized(120, 36).keys("c2");
    let row = |text: String| text.lines().find(|line| line.contains("5m00s")).unwrap().to_owned();
    assert!(row(live.text()).contains("3 didn't match pod anti-affinity"), "{}", live.text());
    assert!(live.interface.wants_answer());
    // A slice of time may be too short for all of it.
    while live.interface.wants_answer() {
        live.interface.answer();
    }
    assert!(row(live.text()).contains("anti-affinity: pods with"), "{}", live.text());
    assert!(!live.interface.wants_answer(), "each is worked out once");
    // Before the first cycle the details tell what one is looking at.
    let start = LiveInterface::demo("affinity-typo").keys("2");
    assert_eq!(start.interface.app.wanted_answer(start.interface.model()), None);
}

#[test]
fn the_answer_stands_below_every_view_of_a_pod_that_has_room() {
    for (keys, has_answer) in [
        ("1", true),
        ("3", true),
        ("4", true),
        ("6", true),
        ("8", true),
        ("5", false),
        ("9", false),
    ] {
        let mut live = LiveInterface::demo("tour").resized(120, 36).keys("nn").keys(keys);
        live.interface.answer();
        let text = live.text();
        assert_eq!(text.contains("default/web-0 is on b-0 (attempt 1)"), has_answer, "{text}");
    }
}

#[test]
fn names_of_plugins_are_whole_at_every_width() {
    for width in [80, 90, 100, 110, 115, 120, 160] {
        let text = LiveInterface::demo("tour").resized(width, 36).keys("nn4").text();
        assert!(!text.contains("more column"), "{text}");
        let header: Vec<&str> = text.lines().skip_while(|line| !line.contains("behind")).collect();
        let header: Vec<&str> =
            header.into_iter().take_while(|l| !l.starts_with("  b-0")).collect();
        let words: Vec<&str> = header.iter().flat_map(|line| line.split_whitespace()).collect();
        let letters = words.concat();
        for word in ["NodeResources", "Fit", "Balanced", "Allocation"] {
            assert!(letters.contains(word), "{width}: {word} in {header:?}");
        }
        assert!(!letters.contains('…'), "{header:?}");
    }
}

#[test]
fn a_node_lists_its_pods_with_what_they_request() {
    let text = LiveInterface::demo("tour").resized(80, 30).keys("c5").text();
    let pods: Vec<&str> =
        text.lines().skip_while(|line| !line.contains("2 of 110")).skip(1).take(2).collect();
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let pods: Vec<String> = pods.into_iter().map(words).collect();
    let expected =
        ["default/ingress cpu 1.5, memory 512Mi", "default/web-1 cpu 250m, memory 256Mi"];
    assert_eq!(pods, expected, "{text}");
}

#[test]
fn completions_take_a_third_of_the_screen() {
    for (height, more) in [(24, "35 more completions"), (36, "31 more completions")] {
        let text = LiveInterface::demo("tour").resized(100, height).keys("E").text();
        assert!(text.contains(more), "{text}");
    }
    // Places of breakpoints are known before the first cycle.
    let text = LiveInterface::demo("tour").keys(":break NodeR").text();
    assert!(text.contains("│ break NodeResourcesFit "), "{text}");
    let text = LiveInterface::demo("tour").keys(":next").text();
    assert!(
        text.contains("Step back over: the previous plugin, point or cycle at this d…"),
        "{text}"
    );
}

#[test]
fn the_matrix_says_how_many_pass_where_not_all_nodes_were_evaluated() {
    let mut live = LiveInterface::demo("tour").keys("c3");
    let header = live.lines()[4].clone();
    assert!(header.starts_with("        ✓ 1       ✓ 1"), "{}", live.text());
}

#[test]
fn a_row_names_the_last_attempt_of_a_pod_that_fits_by_now() {
    let row = |keys: &str| {
        let mut live = LiveInterface::demo("affinity-typo").keys(keys);
        while live.interface.wants_answer() {
            live.interface.answer();
        }
        let mut rows = live.lines().into_iter().skip(4);
        rows.find(|line| line.contains("default/database ")).unwrap()
    };
    assert!(row("c").contains("node affinity disktype=sdd"));
    let labelled = row("c:label node node-0 disktype=sdd<Enter>");
    assert!(labelled.contains(" last attempt: 3 didn't match"), "{labelled}");
    // A recreated pod was not tried yet.
    assert!(row("cX<Enter>").ends_with("• active    0"), "{}", row("cX<Enter>"));
}

#[test]
fn a_title_keeps_the_cycle_behind_a_long_name_of_a_pod() {
    let text =
        many().replace("name: small", "name: payment-gateway-reconciliation-worker-7d9f8b6c5d-x1");
    for (keys, title) in [("3", "Filter of "), ("4", "Scores of "), ("8", "Preemption for ")] {
        let mut live = LiveInterface::new(session(&text), (80, 24)).keys("n").keys(keys);
        let line = live.lines()[2].clone();
        assert!(line.contains(&format!("{title}default/p")), "{line}");
        assert!(line.contains("9f8b6c5d-x1 in cycle 1"), "{line}");
    }
}

#[test]
fn a_map_counts_nodes_not_its_lines() {
    let mut live = of_many((120, 40), "n5H");
    assert!(live.lines()[2].contains("─ 60 nodes ─ map (H)"), "{}", live.lines()[2]);
}

#[test]
fn extended_resources_have_columns_with_sums_where_there_is_room() {
    let node = |name: &str, more: &str| {
        format!(
            "{{apiVersion: v1, kind: Node, metadata: {{name: {name}, labels: {{team: {}}}}}, status: \
             {{allocatable: {{cpu: 4, memory: 8Gi, pods: 10{more}}}}}}}\n---\n",
            &name[..1]
        )
    };
    let gpus = ", nvidia.com/gpu: 4, example.com/none: 0";
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: default}, spec: {containers: \
               [{name: c, resources: {limits: {nvidia.com/gpu: 3}}}]}}";
    let cluster = [node("g-0", gpus), node("g-1", gpus), node("c-0", "")].concat() + pod;
    let of = |width: u16, keys: &str| {
        let mut live = LiveInterface::new(session(&cluster), (width, 30)).keys(keys);
        live.text()
    };
    let text = of(120, "n5");
    assert!(text.contains("pods gpu taints") && text.contains(" 1/10 3/4"), "{text}");
    assert!(!text.contains("none"), "{text}");
    assert!(of(120, "n5:group-by team<Enter>").contains(" 1/20 3/8"));
    assert!(!of(80, "n5").contains("gpu taints"));
    // The fullest first, those without it last.
    let sorted = of(120, "n5lllloo");
    let at = |name: &str| sorted.find(&format!("\n  {name} ")).unwrap();
    assert!(at("g-0").max(at("g-1")) < at("c-0"), "{sorted}");
}

#[test]
fn few_points_are_no_bar_of_full_length() {
    let node = |name: &str, images: &str| {
        format!(
            "{{apiVersion: v1, kind: Node, metadata: {{name: {name}}}, status: {{allocatable: {{cpu: \
             4, memory: 8Gi, pods: 10}}, images: [{images}]}}}}\n---\n"
        )
    };
    let image = "{names: ['reg.example/app:1'], sizeBytes: 300000000}";
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: default}, spec: {containers: \
               [{name: c, image: 'reg.example/app:1'}]}}";
    let cluster = format!("{}{}{pod}", node("a", image), node("b", ""));
    let text = LiveInterface::new(session(&cluster), (120, 36)).keys("n4").text();
    let row = text.lines().find(|line| line.trim_start().starts_with("a ")).unwrap();
    assert_eq!(row.chars().filter(|c| *c == '█').count(), 19, "12 of 25 points: {text}");
}

#[test]
fn bars_keep_their_filling_on_the_selected_line_without_colours() {
    let look = ("dark", ColorDepth::None, Charset::Unicode);
    let mut story = InterfaceStory::with(model(), (120, 36), look.0, look.1, look.2).keys("5");
    let buffer = story.draw();
    let is_bar = |cell: &&Cell| cell.symbol().starts_with(['█', '░']);
    assert!(buffer.content.iter().filter(is_bar).count() > 0);
    let mut bars = buffer.content.iter().filter(is_bar);
    assert!(bars.all(|cell| !cell.modifier.contains(Modifier::REVERSED)));
}

#[test]
fn drawings_are_read_without_colours_and_in_ascii() {
    for keys in ["4", "5", "1", "2", "8", "0", "5H", "3H", "4H"] {
        let frame = |depth, charset| {
            InterfaceStory::with(model(), (120, 36), "dark", depth, charset).keys(keys).text()
        };
        let ascii = frame(ColorDepth::Rgb, Charset::Ascii);
        assert!(ascii.is_ascii() && !ascii.replace("? help", "").contains('?'), "{keys}: {ascii}");
        let (plain, colored) =
            (frame(ColorDepth::None, Charset::Unicode), frame(ColorDepth::Rgb, Charset::Unicode));
        assert_eq!(plain, colored, "{keys}");
    }
}

#[test]
fn nodes_that_are_no_candidates_are_grouped_and_lead_to_what_blocks_them() {
    let mut text = many();
    for at in (0..60).filter(|at| at % 3 > 0) {
        let priority = if at == 1 { -1 } else { 9 };
        let _ = writeln!(
            text,
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: busy-{at:02}, namespace: default}}\nspec: \
             {{priority: {priority}, nodeName: node-{at:02}, containers: [{{name: c, resources: \
             {{requests: {{cpu: '1'}}}}}}]}}\n---"
        );
    }
    let text = text.replace("cpu: '40'", "cpu: '4'").replace("priority: 1,", "priority: 9,");
    let mut live = LiveInterface::new(session(&text), (120, 40)).keys("n8");
    let shown = live.text();
    assert!(shown.contains("★ chosen         1        0 default/busy-01"), "{shown}");
    assert!(shown.contains("▸ 39 nodes") && shown.contains("▸ 20 nodes"), "{shown}");
    let mut live = live.keys("j<Enter>j");
    assert!(live.text().contains("is not a candidate"), "{}", live.text());
    let mut live = live.keys("<Enter>");
    assert!(live.text().contains("default/large on node-0"), "{}", live.text());
    assert!(live.text().contains("TaintToleration: "), "{}", live.text());
    // A filter is about every single node.
    let mut live = live.keys("<Esc>/node-00<Enter>");
    assert!(live.lines()[2].contains("1 of 60"), "{}", live.text());
}

#[test]
fn the_matrix_counts_the_room_that_is_reserved_for_nominated_pods() {
    let pod = |name: &str, priority: i32, cpu: u32, more: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: default}}\nspec: \
             {{priority: {priority}, {more} containers: [{{name: c, resources: {{requests: {{cpu: \
             '{cpu}'}}}}}}]}}\n---\n"
        )
    };
    let node = "apiVersion: v1\nkind: Node\nmetadata: {name: only}\nstatus: {allocatable: {cpu: '2', \
                pods: '10'}}\n---\n";
    let cluster = node.to_owned()
        + &pod("victim", -1, 2, "nodeName: only,")
        + &pod("boss", 10, 2, "")
        + &pod("small", 0, 1, "");
    let mut live = LiveInterface::new(session(&cluster), (120, 30)).keys("nn3lll");
    let text = live.text();
    assert!(text.contains("Filter of default/small in cycle 2"), "{text}");
    let row = live.lines().into_iter().find(|line| line.contains("only ")).unwrap();
    assert_eq!(row.matches("✗ no").count(), 2, "the verdict and its plugin: {text}");
    let live = live.keys("0");
    let text = { live }.text();
    assert!(text.contains("NodeResourcesFit  0/1 pass"), "{text}");
}

#[test]
fn the_first_screen_says_what_the_program_and_the_story_are() {
    for story in fixtures::STORIES {
        let model = Model { source: story.source(), ..Model::default() };
        let text = as_text("", &QueuesView(&model).detail_without_rows());
        assert!(text.contains("the debugger for Kubernetes scheduling"), "{text}");
        assert!(text.contains(story.about), "{text}");
        let commands = story.example().join(", :");
        assert!(text.contains(&format!("r: the whole story: :{commands}")), "{text}");
    }
    let model = Model { source: "cluster.yaml".into(), ..Model::default() };
    let text = as_text("", &QueuesView(&model).detail_without_rows());
    assert!(text.contains("scheduling: cluster.yaml"), "{text}");
    assert!(!text.contains("the whole story"), "{text}");
    assert!(text.contains("E: change the cluster") && !text.contains("n  s  c"), "{text}");
    let mut pending = LiveInterface::demo("tour");
    assert!(pending.text().contains("n  s  c       run the next cycle"), "{}", pending.text());
}
