//! The version of kube-scheduler that decides: named, taken from the input, emulated, or none that
//! exists.

use crate::harness::Call;

/// Two nodes, the better one tainted, and a pod that fits only there. The server was 1.33, whose
/// messages name the taint.
const CAPTURE: &str = r#"{
"apiVersion": "kubestep/v1",
"capturedAt": "2026-01-01T00:00:00Z",
"serverVersion": "v1.33.5-gke.1080000",
"missing": [],
"schedulerConfig": null,
"nodes": [
{"metadata": {"name": "big"}, "spec": {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]}, "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "9"}}},
{"metadata": {"name": "small"}, "status": {"allocatable": {"cpu": "1", "memory": "8Gi", "pods": "9"}}}
],
"pods": [
{"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "4"}}}]}}
]
}
"#;

/// The start of a message that names the taint.
const OLD: &str = "had untolerated taint {gpu: yes}";
/// The same as 1.34 writes it.
const NEW: &str = "had untolerated taint(s)";

fn capture() -> Call {
    Call::new().bytes("c.json", CAPTURE.as_bytes())
}

fn says(name: &str, line: &str) {
    capture().says(&format!("kube-version/{name}"), line);
}

#[test]
fn the_version_is_that_of_the_input_unless_one_is_named() {
    let call = capture();
    for (line, words) in [
        ("run -f c.json", OLD),
        ("run -f c.json --kube-version 1.34", NEW),
        ("run -f c.json --kube-version v1.32.11", OLD),
        ("explain web -f c.json", OLD),
        ("render -f c.json --view filter --size 120x40", OLD),
    ] {
        let said = call.run(line);
        assert!(said.stdout.contains(words), "{line}: {}", said.stdout);
    }
    says("of-the-input", "run -f c.json");
    says("named", "run -f c.json --kube-version 1.36 -o json");
    says("junit", "run -f c.json -o junit");
    says("explain-json", "explain web -f c.json -o yaml");
    says("header", "render -f c.json --size 100x15");
}

#[test]
fn every_version_can_be_named_and_emulated() {
    let pairs = [
        ("1.31", "1.31"),
        ("1.32", "1.32"),
        ("1.33", "1.33"),
        ("1.34", "1.34"),
        ("1.35", "1.35"),
        ("1.36", "1.36"),
        ("1.37", "1.37"),
    ];
    for (version, emulated) in pairs {
        let line = format!("plugins DynamicResources --kube-version {version} -o json");
        says(&format!("plugins-{version}"), &format!("{line} --emulated-version {emulated}"));
    }
    let gates = "config --list-feature-gates --kube-version 1.36";
    says("gates", gates);
    says("gates-emulated", &format!("{gates} --emulated-version kube=1.33"));
    says("run-emulated", "run -f c.json --kube-version 1.35 --emulated-version 1.34 -o yaml");
}

#[test]
fn a_version_outside_is_served_by_the_nearest_and_says_so() {
    says("older", "run -f c.json --kube-version v1.29.4");
    says("newer", "run -f c.json --kube-version 1.40");
    says("unproved", "run -f c.json --kube-version 1.37");
    says("earlier-patch", "run -f c.json --kube-version v1.34.1-eks-1");
    let unknown = CAPTURE.replace("v1.33.5-gke.1080000", "v0.0.0-master+$Format:%H$");
    Call::new()
        .bytes("c.json", unknown.as_bytes())
        .says("kube-version/no-version", "run -f c.json");
}

#[test]
fn what_is_no_version_is_rejected() {
    says("nonsense", "run -f c.json --kube-version latest");
    says("emulated-nonsense", "run -f c.json --emulated-version 1.35.2");
    says("emulated-component", "run -f c.json --emulated-version etcd=3.5");
    says("emulated-range", "run -f c.json --kube-version 1.36 --emulated-version 1.32");
    says("emulated-newer", "run -f c.json --emulated-version 1.34");
    says("no-plugin", "plugins GangScheduling --kube-version 1.34");
    says("no-gate", "run -f c.json --feature-gates OpportunisticBatching=false");
    says(
        "emulated-gate",
        "schedule --emulated-version 1.34 --kube-version 1.36 --write-config-to \
         s.yaml --feature-gates OpportunisticBatching=true",
    );
}

/// Gates are set for a version; under another one those that it has count.
#[test]
fn gates_of_the_input_follow_it_to_another_version() {
    let gates = "\"featureGates\": \"NodeInclusionPolicyInPodTopologySpread=false\",\n\"missing\"";
    let text = CAPTURE.replace("1.33.5-gke.1080000", "1.32.9").replace("\"missing\"", gates);
    let call = Call::new().bytes("c.json", text.as_bytes());
    let said = call.run("run -f c.json");
    assert_eq!((said.code, said.stderr.contains("ignored")), (Some(1), false), "{}", said.stderr);
    call.says("kube-version/gates-left-out", "run -f c.json --kube-version 1.37");
}

#[test]
fn a_bundle_keeps_the_version() {
    let call = capture();
    let bundle = "bundle -f c.json --expect --kube-version 1.34 -o b.jsonl";
    call.says_with("kube-version/bundle", bundle, "b.jsonl");
    for (line, words) in [("run -f b.jsonl", NEW), ("run -f b.jsonl --kube-version 1.33", OLD)] {
        assert!(call.run(line).stdout.contains(words), "{line}");
    }
    call.says("kube-version/bundle-test", "test b.jsonl -o json");
    // Without a version that decides otherwise, the bundle names the default: a later kubestep may
    // have another.
    let plain = CAPTURE.replace("\"serverVersion\": \"v1.33.5-gke.1080000\",\n", "");
    let call = Call::new().bytes("c.json", plain.as_bytes());
    call.run("bundle -f c.json -o b.jsonl");
    assert!(call.written("b.jsonl").contains("\"kubeVersion\":\"1.36\""));
    let call = capture();
    call.run("bundle -f c.json -o b.jsonl");
    assert!(!call.written("b.jsonl").contains("kubeVersion"), "the server's version is enough");
}

#[test]
fn a_test_names_its_version() {
    let test = |version: &str, message: &str| {
        format!(
            "apiVersion: kubestep/v1\nkind: Test\nname: as {version}\nkubeVersion: {version}\n\
             input: [c.json]\nexpect:\n  pods:\n    web: {{pending: true, message: \"{message}\"}}\n"
        )
    };
    let call = capture().file("old.yaml", &test("1.33", OLD)).file("new.yaml", &test("1.34", NEW));
    call.says("kube-version/tests", "test old.yaml new.yaml");
    call.says("kube-version/tests-junit", "test old.yaml new.yaml -o junit");
    call.says("kube-version/tests-of-another", "test old.yaml new.yaml --kube-version 1.36");
    let call = capture().file("t.yaml", &test("next", ""));
    call.says("kube-version/test-nonsense", "test t.yaml");
}

#[test]
fn two_versions_are_compared() {
    let other = CAPTURE.replace("1.33.5-gke.1080000", "1.34.3");
    let call = capture().bytes("d.json", other.as_bytes());
    call.says("kube-version/diff", "diff c.json d.json -o json");
    let of_demo = "diff --demo tour --kube-version 1.31 --edit \"cordon node zz\"";
    assert_ne!(Call::new().run(of_demo).code, Some(0));
}
