//! Tests of VolumeZone on small clusters.

use std::sync::Arc;

use serde_json::{Value, json};

use super::build;
use kubestep_api::{Object, PersistentVolume, PersistentVolumeClaim, StorageClass};
use kubestep_config::ProfileArgs;
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::events::QueueingHint;
use kubestep_framework::plugin::Plugin;
use kubestep_framework::pod::PodInfo;
use kubestep_framework::status::Code;
use kubestep_framework::testing::{Cluster, decoded, info_of, plugin};

const REFUSED: &str = "node(s) had no available volume zone";
const ZONE: &str = "topology.kubernetes.io/zone";
const BETA_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";

fn default_plugin() -> Arc<dyn Plugin> {
    plugin(build, &ProfileArgs::default())
}

fn volume(labels: Value) -> Object {
    Object::from(decoded::<PersistentVolume>(json!({"metadata": {"name": "v", "labels": labels}})))
}

fn claim(spec: Value) -> Object {
    let json = json!({"metadata": {"name": "c", "namespace": "d"}, "spec": spec});
    Object::from(decoded::<PersistentVolumeClaim>(json))
}

fn class(mode: &str) -> Object {
    let json = json!({"metadata": {"name": "k"}, "volumeBindingMode": mode});
    Object::from(decoded::<StorageClass>(json))
}

fn claiming(name: &str) -> Arc<PodInfo> {
    info_of(json!({
        "metadata": {"name": "p", "namespace": "d", "uid": "p"},
        "spec": {"volumes": [{"persistentVolumeClaim": {"claimName": name}}]},
    }))
}

/// Nodes in zone a, in zone b, in beta zone a, and without zone labels.
fn cluster() -> Cluster {
    let labelled = |(name, labels)| json!({"metadata": {"name": name, "labels": labels}});
    let nodes = [
        ("a", json!({ZONE: "a"})),
        ("b", json!({ZONE: "b"})),
        ("beta", json!({BETA_ZONE: "a"})),
        ("bare", json!({})),
    ];
    Cluster::of(nodes.map(labelled).to_vec(), vec![])
}

fn with_volume(labels: Value) -> Cluster {
    let mut cluster = cluster();
    cluster.objects.insert(claim(json!({"volumeName": "v"})));
    cluster.objects.insert(volume(labels));
    cluster
}

#[test]
fn zones_must_match_unless_the_node_has_none() {
    let (plugin, pod) = (default_plugin(), claiming("c"));
    let rejections = |labels: Value| with_volume(labels).rejections(&plugin, &pod);
    assert_eq!(rejections(json!({ZONE: "a"})), ["", REFUSED, REFUSED, ""]);
    // A beta label is also matched under its GA name.
    assert_eq!(rejections(json!({BETA_ZONE: "a"})), ["", REFUSED, "", ""]);
    assert_eq!(rejections(json!({ZONE: "x__a"})), ["", REFUSED, REFUSED, ""]);
    assert_eq!(rejections(json!({REGION: "r"})), [REFUSED, REFUSED, REFUSED, ""]);
    for nothing in [json!({}), json!({ZONE: "a____b"})] {
        assert!(with_volume(nothing).filter(&plugin, &pod).unwrap_err().is_skip());
    }
}

#[test]
fn without_pre_filter_every_node_looks_the_volumes_up() {
    let (plugin, pod) = (default_plugin(), claiming("c"));
    let cluster = with_volume(json!({ZONE: "a"}));
    let (cx, state) = (cluster.cx(&pod), CycleState::default());
    let messages: Vec<String> =
        cluster.snapshot.iter().map(|node| plugin.filter(&cx, &state, node).message()).collect();
    assert_eq!(messages, ["", REFUSED, REFUSED, ""]);
    // A missing object rejects the pod even on nodes without zone labels.
    let pod = claiming("gone");
    let cx = cluster.cx(&pod);
    let bare = cluster.snapshot.by_name("bare".into()).unwrap();
    let missing = plugin.filter(&cx, &state, bare);
    assert_eq!(missing.message(), "persistentvolumeclaim \"gone\" not found");
}

#[test]
fn what_cannot_be_looked_up_refuses_the_pod() {
    let (plugin, mut cluster) = (default_plugin(), cluster());
    let rejection = |cluster: &Cluster, name: &str| {
        let status = cluster.filter(&plugin, &claiming(name)).unwrap_err();
        assert_eq!(status.code(), Code::UnschedulableAndUnresolvable);
        status.message()
    };
    assert_eq!(rejection(&cluster, ""), "PersistentVolumeClaim had no name");
    assert_eq!(rejection(&cluster, "c"), "persistentvolumeclaim \"c\" not found");
    cluster.objects.insert(claim(json!({"volumeName": "v"})));
    assert_eq!(rejection(&cluster, "c"), "persistentvolume \"v\" not found");
    cluster.objects.insert(claim(json!({})));
    let no_class = "PersistentVolumeClaim had no pv name and storageClass name";
    assert_eq!(rejection(&cluster, "c"), no_class);
    cluster.objects.insert(claim(json!({"storageClassName": "k"})));
    assert_eq!(rejection(&cluster, "c"), "storageclass.storage.k8s.io \"k\" not found");
    cluster.objects.insert(class("Immediate"));
    assert_eq!(rejection(&cluster, "c"), "PersistentVolume had no name");
    cluster.objects.insert(class("WaitForFirstConsumer"));
    assert!(cluster.filter(&plugin, &claiming("c")).unwrap_err().is_skip());
}

#[test]
fn hints() {
    let (cluster, plugin, pod) = (Cluster::default(), default_plugin(), claiming("c"));
    let hint = |old: Option<Object>, new: Object| cluster.hint(&plugin, &pod, old, Some(new));
    assert_eq!(hint(None, class("Immediate")), QueueingHint::Skip);
    assert_eq!(hint(None, class("WaitForFirstConsumer")), QueueingHint::Queue);
    assert_eq!(hint(None, claim(json!({}))), QueueingHint::Queue);
    let other = json!({"metadata": {"name": "c", "namespace": "other"}});
    assert_eq!(
        hint(None, Object::from(decoded::<PersistentVolumeClaim>(other))),
        QueueingHint::Skip
    );
    assert_eq!(hint(None, volume(json!({}))), QueueingHint::Queue);
    let (old, same) = (volume(json!({ZONE: "a__b"})), volume(json!({ZONE: "b__a", "x": "y"})));
    assert_eq!(hint(Some(old.clone()), same), QueueingHint::Skip);
    assert_eq!(hint(Some(old), volume(json!({ZONE: "a"}))), QueueingHint::Queue);
}
