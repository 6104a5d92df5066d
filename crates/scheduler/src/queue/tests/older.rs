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
