//! What the scheduler writes before it binds a pod, with a real API server: volumes, resource
//! claims, groups; and extenders that bind.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

use crate::beside::devices;
use crate::control_plane::ControlPlane;
use crate::extender;
use crate::objects::{FAST, create, get, get_pod, node, pending, pod};
use crate::running::{Running, until};

fn is_on(plane: &ControlPlane, pod: &str, node: &str) -> bool {
    get_pod(plane, pod)["spec"]["nodeName"] == node
}

/// A volume on one node, its class, and a claim with delayed binding.
fn storage(node: &str) -> Vec<Value> {
    let expression = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": [node]});
    vec![
        json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
            "metadata": {"name": "local"}, "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        }),
        json!({
            "apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": {"name": "disk", "labels": {"kept": "as-it-is"}},
            "spec": {
                "capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"],
                "storageClassName": "local", "local": {"path": "/disk"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [
                    {"matchExpressions": [expression]},
                ]}},
            },
        }),
        json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": "default"},
            "spec": {
                "storageClassName": "local", "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "5Gi"}},
            },
        }),
    ]
}

#[test]
#[cfg_attr(not(with_api_server), ignore = "needs KUBEBUILDER_ASSETS")]
fn real_a_volume_is_given_to_its_claim_before_the_pod_is_bound() {
    let plane = ControlPlane::start();
    let mut user = pod("user", "1");
    let claim = json!({"claimName": "data"});
    user["spec"]["volumes"] = json!([{"name": "v", "persistentVolumeClaim": claim}]);
    create(&plane, vec![node("node-0", "4"), node("node-1", "4")]);
    create(&plane, storage("node-1"));
    let available = r#"{"status":{"phase":"Available"}}"#;
    plane.kubectl(&format!("patch pv disk --subresource=status --type merge -p {available}"), "");
    create(&plane, vec![user]);
    let scheduler = Running::start(&plane, &format!("{FAST} --v 2"));
    let volume = || get(&plane, "/api/v1/persistentvolumes/disk");
    until("the volume has its claim", || volume()["spec"]["claimRef"]["name"] == "data");
    let written = volume();
    assert_eq!(written["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"], "yes");
    assert_eq!(written["metadata"]["labels"]["kept"], "as-it-is");
    assert_eq!(written["spec"]["local"]["path"], "/disk");
    assert_eq!(get_pod(&plane, "user")["spec"]["nodeName"], Value::Null, "not before it is bound");
    // The test takes the part of the volume controller.
    let patch = r#"{"metadata":{"annotations":{"pv.kubernetes.io/bind-completed":"yes"}},"spec":{"volumeName":"disk"}}"#;
    plane.kubectl(&format!("patch pvc data --type merge -p {patch}"), "");
    until("the pod is bound", || is_on(&plane, "user", "node-1"));
    scheduler.wait_for("bound default/user to node-1");
}

#[test]
#[cfg_attr(not(with_api_server), ignore = "needs KUBEBUILDER_ASSETS")]
fn real_devices_are_allocated_and_reserved() {
    let plane = ControlPlane::start();
    let resource = "resource.k8s.io/v1";
    let requests = json!([{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]);
    create(
        &plane,
        vec![
            node("node-0", "4"),
            node("node-1", "4"),
            json!({"apiVersion": resource, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}),
            json!({
                "apiVersion": resource, "kind": "ResourceSlice", "metadata": {"name": "slice"},
                "spec": {
                    "driver": "gpu.example.com", "nodeName": "node-1",
                    "pool": {"name": "pool", "generation": 1, "resourceSliceCount": 1},
                    "devices": [{"name": "gpu-0"}],
                },
            }),
            json!({
                "apiVersion": resource, "kind": "ResourceClaim",
                "metadata": {"name": "one", "namespace": "default"},
                "spec": {"devices": {"requests": requests}},
            }),
        ],
    );
    let mut user = pod("user", "1");
    user["spec"]["resourceClaims"] = json!([{"name": "gpu", "resourceClaimName": "one"}]);
    create(&plane, vec![user]);
    let _scheduler = Running::start(&plane, FAST);
    until("the pod is bound", || is_on(&plane, "user", "node-1"));
    let claim = get(&plane, &format!("/apis/{resource}/namespaces/default/resourceclaims/one"));
    let finalizers = claim["metadata"]["finalizers"].as_array().unwrap();
    assert_eq!(finalizers, &[json!("resource.kubernetes.io/delete-protection")]);
    let results = claim["status"]["allocation"]["devices"]["results"].as_array().unwrap();
    assert_eq!((&results[0]["device"], &results[0]["pool"]), (&json!("gpu-0"), &json!("pool")));
    let user = get_pod(&plane, "user");
    assert_eq!(claim["status"]["reservedFor"][0]["uid"], user["metadata"]["uid"]);
}

#[test]
#[cfg_attr(not(with_api_server), ignore = "needs KUBEBUILDER_ASSETS")]
fn real_a_gang_is_bound_together_behind_its_gates() {
    let gates = "GenericWorkload=true,GangScheduling=true";
    let options = [
        format!("--feature-gates={gates}"),
        "--runtime-config=scheduling.k8s.io/v1alpha2=true".into(),
    ];
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let plane = ControlPlane::start_with(&options);
    create(
        &plane,
        vec![
            node("node-0", "2"),
            json!({
                "apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup",
                "metadata": {"name": "g", "namespace": "default"},
                "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
            }),
        ],
    );
    let member = |name: &str| {
        let mut pod = pod(name, "1");
        pod["spec"]["schedulingGroup"] = json!({"podGroupName": "g"});
        pod
    };
    let (role, _) = ("system:kube-scheduler", "its role has no groups while they are alpha");
    let line = format!("create clusterrolebinding all --clusterrole=cluster-admin --user={role}");
    plane.kubectl(&line, "");
    create(&plane, vec![member("a"), pod("alone", "100m")]);
    let _scheduler = Running::start(&plane, &format!("{FAST} --feature-gates {gates}"));
    until("another pod is bound", || is_on(&plane, "alone", "node-0"));
    assert_eq!(get_pod(&plane, "a")["spec"]["nodeName"], Value::Null, "one pod is no gang");
    plane.kubectl("delete pod alone --grace-period=0 --force", "");
    create(&plane, vec![member("b")]);
    until("both are bound", || is_on(&plane, "a", "node-0") && is_on(&plane, "b", "node-0"));
    let group = || get(&plane, "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups/g");
    until("the group has its condition", || {
        let group = group();
        let conditions = group["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|it| it["type"] == "PodGroupScheduled" && it["status"] == "True")
    });
}

/// The role that kubestep prints is sufficient for this.
#[test]
#[cfg_attr(not(with_api_server), ignore = "needs KUBEBUILDER_ASSETS")]
fn real_pods_that_share_a_claim_are_bound_with_the_own_role() {
    let gates = "GenericWorkload=true,GangScheduling=true";
    let options = [
        format!("--feature-gates={gates}"),
        "--runtime-config=scheduling.k8s.io/v1alpha2=true".into(),
    ];
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let plane = ControlPlane::start_with(&options);
    let role = std::process::Command::new(env!("CARGO_BIN_EXE_kubestep"))
        .args(["rbac", "--schedule"])
        .output();
    plane.kubectl("create -f -", &String::from_utf8(role.unwrap().stdout).unwrap());
    plane.kubectl("create clusterrolebinding own --clusterrole=kubestep --user=viewer", "");
    create(&plane, vec![node("node-0", "32")]);
    create(&plane, vec![devices::class("gpu"), devices::slice("slice", "node-0", &["a", "b"])]);
    create(&plane, vec![devices::claim("shared", 1), devices::claim("of-gang", 1)]);
    create(
        &plane,
        vec![json!({
            "apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup",
            "metadata": {"name": "g", "namespace": "default"},
            "spec": {"schedulingPolicy": {"gang": {"minCount": 6}}},
        })],
    );
    let user = |name: String, claim: &str, group: Option<&str>| {
        let mut pod = pod(&name, "1");
        pod["spec"]["resourceClaims"] = json!([{"name": "gpu", "resourceClaimName": claim}]);
        if let Some(group) = group {
            pod["spec"]["schedulingGroup"] = json!({"podGroupName": group});
        }
        pod
    };
    let alone = (0..4).map(|at| user(format!("alone-{at}"), "shared", None));
    let gang = (0..6).map(|at| user(format!("member-{at}"), "of-gang", Some("g")));
    create(&plane, alone.chain(gang).collect());
    let line = format!("{FAST} --v 2 --leader-elect=false --feature-gates {gates}");
    let _scheduler = Running::start_on(&plane.kubeconfig("viewer"), &line);
    until("all are bound", || pending(&plane) == 0);
    let written = plane.audited().into_iter().filter(|request| {
        request.resource.starts_with("resourceclaims") && request.verb == "patch"
    });
    let written: Vec<(String, u64)> = written.map(|it| (it.resource, it.code)).collect();
    // A finalizer per claim, and a reservation per pod.
    assert_eq!(written.len(), 12, "{written:?}");
    assert!(written.iter().all(|(_, code)| *code == 200), "{written:?}");
}

#[test]
#[cfg_attr(not(with_api_server), ignore = "needs KUBEBUILDER_ASSETS")]
fn real_an_extender_chooses_and_binds() {
    let plane = ControlPlane::start();
    create(&plane, vec![node("node-0", "4"), node("node-1", "4"), pod("user", "1")]);
    let port = extender::start(&plane, |verb, _| {
        (verb == "/filter").then(|| json!({"nodenames": ["node-1"]}))
    });
    let config = tempfile::NamedTempFile::with_suffix(".yaml").unwrap();
    let text = format!(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
         extenders:\n- urlPrefix: http://127.0.0.1:{port}\n  filterVerb: filter\n  \
         bindVerb: bind\n  nodeCacheCapable: true\n  weight: 1\n"
    );
    std::fs::write(config.path(), text).unwrap();
    let line = format!("{FAST} --v 2 --config {}", config.path().display());
    let scheduler = Running::start(&plane, &line);
    until("the pod is bound", || is_on(&plane, "user", "node-1"));
    scheduler.wait_for("bound default/user to node-1");
    let binders = plane.audited().into_iter().filter(|it| it.resource == "pods/binding");
    let binders: Vec<String> = binders.map(|it| it.agent).collect();
    assert!(binders.len() == 1 && binders[0].starts_with("kubectl/"), "{binders:?}");
}

#[test]
#[cfg_attr(not(with_api_server), ignore = "needs KUBEBUILDER_ASSETS")]
fn real_health_and_metrics_are_served_while_it_schedules() {
    let plane = ControlPlane::start();
    create(&plane, vec![node("node-0", "4"), pod("small", "1"), pod("large", "64")]);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let _scheduler = Running::start(&plane, &format!("{FAST} --http-port {port}"));
    until("the pod is bound", || is_on(&plane, "small", "node-0"));
    let ask = |path: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    for path in ["/healthz", "/livez", "/readyz"] {
        assert!(ask(path).ends_with("ok"), "{path}: {}", ask(path));
    }
    let bound =
        "scheduler_schedule_attempts_total{profile=\"default-scheduler\",result=\"scheduled\"} 1";
    let rejected = "scheduler_pending_pods{queue=\"unschedulable\"} 1";
    let master = "leader_election_master_status{name=\"kube-scheduler\"} 1";
    for line in [bound, rejected, master] {
        until(line, || ask("/metrics").lines().any(|found| found == line));
    }
}
