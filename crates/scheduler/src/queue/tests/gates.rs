//! PreEnqueue plugins: which plugin gates a pod, and what ungates it.

use super::*;

fn gated_pod() -> Pod {
    let mut gated = pod("a", 0);
    gated.spec.scheduling_gates = vec![kubestep_api::PodSchedulingGate { name: "wait".into() }];
    gated
}

/// Upstream's cases of TestPriorityQueue_moveToActiveQ for new pods.
#[test]
fn every_gate_must_let_a_new_pod_pass() {
    let cases: [(&[Fake], QueueName); 4] = [
        (&[], QueueName::Active),
        (&[gate("x", &[], &[]), gate("y", &[], &[])], QueueName::Gated),
        (&[gate("x", &["foo", "bar"], &[]), gate("y", &["foo"], &[])], QueueName::Gated),
        (&[gate("x", &["foo", "bar"], &[]), gate("y", &["bar"], &[])], QueueName::Active),
    ];
    for (gates, place) in cases {
        let mut bench = Bench::new(QueueSettings::default(), gates, &[]);
        let bar = labelled(pod("bar", 0), "bar");
        bench.add(&bar);
        assert_eq!(bench.place(&bar), place);
        bench.update(&bar, &annotated(bar.clone()));
        assert_eq!(bench.place(&bar), place);
    }
}

#[test]
fn the_holder_is_noted_and_asked_first() {
    let gates = [gate("x", &["x"], &[]), gate("y", &["y"], &[])];
    let mut bench = Bench::new(QueueSettings::default(), &gates, &[]);
    let (plain, both) = (pod("a", 0), labelled(labelled(pod("a", 0), "x"), "y"));
    let with_x = labelled(pod("a", 0), "x");
    bench.add(&plain);
    let held = bench.queued(&plain).clone();
    assert_eq!(held.gating_plugin, Some("x".into()));
    assert_eq!(held.gating_message, Some("x holds it".into()));
    assert_eq!(held.unschedulable_plugins, [Symbol::new("x")]);
    // x passes it now, y gates it; x stays among the rejectors.
    bench.update(&plain, &with_x);
    bench.activate(&with_x);
    let held = bench.queued(&plain).clone();
    assert_eq!(held.gating_plugin, Some("y".into()));
    assert_eq!(held.unschedulable_plugins, [Symbol::new("x"), Symbol::new("y")]);
    // Without x's label again, y still runs first.
    bench.update(&with_x, &plain);
    bench.activate(&plain);
    assert_eq!(bench.queued(&plain).gating_plugin, Some("y".into()));
    bench.update(&plain, &both);
    bench.activate(&both);
    let free = bench.queued(&both).clone();
    assert_eq!((free.gating_plugin, free.gating_message), (None, None));
    assert_eq!(free.unschedulable_plugins, [Symbol::new("x"), Symbol::new("y")]);
    assert_eq!(bench.place(&both), QueueName::Active);
}

/// The cases of upstream's Test_queuedPodInfo_gatedSetUponCreationAndUnsetUponUpdate.
#[test]
fn removing_the_scheduling_gates_lets_the_pod_go() {
    let mut bench = Bench::with_hints(&[]);
    let gated = gated_pod();
    bench.add(&gated);
    assert_eq!(bench.place(&gated), QueueName::Gated);
    let held = bench.queued(&gated);
    assert_eq!(held.gating_message, Some("waiting for scheduling gates: [wait]".into()));
    assert_eq!(held.initial_attempt, None);
    let free = pod("a", 0);
    bench.update(&gated, &free);
    let popped = bench.pop();
    assert!(!popped.is_gated());
    let label = "UnschedulablePodUpdatePodSchedulingGatesEliminated";
    let moves = bench.queue.drain_moves();
    assert_eq!((moves[0].to, moves[0].plugin), (QueueName::Gated, Some("SchedulingGates".into())));
    assert_eq!((moves[1].from, moves[1].to), (QueueName::Gated, QueueName::Active));
    assert_eq!((moves[1].event, moves[1].plugin), (label.into(), Some("SchedulingGates".into())));
}

/// Only events that the gating plugin registered for can ungate a pod.
#[test]
fn events_that_do_not_concern_the_holder_are_ignored() {
    let mut bench = Bench::with_hints(&[hinting("foo", &[NODE_ADD], QueueingHint::Queue)]);
    let gated = gated_pod();
    bench.add(&gated);
    bench.event(NODE_ADD);
    bench.event(ClusterEvent::UNSCHEDULABLE_TIMEOUT);
    assert_eq!(bench.place(&gated), QueueName::Gated);
    assert!(bench.queue.drain_hints().is_empty());
}

/// Upstream's case "QueueHintFunction is called when Pod is gated by the plugin that is
/// interested in the event".
#[test]
fn events_that_concern_the_holder_are_judged() {
    let gates = [gate("foo", &["foo"], &[NODE_ADD])];
    let mut bench = Bench::new(QueueSettings::default(), &gates, &[]);
    let (held, free) = (pod("a", 0), labelled(pod("a", 0), "foo"));
    bench.add(&held);
    bench.event(NODE_ADD);
    assert_eq!(bench.place(&held), QueueName::Gated);
    bench.update(&held, &free);
    // foo did not register for an update of the label alone.
    assert_eq!(bench.place(&free), QueueName::Gated);
    bench.event(NODE_ADD);
    assert_eq!(bench.place(&free), QueueName::Active);
}

/// Upstream's TestPriorityQueue_moveToBackoffQ: PreEnqueue runs on the way into backoff if pods may
/// be popped from it, otherwise on the way out.
#[test]
fn gates_run_once_on_the_way_through_backoff() {
    for pop_from_backoff in [true, false] {
        let settings = QueueSettings { pop_from_backoff, ..QueueSettings::default() };
        let mut bench = Bench::new(settings, &[gate("x", &["x"], &[])], &[]);
        let (free, held) = (labelled(pod("a", 0), "x"), pod("a", 0));
        bench.add(&free);
        let mut popped = bench.pop();
        popped.info = Arc::new(PodInfo::new(Arc::new(held.clone())));
        bench.fail(popped, &[], &[]);
        let in_backoff = if pop_from_backoff { QueueName::Gated } else { QueueName::Backoff };
        assert_eq!(bench.place(&held), in_backoff);
        bench.advance(SECOND * 10);
        bench.flush_backoff();
        assert_eq!(bench.place(&held), QueueName::Gated);
    }
}

/// PreEnqueue that passed on the way into backoff does not run again on the way out.
#[test]
fn pods_leave_backoff_unasked() {
    let mut bench = Bench::new(QueueSettings::default(), &[gate("x", &["x"], &[])], &[]);
    let (free, held) = (labelled(pod("a", 0), "x"), pod("a", 0));
    bench.add_failed(&free, &[], &[]);
    bench.update(&free, &held);
    let activated = &mut bench.clone();
    bench.advance(SECOND * 10);
    bench.flush_backoff();
    assert_eq!(bench.place(&held), QueueName::Active);
    activated.activate(&held);
    assert_eq!(activated.place(&held), QueueName::Active);
}

/// A new pod that is gated does not displace a queued pod of the same name.
#[test]
fn a_gated_pod_does_not_displace_a_queued_one() {
    let mut bench = Bench::with_hints(&[]);
    let (free, gated) = (pod("a", 0), gated_pod());
    bench.add(&free);
    bench.add(&gated);
    assert_eq!(bench.queue.lengths(), [1, 0, 0, 0]);
    assert!(bench.queued(&free).info.pod.spec.scheduling_gates.is_empty());
}

/// A profile without an entry in the map has no PreEnqueue plugins.
#[test]
fn a_profile_that_is_not_there_has_no_gates() {
    let mut bench = Bench::new(QueueSettings::default(), &[gate("x", &[], &[])], &[]);
    let mut other = gated_pod();
    other.spec.scheduler_name = "other".into();
    bench.add(&other);
    assert_eq!(bench.place(&other), QueueName::Active);
}
