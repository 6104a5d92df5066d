//! Tests of both plugins' scores and signatures with the outcomes of upstream's tests.

use std::sync::Arc;

use serde_json::{Value, json};

use super::balanced_allocation::NodeResourcesBalancedAllocationArgs;
use super::fit::{NodeResourcesFitArgs, RequestedToCapacityRatio, ScoringStrategy};
use super::*;
use crate::shape::UtilizationShapePoint;
use kubestep_api::{DeviceClass, Object, ResourceClaim, ResourceSlice};
use kubestep_config::ProfileArgs;
use kubestep_framework::plugin::Plugin;
use kubestep_framework::status::Code;
use kubestep_framework::testing::{Cluster, decoded, info_of, list, plugin, sized_node, sized_pod};

/// Nodes `n0`, `n1`… and pods written as `n0 cpu=1`.
fn cluster(nodes: &[&str], pods: &[&str]) -> Cluster {
    let nodes = nodes.iter().enumerate().map(|(at, text)| sized_node(at, text)).collect();
    let pods = pods.iter().enumerate().map(|(at, text)| {
        let (node, requests) = text.split_once(' ').unwrap();
        let containers: Vec<String> = requests.split('+').map(|r| format!("main {r}")).collect();
        let containers: Vec<&str> = containers.iter().map(String::as_str).collect();
        sized_pod(&at.to_string(), node, &containers)
    });
    Cluster::of(nodes, pods.collect())
}

fn resources(text: &str) -> Vec<ResourceSpec> {
    let spec = |pair: &str| {
        let (name, weight) = pair.split_once('=').unwrap();
        ResourceSpec { name: name.into(), weight: weight.parse().unwrap() }
    };
    text.split_whitespace().map(spec).collect()
}

fn fit(strategy: &str, counted: &str, shape: &[(i32, i32)]) -> Arc<dyn Plugin> {
    let point = |(utilization, score): &(i32, i32)| UtilizationShapePoint {
        utilization: *utilization,
        score: *score,
    };
    let shape = shape.iter().map(point).collect();
    let scoring_strategy = ScoringStrategy {
        strategy: strategy.into(),
        resources: resources(counted),
        requested_to_capacity_ratio: Some(RequestedToCapacityRatio { shape }),
    };
    let args = NodeResourcesFitArgs { scoring_strategy, ..NodeResourcesFitArgs::default() };
    plugin(super::fit::build, &ProfileArgs::default().with(args))
}

fn balanced(counted: &str) -> Arc<dyn Plugin> {
    let args = NodeResourcesBalancedAllocationArgs { resources: resources(counted) };
    plugin(balanced_allocation::build, &ProfileArgs::default().with(args))
}

fn new_pod(containers: &[&str]) -> Arc<PodInfo> {
    info_of(sized_pod("new", "", containers))
}

const BOTH: &str = "cpu=1 memory=1";

#[test]
fn least_allocated() {
    let small = "cpu=4000 memory=10000";
    let large = "cpu=10000 memory=20000";
    for (nodes, pods, containers, expected) in [
        ([small, small], &[][..], &[][..], [100, 100]),
        (
            [small, "cpu=6000 memory=10000"],
            &[],
            &["main cpu=1000 memory=2000", "main cpu=2000 memory=3000"],
            [37, 50],
        ),
        (
            [large, large],
            &[
                "n0 cpu=3000 memory=0",
                "n0 cpu=3000 memory=0",
                "n1 cpu=3000 memory=0",
                "n1 cpu=3000 memory=5000",
            ],
            &[],
            [70, 57],
        ),
        (
            [large, "cpu=10000 memory=50000"],
            &["n0 cpu=3000 memory=0", "n1 cpu=3000 memory=5000"],
            &["main cpu=3000 memory=5000"],
            [57, 60],
        ),
        (
            [small, small],
            &["n0 cpu=3000 memory=0", "n1 cpu=3000 memory=5000"],
            &["main cpu=3000 memory=0"],
            [50, 25],
        ),
        (["", ""], &["n0 cpu=3000 memory=0"], &[], [0, 0]),
    ] {
        let scores = cluster(&nodes, pods)
            .raw_scores(&fit("LeastAllocated", BOTH, &[]), &new_pod(containers));
        assert_eq!(scores.unwrap(), expected, "{nodes:?} {pods:?} {containers:?}");
    }
}

#[test]
fn least_allocated_by_configured_resources() {
    for (nodes, pods, requests, counted, expected) in [
        (
            ["cpu=4000 memory=10000", "cpu=6000 memory=10000"],
            &[][..],
            "cpu=3000 memory=5000",
            "memory=2 cpu=1",
            [41, 50],
        ),
        // A scalar counts only if the pod requests it.
        (
            ["cpu=6000 memory=10000", "cpu=6000 memory=10000 example.com/x=4"],
            &[],
            "cpu=3000 memory=5000",
            "cpu=1 memory=1 example.com/x=1",
            [50, 50],
        ),
        (
            ["cpu=6000 memory=10000 example.com/x=4", "cpu=6000 memory=10000 example.com/x=10"],
            &[],
            "cpu=3000 memory=5000 example.com/x=2",
            "cpu=1 memory=1 example.com/x=1",
            [50, 60],
        ),
        (
            ["ephemeral-storage=100", "ephemeral-storage=200"],
            &["n0 ephemeral-storage=10", "n1 ephemeral-storage=10"],
            "ephemeral-storage=40",
            "ephemeral-storage=3 gpu=1 pods=1",
            [50, 75],
        ),
    ] {
        let scores = cluster(&nodes, pods).raw_scores(
            &fit("LeastAllocated", counted, &[]),
            &new_pod(&[&format!("main {requests}")]),
        );
        assert_eq!(scores.unwrap(), expected, "{nodes:?} {requests}");
    }
}

#[test]
fn most_allocated_and_curves() {
    let nodes = ["cpu=4000 memory=10000", "cpu=6000 memory=10000"];
    let pods = ["n0 cpu=2000 memory=4000", "n1 cpu=1000 memory=2000"];
    let cluster = cluster(&nodes, &pods);
    let small = new_pod(&["main cpu=1000 memory=2000"]);
    let large = new_pod(&["main cpu=3000 memory=5000"]);
    let falling = [(0, 10), (100, 0)];
    let rising = [(0, 0), (100, 10)];
    for (strategy, shape, pod, expected) in [
        ("MostAllocated", &[][..], &small, [67, 36]),
        ("LeastAllocated", &[], &small, [32, 63]),
        ("RequestedToCapacityRatio", &falling, &large, [10, 32]),
        ("RequestedToCapacityRatio", &rising, &large, [95, 68]),
    ] {
        let plugin = fit(strategy, BOTH, shape);
        assert_eq!(cluster.raw_scores(&plugin, pod).unwrap(), expected, "{strategy}");
        // Without PreScore the scores are the same.
        let state = kubestep_framework::cycle_state::CycleState::default();
        let score = |node| plugin.score(&cluster.cx(pod), &state, node).unwrap();
        let scores: Vec<i64> = cluster.snapshot.iter().map(|node| score(node)).collect();
        assert_eq!(scores, expected, "{strategy}");
    }
}

#[test]
fn a_curve_packs_extended_resources() {
    let counted = "example.com/foo=3 example.com/bar=5";
    let plugin = fit("RequestedToCapacityRatio", counted, &[(0, 0), (100, 10)]);
    let nodes = ["example.com/foo=8 example.com/bar=4", "example.com/foo=4 example.com/bar=8"];
    for (pods, requests, expected) in [
        (&[][..], "", [0, 0]),
        (&[], "main example.com/foo=2 example.com/bar=2", [41, 34]),
        (
            &["n1 example.com/foo=2 example.com/bar=2"],
            "main example.com/foo=2 example.com/bar=2",
            [41, 69],
        ),
        (&[], "main example.com/foo=4 example.com/bar=2", [50, 53]),
    ] {
        let scores = cluster(&nodes, pods).raw_scores(&plugin, &new_pod(&[requests]));
        assert_eq!(scores.unwrap(), expected, "{requests}");
    }
}

#[test]
fn each_node_is_rejected_for_what_it_lacks() {
    let nodes = [
        "cpu=1 memory=9 pods=9",
        "cpu=8 memory=1 pods=9",
        "cpu=1 memory=1 pods=9",
        "cpu=8 memory=9 pods=0",
        "cpu=8 memory=9 pods=9",
    ];
    let cluster = cluster(&nodes, &["n4 memory=8"]);
    let rejections =
        cluster.rejections(&fit("LeastAllocated", BOTH, &[]), &new_pod(&["main cpu=2 memory=3"]));
    let both = "Insufficient cpu, Insufficient memory";
    let expected =
        ["Insufficient cpu", "Insufficient memory", both, "Too many pods", "Insufficient memory"];
    assert_eq!(rejections, expected);
}

#[test]
fn scores_ignore_requests_of_the_pod_as_a_whole() {
    let mut json = sized_pod("new", "", &["main cpu=1000 memory=2000"]);
    json["spec"]["resources"] = json!({"requests": list("cpu=3000 memory=5000")});
    let cluster = cluster(&["cpu=4000 memory=10000"], &[]);
    let least = fit("LeastAllocated", BOTH, &[]);
    assert_eq!(cluster.raw_scores(&least, &info_of(json.clone())).unwrap(), [77]);
    // BalancedAllocation counts them: shares 0.75 and 0.5. Those of the container are 0.25 and 0.2.
    assert_eq!(cluster.raw_scores(&balanced(BOTH), &info_of(json)).unwrap(), [68]);
}

#[test]
fn without_resources_there_is_no_score() {
    let cluster = cluster(&["cpu=1 memory=1"], &[]);
    let status = cluster.raw_scores(&fit("LeastAllocated", "", &[]), &new_pod(&["main"]));
    let status = status.unwrap_err();
    assert_eq!((status.code(), status.message().as_str()), (Code::Error, "resources not found"));
}

#[test]
fn balanced_allocation() {
    let three = "cpu=1 memory=1 nvidia.com/gpu=1";
    let large = "cpu=10000m memory=20000";
    let pods = ["n0 cpu=3000m", "n1 cpu=3000m memory=5000"];
    for (nodes, pods, requests, counted, expected) in [
        (
            ["cpu=4000m memory=10000", "cpu=6000m memory=10000"],
            &[][..],
            "cpu=3000m memory=5000",
            BOTH,
            [68, 75],
        ),
        ([large, large], &pods, "cpu=3000m memory=5000", BOTH, [73, 74]),
        ([large, "cpu=10000m memory=50000"], &pods, "cpu=3000m memory=5000", BOTH, [73, 70]),
        (
            ["cpu=3000m memory=5000", "cpu=3000m memory=5000"],
            &["n0 cpu=3000m"],
            "memory=5000",
            BOTH,
            [100, 50],
        ),
        (["cpu=6000m memory=10000", "cpu=6000m memory=10000"], &pods, "cpu=3000m", BOTH, [62, 62]),
        (
            ["cpu=3500m memory=40000 nvidia.com/gpu=8", "cpu=3500m memory=40000 nvidia.com/gpu=8"],
            &["n0 cpu=3000m memory=5000 nvidia.com/gpu=3", "n1 cpu=3000m memory=5000"],
            "nvidia.com/gpu=1",
            three,
            [75, 76],
        ),
        (
            ["cpu=3500m memory=40000 nvidia.com/gpu=8", "cpu=3500m memory=40000"],
            &[],
            "cpu=3000m memory=5000",
            three,
            [56, 56],
        ),
        // A share above 1 counts as 1; a single resource is always balanced.
        (["cpu=1 memory=10", "cpu=1"], &["n0 cpu=9"], "cpu=1", BOTH, [75, 75]),
    ] {
        let pod = new_pod(&[&format!("main {requests}")]);
        let scores = cluster(&nodes, pods).raw_scores(&balanced(counted), &pod);
        assert_eq!(scores.unwrap(), expected, "{nodes:?} {pods:?}");
    }
}

#[test]
fn the_balance_is_given_with_and_without_the_pod() {
    let cluster = cluster(&["cpu=10000m memory=20000"], &["n0 cpu=3000m"]);
    let pod = new_pod(&["main cpu=3000m memory=5000"]);
    let args = NodeResourcesBalancedAllocationArgs { resources: resources(BOTH) };
    let node = cluster.node("n0");
    let (amounts, with, without) = balanced_allocation::balances(&cluster.cx(&pod), &args, node);
    // Shares 0.6 and 0.25, 0.3 and 0.
    assert_eq!((with, without), (82, 85));
    let used: Vec<_> = amounts.iter().map(|a| (a.allocated, a.requested, a.allocatable)).collect();
    assert_eq!(used, [(3000, 6000, 10000), (0, 5000, 20000)]);
}

#[test]
fn a_pod_without_requests_is_not_balanced() {
    let cluster = cluster(&["cpu=4 memory=10000"], &[]);
    let status = cluster.raw_scores(&balanced(BOTH), &new_pod(&["main"])).unwrap_err();
    assert!(status.is_skip());
    let status = cluster.raw_scores(&balanced(BOTH), &new_pod(&["main example.com/x=1"]));
    assert!(status.unwrap_err().is_skip());
}

fn class(resource: Option<&str>) -> Object {
    let class = json!({"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": resource}});
    Object::from(decoded::<DeviceClass>(class))
}

fn slice(name: &str, spec: Value, devices: &[&str]) -> Object {
    let devices: Vec<Value> = devices.iter().map(|name| json!({"name": name})).collect();
    let mut all = json!({"driver": "d", "pool": {"name": name}, "devices": devices});
    for (key, value) in spec.as_object().unwrap() {
        all[key] = value.clone();
    }
    Object::from(decoded::<ResourceSlice>(json!({"metadata": {"name": name}, "spec": all})))
}

fn allocated(name: &str, pool: &str, device: &str, extra: Value) -> Object {
    let mut result = json!({"driver": "d", "pool": pool, "device": device});
    for (key, value) in extra.as_object().unwrap() {
        result[key] = value.clone();
    }
    Object::from(decoded::<ResourceClaim>(json!({"metadata": {"name": name, "namespace": "x"},
        "status": {"allocation": {"devices": {"results": [result]}}}})))
}

#[test]
fn devices_count_for_a_resource_that_the_node_does_not_have() {
    let least = fit("LeastAllocated", "example.com/gpu=1", &[]);
    let mut cluster = cluster(&["cpu=1", "cpu=1", "example.com/gpu=8"], &[]);
    let pod = new_pod(&["main example.com/gpu=1"]);
    cluster.objects.insert(class(Some("example.com/gpu")));
    cluster.objects.insert(slice("a", json!({"nodeName": "n0"}), &["1", "2", "3"]));
    cluster.objects.insert(slice("b", json!({"nodeName": "n1"}), &["1", "2"]));
    assert_eq!(cluster.raw_scores(&least, &pod).unwrap(), [66, 50, 87]);
    cluster.objects.insert(allocated("c", "a", "1", json!({})));
    cluster.objects.insert(allocated("s", "b", "2", json!({"shareID": "7"})));
    cluster.objects.insert(allocated("t", "a", "2", json!({"adminAccess": true})));
    assert_eq!(cluster.raw_scores(&least, &pod).unwrap(), [33, 0, 87]);
    cluster.objects.insert(slice("all", json!({"allNodes": true}), &["1", "2"]));
    assert_eq!(cluster.raw_scores(&least, &pod).unwrap(), [60, 50, 87]);
    cluster.features = cluster.features.with(Feature::DRAExtendedResource, false);
    assert_eq!(cluster.raw_scores(&least, &pod).unwrap(), [0, 0, 87]);
}

#[test]
fn devices_may_be_bound_to_nodes_one_by_one_or_by_selector() {
    let least = fit("LeastAllocated", "deviceclass.resource.kubernetes.io/gpu=1", &[]);
    let mut cluster = cluster(&["cpu=1", "cpu=1"], &[]);
    cluster.edit_node(1, |node| {
        let mut object = (**node.node.as_ref().unwrap()).clone();
        object.metadata.labels = [("zone", "b")].into();
        node.set_node(Arc::new(object));
    });
    let zone_b = json!({"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}]});
    let mut one_by_one = json!({"metadata": {"name": "s"}, "spec": {"driver": "d",
        "pool": {"name": "p"}, "perDeviceNodeSelection": true, "devices": [
            {"name": "1", "nodeName": "n0"},
            {"name": "2", "nodeName": "other"},
            {"name": "3", "nodeSelector": zone_b},
            {"name": "4", "allNodes": true},
            {"name": "5"}]}});
    cluster.objects.insert(class(None));
    cluster.objects.insert(Object::from(decoded::<ResourceSlice>(one_by_one.clone())));
    let pod = new_pod(&["main deviceclass.resource.kubernetes.io/gpu=1"]);
    assert_eq!(cluster.raw_scores(&least, &pod).unwrap(), [50, 50]);
    cluster.objects.insert(slice("t", json!({"nodeSelector": zone_b}), &["1", "2"]));
    assert_eq!(cluster.raw_scores(&least, &pod).unwrap(), [50, 75]);
    // With an invalid node selector the whole node counts as without devices.
    one_by_one["spec"]["devices"][2]["nodeSelector"]["nodeSelectorTerms"][0]["matchExpressions"]
        [0]["operator"] = json!("Near");
    cluster.objects.insert(Object::from(decoded::<ResourceSlice>(one_by_one)));
    assert_eq!(cluster.raw_scores(&least, &pod).unwrap(), [0, 0]);
}

#[test]
fn balance_counts_devices_too() {
    let plugin = balanced("cpu=1 memory=1 example.com/gpu=1");
    let nodes = ["cpu=3500m memory=40000", "cpu=3500m memory=40000"];
    let mut cluster = cluster(&nodes, &["n0 cpu=3000m", "n1 cpu=3000m memory=5000"]);
    cluster.objects.insert(class(Some("example.com/gpu")));
    let devices = ["1", "2", "3", "4", "5", "6", "7", "8"];
    cluster.objects.insert(slice("a", json!({"nodeName": "n0"}), &devices));
    let pod = new_pod(&["main example.com/gpu=1"]);
    assert_eq!(cluster.raw_scores(&plugin, &pod).unwrap(), [76, 75]);
}

#[test]
fn pods_with_the_same_requests_sign_alike() {
    let mut cluster = cluster(&[], &[]);
    let plugins = [fit("LeastAllocated", BOTH, &[]), balanced(BOTH)];
    let sign = |cluster: &Cluster, pod: &PodInfo| {
        plugins.each_ref().map(|plugin| plugin.sign(&cluster.queue(), pod))
    };
    let one = new_pod(&["main cpu=500m memory=1000", "main cpu=1500m memory=3000"]);
    let same = new_pod(&["main cpu=2 memory=4000"]);
    let text = r#"{"MilliCPU":2000,"Memory":4000,"EphemeralStorage":0,"AllowedPodNumber":0,"ScalarResources":null}"#;
    let expected = Ok(vec![("v1.Pod.Spec.ContainerRequestsAndOverheads()", text.to_owned())]);
    assert_eq!(sign(&cluster, &one), [expected.clone(), expected.clone()]);
    assert_eq!(sign(&cluster, &same), [expected.clone(), expected]);
    let device = new_pod(&["main example.com/gpu=1"]);
    let [first, _] = sign(&cluster, &device);
    assert!(first.unwrap()[0].1.contains(r#""ScalarResources":{"example.com/gpu":1}"#));
    cluster.objects.insert(class(Some("example.com/gpu")));
    let rejection = "signature disabled when dra extended resources are used in the cluster";
    assert_eq!(sign(&cluster, &device), [Err(rejection.into()), Err(rejection.into())]);
    let none = new_pod(&["main example.com/gpu=0"]);
    assert!(sign(&cluster, &none).iter().all(Result::is_ok));
}

#[test]
fn pod_level_requests_count_for_filter_and_balance_and_defaults_for_the_score() {
    let pod = info_of(json!({"metadata": {"name": "p"}, "spec": {
        "resources": {"requests": {"cpu": "2"}},
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}));
    let mut cluster = cluster(&["cpu=1 pods=9", "cpu=4 memory=1000 pods=9"], &[]);
    let least = fit("LeastAllocated", "cpu=1", &[]);
    let balance = balanced(BOTH);
    let of = |cluster: &Cluster| {
        let balance = cluster.raw_scores(&balance, &pod).unwrap();
        (cluster.rejections(&least, &pod), cluster.raw_scores(&least, &pod).unwrap(), balance[1])
    };
    // Half of the CPU beside no memory: 75 with the pod, 100 without; a quarter: 87 and 100.
    assert_eq!(of(&cluster), (vec!["Insufficient cpu".into(), String::new()], vec![0, 75], 62));
    cluster.features = cluster.features.with(Feature::PodLevelResources, false);
    assert_eq!(of(&cluster), (vec![String::new(), String::new()], vec![0, 75], 68));
    // 100m of 1.
    assert_eq!(cluster.raw_scores(&least, &new_pod(&["main"])).unwrap()[0], 90);
}
