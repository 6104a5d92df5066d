//! PersistentVolumeClaims: with an existing volume, with a provisioner, already bound, and unbound.

use std::time::Duration;

use serde_json::{Value, json};

use crate::beside::Story;
use crate::beside::stage::Stage;
use crate::objects::node;

pub const STORIES: &[Story] =
    &[("volume-given", given), ("volume-made", made), ("volume-immediate", immediate)];

fn class(name: &str, provisioner: &str, mode: &str) -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
        "provisioner": provisioner, "volumeBindingMode": mode,
    })
}

fn volume(name: &str, class: &str, node: &str) -> Value {
    let expression = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": [node]});
    let terms = json!([{"matchExpressions": [expression]}]);
    json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"],
            "storageClassName": class, "local": {"path": "/disk"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        },
    })
}

fn claim(name: &str, class: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
        "spec": {
            "storageClassName": class, "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "5Gi"}},
        },
    })
}

fn user(stage: &Stage, name: &str, claim: &str) -> Value {
    let mut pod = stage.pod(name, "1");
    let claim = json!({"claimName": claim});
    pod["spec"]["volumes"] = json!([{"name": "v", "persistentVolumeClaim": claim}]);
    pod
}

/// What the volume controller writes when it binds.
fn complete(stage: &mut Stage, claim: &str, volume: &str) {
    let patch = json!({
        "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": volume},
    });
    stage.kubectl_here(&format!("patch pvc {claim} --type merge -p {patch}"), "");
}

fn available(stage: &mut Stage, volume: &str) {
    let status = r#"{"status":{"phase":"Available"}}"#;
    stage.kubectl(&format!("patch pv {volume} --subresource=status --type merge -p {status}"), "");
}

fn given(stage: &mut Stage) {
    stage.create(vec![node("a", "8"), node("b", "4")]);
    let class = class("local", "kubernetes.io/no-provisioner", "WaitForFirstConsumer");
    stage.create(vec![
        class,
        volume("disk", "local", "b"),
        claim("data", "local"),
        claim("more", "local"),
    ]);
    available(stage, "disk");
    stage.create(vec![user(stage, "user", "data")]);
    stage.until("the volume has its claim", |seen| {
        seen.volume("disk")["spec"]["claimRef"]["name"] == "data"
    });
    stage.create(vec![user(stage, "late", "more")]);
    stage.until("there is none for the other", |seen| seen.is_rejected("late"));
    complete(stage, "data", "disk");
    stage.until("the pod is bound", |seen| seen.is_bound("user"));
}

fn made(stage: &mut Stage) {
    stage.create(vec![node("a", "8"), node("b", "4")]);
    stage.create(vec![
        class("made", "example.com/disks", "WaitForFirstConsumer"),
        claim("data", "made"),
    ]);
    stage.create(vec![user(stage, "user", "data")]);
    stage.until("the claim has the selected node", |seen| {
        let annotations = &seen.volume_claim("data")["metadata"]["annotations"];
        annotations["volume.kubernetes.io/selected-node"] == "a"
    });
    stage.create(vec![volume("made-disk", "made", "a")]);
    let reference = json!({"spec": {"claimRef": {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": "data", "namespace": "volume-made",
    }}});
    stage.kubectl(&format!("patch pv made-disk --type merge -p {reference}"), "");
    complete(stage, "data", "made-disk");
    stage.until("the pod is bound", |seen| seen.is_bound("user"));
}

fn immediate(stage: &mut Stage) {
    stage.create(vec![node("a", "8"), node("b", "4")]);
    let class = class("at-once", "example.com/disks", "Immediate");
    stage.create(vec![class, volume("soon", "at-once", "b"), claim("data", "at-once")]);
    stage.create(vec![user(stage, "user", "data")]);
    stage.until("it is rejected at first", |seen| seen.is_rejected("user"));
    complete(stage, "data", "soon");
    // kube-scheduler 1.33 tries the pod at once, with a cache of claims that may not have the update
    // yet; then it waits for another one.
    std::thread::sleep(Duration::from_millis(500));
    stage.kubectl_here("label pvc data complete=yes", "");
    stage.until("the pod is bound", |seen| seen.is_bound("user"));
}
