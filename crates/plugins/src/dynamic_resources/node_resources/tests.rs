//! Tests of claims on node-allocatable devices, with the cases of upstream's tests.

use serde_json::{Value, json};

use super::super::build;
use super::*;
use kubestep_api::Object;
use kubestep_config::ProfileArgs;
use kubestep_framework::pod::PodInfo;
use kubestep_framework::testing::{
    Asked, Cluster, FakeHost, NodeBuilder, PodBuilder, info, node, object, pod,
};

/// A device of pool `p` on node `n`, with its mappings and capacities.
fn device(name: &str, mappings: Value, capacity: Value) -> Value {
    json!({
        "name": name, "nodeAllocatableResourceMappings": mappings, "capacity": capacity,
        "allowMultipleAllocations": capacity.as_object().is_some_and(|c| !c.is_empty()),
    })
}

fn plain(name: &str, mappings: Value) -> Value {
    device(name, mappings, json!({}))
}

fn slice(devices: Value) -> Object {
    object(json!({
        "kind": "ResourceSlice", "metadata": {"name": "s"},
        "spec": {
            "driver": "d", "nodeName": "n", "devices": devices,
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        },
    }))
}

/// A claim for the device of that name, with capacities requested of it.
fn claim(name: &str, device: &str, capacity: Value) -> Object {
    let request = json!({
        "deviceClassName": device, "allocationMode": "ExactCount", "count": 1,
        "capacity": {"requests": capacity},
    });
    object(json!({
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": request}]}},
    }))
}

fn allocated(name: &str) -> Object {
    object(json!({
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "status": {"allocation": {"devices": {}}},
    }))
}

/// The node `n` with these devices, each in a class of its own name.
fn cluster(devices: Vec<Value>, claims: Vec<Object>) -> Cluster {
    let nodes = [node("n").offers("cpu", "16").offers("memory", "32Gi")];
    let mut cluster = Cluster::new(nodes, []);
    cluster.features = cluster.features.with(Feature::DRANodeAllocatableResources, true);
    for device in &devices {
        let name = device["name"].as_str().unwrap();
        let expression = format!("device.attributes[\"d\"].name == \"{name}\"");
        cluster.objects.insert(object(json!({
            "kind": "DeviceClass", "metadata": {"name": name},
            "spec": {"selectors": [{"cel": {"expression": expression}}]},
        })));
    }
    let named = devices.into_iter().map(|mut device| {
        device["attributes"] = json!({"name": {"string": device["name"]}});
        device
    });
    cluster.objects.insert(slice(named.collect()));
    for claim in claims {
        cluster.objects.insert(claim);
    }
    cluster
}

/// A pod whose only container uses these claims.
fn user(claims: &[&str]) -> Pod {
    let written: Vec<Value> =
        claims.iter().map(|name| json!({"name": name, "resourceClaimName": name})).collect();
    let used: Vec<Value> = claims.iter().map(|name| json!({"name": name})).collect();
    pod("u").spec(json!({
        "resourceClaims": written,
        "containers": [{"name": "c1", "resources": {"claims": used}}],
    }))
}

/// Filter's status for the node, and the demand of the claims as `claim [containers]
/// resource=amount`.
fn filtered(cluster: &Cluster, pod: Pod) -> (Status, Vec<String>) {
    let pod = info(pod);
    let plugin = build(&ProfileArgs::default(), &cluster.features).unwrap();
    let (cx, mut state) = (cluster.cx(&pod), CycleState::default());
    let prepared = plugin.pre_filter(&cx, &mut state).status;
    assert!(prepared.is_success(), "{prepared:?}");
    let status = plugin.filter(&cx, &state, cluster.node("n"));
    let text = |status: &NodeAllocatableResourceClaimStatus| {
        let containers: Vec<&str> = status.containers.iter().map(|name| name.as_str()).collect();
        let amounts = status.resources.iter().map(|(name, amount)| format!(" {name}={amount}"));
        format!(
            "{} [{}]{}",
            status.resource_claim_name,
            containers.join(" "),
            amounts.collect::<String>()
        )
    };
    (status, claimed_on(&state, "n".into()).iter().map(text).collect())
}

fn taken(cluster: &Cluster, pod: Pod) -> Vec<String> {
    let (status, taken) = filtered(cluster, pod);
    assert_eq!(status, Status::SUCCESS);
    taken
}

fn rejected(cluster: &Cluster, pod: Pod) -> (Code, String) {
    let (status, taken) = filtered(cluster, pod);
    assert!(taken.is_empty());
    (status.code(), status.message())
}

fn by_capacity(key: &str) -> Value {
    json!({"capacityKey": key})
}

fn times(amount: &str) -> Value {
    json!({"allocationMultiplier": amount})
}

fn capacity(amounts: &[(&str, &str)]) -> Value {
    let amounts = amounts.iter().map(|(name, amount)| (name.to_string(), json!({"value": amount})));
    Value::Object(amounts.collect())
}

#[test]
fn a_device_takes_its_multiplier_or_the_capacity_consumed() {
    let cpu = plain("cpu0", json!({"cpu": times("1")}));
    let one = cluster(vec![cpu], vec![claim("c", "cpu0", json!({}))]);
    assert_eq!(taken(&one, user(&["c"])), ["c [c1] cpu=1"]);
    let amounts = capacity(&[("d/cpu", "8"), ("d/memory", "16Gi")]);
    let mappings = json!({"cpu": by_capacity("d/cpu"), "memory": by_capacity("d/memory")});
    let both = device("device1", mappings, amounts);
    let wanted = claim("c", "device1", json!({"d/cpu": "4", "d/memory": "8Gi"}));
    let both = cluster(vec![both], vec![wanted]);
    assert_eq!(taken(&both, user(&["c"])), ["c [c1] cpu=4 memory=8Gi"]);
    let mapping = json!({"capacityKey": "d/cores", "allocationMultiplier": "2"});
    let cores = device("device1", json!({"cpu": mapping}), capacity(&[("d/cores", "8")]));
    let cores = cluster(vec![cores], vec![claim("c", "device1", json!({"d/cores": "4"}))]);
    assert_eq!(taken(&cores, user(&["c"])), ["c [c1] cpu=8"]);
}

#[test]
fn devices_without_mappings_and_capacities_not_consumed_take_nothing() {
    let gpu = cluster(vec![plain("gpu0", json!({}))], vec![claim("c", "gpu0", json!({}))]);
    assert!(taken(&gpu, user(&["c"])).is_empty());
    let mapped = json!({"cpu": by_capacity("d/cpu")});
    let other = device("cpu0", mapped.clone(), capacity(&[("d/other", "4")]));
    let other = cluster(vec![other], vec![claim("c", "cpu0", json!({"d/other": "1"}))]);
    assert!(taken(&other, user(&["c"])).is_empty());
    let none = cluster(vec![plain("cpu0", mapped)], vec![claim("c", "cpu0", json!({}))]);
    let text = "claim default/c, device cpu0: ConsumedCapacity is nil, but Capacity key 'd/cpu' \
                is set in NodeAllocatableResourceMappings for resource cpu";
    assert_eq!(rejected(&none, user(&["c"])), (Code::Error, text.into()));
}

#[test]
fn each_claim_has_its_entry_by_name() {
    let cpu = device("cpu0", json!({"cpu": by_capacity("d/cpu")}), capacity(&[("d/cpu", "12")]));
    let gpu = plain("gpu0", json!({"cpu": times("2"), "memory": times("4Gi")}));
    let claims =
        vec![claim("gpu", "gpu0", json!({})), claim("cpu", "cpu0", json!({"d/cpu": "10"}))];
    let cluster = cluster(vec![cpu, gpu], claims);
    assert_eq!(
        taken(&cluster, user(&["gpu", "cpu"])),
        ["cpu [c1] cpu=10", "gpu [c1] cpu=2 memory=4Gi"]
    );
}

#[test]
fn a_claim_that_several_containers_use_counts_once() {
    let cpu = plain("cpu0", json!({"cpu": times("10")}));
    let cluster = cluster(vec![cpu], vec![claim("c", "cpu0", json!({}))]);
    let uses = json!({"claims": [{"name": "c"}]});
    let pod = user(&["c"]).spec(json!({
        "resources": {"requests": {"cpu": "11", "memory": "10Gi"}},
        "initContainers": [{"name": "sidecar", "resources": uses, "restartPolicy": "Always"}],
        "containers": [{"name": "c1", "resources": uses}, {"name": "c2"}],
    }));
    assert_eq!(taken(&cluster, pod), ["c [sidecar c1] cpu=10"]);
}

#[test]
fn a_claim_that_no_container_uses_is_rejected() {
    let cpu = plain("cpu0", json!({"cpu": times("1")}));
    let cluster = cluster(vec![cpu], vec![claim("c", "cpu0", json!({}))]);
    let pod = user(&["c"]).spec(json!({"containers": [{"name": "c1"}]}));
    let text = "claim c: node-allocatable resource claim not referenced by any container within \
                the pod";
    assert_eq!(rejected(&cluster, pod), (Code::UnschedulableAndUnresolvable, text.into()));
}

/// Filter's answer for a pod with a request of 1 CPU and claims with a demand of `cpu`, on a node
/// with 16 CPUs of which `used` are requested.
fn fits(cpu: &str, used: &str, pod_level: Option<Value>) -> (Code, String) {
    let device = plain("cpu0", json!({"cpu": times(cpu), "hugepages-2Mi": times("0")}));
    let mut cluster = cluster(vec![device], vec![claim("c", "cpu0", json!({}))]);
    let old = info(pod("old").requests("cpu", used).on("n"));
    cluster.snapshot.change_node("n".into(), |node| node.add_pod(old));
    let mut pod = user(&["c"]).requests("cpu", "1").requests("memory", "1Gi");
    if let Some(requests) = pod_level {
        pod = pod.spec(json!({"resources": {"requests": requests}}));
    }
    let (status, _) = filtered(&cluster, pod);
    (status.code(), status.message())
}

#[test]
fn the_node_must_have_room_for_requests_and_claims_together() {
    assert_eq!(fits("14", "1", None), (Code::Success, String::new()));
    assert_eq!(fits("15", "1", None), (Code::Unschedulable, "Insufficient cpu".into()));
    let never = (Code::UnschedulableAndUnresolvable, "Insufficient cpu".into());
    assert_eq!(fits("16", "1", None), never);
}

#[test]
fn memory_storage_and_huge_pages_count_too() {
    let lacking = |mappings: Value| {
        let device = plain("x", mappings);
        let cluster = cluster(vec![device], vec![claim("c", "x", json!({}))]);
        rejected(&cluster, user(&["c"]))
    };
    let all = json!({"memory": times("33Gi"), "ephemeral-storage": times("1"),
        "hugepages-2Mi": times("2Mi"), "hugepages-1Gi": times("1Gi")});
    let text = "Insufficient memory, Insufficient ephemeral-storage, Insufficient hugepages-1Gi, \
                Insufficient hugepages-2Mi";
    assert_eq!(lacking(all), (Code::UnschedulableAndUnresolvable, text.into()));
}

#[test]
fn requests_of_the_whole_pod_must_cover_the_claims() {
    let whole = |cpu: &str| Some(json!({"cpu": cpu, "memory": "2Gi"}));
    assert_eq!(fits("500m", "0", whole("2")).0, Code::Success);
    let text = "pod level request for cpu is insufficient to cover the aggregated container and \
                node-allocatable DRA requests";
    let rejection = (Code::UnschedulableAndUnresolvable, text.into());
    assert_eq!(fits("1100m", "0", whole("2")), rejection);
    // Pod-level requests that cover the claims replace them in the check of the node.
    assert_eq!(fits("9", "5", whole("10")).0, Code::Success);
}

/// Filter's rejection of an allocated claim that these pods on the node use.
fn sharing(users: &[&str]) -> String {
    let mut cluster = cluster(Vec::new(), vec![allocated("c")]);
    for name in users {
        let mut user = pod(name).on("n");
        let status = json!({"resourceClaimName": "c", "containers": ["c1"]});
        user.status.node_allocatable_resource_claim_statuses =
            vec![serde_json::from_value(status).unwrap()];
        cluster.snapshot.change_node("n".into(), |node| node.add_pod(info(user)));
    }
    filtered(&cluster, user(&["c"])).0.message()
}

#[test]
fn a_claim_is_for_one_pod_alone() {
    assert_eq!(sharing(&[]), "");
    assert_eq!(sharing(&["u"]), "");
    let text = "node allocatable resource claim c is already used by another pod";
    assert_eq!(sharing(&["other"]), text);
    let text = "node allocatable resource claim c shared by multiple pods";
    assert_eq!(sharing(&["other", "another"]), text);
    assert_eq!(sharing(&["other", "u"]), text);
}

#[test]
fn users_of_a_claim_are_known_while_they_are_on_the_node() {
    let mut cluster = cluster(Vec::new(), Vec::new());
    let mut user = pod("u").on("n");
    let status = json!({"resourceClaimName": "c", "resources": {"cpu": "2"}});
    user.status.node_allocatable_resource_claim_statuses =
        vec![serde_json::from_value(status).unwrap()];
    let user = Arc::new(PodInfo::with_features(Arc::new(user), &cluster.features));
    let uid = user.uid();
    cluster.snapshot.change_node("n".into(), |node| node.add_pod(user));
    assert_eq!(cluster.node("n").claim_users.len(), 1);
    assert_eq!(cluster.node("n").requested.milli_cpu, 2000);
    cluster.snapshot.change_node("n".into(), |node| assert!(node.remove_pod(uid).is_some()));
    assert!(cluster.node("n").claim_users.is_empty());
}

#[test]
fn what_is_taken_is_written_and_taken_back() {
    let cpu = plain("cpu0", json!({"cpu": times("1")}));
    let mut cluster = cluster(vec![cpu], vec![claim("c", "cpu0", json!({}))]);
    let (pod, mut state) = (info(user(&["c"])), CycleState::default());
    let plugin = build(&ProfileArgs::default(), &cluster.features).unwrap();
    let cx = cluster.cx(&pod);
    plugin.pre_filter(&cx, &mut state);
    plugin.filter(&cx, &state, cluster.node("n"));
    let mut host = FakeHost::default();
    let mut run = |refuse: bool, undo: bool| {
        host.refuse = if refuse { vec!["u".into()] } else { Vec::new() };
        let mut cx = cluster.binding(&pod, "n", &mut host);
        let state = state.read_mut::<ClaimState>().unwrap();
        let outcome = write(&mut cx, state).map_err(|error| error.to_string());
        if undo {
            clear(&mut cx, state);
        }
        let asked = std::mem::take(&mut host.asked).into_iter().filter_map(|asked| match asked {
            Asked::SetNodeResourceClaims(_, statuses) => Some(statuses.len()),
            _ => None,
        });
        (outcome, asked.collect::<Vec<_>>())
    };
    assert_eq!(run(false, true), (Ok(()), vec![1, 0]));
    let text = "updating pod default/u NodeAllocatableResourceClaimStatuses: rejected";
    assert_eq!(run(true, false), (Err(text.into()), vec![1]));
}
