//! Volumes that other pods use, and nodes whose volume limit is reached.

use serde_json::{Value, json};

use super::categories;
use super::volumes::{bind, mount};
use crate::cluster::{Case, key_of};
use crate::random::Random;

categories! {
    claim_for_one_pod, disk_of_gce, disk_of_rbd, disk_of_iscsi, limit_of_driver,
    limit_of_driver_two, driver_missing,
}

/// A claim that only one pod may use, and a pod that uses it.
fn claim_for_one_pod(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    let (mut claim, mut disk) = csi("data", "disk", "ReadWriteOncePod");
    bind(&mut claim, &mut disk);
    case.add(claim);
    case.add(disk);
    let on = r.below(case.rooms.len());
    let mut report = case.running(on, 50, 32);
    mount(&mut report, "data");
    let holder = key_of(&report);
    case.add(report);
    mount(&mut case.pod, "data");
    for at in case.nodes() {
        let name = case.name(at);
        let fields = json!({"claim": "default/data", "by": holder});
        case.truth.node(&name, "volumeTaken", fields);
    }
    case
}

/// A claim and a volume of a driver.
fn csi(claim: &str, volume: &str, mode: &str) -> (Value, Value) {
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": claim, "namespace": "default", "uid": claim},
        "spec": {"accessModes": [mode], "storageClassName": "",
            "resources": {"requests": {"storage": "5Gi"}}}});
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": volume},
        "spec": {"accessModes": [mode], "storageClassName": "", "capacity": {"storage": "5Gi"},
            "csi": {"driver": "disk.example.com", "volumeHandle": volume}}});
    (claim, volume)
}

/// Each node runs a pod with the same disk.
fn same_disk(r: &mut Random, disk: Value) -> Case {
    let mut case = Case::new(r);
    let mut volume = disk;
    volume["name"] = json!("disk");
    case.pod["spec"]["volumes"] = json!([volume]);
    for at in case.nodes() {
        let mut pod = case.running(at, 50, 32);
        pod["spec"]["volumes"] = json!([volume]);
        let (name, holder) = (case.name(at), key_of(&pod));
        case.add(pod);
        case.truth.node(&name, "volumeTaken", json!({"claim": null, "by": holder}));
    }
    case
}

fn disk_of_gce(r: &mut Random) -> Case {
    same_disk(r, json!({"gcePersistentDisk": {"pdName": "shared", "fsType": "ext4"}}))
}

fn disk_of_rbd(r: &mut Random) -> Case {
    same_disk(r, json!({"rbd": {"monitors": ["10.0.0.1"], "pool": "rbd", "image": "shared"}}))
}

fn disk_of_iscsi(r: &mut Random) -> Case {
    let disk = json!({"targetPortal": "10.0.0.1:3260", "iqn": "iqn.2026-01.com.example:shared",
        "lun": 0});
    same_disk(r, json!({"iscsi": disk}))
}

fn csi_node(name: &str, limit: i64) -> Value {
    json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": name},
        "spec": {"drivers": [{"name": "disk.example.com", "nodeID": name,
            "allocatable": {"count": limit}}]}})
}

fn add_driver(case: &mut Case) {
    case.add(json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver",
        "metadata": {"name": "disk.example.com"}, "spec": {}}));
}

/// Adds a bound claim and returns its name.
fn bound(case: &mut Case) -> String {
    let number = case.number();
    let name = format!("claim-{number}");
    let (mut claim, mut disk) = csi(&name, &format!("disk-{number}"), "ReadWriteOnce");
    bind(&mut claim, &mut disk);
    case.add(claim);
    case.add(disk);
    name
}

/// Every node has reached its volume limit for the driver.
fn at_limit(r: &mut Random, own: i64) -> Case {
    let mut case = Case::new(r);
    add_driver(&mut case);
    let volumes: Vec<Value> = (0..own)
        .map(|at| {
            let claim = json!({"claimName": bound(&mut case)});
            json!({"name": format!("data-{at}"), "persistentVolumeClaim": claim})
        })
        .collect();
    case.pod["spec"]["volumes"] = json!(volumes);
    for at in case.nodes() {
        let limit = own + r.below(2) as i64;
        let name = case.name(at);
        case.add(csi_node(&name, limit));
        for _ in 0..limit {
            let claim = bound(&mut case);
            let mut pod = case.running(at, 20, 16);
            mount(&mut pod, &claim);
            case.add(pod);
        }
        let count = json!({"limit": limit, "attached": limit, "new": own});
        let fields = json!({"driver": "disk.example.com", "count": count});
        case.truth.node(&name, "volumeLimit", fields);
    }
    case
}

fn limit_of_driver(r: &mut Random) -> Case {
    at_limit(r, 1)
}

fn limit_of_driver_two(r: &mut Random) -> Case {
    at_limit(r, 2)
}

/// The volume's driver is on no node; the limit does not matter.
fn driver_missing(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    case.gates = "VolumeLimitScaling=true";
    case.add(json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver",
        "metadata": {"name": "disk.example.com"},
        "spec": {"preventPodSchedulingIfMissing": true}}));
    let claim = bound(&mut case);
    mount(&mut case.pod, &claim);
    for at in case.nodes() {
        let name = case.name(at);
        case.add(json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode",
            "metadata": {"name": name}, "spec": {"drivers": []}}));
        let fields = json!({"driver": "disk.example.com", "count": null});
        case.truth.node(&name, "volumeLimit", fields);
    }
    case
}
