//! Backoff and the flush of leftover pods over time.

use super::*;

/// The cases of upstream's TestBackOffFlow.
#[test]
fn backoff_doubles_up_to_the_maximum() {
    for pop_from_backoff in [true, false] {
        let settings = QueueSettings { pop_from_backoff, ..QueueSettings::default() };
        let mut bench = Bench::new(settings, &[], &[]);
        bench.advance(HALF_A_SECOND);
        let a = pod("a", 0);
        bench.add(&a);
        for (attempt, seconds) in [1, 2, 4, 8, 10, 10, 10].into_iter().enumerate() {
            let failed_at = bench.now;
            let popped = bench.pop();
            assert_eq!(popped.attempts as usize, attempt + 1);
            bench.fail(popped, &["foo"], &[]);
            bench.event(ClusterEvent::UNSCHEDULABLE_TIMEOUT);
            let end = bench.queued(&a).backoff_expiration.unwrap();
            let cut = if pop_from_backoff { HALF_A_SECOND } else { Duration::ZERO };
            assert_eq!(end - failed_at, SECOND * seconds - cut);
            bench.advance(SECOND);
            bench.flush_backoff();
            assert_eq!(bench.place(&a), QueueName::Backoff);
            bench.advance(SECOND * seconds);
            bench.flush_backoff();
            assert_eq!(bench.place(&a), QueueName::Active);
        }
    }
}

/// A pod is still backing off throughout the second of its expiration.
#[test]
fn a_pod_waits_through_the_second_of_its_expiration() {
    let mut bench = Bench::with_hints(&[]);
    let a = pod("a", 0);
    bench.add_failed(&a, &[], &[]);
    bench.advance(SECOND * 2 - Duration::MICROSECOND);
    bench.flush_backoff();
    assert_eq!(bench.place(&a), QueueName::Backoff);
    bench.advance(Duration::MICROSECOND);
    bench.flush_backoff();
    assert_eq!(bench.place(&a), QueueName::Active);
}

#[test]
fn without_alignment_a_pod_waits_to_the_microsecond() {
    let settings = QueueSettings { pop_from_backoff: false, ..QueueSettings::default() };
    let mut bench = Bench::new(settings, &[], &[]);
    let a = pod("a", 0);
    bench.add_failed(&a, &[], &[]);
    bench.advance(SECOND);
    bench.flush_backoff();
    assert_eq!(bench.place(&a), QueueName::Backoff);
    bench.advance(Duration::MICROSECOND);
    bench.flush_backoff();
    assert_eq!(bench.place(&a), QueueName::Active);
}

#[test]
fn without_a_maximum_there_is_no_backoff() {
    let settings = QueueSettings { max_backoff: Duration::ZERO, ..QueueSettings::default() };
    let mut bench = Bench::new(settings, &[], &[]);
    bench.add_failed(&pod("a", 0), &[], &[]);
    assert_eq!(bench.place(&pod("a", 0)), QueueName::Active);
}

/// Upstream's TestHighPriorityFlushUnschedulablePodsLeftover and
/// TestFlushUnschedulablePodsLeftoverSetsFlag; the limit is strict.
#[test]
fn leftovers_are_flushed_and_marked() {
    let mut bench = Bench::with_hints(&[]);
    for (name, priority) in [("medium", 5), ("high", 9)] {
        bench.add_failed(&pod(name, priority), &["foo"], &[]);
    }
    bench.advance(SECOND * 300);
    bench.flush_leftover();
    assert_eq!(bench.names()[2], ["medium", "high"]);
    bench.advance(Duration::MICROSECOND);
    bench.flush_leftover();
    let (first, second) = (bench.pop(), bench.pop());
    assert_eq!((first.key().name, first.flushed), ("high".into(), true));
    assert_eq!((second.key().name, second.flushed), ("medium".into(), true));
    bench.fail(first, &["foo"], &[]);
    assert!(!bench.queued(&pod("high", 9)).flushed);
    let moves = bench.queue.drain_moves();
    assert!(moves.iter().any(|m| m.event == "UnschedulableTimeout" && m.to == QueueName::Active));
}

/// The flush marks a gated pod, which stays gated.
#[test]
fn gated_pods_are_not_released_by_the_flush() {
    let mut bench = Bench::new(QueueSettings::default(), &[gate("x", &["x"], &[])], &[]);
    let a = pod("a", 0);
    bench.add(&a);
    bench.advance(SECOND * 301);
    bench.flush_leftover();
    assert_eq!(bench.place(&a), QueueName::Gated);
    assert!(bench.queued(&a).flushed);
    assert_eq!(bench.queue.next_timer(bench.now), None);
}

#[test]
fn the_next_timer_is_exact() {
    let mut bench = Bench::with_hints(&[]);
    let start = bench.now;
    assert_eq!(bench.queue.next_timer(start), None);
    bench.add_failed(&pod("a", 0), &["foo"], &[]);
    let flush = start + SECOND * 300 + Duration::MICROSECOND;
    assert_eq!(bench.queue.next_timer(start), Some(flush));
    bench.add_failed(&pod("b", 0), &[], &[]);
    let release = start + SECOND * 2;
    assert_eq!(bench.queue.next_timer(start), Some(release));
    bench.now = release;
    bench.flush_backoff();
    assert_eq!(bench.names()[0], ["b"]);
    bench.now = Time(flush.0 + 5);
    assert_eq!(bench.queue.next_timer(bench.now), Some(bench.now));
    bench.flush_leftover();
    assert_eq!(bench.names()[0], ["b", "a"]);
}
