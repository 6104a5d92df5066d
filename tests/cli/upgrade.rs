//! `kubestep upgrade`, and `kubestep diff` between two versions.

use serde_json::Value;

use crate::harness::Call;

/// A gate that 1.36 locks, and a plugin's argument that it refuses.
const OLD_CONFIG: &str = "\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: DynamicResources
    args: {filterTimeout: -1s}
";

#[test]
fn the_help() {
    Call::new().says("help-upgrade", "upgrade --help");
}

#[test]
fn every_difference_has_its_cause() {
    Call::new().says("upgrade/text", "upgrade --demo upgrade --from 1.33");
    Call::new().says("upgrade/one-version", "upgrade --demo upgrade --from 1.35 --to 1.36");
    Call::new().says("upgrade/back", "upgrade --demo upgrade --kube-version 1.36 --to 1.33");
    Call::new().says("upgrade/nothing", "upgrade --demo cordoned --from 1.35");
    let few = "--max-cycles 9 --max-runs 4";
    Call::new().says("upgrade/few-runs", &format!("upgrade --demo upgrade --from 1.33 {few}"));
}

/// What the limit of cycles leaves open is not called the same.
#[test]
fn an_upgrade_whose_runs_are_ended_is_incomplete() {
    for format in ["text", "json", "junit"] {
        let line = format!("upgrade --demo upgrade --from 1.35 --max-cycles 1 -o {format}");
        Call::new().says(&format!("upgrade/cut-{format}"), &line);
    }
}

#[test]
fn programs_get_json_yaml_and_junit() {
    let line = "upgrade --demo upgrade --from 1.33";
    Call::new().says("upgrade/json", &format!("{line} -o json"));
    Call::new().says("upgrade/junit", &format!("{line} -o junit"));
    let yaml = Call::new().run(&format!("{line} -o yaml"));
    let yaml: Value = kubestep_api::yaml::from_str(&yaml.stdout).unwrap();
    let json = Call::new().run(&format!("{line} -o json"));
    assert_eq!(yaml, serde_json::from_str::<Value>(&json.stdout).unwrap());
    assert_eq!(json.code, Some(3));
}

#[test]
fn what_the_newer_version_refuses_is_named() {
    let gates = "--feature-gates VolumeCapacityPriority=true,SidecarContainers=false";
    Call::new().says("upgrade/gates", &format!("upgrade --demo cordoned --from 1.32 {gates}"));
    let call = Call::new().file("scheduler.yaml", OLD_CONFIG);
    let line = "upgrade --demo cordoned --from 1.33 --config scheduler.yaml";
    call.says("upgrade/configuration", line);
    call.says("upgrade/configuration-json", &format!("{line} -o json"));
    call.says("upgrade/configuration-junit", &format!("{line} -o junit"));
}

#[test]
fn what_is_no_upgrade_is_rejected() {
    Call::new().says("upgrade/same", "upgrade --demo cordoned --from 1.36");
    Call::new().says("upgrade/no-version", "upgrade --demo cordoned --to newest");
    Call::new().says("upgrade/both", "upgrade --demo cordoned --from 1.33 --kube-version 1.34");
}

#[test]
fn two_versions_are_compared() {
    let line = "diff --demo upgrade --kube-version 1.35 --kube-version-b 1.36";
    Call::new().says("diff/versions", line);
}

/// A claim as 1.32 has it; 1.34 serves it in newer versions only.
const OLD_CLAIM: &str = "\
apiVersion: resource.k8s.io/v1alpha3
kind: ResourceClaim
metadata: {name: gpu, namespace: default}
spec: {devices: {requests: [{name: one, deviceClassName: gpu}]}}
---
apiVersion: v1
kind: Node
metadata: {name: a}
status: {allocatable: {cpu: 4, memory: 8Gi, pods: 9}}
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: default}
spec: {containers: [{name: c, image: i}]}
";

#[test]
fn api_versions_that_are_no_longer_served_are_named() {
    let call = Call::new().file("claim.yaml", OLD_CLAIM);
    call.says("upgrade/api-version", "upgrade -f claim.yaml --from 1.32");
    let json = call.run("upgrade -f claim.yaml --from 1.32 --to 1.33 -o json");
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["rejected"], serde_json::json!([]));
}

#[test]
fn api_versions_of_json_and_of_large_files_count_too() {
    let claim = r#"{"metadata": {"name": "c", "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "r", "deviceClassName": "gpu"}]}},
        "kind": "ResourceClaim", "apiVersion": "resource.k8s.io/v1alpha3"}"#;
    // Beyond 4 MiB, JSON is read as a stream.
    let filler =
        format!(r#"{{"kind": "ConfigMap", "data": {{"text": "{}"}}}}"#, "x".repeat(1 << 20));
    let items = [&[claim][..], &[&*filler; 5]].concat().join(",\n");
    let large = format!(r#"{{"apiVersion": "v1", "kind": "List", "items": [{items}]}}"#);
    for text in [claim, &large] {
        let call = Call::new().file("claim.json", text);
        let json = call.run("upgrade -f claim.json --from 1.32 --to 1.36 -o json");
        let json: Value = serde_json::from_str(&json.stdout).unwrap();
        let subjects = json["rejected"][0]["subject"].as_str();
        assert_eq!(subjects, Some("resource.k8s.io/v1alpha3 ResourceClaim"), "{json}");
    }
}

#[test]
fn every_version_can_be_compared() {
    for version in ["1.31", "1.32", "1.33", "1.34", "1.35", "1.37"] {
        let line = format!("diff --demo cordoned --kube-version-b {version}");
        Call::new().says(&format!("diff/version-{version}"), &line);
        let line = format!("upgrade --demo cordoned --from 1.36 --to {version}");
        Call::new().says(&format!("upgrade/to-{version}"), &line);
    }
}
