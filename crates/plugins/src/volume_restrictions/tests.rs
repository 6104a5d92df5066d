//! Tests of VolumeRestrictions on small clusters.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{VolumeConflict, build, reasons};
use kubestep_api::Object;
use kubestep_config::ProfileArgs;
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::events::QueueingHint;
use kubestep_framework::plugin::Plugin;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::status::Code;
use kubestep_framework::testing::{Cluster, decoded, info_of, plugin};

const DISK: &str = "node(s) had no available disk";
const IN_USE: &str = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access \
                      mode already in-use by another pod";

fn default_plugin() -> Arc<dyn Plugin> {
    plugin(build, &ProfileArgs::default())
}

fn pod_json(name: &str, node: &str, volumes: Value) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "d", "uid": name},
        "spec": {"nodeName": node, "volumes": volumes},
    })
}

fn nodes() -> Vec<Value> {
    ["n1", "n2"].map(|name| json!({"metadata": {"name": name}})).to_vec()
}

fn claim(name: &str, mode: &str) -> Object {
    Object::PersistentVolumeClaim(Arc::new(decoded(json!({
        "metadata": {"name": name, "namespace": "d"}, "spec": {"accessModes": [mode]},
    }))))
}

/// Filter's messages for a pod with the volume `new`, with a pod on `n1` that has `present`.
fn beside(present: Value, new: Value) -> Vec<String> {
    let cluster = Cluster::of(nodes(), vec![pod_json("there", "n1", json!([present]))]);
    cluster.rejections(&default_plugin(), &info_of(pod_json("new", "", json!([new]))))
}

#[test]
fn disks_go_to_one_pod_unless_all_only_read() {
    let gce = |name: &str, read_only: bool| json!({"gcePersistentDisk": {"pdName": name, "readOnly": read_only}});
    assert_eq!(beside(gce("a", false), gce("a", true)), [DISK, ""]);
    assert_eq!(beside(gce("a", true), gce("a", true)), ["", ""]);
    assert_eq!(beside(gce("a", false), gce("b", false)), ["", ""]);
    let iscsi = |iqn: &str, read_only: bool| json!({"iscsi": {"iqn": iqn, "readOnly": read_only}});
    assert_eq!(beside(iscsi("a", false), iscsi("a", false)), [DISK, ""]);
    assert_eq!(beside(iscsi("a", true), iscsi("a", true)), ["", ""]);
    let ebs = json!({"awsElasticBlockStore": {"volumeID": "a", "readOnly": true}});
    assert_eq!(beside(ebs.clone(), ebs.clone()), [DISK, ""]);
    assert_eq!(beside(ebs, gce("a", false)), ["", ""]);
}

#[test]
fn rbd_images_are_the_same_with_a_common_monitor() {
    let rbd = |monitors: &[&str], pool: &str| json!({"rbd": {"monitors": monitors, "pool": pool, "image": "i"}});
    assert_eq!(beside(rbd(&["a", "b"], "p"), rbd(&["b", "c"], "p")), [DISK, ""]);
    assert_eq!(beside(rbd(&["a"], "p"), rbd(&["b"], "p")), ["", ""]);
    assert_eq!(beside(rbd(&["a"], "p"), rbd(&["a"], "q")), ["", ""]);
}

#[test]
fn a_claim_of_one_pod_is_taken_on_every_node() {
    let uses = json!([{"persistentVolumeClaim": {"claimName": "c"}}]);
    let there = pod_json("there", "n1", uses.clone());
    let mut cluster = Cluster::of(nodes(), vec![there.clone()]);
    let (plugin, new) = (default_plugin(), info_of(pod_json("new", "", uses)));
    let missing = cluster.filter(&plugin, &new).unwrap_err();
    assert_eq!(missing.code(), Code::UnschedulableAndUnresolvable);
    assert_eq!(missing.message(), "persistentvolumeclaim \"c\" not found");
    cluster.objects.insert(claim("c", "ReadWriteOnce"));
    assert!(cluster.filter(&plugin, &new).unwrap_err().is_skip());
    cluster.objects.insert(claim("c", "ReadWriteOncePod"));
    assert_eq!(cluster.rejections(&plugin, &new), [IN_USE, IN_USE]);

    let (cx, mut state) = (cluster.cx(&new), CycleState::default());
    assert!(plugin.pre_filter(&cx, &mut state).status.is_success());
    let n1 = cluster.snapshot.by_name("n1".into()).unwrap();
    let mut without = state.clone();
    assert!(plugin.remove_pod(&cx, &mut without, &info_of(there.clone()), n1).is_success());
    assert!(plugin.filter(&cx, &without, n1).is_success());
    assert!(plugin.add_pod(&cx, &mut without, &info_of(there), n1).is_success());
    assert_eq!(plugin.filter(&cx, &without, n1).message(), IN_USE);
    let never_ran = plugin.filter(&cx, &CycleState::default(), n1);
    assert_eq!(never_ran.message(), "cannot read \"PreFilterVolumeRestrictions\" from cycleState");
}

#[test]
fn the_pod_that_has_the_claim_is_named_before_one_with_a_claim_of_that_name() {
    let uses = json!([{"persistentVolumeClaim": {"claimName": "c"}}]);
    let mut namesake = pod_json("namesake", "n1", uses.clone());
    namesake["metadata"]["namespace"] = "other".into();
    let new = info_of(pod_json("new", "", uses.clone()));
    let holders = |pods: Vec<Value>| {
        let mut cluster = Cluster::of(nodes(), pods);
        cluster.objects.insert(claim("c", "ReadWriteOncePod"));
        let (cx, mut state) = (cluster.cx(&new), CycleState::default());
        assert!(default_plugin().pre_filter(&cx, &mut state).status.is_success());
        let n1 = cluster.snapshot.by_name("n1".into()).unwrap();
        reasons(&cx, &state, n1)
    };
    let there = pod_json("there", "n2", uses);
    let named = |name: &str| NamespacedName::new("d".into(), name.into());
    let expected = VolumeConflict::Claim { claim: named("c"), holder: named("there") };
    assert_eq!(holders(vec![namesake, there]), [expected]);
}

#[test]
fn hints() {
    let (cluster, plugin) = (Cluster::default(), default_plugin());
    let volumes = json!([
        {"persistentVolumeClaim": {"claimName": "c"}}, {"gcePersistentDisk": {"pdName": "a"}},
    ]);
    let new = info_of(pod_json("new", "", volumes));
    let deleted = |volume: Value, namespace: &str| {
        let mut json = pod_json("gone", "n1", json!([volume]));
        json["metadata"]["namespace"] = json!(namespace);
        cluster.hint(&plugin, &new, Some(Object::Pod(info_of(json).pod.clone())), None)
    };
    let disk = json!({"gcePersistentDisk": {"pdName": "a"}});
    assert_eq!(deleted(disk.clone(), "d"), QueueingHint::Queue);
    assert_eq!(deleted(disk, "other"), QueueingHint::Skip);
    assert_eq!(
        deleted(json!({"persistentVolumeClaim": {"claimName": "c"}}), "d"),
        QueueingHint::Queue
    );
    assert_eq!(
        deleted(json!({"persistentVolumeClaim": {"claimName": "x"}}), "d"),
        QueueingHint::Skip
    );
    let added = |name| cluster.hint(&plugin, &new, None, Some(claim(name, "ReadWriteOnce")));
    assert_eq!([added("c"), added("x")], [QueueingHint::Queue, QueueingHint::Skip]);
}
