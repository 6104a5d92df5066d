//! Pod groups from the first pod to the bound group, and rejected as a whole.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::testing::{object, places, problems, waiting, world};
use kubestep_cluster::World;
use kubestep_framework::api::Time;
use kubestep_framework::shared::PluginStore;
use kubestep_framework::testing::{Cluster, NodeBuilder, PodBuilder, info, key, node, pod};

fn group(spec: Value) -> Object {
    object(json!({
        "apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"}, "spec": spec,
    }))
}

fn member(name: &str) -> Pod {
    pod(name).requests("cpu", "1").label("scheduling.x-k8s.io/pod-group", "g")
}

/// A node with `cpu` CPUs and a group.
fn cluster(args: &str, cpu: &str, spec: Value) -> World {
    let mut world = world(&format!(
        "plugins: {{multiPoint: {{enabled: [{{name: Coscheduling}}]}}, \
         queueSort: {{enabled: [{{name: Coscheduling}}], disabled: [{{name: '*'}}]}}}}\n  \
         pluginConfig: [{{name: Coscheduling, args: {args}}}]"
    ));
    world.create(group(spec));
    world.create(node("n").offers("cpu", cpu).into());
    world
}

fn messages(world: &mut World, cycles: usize) -> Vec<String> {
    world.run(cycles).iter().map(|record| record.message.clone()).collect()
}

#[test]
fn an_incomplete_group_is_rejected_by_pre_filter() {
    let mut world = cluster("{}", "4", json!({"minMember": 2}));
    world.create(member("a").into());
    let reason = "pre-filter pod a cannot find enough sibling pods, current pods number: 1, \
                  minMember of group: 2";
    let said = messages(&mut world, 1);
    assert!(said[0].contains(reason), "{said:?}");
    // A pod without a group and one whose group does not exist are not held up by PreFilter.
    world.create(pod("alone").into());
    world.create(pod("lost").label("scheduling.x-k8s.io/pod-group", "other").into());
    world.run(4);
    assert_eq!(places(&world, &["alone", "lost"]), ["n", ""]);
    world.create(member("b").into());
    world.advance(20_000_000);
    world.run(4);
    assert_eq!(places(&world, &["a", "b"]), ["n", "n"]);
}

#[test]
fn pods_wait_for_their_quorum() {
    let mut world = cluster("{}", "4", json!({"minMember": 3}));
    ["a", "b", "c"].iter().for_each(|name| world.create(member(name).into()));
    world.run(2);
    assert_eq!(waiting(&world), ["a", "b"]);
    assert_eq!(places(&world, &["a", "b"]), ["", ""]);
    world.run(1);
    assert_eq!(places(&world, &["a", "b", "c"]), ["n", "n", "n"]);
    // The quorum is kept by pods that are bound.
    world.create(member("d").into());
    world.run(1);
    assert_eq!(places(&world, &["d"]), ["n"]);
}

#[test]
fn a_pod_that_fits_nowhere_rejects_its_group() {
    let args = "{podGroupBackoffSeconds: 30}";
    let mut world = cluster(args, "2", json!({"minMember": 3}));
    ["a", "b", "c"].iter().for_each(|name| world.create(member(name).into()));
    let said = messages(&mut world, 3);
    let reason = "PodGroup default/g gets rejected due to Pod c is unschedulable even after \
                  PostFilter";
    assert!(said[2].contains(reason), "{said:?}");
    assert!(waiting(&world).is_empty());
    assert_eq!(places(&world, &["a", "b", "c"]), ["", "", ""]);
    world.advance(5_000_000);
    let said = messages(&mut world, 1);
    assert!(said[0].contains("podGroup default/g failed recently"), "{said:?}");
}

#[test]
fn a_small_gap_rejects_nobody() {
    let args = "{podGroupRejectPercentage: 50, permitWaitingTimeSeconds: 20}";
    let mut world = cluster(args, "2", json!({"minMember": 3}));
    ["a", "b", "c"].iter().for_each(|name| world.create(member(name).into()));
    world.run(3);
    assert_eq!(waiting(&world), ["a", "b"]);
    let deadline = world.scheduler().waiting()[0].holds()[0];
    assert_eq!((deadline.plugin, deadline.timeout), (PLUGIN.name.into(), Duration::from_secs(20)));
    // When the first times out, Unreserve rejects the other.
    world.advance(21_000_000);
    assert!(waiting(&world).is_empty());
}

#[test]
fn the_wait_comes_from_the_group_first() {
    let wait = |args: &str, spec: Value| {
        let mut world = cluster(args, "4", spec);
        ["a", "b"].iter().for_each(|name| world.create(member(name).into()));
        world.run(1);
        world.scheduler().waiting()[0].holds()[0].timeout.nanos / Duration::SECOND.nanos
    };
    assert_eq!(wait("{}", json!({"minMember": 2, "scheduleTimeoutSeconds": 7})), 7);
    assert_eq!(wait("{}", json!({"minMember": 2})), 60);
    assert_eq!(wait("{permitWaitingTimeSeconds: 0}", json!({"minMember": 2})), 60);
    assert_eq!(wait("{permitWaitingTimeSeconds: 9}", json!({"minMember": 2})), 9);
}

/// What PreFilter says of `a`, whose siblings are these pods.
fn pre_filter(spec: Value, siblings: &[Pod]) -> String {
    let mut cluster = Cluster::new(
        [
            node("n1").offers("cpu", "4").offers("pods", "9"),
            node("n2").offers("cpu", "4").offers("pods", "9"),
        ],
        siblings.iter().cloned(),
    )
    .with(group(spec));
    let plugin = build(&ProfileArgs::default(), &FeatureGates::default()).unwrap();
    for pod in std::iter::once(&member("a")).chain(siblings).cloned() {
        cluster.objects.insert(pod.clone().into());
        see(&plugin, &mut cluster, pod);
    }
    let pod = info(member("a"));
    let cx = cluster.cx(&pod);
    let answer = plugin.pre_filter(&cx, &mut CycleState::default());
    let explained = plugin.explain_pre_filter(&cx, &CycleState::default());
    assert_eq!(explained.is_empty(), answer.status.is_success());
    explained.into_iter().map(|it| it.words).collect()
}

fn see(plugin: &Arc<dyn Plugin>, cluster: &mut Cluster, pod: Pod) {
    let mut cx = HandlerContext {
        objects: &cluster.objects,
        features: &cluster.features,
        shared: &mut cluster.shared,
        profiles: &[],
        now: cluster.now,
    };
    plugin.handle_event(&mut cx, &EventObjects { old: None, new: Some(pod.into()) });
}

#[test]
fn pre_filter_counts_members_gates_and_resources() {
    let gated = |name: &str| member(name).spec(json!({"schedulingGates": [{"name": "x"}]}));
    let resources = |cpu: &str| json!({"minMember": 2, "minResources": {"cpu": cpu}});
    for (spec, siblings, expected) in [
        (json!({"minMember": 1}), vec![], ""),
        (json!({"minMember": 2}), vec![], "pod group default/g has 1 of the 2 pods that it needs"),
        (json!({"minMember": 2}), vec![member("b"), member("c")], ""),
        (json!({"minMember": 2}), vec![member("b"), gated("c")], ""),
        (
            json!({"minMember": 3}),
            vec![gated("b"), member("c")],
            "pod group default/g needs 3 pods without scheduling gates and has 2",
        ),
        (resources("6"), vec![member("b"), member("c")], ""),
        (
            resources("10"),
            vec![member("b"), member("c")],
            "the cluster lacks 2 cpu of minResources of pod group default/g",
        ),
        // The group's own pods do not count against it.
        (resources("8"), vec![member("b").on("n1"), member("c").on("n2")], ""),
    ] {
        assert_eq!(pre_filter(spec.clone(), &siblings), expected, "{spec}");
    }
}

#[test]
fn the_queue_is_ordered_by_priority_group_and_name() {
    let created = |seconds: i64| {
        let mut group = group(json!({}));
        group.metadata_mut().creation_timestamp = Some(Time(0) + Duration::from_secs(seconds));
        group
    };
    let mut cluster = Cluster::default().with(created(5));
    let queued = |pod: Pod, seconds: i64| {
        let mut queued = QueuedPodInfo::new(info(pod), Time(0));
        queued.initial_attempt = Some(Time(0) + Duration::from_secs(seconds));
        queued
    };
    let less = |cluster: &Cluster, a: &QueuedPodInfo, b: &QueuedPodInfo| {
        GroupOrder::new(&cluster.queue()).less(a, b)
    };
    let (low, high) = (queued(pod("p1").priority(10), 0), queued(pod("p2").priority(100), 9));
    assert!(less(&cluster, &high, &low) && !less(&cluster, &low, &high));
    let (first, second) = (queued(pod("p2"), 1), queued(pod("p1"), 2));
    assert!(less(&cluster, &first, &second) && !less(&cluster, &second, &first));
    // A pod of the group counts from the group's creation, whenever it came itself.
    let (late, six) = (queued(member("m"), 99), queued(pod("p"), 6));
    assert!(less(&cluster, &late, &six));
    assert!(less(&cluster, &queued(member("m1"), 7), &queued(member("m2"), 1)));
    // After a failure it counts from then on.
    let failure = |shared: &mut PluginStore, seconds: i64| {
        let fail =
            |times: &mut GroupTimes| times.failed(key("g"), Time(0) + Duration::from_secs(seconds));
        shared.plugins.update(fail);
    };
    failure(&mut cluster.shared, 7);
    assert!(!less(&cluster, &late, &six) && less(&cluster, &six, &late));
    cluster.shared.plugins.update(|times: &mut GroupTimes| times.succeeded(key("g")));
    assert!(less(&cluster, &late, &six));
}

#[test]
fn wrong_arguments_are_rejected() {
    let args =
        "{permitWaitingTimeSeconds: -1, podGroupBackoffSeconds: -1, podGroupRejectPercentage: 101}";
    let found = problems("Coscheduling", "permit", args);
    for field in ["permitWaitingTimeSeconds", "podGroupBackoffSeconds", "podGroupRejectPercentage"]
    {
        assert!(found.contains(&format!("{field}: Invalid value")), "{found}");
    }
    assert!(problems("Coscheduling", "permit", "{podGroupRejectPercentage: 100}").is_empty());
}
