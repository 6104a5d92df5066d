//! Looking at cycles and stepping on: what is shown, and where the debugger stays.

use crate::tui::testing::LiveInterface;
use crate::tui::view::ViewId;
use kubestep_debug::Position;

fn place(live: &LiveInterface) -> (usize, Position) {
    let session = live.interface.driver.session();
    (session.stop_index(), session.position())
}

#[test]
fn after_n_s_steps_into_the_next_cycle_and_back_into_the_one_that_was_run() {
    let mut live = LiveInterface::demo("tour").keys("n");
    assert!(live.lines()[1].starts_with(" cycle 1 default/payment  "), "{}", live.lines()[1]);
    let end = place(&live);
    live = live.keys("s");
    assert!(live.lines()[1].starts_with(" cycle 2 default/web-0 "), "{}", live.lines()[1]);
    live = live.keys("S");
    assert!(live.lines()[1].starts_with(" cycle 1 default/payment ▸ "), "{}", live.lines()[1]);
    // From its last event a step leads on again; `N` and `s` go through the cycle from its beginning.
    live = live.keys("s");
    assert!(live.lines()[1].starts_with(" cycle 2 default/web-0 "), "{}", live.lines()[1]);
    live = live.keys("F");
    assert_eq!(place(&live), end);
    live = live.keys("Nss");
    assert!(live.lines()[1].contains("cycle 1 default/payment ▸ PreFilter"), "{}", live.lines()[1]);
}

#[test]
fn where_nothing_is_left_a_step_says_so_and_stays() {
    let mut live = LiveInterface::demo("tainted").keys("c");
    let here = place(&live);
    live = live.keys("s");
    assert_eq!(place(&live), here);
    assert!(live.lines()[22].contains("idle"), "{}", live.lines()[22]);
}

#[test]
fn a_view_of_a_cycle_shows_that_of_the_selected_row_and_esc_returns() {
    let mut live = LiveInterface::wide("tour").keys("c6/web-0<Enter>");
    let here = place(&live);
    for (key, title) in [
        ("3", "Filter of default/web-0 in cycle 2"),
        ("4", "Scores of default/web-0 in cycle 2"),
        ("8", "Preemption for default/web-0 in cycle 2"),
        ("0", "Cycle 2 of default/web-0"),
    ] {
        live = live.keys(key);
        assert!(live.lines()[2].contains(title), "{}", live.lines()[2]);
        assert!(live.lines()[1].contains("inspecting cycle 2 of default/web-0"), "{}", live.text());
        assert_eq!(place(&live), here);
        live = live.keys("<Esc>");
        assert_eq!((live.interface.app.view(), place(&live)), (ViewId::Pods, here));
        assert!(live.lines()[1].starts_with(" cycle 8 "), "{}", live.lines()[1]);
        assert!(
            live.text().contains("default/web-0: on b-0"),
            "it stays selected: {}",
            live.text()
        );
    }
    let mut live = live.keys("1gg8");
    assert!(live.lines()[2].contains("Preemption for default/payment in cycle 1"));
    live = live.keys("<Esc>");
    assert_eq!(live.interface.app.view(), ViewId::Timeline);
    // The cycle in which the debugger stands needs no inspection, and Esc leads to the list as well.
    live = live.keys("G3");
    assert!(live.lines()[2].contains("in cycle 8"), "{}", live.lines()[2]);
    assert!(!live.lines()[1].contains("inspecting"), "{}", live.lines()[1]);
    assert_eq!(live.keys("<Esc>").interface.app.view(), ViewId::Timeline);
}

#[test]
fn without_a_selection_a_view_of_a_cycle_shows_that_of_the_debugger() {
    let mut live = LiveInterface::demo("tour").keys("nn4");
    assert!(live.lines()[2].contains("Scores of default/web-0 in cycle 2"), "{}", live.lines()[2]);
    // A selection counts until the debugger moves.
    let mut live = LiveInterface::demo("tour").keys("n1ggn3");
    assert!(live.lines()[2].contains("in cycle 2"), "{}", live.lines()[2]);
    let mut live = LiveInterface::demo("tour").keys("n2gg3");
    assert!(live.lines()[22].contains("had no cycle yet"), "{}", live.text());
}

#[test]
fn enter_on_a_candidate_opens_its_line_of_the_answer() {
    let mut live = LiveInterface::wide("preemption-budget").keys("n8j");
    let node = live.text().lines().nth(5).unwrap().split_whitespace().next().unwrap().to_owned();
    live = live.keys("<Enter>");
    assert_eq!(live.interface.app.view(), ViewId::Why, "{}", live.text());
    let (row, column) = {
        let app = &live.interface.app;
        (app.selected_row().unwrap(), app.selected_column().unwrap())
    };
    let details = live.interface.app.source(live.interface.model()).detail(row, column);
    assert!(details[0].text.starts_with(&format!("{node}: 1 victim")), "{node}: {details:?}");
    assert!(live.text().contains("(priority "), "its victims are unfolded: {}", live.text());
}

#[test]
fn what_is_dimmed_comes_after_the_step_and_the_title_says_so() {
    let mut live = LiveInterface::demo("tour").keys("ss0");
    assert!(live.lines()[2].contains("dimmed: after this step"), "{}", live.lines()[2]);
    live = live.keys("F{n0");
    assert!(!live.text().contains("dimmed"), "{}", live.text());
}

#[test]
fn beside_a_window_nothing_of_the_view_is_left() {
    for size in [(160, 50), (200, 60)] {
        let mut live = LiveInterface::wide("tour").resized(size.0, size.1).keys("c2W");
        let lines = live.lines();
        let top = lines.iter().position(|line| line.contains('┌')).unwrap();
        let bottom = lines.iter().position(|line| line.contains('└')).unwrap();
        for line in &lines[top..=bottom] {
            let framed = line.trim().chars();
            let ends = (framed.clone().next(), framed.last());
            assert!(matches!(ends, (Some('┌' | '│' | '└'), Some('┐' | '│' | '┘'))), "{line}");
        }
    }
}
