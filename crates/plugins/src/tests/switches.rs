//! Plugins with a switch and without it: hints, registrations and signatures. The switches of other
//! answers are tested where the plugin is.

use serde_json::{Value, json};

use super::*;
use kubestep_api::{Node, Object, Pod, ResourceSlice};
use kubestep_config::versions::{Switch, VersionChange};
use kubestep_framework::events::{Action, EventResource, QueueingHint, Registration};
use kubestep_framework::testing::{Cluster, decoded, info_of};

/// The default gates, and the same without the switch.
fn with_and_without(switch: Switch) -> [FeatureGates; 2] {
    let (with, older) = (FeatureGates::default(), switch.since().before().unwrap());
    [with, VersionChange::Switch(switch).applied(with, FeatureGates::of(older))]
}

/// The hints of the switch's plugin with and without it.
fn hints(
    switch: Switch,
    waiting: &Value,
    old: Option<Object>,
    new: Option<Object>,
) -> (Switch, [QueueingHint; 2]) {
    let hint = |features| {
        let cluster = Cluster { features, ..Cluster::default() };
        let plugin = built(switch.part().name(), &features);
        cluster.hint(&plugin, &info_of(waiting.clone()), old.clone(), new.clone())
    };
    (switch, with_and_without(switch).map(hint))
}

/// A pod in the namespace `d` with the label `app: APP`.
fn pod_json(name: &str, app: &str, spec: &Value) -> Value {
    let metadata = json!({"name": name, "namespace": "d", "uid": name, "labels": {"app": app}});
    json!({"metadata": metadata, "spec": spec})
}

fn pod(json: Value) -> Object {
    decoded::<Pod>(json).into()
}

/// The terms of an affinity of kind `kind` to pods with `app: web` in the same zone.
fn affinity(kind: &str) -> Value {
    let term = json!({"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}});
    json!({"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}})
}

fn spread() -> Value {
    json!({"topologySpreadConstraints": [{
        "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }]})
}

fn requests(list: Value) -> Value {
    json!({"containers": [{"name": "main", "resources": {"requests": list}}]})
}

#[test]
fn a_nominated_pod_counts_as_placed() {
    let port = json!({"containers": [{"name": "main", "ports": [{"hostPort": 80}]}]});
    let volume = json!({"volumes": [{"persistentVolumeClaim": {"claimName": "c"}}]});
    let cases = [
        (Switch::FitHintCountsNominated, requests(json!({"cpu": "1"})), true),
        (Switch::PortsHintCountsNominated, port, true),
        (Switch::VolumeLimitsHintCountsNominated, volume, true),
        (Switch::AffinityHintCountsNominated, affinity("podAffinity"), false),
        (Switch::SpreadHintCountsNominated, spread(), false),
    ];
    for (switch, spec, is_deletion) in cases {
        let mut nominated = pod_json("other", "web", &spec);
        nominated["status"] = json!({"nominatedNodeName": "n"});
        let nominated = Some(pod(nominated));
        let (old, new) = if is_deletion { (nominated, None) } else { (None, nominated) };
        let found = hints(switch, &pod_json("p", "web", &spec), old, new);
        assert_eq!(found, (switch, [QueueingHint::Queue, QueueingHint::Skip]));
    }
}

#[test]
fn an_update_of_a_node_is_compared_with_the_node_before() {
    let node = json!({
        "metadata": {"name": "n", "labels": {"zone": "a"}},
        "status": {"allocatable": {"cpu": "1", "pods": "9"}},
    });
    let node = Some(Object::from(decoded::<Node>(node)));
    for (switch, spec) in [
        (Switch::AffinityHintComparesTopology, affinity("podAffinity")),
        (Switch::SpreadHintComparesNode, spread()),
        (Switch::NodeAffinityHintComparesNode, json!({"nodeSelector": {"zone": "a"}})),
        (Switch::FitHintComparesRequests, requests(json!({"cpu": "1"}))),
        (Switch::UncordonRequeues, json!({})),
    ] {
        let found = hints(switch, &pod_json("p", "web", &spec), node.clone(), node.clone());
        assert_eq!(found, (switch, [QueueingHint::Skip, QueueingHint::Queue]));
    }
}

#[test]
fn a_change_of_the_pod_itself_requeues_it() {
    let own = |app: &str, spec: &Value| Some(pod(pod_json("p", app, spec)));
    for (switch, spec) in [
        (Switch::OwnLabelsRequeue, affinity("podAntiAffinity")),
        (Switch::SpreadHintComparesNode, spread()),
    ] {
        let (old, new) = (own("db", &spec), own("web", &spec));
        let found = hints(switch, &pod_json("p", "web", &spec), old, new);
        assert_eq!(found, (switch, [QueueingHint::Queue, QueueingHint::Skip]));
    }
    // Up to 1.31, only if it reduces what it still requests.
    let switch = Switch::FitHintComparesRequests;
    let smaller = requests(json!({"cpu": "1"}));
    let scaled_down = |before: Value| {
        let (old, new) = (own("web", &requests(before)), own("web", &smaller));
        hints(switch, &pod_json("p", "web", &smaller), old, new).1
    };
    let of_memory = scaled_down(json!({"cpu": "1", "memory": "1Gi"}));
    assert_eq!(of_memory, [QueueingHint::Queue, QueueingHint::Skip]);
    assert_eq!(scaled_down(json!({"cpu": "2"})), [QueueingHint::Queue, QueueingHint::Queue]);
}

#[test]
fn the_anti_affinity_of_a_deleted_pod_counts() {
    let switch = Switch::DeletedAntiAffinityRequeues;
    let mut deleted = pod_json("other", "db", &affinity("podAntiAffinity"));
    deleted["spec"]["nodeName"] = "n".into();
    let found = hints(switch, &pod_json("p", "web", &json!({})), Some(pod(deleted)), None);
    assert_eq!(found.1, [QueueingHint::Queue, QueueingHint::Skip]);
}

#[test]
fn a_slice_requeues_pods_whose_claims_do_not_exist() {
    let claims = json!({"resourceClaims": [{"name": "c", "resourceClaimName": "missing"}]});
    let slice = Some(Object::from(ResourceSlice::default()));
    let found = hints(Switch::SlicesRequeueAll, &pod_json("p", "web", &claims), None, slice);
    assert_eq!(found.1, [QueueingHint::Queue, QueueingHint::Skip]);
}

#[test]
fn registrations_have_their_switch() {
    let has = |switch: Switch, is_it: fn(&Registration) -> bool| {
        with_and_without(switch).map(|features| {
            let events = built(switch.part().name(), &features).events();
            events.unwrap().iter().any(is_it)
        })
    };
    let allocatable = has(Switch::AllocatableRequeuesClaims, |one| {
        one.event.resource == EventResource::Node
            && one.event.action.overlaps(Action::UPDATE_NODE_ALLOCATABLE)
    });
    let deletions = has(Switch::PreemptionRegistersPodDelete, |one| {
        one.event.resource == EventResource::Pod && one.event.action.overlaps(Action::DELETE)
    });
    let detachments = has(Switch::VolumeLimitsHints, |one| {
        one.event.resource == EventResource::VolumeAttachment && one.hint.is_some()
    });
    assert_eq!([allocatable, deletions, detachments], [[true, false]; 3]);
}

/// With DRAExtendedResource, which is on by default.
#[test]
fn pods_without_extended_resources_of_devices_are_signed() {
    let waiting = info_of(pod_json("p", "web", &requests(json!({"cpu": "1"}))));
    let signs = with_and_without(Switch::SignaturesWithExtendedResources).map(|features| {
        let cluster = Cluster { features, ..Cluster::default() };
        ["NodeResourcesFit", "NodeResourcesBalancedAllocation"]
            .map(|name| built(name, &features).sign(&cluster.queue(), &waiting).is_ok())
    });
    assert_eq!(signs, [[true; 2], [false; 2]]);
}
