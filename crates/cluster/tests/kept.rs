//! Answers that are kept from cycle to cycle do not outlive what they depend on. Debug builds also
//! compare them with newly computed answers in each cycle.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has to stop")]

use kubestep_api::Kind;
use kubestep_cluster::World;
use kubestep_config::{FeatureGates, UnknownPlugins, resolve_as};
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::testing::object;
use serde_json::{Value, json};

fn world(objects: impl IntoIterator<Item = Value>) -> World {
    configured(None, objects)
}

fn configured(configuration: Option<&str>, objects: impl IntoIterator<Item = Value>) -> World {
    let (registry, gates) = (kubestep_plugins::registry(), FeatureGates::default());
    let (descriptors, unknown) = (registry.descriptors(), UnknownPlugins::Opaque);
    let config = resolve_as(configuration, Vec::new(), &gates, &descriptors, unknown).unwrap();
    let mut world = World::new(&config, gates, &registry).unwrap();
    kubestep_cluster::load(&mut world, objects.into_iter().map(object).collect::<Vec<_>>());
    world
}

fn node(name: &str, tier: &str, size: u32) -> Value {
    json!({"kind": "Node", "metadata": {"name": name, "labels": {"tier": tier}},
        "status": {"allocatable":
            {"cpu": size.to_string(), "memory": format!("{size}Gi"), "pods": "100"}}})
}

/// A pod of that many CPUs and GiB; `spec` is added to its spec.
fn pod(name: &str, size: &str, spec: Value) -> Value {
    let mut pod = json!({"kind": "Pod", "metadata": {"name": name, "uid": name, "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "i",
            "resources": {"requests": {"cpu": size, "memory": format!("{size}Gi")}}}]}});
    for (field, value) in spec.as_object().unwrap() {
        pod["spec"][field] = value.clone();
    }
    pod
}

/// A pod that takes port 80 of its node.
fn with_port(mut pod: Value) -> Value {
    pod["spec"]["containers"][0]["ports"] = json!([{"hostPort": 80, "containerPort": 80}]);
    pod
}

/// Prefers nodes by their tier, with these weights.
fn preferring(tiers: &[(&str, i32)]) -> Value {
    let terms = tiers.iter().map(|(tier, weight)| {
        json!({"weight": weight, "preference": {"matchExpressions":
            [{"key": "tier", "operator": "In", "values": [tier]}]}})
    });
    let terms: Vec<Value> = terms.collect();
    json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}})
}

/// The node of a pod after all cycles.
fn node_of(mut world: World, name: &str) -> String {
    world.run(50);
    let pods = world.api().objects().pods.values();
    let found = pods.filter(|pod| pod.metadata.name == name).map(|pod| pod.spec.node_name);
    found.map(|node| node.to_string()).collect()
}

#[test]
fn a_pod_on_an_unknown_node_changes_no_score() {
    let mut world = world(["a", "b", "c"].map(|name| node(name, "t", 10)));
    world.create(object(pod("one", "1", json!({}))));
    world.run(5);
    world.create(object(pod("elsewhere", "1", json!({"nodeName": "gone"}))));
    world.create(object(pod("two", "1", json!({}))));
    assert_ne!(node_of(world, "two"), "");
}

#[test]
fn scores_are_relative_to_feasible_nodes() {
    let nodes = [("a1", "a"), ("a2", "a"), ("b", "b"), ("c", "c"), ("d", "c")];
    let nodes = nodes.map(|(name, tier)| node(name, tier, 10));
    let busy = ["a1", "a2"].map(|node| with_port(pod(node, "0", json!({"nodeName": node}))));
    let affinity = || json!({"affinity": preferring(&[("a", 10), ("b", 1)])});
    let pods = [
        pod("load", "3", json!({"nodeName": "b"})),
        pod("one", "1", affinity()),
        with_port(pod("two", "1", affinity())),
    ];
    assert_eq!(node_of(world(nodes.into_iter().chain(busy).chain(pods)), "two"), "b");
}

/// The scores of `a` are kept while claims change, which empties the cache of answers, and while the
/// scores of `b`, which differ in one plugin, fill it again.
#[test]
fn scores_do_not_outlive_the_cache_of_answers() {
    let sizes = [("x", 16), ("y", 10), ("w1", 10), ("w2", 10), ("w3", 10)];
    let nodes = sizes.map(|(name, size)| node(name, name, size));
    let devices = ["1", "2", "3", "4"].map(|name| json!({"name": name}));
    let claim = |name: &str| {
        json!({"kind": "ResourceClaim", "apiVersion": "resource.k8s.io/v1",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}})
    };
    let claiming = |name: &str, priority| {
        let claims = json!([{"name": "q", "resourceClaimName": name}]);
        pod(name, "0.5", json!({"priority": priority, "resourceClaims": claims}))
    };
    let objects = [
        json!({"kind": "DeviceClass", "apiVersion": "resource.k8s.io/v1",
            "metadata": {"name": "gpu"},
            "spec": {"selectors": [{"cel": {"expression": "device.driver == \"d\""}}]}}),
        json!({"kind": "ResourceSlice", "apiVersion": "resource.k8s.io/v1",
            "metadata": {"name": "slice"},
            "spec": {"driver": "d", "nodeName": "y", "devices": devices,
                "pool": {"name": "y", "generation": 1, "resourceSliceCount": 1}}}),
        claim("d1"),
        claim("d2"),
        claiming("d1", 99),
        pod("a1", "4", json!({"priority": 98})),
        claiming("d2", 97),
        pod("b", "4", json!({"priority": 96, "affinity": preferring(&[("w1", 10)])})),
        pod("a2", "4", json!({"priority": 95})),
    ];
    assert_eq!(node_of(world(nodes.into_iter().chain(objects)), "a2"), "w2");
}

const WITH_OPAQUE: &str = "\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {filter: {disabled: [{name: '*'}], enabled: [{name: Foreign}, {name: NodeResourcesFit}]}}
";

/// The pods of a class see what is reserved for a nominated pod, others with a higher priority do
/// not, and all of them see that the nomination is gone. What plugins reject without it stays so,
/// also beside the column of an opaque plugin.
#[test]
fn verdicts_with_nominated_pods_follow_the_nominations() {
    for configuration in [None, Some(WITH_OPAQUE)] {
        follow_nominations(configuration);
    }
}

fn follow_nominations(configuration: Option<&str>) {
    let prior = |priority: i32| json!({"priority": priority});
    let objects = [
        node("full", "t", 4),
        node("empty", "t", 0),
        pod("victim", "4", json!({"nodeName": "full", "priority": 0})),
        pod("urgent", "4", prior(100)),
    ];
    let mut world = configured(configuration, objects);
    let cycle = |world: &mut World| {
        let cycle = world.step().unwrap();
        (cycle.pod.name.to_string(), cycle.node.is_some())
    };
    assert_eq!(cycle(&mut world), ("urgent".into(), false));
    for (name, priority) in [("first", 50), ("second", 50), ("above", 200), ("third", 50)] {
        world.create(object(pod(name, "1", prior(priority))));
        assert_eq!(cycle(&mut world), (name.into(), priority > 100));
    }
    world.delete(Kind::Pod, NamespacedName::new("default".into(), "urgent".into()));
    world.run(50);
    let pods = world.api().objects().pods.values();
    let bound = pods.filter(|pod| pod.spec.node_name == "full").count();
    assert_eq!(bound, 4, "the room of the nominated pod is free again");
}
