//! How things look: order, signs, colours and room, the same in every view.

use std::fmt::Write as _;

use crate::tui::testing::{LiveInterface, session};
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::Color;

/// Nodes that are all alike, in one zone, and a pod.
fn alike(nodes: usize) -> String {
    let mut text = String::new();
    for at in 0..nodes {
        let _ = writeln!(
            text,
            "{{apiVersion: v1, kind: Node, metadata: {{name: node-{at:04}, labels: \
             {{topology.kubernetes.io/zone: zone-a}}}}, status: {{allocatable: {{cpu: '4', memory: \
             8Gi, pods: '10'}}}}}}\n---"
        );
    }
    text + "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: default}, spec: {containers: \
            [{name: c, resources: {requests: {cpu: '1'}}}]}}"
}

fn of_alike(nodes: usize, size: (u16, u16), keys: &str) -> LiveInterface {
    LiveInterface::new(session(&alike(nodes)), size).keys(keys)
}

fn tour(size: (u16, u16), keys: &str) -> LiveInterface {
    LiveInterface::demo("tour").resized(size.0, size.1).keys(keys)
}

/// The first line with these words.
fn line<'a>(text: &'a str, words: &str) -> &'a str {
    text.lines().find(|line| line.contains(words)).unwrap_or_else(|| panic!("{words}: {text}"))
}

/// The colour of the first character of these words on the screen, where they begin a line or a cell.
fn color_of(buffer: &Buffer, words: &str) -> Color {
    let lines = buffer.content.chunks(usize::from(buffer.area.width));
    let found = lines.into_iter().find_map(|cells: &[Cell]| {
        let text: String = cells.iter().map(Cell::symbol).collect();
        let at = text.find(words)?;
        Some(cells[text[..at].chars().count()].fg)
    });
    found.unwrap_or_else(|| panic!("{words}"))
}

#[test]
fn the_chosen_node_of_a_tie_is_the_first_row_and_few_others_are_named() {
    let mut live = of_alike(40, (120, 36), "n4");
    let text = live.text();
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("  node-")).collect();
    assert!(rows[0].contains("★ chosen") && !rows[0].contains("tie"), "{text}");
    assert!(rows[1..].iter().all(|row| row.contains("= tie")), "{text}");
    assert!(line(&text, "rank 1 of 40").contains("★ chosen of tie"), "{text}");
    let tie = line(&text, " tie      ");
    assert!(tie.contains("40 nodes: node-") && tie.ends_with(" and 37 more"), "{tie}");
}

#[test]
fn rejections_are_counted_by_kind_below_each_name_and_the_kinds_are_explained() {
    for size in [(80, 24), (120, 36), (200, 60)] {
        let text = tour(size, "n3").text();
        assert!(text.contains("✗ rejected  ⊘ rejected, preemption can't help"), "{text}");
        assert!(text.contains("⊘ 3 ✗ 3"), "of all nodes: {text}");
    }
    let mut live = tour((120, 36), "n3");
    let buffer = live.draw();
    assert_eq!(color_of(&buffer, "⊘ 3 ✗ 3"), color_of(&buffer, "⊘ unres"));
    let text = of_alike(3, (120, 36), "n3").text();
    assert!(!text.contains("preemption can't help"), "no such rejection: {text}");
}

#[test]
fn a_pod_has_one_sign_and_one_color_in_every_view() {
    let color = |keys: &str, words: &str| {
        let mut live = tour((120, 36), keys);
        live.interface.answer();
        color_of(&live.draw(), words)
    };
    let waiting = color("c1", "◷ Waiting");
    assert_eq!(waiting, color("c2", "◷ in flight"), "queues");
    assert_eq!(waiting, color("c6", "◷ waits for"), "pods");
    assert_eq!(waiting, color("c7", "default/release is pending"), "its sentence");
    let gated = color("c2", "◇ gated");
    assert_eq!(gated, color("c2jj", "default/gated is pending"));
    assert_eq!(color("n1", "✗ Unschedulable"), color("nn0", "✗✓"), "the strip of cycles");
    let mut groups = LiveInterface::demo("gang-short").resized(120, 36).keys("cgp");
    let text = groups.text();
    assert!(text.contains("◇ lonely-0: gated") && text.contains("◷ train-0: backoff"), "{text}");
    assert_eq!(color_of(&groups.draw(), "◇ lonely-0"), gated);
}

#[test]
fn names_above_scores_are_as_narrow_as_the_scores_at_every_size() {
    for size in [(80, 24), (120, 36), (200, 60)] {
        let text = tour(size, "nn4").text();
        // The rows, without the details beside them.
        let header = text.lines().skip(4).take(4).map(|line| line.chars().take(118).collect());
        let header: Vec<String> = header.filter(|line: &String| !line.contains('▒')).collect();
        assert!(header.iter().any(|line| line.contains("Allocation")), "{text}");
        let whole = "NodeResourcesBalancedAllocation";
        assert!(!header.iter().any(|line| line.contains(whole)), "{text}");
    }
}

#[test]
fn what_is_folded_is_named_as_far_as_it_fits_and_not_once_it_is_shown() {
    let text = tour((120, 36), "nn4").text();
    assert!(line(&text, "= on every node (O): ").contains("TaintToleration 300"), "{text}");
    assert!(tour((80, 24), "nn4").text().contains("= on every node (O): TaintToleration 300"));
    assert!(!tour((120, 36), "nn4O").text().contains("on every node (O)"));
}

#[test]
fn what_is_nominated_is_explained_and_has_a_number_and_no_hole() {
    let mut live = tour((120, 36), "nn5");
    let text = live.text();
    assert!(line(&text, "─ Nodes").contains("requested of allocatable, ▒ nominated"), "{text}");
    assert!(line(&text, "  b-0").contains("6% +75%"), "{text}");
    let buffer = live.draw();
    let row = buffer
        .content
        .chunks(120)
        .find(|cells| cells.iter().map(Cell::symbol).collect::<String>().starts_with("  b-0"));
    let row = row.unwrap();
    let hatched = row.iter().position(|cell| cell.symbol() == "▒").unwrap();
    assert_eq!(row[hatched - 1].bg, row[hatched].fg, "behind what is used is what is nominated");
    // On the selected row, too.
    let buffer = tour((120, 36), "nn5jj").draw();
    let selected = buffer
        .content
        .chunks(120)
        .find(|cells| cells.iter().map(Cell::symbol).collect::<String>().starts_with("  b-0"));
    let selected = selected.unwrap();
    assert_eq!(selected[hatched - 1].bg, selected[hatched].fg);
}

#[test]
fn bars_of_nodes_take_the_room_that_is_left() {
    let bar = |keys: &str, size| {
        let text = tour(size, keys).text();
        line(&text, "  b-1").chars().filter(|c| *c == '░').count() / 2
    };
    assert_eq!([(80, 24), (120, 36)].map(|size| bar("5", size)), [6, 20]);
    assert_eq!(bar("nn5", (120, 36)), 10, "numbers of nominated pods need some");
}

#[test]
fn a_map_is_narrow_where_it_is_not_whole_otherwise_and_says_what_is_below() {
    let spaced = of_alike(60, (80, 24), "n5H").text();
    assert!(line(&spaced, "zone-a").contains("▁ ▁ ▁"), "{spaced}");
    assert!(!spaced.contains("more line"), "{spaced}");
    let narrow = of_alike(600, (80, 24), "n5H").text();
    assert!(line(&narrow, "zone-a").contains("▁▁▁▁"), "{narrow}");
    assert!(!line(&narrow, "─ Nodes").contains("more line"), "{narrow}");
    let cut = of_alike(2_000, (80, 24), "n5H").text();
    assert!(line(&cut, "─ Nodes").contains("more lines"), "{cut}");
}

#[test]
fn queues_are_drawn_on_one_scale() {
    let text = tour((120, 36), "c2").text();
    let drawn = line(&text, "  active ");
    let backoff = drawn.split("backoff ").nth(1).unwrap().split(' ').next().unwrap();
    assert!(!backoff.contains('█') && backoff.contains('▂'), "1 of 8: {drawn}");
}
