//! Updates, deletions, activation and nominations.

use super::*;

const UPDATE: ClusterEvent = pod_events::UNSCHEDULED_POD_UPDATE;

fn nominated(mut pod: Pod, node: &str) -> Pod {
    pod.status.nominated_node_name = node.into();
    pod
}

fn info(pod: &Pod) -> Arc<PodInfo> {
    Arc::new(PodInfo::new(Arc::new(pod.clone())))
}

/// Each node with the names of the pods nominated to it.
fn nominations(bench: &Bench) -> Vec<String> {
    let nominated = bench.queue.nominated_pods();
    let name = |pod: &Arc<PodInfo>| format!(" {}", pod.key().name);
    let of_node = |pods: &[Arc<PodInfo>]| pods.iter().map(name).collect::<String>();
    nominated.iter().map(|(node, pods)| format!("{node}:{}", of_node(pods))).collect()
}

/// The cases of upstream's TestPriorityQueue_Update.
#[test]
fn an_update_is_handled_where_the_pod_is() {
    let fakes = [
        hinting("queue", &[UPDATE], QueueingHint::Queue),
        hinting("skip", &[UPDATE], QueueingHint::Skip),
    ];
    let (old, new) = (pod("a", 0), annotated(pod("a", 0)));
    type Prepare = fn(&mut Bench);
    let cases: [(Prepare, QueueName); 6] = [
        (|_| {}, QueueName::Active),
        (|bench| bench.add(&pod("a", 0)), QueueName::Active),
        (|bench| bench.add_failed(&pod("a", 0), &[], &[]), QueueName::Backoff),
        (|bench| bench.add_failed(&pod("a", 0), &["queue"], &[]), QueueName::Backoff),
        (
            |bench| {
                bench.add_failed(&pod("a", 0), &["queue"], &[]);
                bench.advance(SECOND * 10);
            },
            QueueName::Active,
        ),
        (|bench| bench.add_failed(&pod("a", 0), &["skip"], &[]), QueueName::Unschedulable),
    ];
    for (case, (prepare, place)) in cases.into_iter().enumerate() {
        let mut bench = Bench::with_hints(&fakes);
        prepare(&mut bench);
        bench.update(&old, &new);
        assert_eq!(bench.place(&new), place, "case {case}");
        assert_eq!(*bench.queued(&new).info.pod, new, "case {case}");
    }
}

#[test]
fn a_change_of_priority_moves_the_pod_within_the_queue() {
    let mut bench = Bench::with_hints(&[]);
    for (name, priority) in [("a", 3), ("b", 2), ("c", 1)] {
        bench.add(&pod(name, priority));
    }
    bench.update(&pod("c", 1), &pod("c", 9));
    assert_eq!(bench.names()[0], ["c", "a", "b"]);
}

/// The cases of upstream's TestPriorityQueue_UpdateWhenInflight.
#[test]
fn an_update_in_flight_counts_when_the_pod_comes_back() {
    let toleration =
        ClusterEvent::new(EventResource::UnschedulablePod, Action::UPDATE_POD_TOLERATION);
    let mut bench = Bench::with_hints(&[hinting("foo", &[toleration], QueueingHint::Queue)]);
    let old = pod("a", 0);
    let mut new = old.clone();
    new.spec.tolerations =
        vec![kubestep_api::Toleration { key: "k".into(), ..Default::default() }].into();
    bench.add(&old);
    let popped = bench.pop();
    bench.update(&old, &new);
    assert_eq!(bench.place(&new), QueueName::InFlight);
    let list = bench.queue.in_flight.describe();
    assert_eq!(list, ["ns/a", "UnschedulablePodUpdatePodToleration"]);
    bench.fail(popped, &["foo"], &[]);
    assert_eq!(bench.place(&new), QueueName::Backoff);
}

/// Events of a pod in flight are recorded even if no plugin registered for them.
#[test]
fn updates_in_flight_are_noted_unasked() {
    let mut bench = Bench::with_hints(&[]);
    bench.add(&pod("a", 0));
    bench.pop();
    bench.update(&pod("a", 0), &annotated(pod("a", 0)));
    assert_eq!(bench.queue.in_flight.describe(), ["ns/a", "UnschedulablePodUpdate"]);
}

/// The events of one update are judged in order, up to the first that requeues the pod.
#[test]
fn the_first_event_that_helps_moves_the_pod() {
    let event = |action| ClusterEvent::new(EventResource::Pod, action);
    let label = hinting("label", &[event(Action::UPDATE_POD_LABEL)], QueueingHint::Skip);
    let toleration = event(Action::UPDATE_POD_TOLERATION);
    let mut bench =
        Bench::with_hints(&[label, hinting("toleration", &[toleration], QueueingHint::Queue)]);
    bench.add_failed(&pod("a", 0), &["label", "toleration"], &[]);
    let mut new = labelled(pod("a", 0), "x");
    new.spec.tolerations.push(kubestep_api::Toleration::default());
    bench.update(&pod("a", 0), &new);
    assert_eq!(bench.place(&new), QueueName::Backoff);
    let moves = bench.queue.drain_moves();
    let last = moves.last().unwrap();
    assert_eq!(last.event, "UnschedulablePodUpdatePodToleration");
    assert_eq!(last.plugin, Some("toleration".into()));
}

/// Upstream's TestPriorityQueue_Delete, for each queue; the UID is not compared.
#[test]
fn deleting_takes_a_pod_out_wherever_it_is() {
    let mut bench = Bench::with_hints(&[]);
    bench.add_failed(&pod("waiting", 0), &["foo"], &[]);
    bench.add_failed(&pod("backoff", 0), &[], &[]);
    bench.add(&pod("flying", 0));
    bench.pop();
    bench.add(&pod("active", 0));
    bench.queue.drain_moves();
    for name in ["active", "backoff", "waiting", "flying", "unknown"] {
        let mut deleted = pod(name, 0);
        deleted.metadata.uid = "another".into();
        bench.queue.delete(&deleted);
    }
    assert_eq!(bench.queue.lengths(), [0, 0, 0, 1]);
    let moves = bench.queue.drain_moves();
    let from: Vec<_> = moves.iter().map(|m| m.from).collect();
    assert_eq!(from, [QueueName::Active, QueueName::Backoff, QueueName::Unschedulable]);
}

/// The cases of upstream's TestPriorityQueue_Activate.
#[test]
fn activation_moves_waiting_pods_and_marks_those_in_flight() {
    let mut bench = Bench::with_hints(&[]);
    let a = pod("a", 0);
    bench.activate(&a);
    assert_eq!(bench.queue.lengths(), [0, 0, 0, 0]);
    bench.add_failed(&a, &["foo"], &[]);
    bench.activate(&a);
    assert_eq!(bench.place(&a), QueueName::Active);
    bench.activate(&a);
    assert_eq!(bench.queue.lengths(), [1, 0, 0, 0]);
    let popped = bench.pop();
    bench.activate(&pod("other", 0));
    assert_eq!(bench.queue.in_flight.describe(), ["ns/a"]);
    bench.activate(&a);
    assert_eq!(bench.queue.in_flight.describe(), ["ns/a", "ForceActivate"]);
    bench.fail(popped, &["foo"], &[]);
    assert_eq!(bench.place(&a), QueueName::Backoff);
    bench.activate(&a);
    assert_eq!(bench.names(), [vec!["a"], vec![], vec![], vec![]]);
}

/// ForceActivate in flight names its pod: it does not requeue other pods.
#[test]
fn activation_in_flight_helps_only_its_pod() {
    let mut bench = Bench::with_hints(&[]);
    bench.add(&pod("a", 0));
    bench.add(&pod("b", 0));
    let (first, second) = (bench.pop(), bench.pop());
    bench.activate(&pod("b", 0));
    bench.fail(first, &["foo"], &[]);
    bench.fail(second, &["foo"], &[]);
    assert_eq!(bench.names(), [vec![], vec!["b"], vec!["a"], vec![]]);
}

/// Upstream's TestPriorityQueue_NominatedPodsForNode; a pod in flight is a stub.
#[test]
fn nominated_pods_are_those_of_the_queue() {
    let mut bench = Bench::with_hints(&[]);
    let (first, second) = (nominated(pod("a", 5), "node1"), nominated(pod("b", 4), "node1"));
    bench.add(&first);
    bench.add(&second);
    bench.add(&pod("c", 9));
    bench.pop();
    let on_node = bench.queue.nominated_pods();
    let pods = on_node.for_node("node1".into());
    assert_eq!(pods.iter().map(|pod| pod.priority()).collect::<Vec<_>>(), [5, 4]);
    assert!(on_node.for_node("node2".into()).is_empty());
    bench.pop();
    let on_node = bench.queue.nominated_pods();
    let stub = &on_node.for_node("node1".into())[0];
    assert_eq!((stub.key().name, stub.uid()), ("a".into(), "uid-a".into()));
    assert_eq!((stub.priority(), stub.pod.spec.priority), (0, None));
}

/// Upstream's TestPriorityQueue_NominatedPodDeleted and …UpdateNominatedPodForNode.
#[test]
fn nominations_are_replaced_and_rejected() {
    let mut bench = Bench::with_hints(&[]);
    let medium = nominated(pod("medium", 5), "node1");
    let (low, high) = (pod("low", 1), pod("high", 9));
    bench.add(&medium);
    for pod in [&low, &high] {
        bench.objects.insert(Object::from((*pod).clone()));
    }
    let nominate = |bench: &mut Bench, pod: &Pod, node: Option<&str>| {
        let objects = bench.objects.clone();
        bench.queue.add_nominated_pod(&info(pod), node.map(Name::new), &objects);
    };
    nominate(&mut bench, &low, Some("node5"));
    nominate(&mut bench, &high, Some("node2"));
    let expected = ["node1: medium", "node5: low", "node2: high"];
    assert_eq!(nominations(&bench), expected);
    bench.pop();
    assert_eq!(nominations(&bench), expected);
    nominate(&mut bench, &high, Some("node4"));
    nominate(&mut bench, &pod("deleted", 0), Some("node1"));
    let mut bound = pod("bound", 0);
    bound.spec.node_name = "node3".into();
    bench.objects.insert(Object::from(bound));
    nominate(&mut bench, &pod("bound", 0), Some("node1"));
    bench.queue.delete_nominated_pod_if_exists("uid-low".into());
    assert_eq!(nominations(&bench), ["node1: medium", "node4: high"]);
    // An empty node ends a nomination, and so does `None` without a node in the pod's status.
    nominate(&mut bench, &low, Some("node4"));
    nominate(&mut bench, &high, None);
    assert_eq!(nominations(&bench), ["node1: medium", "node4: low"]);
    nominate(&mut bench, &low, Some(""));
    assert_eq!(nominations(&bench), ["node1: medium"]);
}

/// If neither object of an update carries a nomination, the one in memory is kept.
#[test]
fn an_update_that_does_not_speak_of_nominations_keeps_them() {
    let mut bench = Bench::with_hints(&[]);
    let plain = pod("a", 0);
    bench.add_failed(&plain, &["foo"], &[]);
    let objects = bench.objects.clone();
    bench.queue.add_nominated_pod(&info(&plain), Some("node1".into()), &objects);
    bench.update(&plain, &annotated(plain.clone()));
    assert_eq!(nominations(&bench), ["node1: a"]);
    let named = nominated(plain.clone(), "node2");
    bench.update(&plain, &named);
    assert_eq!(nominations(&bench), ["node2: a"]);
    bench.update(&named, &plain);
    assert!(nominations(&bench).is_empty());
}

#[test]
fn deleting_a_pod_ends_its_nomination() {
    let mut bench = Bench::with_hints(&[]);
    let named = nominated(pod("a", 0), "node1");
    bench.add(&named);
    assert_eq!(nominations(&bench), ["node1: a"]);
    bench.queue.delete(&named);
    assert!(nominations(&bench).is_empty() && bench.queue.nominated_pods().is_empty());
}
