//! Writes to pods: binds them, evicts them, and changes their status, or that of a pod group, with a
//! strategic merge patch, so that the conditions of other writers stay. The UID is sent along, so
//! that a pod recreated under the same name is left alone.

use http::Method;
use serde_json::{Map, Value, json};

use crate::failure::RequestFailure;
use crate::write::call::{BodyFormat, Calls, WriteCall};
use crate::write::object::ObjectPath;
use kubestep_api::{
    Condition, Kind, Name, NodeAllocatableResourceClaimStatus, PodExtendedResourceClaimStatus, Uid,
};
use kubestep_cluster::remote::{PodRef, WriteOutcome};
use kubestep_framework::host::PodStatusPatch;
use kubestep_framework::pod::NamespacedName;

/// Sets a condition and the nominated node.
///
/// # Errors
/// The server rejected the patch.
pub(super) async fn patch(
    calls: &Calls,
    pod: PodRef,
    patch: &PodStatusPatch,
) -> Result<WriteOutcome, RequestFailure> {
    let mut status = Map::new();
    if let Some(condition) = &patch.condition {
        status.insert("conditions".into(), json!([condition_json(condition)]));
    }
    if let Some(node) = patch.nominated_node {
        let value = if node.is_empty() { Value::Null } else { json!(node) };
        status.insert("nominatedNodeName".into(), value);
    }
    set(calls, pod, status.into()).await
}

/// Sets the claim for the pod's extended resources.
///
/// # Errors
/// The server rejected the patch.
pub(super) async fn name_claim(
    calls: &Calls,
    pod: PodRef,
    status: &PodExtendedResourceClaimStatus,
) -> Result<WriteOutcome, RequestFailure> {
    set(calls, pod, json!({ "extendedResourceClaimStatus": status })).await
}

/// Sets what the pod's claims use of the node's own resources.
///
/// # Errors
/// The server rejected the patch.
pub(super) async fn name_node_resources(
    calls: &Calls,
    pod: PodRef,
    statuses: &[NodeAllocatableResourceClaimStatus],
) -> Result<WriteOutcome, RequestFailure> {
    set(calls, pod, json!({ "nodeAllocatableResourceClaimStatuses": statuses })).await
}

/// Sets a condition of a pod group.
///
/// # Errors
/// The server rejected the patch.
pub(super) async fn set_group_condition(
    calls: &Calls,
    group: NamespacedName,
    uid: Uid,
    condition: &Condition,
) -> Result<WriteOutcome, RequestFailure> {
    let mut condition = condition_json(condition);
    // Only conditions of pods have this field.
    condition.as_object_mut().map(|fields| fields.remove("lastProbeTime"));
    let status = json!({ "conditions": [condition] });
    set_status(calls, (Kind::PodGroup, group, uid), status).await
}

async fn set(calls: &Calls, pod: PodRef, status: Value) -> Result<WriteOutcome, RequestFailure> {
    set_status(calls, (Kind::Pod, pod.key, pod.uid), status).await
}

async fn set_status(
    calls: &Calls,
    (kind, key, uid): (Kind, NamespacedName, Uid),
    status: Value,
) -> Result<WriteOutcome, RequestFailure> {
    let ObjectPath { path, .. } = ObjectPath::of(calls, kind, key).await?;
    let body = json!({ "metadata": { "uid": uid }, "status": status });
    let (path, content) = (format!("{path}/status"), BodyFormat::StrategicPatch);
    calls.make_again(&WriteCall { method: Method::PATCH, path, content, body }).await?;
    Ok(WriteOutcome::Done)
}

/// A condition in the API's format.
fn condition_json(condition: &Condition) -> Value {
    let mut json = json!({
        "type": condition.type_,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastProbeTime": condition.last_probe_time,
        "lastTransitionTime": condition.last_transition_time,
    });
    if condition.observed_generation != 0 {
        json["observedGeneration"] = condition.observed_generation.into();
    }
    json
}

/// Binds the pod to the node.
///
/// # Errors
/// The server did not bind: the pod was deleted, recreated, or already has a node.
pub(super) async fn bind(
    calls: &Calls,
    pod: PodRef,
    node: Name,
) -> Result<WriteOutcome, RequestFailure> {
    let (namespace, name) = (pod.key.namespace, pod.key.name);
    let body = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"namespace": namespace, "name": name, "uid": pod.uid},
        "target": {"kind": "Node", "name": node},
    });
    let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/binding");
    calls.make(&WriteCall { method: Method::POST, path, content: BodyFormat::Json, body }).await?;
    Ok(WriteOutcome::Done)
}

/// Evicts a victim of preemption: first sets the condition with the reason, then deletes the pod.
///
/// # Errors
/// The server rejected the condition or the deletion, although the pod exists.
pub(super) async fn evict(
    calls: &Calls,
    pod: PodRef,
    condition: Option<Condition>,
) -> Result<WriteOutcome, RequestFailure> {
    if condition.is_some() {
        let patch = PodStatusPatch { condition, nominated_node: None };
        match self::patch(calls, pod, &patch).await {
            Err(failure) if is_gone(&failure) => return Ok(WriteOutcome::Gone),
            patched => patched?,
        };
    }
    let (namespace, name) = (pod.key.namespace, pod.key.name);
    let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
    let body = json!({
        "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": pod.uid},
    });
    let call = WriteCall { method: Method::DELETE, path, content: BodyFormat::Json, body };
    match calls.make(&call).await {
        Err(failure) if is_gone(&failure) => Ok(WriteOutcome::Gone),
        deleted => deleted.map(|_| WriteOutcome::Done),
    }
}

/// Whether there is no such pod, or none with that UID.
fn is_gone(failure: &RequestFailure) -> bool {
    match failure {
        RequestFailure::Absent(_) => true,
        RequestFailure::Server { code: 409, message, .. } => message.contains("UID"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubestep_api::{ConditionStatus, Time};

    #[test]
    fn a_condition_has_the_fields_of_the_api() {
        let condition = Condition {
            type_: "PodScheduled".into(),
            status: ConditionStatus::False,
            reason: "Unschedulable".into(),
            message: "no".into(),
            observed_generation: 2,
            last_transition_time: Some(Time(1_767_225_600_000_000)),
            last_probe_time: None,
        };
        let expected = json!({
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": "no", "observedGeneration": 2, "lastProbeTime": null,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        assert_eq!(condition_json(&condition), expected);
    }
}
