//! Resource claims: allocated, shared, and not allocatable.

use serde_json::{Value, json};

use crate::beside::Story;
use crate::beside::stage::Stage;
use crate::objects::node;

pub const STORIES: &[Story] = &[("devices", devices)];

const API: &str = "resource.k8s.io/v1";

/// A class of all devices.
pub fn class(name: &str) -> Value {
    json!({"apiVersion": API, "kind": "DeviceClass", "metadata": {"name": name}, "spec": {}})
}

/// Devices of a node.
pub fn slice(name: &str, node: &str, devices: &[&str]) -> Value {
    let devices: Vec<Value> = devices.iter().map(|name| json!({"name": name})).collect();
    json!({
        "apiVersion": API, "kind": "ResourceSlice", "metadata": {"name": name},
        "spec": {
            "driver": "gpu.example.com", "nodeName": node,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        },
    })
}

/// A claim of that many devices.
pub fn claim(name: &str, count: u32) -> Value {
    let requests = json!([{"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": count}}]);
    json!({
        "apiVersion": API, "kind": "ResourceClaim", "metadata": {"name": name},
        "spec": {"devices": {"requests": requests}},
    })
}

fn user(stage: &Stage, name: &str, claim: &str) -> Value {
    let mut pod = stage.pod(name, "1");
    pod["spec"]["resourceClaims"] = json!([{"name": "gpu", "resourceClaimName": claim}]);
    pod
}

fn devices(stage: &mut Stage) {
    stage.create(vec![node("a", "8"), node("b", "4")]);
    stage.create(vec![class("gpu"), slice("slice-b", "b", &["gpu-0", "gpu-1"])]);
    stage.create(vec![claim("one", 1), claim("three", 3)]);
    stage.create(vec![user(stage, "first", "one")]);
    stage.until("the first is bound", |seen| seen.is_bound("first"));
    stage.create(vec![user(stage, "sharing", "one"), user(stage, "greedy", "three")]);
    stage.until("the second shares", |seen| seen.is_bound("sharing"));
    stage.until("the third is rejected", |seen| seen.is_rejected("greedy"));
    stage.create(vec![slice("slice-a", "a", &["gpu-0", "gpu-1", "gpu-2"])]);
    stage.until("new devices wake it", |seen| seen.is_bound("greedy"));
}
