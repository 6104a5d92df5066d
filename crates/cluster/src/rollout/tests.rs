//! Rollouts of each kind of workload: which pods are created and deleted, and when.

use serde_json::{Value, json};

use super::*;
use kubestep_api::{ControllerReports, Provisioning};
use kubestep_config as config;
use kubestep_config::{Feature, FeatureGates};
use kubestep_framework::testing::object;

/// Nodes `a`, `b`, … with room for `pods` pods of one CPU each.
fn world(nodes: usize, pods: usize, objects: impl IntoIterator<Item = Value>) -> World {
    world_with(FeatureGates::default(), nodes, pods, objects)
}

fn world_with(
    gates: FeatureGates,
    nodes: usize,
    pods: usize,
    objects: impl IntoIterator<Item = Value>,
) -> World {
    let registry = kubestep_plugins::registry();
    let config = config::resolve(None, &gates, &registry.descriptors()).unwrap();
    let mut world = World::new(&config, gates, &registry).unwrap();
    let nodes = (b'a'..).take(nodes).map(|name| {
        let name = char::from(name).to_string();
        json!({"kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            "status": {"allocatable": {"cpu": pods.to_string(), "memory": "8Gi", "pods": "20"}}})
    });
    crate::load(&mut world, nodes.chain(objects).map(object).collect::<Vec<_>>());
    world
}

fn pod(name: &str, node: &str, kind: &str, owner: &str, label: (&str, &str)) -> Value {
    json!({"kind": "Pod", "metadata": {"name": name, "namespace": "default",
            "labels": {"app": "x", label.0: label.1},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": kind, "name": owner,
                "uid": owner, "controller": true}]},
        "spec": {"nodeName": node, "containers": [{"name": "c",
            "resources": {"requests": {"cpu": "1"}}}]},
        "status": {"phase": "Running"}})
}

/// A Deployment `web` of that many pods, on the nodes in turn.
fn web(nodes: &[&str], count: usize) -> Vec<Value> {
    let set = json!({"kind": "ReplicaSet", "metadata": {"name": "web-1", "namespace": "default",
            "uid": "web-1", "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment",
                "name": "web", "uid": "web", "controller": true}]},
        "spec": {"replicas": count, "selector": {"matchLabels": {"pod-template-hash": "1"}}}});
    let pods = (0..count).map(|number| {
        let node = nodes[number % nodes.len()];
        pod(&format!("web-1-{number}"), node, "ReplicaSet", "web-1", ("pod-template-hash", "1"))
    });
    [set].into_iter().chain(pods).collect()
}

fn name(kind: WorkloadKind, name: &str) -> WorkloadName {
    WorkloadName { kind, key: NamespacedName::new("default".into(), name.into()) }
}

fn start(world: &mut World, kind: WorkloadKind, workload: &str) -> bool {
    world.rollout(name(kind, workload), |_| Ok(())).unwrap()
}

fn with_deployment(world: &mut World, spec: Value) {
    let deployment = json!({"metadata": {"name": "web", "namespace": "default"}, "spec": spec});
    let deployments = vec![serde_json::from_value(deployment).unwrap()];
    world.set_controllers(ControllerReports { deployments, ..ControllerReports::default() });
}

fn rollout(world: &World) -> &Rollout {
    &world.disruptions().unwrap().rollouts()[0]
}

/// `+web` for a created pod, `-web-1-0` for a deleted one.
fn steps(world: &World) -> Vec<String> {
    let words = |step: &RolloutStep| match step.deleted_from {
        Some(_) => format!("-{}", step.pod.name),
        None => format!("+{}", step.pod.name.text().split('-').next().unwrap()),
    };
    rollout(world).steps().iter().map(words).collect()
}

fn state(world: &World) -> (RolloutState, usize, usize) {
    let counts = rollout(world).counts(world.now());
    (rollout(world).state(), counts.updated_available, counts.old)
}

fn is_complete(world: &World) -> bool {
    matches!(rollout(world).state(), RolloutState::Complete(_))
}

#[test]
fn a_deployment_surges_and_then_deletes() {
    let mut world = world(2, 10, web(&["a", "b"], 4));
    assert!(!start(&mut world, WorkloadKind::Deployment, "web"));
    // 25 % of 4 is 1, in both directions.
    assert_eq!(steps(&world).iter().filter(|step| *step == "+web").count(), 2);
    assert_eq!((rollout(&world).members.len(), state(&world).2), (5, 3));
    world.run(50);
    assert!(is_complete(&world));
    assert_eq!(state(&world).1, 4);
    let deleted = steps(&world).into_iter().filter(|step| step.starts_with('-')).count();
    assert_eq!((deleted, steps(&world).len()), (4, 8));
    let sets = &world.api().objects().replica_sets;
    let sizes: Vec<_> = sets.values().map(|set| set.spec.replicas.unwrap()).collect();
    assert_eq!((sizes.iter().sum::<i32>(), sizes.len()), (4, 2));
}

#[test]
fn a_deployment_without_room_is_stuck_where_nothing_may_be_unavailable() {
    let mut world = world(2, 2, web(&["a", "b"], 4));
    with_deployment(
        &mut world,
        json!({"replicas": 4, "strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 2}}}),
    );
    assert!(start(&mut world, WorkloadKind::Deployment, "web"));
    world.run(50);
    assert_eq!(state(&world), (RolloutState::UnderWay, 0, 4));
    assert_eq!(rollout(&world).unplaced().count(), 2);
}

#[test]
fn recreate_deletes_all_first_and_fits_where_a_surge_does_not() {
    let mut world = world(1, 4, web(&["a"], 4));
    with_deployment(&mut world, json!({"replicas": 4, "strategy": {"type": "Recreate"}}));
    start(&mut world, WorkloadKind::Deployment, "web");
    assert!(steps(&world)[..4].iter().all(|step| step.starts_with('-')));
    world.run(50);
    assert!(is_complete(&world) && steps(&world)[4..] == ["+web"; 4]);
}

#[test]
fn a_new_pod_counts_after_min_ready_seconds() {
    let mut world = world(2, 10, web(&["a", "b"], 2));
    with_deployment(
        &mut world,
        json!({"replicas": 2, "minReadySeconds": 30,
            "strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}}),
    );
    start(&mut world, WorkloadKind::Deployment, "web");
    for deleted in 1..=2 {
        world.run(10);
        assert_eq!(state(&world).1, deleted - 1);
        let due = world.next_disruption().unwrap();
        assert_eq!((due.0 - world.now().0) / 1_000_000, 30);
        world.advance(due.0 - world.now().0);
        assert_eq!(state(&world).2, 2 - deleted);
    }
    assert!(is_complete(&world) && world.next_disruption().is_none());
}

#[test]
fn the_pods_deleted_first_are_cheap_and_crowded() {
    let mut pods = web(&["a", "a", "b"], 3);
    pods[3]["metadata"]["annotations"] = json!({"controller.kubernetes.io/pod-deletion-cost": "9"});
    pods[2]["metadata"]["creationTimestamp"] = json!("2025-12-31T23:59:59Z");
    pods[1]["metadata"]["creationTimestamp"] = json!("2025-01-01T00:00:00Z");
    let mut world = world(2, 10, pods);
    let spec =
        json!({"replicas": 3, "strategy": {"rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}});
    with_deployment(&mut world, spec);
    start(&mut world, WorkloadKind::Deployment, "web");
    world.run(50);
    let deleted = steps(&world).into_iter().filter(|step| step.starts_with('-'));
    assert_eq!(deleted.collect::<Vec<_>>(), ["-web-1-1", "-web-1-0", "-web-1-2"]);
}

#[test]
fn constraints_on_the_template_follow_the_new_one() {
    let mut pods = web(&["a"], 1);
    pods[1]["spec"]["topologySpreadConstraints"] = json!([{"maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
        "matchLabelKeys": ["pod-template-hash"],
        "labelSelector": {"matchLabels": {"app": "x"}}}]);
    let mut world = world(1, 4, pods);
    start(&mut world, WorkloadKind::Deployment, "web");
    world.run(9);
    let pod = world.api().objects().pods.values().next().unwrap().clone();
    let selector = pod.spec.topology_spread_constraints[0].label_selector.clone().unwrap();
    let [merged] = selector.match_expressions.as_slice() else { panic!("{selector:?}") };
    assert_eq!(Some(&merged.values[0]), pod.metadata.labels.get_str("pod-template-hash"));
    assert_ne!(merged.values[0], "1");
}

/// A set of that many pods, unless the specification says another number.
fn set(mut spec: Value, count: usize) -> Vec<Value> {
    if spec["replicas"].is_null() {
        spec["replicas"] = json!(count);
    }
    let set = json!({"kind": "StatefulSet", "metadata": {"name": "db", "namespace": "default",
        "uid": "db"}, "spec": spec});
    let pods = (0..count)
        .map(|number| pod(&format!("db-{number}"), "a", "StatefulSet", "db", (REVISION, "old")));
    [set].into_iter().chain(pods).collect()
}

#[test]
fn a_stateful_set_goes_down_from_the_highest_ordinal_to_its_partition() {
    let update = json!({"updateStrategy": {"rollingUpdate": {"partition": 9}}});
    let mut world = world(1, 20, set(update, 12));
    assert!(start(&mut world, WorkloadKind::StatefulSet, "db"));
    assert_eq!(steps(&world), ["-db-11", "+db"]);
    world.run(50);
    assert_eq!(steps(&world), ["-db-11", "+db", "-db-10", "+db", "-db-9", "+db"]);
    assert!(is_complete(&world));
    assert_eq!((rollout(&world).to_update(), state(&world).2), (3, 9));
}

#[test]
fn a_stateful_set_waits_for_each_pod() {
    let mut objects = set(json!({}), 3);
    // The new pod does not fit beside what was started meanwhile.
    objects.push(json!({"kind": "Pod", "metadata": {"name": "other", "namespace": "default"},
        "spec": {"priority": 5, "containers": [{"name": "c",
            "resources": {"requests": {"cpu": "1"}}}]}}));
    let mut world = world(1, 3, objects);
    start(&mut world, WorkloadKind::StatefulSet, "db");
    world.run(50);
    assert_eq!(steps(&world), ["-db-2", "+db"]);
    assert_eq!(state(&world), (RolloutState::UnderWay, 0, 2));
}

#[test]
fn several_pods_of_a_stateful_set_may_be_unavailable() {
    let update = json!({"updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}}});
    let mut gated = world(1, 20, set(update.clone(), 4));
    start(&mut gated, WorkloadKind::StatefulSet, "db");
    assert_eq!(steps(&gated), ["-db-3", "+db"]);
    let gates = FeatureGates::default().with(Feature::MaxUnavailableStatefulSet, true);
    let mut world = world_with(gates, 1, 20, set(update, 4));
    start(&mut world, WorkloadKind::StatefulSet, "db");
    assert_eq!(steps(&world), ["-db-3", "-db-2", "+db"]);
    world.run(50);
    assert!(is_complete(&world));
    assert_eq!(steps(&world)[3..], ["+db", "-db-1", "-db-0", "+db", "+db"]);
}

#[test]
fn pods_of_a_stateful_set_that_somebody_else_deletes() {
    let strategy = json!({"updateStrategy": {"type": "OnDelete"}});
    let mut world = world(1, 20, set(strategy, 2));
    start(&mut world, WorkloadKind::StatefulSet, "db");
    assert!(is_complete(&world) && steps(&world).is_empty());
}

/// A set of pods with these ordinals.
fn set_of(spec: Value, ordinals: &[usize]) -> Vec<Value> {
    let mut objects = set(spec, 0);
    objects.extend(ordinals.iter().map(|number| {
        let name = format!("db-{number}");
        let mut pod = pod(&name, "a", "StatefulSet", "db", (REVISION, "old"));
        pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] = json!(name);
        let claim = json!({"claimName": format!("data-{name}")});
        pod["spec"]["volumes"] = json!([{"name": "data", "persistentVolumeClaim": claim}]);
        pod
    }));
    objects
}

/// The names of the pods, `+` for those that were created.
fn named_steps(world: &World) -> Vec<String> {
    let sign = |step: &RolloutStep| if step.deleted_from.is_some() { '-' } else { '+' };
    let steps = rollout(world).steps().iter();
    steps.map(|step| format!("{}{}", sign(step), step.pod.name)).collect()
}

#[test]
fn a_stateful_set_gets_its_missing_pods_and_loses_surplus_ones_before_old_ones() {
    let spec = json!({"replicas": 4, "updateStrategy": {"rollingUpdate": {"partition": 2}}});
    let mut objects = set_of(spec, &[1, 2, 5, 6]);
    // No claim, no wait for a volume.
    for object in &mut objects[1..] {
        object["spec"]["volumes"] = json!([]);
    }
    let mut world = world(1, 20, objects);
    assert!(start(&mut world, WorkloadKind::StatefulSet, "db"));
    assert_eq!(named_steps(&world), ["+db-0"]);
    world.run(50);
    let expected = ["+db-0", "+db-3", "-db-6", "-db-5", "-db-2", "+db-2"];
    assert_eq!(named_steps(&world), expected);
    assert!(is_complete(&world));
    let label = |name: &str| {
        let key = NamespacedName::new("default".into(), name.into());
        let pod = world.api().objects().pod(key).unwrap();
        (
            pod.metadata.labels.get_str(REVISION) == Some(&"old".into()),
            pod.metadata.labels.get_str("statefulset.kubernetes.io/pod-name").copied().unwrap(),
        )
    };
    // Below the partition a missing pod gets the old template.
    assert_eq!(label("db-0"), (true, "db-0".into()));
    assert_eq!(label("db-3"), (false, "db-3".into()));
}

#[test]
fn a_parallel_stateful_set_scales_at_once() {
    let spec = json!({"replicas": 3, "podManagementPolicy": "Parallel",
        "updateStrategy": {"type": "OnDelete"}, "ordinals": {"start": 1}});
    let claim = |name: &str| {
        json!({"kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"},
            "spec": {"volumeName": "v", "storageClassName": "s"}, "status": {"phase": "Bound"}})
    };
    let objects = set_of(spec, &[0, 1]).into_iter().chain([claim("data-db-1")]);
    let mut world = world(1, 20, objects);
    start(&mut world, WorkloadKind::StatefulSet, "db");
    assert_eq!(named_steps(&world), ["+db-2", "+db-3", "-db-0"]);
    assert!(is_complete(&world));
    let claims = &world.api().objects().persistent_volume_claims;
    let key = NamespacedName::new("default".into(), "data-db-3".into());
    assert!(claims.get(&key).unwrap().spec.volume_name.is_empty());
}

#[test]
fn a_pod_that_is_deleted_gets_the_new_template_even_if_the_rollout_deletes_none() {
    let spec = json!({"replicas": 1, "updateStrategy": {"type": "OnDelete"}});
    let mut world = world(2, 20, set(spec, 1));
    let workload = name(WorkloadKind::StatefulSet, "db");
    let change = |pod: &mut Pod| {
        pod.metadata.labels.insert("version".into(), "2".into());
        Ok(())
    };
    world.rollout(workload, change).unwrap();
    world.lose_nodes(&["a".into()]);
    world.run(9);
    let pod = world.api().objects().pods.values().next().unwrap().clone();
    assert_eq!(pod.metadata.labels.get_str("version"), Some(&"2".into()));
    assert_eq!((pod.metadata.name, pod.spec.node_name), ("db-0".into(), "b".into()));
}

fn daemons(nodes: &[&str]) -> Vec<Value> {
    let pod = |node: &&str| {
        let mut pod = pod(&format!("log-{node}"), node, "DaemonSet", "log", (REVISION, "old"));
        pod["spec"]["affinity"] = json!({"nodeAffinity":
            {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms":
                [{"matchFields": [{"key": NODE, "operator": "In", "values": [node]}]}]}}});
        pod
    };
    nodes.iter().map(pod).collect()
}

const NODE: &str = "metadata.name";

fn with_daemon_set(world: &mut World, spec: Value) {
    let set = json!({"metadata": {"name": "log", "namespace": "default"}, "spec": spec});
    world.set_provisioning(Provisioning { daemon_sets: vec![set], ..Provisioning::default() });
}

#[test]
fn a_daemon_set_goes_from_node_to_node() {
    let mut world = world(3, 2, daemons(&["a", "b", "c"]));
    assert!(!start(&mut world, WorkloadKind::DaemonSet, "log"));
    assert_eq!(steps(&world), ["-log-a", "+log"]);
    world.run(50);
    assert_eq!(steps(&world), ["-log-a", "+log", "-log-b", "+log", "-log-c", "+log"]);
    assert!(is_complete(&world));
    let nodes = world.api().objects().pods.values().map(|pod| pod.spec.node_name.text());
    let mut nodes: Vec<_> = nodes.collect();
    nodes.sort_unstable();
    assert_eq!(nodes, ["a", "b", "c"]);
}

#[test]
fn a_daemon_set_with_surge_needs_room_for_both() {
    let surge = json!({"updateStrategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 2}}});
    let mut roomy = world(3, 2, daemons(&["a", "b", "c"]));
    with_daemon_set(&mut roomy, surge.clone());
    assert!(start(&mut roomy, WorkloadKind::DaemonSet, "log"));
    assert_eq!(steps(&roomy), ["+log", "+log"]);
    roomy.run(50);
    assert!(is_complete(&roomy) && steps(&roomy).len() == 6);
    let mut full = world(3, 1, daemons(&["a", "b", "c"]));
    with_daemon_set(&mut full, surge);
    start(&mut full, WorkloadKind::DaemonSet, "log");
    full.run(50);
    assert_eq!(state(&full), (RolloutState::UnderWay, 0, 3));
    assert_eq!(rollout(&full).unplaced().count(), 2);
}

#[test]
fn what_cannot_begin_changes_nothing() {
    let mut world = world(1, 4, web(&["a"], 1));
    let other = name(WorkloadKind::Deployment, "other");
    assert_eq!(world.rollout(other, |_| Ok(())), Err(RolloutError::NoPods(other)));
    let web = name(WorkloadKind::Deployment, "web");
    let wrong = world.rollout(web, |_| Err("no".into()));
    assert_eq!(wrong, Err(RolloutError::Template("no".into())));
    with_deployment(&mut world, json!({"paused": true}));
    assert_eq!(world.rollout(web, |_| Ok(())), Err(RolloutError::Paused(web)));
    assert!(world.disruptions().is_none());
}

#[test]
fn a_second_rollout_takes_over() {
    let mut world = world(2, 10, web(&["a", "b"], 4));
    start(&mut world, WorkloadKind::Deployment, "web");
    start(&mut world, WorkloadKind::Deployment, "web");
    world.run(50);
    let rollouts = world.disruptions().unwrap().rollouts();
    assert_eq!(rollouts[0].state(), RolloutState::Superseded);
    assert!(matches!(rollouts[1].state(), RolloutState::Complete(_)));
    assert_eq!(world.api().objects().pods.len(), 4);
}

#[test]
fn daemon_pods_of_any_origin_are_replaced_on_their_nodes() {
    let mut pods = daemons(&["a", "b"]);
    pods[0]["spec"]["affinity"] = Value::Null;
    pods[1]["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        ["nodeSelectorTerms"][0]["matchFields"][0]["values"] = json!(["a"]);
    let mut world = world(2, 2, pods);
    start(&mut world, WorkloadKind::DaemonSet, "log");
    world.run(50);
    assert_eq!(steps(&world), ["-log-a", "+log", "-log-b", "+log"]);
    assert!(is_complete(&world));
}

#[test]
fn a_daemon_set_that_is_known_gets_its_missing_pods_and_loses_others() {
    let not_c = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
        {"nodeSelectorTerms": [{"matchExpressions": [
            {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["c"]}]}]}}});
    let spec = json!({"template": {"metadata": {"labels": {"app": "x"}},
        "spec": {"affinity": not_c, "containers": [{"name": "c"}]}}});
    let mut pods = daemons(&["a", "c", "d", "d"]);
    pods[3]["metadata"]["name"] = json!("log-d-younger");
    let mut world = world(4, 9, pods);
    with_daemon_set(&mut world, spec);
    start(&mut world, WorkloadKind::DaemonSet, "log");
    assert_eq!(steps(&world), ["+log", "-log-c", "-log-d-younger"]);
    world.run(50);
    assert_eq!(steps(&world)[3..], ["-log-a", "+log", "-log-d", "+log"]);
    assert!(is_complete(&world));
    assert_eq!(rollout(&world).replicas(), 3);
}

#[test]
fn a_pending_daemon_pod_goes_with_its_node() {
    let mut world = world(2, 1, daemons(&["a", "b"]));
    start(&mut world, WorkloadKind::DaemonSet, "log");
    assert_eq!(steps(&world), ["-log-a", "+log"]);
    world.lose_nodes(&["a".into()]);
    world.run(50);
    assert_eq!(steps(&world), ["-log-a", "+log", "-log-00005", "-log-b", "+log"]);
    assert!(is_complete(&world));
}

#[test]
fn a_daemon_set_whose_pods_somebody_deletes_is_complete_at_once() {
    let mut world = world(2, 2, daemons(&["a", "b", "gone"]));
    with_daemon_set(&mut world, json!({"updateStrategy": {"type": "OnDelete"}}));
    start(&mut world, WorkloadKind::DaemonSet, "log");
    assert!(is_complete(&world) && steps(&world).is_empty());
}

#[test]
fn a_deployment_has_a_largest_size() {
    let mut world = world(1, 4, web(&["a"], 1));
    with_deployment(&mut world, json!({"replicas": i32::MAX}));
    let web = name(WorkloadKind::Deployment, "web");
    let many = world.rollout(web, |_| Ok(())).unwrap_err().to_string();
    assert_eq!(many, "Deployment default/web: spec.replicas: 2147483647 is more than 1000000");
}
