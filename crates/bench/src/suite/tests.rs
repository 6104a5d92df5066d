//! What is read from configurations, and what is wrong with some.

use std::path::Path;

use super::operation::{OPCODES, StageRequirement};
use super::*;

const BASIC: &str = "
- name: Basic
  labels: [short]
  featureGates: {A: true, B: true}
  workloadTemplate:
  - opcode: createNodes
    countParam: $nodes
    labelNodePrepareStrategy: {labelKey: zone, labelValues: [a, b]}
  - opcode: createPodSets
    count: 2
    namespacePrefix: set
    createPodsOp:
      opcode: createPods
      countParam: $pods
  - opcode: barrier
    stageRequirement: Attempted
  - opcode: createPods
    count: 3
    steadyStateParam: $steady
    durationParam: $duration
    collectMetrics: true
  workloads:
  - name: small
    labels: [performance]
    featureGates: {B: false}
    threshold: {dra: 40, misc: 50}
    params: {nodes: 5, pods: 10, steady: true, duration: 10s, more: 1}
  - name: wrong
    threshold: 3.5
    params: {nodes: many}
";

fn suite(text: &str) -> Result<Suite, String> {
    Suite::parse(Path::new("a/performance-config.yaml"), text).map_err(|error| error.to_string())
}

#[test]
fn a_test_case_is_read_and_its_parameters_are_inserted() {
    let suite = suite(BASIC).unwrap();
    assert_eq!(suite.folder(), Path::new("a"));
    let case = &suite.cases[0];
    let small = &case.workloads[0];
    assert_eq!(case.labels(small).collect::<Vec<_>>(), ["short", "performance"]);
    assert_eq!(case.gates(small), [("A".into(), true), ("B".into(), false)].into());
    assert_eq!((small.threshold.of("dra"), small.threshold.of("other")), (Some(40.0), None));
    assert_eq!(case.workloads[1].threshold.of("other"), Some(3.5));
    assert_eq!(case.selector(small), MetricSelector::default());
    let operations = case.operations(small).unwrap();
    let opcodes: Vec<_> = operations.iter().map(Operation::opcode).collect();
    assert_eq!(opcodes, ["createNodes", "createPods", "createPods", "barrier", "createPods"]);
    let Operation::CreatePods(second) = &operations[2] else { panic!("{operations:?}") };
    assert_eq!((second.count, second.namespace.as_deref()), (10, Some("set-1")));
    let Operation::Barrier(barrier) = &operations[3] else { panic!("{operations:?}") };
    assert_eq!(barrier.stage_requirement, StageRequirement::Attempted);
    let Operation::CreatePods(last) = &operations[4] else { panic!("{operations:?}") };
    assert!(last.steady_state && last.duration == "10s");
    assert_eq!(small.params.unused(), ["more"]);
}

#[test]
fn wrong_parameters_are_named() {
    let suite = suite(BASIC).unwrap();
    let case = &suite.cases[0];
    let error = case.operations(&case.workloads[1]).unwrap_err();
    let expected =
        "operation 0, createNodes: $nodes is \"many\", which is not a number of 0 or more";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let with = |operation: &str| {
        suite(&format!(
            "- name: A\n  workloadTemplate:\n  - opcode: stopCollectingMetrics\n  - {operation}\n  \
             workloads:\n  - name: w\n"
        ))
    };
    assert!(with("opcode: sleep").is_ok());
    let place = "a/performance-config.yaml:4: ";
    for (operation, expected) in [
        ("opcode: createPod", "there is no opcode \"createPod\"; there are allocResourceClaims,"),
        ("count: 1", "an operation has no opcode"),
        ("{opcode: createNodes, counts: 1}", "createNodes: unknown field `counts`, expected one"),
        ("{opcode: churn, mode: create}", "churn: templatePaths is missing"),
        (
            "{opcode: createPods, collectMetrics: true, skipWaitToCompletion: true}",
            "createPods: collectMetrics and skipWaitToCompletion cannot be true at the same time",
        ),
    ] {
        let error = with(operation).unwrap_err();
        assert!(error.contains(expected) && error.starts_with(place), "{operation}: {error}");
    }
    for (text, expected) in [
        ("[]", "a/performance-config.yaml: there is no test case"),
        ("- name: A", "a/performance-config.yaml: A: there is no workload"),
    ] {
        assert_eq!(suite(text).unwrap_err(), expected);
    }
}

#[test]
fn every_opcode_of_upstream_is_there() {
    assert_eq!(OPCODES.len(), 15);
}
