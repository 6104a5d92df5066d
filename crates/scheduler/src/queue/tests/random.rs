//! Random operations: every pod is always in exactly one queue, and the heap equals a sorted list.

use proptest::prelude::*;

use super::*;
use crate::queue::heap::Heap;

fn by_rank(a: &QueuedPodInfo, b: &QueuedPodInfo) -> bool {
    a.info.priority() > b.info.priority()
}

fn ranked(name: u8, priority: i32) -> Arc<QueuedPodInfo> {
    let info = PodInfo::new(Arc::new(pod(&format!("p{name}"), priority)));
    Arc::new(QueuedPodInfo::new(Arc::new(info), Time(0)))
}

#[derive(Clone, Debug)]
enum Step {
    Add(u8),
    Pop,
    Fail(u8, bool, bool),
    Done(u8),
    NodeAdd,
    Update(u8, bool),
    Delete(u8),
    Activate(u8),
    Advance(u32),
}

fn step() -> impl Strategy<Value = Step> {
    let name = || 0..6u8;
    prop_oneof![
        3 => name().prop_map(Step::Add),
        4 => Just(Step::Pop),
        4 => (name(), any::<bool>(), any::<bool>()).prop_map(|(n, r, p)| Step::Fail(n, r, p)),
        1 => name().prop_map(Step::Done),
        2 => Just(Step::NodeAdd),
        2 => (name(), any::<bool>()).prop_map(|(n, gated)| Step::Update(n, gated)),
        1 => name().prop_map(Step::Delete),
        1 => name().prop_map(Step::Activate),
        2 => (0..400_000_000u32).prop_map(Step::Advance),
    ]
}

fn version(name: u8, free: bool) -> Pod {
    let plain = pod(&format!("p{name}"), i32::from(name));
    if free { labelled(plain, "free") } else { plain }
}

fn run(bench: &mut Bench, step: &Step) {
    match *step {
        Step::Add(name) => {
            // As the event handlers: a pod is added only when it is new.
            if bench.place(&version(name, true)) == QueueName::None {
                bench.add(&version(name, true));
            }
        }
        Step::Pop => drop(bench.with(|queue, cx| queue.pop(cx))),
        Step::Fail(name, rejected, pending) => {
            let flying = bench.queue.in_flight();
            let found = flying.into_iter().find(|pod| pod.key() == key_of(&version(name, true)));
            if let Some(found) = found.cloned() {
                let unschedulable: &[&str] = if rejected { &["foo"] } else { &[] };
                bench.fail(found, unschedulable, if pending { &["bar"] } else { &[] });
            }
        }
        Step::Done(name) => bench.queue.done(version(name, true).metadata.uid),
        Step::NodeAdd => bench.event(NODE_ADD),
        Step::Update(name, free) => bench.update(&version(name, !free), &version(name, free)),
        Step::Delete(name) => bench.queue.delete(&version(name, true)),
        Step::Activate(name) => bench.activate(&version(name, true)),
        Step::Advance(micros) => {
            bench.advance(Duration::from_micros(i64::from(micros)));
            bench.flush_backoff();
            bench.flush_leftover();
        }
    }
}

fn places(bench: &Bench) -> std::collections::BTreeMap<NamespacedName, Vec<QueueName>> {
    let queue = &bench.queue;
    let lists = [
        (QueueName::Active, queue.active()),
        (QueueName::Backoff, queue.backoff()),
        (QueueName::Unschedulable, queue.unschedulable()),
        (QueueName::Gated, queue.gated()),
        (QueueName::InFlight, queue.in_flight()),
    ];
    let mut places = std::collections::BTreeMap::<_, Vec<_>>::new();
    for (place, pods) in lists {
        pods.iter().for_each(|pod| places.entry(pod.key()).or_default().push(place));
    }
    places
}

proptest! {
    #[test]
    fn the_heap_is_a_sorted_list(operations in proptest::collection::vec((0..4u8, 0..24u8, 0..9i32), 0..120)) {
        let mut heap = Heap::default();
        let mut model = std::collections::BTreeMap::new();
        for (operation, name, priority) in operations {
            let added = ranked(name, priority);
            match operation {
                0 | 1 => {
                    model.insert(added.key(), priority);
                    heap.add_or_update(added, &by_rank);
                }
                2 => {
                    let removed = heap.remove(added.key(), &by_rank).map(|pod| pod.info.priority());
                    prop_assert_eq!(removed, model.remove(&added.key()));
                }
                _ => {
                    let popped = heap.pop(&by_rank);
                    let best = model.values().max().copied();
                    prop_assert_eq!(popped.as_ref().map(|pod| pod.info.priority()), best);
                    popped.map(|pod| model.remove(&pod.key()));
                }
            }
            prop_assert_eq!(heap.len(), model.len());
        }
        let shown: Vec<_> = heap.in_order(&by_rank).map(|pod| pod.key()).collect();
        let popped: Vec<_> = std::iter::from_fn(|| heap.pop(&by_rank)).map(|pod| pod.key()).collect();
        prop_assert_eq!(&shown, &popped);
        let ranks: Vec<i32> = popped.iter().map(|key| model[key]).collect();
        prop_assert!(ranks.is_sorted_by(|a, b| a >= b));
    }

    #[test]
    fn every_pod_is_in_exactly_one_place(
        pop_from_backoff in any::<bool>(),
        steps in proptest::collection::vec(step(), 0..60),
    ) {
        let settings = QueueSettings { pop_from_backoff, ..QueueSettings::default() };
        let gates = [gate("gate", &["free"], &[NODE_ADD])];
        let hints = [hinting("foo", &[NODE_ADD], QueueingHint::Queue), hinting("bar", &[NODE_ADD], QueueingHint::Queue)];
        let mut bench = Bench::new(settings, &gates, &hints);
        let mut expected = std::collections::BTreeMap::new();
        for step in &steps {
            run(&mut bench, step);
            for moved in bench.queue.drain_moves() {
                let before = expected.insert(moved.pod, moved.to).unwrap_or(QueueName::None);
                prop_assert_eq!(before, moved.from);
            }
            let places = places(&bench);
            prop_assert!(places.values().all(|found| found.len() == 1), "{:?}", places);
            // The recorded moves alone yield the queue of every pod.
            expected.retain(|_, place| *place != QueueName::None);
            let expected_places = expected.iter().map(|(key, place)| (*key, vec![*place])).collect();
            prop_assert_eq!(places, expected_places);
        }
    }
}
