//! `kubestep bench`: a small suite of our own, and upstream's if an environment variable names its
//! folder.

use std::path::{Path, PathBuf};

use kubestep_bench::manifest::Templates;
use kubestep_bench::suite::{FILE_NAME, Operation, Suite};
use serde_json::Value;

use crate::harness::{Call, CallOutput};

/// The folder `test/integration/scheduler_perf` of Kubernetes.
const UPSTREAM: &str = "SCHEDULER_PERF";

const SUITE: &str = "\
- name: Basic
  labels: [integration-test]
  defaultPodTemplatePath: pod.yaml
  workloadTemplate:
  - opcode: createNodes
    countParam: $nodes
  - opcode: createPods
    countParam: $pods
    collectMetrics: true
  workloads:
  - name: small
    labels: [short, performance]
    threshold: 1
    params: {nodes: 5, pods: 20}
  - name: fast
    labels: [short]
    threshold: 1000000000
    params: {nodes: 2, pods: 10, more: 1}
  - name: full
    featureGates: {SchedulerQueueingHints: false}
    params: {nodes: 1, pods: 200}
- name: Typo
  workloadTemplate:
  - opcode: createNodes
    countParam: $nods
  - opcode: stopCollectingMetrics
  workloads:
  - name: any
    params: {nodes: 2}
";

const POD: &str = "\
apiVersion: v1
kind: Pod
metadata: {generateName: pod-}
spec:
  containers:
  - {name: c, image: i, resources: {requests: {cpu: 100m, memory: '{{ AddInt .Index 1 }}'}}}
";

const CONFIG: &str = "\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 50
";

fn call() -> Call {
    Call::new()
        .bytes("perf/performance-config.yaml", SUITE.as_bytes())
        .bytes("perf/pod.yaml", POD.as_bytes())
        .bytes("config.yaml", CONFIG.as_bytes())
}

fn json(said: &CallOutput) -> Value {
    serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{}", said.stderr))
}

#[test]
fn help() {
    Call::new().says("help-bench", "bench --help");
}

#[test]
fn workloads_are_chosen_by_label_and_name() {
    call().says("bench/list", "bench perf --list --label \"\"");
    call().says(
        "bench/list-labels",
        "bench perf/performance-config.yaml --list --label short,-performance",
    );
    call().says("bench/list-topic", "bench perf --list --label \"\" --topic nightly");
    call().says("bench/no-label", "bench perf --label fast");
    call().says("bench/no-name", "bench perf --filter nothing");
    call().says("bench/nowhere", "bench nowhere.yaml --rounds 2 --plugins");
    call().says(
        "bench/no-cluster",
        "bench perf --against nowhere --context test --yes-create-objects",
    );
    call().bytes("empty/a.yaml", b"").says("bench/no-suite", "bench empty");
    let wrong = SUITE.replace("opcode: createPods", "opcode: createPod");
    let wrong = call().bytes("perf/performance-config.yaml", wrong.as_bytes());
    wrong.says("bench/wrong-opcode", "bench perf");
}

#[test]
fn a_workload_is_measured() {
    let said = call().run("bench perf -o json");
    assert_eq!(said.code, Some(0), "{}{}", said.stdout, said.stderr);
    let report = json(&said);
    assert_eq!((&report["passed"], &report["missed"]), (&1.into(), &0.into()));
    let run = &report["workloads"][0]["runs"][0];
    let measured = &run["measurements"][0];
    assert_eq!(measured["scheduled"], 20);
    assert_eq!(measured["threshold"]["met"], true);
    assert_eq!(run["featureGates"], "OpportunisticBatching=false");
    let figures = measured["figures"].as_array().unwrap();
    let of = |metric: &str, label: &str, value: &str| {
        let mut found = figures.iter().filter(|it| it["metric"] == metric);
        let found = found.find(|it| label.is_empty() || it["labels"][label] == value);
        found.map(|it| it["data"].clone()).unwrap()
    };
    assert!(of("SchedulingThroughput", "", "")["Average"].as_f64().unwrap() > 1.0);
    let attempts = of("scheduler_scheduling_attempt_duration_seconds", "result", "scheduled");
    assert_eq!(attempts["Count"], 20.0);
    let fit = of("scheduler_plugin_execution_duration_seconds", "plugin", "NodeResourcesFit");
    assert!(fit["Sum"].as_f64().unwrap() > 0.0);
    assert_eq!(of("scheduler_pod_scheduling_sli_duration_seconds", "", "")["Count"], 20.0);
    let said = call().run("bench perf --plugins");
    let has = |words: &str| assert!(said.stdout.contains(words), "{words}: {}", said.stdout);
    ["WORKLOAD", "Basic/small", "1 met", "NodeResourcesFit"].into_iter().for_each(has);
    has("\n1 workload: 1 passed, 0 below a threshold, 0 could not be run\n");
}

#[test]
fn thresholds_that_are_missed_and_workloads_that_fail_have_exit_codes() {
    let said = call().run("bench perf --label short");
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    let expected =
        "MISSED Basic/fast\n  expected SchedulingThroughput Average above 1000000000, measured ";
    assert!(said.stdout.contains(expected), "{}", said.stdout);
    assert!(said.stdout.contains("note: no operation uses the parameters more"));
    let said = call().run("bench perf --label \"\" -o junit");
    assert_eq!(said.code, Some(2));
    let has = |words: &str| assert!(said.stdout.contains(words), "{words}: {}", said.stdout);
    has("tests=\"4\" failures=\"1\" errors=\"2\"");
    has("name=\"Basic/fast\"");
    has("<failure type=\"threshold\" message=\"expected SchedulingThroughput Average above");
    has("operation 0, createNodes: the workload has no parameter &quot;nods&quot;; it has nodes");
    has("40 of 200 pods in namespace namespace-1 are scheduled after 600 s");
}

#[test]
fn workloads_run_with_two_configurations() {
    let said =
        call().run("bench perf --config config.yaml --config-b config.yaml --rounds 3 -o json");
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let report = json(&said);
    let runs = report["workloads"][0]["runs"].as_array().unwrap();
    assert_eq!(runs.iter().map(|run| &run["config"]).collect::<Vec<_>>(), ["config.yaml"; 2]);
    let said = call().run("bench perf --config-b config.yaml");
    assert!(said.stdout.contains("×)"), "{}", said.stdout);
    call().says("bench/no-config", "bench perf --config nowhere.yaml");
}

#[test]
fn plugins_that_kubestep_does_not_have_are_opaque() {
    let opaque =
        format!("{CONFIG}profiles: [{{plugins: {{multiPoint: {{enabled: [{{name: Mine}}]}}}}}}]\n");
    let call = || call().bytes("opaque.yaml", opaque.as_bytes());
    let said = call().run("bench perf --config opaque.yaml");
    assert_eq!(said.code, Some(0), "{}{}", said.stdout, said.stderr);
    let note = "note: plugin Mine is opaque: this is the throughput without it";
    assert!(said.stdout.contains(note), "{}", said.stdout);
    let said = call().run("bench perf --config opaque.yaml --unknown-plugins reject");
    assert_eq!(said.code, Some(2), "{}", said.stdout);
    assert!(said.stdout.contains("does not exist"), "{}", said.stdout);
}

#[test]
fn feature_gates_of_workloads_are_those_of_upstream() {
    let gates = |line: &str| {
        let run = json(&call().run(line))["workloads"][0]["runs"][0].clone();
        (run["featureGates"].clone(), run["emulatedVersion"].clone(), run["error"].clone())
    };
    let small = "bench perf --filter *small -o json";
    let batching: Value = "OpportunisticBatching=false".into();
    assert_eq!(gates(small), (batching, Value::Null, Value::Null));
    let old = format!("{small} --kube-version 1.33");
    assert_eq!(gates(&old), ("".into(), Value::Null, Value::Null));
    let own = format!("{small} --feature-gates OpportunisticBatching=true");
    assert_eq!(gates(&own).0, "");
    // Without queueing hints.
    let few = SUITE.replace("pods: 200", "pods: 20");
    let few = call().bytes("perf/performance-config.yaml", few.as_bytes());
    let run = json(&few.run("bench perf --filter *full --label \"\" -o json"));
    let run = &run["workloads"][0]["runs"][0];
    assert_eq!((&run["emulatedVersion"], &run["error"]), (&"1.33".into(), &Value::Null));
    assert!(run["featureGates"].as_str().unwrap().contains("SchedulerQueueingHints=false"));
}

/// `SCHEDULER_PERF=…/test/integration/scheduler_perf cargo test --test cli upstream`
#[test]
#[cfg_attr(not(with_upstream_workloads), ignore = "needs SCHEDULER_PERF")]
fn every_opcode_and_template_of_upstream_is_understood() {
    let folder = PathBuf::from(std::env::var_os(UPSTREAM).expect("SCHEDULER_PERF is not set"));
    let is_suite = |path: &Path| path.file_name().is_some_and(|name| name == FILE_NAME);
    let files = kubestep_source::below(&folder, is_suite).unwrap();
    assert!(files.len() > 10, "{files:?}");
    let read =
        |path: &Path| kubestep_source::read_whole(path).map_err(|error| error.to_string().into());
    for file in files {
        let suite = Suite::parse(&file, &read(&file).unwrap()).unwrap();
        let templates = Templates::new(suite.folder(), &read);
        for case in &suite.cases {
            for workload in &case.workloads {
                for operation in case.operations(workload).unwrap() {
                    for path in paths(&operation) {
                        templates.get(path).unwrap().object(3, 7).unwrap();
                    }
                }
            }
        }
    }
}

/// The templates that an operation names.
fn paths(operation: &Operation) -> Vec<&str> {
    match operation {
        Operation::Churn(churn) => churn.template_paths.iter().map(String::as_str).collect(),
        Operation::CreateAny(any) => vec![&any.template_path],
        Operation::UpdateAny(any) => vec![&any.template_path],
        Operation::CreateResourceClaims(claims) => vec![&claims.template_path],
        Operation::CreateNodes(nodes) => nodes.node_template_path.as_deref().into_iter().collect(),
        Operation::CreateNamespaces(namespaces) => {
            namespaces.namespace_template_path.as_deref().into_iter().collect()
        }
        Operation::CreatePods(pods) => [
            &pods.pod_template_path,
            &pods.persistent_volume_template_path,
            &pods.persistent_volume_claim_template_path,
        ]
        .into_iter()
        .filter_map(|path| path.as_deref())
        .collect(),
        _ => Vec::new(),
    }
}
