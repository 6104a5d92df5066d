//! Drains and losses: the order in which pods leave, their replacements, and what budgets allow.

use serde_json::{Value, json};

use super::*;
use kubestep_config as config;
use kubestep_config::FeatureGates;
use kubestep_framework::testing::object;

fn world(objects: impl IntoIterator<Item = Value>) -> World {
    let (registry, gates) = (kubestep_plugins::registry(), FeatureGates::default());
    let config = config::resolve(None, &gates, &registry.descriptors()).unwrap();
    let mut world = World::new(&config, gates, &registry).unwrap();
    let nodes = ["a", "b", "c"].map(|name| {
        json!({"kind": "Node", "metadata": {"name": name},
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}})
    });
    crate::load(&mut world, nodes.into_iter().chain(objects).map(object).collect::<Vec<_>>());
    world
}

/// A pod on a node, of a controller `KIND NAME`.
fn pod(name: &str, node: &str, controller: &str) -> Value {
    let mut owners = json!([]);
    if let Some((kind, owner)) = controller.split_once(' ') {
        owners = json!([{"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": owner,
            "controller": true}]);
    }
    json!({"kind": "Pod", "metadata": {"name": name, "namespace": "default",
            "labels": {"app": controller.rsplit(' ').next()}, "ownerReferences": owners},
        "spec": {"nodeName": node, "containers": [{"name": "c",
            "resources": {"requests": {"cpu": "1"}}}]},
        "status": {"phase": "Running"}})
}

fn budget(name: &str, app: &str, spec: Value) -> Value {
    let mut spec = spec;
    spec["selector"] = json!({"matchLabels": {"app": app}});
    json!({"kind": "PodDisruptionBudget", "metadata": {"name": name, "namespace": "default"},
        "spec": spec})
}

fn allowed(world: &World, name: &str) -> [i32; 4] {
    let key = NamespacedName::new("default".into(), name.into());
    let status = &world.api().objects().pod_disruption_budgets[&key].status;
    [
        status.expected_pods,
        status.desired_healthy,
        status.current_healthy,
        status.disruptions_allowed,
    ]
}

/// `POD CAUSE -> REPLACEMENT`, in order.
fn left(world: &World) -> Vec<String> {
    let all = world.disruptions().unwrap().removed().iter();
    all.map(|one| {
        let replacement = match &one.replacement {
            Replacement::Pod(pod) => {
                let name = pod.name.text();
                name.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned()
            }
            Replacement::Nothing(why) => (*why).to_owned(),
            Replacement::Due => "due".to_owned(),
        };
        format!("{} {} -> {replacement}", one.pod.name, one.cause.as_str())
    })
    .collect()
}

/// Runs cycles, and lets time pass to the next attempt of the drain.
fn retry(world: &mut World) {
    world.run(20);
    let due = world.next_eviction().unwrap();
    world.advance(due.0 - world.now().0);
}

#[test]
fn a_drain_evicts_what_budgets_allow_and_tries_again() {
    let mut world = world([
        pod("web-1", "a", "ReplicaSet web"),
        pod("web-2", "a", "ReplicaSet web"),
        pod("web-3", "b", "ReplicaSet web"),
        pod("db-0", "a", "StatefulSet db"),
        pod("log-a", "a", "DaemonSet log"),
        budget("web", "web", json!({"minAvailable": 2})),
    ]);
    world.drain(&["a".into()], false).unwrap();
    assert!(world.api().node("a".into()).unwrap().spec.unschedulable);
    assert_eq!(left(&world), ["db-0 evicted -> db-", "web-1 evicted -> web-"]);
    assert_eq!(allowed(&world, "web"), [3, 2, 2, 0]);
    let blocked = world.disruptions().unwrap().blocked().to_vec();
    let words = blocked[0].rejection.as_ref().unwrap().to_string();
    assert_eq!(words, "budget default/web needs 2 healthy pods and has 2");
    // Nothing is bound, so the budget refuses again.
    let due = world.next_eviction().unwrap();
    world.advance(due.0 - world.now().0);
    assert_eq!(left(&world).len(), 2);
    retry(&mut world);
    assert_eq!(left(&world)[2..], ["web-2 evicted -> web-"]);
    let disruptions = world.disruptions().unwrap();
    assert_eq!((disruptions.removed()[2].rejections, disruptions.next_eviction()), (2, None));
    assert!(disruptions.drained()[0].done.is_some() && disruptions.violations().is_empty());
    assert_eq!(disruptions.skipped()[0].pod.name, "log-a");
    world.run(20);
    assert_eq!(allowed(&world, "web"), [3, 2, 3, 1]);
}

#[test]
fn nodes_of_a_drain_are_emptied_one_after_another() {
    let mut world = world([
        pod("web-1", "b", "ReplicaSet web"),
        pod("web-2", "a", "ReplicaSet web"),
        pod("web-3", "a", "ReplicaSet web"),
        budget("web", "web", json!({"maxUnavailable": "34%"})),
    ]);
    world.drain(&["a".into(), "b".into()], false).unwrap();
    assert!(world.api().node("b".into()).unwrap().spec.unschedulable);
    // 34 % of 3 is rounded up.
    assert_eq!(allowed(&world, "web"), [3, 1, 1, 0]);
    assert_eq!(left(&world), ["web-2 evicted -> web-", "web-3 evicted -> web-"]);
    retry(&mut world);
    assert_eq!(left(&world)[2..], ["web-1 evicted -> web-"]);
    assert!(world.disruptions().unwrap().drained().iter().all(|node| node.done.is_some()));
}

#[test]
fn kubectl_refuses_pods_without_a_controller_and_gives_up_on_several_budgets() {
    let mut world = world([
        pod("alone", "a", ""),
        pod("web-1", "a", "ReplicaSet web"),
        budget("one", "web", json!({"minAvailable": 0})),
        budget("two", "web", json!({"minAvailable": 0})),
    ]);
    let refused = world.drain(&["a".into()], false).unwrap_err();
    assert_eq!(refused.0.len(), 1);
    assert!(!world.api().node("a".into()).unwrap().spec.unschedulable);
    world.drain(&["a".into()], true).unwrap();
    assert_eq!(left(&world), ["alone evicted -> no controller recreates it"]);
    let disruptions = world.disruptions().unwrap();
    let blocked = &disruptions.blocked()[0];
    assert!(
        matches!(&blocked.rejection, Some(EvictionRejection::SeveralBudgets(all)) if all.len() == 2)
    );
    assert_eq!((blocked.due, disruptions.next_eviction()), (None, None));
}

#[test]
fn a_lost_node_takes_its_pods_along_whatever_budgets_say() {
    let mut mirror = pod("proxy", "a", "Node a");
    mirror["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"});
    let mut world = world([
        pod("alone", "a", ""),
        pod("log-a", "a", "DaemonSet log"),
        mirror,
        pod("sum-x", "a", "Job sum"),
        pod("web-1", "a", "ReplicaSet web"),
        pod("web-2", "a", "ReplicaSet web"),
        budget("web", "web", json!({"minAvailable": "50%"})),
    ]);
    world.lose_nodes(&["a".into()]);
    assert_eq!(
        left(&world),
        [
            "alone lost -> no controller recreates it",
            "log-a lost -> its DaemonSet runs one pod on each node",
            "proxy lost -> a static pod, which runs only on its node",
            "sum-x lost -> sum-",
            "web-1 lost -> web-",
            "web-2 lost -> web-",
        ]
    );
    let violation = world.disruptions().unwrap().violations()[0];
    assert_eq!((violation.needed, violation.lowest, violation.healthy), (1, 0, 0));
    world.run(20);
    let violation = world.disruptions().unwrap().violations()[0];
    assert_eq!((violation.lowest, violation.healthy), (0, 2));
    assert!(world.api().objects().pods.values().all(|pod| !pod.spec.node_name.is_empty()));
}

#[test]
fn unhealthy_pods_of_the_status_stay_unhealthy() {
    let mut budget = budget("web", "web", json!({"minAvailable": 1}));
    budget["status"] = json!({"currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 2,
        "observedGeneration": 1});
    let pods = [pod("web-1", "a", "ReplicaSet web"), pod("web-2", "b", "ReplicaSet web")];
    let mut world = world(pods.into_iter().chain([budget]));
    world.drain(&["a".into()], false).unwrap();
    assert_eq!(allowed(&world, "web"), [2, 1, 1, 0]);
    assert!(left(&world).is_empty());
}

#[test]
fn victims_of_preemption_are_recreated_once_there_are_disruptions() {
    let mut urgent = pod("urgent", "a", "ReplicaSet urgent");
    urgent["spec"]["priority"] = json!(1000);
    urgent["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!("4");
    let mut world =
        world([urgent, pod("web-1", "b", "ReplicaSet web"), pod("web-2", "c", "ReplicaSet web")]);
    world.lose_nodes(&["a".into()]);
    world.run(20);
    let left = left(&world);
    assert_eq!(left[0], "urgent lost -> urgent-");
    assert!(left[1].ends_with("preempted -> web-"), "{left:?}");
    let pods = world.api().objects().pods.values();
    assert_eq!(pods.filter(|pod| pod.spec.node_name.is_empty()).count(), 0);
}

#[test]
fn claims_of_a_single_pod_are_made_again() {
    let mut web = pod("web-1", "a", "ReplicaSet web");
    web["spec"]["volumes"] = json!([{"name": "scratch", "ephemeral": {}}]);
    let mut set = pod("db-0", "a", "StatefulSet db");
    set["metadata"]["uid"] = json!("first");
    let claim = json!({"kind": "PersistentVolumeClaim",
        "metadata": {"name": "web-1-scratch", "namespace": "default",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes", "kept": "x"}},
        "spec": {"volumeName": "v", "storageClassName": "s"}, "status": {"phase": "Bound"}});
    let mut world = world([web, set, claim]);
    world.lose_nodes(&["a".into()]);
    let claims: Vec<_> = world.api().objects().persistent_volume_claims.values().collect();
    let [claim] = claims.as_slice() else { panic!("{claims:?}") };
    assert!(claim.metadata.name.text().ends_with("-scratch") && claim.spec.volume_name.is_empty());
    assert_eq!(claim.metadata.annotations.keys().count(), 1);
    let key = NamespacedName::new("default".into(), "db-0".into());
    assert_ne!(world.api().objects().pod(key).unwrap().metadata.uid, "first");
}
