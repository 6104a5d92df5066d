//! Devices from the claim to the bound pod, with the writes in between.

use serde_json::{Value, json};

use crate::World;
use kubestep_api::intern::Symbol;
use kubestep_api::{Kind, Pod, ResourceClaim};
use kubestep_config as config;
use kubestep_config::FeatureGates;
use kubestep_framework::record::{Outcome, QueueName};
use kubestep_framework::testing::{PodBuilder, key, node, object, pod};

const HELD_BY_HAND: &str = "
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {permit: {enabled: [{name: ManualPermit}]}}
  pluginConfig:
  - name: ManualPermit
    args: {selector: {matchLabels: {held: by-hand}}}
";

/// Nodes `n1` and `n2`; the class `gpu`, which serves example.com/gpu; `devices` on `n1`.
fn world(config: Option<&str>, devices: Value) -> World {
    let (registry, features) = (kubestep_plugins::registry(), FeatureGates::default());
    let config = config::resolve(config, &features, &registry.descriptors()).unwrap();
    let mut world = World::new(&config, features, &registry).unwrap();
    world.create(node("n1").into());
    world.create(node("n2").into());
    world.create(object(json!({
        "kind": "DeviceClass", "metadata": {"name": "gpu"},
        "spec": {
            "selectors": [{"cel": {"expression": "device.driver == \"d\""}}],
            "extendedResourceName": "example.com/gpu",
        },
    })));
    world.create(object(json!({
        "kind": "ResourceSlice", "metadata": {"name": "s"},
        "spec": {
            "driver": "d", "nodeName": "n1", "devices": devices,
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        },
    })));
    world
}

fn claim(name: &str, status: Value) -> kubestep_api::Object {
    object(json!({
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
        "status": status,
    }))
}

fn user(name: &str, claim: &str) -> Pod {
    pod(name).spec(json!({"resourceClaims": [{"name": "c", "resourceClaimName": claim}]}))
}

fn claim_now(world: &World, name: &str) -> ResourceClaim {
    world.api().objects().resource_claims.get(&key(name)).unwrap().as_ref().clone()
}

/// The devices of a claim, and its users.
fn allocated(world: &World, name: &str) -> (Vec<&'static str>, Vec<String>) {
    let status = claim_now(world, name).status;
    let results = status.allocation.into_iter().flat_map(|allocation| allocation.devices.results);
    let users = status.reserved_for.iter().map(|user| user.name.to_string()).collect();
    (results.map(|result| result.device.as_str()).collect(), users)
}

#[test]
fn claims_are_allocated_reserved_and_shared() {
    let mut world = world(None, json!([{"name": "a"}, {"name": "b"}]));
    for name in ["one", "two", "three"] {
        world.create(claim(name, json!({})));
    }
    for (name, claim) in [("p1", "one"), ("p2", "two"), ("p3", "one"), ("p4", "three")] {
        world.create(user(name, claim).into());
    }
    let records = world.run(4);
    let nodes: Vec<_> = records.iter().map(|record| record.node).collect();
    let first = Some("n1".into());
    assert_eq!(nodes, [first, first, first, None]);
    assert_eq!(allocated(&world, "one"), (vec!["a"], vec!["p1".to_owned(), "p3".to_owned()]));
    assert_eq!(allocated(&world, "two"), (vec!["b"], vec!["p2".to_owned()]));
    let written = claim_now(&world, "one");
    assert_eq!(
        written.metadata.finalizers[..],
        [Symbol::new("resource.kubernetes.io/delete-protection")]
    );
    let allocation = written.status.allocation.unwrap();
    let selector = serde_json::to_value(allocation.node_selector).unwrap();
    let only_n1 = json!({"key": "metadata.name", "operator": "In", "values": ["n1"]});
    assert_eq!(selector, json!({"nodeSelectorTerms": [{"matchFields": [only_n1]}]}));
    assert_eq!(allocation.allocation_timestamp.unwrap().0 % 1_000_000, 0);
    assert_eq!(
        records[3].message,
        "0/2 nodes are available: 2 cannot allocate all claims. still not schedulable, \
         preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    );
    // Devices that become free requeue the pod.
    assert_eq!(world.scheduler().queue().queue_of(key("p4")), QueueName::Unschedulable);
    world.update(claim("two", json!({})));
    world.advance(2_000_000);
    assert_eq!(world.step().unwrap().node, Some("n1".into()));
    assert_eq!(allocated(&world, "three"), (vec!["b"], vec!["p4".to_owned()]));
}

#[test]
fn a_claim_that_is_being_allocated_is_not_for_others() {
    let mut world = world(Some(HELD_BY_HAND), json!([{"name": "a"}, {"name": "b"}]));
    world.create(claim("one", json!({})));
    world.create(claim("two", json!({})));
    world.create(user("held", "one").label("held", "by-hand").into());
    assert_eq!(world.step().unwrap().outcome, Outcome::Waiting);
    assert_eq!(allocated(&world, "one"), (vec![], vec![]));
    world.create(user("same", "one").into());
    let message = world.step().unwrap().message.clone();
    let expected = "resource claim default/one is in the process of being allocated";
    assert!(message.contains(expected), "{message}");
    // An allocated but unwritten device is not free either.
    world.create(user("other", "two").into());
    assert_eq!(world.step().unwrap().node, Some("n1".into()));
    assert_eq!(allocated(&world, "two").0, ["b"]);
    // A rejection releases it.
    let uid = world.scheduler().waiting()[0].pod().uid();
    assert!(world.reject(uid, "ManualPermit".into(), "no"));
    world.create(claim("three", json!({})));
    world.create(user("late", "three").into());
    world.run(5);
    assert_eq!(allocated(&world, "three").0, ["a"]);
}

/// A device that has to be prepared, and a pod that waits for it.
fn waiting_world() -> World {
    let devices = json!([{
        "name": "a", "bindingConditions": ["Ready"], "bindingFailureConditions": ["Broken"],
    }]);
    let mut world = world(None, devices);
    world.create(claim("one", json!({})));
    world.create(user("p", "one").into());
    world.api_mut().take_events();
    assert_eq!(world.step().unwrap().outcome, Outcome::Waiting);
    let note = "waiting for binding conditions for device on node n1";
    assert_eq!(world.api_mut().take_events()[0].note, note);
    assert_eq!(world.scheduler().waiting()[0].in_pre_bind(), Some("DynamicResources".into()));
    world
}

/// The driver's report on the device of claim `one`.
fn report(world: &mut World, condition: &str) {
    let mut claim = claim_now(world, "one");
    let device = json!([{"driver": "d", "pool": "p", "device": "a", "conditions": [
        {"type": condition, "status": "True", "reason": "Because", "message": "so"},
    ]}]);
    claim.status.devices = serde_json::from_value(device).unwrap();
    world.update(claim.into());
}

/// The outcome and message of a wait at PreBind.
fn ending(world: &mut World) -> (Outcome, String) {
    let finished = world.scheduler_mut().take_finished();
    assert!(world.scheduler().waiting().is_empty());
    (finished[0].outcome, finished[0].message.clone())
}

#[test]
fn binding_waits_until_the_device_is_ready() {
    let mut world = waiting_world();
    world.advance(5_000_000);
    assert_eq!(world.scheduler().waiting().len(), 1);
    report(&mut world, "Ready");
    world.advance(4_999_999);
    assert_eq!(world.scheduler().waiting().len(), 1);
    world.advance(1);
    assert_eq!(ending(&mut world).0, Outcome::Scheduled);
    assert_eq!(world.api().objects().pod(key("p")).unwrap().spec.node_name, "n1");
}

#[test]
fn a_broken_device_ends_the_binding_and_the_claim_is_given_up() {
    let mut world = waiting_world();
    report(&mut world, "Broken");
    world.advance(5_000_000);
    let text = "running PreBind plugin \"DynamicResources\": device binding failed: claim=one, \
                reason=Because, message=\"so\"";
    assert_eq!(ending(&mut world), (Outcome::SchedulerError, text.to_owned()));
    assert_eq!(allocated(&world, "one"), (vec!["a"], vec![]));
    world.advance(10_000_000);
    let message = world.step().unwrap().message.clone();
    assert!(message.contains("deallocation of ResourceClaim completed"), "{message}");
    assert_eq!(allocated(&world, "one"), (vec![], vec![]));
}

#[test]
fn a_device_that_never_gets_ready_ends_the_binding_too() {
    let mut world = waiting_world();
    world.advance(600_000_000);
    let text = "running PreBind plugin \"DynamicResources\": device binding timeout: ";
    let (outcome, message) = ending(&mut world);
    assert_eq!(outcome, Outcome::SchedulerError);
    assert!(message.starts_with(text), "{message}");
}

#[test]
fn a_claim_on_the_wrong_node_is_deallocated() {
    let mut world = world(None, json!([{"name": "a"}]));
    let only_n2 = json!({"key": "metadata.name", "operator": "In", "values": ["n2"]});
    let result = json!({"request": "r", "driver": "d", "pool": "p", "device": "a"});
    world.create(claim(
        "one",
        json!({"allocation": {
            "devices": {"results": [result]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [only_n2]}]},
        }}),
    ));
    let user = user("p", "one");
    let mut on_n1 = user.clone();
    on_n1.spec.node_selector =
        serde_json::from_value(json!({"kubernetes.io/hostname": "n1"})).unwrap();
    world.create(on_n1.into());
    assert_eq!(
        world.step().unwrap().message,
        "0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 \
         resourceclaim not available on the node. deallocation of ResourceClaim completed, \
         preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    );
    world.advance(2_000_000);
    assert_eq!(world.step().unwrap().node, Some("n1".into()));
    assert_eq!(allocated(&world, "one"), (vec!["a"], vec!["p".to_owned()]));
}

/// PreBind waits until the informer lists the claim that the plugin created.
#[test]
fn a_claim_for_extended_resources_waits_for_its_devices_too() {
    let mut world = world(None, json!([{"name": "a", "bindingConditions": ["Ready"]}]));
    world.create(pod("p").requests("example.com/gpu", "1").into());
    assert_eq!(world.step().unwrap().outcome, Outcome::Waiting);
    let claim = *world.api().objects().resource_claims.keys().next().unwrap();
    world.advance(5_000_000);
    assert_eq!(world.scheduler().waiting().len(), 1);
    world.delete(Kind::ResourceClaim, claim);
    world.advance(5_000_000);
    let text = format!("could not find ResourceClaim \"{claim}\"");
    let (outcome, message) = ending(&mut world);
    assert_eq!(outcome, Outcome::SchedulerError);
    assert!(message.ends_with(&text), "{message}");
}

#[test]
fn devices_stand_in_for_an_extended_resource() {
    let mut world = world(None, json!([{"name": "a"}, {"name": "b"}]));
    world.create(pod("p").requests("example.com/gpu", "2").into());
    let record = world.step().unwrap();
    assert_eq!((record.outcome, record.node), (Outcome::Scheduled, Some("n1".into())));
    let pod = world.api().objects().pod(key("p")).unwrap().clone();
    let status = pod.status.extended_resource_claim_status.clone().unwrap();
    let name = status.resource_claim_name;
    assert!(name.text().starts_with("p-extended-resources-"), "{name}");
    assert_eq!(allocated(&world, &name.text()), (vec!["a", "b"], vec!["p".to_owned()]));
    let mapping = serde_json::to_value(&status.request_mappings).unwrap();
    let expected = json!({
        "containerName": "main", "resourceName": "example.com/gpu",
        "requestName": "container-0-request-0",
    });
    assert_eq!(mapping, json!([expected]));
    let claim = claim_now(&world, &name.text());
    assert_eq!(claim.metadata.controller().unwrap().uid, pod.metadata.uid);
    // No device is left for another pod.
    let another = kubestep_framework::testing::pod;
    world.create(another("q").requests("example.com/gpu", "1").into());
    assert_eq!(world.step().unwrap().outcome, Outcome::Unschedulable);
    assert!(world.delete(Kind::ResourceClaim, key(&name.text())));
}

#[test]
fn a_claim_left_behind_by_a_failed_binding_is_deleted_first() {
    let mut world = world(None, json!([{"name": "a"}]));
    let waiting = pod("p").requests("example.com/gpu", "1");
    world.create(object(json!({
        "kind": "ResourceClaim",
        "metadata": {
            "name": "left", "namespace": "default", "uid": "left",
            "finalizers": ["resource.kubernetes.io/delete-protection"],
            "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
            "ownerReferences": [{"name": "p", "uid": waiting.metadata.uid, "controller": true}],
        },
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
    })));
    world.create(waiting.into());
    assert_eq!(
        world.step().unwrap().message,
        "0/2 nodes are available: 2 cannot schedule extended resource claim. deletion of \
         ResourceClaim completed, preemption: 0/2 nodes are available: 2 Preemption is not \
         helpful for scheduling."
    );
    assert!(world.api().objects().resource_claims.is_empty());
}

/// The API server does not accept a second reservation for the same pod, and the nomination, which
/// was written before, does not stay: seen with kube-scheduler 1.36.2 and its API server.
#[test]
fn a_pod_that_names_a_claim_twice_fails_and_loses_its_nomination() {
    let mut world = world(None, json!([{"name": "a"}, {"name": "b"}]));
    world.create(claim("one", json!({})));
    let twice = json!({"resourceClaims": [
        {"name": "c", "resourceClaimName": "one"}, {"name": "d", "resourceClaimName": "one"},
    ]});
    world.create(pod("p").spec(twice).into());
    let mut attempt = || {
        let record = world.step().unwrap();
        assert_eq!(record.outcome, Outcome::SchedulerError);
        let pod = world.api().objects().pod(key("p")).unwrap().clone();
        assert!(pod.status.nominated_node_name.is_empty());
        world.advance(60_000_000);
        record.message.to_string()
    };
    let failed = "running PreBind plugin \"DynamicResources\": ";
    let elsewhere = "claim default/one got allocated elsewhere in the meantime";
    assert_eq!(attempt(), format!("{failed}{elsewhere}"));
    let duplicate = "add reservation to claim default/one: ResourceClaim.resource.k8s.io \"one\" is \
                     invalid: status.reservedFor[1]: Duplicate value: \"default-p\"";
    assert_eq!(attempt(), format!("{failed}{duplicate}"));
}

#[test]
fn a_claim_has_at_most_256_users() {
    let mut world = world(None, json!([{"name": "a"}]));
    let users: Vec<Value> = (0..256)
        .map(|at| json!({"resource": "pods", "name": "u", "uid": at.to_string()}))
        .collect();
    let result = json!({"request": "r", "driver": "d", "pool": "p", "device": "a"});
    let allocation = json!({"devices": {"results": [result]}});
    world.create(claim("one", json!({"allocation": allocation, "reservedFor": users})));
    world.create(user("p", "one").into());
    let message = world.step().unwrap().message.to_string();
    let too_many = "status.reservedFor: Too many: 257: must have at most 256 items";
    assert!(message.ends_with(too_many), "{message}");
}

/// An error puts the pod into backoff, so it is tried again soon.
#[test]
fn a_claim_that_cannot_be_written_is_tried_again_soon() {
    let mut world = world(None, json!([{"name": "a"}]));
    world.mirror_remote();
    world.accept(pod("p").requests("example.com/gpu", "1").into());
    assert_eq!(world.step().unwrap().outcome, Outcome::Waiting);
    for open in world.api_mut().take_outbox() {
        world.answer(open.ticket, Err("not today".into()));
    }
    let text = "running PreBind plugin \"DynamicResources\": create claim for extended resources \
                default/: not today";
    assert_eq!(ending(&mut world), (Outcome::SchedulerError, text.into()));
    assert_eq!(world.scheduler().queue().queue_of(key("p")), QueueName::Backoff);
    world.detach();
    world.advance(10_000_000);
    assert_eq!(world.step().unwrap().outcome, Outcome::Scheduled);
}
