//! Pod groups from the first pod to the bound gang, and rejected as a whole if the capacity does
//! not suffice.

use serde_json::json;

use crate::World;
use kubestep_api::intern::Symbol;
use kubestep_api::{Object, Pod};
use kubestep_config as config;
use kubestep_config::FeatureGates;
use kubestep_framework::record::{CycleRecord, Outcome, QueueName};
use kubestep_framework::testing::{NodeBuilder, PodBuilder, key, node, object, pod};

/// A node with `cpu` CPUs, and a gang that needs `min_count` pods.
fn world(cpu: &str, min_count: i32) -> World {
    let gates = [("GenericWorkload", true), ("GangScheduling", true)];
    let features = FeatureGates::from_pairs(gates).unwrap();
    let registry = kubestep_plugins::registry();
    let config = config::resolve(None, &features, &registry.descriptors()).unwrap();
    let mut world = World::new(&config, features, &registry).unwrap();
    world.create(node("n1").offers("cpu", cpu).into());
    world.create(object(json!({
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": min_count}}},
    })));
    world
}

fn member(name: &str) -> Pod {
    pod(name).requests("cpu", "1").spec(json!({"schedulingGroup": {"podGroupName": "g"}}))
}

/// One step: the records of all pods that took part, in the order of their cycles.
fn step(world: &mut World) -> Vec<(String, Outcome, String)> {
    let first = world.step().unwrap();
    let others = world.scheduler_mut().take_finished();
    let outcome = |record: &CycleRecord| {
        (record.pod.name.to_string(), record.outcome, record.message.clone())
    };
    std::iter::once(outcome(&first)).chain(others.iter().map(outcome)).collect()
}

/// Reason and message of the group's condition.
fn condition(world: &World) -> String {
    let Some(group) = world.api().objects().pod_groups.get(&key("g")).cloned() else {
        return String::new();
    };
    let Object::PodGroup(group) = Object::PodGroup(group) else { return String::new() };
    group.status.conditions.iter().map(|c| format!("{}: {}", c.reason, c.message)).collect()
}

#[test]
fn a_gang_is_bound_as_soon_as_it_is_complete() {
    let mut world = world("4", 2);
    world.create(member("a").into());
    assert!(world.step().is_none(), "one pod is no gang");
    assert_eq!(world.scheduler().queue().queue_of(key("a")), QueueName::Gated);
    world.create(member("b").into());
    let scheduled = |name: &str| (name.to_owned(), Outcome::Scheduled, String::new());
    assert_eq!(step(&mut world), [scheduled("a"), scheduled("b")]);
    assert!(world.scheduler().waiting().is_empty());
    assert_eq!(condition(&world), "Scheduled: ");
    assert!(world.step().is_none());
}

#[test]
fn without_room_for_all_nobody_starts() {
    let mut world = world("1", 2);
    world.create(member("a").into());
    world.create(member("b").into());
    let outcomes = step(&mut world);
    let waiting = "pod group is unschedulable, waiting for minCount pods from a gang to be \
                   scheduled, one or more plugins asked to wait and no plugin rejected pod";
    let no_cpu = "0/1 nodes are available: 1 Insufficient cpu.";
    assert_eq!((outcomes[0].1, outcomes[0].2.as_str()), (Outcome::Unschedulable, waiting));
    assert_eq!(outcomes[1].1, Outcome::Unschedulable);
    assert!(outcomes[1].2.starts_with(no_cpu), "{}", outcomes[1].2);
    assert_eq!(condition(&world), "Unschedulable: pod group is unschedulable");
    for name in ["a", "b"] {
        assert_eq!(world.scheduler().queue().queue_of(key(name)), QueueName::Backoff);
        let pod = world.api().objects().pod(key(name)).unwrap();
        assert_eq!(pod.spec.node_name, "");
    }
    // The attempt leaves nothing reserved: a separate pod gets the CPU.
    world.create(pod("own").requests("cpu", "1").priority(9).into());
    assert_eq!(world.step().unwrap().outcome, Outcome::Scheduled);
}

/// 1.35 has no cycle of a group: its pods are tried one by one, and Permit holds them.
#[test]
fn up_to_1_35_the_pods_of_a_gang_wait_at_permit() {
    let gates = [("GenericWorkload", true), ("GangScheduling", true)];
    let of_version = FeatureGates::of(config::KubeVersion::of_minor(35).unwrap());
    let features = of_version.with_pairs(gates).unwrap();
    let registry = kubestep_plugins::registry();
    let config = config::resolve(None, &features, &registry.descriptors()).unwrap();
    let mut world = World::new(&config, features, &registry).unwrap();
    world.create(node("n1").offers("cpu", "2").into());
    let member = |name: &str| {
        let reference = json!({"name": "w", "podGroup": "g"});
        pod(name).requests("cpu", "1").spec(json!({"workloadRef": reference}))
    };
    world.create(member("a").into());
    world.create(member("b").into());
    assert!(world.step().is_none(), "their workload does not exist");
    world.create(object(json!({
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "Workload",
        "metadata": {"name": "w", "namespace": "default"},
        "spec": {"podGroupTemplates": [
            {"name": "g", "schedulingPolicy": {"gang": {"minCount": 2}}},
        ]},
    })));
    let first = world.step().unwrap();
    assert_eq!((first.outcome, first.group.is_none()), (Outcome::Waiting, true));
    let second = world.step().unwrap();
    assert_eq!(second.outcome, Outcome::Scheduled);
    let nodes = |name: &str| world.api().objects().pod(key(name)).unwrap().spec.node_name;
    assert_eq!([nodes("a"), nodes("b")], ["n1", "n1"].map(Symbol::new));
}
