//! What the rest of a cluster does: the API server's validation, controllers that put pods and
//! taints back, and the kubelet that keeps its static pods and its labels.

use serde_json::{Value, json};

use crate::cluster::{HOSTNAME, ZONE};
use crate::truth::all;

/// Taints that controllers keep in step with the node's conditions (`nodelifecycle`).
const CONDITIONS: &[&str] =
    &["not-ready", "unreachable", "memory-pressure", "disk-pressure", "pid-pressure"];
/// Labels that the kubelet sets to its own values.
const KUBELETS_LABELS: &[&str] = &[HOSTNAME, ZONE, "kubernetes.io/os", "kubernetes.io/arch"];

/// Kinds whose specification cannot be changed, only deleted and created with another one.
pub const IMMUTABLE: &[&str] = &["PersistentVolumeClaim", "ResourceClaim", "PodGroup"];

/// Whether an API server, and the kubelet behind a node, leave the change as it is.
pub fn accepts(before: &Value, after: &Value) -> Result<(), String> {
    match after["kind"].as_str() {
        Some("Node") => accepts_node(before, after),
        Some("Pod") => accepts_pod(before, after),
        _ => Ok(()),
    }
}

fn accepts_node(before: &Value, after: &Value) -> Result<(), String> {
    let value =
        |node: &Value, key: &str| node["metadata"]["labels"][key].as_str().map(str::to_owned);
    for key in KUBELETS_LABELS {
        let (was, is) = (value(before, key), value(after, key));
        if was.is_some() && was != is {
            return Err(format!("the kubelet sets {key} back"));
        }
    }
    let lost = all(&before["spec"]["taints"]).find(|taint| {
        taint["key"].as_str().is_some_and(is_condition)
            && !all(&after["spec"]["taints"]).any(|left| left == *taint)
    });
    lost.map_or(Ok(()), |taint| Err(format!("a controller puts {} back", taint["key"])))
}

/// Priority and preemption policy are those of the class, and a kubelet that is down or short of
/// something runs no pod that tolerates it.
fn accepts_pod(before: &Value, after: &Value) -> Result<(), String> {
    let is_of_class = after["spec"]["priorityClassName"] != before["spec"]["priorityClassName"];
    let by_hand = |field: &&&str| before["spec"][**field] != after["spec"][**field];
    let set = ["priority", "preemptionPolicy"].iter().find(by_hand).filter(|_| !is_of_class);
    if let Some(field) = set {
        return Err(format!("admission takes {field} from the priority class"));
    }
    let is_new = |one: &&Value| !all(&before["spec"]["tolerations"]).any(|other| other == *one);
    let mut added = all(&after["spec"]["tolerations"]).filter(is_new);
    let of_condition = added.find(|one| one["key"].as_str().is_some_and(is_condition));
    of_condition.map_or(Ok(()), |one| Err(format!("no kubelet runs it despite {}", one["key"])))
}

/// Whether a taint of that key stands for a condition of the node.
fn is_condition(key: &str) -> bool {
    let name = key.strip_prefix("node.kubernetes.io/");
    name.is_some_and(|name| CONDITIONS.contains(&name))
}

/// Lets admission compute what comes from the priority class.
pub fn take_from_class(pod: &mut Value) {
    for field in ["priority", "preemptionPolicy"] {
        pod["spec"].as_object_mut().and_then(|spec| spec.remove(field));
    }
}

/// A node that has just joined is in service and ready.
pub fn put_in_service(node: &mut Value) {
    node["spec"].as_object_mut().and_then(|spec| spec.remove("unschedulable"));
    if let Some(taints) = node["spec"]["taints"].as_array_mut() {
        let is_own = |taint: &Value| {
            let key = taint["key"].as_str().unwrap_or_default();
            !key.starts_with("node.kubernetes.io/")
        };
        taints.retain(is_own);
    }
    node["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
}

/// Who made an object, if a controller did.
pub fn owner(object: &Value) -> Option<&str> {
    all(&object["metadata"]["ownerReferences"]).find_map(|owner| owner["kind"].as_str())
}

/// Whether the pod comes back to its node whenever it is deleted.
pub fn stays(pod: &Value) -> bool {
    let is_mirror = !pod["metadata"]["annotations"]["kubernetes.io/config.mirror"].is_null();
    is_mirror || matches!(owner(pod), Some("DaemonSet" | "Node"))
}

/// Deletes an object. A pod of a controller comes back at once.
///
/// # Errors
/// It comes back to its node, so that nothing is won.
pub fn delete(documents: &mut Vec<Value>, at: usize) -> Result<(), String> {
    if documents[at]["kind"] != "Pod" {
        documents.remove(at);
        return Ok(());
    }
    if stays(&documents[at]) {
        return Err("the pod comes back to its node at once".into());
    }
    let pod = documents.remove(at);
    release_devices(documents, &pod);
    if owner(&pod).is_some() {
        documents.push(replacement(&pod));
    }
    Ok(())
}

/// The pod that a controller makes in its place: pending, and younger than all others.
fn replacement(pod: &Value) -> Value {
    let mut next = pod.clone();
    let metadata = &mut next["metadata"];
    if owner(pod) != Some("StatefulSet") {
        metadata["name"] =
            json!(format!("{}-next", pod["metadata"]["name"].as_str().unwrap_or("")));
    }
    metadata["uid"] = json!(format!("{}-next", pod["metadata"]["uid"].as_str().unwrap_or("")));
    metadata["creationTimestamp"] = json!("2026-01-01T09:00:00Z");
    next["metadata"].as_object_mut().map(|fields| fields.remove("deletionTimestamp"));
    next["spec"].as_object_mut().map(|spec| spec.remove("nodeName"));
    next["status"] = json!({"phase": "Pending"});
    next
}

/// Claims that only this pod used are deallocated.
fn release_devices(documents: &mut [Value], pod: &Value) {
    let namespace = &pod["metadata"]["namespace"];
    let claims = documents.iter_mut().filter(|object| {
        object["kind"] == "ResourceClaim" && object["metadata"]["namespace"] == *namespace
    });
    for claim in claims {
        let Some(users) = claim["status"]["reservedFor"].as_array_mut() else { continue };
        let before = users.len();
        users.retain(|user| user["name"] != pod["metadata"]["name"]);
        if users.is_empty() && before > 0 {
            claim["status"] = json!({});
        }
    }
}

/// What controllers do after a change: the taint of a cordon follows the field.
pub fn settle(documents: &mut [Value]) {
    let key = "node.kubernetes.io/unschedulable";
    for node in documents.iter_mut().filter(|object| object["kind"] == "Node") {
        let is_cordoned = node["spec"]["unschedulable"] == true;
        let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
        let mut taints: Vec<Value> =
            taints.into_iter().filter(|taint| is_cordoned || taint["key"] != key).collect();
        if is_cordoned && !taints.iter().any(|taint| taint["key"] == key) {
            taints.push(json!({"key": key, "effect": "NoSchedule"}));
        }
        if !taints.is_empty() || !node["spec"]["taints"].is_null() {
            node["spec"]["taints"] = json!(taints);
        }
    }
}
