//! Objects for a real API server, and helpers to read them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::control_plane::ControlPlane;

/// No client-side rate limit.
pub const FAST: &str = "--yes-write --kube-api-qps=-1 --kube-api-burst 1";

/// A node with that many CPUs.
pub fn node(name: &str, cpu: &str) -> Value {
    let resources = json!({"cpu": cpu, "memory": "64Gi", "pods": "110"});
    let labels = json!({"kubernetes.io/hostname": name});
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        "status": {"capacity": resources, "allocatable": resources},
    })
}

/// A pod that requests that many CPUs.
pub fn pod(name: &str, cpu: &str) -> Value {
    let resources = json!({"requests": {"cpu": cpu}});
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "image": "pause", "resources": resources}],
        },
    })
}

pub fn create(plane: &ControlPlane, items: Vec<Value>) {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    plane.kubectl("create -f -", &list.to_string());
}

pub fn get(plane: &ControlPlane, path: &str) -> Value {
    serde_json::from_str(&plane.kubectl(&format!("get --raw {path}"), "")).unwrap()
}

/// The current state of a pod.
pub fn get_pod(plane: &ControlPlane, name: &str) -> Value {
    get(plane, &format!("/api/v1/namespaces/default/pods/{name}"))
}

/// The number of pods without a node.
pub fn pending(plane: &ControlPlane) -> usize {
    let list = get(plane, "/api/v1/pods?fieldSelector=spec.nodeName%3D");
    list["items"].as_array().unwrap().len()
}

/// The node of each pod.
pub fn placed(plane: &ControlPlane) -> BTreeMap<String, String> {
    let list = get(plane, "/api/v1/pods");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let pods = list["items"].as_array().unwrap().iter();
    pods.map(|pod| (text(&pod["metadata"]["name"]), text(&pod["spec"]["nodeName"]))).collect()
}
