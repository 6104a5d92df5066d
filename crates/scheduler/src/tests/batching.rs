//! What batching reports to the stopwatch: attempts, and why stored results were dropped.

use super::*;
use kubestep_framework::stopwatch::{Clock, Stopwatch, Work};

/// A clock that stands still.
struct Still;

impl Clock for Still {
    fn nanos(&self) -> u64 {
        0
    }
}

/// A scheduler whose pods are signed, on nodes with a given number of CPUs each.
struct Measured {
    bench: Bench,
    stopwatch: Arc<Stopwatch>,
}

/// Without the plugin whose default constraints keep pods from being signed.
const SIGNING: &str =
    "profiles:\n- plugins: {multiPoint: {disabled: [{name: PodTopologySpread}]}}\n";

impl Measured {
    fn new(nodes: &[(&str, &str)]) -> Measured {
        let mut bench = Bench::new(SIGNING, &[]);
        let stopwatch = Arc::new(Stopwatch::new(Arc::new(Still)));
        bench.scheduler.measure(Some(stopwatch.clone()));
        nodes.iter().for_each(|(name, cpus)| bench.add(node(name).offers("cpu", cpus)));
        Measured { bench, stopwatch }
    }

    /// Schedules a pod that requests `cpus`. Returns what was reported, in order.
    fn step(&mut self, name: &str, cpus: &str) -> Vec<&'static str> {
        self.bench.add(pod(name).requests("cpu", cpus));
        self.bench.step();
        let done = self.stopwatch.take_done().into_iter();
        let word = |work| match work {
            Work::BatchAttempt { result, .. } => Some(result),
            Work::BatchFlush { reason, .. } => Some(reason),
            _ => None,
        };
        done.filter_map(|done| word(done.work)).collect()
    }
}

#[test]
fn a_node_that_is_proposed_is_used() {
    let mut measured = Measured::new(&[("n1", "1"), ("n2", "1"), ("n3", "1")]);
    assert_eq!(measured.step("a", "1"), ["no_hint"]);
    assert_eq!(measured.step("b", "1"), ["hint_used"]);
    assert_eq!(measured.step("c", "500m"), ["pod_incompatible", "no_hint", "empty_list"]);
    assert_eq!(measured.step("d", "500m"), ["no_hint", "empty_list"]);
}

#[test]
fn results_are_of_no_use_while_the_last_node_has_room() {
    let mut measured = Measured::new(&[("n1", "4"), ("n2", "4")]);
    assert_eq!(measured.step("a", "1"), ["no_hint"]);
    assert_eq!(measured.step("b", "1"), ["node_not_full", "no_hint"]);
}

#[test]
fn a_measured_cycle_reports_both_times() {
    let mut measured = Measured::new(&[("n1", "1")]);
    measured.bench.add(pod("a"));
    measured.bench.step();
    let done = measured.stopwatch.take_done();
    let profile = Symbol::new("default-scheduler");
    let is = |work: Work| done.iter().filter(|done| done.work == work).count();
    assert_eq!(is(Work::NodeHint { profile, hinted: false }), 1);
    assert_eq!(is(Work::StoredResults { profile }), 1);
}

/// Whether the second attempt of a pod whose label changed during the first one has the signature
/// of a new pod with that label.
fn is_signed_again(minor: u8) -> bool {
    let features = FeatureGates::of(KubeVersion::of_minor(minor).unwrap());
    let mut bench = Bench::of(features, SIGNING, &[]);
    bench.add(node("n1"));
    bench.add(pod("p").label("app", "old"));
    let mut cycle = bench.begin();
    let mut updated = pod("p").label("app", "new");
    updated.metadata.resource_version = "2".into();
    bench.update(pod("p").label("app", "old"), updated);
    let Bench { scheduler, host } = &mut bench;
    scheduler.fail(&mut cycle, Failure::plain(Status::error("broken")), host);
    let cx = scheduler.cluster.queue_context(Time(0));
    scheduler.queue.activate(&cx, &[key("p")]);
    let second = bench.begin().signature;
    bench.add(pod("q").label("app", "new"));
    let of_new = bench.begin().signature;
    assert!(of_new.is_some());
    second == of_new
}

#[test]
fn the_signature_is_that_of_the_queue_and_up_to_1_35_that_of_the_cycle() {
    assert_eq!([35, 36].map(is_signed_again), [true, false]);
}
