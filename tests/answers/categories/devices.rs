//! Claims whose devices are taken, tainted, too small or not reachable.

use serde_json::{Value, json};

use super::categories;
use crate::cluster::Case;
use crate::random::Random;

const DRIVER: &str = "gpu.example.com";

categories! {
    devices_class_missing, devices_class_typo, devices_claim_missing, devices_claim_typo,
    devices_too_few, devices_taken, devices_all_taken, devices_numa_differs,
    devices_selector, devices_tainted, devices_no_slices, devices_too_small,
    devices_two_requests, devices_extended_taken,
}

fn class(name: &str) -> Value {
    let selector = format!("device.driver == \"{DRIVER}\"");
    json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": selector}}]}})
}

/// The devices of a node, each changed by `change` with its number.
fn slice(case: &mut Case, at: usize, count: usize, change: impl Fn(usize, &mut Value)) {
    let name = case.name(at);
    let device = |number: usize| {
        let mut device = json!({"name": format!("dev-{number}"),
            "attributes": {"model": {"string": "small"}, "numa": {"int": number}},
            "capacity": {"memory": {"value": "24Gi"}}});
        change(number, &mut device);
        device
    };
    let devices: Vec<Value> = (0..count).map(device).collect();
    case.add(json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
        "metadata": {"name": format!("{name}-gpu")},
        "spec": {"driver": DRIVER, "nodeName": name, "devices": devices,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1}}}));
}

fn claim(name: &str, exactly: Value) -> Value {
    let mut request = json!({"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1});
    for (field, value) in exactly.as_object().unwrap() {
        request[field] = value.clone();
    }
    if request["allocationMode"] == "All" {
        request.as_object_mut().unwrap().remove("count");
    }
    json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": request}]}}})
}

fn use_claim(pod: &mut Value, claim: &str) {
    pod["spec"]["resourceClaims"] = json!([{"name": "gpu", "resourceClaimName": claim}]);
    pod["spec"]["containers"][0]["resources"]["claims"] = json!([{"name": "gpu"}]);
}

/// A pod on the node whose claim has the device.
fn hold(case: &mut Case, at: usize, number: usize) -> String {
    let mut pod = case.running(at, 50, 32);
    let name = format!("held-{}", case.number());
    let node = case.name(at);
    let mut held = claim(&name, json!({}));
    held["status"] = json!({
        "allocation": {
            "devices": {"results": [{"request": "gpu", "driver": DRIVER, "pool": node,
                "device": format!("dev-{number}")}]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields":
                [{"key": "metadata.name", "operator": "In", "values": [node]}]}]}},
        "reservedFor": [{"resource": "pods", "name": pod["metadata"]["name"],
            "uid": pod["metadata"]["uid"]}]});
    use_claim(&mut pod, &name);
    case.add(held);
    case.add(pod);
    name
}

/// Sets the request of the pod's claim.
fn asks(case: &mut Case, exactly: Value) {
    case.add(claim("wanted", exactly));
    use_claim(&mut case.pod, "wanted");
}

fn too_few(case: &mut Case, at: usize, fields: Value) {
    let name = case.name(at);
    let mut request = json!({"claim": "default/wanted", "request": "gpu", "class": "gpu"});
    for (field, value) in fields.as_object().unwrap() {
        request[field] = value.clone();
    }
    let fields = json!({"problem": "tooFew", "request": request});
    case.truth.node(&name, "devices", fields);
}

fn open(case: &mut Case, words: &[&str]) {
    (case.truth.ahead_open, case.truth.nodes_open) = (true, true);
    words.iter().for_each(|word| case.truth.name(*word));
}

fn with_slices(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    for at in case.nodes() {
        slice(&mut case, at, 2, |_, _| {});
    }
    case
}

fn devices_class_missing(r: &mut Random) -> Case {
    let mut case = with_slices(r);
    asks(&mut case, json!({"deviceClassName": "tpu-v9"}));
    case.truth.problems.push("missingObject");
    open(&mut case, &["tpu-v9"]);
    case
}

fn devices_class_typo(r: &mut Random) -> Case {
    let mut case = with_slices(r);
    case.add(class("gpu-large"));
    asks(&mut case, json!({"deviceClassName": "gpu-lareg"}));
    case.truth.problems.push("missingObject");
    open(&mut case, &["gpu-lareg", "gpu-large"]);
    case
}

fn devices_claim_missing(r: &mut Random) -> Case {
    let mut case = with_slices(r);
    use_claim(&mut case.pod, "wanted");
    // The plugin gates the pod before its first attempt.
    case.truth.problems.extend(["gate", "missingObject"]);
    open(&mut case, &["wanted"]);
    case
}

fn devices_claim_typo(r: &mut Random) -> Case {
    let mut case = with_slices(r);
    case.add(class("gpu"));
    case.add(claim("gpu-for-web", json!({})));
    use_claim(&mut case.pod, "gpu-fro-web");
    case.truth.problems.extend(["gate", "missingObject"]);
    open(&mut case, &["gpu-fro-web", "gpu-for-web"]);
    case
}

fn devices_too_few(r: &mut Random) -> Case {
    let mut case = with_slices(r);
    case.add(class("gpu"));
    let wanted = 3 + r.below(3);
    asks(&mut case, json!({"count": wanted}));
    for at in case.nodes() {
        too_few(&mut case, at, json!({"wanted": wanted, "devices": 2, "suitable": 2, "taken": 0}));
    }
    case
}

fn devices_taken(r: &mut Random) -> Case {
    let mut case = with_slices(r);
    case.add(class("gpu"));
    asks(&mut case, json!({"count": 2}));
    for at in case.nodes() {
        let taken = 1 + r.below(2);
        let holders: Vec<String> = (0..taken).map(|number| hold(&mut case, at, number)).collect();
        let figures = json!({"wanted": 2, "devices": 2, "taken": taken, "suitable": 2 - taken});
        too_few(&mut case, at, figures);
        holders.into_iter().for_each(|holder| case.truth.name(holder));
    }
    case
}

/// All devices are requested, and one is allocated.
fn devices_all_taken(r: &mut Random) -> Case {
    let mut case = with_slices(r);
    case.add(class("gpu"));
    asks(&mut case, json!({"allocationMode": "All"}));
    for at in case.nodes() {
        let holder = hold(&mut case, at, r.below(2));
        too_few(&mut case, at, json!({"devices": 2, "taken": 1}));
        case.truth.name(holder);
    }
    case
}

fn devices_numa_differs(r: &mut Random) -> Case {
    let mut case = with_slices(r);
    case.add(class("gpu"));
    let mut wanted = claim("wanted", json!({"count": 2}));
    wanted["spec"]["devices"]["constraints"] =
        json!([{"requests": ["gpu"], "matchAttribute": format!("{DRIVER}/numa")}]);
    case.add(wanted);
    use_claim(&mut case.pod, "wanted");
    for at in case.nodes() {
        let name = case.name(at);
        case.truth.node(&name, "devices", json!({"problem": "notTogether"}));
    }
    case.truth.name("numa");
    case
}

fn devices_selector(r: &mut Random) -> Case {
    let mut case = with_slices(r);
    case.add(class("gpu"));
    let selector = format!("device.attributes[\"{DRIVER}\"].model == \"large\"");
    asks(&mut case, json!({"selectors": [{"cel": {"expression": selector}}]}));
    for at in case.nodes() {
        too_few(
            &mut case,
            at,
            json!({"wanted": 1, "devices": 2, "suitable": 0,
            "unselected": [[selector, 2]]}),
        );
    }
    case
}

fn devices_tainted(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    case.add(class("gpu"));
    for at in case.nodes() {
        slice(&mut case, at, 2, |_, device| {
            device["taints"] = json!([{"key": "example.com/broken", "effect": "NoSchedule"}]);
        });
        too_few(&mut case, at, json!({"wanted": 1, "devices": 2, "tainted": 2, "suitable": 0}));
    }
    asks(&mut case, json!({}));
    case
}

fn devices_no_slices(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    case.add(class("gpu"));
    asks(&mut case, json!({}));
    for at in case.nodes() {
        too_few(&mut case, at, json!({"wanted": 1, "devices": 0, "suitable": 0}));
    }
    case
}

fn devices_too_small(r: &mut Random) -> Case {
    let mut case = with_slices(r);
    case.add(class("gpu"));
    let expression =
        format!("device.capacity[\"{DRIVER}\"].memory.isGreaterThan(quantity(\"39Gi\"))");
    asks(&mut case, json!({"selectors": [{"cel": {"expression": expression}}]}));
    for at in case.nodes() {
        too_few(&mut case, at, json!({"wanted": 1, "devices": 2, "suitable": 0}));
    }
    case.truth.name("39Gi");
    case
}

/// Each of two requests could be met by itself.
fn devices_two_requests(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    case.add(class("gpu"));
    for at in case.nodes() {
        slice(&mut case, at, 1, |_, _| {});
        let name = case.name(at);
        case.truth.node(&name, "devices", json!({"problem": "notTogether"}));
    }
    let mut wanted = claim("wanted", json!({}));
    let second = json!({"name": "second", "exactly": {"deviceClassName": "gpu",
        "allocationMode": "ExactCount", "count": 1}});
    wanted["spec"]["devices"]["requests"].as_array_mut().unwrap().push(second);
    case.add(wanted);
    use_claim(&mut case.pod, "wanted");
    case
}

/// A device requested as an extended resource, as with device plugins.
fn devices_extended_taken(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    let mut gpu = class("gpu");
    gpu["spec"]["extendedResourceName"] = json!("example.com/gpu");
    case.add(gpu);
    for at in case.nodes() {
        slice(&mut case, at, 1, |_, _| {});
        let holder = hold(&mut case, at, 0);
        let name = case.name(at);
        let request = json!({"devices": 1, "taken": 1, "suitable": 0, "wanted": 1});
        let fields = json!({"problem": "tooFew", "request": request});
        case.truth.node(&name, "devices", fields);
        case.truth.name(holder);
    }
    case.ask("example.com/gpu", "1");
    case.truth.name("example.com/gpu");
    case
}
