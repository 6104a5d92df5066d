//! Adding, popping, in-flight events and requeueing of failed pods.

use super::*;

#[test]
fn pods_are_popped_by_priority_then_time() {
    let mut bench = Bench::with_hints(&[]);
    bench.add(&pod("medium", 100));
    bench.add(&pod("low", 0));
    bench.add(&pod("high", 1000));
    bench.advance(SECOND);
    bench.add(&pod("later", 100));
    assert_eq!(bench.names()[0], ["high", "medium", "later", "low"]);
    let popped: Vec<_> = (0..4).map(|_| bench.pop().key().name.text()).collect();
    assert_eq!(popped, ["high", "medium", "later", "low"]);
    assert_eq!(bench.queue.scheduling_cycle(), 4);
    assert_eq!(bench.with(|queue, cx| queue.pop(cx)), None);
}

#[test]
fn popping_counts_attempts_and_keeps_the_first_attempt_time() {
    let mut bench = Bench::with_hints(&[]);
    let start = bench.now;
    bench.add(&pod("a", 0));
    let first = bench.pop();
    assert_eq!((first.attempts, first.initial_attempt), (1, Some(start)));
    bench.fail(first, &[], &[]);
    bench.advance(SECOND * 5);
    bench.flush_backoff();
    let second = bench.pop();
    assert_eq!((second.attempts, second.initial_attempt), (2, Some(start)));
    assert_eq!(second.timestamp, start);
}

#[test]
fn a_pod_added_again_replaces_the_first() {
    let mut bench = Bench::with_hints(&[]);
    bench.add(&pod("a", 0));
    bench.add(&pod("b", 5));
    bench.add(&pod("a", 9));
    assert_eq!(bench.names()[0], ["a", "b"]);
}

#[test]
fn pod_is_gone_from_elsewhere_when_added() {
    let mut bench = Bench::with_hints(&[]);
    bench.add_failed(&pod("unschedulable", 0), &["foo"], &[]);
    bench.add_failed(&pod("failed", 0), &[], &[]);
    bench.add(&pod("unschedulable", 0));
    bench.add(&pod("failed", 0));
    assert_eq!(bench.queue.lengths(), [2, 0, 0, 0]);
}

/// Upstream's case "Pod and interested events are registered".
#[test]
fn only_events_of_interest_are_kept_for_pods_in_flight() {
    let mut bench = Bench::with_hints(&[hinting("foo", &[PV_ADD], QueueingHint::Queue)]);
    bench.event(PV_ADD);
    bench.add(&pod("a", 0));
    bench.pop();
    bench.event(PV_ADD);
    bench.event(ClusterEvent::new(EventResource::PersistentVolume, Action::UPDATE));
    assert_eq!(bench.queue.in_flight.describe(), ["ns/a", "PersistentVolumeAdd"]);
}

/// Upstream's case "One intermediate Pod … is enqueued back".
#[test]
fn events_are_dropped_when_no_pod_needs_them() {
    let assigned = pod_events::ASSIGNED_POD_ADD;
    let events = [PV_ADD, NODE_ADD, assigned];
    let mut bench = Bench::with_hints(&[hinting("foo", &events, QueueingHint::Queue)]);
    for (name, event) in [("a", PV_ADD), ("b", NODE_ADD), ("c", assigned)] {
        bench.add(&pod(name, 0));
        bench.pop();
        bench.event(event);
    }
    let middle = bench.queued(&pod("b", 0)).clone();
    bench.fail(middle, &[], &[]);
    let list = bench.queue.in_flight.describe();
    assert_eq!(list, ["ns/a", "PersistentVolumeAdd", "NodeAdd", "ns/c", "AssignedPodAdd"]);
    bench.queue.done("uid-a".into());
    assert_eq!(bench.queue.in_flight.describe(), ["ns/c", "AssignedPodAdd"]);
    bench.queue.done("uid-unknown".into());
    bench.queue.done("uid-c".into());
    assert!(bench.queue.in_flight.describe().is_empty());
    assert_eq!(bench.names(), [vec![], vec!["b"], vec![], vec![]]);
}

/// Upstream's case "Pop is made twice for the same Pod".
#[test]
fn a_pod_that_is_in_flight_already_is_discarded_when_popped() {
    let mut bench = Bench::with_hints(&[]);
    bench.add(&pod("a", 0));
    bench.pop();
    bench.add(&pod("a", 0));
    bench.add(&pod("b", -1));
    assert_eq!(bench.pop().key().name, "b");
    assert_eq!(bench.names(), [vec![], vec![], vec![], vec!["a", "b"]]);
    assert_eq!(bench.queue.scheduling_cycle(), 2);
}

#[test]
fn a_failed_pod_that_is_queued_already_is_rejected() {
    let mut bench = Bench::with_hints(&[]);
    let a = pod("a", 0);
    let rejected = |bench: &mut Bench, popped: &QueuedPodInfo| {
        let popped = rejected(popped.clone(), &["foo"], &[]);
        let answer = bench.with(|queue, cx| queue.add_unschedulable_if_not_present(cx, popped));
        assert!(!bench.queue.is_in_flight("uid-a".into()));
        answer.unwrap_err().to_string()
    };
    bench.add(&a);
    let popped = bench.pop();
    bench.add(&a);
    let text = rejected(&mut bench, &popped);
    assert_eq!(text, "Pod ns/a is already present in the active queue");
    let popped = bench.pop();
    bench.fail(popped.clone(), &[], &[]);
    let text = rejected(&mut bench, &popped);
    assert_eq!(text, "Pod ns/a is already present in the backoff queue");
    bench.advance(SECOND * 3);
    bench.flush_backoff();
    let popped = bench.pop();
    bench.fail(popped.clone(), &["foo"], &[]);
    let text = rejected(&mut bench, &popped);
    assert_eq!(text, "Pod ns/a is already present in unschedulable queue");
}

/// Errors and rejections are counted separately.
#[test]
fn errors_and_rejections_are_counted_apart() {
    let mut bench = Bench::with_hints(&[]);
    let a = pod("a", 0);
    bench.add(&a);
    let counts = |bench: &Bench| {
        let queued = bench.queued(&a);
        (queued.unschedulable_count, queued.consecutive_errors)
    };
    let mut seen = Vec::new();
    for rejectors in [&[][..], &[], &["foo"], &[]] {
        bench.activate(&a);
        let popped = bench.pop();
        bench.fail(popped, rejectors, &[]);
        seen.push(counts(&bench));
    }
    assert_eq!(seen, [(0, 1), (0, 2), (1, 0), (1, 1)]);
}

/// Upstream's TestRecentlyTriedPodsGoBack and TestHighPriorityBackoff.
#[test]
fn failing_pods_do_not_block_others() {
    let mut bench = Bench::with_hints(&[]);
    for name in ["0", "1", "2"] {
        bench.add(&pod(name, 0));
        bench.advance(Duration::MICROSECOND);
    }
    bench.add(&pod("high", 9));
    let high = bench.pop();
    assert_eq!(high.key().name, "high");
    bench.fail(high, &["foo"], &[]);
    let first = bench.pop();
    bench.fail(first, &["foo"], &[]);
    bench.event(ClusterEvent::UNSCHEDULABLE_TIMEOUT);
    assert_eq!(bench.names(), [vec!["1", "2"], vec!["high", "0"], vec![], vec![]]);
}

/// Pods that failed with an error are never popped before their backoff ends.
#[test]
fn only_rejected_pods_are_popped_from_backoff() {
    let mut bench = Bench::with_hints(&[]);
    bench.add_failed(&pod("rejected", 0), &["foo"], &[]);
    bench.event(ClusterEvent::UNSCHEDULABLE_TIMEOUT);
    bench.add(&pod("failed", 0));
    let failed = bench.pop();
    bench.fail(failed, &[], &[]);
    assert_eq!(bench.names()[1], ["rejected", "failed"]);
    assert_eq!(bench.pop().key().name, "rejected");
    assert_eq!(bench.with(|queue, cx| queue.pop(cx)), None);
    let moves = bench.queue.drain_moves();
    let last = moves.last().unwrap();
    assert_eq!((last.from, last.to), (QueueName::Backoff, QueueName::InFlight));
    assert_eq!(last.event, "PopFromBackoffQ");
}

/// The cases of upstream's TestPriorityQueue_PopSpecificPod.
#[test]
fn a_specific_pod_is_popped_wherever_it_waits() {
    let mut bench = Bench::new(QueueSettings::default(), &[gate("x", &["foo"], &[])], &[]);
    let free = |name| labelled(pod(name, 0), "foo");
    bench.add_failed(&free("unschedulable"), &["bar"], &[]);
    bench.add_failed(&free("backoff"), &[], &[]);
    bench.add(&free("active"));
    bench.add(&pod("gated", 0));
    bench.add(&pod("freed", 0));
    bench.update(&pod("freed", 0), &free("freed"));
    let popped = |bench: &mut Bench, name: &str| {
        let key = key_of(&pod(name, 0));
        bench.with(|queue, cx| queue.pop_specific(cx, key)).map(|pod| pod.attempts)
    };
    assert_eq!(popped(&mut bench, "active"), Some(1));
    assert_eq!(popped(&mut bench, "backoff"), Some(2));
    assert_eq!(popped(&mut bench, "unschedulable"), Some(2));
    assert_eq!(popped(&mut bench, "gated"), None);
    assert_eq!(popped(&mut bench, "freed"), Some(1));
    assert_eq!(popped(&mut bench, "unknown"), None);
    assert_eq!(popped(&mut bench, "active"), None);
    let flying = vec!["active", "backoff", "unschedulable", "freed"];
    assert_eq!(bench.names(), [vec![], vec![], vec!["gated"], flying]);
}

#[test]
fn backoff_is_left_alone_without_the_gate() {
    let settings = QueueSettings { pop_from_backoff: false, ..QueueSettings::default() };
    let mut bench = Bench::new(settings, &[], &[]);
    bench.add_failed(&pod("a", 0), &["foo"], &[]);
    bench.event(ClusterEvent::UNSCHEDULABLE_TIMEOUT);
    assert_eq!(bench.names()[1], ["a"]);
    assert_eq!(bench.with(|queue, cx| queue.pop(cx)), None);
}

/// A clone is a checkpoint: changes on one side do not affect the other.
#[test]
fn clones_are_independent() {
    let mut bench = Bench::with_hints(&[]);
    bench.add(&pod("a", 0));
    bench.add(&pod("b", 0));
    let before = bench.clone();
    let popped = bench.pop();
    bench.fail(popped, &["foo"], &[]);
    assert_eq!(before.names(), [vec!["a", "b"], vec![], vec![], vec![]]);
    assert_eq!(bench.names(), [vec!["b"], vec![], vec!["a"], vec![]]);
}

#[test]
fn moves_tell_the_whole_way_of_a_pod() {
    let mut bench = Bench::with_hints(&[hinting("foo", &[NODE_ADD], QueueingHint::Queue)]);
    bench.add_failed(&pod("a", 0), &["foo"], &[]);
    bench.event(NODE_ADD);
    bench.advance(SECOND * 2);
    bench.flush_backoff();
    bench.pop();
    bench.queue.done("uid-a".into());
    let moves = bench.queue.drain_moves();
    let recorded: Vec<String> = moves
        .iter()
        .map(|m| format!("{} > {}: {}", m.from.as_str(), m.to.as_str(), m.event))
        .collect();
    let expected = [
        "none > active: UnschedulablePodAdd",
        "active > in flight: PodPopped",
        "in flight > unschedulable: ScheduleAttemptFailure",
        "unschedulable > backoff: NodeAdd",
        "backoff > active: BackoffComplete",
        "active > in flight: PodPopped",
        "in flight > none: Done",
    ];
    assert_eq!(recorded, expected);
    assert_eq!(moves[3].plugin, Some("foo".into()));
    assert!(bench.queue.drain_moves().is_empty());
}
