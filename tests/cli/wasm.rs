//! WebAssembly guests from the command line: the example of the book.

use serde_json::Value;

use crate::harness::Call;

const GUEST: &str = include_str!("../../docs/src/examples/wasm/own-nodes.wat");
const CONFIG: &str = include_str!("../../docs/src/examples/wasm/scheduler.yaml");

const CLUSTER: &str = "\
kind: List
items:
- {kind: Node, apiVersion: v1, metadata: {name: a-1}, status: {allocatable: {cpu: 4, memory: 8Gi, pods: 9}}}
- {kind: Node, apiVersion: v1, metadata: {name: b-1}, status: {allocatable: {cpu: 8, memory: 8Gi, pods: 9}}}
- {kind: Pod, apiVersion: v1, metadata: {name: web}, spec: {containers: [{name: c, resources: {requests: {cpu: 3}}}]}}
- {kind: Pod, apiVersion: v1, metadata: {name: large}, spec: {containers: [{name: c, resources: {requests: {cpu: 6}}}]}}
";

fn call() -> Call {
    Call::new()
        .bytes("own-nodes.wasm", &wat::parse_str(GUEST).unwrap())
        .bytes("scheduler.yaml", CONFIG.as_bytes())
        .bytes("other.yaml", CONFIG.replace("guestConfig: a", "guestConfig: b").as_bytes())
        .bytes("cluster.yaml", CLUSTER.as_bytes())
}

#[test]
fn a_guest_decides_like_any_plugin() {
    let call = call();
    let run = "-f cluster.yaml --config scheduler.yaml";
    call.says("wasm/run", &format!("run {run}"));
    call.says("wasm/explain", &format!("explain large {run}"));
    call.says("wasm/diff", &format!("diff {run} --config-b other.yaml"));
    call.says("wasm/config", "config scheduler.yaml");
    let what_if = call.run(&format!("run {run} --edit \"resize node a-1 cpu=10\" -o json"));
    let run: Value = serde_json::from_str(&what_if.stdout).unwrap();
    assert_eq!(run["placed"].as_array().map(Vec::len), Some(2), "{run}");
    assert!(run["uncertainDecisions"].is_null(), "a guest's verdicts are certain");
}

/// What is placed where, and what is not.
fn placed(call: &Call, command: &str) -> (Value, Value) {
    let said = call.run(&format!("{command} -o json"));
    let run: Value = serde_json::from_str(&said.stdout).unwrap();
    assert!(run["uncertainDecisions"].is_null(), "{run}");
    (run["placed"].clone(), run["pending"].clone())
}

#[test]
fn an_edit_that_loads_a_configuration_loads_its_guests() {
    let call = call().bytes("absent.yaml", CONFIG.replace("own-nodes", "absent").as_bytes());
    for (before, after) in [("", "scheduler.yaml"), ("--config scheduler.yaml", "other.yaml")] {
        let edited = format!("run -f cluster.yaml {before} --edit \"config @{after}\"");
        let begun = format!("run -f cluster.yaml --config {after}");
        assert_eq!(placed(&call, &edited), placed(&call, &begun), "{edited}");
    }
    let kept =
        "run -f cluster.yaml --edit \"config @scheduler.yaml\" --edit \"weight ImageLocality=2\"";
    let begun = "run -f cluster.yaml --config scheduler.yaml";
    assert_eq!(placed(&call, kept), placed(&call, begun), "a later edit keeps them");
    let absent = call.run("run -f cluster.yaml --edit \"config @absent.yaml\"");
    assert!(
        absent.stderr.contains("the guest of plugin OwnNodes is not there"),
        "{}",
        absent.stderr
    );
}

#[test]
fn a_guest_that_is_not_there_is_opaque_or_rejected() {
    let remote = CONFIG.replace("file://own-nodes.wasm", "http://example.com/own-nodes.wasm");
    let call = call()
        .bytes("absent.yaml", CONFIG.replace("own-nodes.wasm", "absent.wasm").as_bytes())
        .bytes("elsewhere.yaml", remote.as_bytes());
    for (config, why) in [
        ("absent.yaml", "absent.wasm: there is no such file"),
        ("elsewhere.yaml", "kubestep reads guests from files only, as file://PATH"),
    ] {
        let said = call.run(&format!("run -f cluster.yaml --config {config}"));
        assert_eq!(said.code, Some(1), "{}", said.stderr);
        assert!(
            said.stderr.contains("the guest of plugin OwnNodes is not there: "),
            "{}",
            said.stderr
        );
        assert!(said.stderr.contains(why), "{}", said.stderr);
        assert!(said.stdout.contains("uncertain"), "{}", said.stdout);
        let refuse = format!("config {config} --unknown-plugins reject");
        let said = call.run(&refuse);
        assert_eq!(said.code, Some(2), "{}", said.stdout);
        assert!(said.stderr.contains(why), "{}", said.stderr);
    }
}

#[test]
fn what_is_no_guest_is_an_error() {
    for (guest, why) in [
        (b"hello".to_vec(), "it is not a WebAssembly module that can run here"),
        (
            wat::parse_str("(module (memory (export \"memory\") 1))").unwrap(),
            "the guest exports none of filter, score, reserve, permit and bind",
        ),
        (
            wat::parse_str(GUEST.replace(
                "(i32.const 100) (i32.const 100)))",
                "(i32.const 0) (i32.const 0))) unreachable",
            ))
            .unwrap(),
            "",
        ),
    ] {
        let said = call()
            .bytes("own-nodes.wasm", &guest)
            .run("run -f cluster.yaml --config scheduler.yaml");
        match why {
            "" => {
                assert!(said.stdout.contains("the guest gave up, as on a panic"), "{}", said.stdout)
            }
            why => {
                assert_eq!(said.code, Some(2), "{}", said.stdout);
                assert!(said.stderr.contains(why), "{}", said.stderr);
            }
        }
    }
}
