//! Branches, undo and redo; and that nothing in a branch changes the original.

use super::*;
use crate::edit::tests::{objects, world};
use crate::trace::json;

fn tour() -> Session {
    let story = kubestep_source::fixtures::find("tour").unwrap();
    Session::new(world(story.cluster))
}

/// The whole state of a session as text.
fn bytes(session: &Session) -> String {
    let cycles: Vec<String> =
        session.history().cycles().map(|record| json::cycle(record).to_string()).collect();
    let queue = session.world().scheduler().queue();
    let place =
        |key: &kubestep_framework::pod::NamespacedName| format!("{key} {:?}", queue.queue_of(*key));
    let mut pods: Vec<_> = session.world().api().objects().pods.keys().copied().collect();
    pods.sort_unstable();
    let places: Vec<String> = pods.iter().map(place).collect();
    let (stop, position) = (session.stop_index(), session.position());
    let steps = session.timeline().steps().end();
    format!(
        "{}\n{}\n{}\n{:?} {steps} {stop} {position:?} {:?}",
        cycles.join("\n"),
        objects(session.world()),
        places.join("\n"),
        session.world().now(),
        session.history().len(),
    )
}

fn edit(text: &str) -> Edit {
    text.parse().unwrap()
}

/// Edits for the tour: of each node, each pod and the scheduler.
fn edits(session: &Session) -> Vec<String> {
    let mut nodes: Vec<_> = session.world().api().nodes().map(|node| node.metadata.name).collect();
    nodes.sort_unstable();
    let mut pods: Vec<_> = session.world().api().objects().pods.keys().copied().collect();
    pods.sort_unstable();
    let mut all = Vec::new();
    for node in nodes {
        all.push(format!("cordon node {node}"));
        all.push(format!("uncordon node {node}"));
        all.push(format!("taint node {node} x=y:NoSchedule"));
        all.push(format!("resize node {node} cpu=64"));
        all.push(format!("add 1 node like {node}"));
        all.push(format!("lose node {node}"));
    }
    for pod in pods {
        all.push(format!("delete pod {pod}"));
        all.push(format!("resize pod {pod} cpu=100m"));
        all.push(format!("tolerate pod {pod} all"));
        all.push(format!("priority pod {pod} 1000"));
        all.push(format!("activate pod {pod}"));
        all.push(format!("fail bind for pod {pod}"));
    }
    all.push("weight NodeResourcesFit=9".into());
    all.push("disable TaintToleration".into());
    all
}

/// Reproducible pseudo-random numbers (SplitMix64).
fn numbers(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed;
    move |below| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((bits ^ (bits >> 31)) % below as u64).unwrap()
    }
}

#[test]
fn the_original_stays_as_it_was_whatever_is_edited() {
    let mut original = tour();
    original.run_until_idle(8, |_| false);
    let possible = edits(&original);
    for seed in 0..24 {
        let mut number = numbers(seed);
        let (mut session, mut branches) = (original.clone(), Branches::default());
        session.go_to_stop(number(session.timeline().stops().end()));
        let mut applied = 0;
        for _ in 0..12 {
            match number(6) {
                0 => drop(session.run_until_idle(3, |_| false)),
                1 => drop(branches.undo(&mut session)),
                2 => drop(branches.redo(&mut session, || true)),
                _ => {
                    let text = &possible[number(possible.len())];
                    applied += usize::from(branches.edit(&mut session, edit(text)).is_ok());
                }
            }
            // What was done before the first edit is part of the original.
            if applied == 0 {
                session = original.clone();
                branches = Branches::default();
            }
        }
        assert!(applied > 0, "seed {seed}");
        let unchanged = match branches.on_original() {
            true => &session,
            false => branches.other(ORIGINAL).unwrap(),
        };
        let mut there = original.clone();
        there.go_to_stop(unchanged.stop_index());
        assert_eq!(bytes(unchanged), bytes(&there), "seed {seed}");
    }
}

#[test]
fn undo_and_redo_go_round() {
    let mut session = tour();
    session.run_until_idle(3, |_| false);
    let mut branches = Branches::default();
    let mut states = Vec::new();
    let possible = edits(&session);
    let mut number = numbers(7);
    while states.len() < 6 {
        let before = bytes(&session);
        let text = &possible[number(possible.len())];
        if branches.edit(&mut session, edit(text)).is_ok() {
            session.run_until_idle(2, |_| false);
            states.push((text.clone(), before, bytes(&session)));
        }
    }
    let at_end = |session: &mut Session| {
        session.go_to_end();
        bytes(session)
    };
    for (text, before, _) in states.iter().rev().take(5) {
        assert_eq!(&branches.undo(&mut session).unwrap(), text);
        assert_eq!(&bytes(&session), before, "{text}");
    }
    let mut slices = 0;
    for (text, _, after) in &states[1..] {
        let redone = branches.redo(&mut session, || false).unwrap();
        assert_eq!(&redone.words, text);
        // The cycles that ran before, one by one.
        let mut left = redone.left;
        slices += left;
        while left > 0 {
            left = branches.redo(&mut session, || false).unwrap().left;
        }
        assert_eq!(&at_end(&mut session), after, "{text}");
    }
    assert!(slices > 0);
    assert_eq!(
        branches.redo(&mut session, || true).unwrap_err().0,
        "there is nothing to redo in this branch"
    );
}

#[test]
fn an_edit_on_the_original_or_in_the_past_makes_a_branch() {
    let mut session = tour();
    session.run_until_idle(4, |_| false);
    let mut branches = Branches::default();
    assert_eq!(
        branches.undo(&mut session).unwrap_err().0,
        "there is nothing to undo in this branch"
    );
    let node = session.world().api().nodes().map(|node| node.metadata.name).min().unwrap();
    let wrong = branches.edit(&mut session, edit("cordon node nowhere")).unwrap_err();
    assert!(wrong.0.contains("there is no Node nowhere"));
    assert!(branches.on_original());
    session.go_to_cycle(2);
    let cordon = edit(&format!("cordon node {node}"));
    let forked = branches.edit(&mut session, cordon).unwrap().1;
    assert_eq!(forked.as_deref(), Some("what-if-1"));
    let label = edit(&format!("label node {node} a=b"));
    assert_eq!(branches.edit(&mut session, label.clone()).unwrap().1, None);
    session.run_until_idle(1, |_| false);
    session.go_to_cycle(1);
    assert_eq!(branches.edit(&mut session, label).unwrap().1.as_deref(), Some("what-if-2"));
    let list = branches.list(&session);
    let shown: Vec<_> = list
        .iter()
        .map(|info| (info.name.as_str(), info.parent.as_deref(), info.current, info.edits.len()))
        .collect();
    let expected = [
        ("original", None, false, 0),
        ("what-if-1", Some("original"), false, 2),
        ("what-if-2", Some("what-if-1"), true, 1),
    ];
    assert_eq!(shown, expected);
}

#[test]
fn branches_have_names_and_are_switched() {
    let mut session = tour();
    let mut branches = Branches::default();
    assert_eq!(branches.fork(&mut session, Some("mine")).unwrap(), "mine");
    let taken = branches.fork(&mut session, Some("original")).unwrap_err().0;
    assert_eq!(taken, "branch \"original\" already exists");
    session.run_until_idle(2, |_| false);
    let cycles = session.history().cycles().count();
    branches.switch(&mut session, ORIGINAL).unwrap();
    assert_eq!(session.history().cycles().count(), 0);
    assert_eq!(branches.other("mine").unwrap().history().cycles().count(), cycles);
    branches.switch(&mut session, ORIGINAL).unwrap();
    branches.switch(&mut session, "mine").unwrap();
    assert_eq!((branches.name(), session.history().cycles().count()), ("mine", cycles));
    let wrong = branches.switch(&mut session, "theirs").unwrap_err().0;
    assert_eq!(wrong, "there is no branch \"theirs\"; there is original, mine");
}

#[test]
fn too_many_branches_are_given_up_but_not_the_named_ones() {
    let mut session = tour();
    let mut branches = Branches::default();
    branches.fork(&mut session, Some("mine")).unwrap();
    for number in 1..=3 * KEPT {
        session.run_cycle();
        session.go_to_stop(0);
        let name = match number % 2 {
            0 => branches.cut(&mut session).unwrap(),
            _ => branches.fork(&mut session, None).unwrap(),
        };
        let list = branches.list(&session);
        assert!(list.len() <= KEPT && list.iter().any(|info| info.name == name), "{list:?}");
        let current = list.iter().find(|info| info.current).unwrap();
        assert_eq!(current.name, branches.name());
        assert!(current.parent.is_some());
    }
    let names: Vec<String> = branches.list(&session).into_iter().map(|info| info.name).collect();
    assert_eq!(&names[..2], ["original", "mine"]);
    let dropped = branches.take_dropped().to_vec();
    assert_eq!(dropped.len(), 3 * KEPT + 2 - KEPT);
    assert!(dropped.iter().all(|dropped| !names.contains(&dropped.name)));
    assert!(branches.take_dropped().is_empty());
    assert!(dropped[0].to_string().ends_with("was dropped: there were too many"), "{}", dropped[0]);
    branches.switch(&mut session, ORIGINAL).unwrap();
    branches.switch(&mut session, &names[KEPT - 1]).unwrap();
}

#[test]
fn branches_that_take_too_much_memory_are_given_up() {
    let mut session = tour();
    let mut branches = Branches::default();
    session.run_until_idle(100, |_| false);
    let one = session.recorded_bytes();
    session.set_history_memory(3 * one);
    let mut forks = 0;
    while branches.take_dropped().is_empty() && forks < KEPT / 2 {
        branches.switch(&mut session, ORIGINAL).unwrap();
        session.go_to_stop(0);
        branches.fork(&mut session, None).unwrap();
        session.run_until_idle(100, |_| false);
        forks += 1;
    }
    // The first three that were left take as much as is allowed.
    assert!((4..=6).contains(&forks), "{forks}");
    let dropped = branches.dropped[0].to_string();
    let reported = "branch what-if-1 was dropped: the branches took more than --history-memory";
    assert_eq!(dropped, reported);
    // What a branch shares with the original counts once, with the original.
    let shared = session.recorded_bytes_beside(0, usize::MAX);
    assert_eq!(shared, 0);
}

#[test]
fn a_branch_that_was_left_computes_its_matrices_again() {
    let whole =
        |session: &Session| session.history().cycles().filter(|record| record.is_whole()).count();
    let pod = |number| {
        let container = crate::edit::tests::container("");
        format!("---\n{{kind: Pod, metadata: {{name: p-{number}}}, spec: {{{container}}}}}\n")
    };
    let pods: String = (0..40).map(pod).collect();
    let mut session = Session::new(world(&format!("{}{pods}", crate::edit::tests::NODES)));
    session.set_history_memory(64 << 20);
    let mut branches = Branches::default();
    let name = branches.fork(&mut session, None).unwrap();
    session.run_until_idle(30, |_| false);
    let (before, first) = (whole(&session), session.history().cycle(1).cloned().unwrap());
    assert_eq!(before, 30);
    branches.switch(&mut session, ORIGINAL).unwrap();
    session.run_until_idle(30, |_| false);
    let left = branches.other(&name).map(whole).unwrap();
    assert!(left < before / 2, "{left}");
    branches.switch(&mut session, &name).unwrap();
    assert_eq!(branches.other(ORIGINAL).map(whole), Some(30), "the original keeps its matrices");
    let again = session.whole_record(1).unwrap();
    assert_eq!(json::cycle(&again), json::cycle(&first));
    session.run_until_idle(10, |_| false);
    assert!(whole(&session) > left + 5, "it has its budget again");
}
