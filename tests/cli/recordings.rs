//! Recordings: replayed, opened like other input, truncated and invalid.

use std::fmt::Write as _;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::harness::Call;
use crate::schema;

/// A recording of two nodes whose scheduler makes the same decision as ours, breaks a tie
/// differently, makes another decision, and rejected a pod before the recording began.
fn lab() -> String {
    let node = |name: &str, cpu: &str| {
        let offers = json!({"cpu": cpu, "memory": "8Gi", "pods": "10"});
        let labels = json!({"kubernetes.io/hostname": name});
        json!({"metadata": {"name": name, "uid": name, "labels": labels},
               "status": {"allocatable": offers, "capacity": offers}})
    };
    let mut lines = vec![
        json!({"schema": "kubestep/recording/v1", "record": "header", "kubestep": "0.1.0",
               "serverVersion": "v1.36.2", "context": "lab", "listedAt": "2026-01-01T00:00:00Z",
               "namespaces": [], "missing": []}),
        json!({"record": "object", "kind": "Node", "object": node("a", "4")}),
        json!({"record": "object", "kind": "Node", "object": node("b", "4")}),
        json!({"record": "object", "kind": "Pod", "object": pod("old", "9", "", "0/1 nodes")}),
        json!({"record": "listed", "objects": 3}),
    ];
    let put = |second: usize, object: Value| {
        let at = format!("2026-01-01T00:00:{second:02}Z");
        json!({"record": "put", "at": at, "kind": "Pod", "object": object})
    };
    lines.extend([
        put(1, pod("tied", "1", "", "")),
        put(2, pod("tied", "1", "b", "")),
        put(3, pod("clear", "1", "", "")),
        put(4, pod("clear", "1", "a", "")),
        put(5, pod("strange", "3", "", "")),
        put(6, pod("strange", "3", "", "0/2 nodes are available: 2 are somehow wrong.")),
        json!({"record": "event", "at": "2026-01-01T00:00:06Z", "pod": "default/strange",
               "uid": "strange", "reporter": "default-scheduler", "reason": "FailedScheduling",
               "message": "0/2 nodes are available: 2 are somehow wrong."}),
        json!({"record": "delete", "at": "2026-01-01T00:00:07Z", "kind": "Pod",
               "namespace": "default", "name": "old"}),
        put(8, pod("late", "1", "", "")),
        json!({"record": "end", "at": "2026-01-01T00:00:09Z", "changes": 8}),
    ]);
    // The header is recognized by its first field, which must come first.
    let text = |line: &Value| {
        let text = line.to_string();
        match line.get("schema") {
            Some(schema) => {
                let rest = text.replace(&format!(",\"schema\":{schema}"), "");
                format!("{{\"schema\":{schema},{}", &rest[1..])
            }
            None => text,
        }
    };
    lines.iter().fold(String::new(), |mut all, line| {
        let _ = writeln!(all, "{}", text(line));
        all
    })
}

fn pod(name: &str, cpu: &str, node: &str, rejection: &str) -> Value {
    let version = format!("{}{}", node.len(), rejection.len());
    let mut pod = json!({
        "metadata": {"name": name, "namespace": "default", "uid": name, "resourceVersion": version,
                     "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]},
        "status": {"phase": "Pending"},
    });
    if !node.is_empty() {
        pod["spec"]["nodeName"] = node.into();
    }
    if !rejection.is_empty() {
        pod["status"]["conditions"] = json!([{"type": "PodScheduled", "status": "False",
            "reason": "Unschedulable", "message": rejection}]);
    }
    pod
}

fn call() -> Call {
    Call::new().bytes("lab.jsonl", lab().as_bytes())
}

#[test]
fn the_recording_is_as_its_schema_says() {
    schema::check_lines("kubestep/recording/v1", &lab());
}

/// The decisions are those of the cluster's version, unless another one is named.
#[test]
fn a_recording_is_compared_as_its_version() {
    let of_133 = lab().replace("v1.36.2", "v1.33.5-gke.1");
    let call = Call::new().bytes("lab.jsonl", of_133.as_bytes());
    call.says("recordings/replay-133", "replay lab.jsonl");
    call.says("recordings/replay-as-134", "replay lab.jsonl --kube-version 1.34 -o json");
}

#[test]
fn help() {
    Call::new().says("help-record", "record --help");
    Call::new().says("help-replay", "replay --help");
    call().says("recordings/no-terminal", "-f lab.jsonl --speed 10");
}

#[test]
fn decisions_are_compared() {
    call().says("recordings/replay", "replay lab.jsonl");
    call().says("recordings/replay-wide", "replay lab.jsonl -o wide --until 4s");
    call().says("recordings/replay-json", "replay lab.jsonl -o json --until 2026-01-01T00:00:04Z");
    call().says("recordings/replay-yaml", "replay lab.jsonl -o yaml --until 1s");
    call().says("recordings/replay-first", "replay lab.jsonl --tie-break first --history-memory 1");
}

#[test]
fn a_recording_is_an_input_like_others() {
    call().says("recordings/run", "run -f lab.jsonl");
    call().says("recordings/run-until", "run -f lab.jsonl --until 3500ms");
    call().says("recordings/explain", "explain strange -f lab.jsonl");
    let at_start = call().run("run -f lab.jsonl --until 0s");
    assert!(at_start.pods().starts_with("default/old  pending"), "{}", at_start.stdout);
}

/// Lines of the scheduler stay at their position between the changes, and are pseudonymized in a
/// redacted bundle.
#[test]
fn a_bundle_keeps_what_was_reported() {
    let call = call();
    call.run("bundle -f lab.jsonl -o bug.jsonl");
    let written = call.written("bug.jsonl");
    schema::check_lines("kubestep/recording/v1", &written);
    let records = written.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let records: Vec<Value> = records.filter(|line| line["record"] != "decision").collect();
    let reported = records.iter().position(|line| line["record"] == "event").unwrap();
    assert_eq!(records[reported]["reason"], "FailedScheduling");
    assert_eq!(records[reported - 1]["object"]["metadata"]["name"], "strange");
    assert_eq!(records[reported + 1]["record"], "delete");
    call.run("bundle -f lab.jsonl --redact -o other.jsonl");
    let redacted = call.written("other.jsonl");
    assert!(redacted.contains("FailedScheduling") && !redacted.contains("strange"), "{redacted}");
    call.run("bundle -f lab.jsonl --until 5s -o early.jsonl");
    assert!(!call.written("early.jsonl").contains("FailedScheduling"));
}

#[test]
fn one_that_was_cut_off_says_so() {
    let lab = lab();
    let cut = &lab.as_bytes()[..lab.find("\"clear\"").unwrap()];
    Call::new().bytes("cut.jsonl", cut).says("recordings/cut", "run -f cut.jsonl");
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(cut).unwrap();
    packed.flush().unwrap();
    let packed = packed.get_ref().clone();
    Call::new().bytes("cut.jsonl.gz", &packed).says("recordings/cut-packed", "run -f cut.jsonl.gz");
    let lists = &lab.as_bytes()[..lab.find("\"old\"").unwrap()];
    Call::new().bytes("cut.jsonl", lists).says("recordings/cut-lists", "run -f cut.jsonl");
    let header = &lab.as_bytes()[..90];
    Call::new().bytes("cut.jsonl", header).says("recordings/cut-header", "run -f cut.jsonl");
}

#[test]
fn what_cannot_be_meant_is_rejected() {
    call().says("recordings/until-wrong", "run -f lab.jsonl --until soon");
    call().says("recordings/until-before", "replay lab.jsonl --until 2025-01-01T00:00:00Z");
    Call::new().says("recordings/until-nothing", "run --demo tour --until 5s");
    let nodes = "{apiVersion: v1, kind: Node, metadata: {name: a}}";
    Call::new().file("nodes.yaml", nodes).says("recordings/no-recording", "replay nodes.yaml");
    Call::new().says("recordings/no-file", "replay nowhere.jsonl");
    let two = call().bytes("more.jsonl", lab().as_bytes());
    two.says("recordings/two", "run -f lab.jsonl -f more.jsonl");
    let wrong = lab().replace("\"cpu\":\"9\"", "\"cpu\":\"nine\"");
    Call::new().bytes("lab.jsonl", wrong.as_bytes()).says("recordings/wrong", "run -f lab.jsonl");
    let closed = Call::new().file("config", "{apiVersion: v1, kind: Config}");
    closed.says("recordings/record-span", "record -o r.jsonl --kubeconfig config --for never");
    closed.says("recordings/record-folder", "record -o no/r.jsonl --kubeconfig config");
}
