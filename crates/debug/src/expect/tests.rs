//! Expectations that are met, that are not, and that cannot be parsed.

use super::{check, read, read_expect};
use crate::Session;
use crate::edit::tests::world;

const CLUSTER: &str = "
{kind: Node, apiVersion: v1, metadata: {name: a}, status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}}
---
{kind: Pod, apiVersion: v1, metadata: {name: small}, spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}
---
{kind: Pod, apiVersion: v1, metadata: {name: large}, spec: {containers: [{name: c, resources: {requests: {cpu: 9}}}]}}
";

/// The failures, one per line.
fn failures(expect: &str) -> Vec<String> {
    let mut session = Session::new(world(CLUSTER));
    session.run_until_idle(10, |_| false);
    let text = format!("{{apiVersion: kubestep/v1, kind: Test, input: [x], expect: {expect}}}");
    let failures =
        check(&session, &read(&kubestep_api::yaml::from_str(&text).unwrap()).unwrap().expect);
    failures.iter().map(|f| format!("{}: {} ≠ {}", f.about, f.expected, f.found)).collect()
}

#[test]
fn what_happened_is_as_expected() {
    let holding = [
        "{pods: {small: {node: a, pending: false, waiting: false}}}",
        "{pods: {default/*: {count: 2}}, pending: 1}",
        "{pods: {large: {pending: true, rejectedBy: [NodeResourcesFit], message: Insufficient}}}",
        "{pods: {other: {deleted: true}, more-*: {count: 0}}}",
        "{verdicts: [{pod: large, node: a, plugin: NodeResourcesFit, rejects: true, \
          reason: Insufficient cpu}, {pod: default/small, node: a, plugin: NodeName, \
          rejects: false}]}",
    ];
    for expect in holding {
        assert_eq!(failures(expect), [""; 0], "{expect}");
    }
}

#[test]
fn what_happened_otherwise_is_reported() {
    let reported = [
        ("{pods: {small: {node: b}}}", "pod default/small: node: b ≠ a"),
        ("{pods: {large: {node: a}}}", "pod default/large: node: a ≠ none"),
        ("{pods: {small: {pending: true}}}", "pod default/small: pending: true ≠ false"),
        ("{pods: {other: {node: a}}}", "pod other: a pod ≠ no pod of that name"),
        ("{pods: {small: {deleted: true}}}", "pod small: deleted: true ≠ false"),
        ("{pending: 0}", "pods without a node: 0 ≠ 1"),
        (
            "{pods: {large: {rejectedBy: [NodeName]}}}",
            "pod default/large: rejected by: NodeName ≠ NodeResourcesFit",
        ),
        (
            "{verdicts: [{pod: small, node: a, plugin: NodeResourcesFit, rejects: true}]}",
            "NodeResourcesFit of pod small on a: rejects ≠ passes",
        ),
        (
            "{verdicts: [{pod: large, node: z, plugin: NodeResourcesFit, rejects: true}]}",
            "NodeResourcesFit of pod large on z: rejects ≠ there was no such node",
        ),
    ];
    for (expect, failure) in reported {
        assert_eq!(failures(expect), [failure], "{expect}");
    }
}

#[test]
fn a_test_that_cannot_be_meant_so_is_rejected() {
    let head = "apiVersion: kubestep/v1\nkind: Test\ninput: [a]\n";
    let cases = [
        (format!("{head}expect: {{}}"), "nothing is expected"),
        (format!("{head}expect: {{pods: {{a: {{nod: x}}}}}}"), "expect.pods.a"),
        ("{apiVersion: v1, kind: Pod, input: [], expect: {pending: 0}}".into(), "not a Test"),
        (head.to_owned(), "expect"),
    ];
    for (text, part) in cases {
        let error = read(&kubestep_api::yaml::from_str(&text).unwrap()).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_failure_says_why() {
    let mut session = Session::new(world(CLUSTER));
    session.run_until_idle(10, |_| false);
    let expect = read_expect("{pods: {small: {node: z}, large: {node: a}}}").unwrap();
    let why: Vec<String> = check(&session, &expect).into_iter().map(|f| f.why).collect();
    assert_eq!(why[0], "there was no node z");
    assert!(why[1].starts_with("0/1 nodes are available: 1 Insufficient cpu."), "{}", why[1]);
}

#[test]
fn expectations_are_written_as_they_are_read() {
    let text = r#"{"pods":{"default/a":{"node":"n"},"default/b":{"pending":true,"rejectedBy":["NodeName"]}},"pending":1}"#;
    let expect = read_expect(text).unwrap();
    assert_eq!(serde_json::to_string(&expect).unwrap(), text);
    assert!(read_expect("{}").unwrap_err().to_string().contains("nothing is expected"));
    assert!(read_expect("{pods: {a: {nod: x}}}").unwrap_err().to_string().contains("pods.a"));
}
