//! Tests of the allocator: the 193 cases of upstream's test table, and separate tests of the most
//! instructive cases.
//!
//! Each line of `allocations.jsonl.gz` is a case: `features`, `node`, `claims`, `classes`,
//! `slices`, the allocated devices (`dedicated`, `shared`, `consumed`), and the outcome: `results`
//! (in any order; the name of a share is `FIXED`), or a part of the `error`, and the `steps` of
//! the search if upstream counts them. The cases are those of
//! `structured/internal/allocatortesting/allocator_testing.go` for the incubating allocator.

use std::io::Read;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::dynamic_resources::structured::pools::Slices;
use kubestep_api::{AllocationResult, DeviceRequest, Node, Object, ResourceClaim, ResourceSlice};
use kubestep_config::KubeVersion;
use kubestep_framework::dra::{AllocatedDevices, DeviceId};
use kubestep_framework::node::NodeId;
use kubestep_framework::objects::Objects;

const SITUATIONS: &[u8] = include_bytes!("tests/allocations.jsonl.gz");

fn situations() -> Vec<Value> {
    let mut text = String::new();
    flate2::read::GzDecoder::new(SITUATIONS).read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of<T: DeserializeOwned>(json: &Value) -> T {
    serde_json::from_value(json.clone()).unwrap()
}

/// The elements of an optional list.
fn each(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn device_id(text: &str) -> DeviceId {
    let mut parts = text.split('/');
    let mut next = || parts.next().unwrap();
    DeviceId { driver: next().into(), pool: next().into(), device: next().into() }
}

/// The features that a case names, and the rules of the release that it names, or the default one.
fn features(situation: &Value) -> Features {
    let has = |name: &str| each(&situation["features"]).any(|known| known == name);
    let release = situation["release"].as_str().unwrap_or("1.36");
    Features {
        consumable_capacity: has("ConsumableCapacity"),
        binding_conditions: has("DeviceBindingAndStatus"),
        taints: has("DeviceTaints"),
        lists: false,
        taint_rules: false,
        partitionable: has("PartitionableDevices"),
        prioritized_list: has("PrioritizedList"),
        rules: SearchRules::of(&KubeVersion::nearest(release).unwrap().gates()),
    }
}

fn allocator(situation: &Value) -> Allocator {
    let ids = |name: &str| each(&situation[name]).map(|id| device_id(id.as_str().unwrap()));
    let mut allocated = AllocatedDevices::default();
    for id in ids("dedicated") {
        allocated.change(id.of_pool(), |pool| _ = pool.dedicated.insert(id.device));
    }
    for id in ids("shared") {
        let share = ["FIXED".into()].into();
        allocated.change(id.of_pool(), |pool| _ = pool.shared.insert(id.device, share));
    }
    for (id, amounts) in situation["consumed"].as_object().into_iter().flatten() {
        let id = device_id(id);
        allocated.change(id.of_pool(), |pool| _ = pool.consumed.insert(id.device, of(amounts)));
    }
    let mut objects = Objects::default();
    for class in each(&situation["classes"]) {
        objects.insert(Object::DeviceClass(Arc::new(of(class))));
    }
    let slices = each(&situation["slices"]).map(|slice| Arc::new(of::<ResourceSlice>(slice)));
    let slices = Arc::new(Slices::of(slices, None));
    let classes = objects.device_classes.clone();
    Allocator::new(features(situation), Arc::new(allocated), classes, slices, 0)
}

fn claims(situation: &Value) -> Vec<Arc<ResourceClaim>> {
    each(&situation["claims"]).map(|claim| Arc::new(of(claim))).collect()
}

/// The results without what is random upstream: the order, and the names of shares.
fn comparable(results: impl Iterator<Item = AllocationResult>) -> Vec<Value> {
    let one = |mut result: AllocationResult| {
        for device in &mut result.devices.results {
            device.share_id = device.share_id.map(|_| "FIXED".into());
        }
        result.devices.results.sort_by_key(|device| (device.request, device.pool, device.device));
        serde_json::to_value(result).unwrap()
    };
    let mut results: Vec<Value> = results.map(one).collect();
    results.sort_by_key(Value::to_string);
    results
}

/// The difference from the expected outcome of a case.
fn difference(situation: &Value) -> Option<String> {
    let (node, claims) = (Arc::new(of::<Node>(&situation["node"])), claims(situation));
    let allocator = allocator(situation);
    let (found, steps) = allocator.allocate_counting(&node, &claims);
    let demand = Demand::new(&claims);
    for time in ["first", "second"] {
        let again = allocator.allocate_for(&demand, (NodeId(0), &node), &claims);
        let again = again.map(|found| found.as_deref().cloned());
        if again != found {
            return Some(format!(
                "{}: the {time} of the demand found {again:?}",
                situation["name"]
            ));
        }
    }
    let difference = match (found, situation["error"].as_str()) {
        (Err(error), Some(part)) if error.to_string().contains(part) => return None,
        (Err(error), part) => format!("error {error:?} instead of {part:?}"),
        (Ok(_), Some(part)) => format!("no error instead of {part:?}"),
        (Ok(found), None) => {
            let found = comparable(found.into_iter().flatten());
            let expected = comparable(each(&situation["results"]).map(of));
            if found != expected {
                format!("\n  {}\ninstead of\n  {}", json!(found), json!(expected))
            } else if situation["steps"].as_u64().is_some_and(|expected| expected != steps) {
                format!("{steps} steps instead of {}", situation["steps"])
            } else {
                return None;
            }
        }
    };
    Some(format!("{}: {difference}", situation["name"]))
}

#[test]
fn upstreams_answers() {
    let situations = situations();
    assert_eq!(situations.len(), 193);
    let differences: Vec<String> = situations.iter().filter_map(difference).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Allocates one claim on one node with all features: the devices by request, or the error.
fn allocate(claim: Value, slices: Value, dedicated: Value) -> Result<Vec<String>, String> {
    let all = ["ConsumableCapacity", "DeviceBindingAndStatus", "DeviceTaints"];
    let situation = json!({
        "features": [all[0], all[1], all[2], "PartitionableDevices", "PrioritizedList"],
        "claims": [{"metadata": {"name": "c"}, "spec": {"devices": claim}}],
        "classes": [{"metadata": {"name": "gpu"}}],
        "slices": slices, "dedicated": dedicated,
    });
    let node: Arc<Node> = Arc::new(of(&json!({"metadata": {"name": "n"}})));
    let found = allocator(&situation).allocate(&node, &claims(&situation));
    let results = found.map_err(|error| error.to_string())?.into_iter().flatten();
    let devices = results.flat_map(|result| result.devices.results);
    Ok(devices.map(|device| format!("{}={}", device.request, device.device)).collect())
}

/// What one node lacks for a claim of this request.
fn shortage(request: Value, slices: Value) -> DeviceShortage {
    let situation = json!({
        "features": ["PartitionableDevices"],
        "claims": [{"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}}],
        "classes": [{"metadata": {"name": "gpu"}}],
        "slices": slices,
    });
    let node: Arc<Node> = Arc::new(of(&json!({"metadata": {"name": "n"}})));
    allocator(&situation).shortage(&node, &claims(&situation))
}

/// The claims with one of their requests alone, without constraints.
fn each_alone(claims: &[Arc<ResourceClaim>]) -> Vec<ResourceClaim> {
    let of_claim = |claim: &Arc<ResourceClaim>| {
        let alone = |request: &DeviceRequest| {
            let mut alone = ResourceClaim::clone(claim);
            alone.spec.devices.requests = vec![request.clone()];
            alone.spec.devices.constraints.clear();
            alone
        };
        claim.spec.devices.requests.iter().map(alone).collect::<Vec<_>>()
    };
    claims.iter().flat_map(of_claim).collect()
}

/// Counting devices is a walk of its own beside the search, so both are compared, on every case of
/// upstream's table and with each of its devices allocated to another claim: a request is short
/// exactly if the search finds nothing for it alone, and claims whose requests are not short fail
/// for a constraint, or because their requests compete.
#[test]
fn a_request_is_short_exactly_if_the_search_finds_nothing_for_it() {
    let mut wrong = Vec::new();
    let mut compared = [0, 0, 0];
    for mut situation in situations() {
        let node: Arc<Node> = Arc::new(of(&situation["node"]));
        let claims = claims(&situation);
        let dedicated: Vec<Value> = each(&situation["dedicated"]).cloned().collect();
        for taken in [None].into_iter().chain(device_names(&situation).into_iter().map(Some)) {
            let all = dedicated.iter().cloned().chain(taken.clone().map(Value::from));
            situation["dedicated"] = all.collect();
            let mut allocator = allocator(&situation);
            allocator.look_limit = 2_000; // some cases make the search try very many devices
            for alone in each_alone(&claims) {
                let alone = [Arc::new(alone)];
                let Ok(found) = allocator.allocate(&node, &alone) else { continue };
                let short = allocator.shortage(&node, &alone).short().count();
                compared[usize::from(found.is_some())] += 1;
                if (short > 0) != found.is_none() {
                    wrong.push(format!(
                        "{} {taken:?} {:?} {short} {}",
                        situation["name"],
                        alone[0].spec.devices.requests[0].name,
                        found.is_some()
                    ));
                }
            }
            let Ok(found) = allocator.allocate(&node, &claims) else { continue };
            let shortage = allocator.shortage(&node, &claims);
            let names = shortage.short().count() + shortage.constraints.len();
            compared[2] += 1;
            let ok = match found {
                Some(_) => shortage.short().count() == 0,
                None => names > 0 || shortage.requests.len() > 1,
            };
            if !ok {
                wrong.push(format!("{} {taken:?} whole {}", situation["name"], names));
            }
        }
    }
    assert!(wrong.is_empty(), "{compared:?}\n{}", wrong.join("\n"));
    assert!(compared.iter().all(|count| *count > 100), "{compared:?}");
}

/// The devices of a case, as in its list of allocated ones.
fn device_names(situation: &Value) -> Vec<String> {
    let of_slice = |slice: &Value| {
        let (driver, pool) = (&slice["spec"]["driver"], &slice["spec"]["pool"]["name"]);
        let [driver, pool] = [driver, pool].map(|name| name.as_str().unwrap().to_owned());
        let name =
            move |device: &Value| format!("{driver}/{pool}/{}", device["name"].as_str().unwrap());
        each(&slice["spec"]["devices"]).map(name).collect::<Vec<_>>()
    };
    each(&situation["slices"]).flat_map(of_slice).collect()
}

#[test]
fn devices_that_a_selector_rejects_are_counted_by_selector() {
    let selector = "device.driver == \"other\"";
    let mut request = exactly("x", 1);
    request["exactly"]["selectors"] = json!([{"cel": {"expression": selector}}]);
    let devices = json!([{"name": "a"}, {"name": "b"}, {"name": "c"}]);
    let found = &shortage(request, slice(devices)).requests[0];
    assert_eq!(found.unselected, [(selector.into(), 3)]);
    assert!(found.suitable.is_empty());
}

#[test]
fn a_device_with_too_few_counters_left_is_too_small() {
    let counters = |amount: &str| json!({"memory": {"value": amount}});
    let device = |name: &str, amount: &str| {
        let taken = json!([{"counterSet": "set", "counters": counters(amount)}]);
        json!({"name": name, "consumesCounters": taken})
    };
    let mut slices = slice(json!([device("small", "2"), device("large", "8")]));
    slices[0]["spec"]["pool"]["resourceSliceCount"] = json!(2);
    let mut sets = slices[0].clone();
    sets["metadata"]["name"] = json!("sets");
    sets["spec"]["devices"].take();
    sets["spec"]["sharedCounters"] = json!([{"name": "set", "counters": counters("4")}]);
    slices.as_array_mut().unwrap().push(sets);
    let found = &shortage(exactly("x", 2), slices).requests[0];
    assert_eq!((found.devices, found.too_small), (2, 1));
    assert_eq!(found.suitable, [device_id("d/p/small")]);
}

fn exactly(name: &str, count: i64) -> Value {
    json!({"name": name, "exactly": {
        "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count,
    }})
}

fn slice(devices: Value) -> Value {
    json!([{"metadata": {"name": "s"}, "spec": {
        "driver": "d", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "nodeName": "n", "devices": devices,
    }}])
}

#[test]
fn the_first_devices_are_taken_that_are_free() {
    let devices = json!([{"name": "a"}, {"name": "b"}, {"name": "c"}]);
    let claim = json!({"requests": [exactly("x", 1), exactly("y", 1)]});
    let found = allocate(claim.clone(), slice(devices.clone()), json!(["d/p/b"]));
    assert_eq!(found, Ok(vec!["x=a".to_owned(), "y=c".to_owned()]));
    let found = allocate(claim, slice(devices), json!(["d/p/b", "d/p/c"]));
    assert_eq!(found, Ok(vec![]));
}

#[test]
fn a_constraint_sends_the_search_back() {
    let on = |name: &str, numa: i64| json!({"name": name, "attributes": {"numa": {"int": numa}}});
    let devices = json!([on("a", 0), on("b", 1), on("c", 1)]);
    let claim = json!({
        "requests": [exactly("x", 2)], "constraints": [{"matchAttribute": "d/numa"}],
    });
    let found = allocate(claim, slice(devices), json!([]));
    assert_eq!(found, Ok(vec!["x=b".to_owned(), "x=c".to_owned()]));
}

#[test]
fn the_first_alternative_that_works_out_is_taken() {
    let sub = |name: &str, count: i64| json!({"name": name, "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count});
    let list =
        json!({"requests": [{"name": "x", "firstAvailable": [sub("big", 3), sub("small", 1)]}]});
    let devices = json!([{"name": "a"}, {"name": "b"}, {"name": "c"}]);
    let found = allocate(list.clone(), slice(devices.clone()), json!(["d/p/a"]));
    assert_eq!(found, Ok(vec!["x/small=b".to_owned()]));
    let found = allocate(list, slice(devices), json!([])).unwrap();
    assert_eq!(found, ["x/big=a", "x/big=b", "x/big=c"]);
}

#[test]
fn a_claim_cannot_ask_for_more_devices_than_it_can_hold() {
    let claim = json!({"requests": [exactly("x", 20), exactly("y", 13)]});
    let found = allocate(claim, slice(json!([])), json!([]));
    let text = "claim c: number of requested devices 33 exceeds the claim limit of 32";
    assert_eq!(found, Err(text.to_owned()));
}

#[test]
fn taints_keep_devices_from_claims_that_do_not_tolerate_them() {
    let tainted = |effect: &str| json!({"name": effect, "taints": [{"key": "k", "value": "v", "effect": effect}]});
    let devices = json!([tainted("NoSchedule"), tainted("NoExecute"), tainted("None")]);
    let one = json!({"requests": [exactly("x", 1)]});
    let found = allocate(one.clone(), slice(devices.clone()), json!([])).unwrap();
    assert_eq!(found, ["x=None"]);
    let mut tolerating = one;
    tolerating["requests"][0]["exactly"]["tolerations"] =
        json!([{"key": "k", "operator": "Equal", "value": "v", "effect": "NoExecute"}]);
    let found = allocate(tolerating, slice(devices), json!([])).unwrap();
    assert_eq!(found, ["x=NoExecute"]);
}

#[test]
fn a_search_that_takes_too_long_is_given_up() {
    // No two devices share the attribute, so the search tries all pairs.
    let device = |at: i64| json!({"name": format!("d{at}"), "attributes": {"x": {"int": at}}});
    let claim = json!({
        "requests": [exactly("r", 2)], "constraints": [{"matchAttribute": "d/x"}],
    });
    let situation = json!({
        "claims": [{"metadata": {"name": "c"}, "spec": {"devices": claim}}],
        "classes": [{"metadata": {"name": "gpu"}}],
        "slices": slice((0..20).map(device).collect()),
    });
    let node: Arc<Node> = Arc::new(of(&json!({"metadata": {"name": "n"}})));
    let mut allocator = allocator(&situation);
    // 20 first devices, and for each of them all devices after it.
    allocator.look_limit = 20 + 190;
    assert_eq!(allocator.allocate(&node, &claims(&situation)), Ok(None));
    allocator.look_limit -= 1;
    let found = allocator.allocate(&node, &claims(&situation));
    assert_eq!(found, Err(AllocationError::TimedOut));
}

/// The outcome of one claim in a release: `None` if it cannot be allocated.
fn allocate_in(
    release: &str,
    requests: Value,
    devices: &[&str],
    dedicated: Value,
) -> Result<Option<AllocationResult>, AllocationError> {
    let devices = devices.iter().map(|name| json!({"name": name})).collect();
    let config = |name: &str| json!({"opaque": {"driver": name, "parameters": {}}});
    let mut of_claim = config("claim");
    of_claim["requests"] = json!(["x", "y"]);
    let situation = json!({
        "release": release,
        "claims": [{"metadata": {"name": "c"}, "spec": {"devices": {
            "requests": requests, "config": [of_claim],
        }}}],
        "classes": [{"metadata": {"name": "gpu"}, "spec": {"config": [config("class")]}}],
        "slices": slice(devices), "dedicated": dedicated,
    });
    let node: Arc<Node> = Arc::new(of(&json!({"metadata": {"name": "n"}})));
    let found = allocator(&situation).allocate(&node, &claims(&situation))?;
    Ok(found.and_then(|mut results| results.pop()))
}

/// The devices by request of [`allocate_in`], or why there are none.
fn devices_in(release: &str, requests: Value, devices: &[&str], dedicated: Value) -> String {
    match allocate_in(release, requests, devices, dedicated) {
        Err(error) => error.to_string(),
        Ok(None) => "none".to_owned(),
        Ok(Some(result)) => {
            let each = result.devices.results.iter();
            let each = each.map(|device| format!("{}={}", device.request, device.device));
            format!("[{}]", each.collect::<Vec<_>>().join(" "))
        }
    }
}

fn all(name: &str) -> Value {
    json!({"name": name, "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}})
}

#[test]
fn a_request_for_all_devices_by_version() {
    let versions = ["1.31", "1.32", "1.33", "1.36"];
    let one_taken = versions
        .map(|release| devices_in(release, json!([all("x")]), &["a", "b"], json!(["d/p/b"])));
    assert_eq!(one_taken, ["[x=a]", "none", "none", "none"]);
    let no_device = versions.map(|release| devices_in(release, json!([all("x")]), &[], json!([])));
    assert_eq!(no_device, ["[]", "[]", "none", "none"]);
    let none_left = json!([all("x"), exactly("y", 1)]);
    let none_left =
        versions.map(|release| devices_in(release, none_left.clone(), &["a"], json!([])));
    assert_eq!(none_left, ["stop allocation", "none", "none", "none"]);
}

/// The devices by request in a release, with lists of alternatives.
fn alternatives_in(release: &str, requests: &Value) -> Vec<String> {
    let situation = json!({
        "release": release, "features": ["PrioritizedList"],
        "claims": [{"metadata": {"name": "c"}, "spec": {"devices": {"requests": requests}}}],
        "classes": [{"metadata": {"name": "gpu"}}],
        "slices": slice(json!([{"name": "a"}, {"name": "b"}])),
    });
    let node: Arc<Node> = Arc::new(of(&json!({"metadata": {"name": "n"}})));
    let found = allocator(&situation).allocate(&node, &claims(&situation)).unwrap();
    let results = found.into_iter().flatten().flat_map(|result| result.devices.results);
    results.map(|device| format!("{}={}", device.request, device.device)).collect()
}

fn alternative(name: &str, mode: &str, count: i64) -> Value {
    json!({"name": name, "deviceClassName": "gpu", "allocationMode": mode, "count": count})
}

/// Up to 1.35 the search goes on with the first alternative, here for two more devices.
#[test]
fn each_alternative_can_ask_for_all_devices_since_1_36() {
    let list = [alternative("three", "ExactCount", 3), alternative("all", "All", 0)];
    let requests = json!([{"name": "x", "firstAvailable": list}]);
    let found = ["1.35", "1.36"].map(|release| alternatives_in(release, &requests));
    assert_eq!(found, [vec![], vec!["x/all=a", "x/all=b"]]);
}

/// Here the search goes back behind the first alternative, as nothing is left for the request `y`.
#[test]
fn all_devices_stay_taken_when_the_search_goes_back_up_to_1_33() {
    let list = [alternative("all", "All", 0), alternative("one", "ExactCount", 1)];
    let requests = json!([{"name": "x", "firstAvailable": list}, exactly("y", 1)]);
    let found = ["1.33", "1.34"].map(|release| alternatives_in(release, &requests));
    assert_eq!(found, [vec![], vec!["x/one=a", "y=b"]]);
}

#[test]
fn requests_with_admin_access_of_one_claim_share_devices_up_to_1_33() {
    let mut admin = [exactly("x", 1), exactly("y", 1)];
    admin.iter_mut().for_each(|request| request["exactly"]["adminAccess"] = json!(true));
    let found = |release| devices_in(release, json!(admin), &["a", "b"], json!([]));
    assert!(found("1.33").contains("admin access is requested, but the feature is disabled"));
    assert_eq!(["1.31", "1.36"].map(found), ["[x=a y=a]", "[x=a y=b]"]);
}

#[test]
fn configurations_stand_in_the_allocation_by_version() {
    let config = |release: &str| {
        let requests = json!([exactly("x", 1), exactly("y", 1)]);
        let found = allocate_in(release, requests, &["a", "b"], json!([])).unwrap().unwrap();
        let config = found.devices.config.iter();
        let config = config.map(|one| {
            let names: Vec<_> = one.requests.iter().map(|name| name.as_str()).collect();
            format!("{}:{}", one.opaque.as_ref().unwrap().driver, names.join("+"))
        });
        config.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(config("1.32.9"), "class: class: claim:x+y");
    assert_eq!(config("1.32.10"), "class:x+y claim:x+y");
    assert_eq!(config("1.34.1"), "class: class: claim:x+y claim:x+y");
    assert_eq!(config("1.34.2"), "class:x+y claim:x+y claim:x+y");
}
