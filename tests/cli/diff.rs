//! `kubestep diff`, and edits before a run.

use serde_json::Value;

use crate::harness::Call;

/// Two nodes, a pod that fits both, and one that is too large for either.
const CLUSTER: &str = "\
{kind: Node, apiVersion: v1, metadata: {name: a}, status: {allocatable: {cpu: 4, memory: 8Gi, pods: 9}}}
---
{kind: Node, apiVersion: v1, metadata: {name: b}, status: {allocatable: {cpu: 4, memory: 8Gi, pods: 9}}}
---
{kind: Pod, apiVersion: v1, metadata: {name: large}, spec: {containers: [{name: c, resources: {requests: {cpu: 6}}}]}}
---
{kind: Pod, apiVersion: v1, metadata: {name: small}, spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}
";

const PACKING: &str = "\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
";

const BUSY: &str = "\
---
{kind: Pod, apiVersion: v1, metadata: {name: busy}, status: {phase: Running}, spec: {nodeName: b, containers: [{name: c, resources: {requests: {cpu: 1}}}]}}
";

fn call() -> Call {
    Call::new().file("cluster.yaml", CLUSTER)
}

#[test]
fn the_help() {
    Call::new().says("help-diff", "diff --help");
}

#[test]
fn edits_are_compared_with_what_is() {
    call().says("diff/cordon", "diff -f cluster.yaml --edit \"cordon node a\"");
    let both = "--edit \"resize pod large cpu=2\" --edit \"priority pod small 5\"";
    call().says("diff/resize", &format!("diff -f cluster.yaml {both}"));
    call().says("diff/nodes", "diff -f cluster.yaml --edit \"add 2 nodes like a\"");
    call().says("diff/forced", "diff -f cluster.yaml --edit \"force node b for pod large\"");
}

/// What the limit of cycles leaves open is not called the same.
#[test]
fn a_comparison_whose_runs_are_ended_is_incomplete() {
    let line = "diff -f cluster.yaml --edit \"label node a x=y\" --max-cycles 1";
    call().says("diff/cut", line);
    let said = call().run(&format!("{line} -o json"));
    let value: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!((value["complete"].as_bool(), said.code), (Some(false), Some(6)));
    let whole = call().run(&line.replace(" 1", " 2"));
    assert_eq!(whole.code, Some(0), "{}", whole.stdout);
}

#[test]
fn configurations_files_and_gates_are_compared() {
    let call = Call::new()
        .file("cluster.yaml", &(CLUSTER.to_owned() + BUSY))
        .file("packing.yaml", PACKING);
    call.says("diff/config", "diff -f cluster.yaml --config-b packing.yaml");
    let call = self::call().file("other.yaml", &CLUSTER.replace("cpu: 4", "cpu: 8"));
    call.says("diff/files", "diff -f cluster.yaml --filename-b other.yaml");
    let weights = "--edit \"weight NodeResourcesBalancedAllocation=9\"";
    let busy = Call::new().file("cluster.yaml", &(CLUSTER.to_owned() + BUSY));
    busy.says("diff/weight", &format!("diff -f cluster.yaml {weights}"));
    let gate = "--feature-gates-b SchedulerPopFromBackoffQ=false";
    self::call().says("diff/same", &format!("diff -f cluster.yaml {gate}"));
}

#[test]
fn programs_get_json_and_yaml() {
    let line = "diff -f cluster.yaml --edit \"cordon node a\"";
    call().says("diff/json", &format!("{line} -o json"));
    let yaml = call().run(&format!("{line} -o yaml"));
    let yaml: Value = kubestep_api::yaml::from_str(&yaml.stdout).unwrap();
    let json = call().run(&format!("{line} -o json"));
    assert_eq!(yaml, serde_json::from_str::<Value>(&json.stdout).unwrap());
    assert_eq!(json.code, Some(3));
}

#[test]
fn what_cannot_be_compared_is_explained() {
    call().says("diff/nothing", "diff -f cluster.yaml");
    call().says("diff/bad-edit", "diff -f cluster.yaml --edit \"cordn node a\"");
    call().says("diff/no-node", "diff -f cluster.yaml --edit \"cordon node c\"");
    call().says("diff/live", "diff --config-b other.yaml");
}

#[test]
fn a_run_can_be_edited_first() {
    let call = call().file("more.yaml", "{kind: Pod, metadata: {name: more}}");
    let edits =
        "--edit \"resize node b cpu=16\" --edit \"put @more.yaml\" --edit \"cordon node a\"";
    call.says("run-edited", &format!("run -f cluster.yaml {edits}"));
    call.says("run-edit-notes", "run -f cluster.yaml --edit \"select pod small x=y\"");
    call.says("run-edit-error", "run -f cluster.yaml --edit \"put @none.yaml\"");
}

#[test]
fn two_configurations_of_a_story() {
    let call = Call::new().file("scheduler.yaml", PACKING);
    call.says("diff/demo", "diff --demo tour --config-b scheduler.yaml");
    call.says("diff/demo-gates", "diff --demo tour --feature-gates-b OpportunisticBatching=false");
}
