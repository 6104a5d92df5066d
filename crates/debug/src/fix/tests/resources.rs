//! Insufficient resources: requests, the pods that hold the resources, and what frees them.

use super::*;

fn holding(name: &str, node: &str, requests: &str, more: &str) -> String {
    format!(
        "---\n{{kind: Pod, metadata: {{name: {name}, {more}}}, status: {{phase: Running}}, spec: \
         {{nodeName: {node}, containers: [{{name: c, resources: {{requests: {{{requests}}}}}}}]}}}}\n"
    )
}

fn pending(spec: &str) -> String {
    format!("---\n{{kind: Pod, metadata: {{name: web}}, spec: {{{spec}}}}}\n")
}

/// The kubelet keeps running a static pod, and a DaemonSet recreates its pod.
#[test]
fn pods_of_a_node_are_not_evicted() {
    let owned = |kind: &str| {
        format!("ownerReferences: [{{kind: {kind}, name: o, uid: o, controller: true}}]")
    };
    let mirror = "annotations: {kubernetes.io/config.mirror: abc}".to_owned();
    for more in [owned("Node"), owned("DaemonSet"), mirror] {
        let cluster = node("a", "", "") + &holding("agent", "a", "cpu: 3", &more) + &web("3", "");
        let mut expected = vec!["resize pod default/web cpu=1", "resize node a cpu=6"];
        // A new node gets a pod of the DaemonSet as well.
        if !more.contains("DaemonSet") {
            expected.insert(0, "add 1 node like a");
        }
        assert_eq!(proposed(&cluster), expected, "{more}");
    }
}

/// With preemption: `other` alone would be enough, but the DaemonSet's pod is preempted too.
#[test]
fn pods_of_a_daemon_set_are_not_preempted() {
    let daemon = "ownerReferences: [{kind: DaemonSet, name: d, uid: d, controller: true}]";
    let held = holding("agent", "a", "cpu: 2", daemon) + &holding("other", "a", "cpu: 2", "");
    let proposed = proposed(&(node("a", "", "") + &held + &web("4", "")));
    assert!(!proposed.iter().any(|edits| edits.contains("priority")), "{proposed:?}");
}

#[test]
fn one_pod_that_frees_all_that_is_short_is_enough() {
    let held = holding("both", "a", "cpu: 1, memory: 3Gi", "")
        + &holding("cpu-only", "a", "cpu: 600m, memory: 64Mi", "")
        + &holding("memory-only", "a", "cpu: 50m, memory: 1500Mi", "")
        + &holding("rest", "a", "cpu: 2, memory: 3Gi", "");
    let asks = "containers: [{name: c, resources: {requests: {cpu: 800m, memory: 1500Mi}}}]";
    let proposed = proposed(&(node("a", "", "") + &held + &pending(asks)));
    assert!(proposed.contains(&"delete pod default/both".to_owned()), "{proposed:?}");
}

/// Of many similar nodes, only the fifth needs just one eviction.
#[test]
fn every_node_of_a_group_is_looked_at() {
    let mut cluster = String::new();
    for name in ["a", "b", "c", "d"] {
        cluster += &node(name, "", "");
        for at in 0..4 {
            cluster += &holding(&format!("small-{name}-{at}"), name, "cpu: 950m", "");
        }
    }
    cluster += &(node("e", "", "") + &holding("large", "e", "cpu: 2", ""));
    cluster += &(holding("rest", "e", "cpu: 1900m", "") + &web("1500m", ""));
    let proposed = proposed(&cluster);
    let deletes = proposed.iter().find(|edits| edits.starts_with("delete")).unwrap();
    assert_eq!(deletes, "delete pod default/rest");
}

/// A pod needs the sum of its containers and sidecars, and that sum is lowered.
#[test]
fn sidecars_are_lowered_with_the_containers() {
    let spec = "initContainers: [{name: proxy, restartPolicy: Always, resources: {requests: {cpu: \
                600m}}}], containers: [{name: c, resources: {requests: {cpu: 1}}}, {name: worker, \
                resources: {requests: {cpu: 700m}}}]";
    let cluster = node("a", "", "") + &holding("busy", "a", "cpu: 2", "") + &pending(spec);
    assert_eq!(proposed(&cluster)[0], "resize pod default/web cpu=2");
}

#[test]
fn an_init_container_that_asks_for_most_is_named_and_lowered() {
    let spec = "initContainers: [{name: proxy, restartPolicy: Always, resources: {requests: {cpu: \
                200m}}}, {name: migrate, resources: {requests: {cpu: 2500m}}}], containers: \
                [{name: c, resources: {requests: {cpu: 500m}}}]";
    let cluster = node("a", "", "") + &holding("busy", "a", "cpu: 2", "") + &pending(spec);
    assert_eq!(
        causes(&cluster, "a"),
        ["NodeResourcesFit: Insufficient cpu: needs 2.7 (init container migrate), 2 free (4 \
          allocatable − 2 requested): 700m cpu short"]
    );
    assert_eq!(proposed(&cluster)[0], "resize pod default/web migrate cpu=1.8");
}

/// The pod-level request counts, whatever the containers request.
#[test]
fn the_request_of_the_whole_pod_is_lowered() {
    let spec = "resources: {requests: {cpu: 3}}, containers: [{name: c}, {name: d, resources: \
                {requests: {cpu: 1, memory: 9Gi}}}]";
    let cluster = node("a", "", "") + &holding("busy", "a", "cpu: 2", "") + &pending(spec);
    let causes = causes(&cluster, "a");
    assert!(causes[0].contains("needs 3 (the pod's spec.resources)"), "{causes:?}");
    assert_eq!(
        causes[1],
        "NodeResourcesFit: Insufficient memory: needs 9Gi, node has 8Gi allocatable"
    );
    let both = "resize pod default/web cpu=2; resize pod default/web memory=8Gi";
    assert_eq!(proposed(&cluster)[0], both);
    let mut world = settled(&cluster);
    crate::edit::tests::edit("resize pod web cpu=2").apply(&mut world).unwrap();
    let pod = world.api().objects().pod(key("web")).unwrap();
    let request = |at: usize| pod.spec.containers[at].resources.request("cpu".into()).cloned();
    assert_eq!(request(0), None, "a container that asks for nothing goes on asking for nothing");
    assert_eq!(request(1), Some("1".parse().unwrap()));
}

/// Resources reserved for a nominated pod: the lowest priority that may use them, through a class
/// that an API server accepts.
#[test]
fn reserved_room_is_taken_by_the_lowest_class_that_suffices() {
    let boss = "---\n{kind: Pod, metadata: {name: boss}, spec: {priority: 1000, containers: [{name: \
                c, resources: {requests: {cpu: 3500m}}}]}, status: {nominatedNodeName: a}}\n";
    let victim = "deletionTimestamp: '2026-01-01T12:00:00Z', finalizers: [example.com/x]";
    let agent = "ownerReferences: [{kind: DaemonSet, name: d, uid: d, controller: true}]";
    let agent = holding("agent", "a", "cpu: 100m", agent)
        .replace("nodeName", "priority: 2000001000, nodeName");
    let held = holding("victim", "a", "cpu: 2", victim) + &agent;
    let cluster = node("a", "", "") + &held + boss + &web("1", "");
    assert_eq!(
        causes(&cluster, "a"),
        [
            "NodeResourcesFit: Insufficient cpu: needs 1, 1.9 free (4 allocatable − 2.1 requested), but \
          3.5 reserved for default/boss, nominated to the node"
        ]
    );
    let without = proposed(&cluster);
    let create = "put priorityclass priority-1001 with value 1001; priority pod default/web \
                  priority-1001";
    assert!(without.contains(&create.to_owned()), "{without:?}");
    assert!(without.contains(&"delete pod default/boss".to_owned()), "{without:?}");
    assert!(!without.iter().any(|edits| edits.contains("victim") || edits.contains("agent")));
    let class = |name: &str, value: i32| {
        format!("---\n{{kind: PriorityClass, metadata: {{name: {name}}}, value: {value}}}\n")
    };
    let with = cluster + &class("low", 10) + &class("top", 9000) + &class("high", 2000);
    let with = proposed(&with);
    assert!(with.contains(&"priority pod default/web high".to_owned()), "{with:?}");
}
