//! Groups that are bound together or not at all.

use serde_json::{Value, json};

use crate::beside::Story;
use crate::beside::stage::Stage;
use crate::objects::node;

pub const STORIES: &[Story] = &[("gang", gang), ("gang-too-large", too_large)];

fn group(name: &str, count: u32) -> Value {
    json!({
        "apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": {"name": name},
        "spec": {"schedulingPolicy": {"gang": {"minCount": count}}},
    })
}

fn member(stage: &Stage, name: &str, group: &str) -> Value {
    let mut pod = stage.pod(name, "1");
    pod["spec"]["schedulingGroup"] = json!({"podGroupName": group});
    pod
}

fn gang(stage: &mut Stage) {
    stage.create(vec![node("n", "3")]);
    stage.create(vec![group("g", 2)]);
    stage.create(vec![member(stage, "a", "g"), member(stage, "orphan", "nowhere")]);
    stage.create(vec![stage.pod("alone", "100m")]);
    stage.until("another pod is bound", |seen| seen.is_bound("alone"));
    stage.create(vec![member(stage, "b", "g")]);
    stage.until("both are bound", |seen| seen.is_bound("a") && seen.is_bound("b"));
}

/// No member fits: if one of two fitted, it would be random which one is rejected.
fn too_large(stage: &mut Stage) {
    stage.create(vec![node("n", "2")]);
    stage.create(vec![group("g", 2)]);
    let members = ["a", "b"].map(|name| {
        let mut pod = member(stage, name, "g");
        pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "3".into();
        pod
    });
    stage.create(members.to_vec());
    stage.until("both are rejected", |seen| seen.is_rejected("a") && seen.is_rejected("b"));
    stage.create(vec![node("m", "8")]);
    stage.until("there is room for both", |seen| seen.is_bound("a") && seen.is_bound("b"));
}
