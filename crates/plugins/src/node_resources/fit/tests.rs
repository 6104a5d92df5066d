//! Tests of NodeResourcesFit: filter reasons, scores and hints.

use kubestep_api::Name;
use serde_json::{Value, json};

use super::*;
use kubestep_framework::node::NodeId;
use kubestep_framework::status::Code;
use kubestep_framework::testing::{Cluster, decoded, info_of, plugin};

fn fit() -> Arc<dyn Plugin> {
    plugin(build, &ProfileArgs::default())
}

fn requesting(requests: Value) -> Arc<PodInfo> {
    info_of(json!({"metadata": {"name": "new", "uid": "new"},
        "spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]}}))
}

fn node(allocatable: Value) -> Value {
    json!({"metadata": {"name": "n"}, "status": {"allocatable": allocatable}})
}

fn running(requests: Value) -> Value {
    json!({"metadata": {"name": "old", "uid": "old"}, "spec": {"nodeName": "n",
        "containers": [{"name": "c", "resources": {"requests": requests}}]}})
}

#[test]
fn what_lacks_is_listed_in_upstreams_order() {
    let allocatable = json!({"cpu": "10m", "memory": "20", "pods": "32",
        "ephemeral-storage": "20", "example.com/a": "5", "hugepages-2Mi": "5"});
    // used, requested, code, reasons
    let cases = [
        (json!({"cpu": "10m", "memory": "20"}), json!({}), Code::Success, ""),
        (
            json!({"cpu": "10m", "memory": "20"}),
            json!({"cpu": "1m", "memory": "1"}),
            Code::Unschedulable,
            "Insufficient cpu, Insufficient memory",
        ),
        (
            json!({"cpu": "5m", "memory": "5"}),
            json!({"cpu": "5m", "memory": "15"}),
            Code::Success,
            "",
        ),
        (json!({"cpu": "9m"}), json!({"cpu": "2m"}), Code::Unschedulable, "Insufficient cpu"),
        (
            json!({}),
            json!({"cpu": "11m", "memory": "1"}),
            Code::UnschedulableAndUnresolvable,
            "Insufficient cpu",
        ),
        (
            json!({"memory": "20"}),
            json!({"cpu": "11m", "memory": "1", "ephemeral-storage": "21"}),
            Code::UnschedulableAndUnresolvable,
            "Insufficient cpu, Insufficient memory, Insufficient ephemeral-storage",
        ),
        (
            json!({"example.com/a": "3", "hugepages-2Mi": "5"}),
            json!({"example.com/a": "3", "hugepages-2Mi": "1"}),
            Code::Unschedulable,
            "Insufficient example.com/a, Insufficient hugepages-2Mi",
        ),
        (
            json!({}),
            json!({"example.com/b": "1"}),
            Code::UnschedulableAndUnresolvable,
            "Insufficient example.com/b",
        ),
        (json!({}), json!({"example.com/b": "0", "cpu": "0"}), Code::Success, ""),
    ];
    for (used, requested, code, reasons) in cases {
        let cluster = Cluster::of(vec![node(allocatable.clone())], vec![running(used.clone())]);
        let status = cluster.filter(&fit(), &requesting(requested.clone())).unwrap().remove(0);
        assert_eq!((status.code(), status.message().as_str()), (code, reasons), "{requested}");
        assert_eq!(status.plugin(), if reasons.is_empty() { "" } else { "NodeResourcesFit" });
    }
}

#[test]
fn too_many_pods_is_resolvable_and_counts_even_without_requests() {
    let allocatable = json!({"pods": "1", "cpu": "1", "memory": "1Gi"});
    let cluster = Cluster::of(vec![node(allocatable)], vec![running(json!({}))]);
    let status = cluster.filter(&fit(), &requesting(json!({}))).unwrap().remove(0);
    assert_eq!(status, Status::unschedulable("Too many pods").by("NodeResourcesFit".into()));
    let status = cluster.filter(&fit(), &requesting(json!({"cpu": "2"}))).unwrap().remove(0);
    assert_eq!(status.message(), "Too many pods, Insufficient cpu");
    assert_eq!(status.code(), Code::UnschedulableAndUnresolvable);
}

#[test]
fn more_scalars_than_the_table_holds_are_listed_all_the_same() {
    let requests: serde_json::Map<String, Value> =
        (0..6).map(|i| (format!("example.com/r{i}"), json!("1"))).collect();
    let cluster = Cluster::of(vec![node(json!({"pods": "9"}))], vec![]);
    let rejections = cluster.rejections(&fit(), &requesting(Value::Object(requests)));
    let expected: Vec<String> = (0..6).map(|i| format!("Insufficient example.com/r{i}")).collect();
    assert_eq!(rejections, [expected.join(", ")]);
}

#[test]
fn exempt_resources_are_matched_by_name_or_group() {
    let args = ProfileArgs::default().with(NodeResourcesFitArgs {
        ignored_resources: vec!["example.com/a".into()],
        ignored_resource_groups: vec!["other.org".into(), "hugepages".into()],
        ..NodeResourcesFitArgs::default()
    });
    let cluster = Cluster::of(vec![node(json!({"pods": "9"}))], vec![]);
    for (resource, rejected) in [
        ("example.com/a", false),
        ("example.com/b", true),
        ("other.org/x", false),
        ("hugepages-2Mi", true),
        ("kubernetes.io/x", true),
    ] {
        let new = requesting(json!({resource: "1"}));
        let status = cluster.filter(&plugin(build, &args), &new).unwrap().remove(0);
        assert_eq!(!status.is_success(), rejected, "{resource}");
    }
}

#[test]
fn devices_stand_in_only_where_the_node_has_none() {
    let class = |resource: &str| {
        decoded::<kubestep_api::DeviceClass>(json!({"metadata": {"name": "gpu"},
            "spec": {"extendedResourceName": resource}}))
    };
    let plain = json!({"pods": "9"});
    let nodes = vec![
        json!({"metadata": {"name": "without"}, "status": {"allocatable": plain}}),
        json!({"metadata": {"name": "zero"},
            "status": {"allocatable": {"pods": "9", "example.com/gpu": "0"}}}),
        json!({"metadata": {"name": "too-few"},
            "status": {"allocatable": {"pods": "9", "example.com/gpu": "1"}}}),
    ];
    let mut cluster = Cluster::of(nodes, vec![]);
    let new = requesting(json!({"example.com/gpu": "2"}));
    let lacks = "Insufficient example.com/gpu";
    assert_eq!(cluster.rejections(&fit(), &new), [lacks, lacks, lacks]);
    cluster.objects.insert(class("example.com/gpu").into());
    assert_eq!(cluster.rejections(&fit(), &new), ["", "", lacks]);
    let implicit = requesting(json!({"deviceclass.resource.kubernetes.io/gpu": "1"}));
    assert_eq!(cluster.rejections(&fit(), &implicit), ["", "", ""]);
    cluster.features = cluster.features.with(Feature::DRAExtendedResource, false);
    assert_eq!(cluster.rejections(&fit(), &new), [lacks, lacks, lacks]);
}

#[test]
fn filter_without_pre_filter_is_an_error() {
    let cluster = Cluster::of(vec![node(json!({"pods": "9"}))], vec![]);
    let new = requesting(json!({}));
    let info = cluster.snapshot.get(NodeId(0)).unwrap();
    let status = fit().filter(&cluster.cx(&new), &CycleState::default(), info);
    assert_eq!(
        (status.code(), status.message().as_str()),
        (Code::Error, r#"error reading "PreFilterNodeResourcesFit" from cycleState: not found"#)
    );
}

/// Requests as (cpu, memory, GPUs); GPUs are omitted if they are 0.
type Size = (&'static str, &'static str, u32);

fn sized(name: &str, size: Size) -> kubestep_api::Pod {
    use kubestep_framework::testing::{PodBuilder, pod};
    let (cpu, memory, gpus) = size;
    let pod = pod(name).requests("cpu", cpu).requests("memory", memory);
    if gpus == 0 { pod } else { pod.requests("nvidia.com/gpu", &gpus.to_string()) }
}

/// The score of the placement `n1 n2` with these pods, and with a pod that is already there.
fn placement_score(resources: &[(&str, i64)], pods: &[(Size, &str)], old: Option<Size>) -> i64 {
    use crate::node_resources::ResourceSpec;
    use kubestep_framework::pod_groups::Placement;
    use kubestep_framework::testing::{Cluster, NodeBuilder, PodBuilder, info, key};
    let node = |name: &str| {
        let node =
            kubestep_framework::testing::node(name).offers("cpu", "5").offers("memory", "5000");
        node.offers("nvidia.com/gpu", "5")
    };
    let old = old.map(|size| sized("old", size).on("n1"));
    let cluster = Cluster::new(["n1", "n2", "n3"].map(node), old);
    let resources = resources
        .iter()
        .map(|(name, weight)| ResourceSpec { name: (*name).into(), weight: *weight });
    let scoring_strategy =
        ScoringStrategy { resources: resources.collect(), ..ScoringStrategy::default() };
    let args = NodeResourcesFitArgs { scoring_strategy, ..NodeResourcesFitArgs::default() };
    let args = ProfileArgs::default().with(args);
    let placement = Placement { name: "p".into(), nodes: vec!["n1".into(), "n2".into()] };
    let assignments = pods
        .iter()
        .enumerate()
        .map(|(at, (size, node))| (info(sized(&at.to_string(), *size)), Name::new(node)));
    let proposal = Proposal { placement: &placement, assignments: assignments.collect() };
    let cx = GroupContext {
        group: key("g"),
        snapshot: &cluster.snapshot,
        objects: &cluster.objects,
        features: &cluster.features,
        shared: &cluster.shared,
        now: cluster.now,
    };
    plugin(build, &args).score_placement(&cx, &proposal).unwrap()
}

#[test]
fn a_placement_scores_by_how_full_it_gets() {
    let both = [("cpu", 1), ("memory", 1)];
    let pods: [(Size, &str); 2] = [(("1", "0", 0), "n1"), (("2", "2000", 0), "n2")];
    assert_eq!(placement_score(&both, &pods, None), 25);
    let weighted = [("cpu", 4), ("memory", 1)];
    assert_eq!(placement_score(&weighted, &pods, None), 28);
    let together: [(Size, &str); 2] = [pods[0], (pods[1].0, "n1")];
    assert_eq!(placement_score(&weighted, &together, None), 28);
    assert_eq!(placement_score(&both, &pods, Some(("1", "0", 0))), 30);
}

#[test]
fn a_placement_counts_what_some_pod_of_the_group_requests() {
    let resources = [("cpu", 1), ("memory", 1), ("nvidia.com/gpu", 1)];
    let pods = |gpus| [(("1", "0", 0), "n1"), (("1", "2000", gpus), "n2")];
    assert_eq!(placement_score(&resources, &pods(1), Some(("1", "0", 0))), 20);
    assert_eq!(placement_score(&resources, &pods(0), Some(("1", "0", 1))), 25);
}
