//! Claims that cannot have a volume, or not on a node where the pod fits.

use serde_json::{Value, json};

use super::categories;
use crate::change::What;
use crate::cluster::{Case, HOSTNAME, ZONE};
use crate::random::Random;

categories! {
    claim_missing, claim_missing_typo, claim_immediate_unbound, claim_class_missing,
    claim_class_typo, claim_no_volume, claim_volume_too_small, claim_access_mode,
    claim_asks_for_too_much, claim_selects_no_volume, claim_volume_of_other_class,
    claim_volume_elsewhere, claim_volume_behind_label, claim_volume_gone, claim_lost,
    volume_local_to_tainted, volume_of_other_zone, volume_of_full_zone, volume_kept_by_profile,
    topologies_not_allowed, capacity_too_small, capacity_none,
}

/// A storage class; it provisions volumes if `provisioner` is given.
fn class(name: &str, provisioner: Option<&str>, immediate: bool) -> Value {
    let mode = if immediate { "Immediate" } else { "WaitForFirstConsumer" };
    json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
        "provisioner": provisioner.unwrap_or("kubernetes.io/no-provisioner"),
        "volumeBindingMode": mode})
}

/// A claim that is not bound.
fn claim(name: &str, class: &str, size: i64) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": class,
            "resources": {"requests": {"storage": format!("{size}Gi")}}},
        "status": {"phase": "Pending"}})
}

fn volume(name: &str, class: &str, size: i64, nodes: Value) -> Value {
    let mut volume = json!({"apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": class,
            "capacity": {"storage": format!("{size}Gi")}, "local": {"path": "/disk"}},
        "status": {"phase": "Available"}});
    if !nodes.is_null() {
        volume["spec"]["nodeAffinity"] = json!({"required": {"nodeSelectorTerms":
            [{"matchExpressions": [nodes]}]}});
    }
    volume
}

/// Binds a claim and a volume to each other.
pub fn bind(claim: &mut Value, volume: &mut Value) {
    let (own, other) = (claim["metadata"]["name"].clone(), volume["metadata"]["name"].clone());
    claim["spec"]["volumeName"] = other;
    claim["metadata"]["annotations"] = json!({"pv.kubernetes.io/bind-completed": "yes"});
    claim["status"] = json!({"phase": "Bound"});
    volume["spec"]["claimRef"] = json!({"kind": "PersistentVolumeClaim", "namespace": "default",
        "name": own, "uid": own});
    volume["status"] = json!({"phase": "Bound"});
}

/// Adds a claim to a pod.
pub fn mount(pod: &mut Value, claim: &str) {
    pod["spec"]["volumes"] =
        json!([{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]);
}

/// Expects a problem of the claim, on all nodes.
fn wrong(case: &mut Case, problem: Value) {
    for at in case.nodes() {
        let name = case.name(at);
        let fields = json!({"claim": "default/data", "problem": problem});
        case.truth.node(&name, "volume", fields);
    }
}

fn claim_missing(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    mount(&mut case.pod, "data");
    case.truth.problems.push("missingObject");
    open_ahead(&mut case, "data");
    case
}

/// PreFilter rejects the pod; the missing object is reported once, as the problem.
fn open_ahead(case: &mut Case, word: &str) {
    case.truth.ahead_open = true;
    case.truth.nodes_open = true;
    case.truth.name(word);
}

fn claim_missing_typo(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    case.add(class("local", None, false));
    let (mut there, mut disk) =
        (claim("data-web", "local", 5), volume("disk", "local", 10, Value::Null));
    bind(&mut there, &mut disk);
    case.add(there);
    case.add(disk);
    mount(&mut case.pod, "data-wbe");
    case.truth.problems.push("missingObject");
    open_ahead(&mut case, "data-wbe");
    case.truth.name("data-web");
    case
}

fn claim_immediate_unbound(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    case.add(class("slow", Some("nfs.example.com"), true));
    case.add(class("fast", Some("disk.example.com"), false));
    case.add(claim("data", "slow", 10));
    mount(&mut case.pod, "data");
    case.truth.problems.push("unboundClaim");
    open_ahead(&mut case, "slow");
    case.truth.name("default/data");
    case
}

fn claim_class_missing(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    case.add(class("fast", Some("disk.example.com"), false));
    case.add(claim("data", "platinum", 10));
    mount(&mut case.pod, "data");
    case.truth.problems.push("missingObject");
    open_ahead(&mut case, "platinum");
    case
}

fn claim_class_typo(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    case.add(class("standard", Some("disk.example.com"), false));
    case.add(claim("data", "standrad", 10));
    mount(&mut case.pod, "data");
    case.truth.problems.push("missingObject");
    open_ahead(&mut case, "standrad");
    case.truth.name("standard");
    case
}

/// The class does not provision volumes, and there is none.
fn claim_no_volume(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    case.add(class("local", None, false));
    case.add(class("fast", Some("disk.example.com"), false));
    case.add(claim("data", "local", 10));
    mount(&mut case.pod, "data");
    wrong(&mut case, json!({"kind": "noVolume", "class": "local", "volumes": 0}));
    case
}

/// Volumes of the class that do not match, each for the same reason.
fn unsuitable(r: &mut Random, change: impl Fn(&mut Value, &mut Value)) -> Case {
    let mut case = Case::new(r);
    case.add(class("local", None, false));
    let mut wanted = claim("data", "local", 10);
    let count = 1 + r.below(3);
    for number in 0..count {
        let mut disk = volume(&format!("disk-{number}"), "local", 20, Value::Null);
        change(&mut wanted, &mut disk);
        case.add(disk);
    }
    case.add(wanted);
    mount(&mut case.pod, "data");
    wrong(&mut case, json!({"kind": "noVolume", "class": "local", "volumes": count}));
    case.truth.name("disk-0");
    case
}

fn claim_volume_too_small(r: &mut Random) -> Case {
    unsuitable(r, |_, volume| volume["spec"]["capacity"]["storage"] = json!("5Gi"))
}

fn claim_access_mode(r: &mut Random) -> Case {
    unsuitable(r, |claim, _| claim["spec"]["accessModes"] = json!(["ReadWriteMany"]))
}

/// Two fields of the claim must change; the volume has one of its two access modes.
fn claim_asks_for_too_much(r: &mut Random) -> Case {
    let mut case = unsuitable(r, |claim, volume| {
        claim["spec"]["accessModes"] = json!(["ReadWriteOnce", "ReadWriteMany"]);
        volume["spec"]["capacity"]["storage"] = json!("5Gi");
    });
    let set = |path: &str, value| What::Set(path.to_owned(), Some(value));
    case.truth.offered.push(set("/spec/accessModes", json!(["ReadWriteOnce"])));
    case.truth.offered.push(set("/spec/resources/requests/storage", json!("5Gi")));
    case
}

fn claim_selects_no_volume(r: &mut Random) -> Case {
    let mut case = unsuitable(r, |claim, volume| {
        claim["spec"]["selector"] = json!({"matchLabels": {"tier": "fast"}});
        volume["metadata"]["labels"] = json!({"tier": "slow"});
    });
    case.truth.offered.push(What::Set("/spec/selector".into(), None));
    case
}

/// The only volume has another class, which the claim could name.
fn claim_volume_of_other_class(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    case.add(class("local", None, false));
    case.add(class("local-nvme", None, false));
    case.add(volume("disk-0", "local-nvme", 20, Value::Null));
    case.add(claim("data", "local", 10));
    mount(&mut case.pod, "data");
    wrong(&mut case, json!({"kind": "noVolume", "class": "local", "volumes": 0}));
    case
}

/// The volume is only accessible from a node that was deleted.
fn claim_volume_elsewhere(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    bound(&mut case, json!({"key": HOSTNAME, "operator": "In", "values": ["old-node"]}));
    wrong(&mut case, json!({"kind": "outOfReach", "volume": "disk"}));
    case
}

/// The volume is only accessible from nodes with a label that none has and that a person may set.
fn claim_volume_behind_label(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    bound(&mut case, json!({"key": "example.com/fabric", "operator": "In", "values": ["blue"]}));
    wrong(&mut case, json!({"kind": "outOfReach", "volume": "disk"}));
    let label = What::Set("/metadata/labels/example.com~1fabric".into(), Some(json!("blue")));
    case.truth.offered.push(label);
    case
}

/// The pod uses a claim that is bound to a volume for these nodes.
fn bound(case: &mut Case, nodes: Value) {
    case.add(class("local", None, false));
    let (mut claim, mut disk) = (claim("data", "local", 10), volume("disk", "local", 10, nodes));
    bind(&mut claim, &mut disk);
    case.add(claim);
    case.add(disk);
    mount(&mut case.pod, "data");
}

fn claim_volume_gone(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    bound(&mut case, Value::Null);
    case.objects.retain(|object| object["kind"] != "PersistentVolume");
    case.truth.nodes_open = true;
    case.truth.ahead_open = true;
    case.truth.name("disk");
    case
}

/// Its volume was deleted, and the volume controller has noticed.
fn claim_lost(r: &mut Random) -> Case {
    let mut case = claim_volume_gone(r);
    let is_claim = |object: &&mut Value| object["kind"] == "PersistentVolumeClaim";
    let claim = case.objects.iter_mut().find(is_claim).unwrap();
    claim["status"]["phase"] = json!("Lost");
    case.truth.named.clear();
    case.truth.name("data");
    case
}

/// The only node with access to the volume is tainted.
fn volume_local_to_tainted(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    let own = case.name(0);
    bound(&mut case, json!({"key": HOSTNAME, "operator": "In", "values": [own]}));
    super::nodes::tainted(&mut case, 0, "dedicated", "payments", "NoSchedule");
    out_of_reach_but(&mut case, 0);
    case
}

/// All nodes but one have no access to the volume.
fn out_of_reach_but(case: &mut Case, one: usize) {
    for at in case.nodes().filter(|at| *at != one) {
        let name = case.name(at);
        let problem = json!({"kind": "outOfReach", "volume": "disk"});
        let fields = json!({"claim": "default/data", "problem": problem});
        case.truth.node(&name, "volume", fields);
    }
}

/// The volume is in a zone without nodes.
fn volume_of_other_zone(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    bound(&mut case, Value::Null);
    let is_volume = |object: &&mut Value| object["kind"] == "PersistentVolume";
    let volume = case.objects.iter_mut().find(is_volume).unwrap();
    volume["metadata"]["labels"] = json!({ZONE: "us-9z"});
    for at in case.nodes() {
        let (name, zone) = (case.name(at), case.rooms[at].zone.clone());
        let fields = json!({"claim": "default/data", "volume": "disk", "label": ZONE,
            "zones": ["us-9z"], "has": zone});
        case.truth.node(&name, "otherZone", fields);
    }
    case
}

/// The zone of the volume has one node, which is full.
fn volume_of_full_zone(r: &mut Random) -> Case {
    let mut case = volume_of_other_zone(r);
    case.truth.nodes.retain(|(name, _)| *name != case.rooms[0].name);
    case.ask("cpu", "800m");
    case.leave_cpu(0, 300, r);
    super::resources::cpu_is_short(&mut case, 0, 800);
    case.rooms[0].zone = "us-9z".into();
    case.label(0, ZONE, "us-9z");
    case
}

/// The profile excludes the only node with access to the volume.
fn volume_kept_by_profile(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    let own = case.name(0);
    bound(&mut case, json!({"key": HOSTNAME, "operator": "In", "values": [own]}));
    let ready = "{key: example.com/ready, operator: In, values: ['yes']}";
    case.config = Some(super::selectors::profile_that_adds(ready));
    case.nodes().skip(1).for_each(|at| case.label(at, "example.com/ready", "yes"));
    super::selectors::unmet(&mut case, 0, "addedAffinity", &[("example.com/ready", None)]);
    out_of_reach_but(&mut case, 0);
    case
}

fn topologies_not_allowed(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    let mut fast = class("fast", Some("disk.example.com"), false);
    fast["allowedTopologies"] =
        json!([{"matchLabelExpressions": [{"key": ZONE, "values": ["us-9z"]}]}]);
    case.add(fast);
    case.add(class("anywhere", Some("disk.example.com"), false));
    case.add(claim("data", "fast", 10));
    mount(&mut case.pod, "data");
    wrong(&mut case, json!({"kind": "topologyNotAllowed", "class": "fast"}));
    case
}

/// A class whose driver reports its free capacity.
fn with_capacity(r: &mut Random, capacities: &[i64]) -> Case {
    let mut case = Case::new(r);
    case.add(class("fast", Some("disk.example.com"), false));
    case.add(json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver",
        "metadata": {"name": "disk.example.com"}, "spec": {"storageCapacity": true}}));
    for (number, size) in capacities.iter().enumerate() {
        case.add(json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity",
            "metadata": {"name": format!("free-{number}"), "namespace": "kube-system"},
            "storageClassName": "fast", "capacity": format!("{size}Gi"),
            "nodeTopology": {"matchLabels": {}}}));
    }
    case.add(claim("data", "fast", 100));
    mount(&mut case.pod, "data");
    wrong(&mut case, json!({"kind": "noSpace", "class": "fast"}));
    case
}

fn capacity_too_small(r: &mut Random) -> Case {
    with_capacity(r, &[20, 50])
}

fn capacity_none(r: &mut Random) -> Case {
    let mut case = with_capacity(r, &[]);
    case.add(class("anywhere", Some("other.example.com"), false));
    case
}
