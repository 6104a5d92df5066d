//! Devices behind feature gates that are off by default: taint rules, claims of whole pod groups,
//! and devices that represent the node's own resources.

use serde_json::{Value, json};

use crate::World;
use kubestep_api::{Kind, Object, Pod, ResourceClaim};
use kubestep_config as config;
use kubestep_config::FeatureGates;
use kubestep_framework::record::{CycleRecord, Outcome, QueueName};
use kubestep_framework::testing::{PodBuilder, key, node, object, pod};

/// The node `n1` with these devices of class `gpu`, under these feature gates.
fn world(gates: &str, devices: Value) -> World {
    let (registry, features) = (kubestep_plugins::registry(), FeatureGates::parse(gates).unwrap());
    let config = config::resolve(None, &features, &registry.descriptors()).unwrap();
    let mut world = World::new(&config, features, &registry).unwrap();
    world.create(node("n1").into());
    world.create(object(json!({"kind": "DeviceClass", "metadata": {"name": "gpu"}})));
    world.create(object(json!({
        "kind": "ResourceSlice", "metadata": {"name": "s"},
        "spec": {
            "driver": "d", "nodeName": "n1", "devices": devices,
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        },
    })));
    world
}

fn claim(name: &str, owner: Value) -> Object {
    object(json!({
        "kind": "ResourceClaim",
        "metadata": {
            "name": name, "namespace": "default", "uid": name, "ownerReferences": owner,
        },
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
    }))
}

fn user(name: &str, claim: &str) -> Pod {
    pod(name).spec(json!({"resourceClaims": [{"name": "c", "resourceClaimName": claim}]}))
}

fn claim_now(world: &World, name: &str) -> ResourceClaim {
    world.api().objects().resource_claims.get(&key(name)).unwrap().as_ref().clone()
}

/// The users of a claim, as `resource/name`.
fn users(world: &World, name: &str) -> Vec<String> {
    let users = claim_now(world, name).status.reserved_for;
    users.iter().map(|user| format!("{}/{}", user.resource, user.name)).collect()
}

fn rule(effect: &str) -> Object {
    let taint = json!({"key": "k", "value": "v", "effect": effect});
    let spec = json!({"deviceSelector": {"driver": "d"}, "taint": taint});
    object(json!({"kind": "DeviceTaintRule", "metadata": {"name": "rule"}, "spec": spec}))
}

#[test]
fn a_rule_keeps_pods_off_devices_until_it_is_gone() {
    let mut world = world("DRADeviceTaintRules=true", json!([{"name": "a"}]));
    world.create(rule("NoSchedule"));
    world.create(claim("one", json!([])));
    world.create(user("p", "one").into());
    let record = world.step().unwrap();
    assert!(record.message.contains("cannot allocate all claims"), "{}", record.message);
    assert_eq!(world.scheduler().queue().queue_of(key("p")), QueueName::Unschedulable);
    // A rule that changes nothing for the devices requeues no pod.
    world.update(rule("NoSchedule"));
    assert_eq!(world.scheduler().queue().queue_of(key("p")), QueueName::Unschedulable);
    world.update(rule("None"));
    assert_eq!(world.scheduler().queue().queue_of(key("p")), QueueName::Backoff);
    world.advance(2_000_000);
    assert_eq!(world.step().unwrap().node, Some("n1".into()));
}

#[test]
fn a_deleted_rule_wakes_pods_and_without_the_gate_rules_do_not_count() {
    let mut gated = world("DRADeviceTaintRules=true", json!([{"name": "a"}]));
    gated.create(rule("NoExecute"));
    gated.create(claim("one", json!([])));
    gated.create(user("p", "one").into());
    assert_eq!(gated.step().unwrap().outcome, Outcome::Unschedulable);
    assert!(gated.delete(Kind::DeviceTaintRule, key("/rule")));
    assert_eq!(gated.scheduler().queue().queue_of(key("p")), QueueName::Backoff);
    let mut plain = world("", json!([{"name": "a"}]));
    plain.create(rule("NoExecute"));
    plain.create(claim("one", json!([])));
    plain.create(user("p", "one").into());
    assert_eq!(plain.step().unwrap().outcome, Outcome::Scheduled);
}

const GROUPS: &str = "GenericWorkload=true,GangScheduling=true,DRAWorkloadResourceClaims=true";

fn group(claims: Value, statuses: Value) -> Object {
    object(json!({
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default", "uid": "g"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}, "resourceClaims": claims},
        "status": {"resourceClaimStatuses": statuses},
    }))
}

fn member(name: &str, claim: Value) -> Pod {
    let mut claim = claim;
    claim["name"] = json!("c");
    let group = json!({"podGroupName": "g"});
    pod(name).spec(json!({"schedulingGroup": group, "resourceClaims": [claim]}))
}

fn shared() -> Value {
    json!({"name": "c", "resourceClaimName": "one"})
}

/// One step: the records of all pods that took part.
fn step(world: &mut World) -> Vec<CycleRecord> {
    let first = world.step().unwrap();
    let others = world.scheduler_mut().take_finished();
    std::iter::once((*first).clone()).chain(others).collect()
}

/// The outcomes of a step; errors are replaced by their messages.
fn outcomes(world: &mut World) -> Vec<String> {
    let outcome = |record: &CycleRecord| match record.outcome {
        Outcome::SchedulerError => record.message.clone(),
        other => other.as_str().to_owned(),
    };
    step(world).iter().map(outcome).collect()
}

#[test]
fn a_claim_of_the_group_is_reserved_for_the_group() {
    let mut world = world(GROUPS, json!([{"name": "a"}]));
    world.create(claim("one", json!([])));
    world.create(group(json!([shared()]), json!([])));
    for name in ["a", "b"] {
        world.create(member(name, json!({"resourceClaimName": "one"})).into());
    }
    // Both share the device in the group's cycle. Only the first to bind can write the allocation;
    // the other one finds it in its next attempt.
    let late = "running PreBind plugin \"DynamicResources\": claim default/one got allocated \
                elsewhere in the meantime";
    assert_eq!(outcomes(&mut world), ["Scheduled", late]);
    assert_eq!(users(&world, "one"), ["podgroups/g"]);
    world.advance(2_000_000);
    assert_eq!(outcomes(&mut world), ["Scheduled"]);
    assert_eq!(users(&world, "one"), ["podgroups/g"]);
    let reference = &claim_now(&world, "one").status.reserved_for[0];
    assert_eq!((reference.api_group, reference.uid), ("scheduling.k8s.io".into(), "g".into()));
}

#[test]
fn another_claim_is_reserved_for_each_pod() {
    let reserved = |gates: &str, claims: Value| {
        let mut world = world(gates, json!([{"name": "a"}]));
        world.create(claim("one", json!([])));
        world.create(group(claims, json!([])));
        for name in ["a", "b"] {
            world.create(member(name, json!({"resourceClaimName": "one"})).into());
        }
        step(&mut world);
        users(&world, "one")
    };
    assert_eq!(reserved(GROUPS, json!([])), ["pods/a"]);
    let renamed = json!([{"name": "other", "resourceClaimName": "one"}]);
    assert_eq!(reserved(GROUPS, renamed), ["pods/a"]);
    let without = "GenericWorkload=true,GangScheduling=true";
    assert_eq!(reserved(without, json!([shared()])), ["pods/a"]);
}

/// The rejection message of a pod in a group whose claim comes from a template.
fn held(gates: &str, owner: Value) -> String {
    let mut world = world(gates, json!([{"name": "a"}]));
    world.create(claim("one", owner));
    let template = json!({"resourceClaimTemplateName": "t"});
    world.create(group(json!([]), json!([])));
    let mut pod = member("a", template);
    pod.status.resource_claim_statuses =
        serde_json::from_value(json!([{"name": "c", "resourceClaimName": "one"}])).unwrap();
    world.create(member("b", json!({"resourceClaimName": "one"})).into());
    world.create(pod.into());
    let queued = world.scheduler().queue().get(key("a")).unwrap();
    queued.gating_message.map_or_else(String::new, |text| text.to_string())
}

#[test]
fn a_claim_from_a_template_may_belong_to_the_group() {
    let by_group = |version: &str, kind: &str, name: &str| json!([{"apiVersion": version, "kind": kind, "name": name, "uid": "g", "controller": true}]);
    let own = by_group("scheduling.k8s.io/v1alpha2", "PodGroup", "g");
    assert_eq!(held(GROUPS, own.clone()), "");
    let missing = "ResourceClaim default/one was not created for Pod default/a (neither Pod nor \
                   PodGroup g is the owner)";
    assert_eq!(held(GROUPS, by_group("scheduling.k8s.io/v1alpha2", "PodGroup", "h")), missing);
    assert_eq!(held(GROUPS, by_group("apps/v1", "PodGroup", "g")), missing);
    assert_eq!(held(GROUPS, by_group("scheduling.k8s.io/v1alpha2", "Workload", "g")), missing);
    let without = "GenericWorkload=true,GangScheduling=true";
    let missing = "ResourceClaim default/one was not created for Pod default/a (Pod is not owner)";
    assert_eq!(held(without, own), missing);
}

/// PostFilter's message for a group with a claim on another node, reserved for the group.
fn gives_up(gates: &str, bound: bool) -> (String, usize) {
    let mut world = world(gates, json!([]));
    let mut reserved = claim("one", json!([]));
    let Object::ResourceClaim(claim) = &mut reserved else { panic!("no other case") };
    let elsewhere = json!({"nodeSelectorTerms": [{"matchFields": [
        {"key": "metadata.name", "operator": "In", "values": ["n9"]}]}]});
    std::sync::Arc::make_mut(claim).status = serde_json::from_value(json!({
        "allocation": {"devices": {}, "nodeSelector": elsewhere},
        "reservedFor": [
            {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "g"},
            {"resource": "pods", "name": "other", "uid": "other"},
        ],
    }))
    .unwrap();
    world.create(reserved);
    world.create(group(json!([shared()]), json!([])));
    if bound {
        world.create(member("bound", json!({"resourceClaimName": "one"})).on("n1").into());
    }
    for name in ["a", "b"] {
        world.create(member(name, json!({"resourceClaimName": "one"})).into());
    }
    let message = step(&mut world)[0].message.clone();
    (message, claim_now(&world, "one").status.reserved_for.len())
}

#[test]
fn a_group_without_a_placed_pod_gives_its_claim_up() {
    let (message, users) = gives_up(GROUPS, false);
    assert!(message.contains("ResourceClaim unreserved for PodGroup"), "{message}");
    assert_eq!(users, 1);
    let (message, users) = gives_up(GROUPS, true);
    assert!(message.contains("still not schedulable"), "{message}");
    assert_eq!(users, 2);
    let (message, users) = gives_up("GenericWorkload=true,GangScheduling=true", false);
    assert!(message.contains("still not schedulable"), "{message}");
    assert_eq!(users, 2);
}

#[test]
fn without_its_object_a_group_with_claims_cannot_be_tried() {
    let mut world = world("GenericWorkload=true,DRAWorkloadResourceClaims=true", json!([]));
    world.create(claim("one", json!([])));
    world.create(member("a", json!({"resourceClaimName": "one"})).into());
    let message = step(&mut world)[0].message.clone();
    let text = "0/1 nodes are available: podgroup.scheduling.k8s.io \"g\" not found.";
    assert!(message.starts_with(text), "{message}");
}

#[test]
fn devices_that_stand_for_cpu_count_on_the_node() {
    let cpus = |name: &str| {
        let mapping = json!({"cpu": {"allocationMultiplier": "3"}});
        json!({"name": name, "nodeAllocatableResourceMappings": mapping})
    };
    let mut world = world("DRANodeAllocatableResources=true", json!([cpus("a"), cpus("b")]));
    let uses = json!([{"name": "c1", "resources": {"claims": [{"name": "c"}]}}]);
    for (pod, name) in [("p1", "one"), ("p2", "two")] {
        world.create(claim(name, json!([])));
        world.create(user(pod, name).spec(json!({"containers": uses})).into());
    }
    assert_eq!(world.step().unwrap().outcome, Outcome::Scheduled);
    let written = world.api().objects().pod(key("p1")).unwrap().status.clone();
    let written = written.node_allocatable_resource_claim_statuses;
    assert_eq!((written.len(), written[0].resource_claim_name), (1, "one".into()));
    let node = world.scheduler().cache().nodes().find(|node| node.name == "n1").unwrap();
    assert_eq!((node.requested.milli_cpu, node.claim_users.len()), (3000, 1));
    // Three of the four do not fit again.
    let record = world.step().unwrap();
    let text = "0/1 nodes are available: 1 Insufficient cpu.";
    assert!(record.message.starts_with(text), "{}", record.message);
    // The plugin is not notified of deleted pods, but of claims that become free.
    assert!(world.delete(Kind::Pod, key("p1")));
    assert_eq!(world.scheduler().queue().queue_of(key("p2")), QueueName::Unschedulable);
    world.update(claim("one", json!([])));
    world.advance(2_000_000);
    assert_eq!(world.step().unwrap().outcome, Outcome::Scheduled);
}
