//! The interface on real sessions: the built-in stories from their beginning to their end.

use crate::tui::sanitize;
use crate::tui::testing::{LiveInterface, session};
use crate::tui::view::ViewId;
use kubestep_source::fixtures;

#[test]
fn stepping_goes_forward_and_back_through_the_same_positions() {
    let mut live = LiveInterface::demo("tour");
    let crumbs = |live: &mut LiveInterface| live.lines()[1].clone();
    let mut seen = Vec::new();
    for _ in 0..60 {
        seen.push(crumbs(&mut live));
        live = live.keys("s");
    }
    for expected in seen.iter().rev() {
        live = live.keys("S");
        let now = crumbs(&mut live);
        // The clock of an earlier position is that cycle's own.
        let place = |line: &str| line.split("  ").next().unwrap().to_owned();
        assert_eq!(place(&now), place(expected));
    }
}

#[test]
fn the_first_s_and_the_first_n_differ_and_the_queues_are_those_of_the_step() {
    let mut into = LiveInterface::demo("tour").keys("s");
    assert!(into.lines()[1].contains("active → in flight"), "{}", into.lines()[1]);
    let mut over = LiveInterface::demo("tour").keys("n");
    assert!(over.lines()[1].starts_with(" cycle 1 default/payment  "), "{}", over.lines()[1]);
    assert_eq!(over.interface.app.view(), ViewId::Queues);
    assert!(into.text().contains("in flight 1"), "{}", into.text());
    assert!(
        over.text().contains("in flight 0, nominated 1") || over.text().contains("in flight 0")
    );
}

#[test]
fn nodes_within_a_cycle_are_those_of_the_step_and_watches_too() {
    let row = |live: &mut LiveInterface| {
        let text = live.text();
        text.lines().find(|line| line.contains(" b-0 ")).unwrap_or_default().to_owned()
    };
    // Stopped in PreFilter nothing is preempted yet; after the cycle it is.
    let mut live = LiveInterface::demo("tour").keys(":watch node:b-0 cpu show<Enter>ss5");
    assert!(live.lines()[1].contains("PreFilter"), "{}", live.lines()[1]);
    let before = row(&mut live);
    assert!(!live.text().contains("nominated"), "{}", live.text());
    let watched = |live: &mut LiveInterface| {
        let text = live.text();
        text.lines().find(|line| line.contains("node:b-0 cpu")).unwrap_or_default().to_owned()
    };
    live = live.keys("B");
    let value = watched(&mut live);
    live = live.keys("5f");
    assert!(live.text().contains("nominated"), "{}", live.text());
    assert_ne!(row(&mut live), before);
    live = live.keys("B");
    assert_ne!(watched(&mut live), value);
}

#[test]
fn looking_at_a_cycle_never_moves_the_debugger_and_t_does() {
    let mut live = LiveInterface::demo("tour").keys("c");
    let place = |live: &LiveInterface| {
        let session = live.interface.driver.session();
        (session.stop_index(), session.position())
    };
    let (here, idle) = (place(&live), live.lines()[0].ends_with("IDLE"));
    assert!(idle);
    live = live.keys("1gg<Enter>");
    assert_eq!((live.interface.app.view(), place(&live)), (ViewId::Cycle, here));
    assert!(live.lines()[1].contains("inspecting cycle 1 of default/payment"), "{}", live.text());
    assert!(live.lines()[0].ends_with("IDLE"), "{}", live.lines()[0]);
    live = live.keys("3");
    assert!(live.text().contains("Filter of default/payment in cycle 1"), "{}", live.text());
    live = live.keys("<Esc>");
    assert_eq!((live.interface.app.view(), place(&live)), (ViewId::Timeline, here));
    assert!(live.lines()[1].starts_with(" cycle 8 "), "{}", live.lines()[1]);
    live = live.keys("t");
    assert_ne!(place(&live), here);
    assert!(live.lines()[0].ends_with("REPLAY"), "{}", live.lines()[0]);
}

#[test]
fn stepping_into_nodes_shows_the_matrix_and_out_the_overview() {
    let live = LiveInterface::demo("tainted").keys("s");
    assert_eq!(live.interface.app.view(), ViewId::Queues);
    let mut live = live.keys("s");
    assert_eq!(live.interface.app.view(), ViewId::Cycle);
    for _ in 0..80 {
        if live.interface.app.view() == ViewId::Filter {
            break;
        }
        live = live.keys("s");
    }
    assert_eq!(live.interface.app.view(), ViewId::Filter);
    assert!(live.text().contains("▶ "));
    assert_eq!(live.keys("f").interface.app.view(), ViewId::Cycle);
}

#[test]
fn the_first_key_is_named_and_the_end_says_what_helps() {
    let mut live = LiveInterface::demo("tainted");
    assert!(live.lines()[22].contains("s steps into the first cycle"));
    let mut live = live.keys("c");
    assert!(live.lines()[0].ends_with("IDLE"));
    assert!(live.lines()[22].contains("idle; + advances"), "{}", live.lines()[22]);
    let mut live = live.keys("C");
    assert!(live.lines()[0].ends_with("IDLE") || live.lines()[0].ends_with("REPLAY"));
    assert!(live.keys("SS").lines()[22].contains("this is the beginning"));
}

#[test]
fn a_pod_that_can_be_popped_from_backoff_is_no_end() {
    let mut live = LiveInterface::demo("preemption-budget").keys("n");
    assert!(live.lines()[0].ends_with("PAUSED"), "{}", live.lines()[0]);
    let mut live = live.keys("n");
    assert!(live.lines()[0].ends_with("IDLE"), "{}", live.lines()[0]);
    assert!(live.lines()[22].contains("cycle 2 of default/payment: Scheduled"));
}

#[test]
fn a_held_pod_is_allowed_from_the_waiting_view() {
    let mut live = LiveInterface::demo("held-at-permit").keys("c7");
    let text = live.text();
    assert!(text.contains("default/release-1") && text.contains("ManualPermit"), "{text}");
    let mut live = live.keys("A");
    assert!(live.lines()[22].contains("allowed default/release-1 for all plugins"));
    assert!(!live.lines()[4].contains("release-1"));
    assert!(live.keys("6/release-1<Enter>").text().contains("on node-0"));
}

#[test]
fn a_held_pod_is_rejected_with_a_message_that_its_cycle_keeps() {
    let mut live = LiveInterface::demo("held-at-permit").keys("c7xnot today<Enter>");
    assert!(live.lines()[22].contains("rejected default/release-1 for ManualPermit"));
    let mut live = live.keys(":cycle 1<Enter>0d");
    assert!(live.text().contains("not today"), "{}", live.text());
}

#[test]
fn time_passes_to_the_next_timer() {
    let mut live = LiveInterface::demo("tainted").keys("c+");
    assert!(live.lines()[22].contains(" passed; "), "{}", live.lines()[22]);
    let mut live = live.keys(":advance 10s<Enter>");
    assert!(live.lines()[22].contains("10s passed"), "{}", live.lines()[22]);
}

#[test]
fn a_pod_that_nobody_serves_is_named_in_the_pods_view() {
    let mut live = LiveInterface::demo("wrong-scheduler").keys("c6z");
    assert!(live.text().contains("no profile serves it"), "{}", live.text());
}

#[test]
fn a_pod_that_nobody_serves_is_seen_where_one_looks_first() {
    let mut live = LiveInterface::demo("wrong-scheduler").keys("c");
    let text = live.text();
    assert!(text.contains("default/analytics") && text.contains("! not served"), "{text}");
    assert!(text.contains("serves the scheduler name \"volcanoo\""), "{text}");
    let mut live = live.resized(120, 40).keys("W");
    assert!(live.text().contains("the pod is in no queue"), "{}", live.text());
}

#[test]
fn every_story_can_be_walked_through_every_view() {
    for story in fixtures::STORIES {
        let mut live = LiveInterface::demo(story.name).keys("ssssc");
        for view in ViewId::with_digit() {
            live = live.keys(&format!("{}Gd<Esc>ggllz", view.key()));
            let buffer = live.draw();
            let clean = buffer.content.iter().all(|c| c.symbol().chars().all(sanitize::is_safe));
            assert!(clean, "{}", story.name);
            live = live.keys("z");
        }
        let mut live = live.keys("C}}{nnNNffFF.");
        assert!(
            live.text().contains("cycle")
                || story.name == "wrong-scheduler"
                || story.name == "gated"
        );
    }
}

#[test]
fn running_on_ends_where_a_gang_is_tried_in_a_circle() {
    let mut live = LiveInterface::demo("gang-short").keys("c");
    assert!(live.text().contains("IDLE"), "{}", live.text());
    assert!(live.text().contains("was tried 5 times and nothing changed"), "{}", live.text());
    let mut live = live.keys("+");
    assert!(!live.text().contains("nothing changed"), "{}", live.text());
}

/// The rows of the view on screen, without the frame around them. Columns are as wide as the widest
/// text of the whole run, so what is between them does not count.
fn body(live: &mut LiveInterface) -> Vec<String> {
    let words = |line: &String| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines = live.lines();
    let rows = lines[3..].iter().take_while(|line| !line.starts_with("─ Details"));
    rows.map(words).collect()
}

#[test]
fn the_views_of_the_cluster_show_it_as_it_was_at_the_position() {
    for view in ["2", "5", "6", "7"] {
        let mut live = LiveInterface::demo("tour").keys(view);
        let mut seen = vec![body(&mut live)];
        for _ in 0..6 {
            live = live.keys("n");
            seen.push(body(&mut live));
        }
        assert!(view == "7" || seen.first() != seen.last(), "{view}: nothing changes");
        for (at, expected) in seen.iter().enumerate().rev().skip(1) {
            live = live.keys("N");
            assert_eq!(body(&mut live), *expected, "view {view} after step {at}");
            let title = live.lines()[2].clone();
            let note = if at == 0 { "as loaded".into() } else { format!("as of cycle {at}") };
            assert!(title.contains(&note), "{title}");
        }
        let mut live = live.keys("c");
        assert!(!live.lines()[2].contains("as of"), "{}", live.lines()[2]);
    }
}

#[test]
fn what_followed_a_cycle_is_stepped_through_in_the_events() {
    let mut live = LiveInterface::demo("tainted");
    for _ in 0..400 {
        if live.interface.app.view() == ViewId::Events {
            break;
        }
        live = live.keys("s");
    }
    assert_eq!(live.interface.app.view(), ViewId::Events, "{}", live.text());
    let current = live.lines().into_iter().find(|line| line.contains('▶')).unwrap();
    let crumbs = live.lines()[1].clone();
    assert!(crumbs.contains("event of") || crumbs.contains("move of"), "{crumbs} {current}");
}

#[test]
fn a_row_of_the_events_is_a_place_to_run_to() {
    let mut live = LiveInterface::demo("tour").keys("c9ggjjjt");
    assert!(live.lines()[0].ends_with("REPLAY"), "{}", live.text());
    let mut live = live.keys("G9Gt");
    assert!(live.lines()[1].contains("event of"), "{}", live.text());
}

#[test]
fn a_new_future_starts_in_the_past() {
    let mut live = LiveInterface::demo("tour").keys("c1");
    let cycles = body(&mut live).iter().filter(|line| line.contains("default/")).count();
    let mut live = live.keys(":cycle 2<Enter>:continue-here<Enter>");
    assert!(live.lines()[22].contains(":branch future-1"), "{}", live.lines()[22]);
    assert!(live.lines()[0].ends_with("PAUSED") || live.lines()[0].ends_with("IDLE"));
    assert!(body(&mut live).iter().filter(|line| line.contains("default/")).count() < cycles);
    let mut again = live.keys("c");
    assert_eq!(body(&mut again).iter().filter(|line| line.contains("default/")).count(), cycles);
    let mut live = again.keys(":continue-here<Enter>");
    assert!(live.lines()[22].contains("nothing"), "{}", live.lines()[22]);
    let mut live = live.keys(":break on:error<Enter>:branch<Enter>");
    assert!(live.text().contains("  future-1, from original"), "{}", live.text());
    let mut live = live.keys("<Esc>:branch future-1<Enter>");
    assert!(live.lines()[1].contains("[future-1]"), "{}", live.lines()[1]);
    assert!(live.lines()[0].ends_with("REPLAY"), "where one left it: {}", live.lines()[0]);
    assert_eq!(body(&mut live).iter().filter(|line| line.contains("default/")).count(), cycles);
    assert!(live.keys("B").text().contains("on:error"), "breakpoints come along");
}

/// The virtual clock as it is shown.
fn clock(live: &mut LiveInterface) -> String {
    live.lines()[1].rsplit('+').next().unwrap().to_owned()
}

#[test]
fn time_that_passes_at_once_says_what_it_went_over() {
    let mut live = LiveInterface::demo("held-at-permit").keys("c:advance 20m<Enter>");
    let said = live.lines()[22].clone();
    assert!(said.contains("20m00s passed, skipping"), "{said}");
    let mut live = live.keys("M");
    let text = live.text();
    assert!(text.contains("skipped after 15m00s: ManualPermit"), "{text}");
    // A moment is reached timer by timer, with the cycles in between.
    let mut slow = LiveInterface::demo("held-at-permit").keys("c:moment 20m<Enter>1");
    assert!(slow.text().contains("+15m"), "{}", slow.text());
    let mut stopped = LiveInterface::demo("held-at-permit").keys(":break on:permit-timeout<Enter>");
    stopped = stopped.keys(":moment 20m<Enter>");
    assert!(!clock(&mut stopped).starts_with("20m"), "{}", stopped.text());
}

#[test]
fn the_timer_that_comes_next_is_named() {
    let mut live = LiveInterface::demo("tainted").keys("c");
    let said = live.lines()[22].clone();
    assert!(said.contains("flush requeues default/train"), "{said}");
    let mut live = LiveInterface::demo("held-at-permit").keys("c");
    let mut said = Vec::new();
    for _ in 0..8 {
        live = live.keys("+");
        said.push(live.lines()[22].clone());
    }
    let permit = |said: &String| said.contains("ManualPermit rejects default/release-1");
    assert!(said.iter().any(permit), "{said:?}");
}

#[test]
fn playing_runs_cycles_and_then_the_clock() {
    let mut live = LiveInterface::demo("tainted").keys(" ").play(300);
    assert!(live.lines()[0].ends_with("PLAYING"), "{}", live.text());
    assert!(live.lines()[1].contains("cycle 1"), "{}", live.text());
    let before = clock(&mut live);
    let mut live = live.play(3_000);
    assert_ne!(clock(&mut live), before);
    assert!(live.lines()[22].contains("1×; in "), "{}", live.lines()[22]);
    let shown = clock(&mut live);
    // A pause keeps the clock where it was seen.
    let mut live = live.keys(" ");
    assert_eq!(clock(&mut live), shown);
    assert!(!live.lines()[0].ends_with("PLAYING"));
}

#[test]
fn playing_faster_gets_to_the_next_timer_sooner() {
    let live = LiveInterface::demo("tainted").keys("c======= ").play(500);
    let mut live = live.keys("1");
    assert!(live.lines()[0].ends_with("PLAYING"), "{}", live.text());
    let cycles = live.lines().iter().filter(|line| line.contains("default/train")).count();
    assert!(cycles > 2, "{}", live.text());
    let mut slow = LiveInterface::demo("tainted").keys(":speed 0.5<Enter>");
    assert!(slow.lines()[22].contains("0.5×"), "{}", slow.lines()[22]);
    assert!(slow.keys(":speed fast<Enter>").lines()[22].contains("not a speed"));
}

#[test]
fn playing_ends_where_nothing_is_due() {
    let mut live = LiveInterface::demo("wrong-scheduler").keys(" ").play(1_000);
    assert!(!live.lines()[0].ends_with("PLAYING"), "{}", live.text());
    assert!(live.lines()[22].contains("no timers pending"), "{}", live.lines()[22]);
}

#[test]
fn playing_in_the_past_follows_the_recording() {
    let mut live = LiveInterface::demo("tour").keys("cC:speed max<Enter> ").play(100);
    assert!(live.lines()[1].contains("cycle"), "{}", live.text());
    let steps = live.interface.driver.steps_done();
    let live = LiveInterface::demo("tour").keys("cC ").play(600);
    assert!(live.interface.driver.steps_done() <= steps, "nothing new was run");
}

#[test]
fn a_pods_attempts_are_gone_through_and_run_to() {
    let mut live = LiveInterface::demo("tainted").keys("c)");
    assert!(live.lines()[22].contains("attempt 2 of default/train"), "{}", live.lines()[22]);
    assert!(live.lines()[1].contains("cycle 2"), "{}", live.lines()[1]);
    let mut live = live.keys("(");
    assert!(live.lines()[1].contains("cycle 1"), "{}", live.lines()[1]);
    let mut live = live.keys("(");
    assert!(live.lines()[22].contains("first attempt"), "{}", live.lines()[22]);
    let mut live = live.keys(")");
    assert!(live.lines()[1].contains("cycle 2"), "{}", live.lines()[1]);
}

#[test]
fn a_pod_in_a_queue_is_a_place_to_run_to() {
    let mut live = LiveInterface::demo("tainted").keys("2ggt");
    assert!(live.lines()[1].contains("cycle 1 default/train"), "{}", live.lines()[1]);
    let mut live = live.keys("2ggt");
    assert!(live.lines()[1].contains("cycle 2 default/train"), "{}", live.lines()[1]);
}

#[test]
fn moments_are_gone_to_back_and_on() {
    let mut live = LiveInterface::demo("tainted").keys(":moment 10m<Enter>");
    assert_eq!(clock(&mut live), "10m00s");
    let mut live = live.keys("@1s<Enter>");
    assert!(live.lines()[0].ends_with("REPLAY"), "{}", live.text());
    assert!(live.lines()[1].contains("cycle 1"), "{}", live.lines()[1]);
    let mut live = live.keys("+");
    assert!(live.lines()[22].contains("as recorded"), "{}", live.lines()[22]);
    let mut live = live.keys(":advance 1h<Enter>");
    assert_eq!(clock(&mut live), "1h05m");
    assert!(live.keys("@soon<Enter>").lines()[22].contains("not a time"));
}

#[test]
fn waiting_pods_cannot_be_decided_about_in_the_past() {
    let mut live = LiveInterface::demo("held-at-permit").keys("c+:cycle 1<Enter>7A");
    assert!(live.lines()[22].contains("past"), "{}", live.lines()[22]);
}

/// Many nodes, and a pod for each.
pub(super) fn crowd(count: usize) -> String {
    let one = |i: usize| {
        format!(
            "---\napiVersion: v1\nkind: Node\nmetadata: {{name: n-{i}}}\n\
             status: {{allocatable: {{cpu: '4', memory: 8Gi, pods: '9'}}}}\n\
             ---\napiVersion: v1\nkind: Pod\nmetadata: {{name: p-{i}, namespace: default}}\n\
             spec: {{containers: [{{name: c, resources: {{requests: {{cpu: '1'}}}}}}]}}\n"
        )
    };
    (0..count).map(one).collect()
}

#[test]
fn a_long_way_back_is_shown_and_can_be_stopped() {
    let mut session = session(&crowd(400));
    // As few copies as possible, so that the way is long.
    session.set_history_memory(0);
    let mut live = LiveInterface::new(session, (80, 24)).keys("c2");
    live.interface.driver.freshness.patience = std::time::Duration::ZERO;
    let mut live = live.keys_at_once(":cycle 9<Enter>");
    assert!(live.interface.driver.is_working(), "{}", live.text());
    assert!(live.lines()[0].ends_with("REWIND"), "{}", live.text());
    assert!(live.lines()[22].contains("going back: "), "{}", live.lines()[22]);
    let mut live = live.keys_at_once("<Esc>");
    assert!(
        !live.interface.driver.is_working() && live.lines()[1].contains("cycle 400"),
        "{}",
        live.text()
    );
    assert!(live.lines()[22].contains("stopped"), "{}", live.lines()[22]);
    let mut live = live.keys(":cycle 9<Enter>");
    assert!(live.lines()[2].contains("active 391"), "{}", live.text());
    assert!(live.lines()[2].contains("as of cycle 9"), "{}", live.text());
}

/// The answer beside the rows completes the record of its cycle, before anyone inspects it.
#[test]
fn a_cycle_that_an_answer_completed_is_shown_whole() {
    let mut session = session(&crowd(60));
    session.set_history_memory(0);
    let mut live = LiveInterface::new(session, (150, 40)).keys("c11<Home>");
    assert!(!live.interface.model().cycles[0].is_whole(), "{}", live.text());
    let pod = live.interface.model().cycles[0].pod;
    live.interface.driver.answer(pod);
    let mut live = live.keys("<Enter>");
    assert!(live.lines()[1].contains("inspecting cycle 1 "), "{}", live.text());
    assert!(live.interface.model().cycle().unwrap().is_whole(), "{}", live.text());
}

#[test]
fn many_steps_go_on_slice_by_slice_and_can_be_stopped() {
    use crate::tui::command::Command;
    use std::time::Duration;
    let mut live = LiveInterface::new(session(&crowd(60)), (80, 24));
    live.interface.driver.freshness.patience = Duration::ZERO;
    let cycles = |live: &LiveInterface| live.interface.driver.session().history().cycle_count();
    let many = Command::Cycles { count: 50, back: false };
    assert!(live.interface.driver.perform(&many).running);
    assert!(live.interface.driver.run_slice(Duration::ZERO).is_none());
    assert_eq!(cycles(&live), 2);
    assert_eq!(live.interface.driver.model.progress.as_deref(), Some("2 of 50 steps; Esc stops"));
    // Another request ends it.
    assert!(!live.interface.driver.perform(&Command::Cycles { count: 1, back: true }).running);
    assert!(live.interface.driver.perform(&many).running);
    while live.interface.driver.run_slice(Duration::ZERO).is_none() {}
    assert_eq!(live.interface.driver.session().record().unwrap().cycle, 51);
    assert_eq!(cycles(&live), 51);
}

#[test]
fn looking_back_for_a_stop_says_how_far_it_is() {
    use crate::tui::command::Command;
    use std::time::Duration;
    let mut session = session(&crowd(400));
    session.set_history_memory(0);
    let set = "c:break NodeResourcesFit if verdict == 'Wait'<Enter>";
    let mut live = LiveInterface::new(session, (80, 24)).keys(set);
    assert!(live.interface.driver.perform(&Command::Continue { back: true }).running);
    assert!(live.interface.driver.run_slice(Duration::ZERO).is_none());
    let words = live.interface.driver.model.progress.clone().unwrap();
    assert!(words.starts_with("looking for a stop: "), "{words}");
    assert!(words.ends_with(" of 392 cycles run again; Esc stops"), "{words}");
    while live.interface.driver.run_slice(Duration::ZERO).is_none() {}
    assert_eq!(live.interface.driver.session().stop_index(), 0);
}

/// The names of the rows, from the fourth line on.
fn names(live: &mut LiveInterface, number: usize) -> Vec<String> {
    let lines = live.lines().into_iter().skip(4).take(number);
    let name =
        |line: String| line.trim_start_matches(['▶', ' ']).split(' ').next().map(str::to_owned);
    lines.filter_map(name).collect()
}

#[test]
fn amounts_and_times_sort_by_what_they_stand_for() {
    // Requests of 100m twice, then 250m, and at the end 1, 1.5, 3 and 8.
    let mut live = LiveInterface::wide("tour").keys("c6lllo");
    let pods = names(&mut live, 12);
    assert_eq!(pods[..2], ["default/gated", "default/stray"], "{}", live.text());
    assert_eq!(pods[6], "default/database", "{}", live.text());
    assert_eq!(pods[11], "default/train", "{}", live.text());
    // Requested are 0 of 4 and of 16, 1.75 of 4, 3 of 4, 3.5 of 4 and 1.75 of 2, in bars: the share counts.
    let mut live = live.keys("5llo");
    let nodes = names(&mut live, 6);
    assert_eq!(nodes, ["b-1", "gpu-0", "a-0", "a-1", "b-0", "c-0"], "{}", live.text());
    // Twelve seconds are less than five minutes, which are less than fifteen.
    let mut live =
        LiveInterface::wide("tour").keys(":hold app=web for 12s<Enter>:hold web-1 for 5m<Enter>");
    live = live.keys("c7llo");
    let waiting = names(&mut live, 4);
    assert_eq!(waiting[2..], ["default/web-1", "default/release"], "{}", live.text());
}

#[test]
fn who_evicted_others_tries_the_nominated_node_first() {
    let mut live = LiveInterface::wide("preemption-budget").keys("c0d");
    assert!(live.text().contains("tried first   node-1"), "{}", live.text());
}

#[test]
fn failures_only_leaves_rejections_and_warnings_among_the_events() {
    let mut live = LiveInterface::demo("affinity-typo").keys("c9z");
    let text = live.text();
    assert!(text.contains("FailedScheduling") && text.contains("unschedulable"), "{text}");
    assert!(!text.contains("created → active") && !text.contains("→ in flight"), "{text}");
}

#[test]
fn pods_are_in_the_order_of_their_names_whatever_came_and_went() {
    let count = |live: &LiveInterface| {
        let pods = &live.interface.driver.model().pods;
        assert!(pods.is_sorted_by_key(|row| row.name()));
        pods.len()
    };
    let live = LiveInterface::demo("tour").keys("c6");
    let loaded = count(&live);
    let put = ":put {apiVersion: v1, kind: Pod, metadata: {name: m-new}}<Enter>";
    let live = live.keys(put);
    assert_eq!(count(&live), loaded + 1);
    let live = live.keys(":delete pod payment<Enter>");
    assert_eq!(count(&live), loaded);
    assert_eq!(count(&live.keys(":branch original<Enter>")), loaded);
}

#[test]
fn a_menu_fills_in_all_but_the_node() {
    let mut live = LiveInterface::demo("tainted").keys("c6m/choose<Enter>");
    let typed = "what-if edit: choose node  for pod default/train";
    assert!(live.lines()[22].starts_with(typed), "{}", live.lines()[22]);
    assert!(live.text().contains("choose node general-1"), "{}", live.text());
    let mut live = live.keys("gp<Tab><Enter>");
    let done = "choose node gpu-0 for pod default/train; in the next cycle";
    assert!(live.lines()[22].contains(done), "{}", live.lines()[22]);
}
