//! Tests of VolumeBinding on small clusters.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{ClaimReason, Unfit, VolumeBindingArgs, build};
use crate::shape::UtilizationShapePoint;
use kubestep_api::{
    CsiDriver, CsiNode, CsiStorageCapacity, Node, Object, PersistentVolume, PersistentVolumeClaim,
    StorageClass,
};
use kubestep_config::{Arguments, Feature, FeatureGates, KubeVersion, ProfileArgs};
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::events::QueueingHint;
use kubestep_framework::plugin::Plugin;
use kubestep_framework::pod::PodInfo;
use kubestep_framework::status::{Code, Status};
use kubestep_framework::testing::{Asked, FakeHost};
use kubestep_framework::testing::{Cluster, decoded, info_of, plugin};

const HOST: &str = "kubernetes.io/hostname";
const NO_VOLUME: &str = "node(s) didn't find available persistent volumes to bind";
const CONFLICT: &str = "node(s) didn't match PersistentVolume's node affinity";
const GONE: &str = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)";
const NO_SPACE: &str = "node(s) did not have enough free storage";

fn default_plugin() -> Arc<dyn Plugin> {
    plugin(build, &ProfileArgs::default())
}

fn class(name: &str, provisioner: &str, mode: &str) -> Object {
    let json = json!({
        "metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode,
    });
    Object::from(decoded::<StorageClass>(json))
}

/// A claim of 5Gi of a class; if it names a volume, it is fully bound to it.
fn claim(name: &str, class: &str, volume: &str) -> Value {
    let bound =
        if volume.is_empty() { json!({}) } else { json!({"pv.kubernetes.io/bind-completed": ""}) };
    json!({
        "metadata": {"name": name, "namespace": "d", "uid": name, "annotations": bound},
        "spec": {
            "storageClassName": class, "volumeName": volume, "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "5Gi"}},
        },
    })
}

/// An available volume of the class `local`, accessible from one node.
fn volume(name: &str, size: &str, node: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "storageClassName": "local", "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": HOST, "operator": "In", "values": [node]},
            ]}]}},
        },
        "status": {"phase": "Available"},
    })
}

fn as_claim(json: Value) -> Object {
    Object::from(decoded::<PersistentVolumeClaim>(json))
}

fn as_volume(json: Value) -> Object {
    Object::from(decoded::<PersistentVolume>(json))
}

fn claiming(names: &[&str]) -> Arc<PodInfo> {
    let volumes: Vec<Value> =
        names.iter().map(|name| json!({"persistentVolumeClaim": {"claimName": name}})).collect();
    info_of(json!({
        "metadata": {"name": "p", "namespace": "d", "uid": "p"}, "spec": {"volumes": volumes},
    }))
}

/// Nodes `n1` and `n2`, classes `local` (static), `fast` (provisioned) and `now` (immediate).
fn cluster(objects: Vec<Object>) -> Cluster {
    let node = |name: &str| json!({"metadata": {"name": name, "labels": {HOST: name}}});
    let mut cluster = Cluster::of(vec![node("n1"), node("n2")], vec![]);
    let classes = [
        class("local", "kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
        class("fast", "csi.example.com", "WaitForFirstConsumer"),
        class("now", "csi.example.com", "Immediate"),
    ];
    for object in classes.into_iter().chain(objects) {
        cluster.objects.insert(object);
    }
    cluster
}

fn rejections(cluster: &Cluster, names: &[&str]) -> Vec<String> {
    cluster.rejections(&default_plugin(), &claiming(names))
}

fn pre_filter(cluster: &Cluster, names: &[&str]) -> Status {
    cluster.filter(&default_plugin(), &claiming(names)).unwrap_err()
}

#[test]
fn a_claim_selects_volumes_by_label() {
    let mut selecting = claim("c", "local", "");
    selecting["spec"]["selector"] = json!({"matchLabels": {"disk": "fast"}});
    let mut labelled = volume("v2", "5Gi", "n2");
    labelled["metadata"]["labels"] = json!({"disk": "fast"});
    let volumes = [as_volume(volume("v1", "5Gi", "n1")), as_volume(labelled)];
    let cluster = cluster([as_claim(selecting)].into_iter().chain(volumes).collect());
    assert_eq!(rejections(&cluster, &["c"]), [NO_VOLUME, ""]);
}

#[test]
fn claims_are_checked_before_nodes() {
    assert!(pre_filter(&cluster(vec![]), &[]).is_skip());
    let check = |change: &dyn Fn(&mut Value), text: &str| {
        let mut claim = claim("c", "local", "");
        change(&mut claim);
        let status = pre_filter(&cluster(vec![as_claim(claim)]), &["c"]);
        assert_eq!(status.code(), Code::UnschedulableAndUnresolvable);
        assert_eq!(status.message(), text);
    };
    check(
        &|claim| {
            claim["spec"]["volumeName"] = json!("v");
            claim["status"] = json!({"phase": "Lost"});
        },
        "persistentvolumeclaim \"c\" bound to non-existent persistentvolume \"v\"",
    );
    check(
        &|claim| claim["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"),
        "persistentvolumeclaim \"c\" is being deleted",
    );
    let unbound = "pod has unbound immediate PersistentVolumeClaims";
    check(&|claim| claim["spec"]["storageClassName"] = json!("now"), unbound);
    check(&|claim| claim["spec"]["storageClassName"] = json!("unknown"), unbound);
    // The claim names a volume, but binding is not complete.
    check(&|claim| claim["spec"]["volumeName"] = json!("v"), unbound);
    let ephemeral = info_of(json!({
        "metadata": {"name": "p", "namespace": "d", "uid": "p"},
        "spec": {"volumes": [{"name": "e", "ephemeral": {}}]},
    }));
    let waiting = cluster(vec![]).filter(&default_plugin(), &ephemeral).unwrap_err();
    let text =
        "waiting for ephemeral volume controller to create the persistentvolumeclaim \"p-e\"";
    assert_eq!(waiting.message(), text);
}

#[test]
fn a_class_without_a_mode_is_an_error() {
    let no_mode = json!({"metadata": {"name": "odd"}, "provisioner": "x"});
    let class = Object::from(decoded::<StorageClass>(no_mode));
    let cluster = cluster(vec![class, as_claim(claim("c", "odd", ""))]);
    let status = pre_filter(&cluster, &["c"]);
    assert_eq!(status.code(), Code::Error);
    assert_eq!(status.message(), "VolumeBindingMode not set for StorageClass \"odd\"");
}

#[test]
fn bound_claims_tie_the_pod_to_their_volumes() {
    let bound = as_claim(claim("c", "local", "v"));
    assert_eq!(rejections(&cluster(vec![bound.clone()]), &["c"]), [GONE, GONE]);
    let cluster = cluster(vec![bound, as_volume(volume("v", "5Gi", "n1"))]);
    assert_eq!(rejections(&cluster, &["c"]), ["", CONFLICT]);
}

#[test]
fn claims_with_volumes_that_every_node_reaches_leave_nothing_to_do() {
    let is_idle = |objects: &[&Object], names: &[&str]| {
        let cluster = cluster(objects.iter().map(|object| (*object).clone()).collect());
        let (plugin, pod, mut state) = (default_plugin(), claiming(names), CycleState::default());
        assert!(plugin.pre_filter(&cluster.cx(&pod), &mut state).status.is_success());
        plugin.is_idle(&state)
    };
    let mut json = volume("v", "5Gi", "n1");
    let local = as_volume(json.clone());
    json["spec"]["nodeAffinity"] = Value::Null;
    let anywhere = as_volume(json.clone());
    json["spec"]["awsElasticBlockStore"] = json!({"volumeID": "vol-1"});
    json["metadata"]["labels"] = json!({"topology.kubernetes.io/zone": "z"});
    let in_zone_if_migrated = as_volume(json);
    let (bound, free) = (as_claim(claim("c", "local", "v")), as_claim(claim("free", "local", "")));
    assert!(is_idle(&[&bound, &anywhere], &["c"]));
    for volume in [&local, &in_zone_if_migrated] {
        assert!(!is_idle(&[&bound, volume], &["c"]));
    }
    assert!(!is_idle(&[&bound], &["c"]), "the volume does not exist");
    assert!(!is_idle(&[&bound, &anywhere, &free], &["c", "free"]));
}

#[test]
fn several_reasons_come_in_upstreams_order() {
    let mut taken = volume("v", "5Gi", "n1");
    taken["status"]["phase"] = json!("Bound");
    let objects = vec![
        as_claim(claim("c", "local", "v")),
        as_volume(taken),
        as_claim(claim("free", "local", "")),
    ];
    let both = format!("{CONFLICT}, {NO_VOLUME}");
    assert_eq!(rejections(&cluster(objects), &["c", "free"]), [NO_VOLUME.to_owned(), both]);
}

#[test]
fn the_smallest_volume_that_is_large_enough_wins() {
    let volumes = [("a", "20Gi", "n1"), ("b", "8Gi", "n1"), ("c", "4Gi", "n1"), ("d", "9Gi", "n2")];
    let mut objects = vec![as_claim(claim("c", "local", ""))];
    objects.extend(volumes.map(|(name, size, node)| as_volume(volume(name, size, node))));
    let mut cluster = cluster(objects);
    assert_eq!(rejections(&cluster, &["c"]), ["", ""]);
    assert_eq!(taken_on(&mut cluster, "n1"), ["b"]);
    assert_eq!(taken_on(&mut cluster, "n2"), ["d"]);
}

/// The volumes that Reserve assumes for claim `c` on a node.
fn taken_on(cluster: &mut Cluster, node: &str) -> Vec<String> {
    let (plugin, pod) = (default_plugin(), claiming(&["c"]));
    let (cycle, mut state) = (cluster.cx(&pod), CycleState::default());
    assert!(plugin.pre_filter(&cycle, &mut state).status.is_success());
    let mut host = FakeHost::default();
    let mut cx = cluster.binding(&pod, node, &mut host);
    assert!(plugin.reserve(&mut cx, &mut state).is_success());
    let has_claim = |volume: &&Arc<PersistentVolume>| volume.spec.claim_ref.is_some();
    let volumes = cx.shared.volumes.volumes.iter(cx.objects).filter(has_claim);
    let taken = volumes.map(|volume| volume.metadata.name.to_string()).collect();
    plugin.unreserve(&mut cx, &mut state);
    taken
}

#[test]
fn what_does_not_suit_is_not_taken() {
    let rejected = |change: &dyn Fn(&mut Value)| {
        let mut volume = volume("v", "5Gi", "n1");
        change(&mut volume);
        let objects = vec![as_claim(claim("c", "local", "")), as_volume(volume)];
        rejections(&cluster(objects), &["c"])[0] == NO_VOLUME
    };
    assert!(!rejected(&|_| {}));
    assert!(rejected(&|volume| volume["status"]["phase"] = json!("Released")));
    assert!(rejected(&|volume| volume["spec"]["accessModes"] = json!(["ReadOnlyMany"])));
    assert!(rejected(&|volume| volume["spec"]["volumeMode"] = json!("Block")));
    assert!(rejected(&|volume| volume["spec"]["storageClassName"] = json!("fast")));
    assert!(rejected(&|volume| volume["spec"]["volumeAttributesClassName"] = json!("gold")));
    assert!(rejected(&|volume| {
        volume["spec"]["claimRef"] = json!({"namespace": "d", "name": "other"});
    }));
    assert!(!rejected(&|volume| {
        volume["spec"]["claimRef"] = json!({"namespace": "d", "name": "c"});
        volume["status"]["phase"] = json!("Released");
    }));
}

#[test]
fn a_volume_promised_to_the_claim_is_the_only_one() {
    let mut promised = volume("z", "90Gi", "n2");
    promised["spec"]["claimRef"] = json!({"namespace": "d", "name": "c"});
    let objects = vec![
        as_claim(claim("c", "local", "")),
        as_volume(volume("a", "5Gi", "n1")),
        as_volume(volume("b", "5Gi", "n2")),
        as_volume(promised),
    ];
    let mut cluster = cluster(objects);
    assert_eq!(rejections(&cluster, &["c"]), [NO_VOLUME, ""]);
    assert_eq!(taken_on(&mut cluster, "n2"), ["z"]);
}

#[test]
fn two_claims_never_get_one_volume() {
    let objects = vec![
        as_claim(claim("c", "local", "")),
        as_claim(claim("other", "local", "")),
        as_volume(volume("a", "5Gi", "n1")),
        as_volume(volume("b", "5Gi", "n2")),
        as_volume(volume("d", "6Gi", "n2")),
    ];
    assert_eq!(rejections(&cluster(objects), &["c", "other"]), [NO_VOLUME, ""]);
}

#[test]
fn classes_with_a_provisioner_make_volumes_where_allowed() {
    let mut limited = decoded::<StorageClass>(json!({
        "metadata": {"name": "fast"}, "provisioner": "csi.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    }));
    let mut cluster = cluster(vec![as_claim(claim("c", "fast", ""))]);
    assert_eq!(rejections(&cluster, &["c"]), ["", ""]);
    limited.allowed_topologies = vec![decoded(json!({
        "matchLabelExpressions": [{"key": HOST, "values": ["n2"]}],
    }))];
    cluster.objects.insert(Object::from(limited));
    assert_eq!(rejections(&cluster, &["c"]), [NO_VOLUME, ""]);
    let mut on_other_node = claim("c", "fast", "");
    on_other_node["metadata"]["annotations"] = json!({"volume.kubernetes.io/selected-node": "n1"});
    cluster.objects.insert(as_claim(on_other_node));
    assert_eq!(rejections(&cluster, &["c"]), [NO_VOLUME, NO_VOLUME]);
}

fn capacity(name: &str, node: &str, amount: &str) -> Object {
    Object::from(decoded::<CsiStorageCapacity>(json!({
        "metadata": {"name": name, "namespace": "kube-system"}, "storageClassName": "fast",
        "capacity": amount, "nodeTopology": {"matchLabels": {HOST: node}},
    })))
}

fn reporting_driver(reports: bool) -> Object {
    let json =
        json!({"metadata": {"name": "csi.example.com"}, "spec": {"storageCapacity": reports}});
    Object::from(decoded::<CsiDriver>(json))
}

#[test]
fn free_storage_counts_where_the_driver_reports_it() {
    let objects = vec![
        as_claim(claim("c", "fast", "")),
        reporting_driver(true),
        capacity("small", "n1", "4Gi"),
        capacity("large", "n2", "5Gi"),
    ];
    let mut cluster = cluster(objects);
    assert_eq!(rejections(&cluster, &["c"]), [NO_SPACE, ""]);
    cluster.objects.insert(reporting_driver(false));
    assert_eq!(rejections(&cluster, &["c"]), ["", ""]);
}

#[test]
fn free_storage_scores_behind_its_gate() {
    let objects = vec![
        as_claim(claim("c", "fast", "")),
        reporting_driver(true),
        capacity("half", "n1", "10Gi"),
        capacity("large", "n2", "50Gi"),
    ];
    let (cluster, pod) = (cluster(objects), claiming(&["c"]));
    let shape = Some(vec![
        UtilizationShapePoint { utilization: 0, score: 0 },
        UtilizationShapePoint { utilization: 100, score: 10 },
    ]);
    let args = VolumeBindingArgs { shape, ..VolumeBindingArgs::default() };
    let args = ProfileArgs::default().with(args);
    assert!(cluster.scores(&plugin(build, &args), &pod).unwrap_err().is_skip());
    let gates = FeatureGates::default().with(Feature::StorageCapacityScoring, true);
    let plugin = build(&args, &gates).unwrap();
    let (cx, mut state) = (cluster.cx(&pod), CycleState::default());
    assert!(plugin.pre_filter(&cx, &mut state).status.is_success());
    assert!(
        plugin.pre_score(&cx, &mut state, &cluster.snapshot.order().as_slice().into()).is_success()
    );
    let scores: Vec<_> =
        cluster.snapshot.iter().map(|node| plugin.score(&cx, &state, node)).collect();
    assert_eq!(scores, [Ok(50), Ok(10)]);
}

#[test]
fn up_to_1_32_fuller_nodes_score_higher_by_default() {
    let score_of_empty = |minor, gate| {
        let gates = FeatureGates::of(KubeVersion::of_minor(minor).unwrap()).with(gate, true);
        let mut args = VolumeBindingArgs::default();
        args.complete(&gates);
        args.shape.unwrap()[0].score
    };
    let scores = [
        score_of_empty(32, Feature::VolumeCapacityPriority),
        score_of_empty(33, Feature::StorageCapacityScoring),
    ];
    assert_eq!(scores, [0, 10]);
}

#[test]
fn old_volumes_are_seen_as_the_nodes_driver_sees_them() {
    let old = json!({
        "metadata": {"name": "v", "labels": {"topology.kubernetes.io/zone": "a"}},
        "spec": {"awsElasticBlockStore": {"volumeID": "vol-1"}},
    });
    let mut cluster = cluster(vec![as_claim(claim("c", "local", "v")), as_volume(old)]);
    assert_eq!(rejections(&cluster, &["c"]), ["", ""]);
    let migrated = json!({"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs"});
    let csi_node = json!({"metadata": {"name": "n1", "annotations": migrated}});
    cluster.objects.insert(Object::from(decoded::<CsiNode>(csi_node)));
    assert_eq!(rejections(&cluster, &["c"]), [CONFLICT, ""]);
    cluster.edit_node(0, |node| {
        let mut with_zone: Node = (**node.node.as_ref().unwrap()).clone();
        let zone = "topology.ebs.csi.aws.com/zone";
        with_zone.metadata.labels.insert(zone.into(), "a".into());
        node.set_node(Arc::new(with_zone));
    });
    assert_eq!(rejections(&cluster, &["c"]), ["", ""]);
}

/// The server's objects after the volume controller bound claim `c` and volume `v`.
fn settled(cluster: &Cluster, pod: &Arc<PodInfo>) -> Vec<Object> {
    let mut bound = volume("v", "5Gi", "n1");
    bound["spec"]["claimRef"] = json!({"namespace": "d", "name": "c", "uid": "c"});
    let node = cluster.snapshot.by_name("n1".into()).unwrap().node.clone().unwrap();
    vec![
        Object::Node(node),
        Object::Pod(pod.pod.clone()),
        as_claim(claim("c", "local", "v")),
        as_volume(bound),
    ]
}

#[test]
fn a_volume_is_taken_bound_and_given_back() {
    let objects = vec![as_claim(claim("c", "local", "")), as_volume(volume("v", "5Gi", "n1"))];
    let (mut cluster, plugin, pod) = (cluster(objects), default_plugin(), claiming(&["c"]));
    let (mut state, mut host) = (CycleState::default(), FakeHost::default());
    assert!(plugin.pre_filter(&cluster.cx(&pod), &mut state).status.is_success());
    let mut cx = cluster.binding(&pod, "n1", &mut host);
    let early = plugin.pre_bind_pre_flight(&cx, &state);
    assert_eq!(early.message(), "no pod volume found for node \"n1\"");
    assert!(plugin.reserve(&mut cx, &mut state).is_success());
    let assumed = cx.shared.volumes.volume(cx.objects, "v".into()).unwrap().clone();
    let reference = assumed.spec.claim_ref.clone().unwrap();
    assert_eq!((reference.name, reference.uid), ("c".into(), "c".into()));
    let by_controller =
        assumed.metadata.annotations.get_str("pv.kubernetes.io/bound-by-controller");
    assert_eq!(by_controller, Some(&"yes".into()));
    assert!(plugin.pre_bind_pre_flight(&cx, &state).is_success());

    plugin.unreserve(&mut cx, &mut state);
    assert_eq!(cx.shared.volumes, Default::default());
    assert!(plugin.reserve(&mut cx, &mut state).is_success());
    let timeout = plugin.pre_bind(&mut cx, &mut state);
    let no_node = "binding volumes: failed to get node \"n1\": node \"n1\" not found";
    assert_eq!(timeout.message(), no_node);
    host.stored = settled(&cluster, &pod);
    let mut cx = cluster.binding(&pod, "n1", &mut host);
    assert!(plugin.pre_bind(&mut cx, &mut state).is_success());
    assert_eq!(host.asked.last(), Some(&Asked::Update(Object::PersistentVolume(assumed))));
}

#[test]
fn binding_fails_in_upstreams_words() {
    let (plugin, pod) = (default_plugin(), claiming(&["c"]));
    let failure = |change: &dyn Fn(&mut FakeHost)| {
        let objects = vec![as_claim(claim("c", "local", "")), as_volume(volume("v", "5Gi", "n1"))];
        let (mut cluster, mut state) = (cluster(objects), CycleState::default());
        assert!(plugin.pre_filter(&cluster.cx(&pod), &mut state).status.is_success());
        let mut host = FakeHost { stored: settled(&cluster, &pod), ..FakeHost::default() };
        change(&mut host);
        let mut cx = cluster.binding(&pod, "n1", &mut host);
        assert!(plugin.reserve(&mut cx, &mut state).is_success());
        plugin.pre_bind(&mut cx, &mut state).message()
    };
    assert_eq!(failure(&|_| {}), "");
    assert_eq!(failure(&|host| host.refuse.push("v".into())), "rejected");
    let unbound = failure(&|host| host.stored.push(as_claim(claim("c", "local", ""))));
    assert_eq!(unbound, "binding volumes: context deadline exceeded");
    let reset = failure(&|host| host.stored.push(as_volume(volume("v", "5Gi", "n1"))));
    assert_eq!(reset, "binding volumes: ClaimRef got reset for pv \"v\"");
    let moved = failure(&|host| host.stored.push(as_volume(volume("v", "5Gi", "n2"))));
    let text = "binding volumes: pv \"v\" node affinity doesn't match node \"n1\": no matching \
                NodeSelectorTerms";
    assert_eq!(moved, text);
}

#[test]
fn a_claim_to_be_provisioned_is_given_the_node() {
    let mut cluster = cluster(vec![as_claim(claim("c", "fast", ""))]);
    let (plugin, pod) = (default_plugin(), claiming(&["c"]));
    let mut state = CycleState::default();
    assert!(plugin.pre_filter(&cluster.cx(&pod), &mut state).status.is_success());
    let mut host = FakeHost { stored: settled(&cluster, &pod), ..FakeHost::default() };
    let mut cx = cluster.binding(&pod, "n2", &mut host);
    assert!(plugin.reserve(&mut cx, &mut state).is_success());
    let failed = plugin.pre_bind(&mut cx, &mut state).message();
    assert_eq!(failed, "binding volumes: failed to get node \"n2\": node \"n2\" not found");
    let Some(Asked::Update(Object::PersistentVolumeClaim(written))) = host.asked.last() else {
        panic!("no claim was written: {:?}", host.asked);
    };
    let selected = written.metadata.annotations.get_str("volume.kubernetes.io/selected-node");
    assert_eq!(selected, Some(&"n2".into()));
    // Another pod with the same claim now fits only on this node.
    assert_eq!(rejections(&cluster, &["c"]), [NO_VOLUME, ""]);
}

#[test]
fn pods_with_all_bound_have_nothing_to_bind() {
    let objects = vec![as_claim(claim("c", "local", "v")), as_volume(volume("v", "5Gi", "n1"))];
    let (mut cluster, plugin) = (cluster(objects), default_plugin());
    for names in [&["c"][..], &[]] {
        let (pod, mut state) = (claiming(names), CycleState::default());
        plugin.pre_filter(&cluster.cx(&pod), &mut state);
        let mut host = FakeHost::default();
        let mut cx = cluster.binding(&pod, "n1", &mut host);
        assert!(plugin.reserve(&mut cx, &mut state).is_success());
        assert!(plugin.pre_bind_pre_flight(&cx, &state).is_skip());
    }
    let (pod, mut state) = (claiming(&[]), CycleState::default());
    let mut host = FakeHost::default();
    let mut cx = cluster.binding(&pod, "n1", &mut host);
    assert_eq!(plugin.reserve(&mut cx, &mut state).message(), "not found");
}

/// Upstream's Reserve uses the decision that Filter stored for the node; here there is none.
#[test]
fn in_a_profile_without_its_filter_it_binds_nothing() {
    for (without_filter, binds) in [(vec![], true), (vec!["VolumeBinding".into()], false)] {
        let mut args = ProfileArgs::default();
        args.without_filter = without_filter;
        let plugin = plugin(build, &args);
        let objects = vec![as_claim(claim("c", "local", "")), as_volume(volume("v", "5Gi", "n1"))];
        let (mut cluster, mut host) = (cluster(objects), FakeHost::default());
        let (pod, mut state) = (claiming(&["c"]), CycleState::default());
        plugin.pre_filter(&cluster.cx(&pod), &mut state);
        let mut cx = cluster.binding(&pod, "n1", &mut host);
        assert!(plugin.reserve(&mut cx, &mut state).is_success());
        assert_eq!(plugin.pre_bind_pre_flight(&cx, &state).is_skip(), !binds);
    }
}

#[test]
fn hints() {
    let (cluster, plugin, pod) = (Cluster::default(), default_plugin(), claiming(&["c"]));
    let hint = |old: Option<Object>, new: Object| cluster.hint(&plugin, &pod, old, Some(new));
    let fast = || class("fast", "x", "Immediate");
    assert_eq!(
        [hint(None, fast()), hint(Some(fast()), fast())],
        [QueueingHint::Queue, QueueingHint::Skip]
    );
    assert_eq!(hint(None, as_claim(claim("c", "", ""))), QueueingHint::Queue);
    assert_eq!(hint(None, as_claim(claim("x", "", ""))), QueueingHint::Skip);
    let (small, large) = (capacity("s", "n", "1Gi"), capacity("s", "n", "2Gi"));
    assert_eq!(hint(None, small.clone()), QueueingHint::Queue);
    assert_eq!(hint(Some(small.clone()), large.clone()), QueueingHint::Queue);
    assert_eq!(hint(Some(large), small), QueueingHint::Skip);
    let node = |plugins: &str| {
        let annotations = json!({"storage.alpha.kubernetes.io/migrated-plugins": plugins});
        let json = json!({"metadata": {"name": "n", "annotations": annotations}});
        Object::from(decoded::<CsiNode>(json))
    };
    assert_eq!(hint(Some(node("a")), node("b")), QueueingHint::Queue);
    assert_eq!(hint(Some(node("a")), node("a")), QueueingHint::Skip);
    assert_eq!(hint(Some(reporting_driver(true)), reporting_driver(false)), QueueingHint::Skip);
}

#[test]
fn an_explanation_hears_filters_walk_and_what_comes_behind_it() {
    let far = as_volume(volume("far", "5Gi", "elsewhere"));
    let claims = [claim("first", "local", "far"), claim("second", "local", "gone")];
    let claims = claims.map(as_claim).into_iter().chain([as_claim(claim("third", "local", ""))]);
    let cluster = cluster(claims.chain([far]).collect());
    let (plugin, pod) = (default_plugin(), claiming(&["first", "second", "third"]));
    let mut state = CycleState::default();
    assert!(plugin.pre_filter(&cluster.cx(&pod), &mut state).status.is_success());
    let node = cluster.snapshot.iter().next().unwrap();
    let said = plugin.filter(&cluster.cx(&pod), &state, node);
    assert_eq!(said.message(), format!("{CONFLICT}, {NO_VOLUME}"));
    let found = super::rejections(&cluster.cx(&pod), &state, node.node.as_ref().unwrap());
    let heard: Vec<_> =
        found.iter().map(|one| (one.claim.name.to_string(), one.reason, one.decisive)).collect();
    assert_eq!(
        heard,
        [
            ("first".into(), ClaimReason::OutOfReach("far".into()), true),
            ("second".into(), ClaimReason::VolumeMissing("gone".into()), false),
            ("third".into(), ClaimReason::NoProvisioner("local".into()), true),
        ]
    );
    assert_eq!(found[2].passed_over, [("far".into(), Unfit::OutOfReach)]);
    assert_eq!(super::rejection(&found, &cluster.features), said);
    let older = super::rejection(&found, &FeatureGates::of(KubeVersion::of_minor(32).unwrap()));
    assert_eq!(older.message(), format!("node(s) had volume node affinity conflict, {NO_VOLUME}"));
}
