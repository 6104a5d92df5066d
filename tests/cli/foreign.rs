//! Files of other tools: what is read from them, and what is reported to be missing.
//!
//! The files are our own, in the formats that the tools write; each reader names the source of its
//! format.

use std::io::{Cursor, Write};

use serde_json::{Value, json};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::harness::Call;

/// The object without kind and version, as in Go's typed lists.
fn node(name: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {},
        "status": {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "10"}},
    })
}

fn pod(name: &str, cpu: &str, on: Option<&str>) -> Value {
    let container = json!({"name": "main", "resources": {"requests": {"cpu": cpu}}});
    let mut pod = json!({
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"containers": [container]},
        "status": {"phase": "Pending"},
    });
    if let Some(on) = on {
        pod["spec"]["nodeName"] = on.into();
        pod["status"]["phase"] = "Running".into();
    }
    pod
}

/// The object with kind and version.
fn named(api_version: &str, kind: &str, mut object: Value) -> Value {
    object["apiVersion"] = api_version.into();
    object["kind"] = kind.into();
    object
}

fn deployment(name: &str, replicas: u32) -> Value {
    let template = json!({
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]},
    });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": template,
        },
    })
}

fn zipped(files: &[(&str, &str)]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in files {
        archive.start_file(*name, SimpleFileOptions::default()).unwrap();
        archive.write_all(text.as_bytes()).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

fn record() -> String {
    let line = |second: u32, event: &str, resource: Value| {
        let time = format!("2026-01-01T00:00:{second:02}Z");
        format!("{}\n", json!({"time": time, "event": event, "resource": resource}))
    };
    let pod = |name: &str, cpu: &str, on| named("v1", "Pod", pod(name, cpu, on));
    let gone = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "job", "namespace": "shop"},
    });
    [
        line(0, "Add", named("v1", "Node", node("node-0"))),
        line(1, "Add", pod("web", "1500m", None)),
        line(2, "Update", pod("web", "1500m", Some("node-0"))),
        line(3, "Add", pod("job", "500m", Some("node-0"))),
        line(4, "Add", pod("db", "500m", None)),
        line(5, "Delete", gone),
    ]
    .concat()
}

#[test]
fn a_record_of_the_simulator() {
    let call = Call::new().file("record.jsonl", &record());
    call.says("foreign/simulator", "run -f record.jsonl");
}

#[test]
fn a_record_whose_last_line_is_cut_off() {
    let whole = record();
    let cut = Call::new().file("record.jsonl", &whole[..whole.len() - 30]);
    let said = cut.run("run -f record.jsonl");
    assert!(said.stderr.contains("its last line is truncated and was skipped"), "{}", said.stderr);
    // The pod that it deletes still exists here and uses its resources.
    assert_eq!(said.code, Some(1), "{}", said.stdout);
}

#[test]
fn a_record_with_a_line_that_is_none() {
    let mut lines: Vec<String> = record().lines().map(str::to_owned).collect();
    lines[2] = lines[2].replace("Update", "Changed");
    let call = Call::new().bytes("record.jsonl", lines.join("\n").as_bytes());
    call.says("foreign/simulator-wrong", "run -f record.jsonl");
}

fn snapshotz() -> Value {
    let mut web = pod("web", "500m", None);
    web["spec"]["volumes"] =
        json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    json!({
        "NodeList": [
            {"Node": node("node-0"), "Pods": [pod("db", "1500m", Some("node-0"))]},
            {"Node": node("node-1"), "Pods": null},
        ],
        "UnscheduledPodsCanBeScheduled": [pod("api", "1", None), web],
        "StartTimestamp": "2026-01-01T00:00:00Z",
        "EndTimestamp": "2026-01-01T00:00:01Z",
        "TemplateNodes": {"group-a": {"Node": node("template-node-for-group-a"), "Pods": []}},
    })
}

#[test]
fn a_debugging_snapshot_of_cluster_autoscaler() {
    let call = Call::new().bytes("snapshotz.json", snapshotz().to_string().as_bytes());
    call.says("foreign/autoscaler", "run -f snapshotz.json");
}

/// Before 1.31, a node's pods had the format of the scheduler framework's types.
#[test]
fn an_older_debugging_snapshot() {
    let mut snapshot = snapshotz();
    let pod = snapshot["NodeList"][0]["Pods"][0].take();
    snapshot["NodeList"][0]["Pods"][0] = json!({"Pod": pod, "RequiredAffinityTerms": null});
    snapshot.as_object_mut().unwrap().remove("TemplateNodes");
    snapshot["Error"] = "Unable to do it".into();
    let call = Call::new().bytes("old.json", snapshot.to_string().as_bytes());
    let said = call.run("run -f old.json");
    assert!(said.pods().starts_with("shop/api  on node-1"), "{}", said.stdout);
    let error = "old.json: cluster-autoscaler reports an error in it: Unable to do it";
    assert!(said.stderr.contains(error), "{}", said.stderr);
}

fn kai() -> String {
    let mut train = pod("train", "1", None);
    train["spec"]["schedulerName"] = "kai-scheduler".into();
    let queue = json!({"metadata": {"name": "team"}, "spec": {}});
    let snapshot = json!({
        "config": {"actions": "allocate"},
        "schedulerParams": {"schedulerName": "kai-scheduler"},
        "rawObjects": {
            "pods": [train, pod("web", "500m", Some("node-0"))],
            "nodes": [node("node-0")],
            "queues": [queue],
            "podGroups": [],
            "bindRequests": null,
            "priorityClasses": [],
            "configMaps": [],
            "persistentVolumeClaims": [],
            "csiStorageCapacities": [],
            "storageClasses": [],
            "csiDrivers": [],
            "resourceClaims": [],
            "resourceSlices": [],
            "deviceClasses": [],
            "topologies": [],
        },
    });
    snapshot.to_string()
}

#[test]
fn a_snapshot_of_kai_scheduler() {
    let call = Call::new().bytes("snapshot.zip", &zipped(&[("snapshot.json", &kai())]));
    call.says("foreign/kai", "run -f snapshot.zip");
    let unpacked = Call::new().bytes("snapshot.json", kai().as_bytes());
    assert_eq!(unpacked.run("run -f snapshot.json").code, Some(0));
}

#[test]
fn archives_that_hold_something_else() {
    let several = zipped(&[("a.yaml", ""), ("b.yaml", "")]);
    Call::new().bytes("two.zip", &several).says("foreign/zip-several", "run -f two.zip");
    let none = zipped(&[("notes.txt", "")]);
    Call::new().bytes("none.zip", &none).says("foreign/zip-none", "run -f none.zip");
    let cut = &zipped(&[("snapshot.json", &kai())])[..100];
    Call::new().bytes("cut.zip", cut).says("foreign/zip-cut-off", "run -f cut.zip");
}

fn trace(version: u16) -> Value {
    let bare = named("v1", "Pod", pod("job", "500m", None));
    json!({
        "version": version,
        "config": {"trackedObjects": {"apps/v1.Deployment": {"trackLifecycle": true}}},
        "events": [
            {"ts": 1_767_225_600, "applied_objs": [deployment("web", 1)], "deleted_objs": []},
            {
                "ts": 1_767_225_660,
                "applied_objs": [deployment("web", 3), deployment("gone", 9), bare],
                "deleted_objs": [],
            },
            {"ts": 1_767_225_720, "applied_objs": [], "deleted_objs": [deployment("gone", 9)]},
        ],
        "index": {"apps/v1.Deployment": {"shop/web": 12_345}},
        "pod_lifecycles": {},
    })
}

#[test]
fn a_trace_of_simkube() {
    let packed = rmp_serde::to_vec_named(&trace(2)).unwrap();
    let nodes = format!("{}\n", named("v1", "Node", node("node-0")));
    let call = Call::new().bytes("web.sktrace", &packed).bytes("nodes.json", nodes.as_bytes());
    call.says("foreign/simkube", "run -f nodes.json -f web.sktrace");
    call.says("foreign/simkube-alone", "run -f web.sktrace");
    let text = Call::new().bytes("trace.json", trace(2).to_string().as_bytes());
    let said = text.bytes("nodes.json", nodes.as_bytes()).run("run -f nodes.json -f trace.json");
    assert_eq!(said.pods(), call.run("run -f nodes.json -f web.sktrace").pods());
}

#[test]
fn a_trace_of_another_version() {
    let packed = rmp_serde::to_vec_named(&trace(1)).unwrap();
    let call = Call::new().bytes("old.sktrace", &packed);
    call.says("foreign/simkube-version", "run -f old.sktrace");
    let whole = rmp_serde::to_vec_named(&trace(2)).unwrap();
    let call = Call::new().bytes("cut.sktrace", &whole[..200]);
    call.says("foreign/simkube-cut-off", "run -f cut.sktrace");
}

const KWOK: &str = "\
apiVersion: v1
kind: Node
metadata:
  creationTimestamp: \"$(time-offset-nanosecond -86400000000000)\"
  name: node-0
spec:
  taints:
  - {key: new, effect: NoSchedule}
status:
  allocatable: {cpu: \"2\", memory: 4Gi, pods: \"10\"}
  conditions:
  - {type: Ready, status: \"True\"}
  - {type: MemoryPressure, status: \"False\"}
---
apiVersion: v1
kind: Pod
metadata:
  creationTimestamp: \"$(time-offset-nanosecond -3600000000000)\"
  name: web
  namespace: shop
spec:
  containers:
  - name: main
    resources: {requests: {cpu: 500m}}
";

const PATCHES: &str = "\
---
apiVersion: action.kwok.x-k8s.io/v1alpha1
kind: ResourcePatch
resource: {version: v1, resource: nodes}
target: {name: node-0}
durationNanosecond: 1000000000
method: patch
template:
  spec: {taints: null}
  status:
    $setElementOrder/conditions: [{type: Ready}, {type: MemoryPressure}]
    allocatable: {cpu: \"1\"}
---
apiVersion: action.kwok.x-k8s.io/v1alpha1
kind: ResourcePatch
resource: {version: v1, resource: pods}
target: {name: db, namespace: shop}
durationNanosecond: 2000000000
method: create
template:
  apiVersion: v1
  kind: Pod
  metadata: {name: db, namespace: shop, creationTimestamp: \"$(time-offset-nanosecond 2000000000)\"}
  spec: {containers: [{name: main, resources: {requests: {cpu: 700m}}}]}
---
apiVersion: action.kwok.x-k8s.io/v1alpha1
kind: ResourcePatch
resource: {version: v1, resource: pods}
target: {name: web, namespace: shop}
durationNanosecond: 3000000000
method: patch
template: {spec: {containers: [{name: main, resources: {requests: {cpu: 600m}}}]}}
";

#[test]
fn an_export_of_kwok() {
    Call::new().file("export.yaml", KWOK).says("foreign/kwok", "run -f export.yaml");
}

#[test]
fn a_recording_of_kwok() {
    let recording = format!("{KWOK}{PATCHES}");
    let call = Call::new().file("recording.yaml", &recording);
    call.says("foreign/kwok-recording", "run -f recording.yaml");
    let deleted = PATCHES.replace("method: create", "method: delete");
    let call = Call::new().bytes("recording.yaml", format!("{KWOK}{deleted}").as_bytes());
    let said = call.run("run -f recording.yaml");
    assert!(said.pods().starts_with("shop/web  on node-0"), "{}", said.stdout);
    let unknown = PATCHES.replace("name: web", "name: api");
    let call = Call::new().bytes("recording.yaml", format!("{KWOK}{unknown}").as_bytes());
    call.says("foreign/kwok-unknown", "run -f recording.yaml");
}

#[test]
fn a_snapshot_of_etcd() {
    let mut page = vec![0_u8; 4096];
    page[16..20].copy_from_slice(&[0xed, 0xda, 0x0c, 0xed]);
    Call::new().bytes("snapshot.db", &page).says("foreign/etcd", "run -f snapshot.db");
}
