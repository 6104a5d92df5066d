//! `kubestep test` and `kubestep bundle`: expectations that are met, that are not and that cannot
//! be parsed; bundles that are both inputs and tests.

use crate::harness::Call;
use crate::schema;

const CLUSTER: &str = "\
{apiVersion: v1, kind: Node, metadata: {name: a}, status: {allocatable: {cpu: 4, memory: 8Gi, pods: 9}}}
---
{apiVersion: v1, kind: Node, metadata: {name: b}, status: {allocatable: {cpu: 2, memory: 8Gi, pods: 9}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: huge}, spec: {containers: [{name: c, resources: {requests: {cpu: 9}}}]}}
";

const HOLDS: &str = "\
apiVersion: kubestep/v1
kind: Test
name: web gets the larger node
input: [cluster.yaml]
expect:
  pods:
    web: {node: a}
    huge: {pending: true, rejectedBy: [NodeResourcesFit], message: Insufficient cpu}
  pending: 1
---
apiVersion: kubestep/v1
kind: Test
name: without the larger node web gets the other
input: [cluster.yaml]
edits: [cordon node a]
expect:
  pods:
    web: {node: b}
  verdicts:
  - {pod: web, node: a, plugin: NodeUnschedulable, rejects: true}
";

const FAILS: &str = "\
apiVersion: kubestep/v1
kind: Test
input: [../cluster.yaml]
expect:
  pods:
    web: {node: b}
    huge: {node: a}
    gone: {node: a}
  pending: 0
";

fn call() -> Call {
    Call::new()
        .bytes("tests/cluster.yaml", CLUSTER.as_bytes())
        .bytes("tests/holds.yaml", HOLDS.as_bytes())
}

fn failing() -> Call {
    let broken = FAILS.replace("node: b", "nodes: b");
    let lost = FAILS.replace("../cluster", "nowhere");
    call()
        .bytes("tests/deeper/fails.yaml", FAILS.as_bytes())
        .bytes("tests/deeper/broken.yaml", broken.as_bytes())
        .bytes("tests/deeper/lost.yml", lost.as_bytes())
        .bytes(
            "tests/deeper/other.json",
            b"{\"kind\": \"Something\", \"apiVersion\": \"kubestep/v1\"}",
        )
}

#[test]
fn help() {
    Call::new().says("help-test", "test --help");
    Call::new().says("help-bundle", "bundle --help");
}

#[test]
fn expectations_hold_or_say_why_not() {
    call().says("tested/passes", "test tests");
    failing().says("tested/fails", "test tests");
    failing().says("tested/fails-json", "test tests -o json");
    failing().says("tested/fails-junit", "test tests -o junit");
    failing().says("tested/one-fails", "test tests --filter fails");
    failing().says("tested/filtered", "test tests --filter \"web *\" --filter \"*other\" -o text");
    failing().says("tested/files", "test tests/holds.yaml tests/deeper/lost.yml");
}

/// The same tests with another configuration, to try a change of it.
#[test]
fn the_configuration_of_all_can_be_another() {
    let config = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
        profiles:\n- pluginConfig:\n  - name: NodeResourcesFit\n    args:\n      scoringStrategy: \
        {type: MostAllocated, resources: [{name: cpu, weight: 1}]}\n";
    let call = call().bytes("packed.yaml", config.as_bytes());
    call.says(
        "tested/config",
        "test tests --config packed.yaml --feature-gates GenericWorkload=true",
    );
    call.says("tested/config-wrong", "test tests --config nowhere.yaml --max-cycles 3");
}

#[test]
fn what_is_no_test_is_reported() {
    Call::new().says("tested/nowhere", "test nowhere");
    let empty = Call::new().bytes("tests/cluster.yaml", CLUSTER.as_bytes());
    empty.says("tested/none", "test tests");
    empty.says("tested/no-test", "test tests/cluster.yaml");
    call().says("tested/no-name", "test tests --filter other");
}

#[test]
fn a_bundle_is_an_input_and_a_test() {
    for name in ["bug.jsonl", "bug.jsonl.gz"] {
        let call = call();
        let line = format!("bundle -f tests/cluster.yaml --expect -o {name}");
        let said = call.run(&line);
        assert_eq!((said.stdout.as_str(), said.code), ("", Some(0)), "{}", said.stderr);
        assert!(
            said.stderr.ends_with(&format!(
                "4 objects, 0 changes, what is expected of 2 pods in {name}\n"
            ))
        );
        let (original, bundled) =
            (call.run("run -f tests/cluster.yaml"), call.run(&format!("run -f {name}")));
        assert_eq!((original.stdout, original.code), (bundled.stdout, bundled.code));
        let said = call.run(&format!("test {name}"));
        assert_eq!(
            said.stdout,
            format!("ok      bug  ({name})\n\n1 test: 1 passed, 0 failed, 0 could not be run\n")
        );
    }
}

/// A bundle contains the configuration file as it is written.
#[test]
fn a_bundle_holds_configuration_and_gates() {
    let config = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
        percentageOfNodesToScore: 70\n";
    let call = call().bytes("c.yaml", config.as_bytes());
    let line = "bundle -f tests/cluster.yaml --config c.yaml --feature-gates GenericWorkload=true \
                --expect -o bug.jsonl";
    call.says_with("tested/bundle", line, "bug.jsonl");
    schema::check_lines("kubestep/recording/v1", &call.written("bug.jsonl"));
    let edited = call.written("bug.jsonl").replace("\"node\":\"a\"", "\"node\":\"b\"");
    let call = Call::new().bytes("bug.jsonl", edited.as_bytes());
    call.says("tested/bundle-fails", "test bug.jsonl");
    let plain = call
        .written("bug.jsonl")
        .replace("\"expect\":{\"pending\":1,", "\"expect\":{\"pendin\":1,");
    Call::new().bytes("bug.jsonl", plain.as_bytes()).says("tested/bundle-broken", "test bug.jsonl");
}

#[test]
fn bundles_that_cannot_be_made() {
    call().says("tested/bundle-no-folder", "bundle -f tests/cluster.yaml -o nowhere/bug.jsonl");
    call().says("tested/bundle-no-input", "bundle -f nowhere.yaml -o bug.jsonl");
    call().says("tested/bundle-no-output", "bundle -f tests/cluster.yaml");
}

/// A test that uses every field.
const WHOLE: &str = "\
apiVersion: kubestep/v1
kind: Test
name: all fields
input: [cluster.yaml]
config: scheduler.yaml
featureGates: PodLevelResources=true
edits: [cordon node b]
timers: 1
expect:
  pods:
    web:
      node: a
      pending: false
      waiting: false
      deleted: false
      count: 1
    huge: {pending: true, rejectedBy: [NodeResourcesFit, NodeUnschedulable], message: Insufficient}
  verdicts:
  - {pod: huge, node: a, plugin: NodeResourcesFit, rejects: true, reason: Insufficient cpu}
  pending: 1
";

const SCHEMA: &str = "kubestep/test-document/v1";

#[test]
fn what_a_test_may_say_is_what_its_schema_says() {
    for documents in [HOLDS, FAILS, WHOLE] {
        schema::check_documents(SCHEMA, documents);
    }
    let guide = include_str!("../../docs/src/guides/ci.md");
    let example = guide.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next());
    schema::check_documents(SCHEMA, example.unwrap());
    let config = "{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration}";
    call()
        .bytes("tests/whole.yaml", WHOLE.as_bytes())
        .bytes("tests/scheduler.yaml", config.as_bytes())
        .says("tested/whole", "test tests/whole.yaml");
}
