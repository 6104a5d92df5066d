//! Cases with features that are off by default: pod groups, their placement and preemption, gates
//! of devices and volumes, and simulated extenders.

use std::sync::Arc;

use kubestep_api::Kind;
use kubestep_cluster::ExtenderFn;
use kubestep_framework::host::ExtenderCall;
use serde_json::{Value, json};

use crate::case::{Case, Step};
use crate::objects;
use crate::random::Random;

/// Feature gates that are off by default, each enabled in some cases.
const GATES: &[&str] = &[
    "DRADeviceTaintRules",
    "DRANodeAllocatableResources",
    "StorageCapacityScoring",
    "TaintTolerationComparisonOperators",
    "VolumeLimitScaling",
];
/// Feature gates that are off by default and need pod groups.
const GROUP_GATES: &[&str] =
    &["DRAWorkloadResourceClaims", "TopologyAwareWorkloadScheduling", "WorkloadAwarePreemption"];
const GROUPS: &[&str] = &["g0", "g1", "g2"];
const NAMESPACE: &str = "default";
const EXTENDERS: &str = "extenders:
- {urlPrefix: 'http://first.example', filterVerb: filter, preemptVerb: preempt, nodeCacheCapable: true}
- {urlPrefix: 'http://second.example', prioritizeVerb: prioritize, weight: 3, ignorable: true}
";

/// Enables feature gates and adds pods to groups.
pub fn decorate(case: &mut Case, seed: u64) {
    let r = &mut Random::new(seed ^ 0xa5a5);
    for gate in GATES.iter().filter(|_| r.chance(40)) {
        case.features.push((gate, true));
    }
    if r.chance(75) {
        grouped(case, r);
    } else {
        case.config = Some(match case.config.take() {
            Some(text) => format!("{text}{EXTENDERS}"),
            None => crate::case::document(EXTENDERS),
        });
        case.has_extenders = true;
    }
    let spec = json!({"taint": {"key": "worn", "value": "x", "effect": "NoSchedule"},
        "deviceSelector": {"device": "device-0"}});
    let rule = json!({"kind": "DeviceTaintRule", "metadata": {"name": "r", "uid": "r"},
        "spec": spec});
    case.steps.insert(case.steps.len() / 2, Step::Create(vec![rule]));
}

fn grouped(case: &mut Case, r: &mut Random) {
    case.features.extend([("GenericWorkload", true), ("GangScheduling", true)]);
    for gate in GROUP_GATES.iter().filter(|_| r.chance(50)) {
        case.features.push((gate, true));
    }
    case.lists.extend(GROUPS.iter().map(|name| vec![group(r, name)]));
    join(r, &mut case.pending);
    for step in &mut case.steps {
        if let Step::Create(objects) = step {
            join(r, objects);
        }
    }
    for name in GROUPS {
        let at = r.below(case.steps.len());
        case.steps.insert(at, Step::Delete(Kind::PodGroup, (*name).to_owned()));
        let at = at + r.below(case.steps.len() - at);
        case.steps.insert(at, Step::Create(vec![group(r, name)]));
    }
}

fn group(r: &mut Random, name: &str) -> Value {
    let policy = match r.chance(75) {
        true => json!({"gang": {"minCount": 1 + r.below(3)}}),
        false => json!({"basic": {}}),
    };
    let mut spec = json!({"schedulingPolicy": policy});
    if r.chance(50) {
        spec["schedulingConstraints"] = json!({"topology": [{"key": objects::ZONE}]});
    }
    if r.chance(50) {
        spec["priority"] = json!(10 * r.below(4));
    }
    let metadata = json!({"name": name, "namespace": NAMESPACE, "uid": name});
    json!({"kind": "PodGroup", "metadata": metadata, "spec": spec})
}

/// Adds some pods to groups; there are groups in only one namespace.
fn join(r: &mut Random, objects: &mut [Value]) {
    for pod in objects.iter_mut().filter(|object| object["kind"] == "Pod") {
        if pod["metadata"]["namespace"] == NAMESPACE && r.chance(70) {
            pod["spec"]["schedulingGroup"] = json!({"podGroupName": r.pick(GROUPS)});
        }
    }
}

/// Extenders that answer by the nodes' names alone.
pub fn extenders() -> ExtenderFn {
    Arc::new(|call: &ExtenderCall, _| {
        let names = call.body["NodeNames"].as_array().cloned().unwrap_or_default();
        let items = call.body["Nodes"]["items"].as_array().cloned().unwrap_or_default();
        let of_items = items.iter().map(|node| node["metadata"]["name"].clone());
        let names: Vec<Value> = names.into_iter().chain(of_items).collect();
        let last = |name: &Value| {
            let digit = name.as_str().and_then(|name| name.bytes().last());
            i64::from(digit.unwrap_or(b'0') - b'0')
        };
        Ok(match call.verb.as_str() {
            "filter" => {
                let passes = |name: &&Value| last(name) != 7;
                json!({"NodeNames": names.iter().filter(passes).collect::<Vec<_>>()})
            }
            "prioritize" => {
                let entry = |name: &Value| json!({"Host": name, "Score": last(name)});
                names.iter().map(entry).collect()
            }
            _ => json!({"NodeNameToMetaVictims": call.body["NodeNameToMetaVictims"]}),
        })
    })
}
