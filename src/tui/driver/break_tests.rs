//! Breakpoints and watches as a person uses them, on the built-in stories.

use crate::tui::testing::LiveInterface;
use crate::tui::view::ViewId;

fn status(live: &mut LiveInterface) -> String {
    live.lines()[22].trim_end().to_owned()
}

fn crumbs(live: &mut LiveInterface) -> String {
    live.lines()[1].trim_end().to_owned()
}

/// A story on a wide screen, where sentences fit.
fn wide(name: &str) -> LiveInterface {
    LiveInterface::wide(name)
}

#[test]
fn continue_stops_at_a_breakpoint_forward_and_back() {
    let mut live = wide("tour").keys(":break on:preemption<Enter>");
    assert!(live.text().contains("breakpoint 1: on:preemption; 0 hits in the recording"));
    let mut live = live.keys("c");
    assert!(
        live.text().contains("breakpoint 1 (on:preemption), hit 1: cycle 1 of default/payment")
    );
    assert!(live.text().contains("▸ PostFilter ▸ DefaultPreemption"), "{}", live.text());
    assert_eq!(live.interface.app.view(), ViewId::Cycle);
    let mut live = live.keys("c");
    assert!(live.text().contains("ran; idle"));
    let mut live = live.keys("C");
    assert!(live.text().contains("breakpoint 1 (on:preemption), hit 1"));
    assert!(live.keys("C").text().contains("this is the beginning"));
}

#[test]
fn a_step_over_a_breakpoint_stops_at_it() {
    let mut live = wide("tour").keys(":break Filter/TaintToleration<Enter>n");
    assert!(live.text().contains("▸ Filter ▸ TaintToleration"), "{}", live.text());
    let mut live = live.keys("}");
    assert!(live.text().contains("hit 2: cycle 2"), "{}", live.text());
    let mut live = live.keys("{{");
    assert!(live.text().contains("hit 1: cycle 1"), "{}", live.text());
}

/// A breakpoint with several hits in a cycle: the list counts as the message does.
#[test]
fn the_list_counts_hits_as_the_message_of_a_stop() {
    let mut live = wide("tour").keys(":break Filter if verdict != 'Success'<Enter>cc");
    assert!(live.text().contains("hit 2: "), "{}", live.text());
    let mut live = live.keys("B");
    assert!(live.text().contains("2 up to here"), "{}", live.text());
}

#[test]
fn break_here_sets_and_removes_at_the_selected_row() {
    let mut live = wide("tour").keys("5b");
    assert!(live.text().contains("breakpoint 1: node:"), "{}", live.text());
    let marked =
        |live: &mut LiveInterface| live.lines().iter().filter(|l| l.starts_with('●')).count();
    assert_eq!(marked(&mut live), 1);
    let mut live = live.keys("b");
    assert!(live.text().contains("removed"));
    assert_eq!(marked(&mut live), 0);
    let mut live = live.keys("n0kb");
    assert!(live.text().contains("breakpoint 2: "), "{}", live.text());
    assert!(live.keys("3llb").text().contains("breakpoint 3: Filter/"));
    assert!(wide("tour").keys("nB").keys("b").text().contains("no breakpoint can sit"));
}

#[test]
fn the_list_shows_hits_and_values_and_edits() {
    let keys = "c:break TaintToleration log<Enter>:watch queue:unschedulable<Enter>B";
    let mut live = LiveInterface::demo("tour").keys(keys);
    live.golden("breakpoints");
    let mut live = live.keys("ja");
    assert!(live.text().contains("breakpoint 2 is off"));
    let mut live = live.keys("k<Enter>");
    assert!(live.text().contains("break-edit 1 TaintToleration log"), "{}", live.text());
    let mut live = live.keys("<Ctrl-u>break-edit 1 Filter if feasible == 0<Enter>");
    let said = status(&mut live);
    assert!(said.contains("breakpoint 1: Filter if feasible == 0; 3 hits"), "{said}");
    let mut live = live.keys("x");
    assert!(status(&mut live).contains("breakpoint 1 removed"));
    assert_eq!(live.interface.driver.model().breakpoints.len(), 1);
}

#[test]
fn a_watch_stops_where_its_value_changes() {
    let mut live = wide("tour").keys(":watch node:b-0 cpu<Enter>c");
    let text = live.text();
    assert!(text.contains("watch 1 (node:b-0 cpu), hit 1") && text.contains("→"), "{text}");
}

#[test]
fn logging_breakpoints_leave_messages() {
    let mut live = wide("tour").keys(":break on:scheduled log<Enter>cM");
    assert!(live.text().matches("(on:scheduled log), hit").count() >= 3, "{}", live.text());
}

#[test]
fn time_that_passes_stops_at_queue_moves() {
    let mut live = wide("tour").keys("c:break if from == 'unschedulable'<Enter>");
    for _ in 0..4 {
        live = live.keys("+");
        if live.text().contains("breakpoint 1 (if from") {
            assert!(crumbs(&mut live).contains("unschedulable →"), "{}", crumbs(&mut live));
            return;
        }
    }
    panic!("{}", live.text());
}

#[test]
fn breakpoints_are_saved_and_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("breaks.yaml");
    let name = file.display();
    let keys =
        format!(":break Filter if attempts > 2<Enter>:watch pod:a<Enter>:break save {name}<Enter>");
    let mut live = wide("tour").keys(&keys);
    assert!(live.text().contains("saved 2 breakpoints and watches"), "{}", live.text());
    let mut live = wide("tour").keys(&format!(":break load {name}<Enter>B"));
    assert!(
        live.text().contains("Filter if attempts > 2") && live.text().contains("pod:default/a")
    );
    std::fs::write(&file, "breakpoints:\n- break: Filtre\n").unwrap();
    let mut live = live.keys(&format!(":break load {name}<Enter>"));
    assert!(live.text().contains("did you mean \"Filter\"?"));
    assert_eq!(live.interface.driver.model().breakpoints.len(), 2);
}

#[test]
fn mistakes_and_completion() {
    let mut live = wide("tour").keys(":break Filter if feasable == 0<Enter>");
    assert!(live.text().contains("did you mean \"feasible\"?"));
    let mut live = live.keys(":break on:pre<Tab><Enter>");
    assert!(live.text().contains("breakpoint 1: on:preemption"), "{}", live.text());
    let mut live = live.keys(":break off 9<Enter>");
    assert!(live.text().contains("there is no breakpoint 9"));
    let mut live = live.keys(":watch node:b-0 cpuu<Enter>");
    assert!(live.text().contains("no node has the resource \"cpuu\"; did you mean \"cpu\"?"));
    assert!(live.keys(":watch node<Enter>").text().contains("a watch has the form"));
}

#[test]
fn going_on_at_the_end_never_leads_back() {
    let mut live = wide("tour").keys(":break Reserve<Enter>ccccc");
    assert!(crumbs(&mut live).contains("cycle 8 default/payment ▸ Reserve"), "{}", live.text());
    // From here there is only the rest of the last cycle; then nothing is left, however often
    // one asks.
    for _ in 0..3 {
        live = live.keys("c");
        assert!(live.text().contains(" idle; +"), "{}", live.text());
        let crumbs = crumbs(&mut live);
        assert!(crumbs.contains("cycle 8 default/payment"), "{crumbs}");
        assert!(!crumbs.contains("▸ Reserve"), "{crumbs}");
    }
    let mut live = live.keys("C");
    assert!(crumbs(&mut live).contains("cycle 8 default/payment ▸ Reserve"), "{}", live.text());
}

#[test]
fn an_unschedulable_pod_stops_where_its_nodes_were_rejected() {
    let mut live = wide("tour").keys(":break pod:database on:unschedulable<Enter>c");
    let text = live.text();
    assert!(crumbs(&mut live).contains("cycle 5 default/database ▸ Filter  "), "{text}");
    assert!(text.contains("hit 1: cycle 5 of default/database, Filter"), "{text}");
}

#[test]
fn a_watch_on_a_pod_says_where_it_is() {
    let watched = ":watch pod:default/web-0 show<Enter>:watch pod:default/release show<Enter>";
    let mut live = wide("tour").keys(watched).keys("cB");
    assert!(live.text().contains("pod:default/web-0 show = on b-0"), "{}", live.text());
    assert!(live.text().contains("pod:default/release show = waits for b-0"), "{}", live.text());
    let mut live = live.keys("7AB");
    assert!(live.text().contains("pod:default/release show = on b-0"), "{}", live.text());
}
