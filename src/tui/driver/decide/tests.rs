//! Stories of pods held, allowed and rejected manually.

use crate::tui::testing::{LiveInterface, session};

/// One node with room for one of three pods.
const CLUSTER: &str = "
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: '4', memory: 8Gi, pods: '10'}}
---
kind: Pod
metadata: {name: web-0, namespace: shop, labels: {app: web}}
spec: {containers: [{name: c, resources: {requests: {cpu: '3', memory: 1Gi}}}]}
---
kind: Pod
metadata: {name: web-1, namespace: shop, labels: {app: web}}
spec: {containers: [{name: c, resources: {requests: {cpu: '3', memory: 1Gi}}}]}
---
kind: Pod
metadata: {name: picky, namespace: shop}
spec:
  containers: [{name: c, ports: [{containerPort: 80, hostPort: 80}]}]
---
kind: Pod
metadata: {name: holder, namespace: shop}
spec:
  nodeName: n1
  containers: [{name: c, ports: [{containerPort: 80, hostPort: 80}]}]
";

fn story() -> LiveInterface {
    LiveInterface::new(session(CLUSTER), (100, 30))
}

#[test]
fn pods_are_held_by_hand_and_rejecting_says_what_it_did() {
    let mut story = story().keys(":hold app=web for 10m<Enter>");
    let said = "hold app=web for 10m0s; 2 pending pods match; each is held up to 10m0s";
    assert!(story.text().contains(said), "{}", story.text());
    let mut story = story.keys("c7");
    let text = story.text();
    assert!(text.contains("manual holds: app=web for 10m0s"), "{text}");
    assert!(text.contains("kubestep.Hold (manual hold), times out in 10m"), "{text}");
    let mut story = story.keys("xtoo early<Enter>");
    story.golden("reject-100x30");
    let text = story.text();
    for line in [
        "rejected shop/web-0 for kubestep.Hold",
        "released on n1: cpu 3, memory 1Gi, capacity for 1 pod",
        "free on n1 now: cpu 4, memory 8Gi, capacity for 9 pods",
        "retried in 5m00s, or earlier if an event requeues it",
        "requeued: shop/web-1 moved from unschedulable to",
        "not requeued: shop/picky; NodePorts: AssignedPodDelete does not help",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn the_past_keeps_a_hold_and_time_ends_it() {
    let mut story = story().keys(":hold shop/*<Enter>c7");
    assert!(story.text().contains("shop/web-0"));
    // Back before the cycle there is nobody, at the end the pod is there again.
    let mut story = story.keys("1gg<Enter>7");
    assert!(story.text().contains("shop/web-0"), "{}", story.text());
    let mut story = story.keys("C");
    assert!(!story.text().contains("waits for n1"), "{}", story.text());
    let mut story = story.keys(":hold app=web<Enter>");
    assert!(story.text().contains("this is the past"), "{}", story.text());
    let mut story = story.keys("c:advance 15m<Enter>1gg");
    let text = story.text();
    assert!(text.contains("timeout after waiting 15m0s at plugin kubestep.Hold"), "{text}");
}

#[test]
fn a_hold_is_released_by_hand() {
    let mut story = story().keys(":hold web-?<Enter>c:release<Enter>");
    assert!(story.text().contains("release; 1 waiting pod continues"), "{}", story.text());
    let mut story = story.keys("6");
    assert!(story.text().contains("on n1"), "{}", story.text());
    let mut story = story.keys(":release<Enter>");
    assert!(story.text().contains("no pod is held manually"), "{}", story.text());
    let mut story = story.keys(":hold a for 1h<Enter>");
    assert!(story.text().contains("Permit holds a pod for 15m0s at most"), "{}", story.text());
}
