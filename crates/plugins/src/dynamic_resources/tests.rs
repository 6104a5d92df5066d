//! Tests of DynamicResources for pods with and without claims.

use std::sync::Arc;

use serde_json::json;

use super::structured::AllocationError;
use super::workload::is_reserved_for_pod_or_group;
use super::{DeviceReason, build};
use kubestep_api::Object;
use kubestep_config::{FeatureGates, KubeVersion, ProfileArgs};
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::events::QueueingHint;
use kubestep_framework::plugin::PostFilterContext;
use kubestep_framework::pod::PodInfo;
use kubestep_framework::shared::GroupCycle;
use kubestep_framework::status::node_statuses::NodeStatuses;
use kubestep_framework::status::{Code, Status};
use kubestep_framework::testing::{
    Asked, Cluster, FakeHost, cpu_fit, decoded, info_of, key, object, plugin,
};

fn claim(name: &str, allocated: bool) -> Object {
    let status = match allocated {
        true => json!({"allocation": {"devices": {}}}),
        false => json!({}),
    };
    Object::ResourceClaim(std::sync::Arc::new(decoded(json!({
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {
            "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1,
        }}]}},
        "status": status,
    }))))
}

#[test]
fn without_claims_all_nodes_score_nothing() {
    let cluster = Cluster::of(vec![json!({"metadata": {"name": "n"}})], vec![]);
    let plugin = plugin(build, &ProfileArgs::default());
    let pod = info_of(json!({"metadata": {"name": "p"}}));
    let cx = cluster.cx(&pod);
    let mut state = Default::default();
    let node = cluster.snapshot.by_name("n".into()).unwrap();
    assert_eq!(plugin.score(&cx, &state, node).unwrap_err().message(), "not found");
    assert_eq!(plugin.pre_filter(&cx, &mut state).status.code(), Code::Skip);
    assert_eq!(plugin.score(&cx, &state, node), Ok(0));
}

#[test]
fn a_claim_must_be_there_and_its_class_too() {
    let mut cluster = Cluster::of(vec![json!({"metadata": {"name": "n"}})], vec![]);
    let plugin = plugin(build, &ProfileArgs::default());
    let pod = info_of(json!({
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"resourceClaims": [{"name": "c", "resourceClaimName": "mine"}]},
    }));
    let missing = "could not find ResourceClaim \"default/mine\"";
    assert_eq!(plugin.pre_enqueue(&cluster.queue(), &pod).message(), missing);
    cluster.objects.insert(claim("mine", false));
    assert!(plugin.pre_enqueue(&cluster.queue(), &pod).is_success());
    let rejected = cluster.filter(&plugin, &pod).unwrap_err();
    assert_eq!(rejected.message(), "request r: device class gpu does not exist");
    assert_eq!(rejected.code(), Code::UnschedulableAndUnresolvable);
    cluster.objects.insert(claim("mine", true));
    assert_eq!(cluster.rejections(&plugin, &pod), [""]);
}

#[test]
fn a_claim_whose_allocation_is_not_written_yet_is_waited_for() {
    let mut cluster = Cluster::of(vec![json!({"metadata": {"name": "n"}})], vec![]);
    let Object::ResourceClaim(decided) = claim("mine", true) else { unreachable!() };
    cluster.objects.insert(claim("mine", false));
    cluster.shared.claims.signal_pending("mine".into(), decided);
    let pod = info_of(json!({
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"resourceClaims": [{"name": "c", "resourceClaimName": "mine"}]},
    }));
    let plugin = plugin(build, &ProfileArgs::default());
    let wait = "resource claim default/mine is in the process of being allocated";
    assert_eq!(cluster.filter(&plugin, &pod).unwrap_err().message(), wait);
    // The pods of a group share what is decided in their cycle, and nothing else.
    cluster.shared.group_cycle = Some(GroupCycle::default());
    assert_eq!(cluster.filter(&plugin, &pod).unwrap_err().message(), wait);
    let group = cluster.shared.group_cycle.as_mut().unwrap();
    group.pending_claims.insert("mine".into());
    assert_eq!(cluster.rejections(&plugin, &pod), [""]);
}

#[test]
fn a_claim_that_was_freed_helps_any_pod() {
    let mut cluster = Cluster::default();
    let plugin = plugin(build, &ProfileArgs::default());
    let pod = info_of(json!({
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"resourceClaims": [{"name": "c", "resourceClaimName": "mine"}]},
    }));
    let hint = |cluster: &Cluster, old, new| cluster.hint(&plugin, &pod, old, new);
    let freed = (Some(claim("other", true)), Some(claim("other", false)));
    // No claim event helps a pod whose claims do not resolve.
    assert_eq!(hint(&cluster, freed.0.clone(), freed.1.clone()), QueueingHint::Skip);
    cluster.objects.insert(claim("mine", false));
    assert_eq!(hint(&cluster, freed.0, freed.1), QueueingHint::Queue);
    assert_eq!(hint(&cluster, None, Some(claim("mine", false))), QueueingHint::Queue);
    assert_eq!(hint(&cluster, None, Some(claim("other", false))), QueueingHint::Skip);
    let unchanged = Some(claim("mine", false));
    assert_eq!(hint(&cluster, unchanged.clone(), unchanged), QueueingHint::Skip);
}

/// PreEnqueue's message for a pod with this reference and this status, and a claim `mine` with
/// an owner and a deletion timestamp.
fn gate(reference: serde_json::Value, status: serde_json::Value, owner: &str) -> String {
    let mut cluster = Cluster::default();
    let mut claim = claim("mine", false);
    let owner = json!([{"uid": owner, "controller": true}]);
    claim.metadata_mut().owner_references = serde_json::from_value(owner).unwrap();
    cluster.objects.insert(claim);
    let plugin = plugin(build, &ProfileArgs::default());
    let mut reference = reference;
    reference["name"] = json!("c");
    let pod = info_of(json!({
        "metadata": {"name": "p", "namespace": "default", "uid": "u"},
        "spec": {"resourceClaims": [reference]}, "status": {"resourceClaimStatuses": status},
    }));
    plugin.pre_enqueue(&cluster.queue(), &pod).message()
}

#[test]
fn a_claim_from_a_template_must_be_there_and_be_the_pods_own() {
    let template = || json!({"resourceClaimTemplateName": "t"});
    let made = || json!([{"name": "c", "resourceClaimName": "mine"}]);
    assert_eq!(gate(template(), made(), "u"), "");
    assert_eq!(gate(template(), json!([{"name": "c"}]), "u"), "");
    assert_eq!(
        gate(template(), json!([]), "u"),
        "pod \"default/p\": ResourceClaim not created yet"
    );
    assert_eq!(
        gate(template(), made(), "other"),
        "ResourceClaim default/mine was not created for Pod default/p (Pod is not owner)"
    );
    // The owner does not matter for a claim that the pod references by name.
    assert_eq!(gate(json!({"resourceClaimName": "mine"}), json!([]), "other"), "");
    assert_eq!(
        gate(json!({}), json!([]), "u"),
        "pod \"default/p\", spec.resourceClaim \"c\": none of the supported fields are set"
    );
}

#[test]
fn a_claim_that_is_being_deleted_cannot_be_used() {
    let mut cluster = Cluster::default();
    let mut leaving = claim("mine", false);
    leaving.metadata_mut().deletion_timestamp = Some(kubestep_api::Time(1));
    cluster.objects.insert(leaving);
    let pod = info_of(json!({
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"resourceClaims": [{"name": "c", "resourceClaimName": "mine"}]},
    }));
    let plugin = plugin(build, &ProfileArgs::default());
    let rejected = plugin.pre_enqueue(&cluster.queue(), &pod);
    assert_eq!(rejected.message(), "resourceclaim \"mine\" is being deleted");
}

/// PreFilter's rejection of a claim with this request; if there is none, Filter's on the only
/// node, which has a device `a` of driver `d`.
fn rejection(request: serde_json::Value) -> Status {
    let mut cluster = Cluster::of(vec![json!({"metadata": {"name": "n"}})], vec![]);
    let kinds = [
        (
            "ResourceClaim",
            json!({
                "metadata": {"name": "mine", "namespace": "default", "uid": "mine"},
                "spec": {"devices": {"requests": [request]}},
            }),
        ),
        (
            "DeviceClass",
            json!({
                "metadata": {"name": "broken"},
                "spec": {"selectors": [{"cel": {"expression": "device.attributes[\"d\"].x"}}]},
            }),
        ),
        ("DeviceClass", json!({"metadata": {"name": "gpu"}})),
        (
            "ResourceSlice",
            json!({
                "metadata": {"name": "s"},
                "spec": {
                    "driver": "d", "nodeName": "n", "devices": [{"name": "a"}, {"name": "a2"}],
                    "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
                },
            }),
        ),
    ];
    for (kind, mut json) in kinds {
        json["kind"] = json!(kind);
        cluster.objects.insert(object(json));
    }
    let pod = info_of(json!({
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"resourceClaims": [{"name": "c", "resourceClaimName": "mine"}]},
    }));
    match cluster.filter(&plugin(build, &ProfileArgs::default()), &pod) {
        Err(status) => status,
        Ok(statuses) => statuses[0].clone(),
    }
}

#[test]
fn requests_are_checked_before_and_devices_on_each_node() {
    let exactly = |class: &str, count: i64| {
        json!({"name": "r", "exactly": {
            "deviceClassName": class, "allocationMode": "ExactCount", "count": count,
        }})
    };
    let rejected = |request| {
        let status = rejection(request);
        (status.code(), status.message())
    };
    let unresolvable = |text: &str| (Code::UnschedulableAndUnresolvable, text.to_owned());
    let error = |text: &str| (Code::Error, text.to_owned());
    assert!(rejection(exactly("gpu", 2)).is_success());
    assert_eq!(rejected(exactly("gpu", 3)), unresolvable("cannot allocate all claims"));
    assert_eq!(rejected(exactly("", 1)), error("request r: unsupported request type"));
    assert_eq!(
        rejected(json!({"name": "r"})),
        unresolvable("resource claim default/mine, request r: unknown request type")
    );
    let list = json!({"name": "r", "firstAvailable": [{"name": "s", "deviceClassName": "none"}]});
    assert_eq!(rejected(list), unresolvable("request r/s: device class none does not exist"));
    assert_eq!(
        rejected(exactly("broken", 1)),
        error("class broken: selector #0: CEL runtime error: no such key: x")
    );
    assert_eq!(
        rejected(exactly("gpu", 33)),
        error("claim default/mine: number of requested devices 33 exceeds the claim limit of 32")
    );
}

#[test]
fn only_what_concerns_the_pods_claims_or_frees_devices_helps() {
    let mut cluster = Cluster::default();
    cluster.objects.insert(claim("mine", false));
    let plugin = plugin(build, &ProfileArgs::default());
    let pod = info_of(json!({
        "metadata": {"name": "p", "namespace": "default", "uid": "u"},
        "spec": {"resourceClaims": [{"name": "c", "resourceClaimName": "mine"}]},
    }));
    let hint = |old: Option<Object>, new: Object| cluster.hint(&plugin, &pod, old, Some(new));
    assert_eq!(hint(None, claim("mine", false)), QueueingHint::Queue);
    assert_eq!(hint(None, claim("other", false)), QueueingHint::Skip);
    assert_eq!(hint(Some(claim("mine", false)), claim("mine", true)), QueueingHint::Queue);
    assert_eq!(hint(Some(claim("other", false)), claim("other", true)), QueueingHint::Skip);
    assert_eq!(hint(Some(claim("other", true)), claim("other", false)), QueueingHint::Queue);
    let mut marked = claim("mine", false);
    marked.metadata_mut().finalizers = vec!["foo".into()];
    assert_eq!(hint(Some(claim("mine", false)), marked), QueueingHint::Skip);
    // An update of a pod helps only that pod.
    let other = kubestep_framework::testing::pod("p");
    assert_eq!(hint(None, other.into()), QueueingHint::Skip);
    assert_eq!(hint(None, pod.pod.clone().into()), QueueingHint::Queue);
}

#[test]
fn up_to_1_35_a_search_that_takes_too_long_rejects_the_node() {
    let status = [35, 36].map(|minor| {
        let gates = FeatureGates::of(KubeVersion::of_minor(minor).unwrap());
        let status = DeviceReason::Failed(AllocationError::TimedOut).rejection("n".into(), &gates);
        (status.code(), status.message())
    });
    let text = "timed out trying to allocate devices".to_owned();
    let failed = (Code::Error, format!("node n: {text}"));
    assert_eq!(status, [(Code::UnschedulableAndUnresolvable, text), failed]);
}

/// A node with these devices, which serve example.com/gpu.
fn with_devices(devices: &[&str]) -> Cluster {
    let mut cluster = Cluster::of(vec![json!({"metadata": {"name": "n"}})], vec![]);
    let devices: Vec<_> = devices.iter().map(|name| json!({"name": name})).collect();
    for json in [
        json!({
            "kind": "DeviceClass", "metadata": {"name": "gpu"},
            "spec": {"extendedResourceName": "example.com/gpu"},
        }),
        json!({"kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": {
            "driver": "d", "nodeName": "n", "devices": devices,
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        }}),
    ] {
        cluster.objects.insert(object(json));
    }
    cluster
}

/// A pod that requests one example.com/gpu.
fn requesting() -> Arc<PodInfo> {
    let container = json!({"name": "main", "resources": {"requests": {"example.com/gpu": "1"}}});
    info_of(json!({
        "metadata": {"name": "p", "namespace": "default", "uid": "u"},
        "spec": {"containers": [container]},
    }))
}

#[test]
fn the_claim_for_extended_resources_is_created_before_the_binding() {
    let (mut cluster, pod) = (with_devices(&["a"]), requesting());
    let plugin = plugin(build, &ProfileArgs::default());
    let (mut state, mut host) = (CycleState::default(), FakeHost::default());
    assert!(plugin.pre_filter(&cluster.cx(&pod), &mut state).status.is_success());
    assert!(plugin.filter(&cluster.cx(&pod), &state, cluster.node("n")).is_success());
    let mut cx = cluster.binding(&pod, "n", &mut host);
    assert!(plugin.reserve(&mut cx, &mut state).is_success());
    assert_eq!(plugin.pre_bind(&mut cx, &mut state), Status::SUCCESS);
    let created = host.asked.iter().find_map(|asked| match asked {
        Asked::Create(Object::ResourceClaim(claim)) => Some(claim.metadata.generate_name.clone()),
        _ => None,
    });
    assert_eq!(created, Some("p-extended-resources-".into()));
}

#[test]
fn a_write_without_an_answer_is_repeated_as_it_was() {
    let mut cluster = with_devices(&["a"]);
    cluster.objects.insert(claim("mine", false));
    let pod = info_of(json!({
        "metadata": {"name": "p", "namespace": "default", "uid": "u"},
        "spec": {"resourceClaims": [{"name": "c", "resourceClaimName": "mine"}]},
    }));
    let plugin = plugin(build, &ProfileArgs::default());
    let mut state = CycleState::default();
    assert!(plugin.pre_filter(&cluster.cx(&pod), &mut state).status.is_success());
    assert!(plugin.filter(&cluster.cx(&pod), &state, cluster.node("n")).is_success());
    let mut host = FakeHost { unanswered: 1, ..FakeHost::default() };
    let mut cx = cluster.binding(&pod, "n", &mut host);
    assert!(plugin.reserve(&mut cx, &mut state).is_success());
    assert!(plugin.pre_bind(&mut cx, &mut state).is_wait());
    assert_eq!(plugin.pre_bind(&mut cx, &mut state), Status::SUCCESS);
    let written = host.asked.iter().filter_map(|asked| match asked {
        Asked::Update(Object::ResourceClaim(claim)) => Some(claim),
        _ => None,
    });
    let written: Vec<_> = written.collect();
    let finalizer = "resource.kubernetes.io/delete-protection";
    assert_eq!(written[0].metadata.finalizers, [finalizer]);
    assert_eq!(written[1], written[0]);
    assert!(written[2].status.allocation.is_some());
}

/// PostFilter's message for a pod that no device is left for, and what it asked for.
fn post_filter(cluster: &Cluster) -> (String, Vec<Asked>) {
    let (plugin, pod) = (plugin(build, &ProfileArgs::default()), requesting());
    let (cycle, mut state) = (cluster.cx(&pod), CycleState::default());
    assert!(plugin.pre_filter(&cycle, &mut state).status.is_success());
    assert!(!plugin.filter(&cycle, &state, cluster.node("n")).is_success());
    let mut host = FakeHost::default();
    let mut cx = PostFilterContext {
        cycle,
        framework: &cpu_fit(),
        statuses: &NodeStatuses::default(),
        host: &mut host,
        kept: None,
    };
    let answer = plugin.post_filter(&mut cx, &state);
    (answer.status.message(), host.asked)
}

#[test]
fn only_a_claim_for_extended_resources_that_was_created_is_deleted() {
    let mut cluster = with_devices(&[]);
    assert_eq!(post_filter(&cluster), ("still not schedulable".into(), vec![]));
    let owner = json!({
        "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": true,
    });
    cluster.objects.insert(object(json!({
        "kind": "ResourceClaim",
        "metadata": {
            "name": "left", "namespace": "default", "uid": "left", "ownerReferences": [owner],
            "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
        },
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
    })));
    let deleted =
        ("deletion of ResourceClaim completed".into(), vec![Asked::DeleteClaim(key("left"))]);
    assert_eq!(post_filter(&cluster), deleted);
}

#[test]
fn a_claim_is_reserved_for_the_pod_of_that_uid() {
    let claim: kubestep_api::ResourceClaim = decoded(json!({
        "metadata": {"name": "c"},
        "status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]},
    }));
    let is_reserved_for = |uid: &str| {
        let pod = info_of(json!({"metadata": {"name": "p", "namespace": "default", "uid": uid}}));
        is_reserved_for_pod_or_group(&claim, &pod.pod, &FeatureGates::default())
    };
    assert!(is_reserved_for("u"));
    assert!(!is_reserved_for("an older pod of that name"));
}
