//! The behavior of the rest of a cluster: the API server's validation, controllers that recreate
//! pods and taints, and the kubelet with its static pods and labels.

use serde_json::{Value, json};

use crate::cluster::{HOSTNAME, ZONE};
use crate::truth::all;

/// Taints that the node controller keeps for conditions (`nodelifecycle`).
const CONDITIONS: &[&str] =
    &["not-ready", "unreachable", "memory-pressure", "disk-pressure", "pid-pressure"];
/// Labels that the kubelet resets to its own values.
const KUBELETS_LABELS: &[&str] = &[HOSTNAME, ZONE, "kubernetes.io/os", "kubernetes.io/arch"];

/// Kinds with an immutable spec: they must be deleted and created again.
pub const IMMUTABLE: &[&str] = &["PersistentVolumeClaim", "ResourceClaim", "PodGroup"];

/// Checks that the API server accepts the change, and the kubelet does not undo it.
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

/// Priority and preemption policy must be those of the class. A kubelet that is down or under
/// pressure does not run a pod, even if the pod tolerates the taint.
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

/// Whether a taint with that key stands for a condition of the node.
fn is_condition(key: &str) -> bool {
    let name = key.strip_prefix("node.kubernetes.io/");
    name.is_some_and(|name| CONDITIONS.contains(&name))
}

/// Sets what admission derives from the priority class.
pub fn take_from_class(pod: &mut Value) {
    for field in ["priority", "preemptionPolicy"] {
        pod["spec"].as_object_mut().and_then(|spec| spec.remove(field));
    }
}

/// A new node is schedulable and ready.
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

/// The controller that owns an object, if any.
pub fn owner(object: &Value) -> Option<&str> {
    all(&object["metadata"]["ownerReferences"]).find_map(|owner| owner["kind"].as_str())
}

/// Whether the pod is recreated on its node whenever it is deleted.
pub fn stays(pod: &Value) -> bool {
    let is_mirror = !pod["metadata"]["annotations"]["kubernetes.io/config.mirror"].is_null();
    is_mirror || matches!(owner(pod), Some("DaemonSet" | "Node"))
}

/// Deletes an object. A pod with a controller is recreated at once.
///
/// # Errors
/// It is recreated on its node, so that deleting it has no effect.
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

/// The replacement that a controller creates: pending, and the youngest pod.
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

/// Deallocates the claims that only this pod used.
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

/// What controllers do after a change: the cordon taint follows the field.
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
