//! Tests of NodeVolumeLimits on small clusters.

use std::sync::Arc;

use serde_json::{Value, json};

use super::build;
use kubestep_api::{
    CsiDriver, CsiNode, Object, PersistentVolume, PersistentVolumeClaim, StorageClass,
    VolumeAttachment,
};
use kubestep_config::versions::{Switch, VersionChange};
use kubestep_config::{Feature, FeatureGates, KubeVersion, ProfileArgs};
use kubestep_framework::events::QueueingHint;
use kubestep_framework::plugin::Plugin;
use kubestep_framework::pod::PodInfo;
use kubestep_framework::status::Code;
use kubestep_framework::testing::{Cluster, decoded, info_of, plugin};

const EXCEEDED: &str = "node(s) exceed max volume count";
const DRIVER: &str = "csi.example.com";

fn default_plugin() -> Arc<dyn Plugin> {
    plugin(build, &ProfileArgs::default())
}

fn pod_json(name: &str, node: &str, claims: &[&str]) -> Value {
    let volume = |claim: &&str| json!({"persistentVolumeClaim": {"claimName": claim}});
    let volumes: Vec<Value> = claims.iter().map(volume).collect();
    json!({
        "metadata": {"name": name, "namespace": "d", "uid": name},
        "spec": {"nodeName": node, "volumes": volumes},
    })
}

fn claim(name: &str, spec: Value) -> Object {
    let json = json!({"metadata": {"name": name, "namespace": "d"}, "spec": spec});
    Object::from(decoded::<PersistentVolumeClaim>(json))
}

fn csi_node(drivers: Value) -> CsiNode {
    decoded(json!({"metadata": {"name": "n"}, "spec": {"drivers": drivers}}))
}

fn limited(driver: &str, count: i32) -> Value {
    json!([{"name": driver, "allocatable": {"count": count}}])
}

/// A node with a pod that uses the claim `used`; claims are named like their volumes.
fn cluster(limit: Option<i32>) -> Cluster {
    let node = json!({"metadata": {"name": "n"}});
    let mut cluster = Cluster::of(vec![node], vec![pod_json("there", "n", &["used"])]);
    for name in ["used", "new", "more"] {
        cluster.objects.insert(claim(name, json!({"volumeName": name})));
        cluster.objects.insert(Object::from(decoded::<PersistentVolume>(json!({
            "metadata": {"name": name}, "spec": {"csi": {"driver": DRIVER, "volumeHandle": name}},
        }))));
    }
    if let Some(count) = limit {
        cluster.objects.insert(Object::from(csi_node(limited(DRIVER, count))));
    }
    cluster
}

fn rejection(cluster: &Cluster, pod: &Arc<PodInfo>) -> String {
    cluster.rejections(&default_plugin(), pod)[0].clone()
}

#[test]
fn each_volume_counts_once() {
    let rejection_of = |limit: Option<i32>, claims: &[&str]| {
        rejection(&cluster(limit), &info_of(pod_json("p", "", claims)))
    };
    assert_eq!(rejection_of(Some(1), &["new"]), EXCEEDED);
    assert_eq!(rejection_of(Some(1), &["used"]), "");
    assert_eq!(rejection_of(Some(2), &["new", "used"]), "");
    assert_eq!(rejection_of(Some(2), &["new", "more"]), EXCEEDED);
    assert_eq!(rejection_of(None, &["new", "more"]), "");
}

/// As in filterAttachableVolumes, existing pods are checked if any driver has a limit.
#[test]
fn a_claim_on_the_node_that_is_another_pods_is_an_error() {
    let mut there = pod_json("there", "n", &[]);
    there["spec"]["volumes"] = json!([{"name": "e", "ephemeral": {}}]);
    let mut cluster = Cluster::of(vec![json!({"metadata": {"name": "n"}})], vec![there]);
    cluster.objects.insert(claim("there-e", json!({})));
    cluster.objects.insert(claim("new", json!({"volumeName": "new"})));
    cluster.objects.insert(Object::from(decoded::<PersistentVolume>(json!({
        "metadata": {"name": "new"}, "spec": {"csi": {"driver": DRIVER, "volumeHandle": "new"}},
    }))));
    let new = info_of(pod_json("p", "", &["new"]));
    cluster.objects.insert(Object::from(csi_node(json!([{"name": DRIVER}]))));
    assert_eq!(rejection(&cluster, &new), "");
    cluster.objects.insert(Object::from(csi_node(limited("other.example.com", 9))));
    let text = "PVC d/there-e was not created for pod d/there (pod is not owner)";
    assert_eq!(rejection(&cluster, &new), text);
}

#[test]
fn volumes_to_be_made_count_by_their_class() {
    let mut cluster = cluster(Some(1));
    cluster.objects.insert(claim("new", json!({"storageClassName": "k"})));
    let new = info_of(pod_json("p", "", &["new"]));
    assert_eq!(rejection(&cluster, &new), "");
    let class = json!({"metadata": {"name": "k"}, "provisioner": DRIVER});
    cluster.objects.insert(Object::from(decoded::<StorageClass>(class)));
    assert_eq!(rejection(&cluster, &new), EXCEEDED);
}

#[test]
fn attachments_that_no_pod_uses_count_too() {
    let mut cluster = cluster(Some(2));
    let new = info_of(pod_json("p", "", &["new"]));
    let attach = |volume: &str| {
        Object::from(decoded::<VolumeAttachment>(json!({
            "metadata": {"name": volume},
            "spec": {"attacher": DRIVER, "nodeName": "n", "source": {"persistentVolumeName": volume}},
        })))
    };
    cluster.objects.insert(attach("used"));
    assert_eq!(rejection(&cluster, &new), "");
    cluster.objects.insert(attach("more"));
    assert_eq!(rejection(&cluster, &new), EXCEEDED);
}

#[test]
fn old_inline_disks_count_as_their_drivers() {
    let inline = |name: &str, node: &str, disk: &str| {
        json!({
            "metadata": {"name": name, "namespace": "d", "uid": name},
            "spec": {"nodeName": node, "volumes": [{"gcePersistentDisk": {"pdName": disk}}]},
        })
    };
    let node = json!({"metadata": {"name": "n"}});
    let mut cluster = Cluster::of(vec![node], vec![inline("there", "n", "a")]);
    let other = info_of(inline("p", "", "b"));
    assert_eq!(rejection(&cluster, &other), "");
    cluster.objects.insert(Object::from(csi_node(limited("pd.csi.storage.gke.io", 1))));
    assert_eq!(rejection(&cluster, &other), EXCEEDED);
    assert_eq!(rejection(&cluster, &info_of(inline("p", "", "a"))), "");
}

#[test]
fn portworx_volumes_count_by_the_annotation_up_to_1_35() {
    let volume = json!({"name": "v", "portworxVolume": {"volumeID": "x"}});
    let pod = json!({
        "metadata": {"name": "p", "namespace": "d", "uid": "p"}, "spec": {"volumes": [volume]},
    });
    let pod = info_of(pod);
    let mut cluster = cluster(None);
    let mut rejected = |annotation: &str, features: FeatureGates| {
        let mut node = csi_node(limited("pxd.portworx.com", 0));
        let key = "storage.alpha.kubernetes.io/migrated-plugins";
        node.metadata.annotations = [(key, annotation)].into();
        cluster.objects.insert(Object::from(node));
        cluster.features = features;
        rejection(&cluster, &pod) == EXCEEDED
    };
    let migrated = "kubernetes.io/aws-ebs,kubernetes.io/portworx-volume";
    let version = |minor| FeatureGates::of(KubeVersion::of_minor(minor).unwrap());
    assert!(rejected("", version(36)) && rejected(migrated, version(36)));
    assert!(!rejected("", version(35)) && rejected(migrated, version(35)));
    let off = version(31).with(Feature::CSIMigrationPortworx, false);
    assert!(!rejected(migrated, off));
}

#[test]
fn a_missing_claim_refuses_only_the_new_pod() {
    let mut cluster = cluster(Some(1));
    let unknown = cluster.filter(&default_plugin(), &info_of(pod_json("p", "", &["x"]))).unwrap();
    assert_eq!(unknown[0].code(), Code::UnschedulableAndUnresolvable);
    let text = "looking up PVC d/x: persistentvolumeclaim \"x\" not found";
    assert_eq!(unknown[0].message(), text);
    cluster.objects.remove(&claim("used", json!({})));
    assert_eq!(rejection(&cluster, &info_of(pod_json("p", "", &["new"]))), "");
}

#[test]
fn a_driver_may_insist_on_being_there() {
    let mut cluster = cluster(None);
    cluster.objects.insert(Object::from(decoded::<CsiDriver>(json!({
        "metadata": {"name": DRIVER}, "spec": {"preventPodSchedulingIfMissing": true},
    }))));
    let gates = FeatureGates::default().with(Feature::VolumeLimitScaling, true);
    let plugin = build(&ProfileArgs::default(), &gates).unwrap();
    cluster.features = gates;
    let new = info_of(pod_json("p", "", &["new"]));
    let missing = "csi.example.com CSI driver is not installed on the node";
    assert_eq!(cluster.rejections(&plugin, &new), [missing]);
    cluster.objects.insert(Object::from(csi_node(json!([{"name": DRIVER}]))));
    assert_eq!(cluster.rejections(&plugin, &new), [""]);
}

#[test]
fn up_to_1_35_every_known_driver_insists_with_the_gate() {
    let (new, since) = (info_of(pod_json("p", "", &["new"])), Switch::VolumeLimitScalingOptIn);
    let on = FeatureGates::default().with(Feature::VolumeLimitScaling, true);
    let older = FeatureGates::of(since.since().before().unwrap());
    let texts = [on, VersionChange::Switch(since).applied(on, older)].map(|gates| {
        let driver = decoded::<CsiDriver>(json!({"metadata": {"name": DRIVER}}));
        let cluster = Cluster { features: gates, ..cluster(None) }.with(driver);
        cluster.rejections(&build(&ProfileArgs::default(), &gates).unwrap(), &new)
    });
    let missing = "csi.example.com CSI driver is not installed on the node";
    assert_eq!(texts, [[""], [missing]]);
}

#[test]
fn pods_without_claims_are_skipped() {
    let cluster = cluster(Some(0));
    let plain = info_of(json!({"spec": {"volumes": [{"emptyDir": {}}]}}));
    assert!(cluster.filter(&default_plugin(), &plain).unwrap_err().is_skip());
}

#[test]
fn hints() {
    let (cluster, plugin) = (Cluster::default(), default_plugin());
    let new = info_of(pod_json("p", "", &["new"]));
    let hint = |old: Option<Object>, next: Option<Object>| cluster.hint(&plugin, &new, old, next);
    let nodes = |old: Value, next: Value| {
        let [old, next] = [old, next].map(|drivers| Some(Object::from(csi_node(drivers))));
        hint(old, next)
    };
    assert_eq!(nodes(limited(DRIVER, 1), limited(DRIVER, 2)), QueueingHint::Queue);
    assert_eq!(nodes(limited(DRIVER, 2), limited(DRIVER, 1)), QueueingHint::Skip);
    assert_eq!(nodes(json!([]), limited(DRIVER, 1)), QueueingHint::Queue);
    let deleted = |node: &str, claims: &[&str]| {
        let old = Object::Pod(info_of(pod_json("gone", node, claims)).pod.clone());
        hint(Some(old), None)
    };
    assert_eq!(deleted("n", &["x"]), QueueingHint::Queue);
    assert_eq!([deleted("", &["x"]), deleted("n", &[])], [QueueingHint::Skip, QueueingHint::Skip]);
    let claims = |name| hint(None, Some(claim(name, json!({}))));
    assert_eq!([claims("new"), claims("x")], [QueueingHint::Queue, QueueingHint::Skip]);
    let attachment = Object::from(VolumeAttachment::default());
    assert_eq!(hint(Some(attachment), None), QueueingHint::Queue);
}
