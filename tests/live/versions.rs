//! The server's version decides, live, in captures and recordings, and in `schedule`.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use kubestep_api::Kind;
use kubestep_live::backoff::{Backoff, Pace};
use kubestep_live::kinds;
use kubestep_live::link::Link;
use kubestep_live::list::ListScope;
use serde_json::{Value, json};

use crate::consent;
use crate::running::Running;
use crate::standin::StandIn;
use crate::terminal::{Terminal, kubestep};

/// What 1.33 says of the node; from 1.34.2 on, the taint has no name.
const OLD: &str = "untolerated taint {gpu: yes}";

/// A cluster of 1.33 whose only node is tainted.
fn cluster() -> Arc<StandIn> {
    let server = StandIn::start();
    server.misbehave(|faults| faults.version = Some("v1.33.5-gke.1080000"));
    let taints = json!([{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]);
    let status = json!({"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}});
    server.put(Kind::Node, "a", json!({"spec": {"taints": taints}, "status": status}));
    consent::pod(&server, "web");
    server
}

fn printed_by(server: &StandIn, words: &str) -> (String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_kubestep"))
        .args(words.split(' '))
        .env("KUBECONFIG", server.kubeconfig())
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr))
}

fn version(server: &StandIn, words: &str) -> Value {
    let (reported, errors) = printed_by(server, words);
    let report: Value =
        serde_json::from_str(&reported).unwrap_or_else(|_| panic!("{reported}{errors}"));
    report["kubeVersion"].clone()
}

#[test]
fn the_version_of_the_server_decides() {
    let server = cluster();
    let (reported, notices) = printed_by(&server, "run");
    assert!(reported.contains(OLD) && reported.contains("kube-scheduler 1.33"), "{reported}");
    assert!(notices.contains("the version of the cluster (v1.33.5-gke.1080000)"), "{notices}");
    assert_eq!(version(&server, "run -o json"), "1.33");
    assert_eq!(version(&server, "run -o json --kube-version 1.35"), "1.35");
    assert!(!printed_by(&server, "run --kube-version 1.35").0.contains(OLD));
}

/// Some servers hide their version.
#[test]
fn a_server_without_a_version_is_taken_for_the_default() {
    let server = cluster();
    server.misbehave(|faults| faults.version = Some(""));
    assert_eq!(version(&server, "run -o json"), "1.36");
}

#[test]
fn captures_and_recordings_keep_it() {
    let (server, folder) = (cluster(), tempfile::tempdir().unwrap());
    for (words, name) in [("capture", "c.json"), ("record --for 1s", "r.jsonl")] {
        let file = folder.path().join(name);
        let file = file.display();
        let (_, notices) = printed_by(&server, &format!("{words} -o {file}"));
        assert!(Path::new(&file.to_string()).exists(), "{notices}");
        assert_eq!(version(&server, &format!("run -o json -f {file}")), "1.33");
        let other = format!("run -o json -f {file} --kube-version 1.36");
        assert_eq!(version(&server, &other), "1.36");
        printed_by(&server, &format!("{words} -o {file} --kube-version 1.32"));
        assert_eq!(version(&server, &format!("run -o json -f {file}")), "1.32");
    }
    let file = folder.path().join("r.jsonl");
    let words = format!("replay {} -o json", file.display());
    assert_eq!(version(&server, &words), "1.32");
}

/// A gate that only the server's version has is no error.
#[test]
fn a_capture_checks_gates_for_the_servers_version() {
    let (server, folder) = (cluster(), tempfile::tempdir().unwrap());
    server.misbehave(|faults| faults.version = Some("v1.32.4"));
    let file = folder.path().join("c.json");
    let line = |gate: &str| format!("capture -o {} --feature-gates {gate}", file.display());
    let (_, errors) = printed_by(&server, &line("OpportunisticBatching=false"));
    assert!(errors.contains("Kubernetes 1.32 has no feature gate"), "{errors}");
    assert!(!file.exists());
    printed_by(&server, &line("VolumeCapacityPriority=true"));
    assert!(file.exists());
}

#[test]
fn the_header_shows_it() {
    let server = cluster();
    let kubeconfig = server.kubeconfig();
    let line = ["--kubeconfig", kubeconfig.to_str().unwrap()];
    let mut terminal = Terminal::start(kubestep(&line), 120, 40);
    terminal.wait_for("as 1.33");
    terminal.send("q");
}

#[test]
fn schedule_decides_as_the_server() {
    let server = cluster();
    let line = "--dry-run --secure-port 0 --leader-elect=false";
    let mut running = Running::start_on(&server.kubeconfig(), line);
    running.wait_for("as kube-scheduler 1.33\n");
    running.wait_for("decides as kube-scheduler 1.33, because that is the version of the cluster");
    assert_eq!(running.stop(), Some(0));
    let line = format!("{line} --kube-version 1.36 --emulated-version 1.35");
    let mut running = Running::start_on(&server.kubeconfig(), &line);
    running.wait_for("as kube-scheduler 1.36 emulating 1.35\n");
    running.wait_for("1.36 emulating 1.35; the API server is v1.33.5-gke.1080000");
    running.wait_for("Kubernetes does not support kube-scheduler 1.36 with an API server of 1.33");
    assert_eq!(running.stop(), Some(0));
}

/// A kind, the only API version that a server has it in, an object, and a field of the shape that
/// all are converted to.
const OLDER: &[(Kind, &str, &str, &str)] = &[
    (
        Kind::ResourceSlice,
        "v1alpha3",
        r#"{"devices": [{"name": "d", "basic": {"capacity": {"memory": "5Gi"}}}]}"#,
        "/spec/devices/0/capacity/memory/value",
    ),
    (
        Kind::ResourceSlice,
        "v1beta1",
        r#"{"devices": [{"name": "d", "basic": {"capacity": {"memory": {"value": "5Gi"}}}}]}"#,
        "/spec/devices/0/capacity/memory/value",
    ),
    (
        Kind::ResourceClaim,
        "v1beta2",
        r#"{"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}"#,
        "/spec/devices/requests/0/exactly/deviceClassName",
    ),
    (
        Kind::ResourceClaimTemplate,
        "v1beta1",
        r#"{"spec": {"devices": {"requests": [{"name": "r", "deviceClassName": "gpu"}]}}}"#,
        "/spec/spec/devices/requests/0/exactly/deviceClassName",
    ),
    (
        Kind::DeviceTaintRule,
        "v1alpha3",
        r#"{"deviceSelector": {"driver": "d"}, "taint": {"key": "k", "effect": "NoSchedule"}}"#,
        "/spec/deviceSelector/driver",
    ),
    (
        Kind::DeviceTaintRule,
        "v1",
        r#"{"deviceSelector": {"driver": "d"}, "taint": {"key": "k", "effect": "NoSchedule"}}"#,
        "/spec/deviceSelector/driver",
    ),
    (
        Kind::Workload,
        "v1alpha1",
        r#"{"podGroups": [{"name": "g", "policy": {"gang": {"minCount": 3}}}]}"#,
        "/spec/podGroupTemplates/0/schedulingPolicy/gang/minCount",
    ),
    (
        Kind::PodGroup,
        "v1beta1",
        r#"{"workloadRef": {"workloadName": "w", "templateName": "t"}}"#,
        "/spec/podGroupTemplateRef/workload/podGroupTemplateName",
    ),
    (Kind::PodGroup, "v1alpha3", r#"{"disruptionMode": {"all": {}}}"#, "/spec/disruptionMode"),
];

/// Lists of other API versions are looked for in order, and their objects converted.
#[test]
fn a_kind_is_listed_in_the_version_that_the_server_has() {
    let runtime = kubestep_live::runtime::new().unwrap();
    for (kind, version, spec, path) in OLDER {
        let server = StandIn::start();
        server.misbehave(|faults| faults.served = Some(|_| false));
        let spec: Value = serde_json::from_str(spec).unwrap();
        server.put_in(*kind, version, "a", json!({"spec": spec}));
        let place = ListScope { row: kinds::row(*kind).unwrap(), namespace: None };
        let listed = runtime.block_on(async {
            let link = Link::new(server.target()).await.unwrap();
            let mut backoff = Backoff::new(Pace::default(), "test");
            place.list(&link, &mut backoff, 1).await.unwrap()
        });
        assert_eq!((listed.version, listed.unreadable), (*version, Vec::<String>::new()));
        let [object] = listed.objects.as_slice() else { panic!("{kind} {version}") };
        let json = object.to_json().unwrap();
        assert!(
            json.pointer(path).is_some_and(|field| !field.is_null()),
            "{kind} {version}: {json}"
        );
        assert_eq!(object.metadata().name.text(), "a");
    }
}

/// One object that cannot be read does not stop a run.
#[test]
fn a_shape_that_is_not_known_leaves_only_its_object_out() {
    let server = cluster();
    let unknown = json!({"spec": {"disruptionMode": ["later"]}});
    server.put_in(Kind::PodGroup, "v1alpha3", "g", unknown);
    let line = "run --kube-version 1.36 --feature-gates GenericWorkload=true";
    let (reported, notices) = printed_by(&server, line);
    assert!(reported.contains("untolerated taint(s)"), "{reported}{notices}");
    assert!(notices.contains("disruptionMode"), "{notices}");
}
