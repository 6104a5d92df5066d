//! Whether an event requeues a pod, and into which queue.

use super::*;
use crate::queue::requeueing::{JudgedEvent, QueueingStrategy};
use kubestep_api::{Node, PodSchedulingGroup};
use kubestep_framework::record::HintRecord;

/// Unschedulable and pending plugins.
type Rejectors = [&'static [&'static str]; 2];

/// The strategy, and how many hints ran.
fn judge(fakes: &[Fake], rejectors: Rejectors, event: ClusterEvent) -> (QueueingStrategy, usize) {
    judge_about(fakes, rejectors, event, Some(Object::from(Node::default())))
}

fn judge_about(
    fakes: &[Fake],
    [unschedulable, pending]: Rejectors,
    event: ClusterEvent,
    new: Option<Object>,
) -> (QueueingStrategy, usize) {
    let mut bench = Bench::with_hints(fakes);
    let info = Arc::new(PodInfo::new(Arc::new(pod("a", 0))));
    let queued = rejected(QueuedPodInfo::new(info, bench.now), unschedulable, pending);
    let objects = EventObjects { old: None, new };
    let verdict = bench.with(|queue, cx| {
        let plugins = queue.plugins.clone();
        let hints = plugins.matching(&event);
        queue.judge(cx, &queued, JudgedEvent { event: &event, objects: &objects, hints: &hints })
    });
    (verdict.strategy, bench.queue.drain_hints().len())
}

/// The cases of upstream's Test_isPodWorthRequeuing.
#[test]
fn hints_decide() {
    let foo = |hint| hinting("foo", &[NODE_ADD], hint);
    let bar = |hint| hinting("bar", &[NODE_ADD], hint);
    let baz = |hint| hinting("baz", &[NODE_ADD], hint);
    let wrong = answering("foo", &[NODE_ADD], Err("unexpected error".into()));
    let other_event = hinting("foo", &[pod_events::ASSIGNED_POD_ADD], QueueingHint::Queue);
    let (queue, skip) = (QueueingHint::Queue, QueueingHint::Skip);
    type Case<'a> = (&'a [Fake], Rejectors, QueueingStrategy, usize);
    let cases: [Case<'_>; 8] = [
        (&[other_event], [&["foo"], &[]], QueueingStrategy::Skip, 0),
        (&[wrong], [&["foo"], &[]], QueueingStrategy::AfterBackoff, 1),
        (
            &[foo(queue), bar(queue), baz(queue)],
            [&["foo", "baz"], &["bar"]],
            QueueingStrategy::Immediately,
            2,
        ),
        (
            &[foo(queue), bar(skip), baz(queue)],
            [&["foo", "baz"], &["bar"]],
            QueueingStrategy::AfterBackoff,
            3,
        ),
        (
            &[foo(skip), bar(queue), baz(queue)],
            [&["foo", "bar"], &[]],
            QueueingStrategy::AfterBackoff,
            2,
        ),
        (&[foo(skip), bar(skip), baz(queue)], [&["foo", "bar"], &[]], QueueingStrategy::Skip, 2),
        (&[foo(skip)], [&[], &[]], QueueingStrategy::AfterBackoff, 0),
        (&[], [&["foo"], &[]], QueueingStrategy::Skip, 0),
    ];
    for (case, (fakes, rejectors, strategy, asked)) in cases.into_iter().enumerate() {
        assert_eq!(judge(fakes, rejectors, NODE_ADD), (strategy, asked), "case {case}");
    }
}

/// The last three cases of Test_isPodWorthRequeuing: registrations for a coarser event match.
#[test]
fn coarser_registrations_are_asked() {
    let label = ClusterEvent::new(EventResource::Node, Action::UPDATE_NODE_LABEL);
    let any_update = ClusterEvent::new(EventResource::Node, Action::UPDATE);
    let any_add = ClusterEvent::new(EventResource::Wildcard, Action::ADD);
    let everything = ClusterEvent::new(EventResource::Wildcard, Action::ALL);
    let mixed = Action::UPDATE_NODE_LABEL | Action::UPDATE_NODE_TAINT;
    let mixed = ClusterEvent::new(EventResource::Node, mixed);
    let cases = [(any_update, label), (any_add, NODE_ADD), (everything, mixed)];
    for (registered, incoming) in cases {
        let fakes = [hinting("foo", &[registered], QueueingHint::Queue)];
        let judged = judge(&fakes, [&["foo"], &[]], incoming);
        assert_eq!(judged, (QueueingStrategy::AfterBackoff, 1));
    }
}

/// The wildcard cases of Test_isPodWorthRequeuing.
#[test]
fn wildcards_concern_every_pod_or_the_one_they_name() {
    let force = ClusterEvent::FORCE_ACTIVATE;
    let rejectors: Rejectors = [&["foo"], &["bar"]];
    let this = Some(Object::from(pod("a", 0)));
    let other = Some(Object::from(pod("b", 0)));
    let judged = |new| judge_about(&[], rejectors, force, new);
    assert_eq!(judged(None), (QueueingStrategy::AfterBackoff, 0));
    assert_eq!(judged(this), (QueueingStrategy::AfterBackoff, 0));
    assert_eq!(judged(other), (QueueingStrategy::Skip, 0));
    assert_eq!(judged(Some(Object::from(Node::default()))), (QueueingStrategy::Skip, 0));
}

/// Upstream's cases of Test_InFlightPods on where a failed pod is requeued.
#[test]
fn events_in_flight_decide_where_a_failed_pod_goes() {
    let assigned = pod_events::ASSIGNED_POD_ADD;
    let queue = |name| hinting(name, &[assigned], QueueingHint::Queue);
    let skip = |name| hinting(name, &[assigned], QueueingHint::Skip);
    type Case<'a> = (&'a [Fake], Rejectors, QueueName);
    let cases: [Case<'_>; 6] = [
        (&[skip("one")], [&["one"], &[]], QueueName::Unschedulable),
        (&[queue("one")], [&[], &[]], QueueName::Backoff),
        (
            &[hinting("one", &[NODE_ADD], QueueingHint::Queue)],
            [&["one"], &[]],
            QueueName::Unschedulable,
        ),
        (
            &[skip("three"), queue("two"), queue("one")],
            [&["two", "three"], &["one"]],
            QueueName::Active,
        ),
        (&[skip("two"), queue("one")], [&["one", "two"], &[]], QueueName::Backoff),
        (&[queue("two"), skip("one")], [&["two"], &["one"]], QueueName::Backoff),
    ];
    for (case, (fakes, [unschedulable, pending], place)) in cases.into_iter().enumerate() {
        let mut bench = Bench::with_hints(fakes);
        bench.event(ClusterEvent::UNSCHEDULABLE_TIMEOUT);
        bench.event(assigned);
        let a = pod("a", 0);
        bench.add(&a);
        let popped = bench.pop();
        bench.event(assigned);
        bench.fail(popped, unschedulable, pending);
        assert_eq!(bench.place(&a), place, "case {case}");
        assert!(bench.queue.in_flight.describe().is_empty());
    }
}

/// Upstream's case on an event received while another pod was in flight.
#[test]
fn events_before_the_pop_do_not_count() {
    let fakes = [hinting("foo", &[NODE_ADD, PV_ADD], QueueingHint::Queue)];
    let mut bench = Bench::with_hints(&fakes);
    bench.add(&pod("a", 0));
    let a = bench.pop();
    bench.event(NODE_ADD);
    bench.add(&pod("b", 0));
    let b = bench.pop();
    bench.fail(b, &["foo"], &[]);
    bench.event(PV_ADD);
    assert_eq!(bench.place(&pod("b", 0)), QueueName::Backoff);
    bench.fail(a, &["foo"], &[]);
    assert_eq!(bench.place(&pod("a", 0)), QueueName::Backoff);
    let asked = bench.queue.drain_hints();
    let asked: Vec<_> = asked.iter().map(|hint| (hint.pod.name, hint.event.label())).collect();
    let expected = [("b", "PersistentVolumeAdd"), ("a", "NodeAdd")];
    assert_eq!(asked, expected.map(|(pod, event)| (Name::new(pod), event.to_owned())));
}

/// With GenericWorkload, a member of a pod group waits for its backoff only.
#[test]
fn pods_of_a_group_are_retried_by_backoff() {
    let group = Some(EventResource::PodGroup);
    for (group_resource, place) in [(group, QueueName::Backoff), (None, QueueName::Unschedulable)] {
        let settings = QueueSettings { group_resource, ..QueueSettings::default() };
        let mut bench = Bench::new(settings, &[], &[]);
        let mut member = pod("a", 0);
        let pod_group_name = Some("group".into());
        member.spec.scheduling_group = Some(PodSchedulingGroup { pod_group_name });
        bench.add_failed(&member, &["foo"], &[]);
        assert_eq!(bench.place(&member), place);
    }
}

/// A pod that is no longer in flight, as after Done, goes to backoff: its events are unknown.
#[test]
fn a_pod_that_was_done_comes_back_through_backoff() {
    let mut bench = Bench::with_hints(&[]);
    bench.add(&pod("a", 0));
    let popped = bench.pop();
    bench.queue.done(popped.uid());
    bench.fail(popped, &["foo"], &[]);
    assert_eq!(bench.place(&pod("a", 0)), QueueName::Backoff);
}

/// The cases of upstream's TestPriorityQueue_MoveAllToActiveOrBackoffQueueWithQueueingHint.
#[test]
fn an_event_moves_pods_by_hint_and_backoff() {
    let cases: [(QueueingHint, Rejectors, Duration, QueueName); 4] = [
        (QueueingHint::Queue, [&[], &["foo"]], Duration::ZERO, QueueName::Active),
        (QueueingHint::Queue, [&["foo"], &[]], Duration::ZERO, QueueName::Backoff),
        (QueueingHint::Queue, [&["foo"], &[]], SECOND * 2, QueueName::Active),
        (QueueingHint::Skip, [&["foo"], &[]], Duration::ZERO, QueueName::Unschedulable),
    ];
    for (hint, [unschedulable, pending], wait, place) in cases {
        let mut bench = Bench::with_hints(&[hinting("foo", &[NODE_ADD], hint)]);
        bench.add_failed(&pod("a", 0), unschedulable, pending);
        bench.advance(wait);
        bench.event(NODE_ADD);
        assert_eq!(bench.place(&pod("a", 0)), place);
    }
}

/// The cases of upstream's TestMoveAllToActiveOrBackoffQueue_PreEnqueueChecks.
#[test]
fn the_check_picks_the_candidates() {
    type Check<'a> = &'a dyn Fn(i32) -> bool;
    let checks: [(Check<'_>, &[&str]); 4] = [
        (&|_| true, &["p4", "p3", "p2", "p1", "p0"]),
        (&|priority| priority >= 2, &["p4", "p3", "p2"]),
        (&|priority| priority % 2 == 0 && priority >= 2, &["p4", "p2"]),
        (&|priority| priority < 0, &[]),
    ];
    for (check, moved) in checks {
        let mut bench = Bench::with_hints(&[]);
        for priority in 0..5 {
            bench.add_failed(&pod(&format!("p{priority}"), priority), &["plugin"], &[]);
        }
        let event = ClusterEvent::UNSCHEDULABLE_TIMEOUT;
        let check = |pod: &PodInfo| check(pod.priority());
        bench.with(|queue, cx| {
            queue.move_all(cx, event, &EventObjects::default(), Some(&check));
        });
        assert_eq!(bench.names()[1], moved);
    }
}

#[test]
fn the_check_is_not_called_for_events_of_no_interest() {
    let mut bench = Bench::with_hints(&[]);
    bench.add_failed(&pod("a", 0), &["foo"], &[]);
    bench.with(|queue, cx| {
        let never = |_: &PodInfo| panic!("no plugin registered for the event");
        queue.move_all(cx, PV_ADD, &EventObjects::default(), Some(&never));
    });
    assert_eq!(bench.place(&pod("a", 0)), QueueName::Unschedulable);
}

/// Events do not move active pods or pods in backoff.
#[test]
fn events_do_not_touch_other_queues() {
    let mut bench = Bench::with_hints(&[hinting("foo", &[NODE_ADD], QueueingHint::Queue)]);
    bench.add_failed(&pod("backoff", 0), &[], &[]);
    bench.add(&pod("active", 0));
    let before = bench.names();
    bench.event(NODE_ADD);
    assert_eq!(bench.names(), before);
}

/// The same answer is logged once between two moves.
#[test]
fn rejections_are_reported_once() {
    let mut bench = Bench::with_hints(&[hinting("foo", &[NODE_ADD, PV_ADD], QueueingHint::Skip)]);
    let logged = |bench: &mut Bench| {
        let hints = bench.queue.drain_hints();
        let text = |hint: &HintRecord| format!("{} {}", hint.event.label(), hint.answer);
        hints.iter().map(text).collect::<Vec<_>>()
    };
    bench.add_failed(&pod("a", 0), &["foo"], &[]);
    for event in [NODE_ADD, NODE_ADD, PV_ADD, NODE_ADD] {
        bench.event(event);
    }
    assert_eq!(logged(&mut bench), ["NodeAdd QueueSkip", "PersistentVolumeAdd QueueSkip"]);
    bench.event(NODE_ADD);
    assert!(logged(&mut bench).is_empty());
    bench.activate(&pod("a", 0));
    let popped = bench.pop();
    bench.fail(popped, &["foo"], &[]);
    bench.event(NODE_ADD);
    assert_eq!(logged(&mut bench), ["NodeAdd QueueSkip"]);
}

/// Upstream's TestPriorityQueue_MultipleProfiles: only hints of the pod's own profile count.
#[test]
fn each_profile_has_its_own_hints() {
    let mut bench = Bench::with_hints(&[hinting("foo", &[NODE_ADD], QueueingHint::Queue)]);
    let plugins = Arc::make_mut(&mut bench.queue.plugins);
    let other = arcs(&[hinting("foo", &[NODE_ADD], QueueingHint::Skip)]);
    plugins.add_profile(&QueueSettings::default(), "other".into(), &[], &other);
    let mut theirs = pod("theirs", 0);
    theirs.spec.scheduler_name = "other".into();
    let mut nobodys = pod("nobodys", 0);
    nobodys.spec.scheduler_name = "unknown".into();
    for pod in [&pod("ours", 0), &theirs, &nobodys] {
        bench.add_failed(pod, &["foo"], &[]);
    }
    bench.event(NODE_ADD);
    assert_eq!(bench.names(), [vec![], vec!["ours", "nobodys"], vec!["theirs"], vec![]]);
}
