//! The embedded scheduler in place of kube-scheduler, with a real API server: see
//! [`crate::control_plane`].

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::control_plane::{ControlPlane, minor_version};
use crate::objects::{FAST, create, get, get_pod, node, pending, placed, pod};
use crate::running::{Running, until};

/// How often each pod was bound, by the audit log.
fn bindings(plane: &ControlPlane) -> BTreeMap<String, usize> {
    let mut bound = BTreeMap::new();
    for request in plane.audited() {
        if (request.resource.as_str(), request.code) == ("pods/binding", 201) {
            *bound.entry(request.name).or_default() += 1;
        }
    }
    bound
}

fn cluster(plane: &ControlPlane, nodes: usize, pods: usize) {
    let nodes = (0..nodes).map(|at| node(&format!("node-{at}"), "32"));
    let pods = (0..pods).map(|at| pod(&format!("pod-{at}"), "100m"));
    create(plane, nodes.chain(pods).collect());
}

/// Asserts that every pod has a node, was bound once, and no node exceeds its capacity.
fn assert_all_bound_once(plane: &ControlPlane, pods: usize) {
    let placed = placed(plane);
    assert_eq!(placed.len(), pods);
    assert!(placed.values().all(|node| !node.is_empty()));
    let mut on_nodes: BTreeMap<&str, usize> = BTreeMap::new();
    placed.values().for_each(|node| *on_nodes.entry(node).or_default() += 1);
    assert!(on_nodes.values().all(|pods| *pods <= 110), "{on_nodes:?}");
    let bound = bindings(plane);
    assert!(bound.values().all(|times| *times == 1), "{bound:?}");
}

#[test]
#[cfg_attr(not(with_api_server), ignore = "needs KUBEBUILDER_ASSETS")]
fn real_two_thousand_pods_are_bound_though_the_server_is_killed_in_between() {
    let mut plane = ControlPlane::start();
    cluster(&plane, 200, 2_000);
    let lease = "--leader-elect-lease-duration 120s --leader-elect-renew-deadline 100s";
    let mut scheduler = Running::start(&plane, &format!("{FAST} {lease}"));
    until("some pods are bound", || pending(&plane) < 1_800);
    plane.restart();
    until("all pods are bound", || pending(&plane) == 0);
    assert_all_bound_once(&plane, 2_000);
    assert_eq!(scheduler.stop(), Some(0), "{}", scheduler.output());
    let lease =
        get(&plane, "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler");
    assert_eq!(lease["spec"]["holderIdentity"], "", "it is given back");
}

#[test]
#[cfg_attr(not(with_api_server), ignore = "needs KUBEBUILDER_ASSETS")]
fn real_a_second_replica_goes_on_when_the_first_is_gone() {
    let plane = ControlPlane::start();
    cluster(&plane, 50, 600);
    let lease = "--leader-elect-lease-duration 4s --leader-elect-renew-deadline 3s \
                 --leader-elect-retry-period 1s";
    let slow = "--yes-write --kube-api-qps 60 --kube-api-burst 10";
    let mut first = Running::start(&plane, &format!("{slow} {lease}"));
    first.wait_for_the_lease();
    let second = Running::start(&plane, &format!("{FAST} {lease}"));
    second.wait_for("waiting for the lease");
    until("some pods are bound", || pending(&plane) < 500);
    first.kill();
    assert!(pending(&plane) > 0, "there is something left to do");
    second.wait_for_the_lease();
    until("all pods are bound", || pending(&plane) == 0);
    assert_all_bound_once(&plane, 600);
}

#[test]
#[cfg_attr(not(with_api_server), ignore = "needs KUBEBUILDER_ASSETS")]
fn real_who_loses_the_lease_stops_writing() {
    let plane = ControlPlane::start();
    cluster(&plane, 2, 0);
    let lease = "--leader-elect-lease-duration 4s --leader-elect-renew-deadline 3s \
                 --leader-elect-retry-period 1s";
    let mut scheduler = Running::start(&plane, &format!("{FAST} {lease}"));
    scheduler.wait_for_the_lease();
    let patch = r#"{"spec":{"holderIdentity":"somebody","leaseDurationSeconds":3600}}"#;
    plane
        .kubectl(&format!("-n kube-system patch lease kube-scheduler --type merge -p {patch}"), "");
    assert_eq!(scheduler.end(), Some(5), "{}", scheduler.output());
    create(&plane, vec![pod("late", "1")]);
    assert_eq!(pending(&plane), 1);
}

#[test]
#[cfg_attr(not(with_api_server), ignore = "needs KUBEBUILDER_ASSETS")]
fn real_a_dry_run_changes_nothing_and_without_a_word_nothing_is_tried() {
    let plane = ControlPlane::start();
    cluster(&plane, 3, 5);
    let mut refused = Running::start(&plane, "");
    assert_eq!(refused.end(), Some(2));
    assert!(refused.output().contains("--yes-write"), "{}", refused.output());
    let mut scheduler = Running::start(&plane, "--dry-run --v 2");
    for at in 0..5 {
        scheduler.wait_for(&format!("bound default/pod-{at} to node-"));
    }
    assert_eq!(scheduler.stop(), Some(0));
    assert_eq!(pending(&plane), 5);
    let audited = plane.audited().into_iter();
    let writes: Vec<_> = audited
        .filter(|it| it.agent.starts_with("kubestep/"))
        .filter(|it| !["get", "list", "watch"].contains(&it.verb.as_str()))
        .collect();
    assert!(!writes.is_empty());
    let events = get(&plane, "/apis/events.k8s.io/v1/namespaces/default/events");
    let mut events = events["items"].as_array().unwrap().iter();
    assert!(events.all(|event| event["reason"] != "Scheduled"));
}

#[test]
#[cfg_attr(not(with_api_server), ignore = "needs KUBEBUILDER_ASSETS")]
fn real_the_printed_role_is_enough_to_schedule() {
    let plane = ControlPlane::start();
    let mut printing = std::process::Command::new(env!("CARGO_BIN_EXE_kubestep"));
    let role = printing.args(["rbac", "--schedule"]).output().unwrap().stdout;
    plane.kubectl("apply -f -", &String::from_utf8(role).unwrap());
    plane.kubectl("create clusterrolebinding viewer --clusterrole=kubestep --user=viewer", "");
    create(&plane, vec![node("node-0", "2"), pod("small", "1"), pod("large", "64")]);
    let scheduler = Running::start_on(&plane.kubeconfig("viewer"), FAST);
    let has_node = || get_pod(&plane, "small")["spec"]["nodeName"] == "node-0";
    until("the pod is bound", has_node);
    let reported = || {
        let events = get(&plane, "/apis/events.k8s.io/v1/namespaces/default/events");
        events["items"].as_array().unwrap().iter().any(|it| it["reason"] == "FailedScheduling")
    };
    until("the other has a FailedScheduling event", reported);
    assert!(!scheduler.output().contains("forbidden"), "{}", scheduler.output());
    let refused = plane.audited().into_iter().filter(|it| it.code == 403);
    let refused: Vec<_> = refused.filter(|it| it.agent.starts_with("kubestep/")).collect();
    assert!(refused.is_empty(), "{refused:?}");
}

#[test]
#[cfg_attr(not(with_api_server), ignore = "needs KUBEBUILDER_ASSETS")]
fn real_conditions_events_and_gates_are_as_upstream_has_them() {
    let plane = ControlPlane::start();
    let mut gated = pod("gated", "1");
    gated["spec"]["schedulingGates"] = json!([{"name": "example.com/wait"}]);
    create(&plane, vec![node("node-0", "2"), pod("large", "64"), gated]);
    let _scheduler = Running::start(&plane, FAST);
    let condition = |pod: &Value| {
        let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = conditions.into_iter().find(|condition| condition["type"] == "PodScheduled");
        found.unwrap_or_default()
    };
    until("the condition", || !condition(&get_pod(&plane, "large")).is_null());
    let found = condition(&get_pod(&plane, "large"));
    assert_eq!((&found["status"], &found["reason"]), (&json!("False"), &json!("Unschedulable")));
    let message = found["message"].as_str().unwrap();
    assert!(message.starts_with("0/1 nodes are available: 1 Insufficient cpu."), "{message}");
    let event = |name: &str, reason: &str| {
        let events = get(&plane, "/apis/events.k8s.io/v1/namespaces/default/events");
        let mut events = events["items"].as_array().unwrap().clone().into_iter();
        events.find(|it| it["regarding"]["name"] == name && it["reason"] == reason)
    };
    until("the event", || event("large", "FailedScheduling").is_some());
    let failed = event("large", "FailedScheduling").unwrap();
    assert_eq!(failed["note"], message);
    assert_eq!(failed["reportingController"], "default-scheduler");
    assert_eq!(get_pod(&plane, "gated")["spec"]["nodeName"], Value::Null);
    let patch = r#"{"spec":{"schedulingGates":null}}"#;
    plane.kubectl(&format!("patch pod gated --type merge -p {patch}"), "");
    until("the gated pod is bound", || get_pod(&plane, "gated")["spec"]["nodeName"] == "node-0");
    until("the event", || event("gated", "Scheduled").is_some());
    create(&plane, vec![node("node-1", "128")]);
    until("the large pod is bound", || get_pod(&plane, "large")["spec"]["nodeName"] == "node-1");
}

#[test]
#[cfg_attr(not(with_api_server), ignore = "needs KUBEBUILDER_ASSETS")]
fn real_a_victim_is_marked_and_deleted_and_the_preemptor_takes_its_place() {
    let plane = ControlPlane::start();
    let class = |name: &str, value: i64| {
        json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": {"name": name}, "value": value,
        })
    };
    let with_class = |name: &str, class: &str| {
        let mut pod = pod(name, "2");
        pod["spec"]["priorityClassName"] = class.into();
        // It has a finalizer, which the test removes later.
        if class == "low" {
            pod["metadata"]["finalizers"] = json!(["example.com/seen"]);
        }
        pod
    };
    create(&plane, vec![node("node-0", "2"), class("low", 1), class("high", 1_000)]);
    create(&plane, vec![with_class("victim", "low")]);
    let _scheduler = Running::start(&plane, FAST);
    until("the victim is bound", || get_pod(&plane, "victim")["spec"]["nodeName"] == "node-0");
    create(&plane, vec![with_class("preemptor", "high")]);
    until("it is nominated", || {
        get_pod(&plane, "preemptor")["status"]["nominatedNodeName"] == "node-0"
    });
    until("the victim goes", || {
        !get_pod(&plane, "victim")["metadata"]["deletionTimestamp"].is_null()
    });
    let victim = get_pod(&plane, "victim");
    let conditions = victim["status"]["conditions"].as_array().unwrap();
    let target = conditions.iter().find(|it| it["type"] == "DisruptionTarget").unwrap();
    assert_eq!(target["reason"], "PreemptionByScheduler");
    assert_eq!(
        target["message"],
        "default-scheduler: preempting to accommodate a higher priority pod"
    );
    let patch = r#"{"metadata":{"finalizers":null}}"#;
    plane.kubectl(&format!("patch pod victim --type merge -p {patch}"), "");
    until("the preemptor is bound", || {
        get_pod(&plane, "preemptor")["spec"]["nodeName"] == "node-0"
    });
    let events = get(&plane, "/apis/events.k8s.io/v1/namespaces/default/events");
    let preempted =
        events["items"].as_array().unwrap().iter().find(|it| it["reason"] == "Preempted");
    let preempted = preempted.unwrap();
    assert_eq!(preempted["regarding"]["name"], "victim");
    // Since 1.36 upstream omits `related`, because its wrapper of the preemptor has no kind.
    let related = if minor_version() < 36 { json!("preemptor") } else { Value::Null };
    assert_eq!(preempted["related"]["name"], related);
}
