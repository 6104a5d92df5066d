//! What the queue of older versions does otherwise.

use super::*;
use kubestep_config::KubeVersion;
use kubestep_config::versions::Behaviour;

/// The settings of a version, with hints and without the alignment of backoffs.
fn of(minor: u8) -> QueueSettings {
    let behaviour = Behaviour::of(KubeVersion::of_minor(minor).unwrap());
    QueueSettings { behaviour, pop_from_backoff: false, ..QueueSettings::default() }
}

#[test]
fn up_to_1_32_a_backoff_is_over_at_its_end() {
    let place_at_its_end = |minor| {
        let mut bench = Bench::new(of(minor), &[], &[]);
        let a = pod("a", 0);
        bench.add_failed(&a, &[], &[]);
        let end = bench.queued(&a).backoff_expiration.unwrap();
        let release = of(minor).backoff_release(end);
        bench.advance(SECOND);
        assert_eq!(bench.now, end);
        bench.flush_backoff();
        assert_eq!(bench.place(&a) == QueueName::Active, release == end);
        bench.place(&a)
    };
    assert_eq!([32, 33].map(place_at_its_end), [QueueName::Active, QueueName::Backoff]);
}

#[test]
fn up_to_1_31_a_gated_pod_has_no_backoff() {
    let mut bench = Bench::with_hints(&[]);
    let a = pod("a", 0);
    bench.add_failed(&a, &[], &[]);
    let mut gated = bench.queued(&a).clone();
    gated.gating_plugin = Some("foo".into());
    assert_eq!([31, 32].map(|minor| of(minor).is_backing_off(&gated, bench.now)), [false, true]);
}

#[test]
fn up_to_1_31_an_activation_during_the_attempt_is_lost() {
    let place = |minor| {
        let mut bench = Bench::new(of(minor), &[], &[]);
        let a = pod("a", 0);
        bench.add(&a);
        let popped = bench.pop();
        bench.activate(&a);
        bench.fail(popped, &["foo"], &[]);
        bench.place(&a)
    };
    assert_eq!([31, 32].map(place), [QueueName::Unschedulable, QueueName::Backoff]);
}

#[test]
fn up_to_1_35_the_rejectors_are_forgotten_when_the_pod_is_popped() {
    let forgets = |minor| {
        let mut bench = Bench::new(of(minor), &[], &[]);
        let a = pod("a", 0);
        bench.add_failed(&a, &["foo"], &[]);
        bench.activate(&a);
        bench.pop().unschedulable_plugins.is_empty()
    };
    assert_eq!([35, 36].map(forgets), [true, false]);
}

#[test]
fn up_to_1_34_a_pod_that_is_activated_in_backoff_passes_pre_enqueue_again() {
    let place = |minor| {
        let settings = QueueSettings { pop_from_backoff: true, ..of(minor) };
        let mut bench = Bench::new(settings, &[gate("foo", &["ok"], &[])], &[]);
        let a = labelled(pod("a", 0), "ok");
        bench.add_failed(&a, &[], &[]);
        bench.update(&a, &pod("a", 0));
        assert_eq!(bench.place(&a), QueueName::Backoff);
        bench.activate(&a);
        bench.place(&a)
    };
    assert_eq!([34, 35].map(place), [QueueName::Gated, QueueName::Active]);
}

#[test]
fn up_to_1_33_a_maximum_of_zero_does_not_switch_the_backoff_off() {
    let mut bench = Bench::with_hints(&[]);
    let a = pod("a", 0);
    bench.add_failed(&a, &[], &[]);
    let failed = bench.queued(&a).clone();
    let expires = [33, 34].map(|minor| {
        let settings = QueueSettings { max_backoff: Duration::ZERO, ..of(minor) };
        settings.backoff_expiration(&failed).is_some()
    });
    assert_eq!(expires, [true, false]);
}
