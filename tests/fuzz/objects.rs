//! Random API objects. Names and values come from small sets, so that selectors match labels,
//! tolerations match taints, and resources run out.

use serde_json::{Value, json};

use crate::random::Random;

pub const ZONE: &str = "topology.kubernetes.io/zone";
const HOST: &str = "kubernetes.io/hostname";
const APPS: &[&str] = &["web", "db", "cache", "batch"];
const NAMESPACES: &[&str] = &["default", "shop", "lab"];
const DRIVER: &str = "disk.example.com";
const DEVICES: &str = "gpu.example.com";

/// An app name that many pods share.
pub fn app(r: &mut Random) -> Value {
    json!(r.pick(APPS))
}

pub fn zone(r: &mut Random) -> Value {
    json!(r.pick(&["east", "west", "north"]))
}

/// One taint of the key `dedicated`, so that tolerations often match.
pub fn taints(r: &mut Random) -> Value {
    let effect = r.pick(&["NoSchedule", "PreferNoSchedule", "NoExecute"]);
    json!([{"key": "dedicated", "value": r.pick(&["x", "y"]), "effect": effect}])
}

/// The allocatable resources of a node.
pub fn allocatable(r: &mut Random) -> Value {
    let mut offered = json!({
        "cpu": (2 + r.below(7)).to_string(), "memory": format!("{}Gi", 2 + r.below(14)),
        "pods": (4 + r.below(16)).to_string(), "ephemeral-storage": "20Gi",
    });
    if r.chance(25) {
        offered["example.com/fpga"] = json!((1 + r.below(4)).to_string());
    }
    offered
}

/// Images on a node.
pub fn images(r: &mut Random) -> Value {
    let size = 50_000_000 * (1 + r.below(9));
    json!([{"names": [image(r)], "sizeBytes": size}])
}

fn image(r: &mut Random) -> String {
    format!("registry.example/app:{}", r.below(3))
}

pub fn node(r: &mut Random, name: &str) -> Value {
    let mut labels = json!({HOST: name, "disk": r.pick(&["ssd", "hdd"])});
    labels["cores"] = json!(r.below(9).to_string());
    if r.chance(90) {
        labels[ZONE] = zone(r);
    }
    let mut node = json!({
        "kind": "Node", "metadata": {"name": name, "uid": name, "labels": labels}, "spec": {},
        "status": {"allocatable": allocatable(r)},
    });
    if r.chance(20) {
        node["spec"]["taints"] = taints(r);
    }
    if r.chance(5) {
        node["spec"]["unschedulable"] = json!(true);
    }
    if r.chance(50) {
        node["status"]["images"] = images(r);
    }
    node
}

/// The CSINode and the devices of a node.
pub fn beside_node(r: &mut Random, name: &str) -> Vec<Value> {
    let mut objects = Vec::new();
    if r.chance(60) {
        let count = 1 + r.below(3);
        let driver = json!({"name": DRIVER, "nodeID": name, "allocatable": {"count": count}});
        let metadata = json!({"name": name, "uid": format!("csi-{name}")});
        let spec = json!({"drivers": [driver]});
        objects.push(json!({"kind": "CSINode", "metadata": metadata, "spec": spec}));
    }
    if r.chance(25) {
        let devices: Vec<Value> =
            (0..=r.below(3)).map(|i| json!({"name": format!("device-{i}")})).collect();
        let pool = json!({"name": name, "generation": 1, "resourceSliceCount": 1});
        let spec = json!({"driver": DEVICES, "nodeName": name, "pool": pool, "devices": devices});
        let name = format!("slice-{name}");
        let metadata = json!({"name": name, "uid": name});
        objects.push(json!({"kind": "ResourceSlice", "metadata": metadata, "spec": spec}));
    }
    objects
}

/// Objects that do not depend on nodes and pods.
pub fn unrelated(r: &mut Random) -> Vec<Value> {
    let mut objects: Vec<Value> = NAMESPACES.iter().map(|name| namespace(r, name)).collect();
    for (i, name) in NAMESPACES.iter().enumerate() {
        let of = |kind: &str| json!({"name": kind, "namespace": name, "uid": format!("{kind}{i}")});
        let labels = json!({"app": app(r)});
        let spec = json!({"selector": labels});
        objects.push(json!({"kind": "Service", "metadata": of("service"), "spec": spec}));
        let selector = json!({"matchLabels": {"app": app(r)}});
        let spec = json!({"selector": selector, "minAvailable": 1});
        let status = json!({"disruptionsAllowed": r.below(3)});
        let kind = "PodDisruptionBudget";
        let metadata = of(kind);
        objects.push(json!({"kind": kind, "metadata": metadata, "spec": spec, "status": status}));
    }
    objects.push(json!({
        "kind": "StorageClass", "metadata": {"name": "late", "uid": "late"},
        "provisioner": DRIVER, "volumeBindingMode": "WaitForFirstConsumer",
    }));
    let selector = json!({"cel": {"expression": format!("device.driver == {DEVICES:?}")}});
    objects.push(json!({
        "kind": "DeviceClass", "metadata": {"name": "gpu", "uid": "gpu"},
        "spec": {"selectors": [selector]},
    }));
    objects
}

fn namespace(r: &mut Random, name: &str) -> Value {
    let labels = json!({"team": r.pick(&["a", "b"])});
    json!({"kind": "Namespace", "metadata": {"name": name, "uid": name, "labels": labels}})
}

/// A pod, after the claims it refers to. Bound if a node is given.
pub fn pod(r: &mut Random, name: &str, node: Option<&str>) -> Vec<Value> {
    let namespace = r.pick(NAMESPACES);
    let mut container =
        json!({"name": "c", "image": image(r), "resources": {"requests": requests(r)}});
    if r.chance(12) {
        let port = 8000 + r.below(3);
        container["ports"] = json!([{"containerPort": port, "hostPort": port}]);
    }
    let labels = json!({"app": app(r), "tier": r.pick(&["front", "back"])});
    let created = format!("2025-12-31T23:{:02}:00Z", r.below(60));
    let mut pod = json!({
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": name, "labels": labels,
            "creationTimestamp": created},
        "spec": {"containers": [container], "priority": 10 * r.below(4)},
        "status": {},
    });
    if r.chance(25) {
        pod["metadata"]["labels"]["held"] = json!("yes");
    }
    let mut objects = wishes(r, &mut pod, name, namespace);
    match node {
        Some(node) => {
            pod["spec"]["nodeName"] = json!(node);
            pod["status"] = json!({"phase": "Running", "startTime": created});
        }
        None => queueing(r, &mut pod),
    }
    objects.push(pod);
    objects
}

/// A pod that nothing beyond its node concerns: one of low priority on a node, started, to start or
/// not; or one that preempts such pods, of which many are alike.
pub fn plain_pod(r: &mut Random, name: &str, node: Option<&str>) -> Value {
    let cpu = if node.is_some() { 5 * (1 + r.below(3)) } else { 12 + 10 * r.below(2) };
    let resources = json!({"requests": {"cpu": format!("{cpu}00m")}});
    let metadata = json!({"name": name, "namespace": "default", "uid": name,
        "creationTimestamp": "2025-12-31T23:00:00Z"});
    let priority = if node.is_some() { 10 * r.below(2) } else { 30 };
    let spec = json!({"containers": [{"name": "c", "resources": resources}], "priority": priority});
    let mut pod = json!({"kind": "Pod", "metadata": metadata, "spec": spec, "status": {}});
    if node.is_none() && r.chance(20) {
        pod["status"]["nominatedNodeName"] = json!(format!("n{}", r.below(4)));
    }
    if let Some(node) = node {
        let started = ["2025-12-31T23:10:00Z", "2025-12-31T23:20:00Z", "2026-01-01T00:00:10Z"];
        pod["spec"]["nodeName"] = json!(node);
        pod["status"]["phase"] = json!("Running");
        if r.chance(80) {
            pod["status"]["startTime"] = json!(r.pick(&started));
        }
    }
    pod
}

/// The requests of a container.
pub fn requests(r: &mut Random) -> Value {
    let mut asked = json!({});
    if r.chance(85) {
        asked["cpu"] = json!(format!("{}m", 100 * (1 + r.below(25))));
        asked["memory"] = json!(format!("{}Mi", 128 * (1 + r.below(20))));
    }
    if r.chance(8) {
        asked["example.com/fpga"] = json!("1");
    }
    asked
}

/// Fields that only matter to a pending pod.
fn queueing(r: &mut Random, pod: &mut Value) {
    if r.chance(6) {
        pod["spec"]["schedulingGates"] = json!([{"name": "example.com/wait"}]);
    }
    if r.chance(10) {
        pod["spec"]["preemptionPolicy"] = json!("Never");
    }
    if r.chance(6) {
        pod["status"]["nominatedNodeName"] = json!(format!("n{}", r.below(6)));
    }
}

/// Node and pod affinity, spread and claims of a pod; returns the claims.
fn wishes(r: &mut Random, pod: &mut Value, name: &str, namespace: &str) -> Vec<Value> {
    let spec = &mut pod["spec"];
    if r.chance(40) {
        let value = r.pick(&["x", "y"]);
        spec["tolerations"] = json!([{"key": "dedicated", "operator": "Equal", "value": value}]);
    }
    if r.chance(10) {
        spec["nodeSelector"] = json!({"disk": r.pick(&["ssd", "hdd", "nvme"])});
    }
    if r.chance(20) {
        spec["affinity"]["nodeAffinity"] = node_affinity(r);
    }
    if r.chance(25) {
        let field = r.pick(&["podAffinity", "podAntiAffinity"]);
        spec["affinity"][field] = pod_affinity(r);
    }
    if r.chance(20) {
        spec["topologySpreadConstraints"] = spread(r);
    }
    match r.below(12) {
        0 => vec![volume_claim(spec, name, namespace)],
        1 => vec![device_claim(spec, name, namespace)],
        2 => {
            let disk = json!({"pdName": format!("disk-{}", r.below(2))});
            spec["volumes"] = json!([{"name": "v", "gcePersistentDisk": disk}]);
            Vec::new()
        }
        _ => Vec::new(),
    }
}

fn node_affinity(r: &mut Random) -> Value {
    let term = match r.below(3) {
        0 => json!({"key": ZONE, "operator": "In", "values": [zone(r), zone(r)]}),
        1 => json!({"key": "cores", "operator": "Gt", "values": [r.below(6).to_string()]}),
        _ => json!({"key": "disk", "operator": "NotIn", "values": ["hdd"]}),
    };
    let term = json!({"matchExpressions": [term]});
    match r.chance(50) {
        true => json!({"requiredDuringSchedulingIgnoredDuringExecution":
            {"nodeSelectorTerms": [term]}}),
        false => json!({"preferredDuringSchedulingIgnoredDuringExecution":
            [{"weight": 1 + r.below(100), "preference": term}]}),
    }
}

fn pod_affinity(r: &mut Random) -> Value {
    let selector = json!({"matchLabels": {"app": app(r)}});
    let mut term = json!({"labelSelector": selector, "topologyKey": r.pick(&[ZONE, HOST])});
    match r.below(4) {
        0 => term["namespaceSelector"] = json!({"matchLabels": {"team": r.pick(&["a", "b"])}}),
        1 => term["namespaces"] = json!(NAMESPACES),
        _ => {}
    }
    match r.chance(50) {
        true => json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]}),
        false => json!({"preferredDuringSchedulingIgnoredDuringExecution":
            [{"weight": 1 + r.below(100), "podAffinityTerm": term}]}),
    }
}

fn spread(r: &mut Random) -> Value {
    let mut one = |key: &str| {
        json!({
            "maxSkew": 1 + r.below(3), "topologyKey": key,
            "whenUnsatisfiable": r.pick(&["DoNotSchedule", "ScheduleAnyway"]),
            "labelSelector": {"matchLabels": {"app": app(r)}},
            "nodeTaintsPolicy": r.pick(&["Honor", "Ignore"]),
        })
    };
    json!([one(ZONE), one(HOST)])
}

/// A claim for a volume with delayed binding.
fn volume_claim(spec: &mut Value, pod: &str, namespace: &str) -> Value {
    let name = format!("claim-{pod}");
    spec["volumes"] = json!([{"name": "v", "persistentVolumeClaim": {"claimName": name}}]);
    json!({
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace, "uid": name},
        "spec": {"storageClassName": "late", "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}},
        "status": {"phase": "Pending"},
    })
}

/// A claim for one device.
fn device_claim(spec: &mut Value, pod: &str, namespace: &str) -> Value {
    let name = format!("devices-{pod}");
    spec["resourceClaims"] = json!([{"name": "d", "resourceClaimName": name}]);
    spec["containers"][0]["resources"]["claims"] = json!([{"name": "d"}]);
    let exactly = json!({"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1});
    json!({
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": namespace, "uid": name},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
    })
}
